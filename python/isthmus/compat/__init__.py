"""Doors for programs written for others: their names and behaviour, our memory underneath.

``isthmus.compat.dpctl.memory``, ``isthmus.compat.rmm`` and ``isthmus.compat.pydotcompute`` are what
an import is changed to; each is imported by its own name.
"""
