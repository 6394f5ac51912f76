"""photographs.py FILE: writes the pixels of two photographs of scikit-learn's, as they are."""

import sys
from pathlib import Path

from sklearn.datasets import load_sample_images

Path(sys.argv[1]).write_bytes(b"".join(each.tobytes() for each in load_sample_images().images))
