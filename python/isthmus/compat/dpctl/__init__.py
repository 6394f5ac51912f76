# SPDX-License-Identifier: Apache-2.0
"""For programs written for dpctl: ``isthmus.compat.dpctl.memory`` in place of ``dpctl.memory``."""
