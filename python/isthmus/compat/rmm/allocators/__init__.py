"""RMM's current resource as the allocator of CuPy, Numba and PyTorch: one module for each."""
