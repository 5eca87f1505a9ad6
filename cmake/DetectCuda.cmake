# Finds nvcc, on the PATH or where its installer puts it, and makes CUDA one of the project's languages where it is.
#
# Sets MILLRACE_CUDA_FOUND. No GPU is asked for: the architectures are fixed, so that a build on any machine runs on
# every GPU that it is made for.
set(MILLRACE_NVCC "")
if(NOT MILLRACE_CUDA STREQUAL "OFF")
  find_program(MILLRACE_NVCC_PROGRAM nvcc HINTS ENV CUDACXX /usr/local/cuda/bin)
  if(MILLRACE_NVCC_PROGRAM)
    set(MILLRACE_NVCC ${MILLRACE_NVCC_PROGRAM})
  elseif(MILLRACE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MILLRACE_CUDA=ON, but there is no nvcc on the PATH, in CUDACXX or in /usr/local/cuda/bin")
  endif()
endif()
if(MILLRACE_NVCC)
  set(MILLRACE_CUDA_FOUND true)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${MILLRACE_NVCC})
  endif()
  if(NOT CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  # Code for A100 and for H100 and H200; newer GPUs translate the latter's PTX when they first load it.
  set(CMAKE_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPU generations to compile for")
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1, which Debian 12 has, thinks that nvcc stops at C++17
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit REQUIRED)
  # A kernel whose registers spill to memory, or that needs a stack, is slow without a word: it does not get compiled.
  set(MILLRACE_PTXAS_CHECKS -Xptxas=--warn-on-spills,--warn-on-local-memory-usage,--warning-as-error)
  message(STATUS "CUDA compiler: ${MILLRACE_NVCC}")
else()
  message(STATUS "CUDA compiler: none (MILLRACE_CUDA=${MILLRACE_CUDA})")
  set(MILLRACE_CUDA_FOUND false)
endif()
