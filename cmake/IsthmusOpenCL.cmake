# Khronos' OpenCL headers: their types and constants are used, while the library is opened at run
# time. ISTHMUS_OPENCL_H is the folder that holds CL/.

include(CheckCXXSourceCompiles)

find_path(ISTHMUS_OPENCL_H CL/cl_ext.h)
if(EXISTS "${ISTHMUS_OPENCL_H}/CL/cl_ext.h")
  set(CMAKE_REQUIRED_INCLUDES "${ISTHMUS_OPENCL_H}")
  set(CMAKE_REQUIRED_DEFINITIONS -DCL_TARGET_OPENCL_VERSION=300)
  check_cxx_source_compiles("
#include <CL/cl.h>
#include <CL/cl_ext.h>
int main() { clHostMemAllocINTEL_fn* function = nullptr; return function != nullptr; }"
    ISTHMUS_OPENCL_H_HAS_USM)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_DEFINITIONS)
endif()
if(NOT ISTHMUS_OPENCL_H_HAS_USM)
  unset(ISTHMUS_OPENCL_H_HAS_USM CACHE) # checked again by the next run
  message(FATAL_ERROR "Khronos' OpenCL headers are missing, or older than 2023.02.06 (CL/cl_ext.h "
    "lacks cl_intel_unified_shared_memory). Install opencl-c-headers (Debian, Ubuntu) or "
    "opencl-headers (Fedora, conda-forge), or set ISTHMUS_OPENCL_H to the folder that holds CL/; it "
    "is now ${ISTHMUS_OPENCL_H}. No OpenCL library is needed to build.")
endif()
