"""The demos: a photograph goes there and back; a map lives on both sides; batches of arrays.

Of the first, ``photo`` finds and enlarges the photograph, ``kernels`` has the kernel three times
(for OpenCL, as a function for a queue, and as NumPy's reference), ``workers`` run it, ``run`` moves
and checks, ``picture`` draws. The others have folders of their own, ``unified`` and ``arrays``.
They share ``launch``, ``shipped``, ``checks`` and ``figure``.
"""
