# SPDX-License-Identifier: Apache-2.0
"""photographs.py FILE: writes the raw pixels of scikit-learn's two sample photographs."""

import sys
from pathlib import Path

from sklearn.datasets import load_sample_images

Path(sys.argv[1]).write_bytes(b"".join(each.tobytes() for each in load_sample_images().images))
