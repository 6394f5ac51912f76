"""The demos: a photograph goes through a device and back; a map lives on both sides.

Of the first, ``photo`` finds and enlarges the photograph, ``kernels`` has the kernel three times
(for OpenCL, as a function for a queue, and as NumPy's reference), ``workers`` run it, ``run`` moves
and checks, ``picture`` draws. The second has a folder of its own, ``unified``. They share
``launch``, ``shipped`` and ``checks``.
"""
