// expect: conversion|could not convert|no viable|no match
// SPDX-License-Identifier: Apache-2.0
// The number of axes is part of the type.
#include <isthmus/isthmus.hpp>

isthmus::array<float, 1> flat(const isthmus::array<float, 2>& a) { return a; }
