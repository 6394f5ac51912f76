"""The demo: a photograph goes to a device, through a kernel of the user's own, and back.

``photo`` finds and enlarges the photograph, ``kernels`` has the kernel three times (for OpenCL, as
a function for a queue, and as NumPy's reference), ``run`` moves and checks, ``picture`` draws.
"""
