"""The demo of arrays: photographs in small patches, a thousand batches, memory that stays flat.

``patches`` cuts them, ``kernels`` measures them, three times over and as NumPy has it, ``workers``
run that, ``run`` goes through the batches and watches the memory, ``picture`` draws it.
"""
