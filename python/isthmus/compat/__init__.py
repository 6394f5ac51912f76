# SPDX-License-Identifier: Apache-2.0
"""Compatibility packages: the names and behaviour of other libraries, with memory of Isthmus.

To use one, change the import to ``isthmus.compat.dpctl.memory``, ``isthmus.compat.rmm`` or
``isthmus.compat.pydotcompute``. This package itself imports none of them.
"""
