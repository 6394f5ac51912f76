"""A pytest plugin: dpctl's own tests get the classes of isthmus.compat.dpctl.memory for dpctl's."""

import dpctl.memory

import isthmus.compat.dpctl.memory as door

for _name in dpctl.memory.__all__:
    setattr(dpctl.memory, _name, getattr(door, _name))
