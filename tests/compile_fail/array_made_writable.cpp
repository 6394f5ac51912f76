// expect: conversion|could not convert|no viable|no match
// An array that is only read does not become one that is written.
#include <isthmus/isthmus.hpp>

isthmus::array<float, 1> writable(const isthmus::array<const float, 1>& a) { return a; }
