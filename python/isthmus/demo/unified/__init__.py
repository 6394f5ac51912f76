# SPDX-License-Identifier: Apache-2.0
"""The demo of the unified buffer: host and device edit a map of the Earth's land in rounds.

``mask`` loads the map, ``edits`` changes its coast on the host, ``kernels`` and ``workers`` count
and stamp it on the device, ``truth`` is a NumPy copy that every result is compared with,
``dirty_map`` records which blocks were dirty, ``run`` runs the rounds, ``picture`` draws.
"""
