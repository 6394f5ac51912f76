# SPDX-License-Identifier: Apache-2.0
"""The demos: a photograph on a device, a map in a unified buffer, and batches of arrays.

For the first, ``photo`` finds and enlarges the photograph, ``kernels`` contains the kernel in
several forms and the NumPy reference, ``workers`` run it, ``run`` copies and checks, ``picture``
draws. The others are the subpackages ``unified`` and ``arrays``. All share ``launch``, ``shipped``,
``checks`` and ``figure``.
"""
