// SPDX-License-Identifier: Apache-2.0
#pragma once
// What isthmus._core exports to the other extension modules of the package, `_dpctl` and
// `_frameworks`, which link to it: the functions and data that they use. There is one copy of each
// and of the state that they share. Calls within `_core` bind at link time.

#define ISTHMUS_EXPORTED __attribute__((visibility("default")))
