# SPDX-License-Identifier: Apache-2.0
"""RMM's current resource as the allocator of CuPy, Numba and PyTorch: one module for each."""
