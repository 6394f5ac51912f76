# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that runs dpctl's own tests with the classes of isthmus.compat.dpctl.memory."""

import dpctl.memory

import isthmus.compat.dpctl.memory as compat

for _name in dpctl.memory.__all__:
    setattr(dpctl.memory, _name, getattr(compat, _name))
