// SPDX-License-Identifier: Apache-2.0
// Needs no other file, and has every kind of thread-local storage that the library uses.
#include "core/thread_number.cpp"
