# Flags that every target of the project shares: isthmus_target(<target>).

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
# With add_subdirectory, the build type is the choice of the project that contains this one.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(isthmus_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
set(isthmus_cxx_warnings -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual)

# Checks the attributes of core/thread_safety.hpp; g++ has no such analysis.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND isthmus_cxx_warnings -Wthread-safety)
endif()

# g++ 12 warns of overlaps and overruns in std::string's operator+ that do not exist (GCC bug 105651).
# Only optimized builds are affected.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND isthmus_cxx_warnings "$<$<CONFIG:Release>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>")
endif()

set(isthmus_sanitizers "")
if(ISTHMUS_SANITIZE)
  list(JOIN ISTHMUS_SANITIZE "," joined)
  set(isthmus_sanitizers -fsanitize=${joined} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if("thread" IN_LIST ISTHMUS_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND isthmus_warnings -Wno-tsan) # each fence accompanies an atomic of the same order
  endif()
endif()
if(ISTHMUS_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "ISTHMUS_BUILD_FUZZERS needs clang: set CMAKE_C_COMPILER and CMAKE_CXX_COMPILER")
  endif()
  list(APPEND isthmus_sanitizers -fsanitize=fuzzer-no-link)
endif()

# Calls between shared libraries read the address from the GOT directly instead of through a PLT stub:
# saves 2 to 4 % of the time of creating an array in Python.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fno-plt ISTHMUS_HAS_NO_PLT)
if(ISTHMUS_HAS_NO_PLT)
  add_compile_options($<$<CONFIG:Release>:-fno-plt>)
endif()

# The model of thread-local storage (src/core/tls.hpp). Only glibc reserves static TLS space for
# libraries that are opened by dlopen.
include(CheckCXXSymbolExists)
check_cxx_symbol_exists(__GLIBC__ features.h ISTHMUS_HAS_GLIBC)
if(ISTHMUS_HAS_GLIBC)
  set(ISTHMUS_TLS initial-exec CACHE STRING "Thread-local storage: initial-exec or descriptors")
else()
  set(ISTHMUS_TLS descriptors CACHE STRING "Thread-local storage: initial-exec or descriptors")
endif()
set_property(CACHE ISTHMUS_TLS PROPERTY STRINGS initial-exec descriptors)
if(NOT ISTHMUS_TLS MATCHES "^(initial-exec|descriptors)$")
  message(FATAL_ERROR "ISTHMUS_TLS is ${ISTHMUS_TLS}: set it to initial-exec or descriptors")
endif()
set(isthmus_descriptors -DISTHMUS_TLS_DESCRIPTORS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$") # others use descriptors by default, or have none
  check_cxx_compiler_flag(-mtls-dialect=gnu2 ISTHMUS_HAS_TLS_DIALECT)
  if(ISTHMUS_HAS_TLS_DIALECT)
    list(APPEND isthmus_descriptors -mtls-dialect=gnu2)
  endif()
endif()

function(isthmus_target target)
  target_compile_options(${target} PRIVATE
    ${isthmus_warnings} $<$<COMPILE_LANGUAGE:CXX>:${isthmus_cxx_warnings}>
    $<$<BOOL:${ISTHMUS_WERROR}>:-Werror> ${isthmus_sanitizers}
    $<$<STREQUAL:${ISTHMUS_TLS},descriptors>:${isthmus_descriptors}>
    $<$<CONFIG:Release>:-fno-plt>) # Buffer(1024) makes about 20 calls between libraries: saves about 3 ns
  target_link_options(${target} PRIVATE ${isthmus_sanitizers})
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    C_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()
