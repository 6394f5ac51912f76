// What needs no other file, and has thread-local storage of every sort that the library has.
#include "core/thread_number.cpp"
