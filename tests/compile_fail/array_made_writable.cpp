// expect: conversion|could not convert|no viable|no match
// SPDX-License-Identifier: Apache-2.0
// A read-only array does not convert to a writable one.
#include <isthmus/isthmus.hpp>

isthmus::array<float, 1> writable(const isthmus::array<const float, 1>& a) { return a; }
