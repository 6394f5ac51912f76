# The target isthmus_rmm: RMM's headers and libraries with the parts of the CUDA runtime that they need,
# from the wheels in .venv or from CMAKE_INCLUDE_PATH and CMAKE_LIBRARY_PATH. The target does not exist
# if any of them is missing.

file(GLOB packages "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages")
file(GLOB toolkits "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu*")
find_path(ISTHMUS_CUDA_H cuda.h PATHS ENV CUDA_PATH /usr/local/cuda ${toolkits}
  PATH_SUFFIXES include)
find_path(ISTHMUS_RMM_HPP rmm/error.hpp PATHS ${packages} PATH_SUFFIXES librmm/include)
find_path(ISTHMUS_RAPIDS_LOGGER rapids_logger/logger.hpp PATHS ${packages}
  PATH_SUFFIXES rapids_logger/include)
find_library(ISTHMUS_CUDART NAMES cudart libcudart.so.13
  PATHS ENV CUDA_PATH /usr/local/cuda ${toolkits} PATH_SUFFIXES lib64 lib)
find_library(ISTHMUS_RMM_LIBRARY rmm PATHS ${packages} PATH_SUFFIXES librmm/lib64)
find_library(ISTHMUS_RAPIDS_LIBRARY rapids_logger PATHS ${packages}
  PATH_SUFFIXES rapids_logger/lib64)

if(ISTHMUS_CUDA_H AND ISTHMUS_RMM_HPP AND ISTHMUS_RAPIDS_LOGGER AND ISTHMUS_CUDART AND
   ISTHMUS_RMM_LIBRARY AND ISTHMUS_RAPIDS_LIBRARY AND NOT TARGET isthmus_rmm)
  add_library(isthmus_rmm INTERFACE)
  target_include_directories(isthmus_rmm SYSTEM INTERFACE "${ISTHMUS_RMM_HPP}"
    "${ISTHMUS_RMM_HPP}/rapids" "${ISTHMUS_CUDA_H}" "${ISTHMUS_RAPIDS_LOGGER}")
  target_link_libraries(isthmus_rmm INTERFACE
    "${ISTHMUS_RMM_LIBRARY}" "${ISTHMUS_RAPIDS_LIBRARY}" "${ISTHMUS_CUDART}")
  # RMM's library has no RUNPATH for the CUDA runtime, so the program loads it.
  target_link_options(isthmus_rmm INTERFACE -Wl,--no-as-needed)
endif()
