"""The demo of the unified buffer: a map of the Earth's land that both sides edit, round by round.

``mask`` loads the map, ``edits`` changes its coast on the host, ``kernels`` and ``workers`` count
and stamp it on the device, ``truth`` is NumPy's own copy that every result is held against,
``dirty_map`` keeps which places were dirty, ``run`` goes the rounds, ``picture`` draws.
"""
