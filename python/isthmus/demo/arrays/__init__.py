# SPDX-License-Identifier: Apache-2.0
"""The demo of arrays: small patches of photographs, a thousand batches, constant memory use.

``patches`` cuts them, ``kernels`` measures them in several forms and in NumPy, ``workers`` run the
kernels, ``run`` processes the batches and monitors the memory, ``picture`` draws it.
"""
