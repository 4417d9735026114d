# SPDX-License-Identifier: GPL-3.0-or-later
# Finds LibTorch in the PyPI wheel `torch`, in an official LibTorch folder or in an existing Python
# environment. The wheel's own TorchConfig.cmake wants nvcc and a newer CMake even for CPU work.
#
# Looked at, in this order: -DSINKSCOPE_TORCH_DIR or the environment variable of that name; .venv of
# the source tree (made by `./dev setup`); the torch that `python3` would import.
#
# Result:
#   LibTorch::cpu           libtorch_cpu and libc10 with their headers (as system headers)
#   LIBTORCH_LIBRARY_DIR    for RPATH
#   LibTorch_VERSION
# libtorch_cuda is never linked: it is opened at run time when a CUDA device is asked for.
set(SINKSCOPE_TORCH_DIR "$ENV{SINKSCOPE_TORCH_DIR}" CACHE PATH
  "Folder with LibTorch's include/ and lib/ (empty: .venv, then python3)")

file(GLOB _torch_candidates LIST_DIRECTORIES true
  "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
if(SINKSCOPE_TORCH_DIR)
  set(_torch_candidates "${SINKSCOPE_TORCH_DIR}" "${SINKSCOPE_TORCH_DIR}/torch")
elseif(NOT _torch_candidates)
  execute_process(
    COMMAND python3 -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE _torch_candidates OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()

unset(_torch_include CACHE)
unset(_torch_cpu CACHE)
unset(_torch_c10 CACHE)
find_path(_torch_include ATen/ATen.h PATHS ${_torch_candidates} PATH_SUFFIXES include
  NO_DEFAULT_PATH)
find_library(_torch_cpu torch_cpu PATHS ${_torch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(_torch_c10 c10 PATHS ${_torch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
mark_as_advanced(_torch_include _torch_cpu _torch_c10)

if(_torch_include)
  file(GLOB _torch_version_header "${_torch_include}/torch/headeronly/version.h"
    "${_torch_include}/torch/csrc/api/include/torch/version.h")
  foreach(_header IN LISTS _torch_version_header)
    file(STRINGS "${_header}" _torch_version REGEX "\"[0-9]+\\.[0-9]+\\.[0-9]+")
    if(NOT LibTorch_VERSION AND _torch_version MATCHES "\"([0-9]+\\.[0-9]+\\.[0-9]+)")
      set(LibTorch_VERSION "${CMAKE_MATCH_1}")
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS _torch_cpu _torch_c10 _torch_include VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run ./dev setup, or give -DSINKSCOPE_TORCH_DIR=FOLDER, or build without the engine: -DSINKSCOPE_WITH_TORCH=OFF")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  get_filename_component(LIBTORCH_LIBRARY_DIR "${_torch_cpu}" DIRECTORY)

  # Strings in libc10's interface must be the same std::string as ours, or nothing links.
  file(STRINGS "${_torch_c10}" _torch_abi LIMIT_COUNT 1
    REGEX "^_ZN.*3c10.*NSt7__cxx1112basic_string")
  if(NOT _torch_abi)
    message(FATAL_ERROR "LibTorch in ${LIBTORCH_LIBRARY_DIR} was built with the old C++ string ABI "
      "(_GLIBCXX_USE_CXX11_ABI=0); Sinkscope needs the new one: take the PyPI wheel of torch 2.7 or "
      "later, or LibTorch's cxx11 download")
  endif()

  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION "${_torch_c10}")
  add_library(LibTorch::torch_cpu SHARED IMPORTED)
  set_target_properties(LibTorch::torch_cpu PROPERTIES IMPORTED_LOCATION "${_torch_cpu}")

  # libtorch_cpu finds libcudart and libcupti by its own RPATH at run time; ld asks at link time.
  file(GLOB _torch_cuda_dirs LIST_DIRECTORIES true
    "${LIBTORCH_LIBRARY_DIR}/../../nvidia/cu1*/lib"
    "${LIBTORCH_LIBRARY_DIR}/../../nvidia/cuda_*/lib")
  list(TRANSFORM _torch_cuda_dirs PREPEND "-Wl,-rpath-link,")

  # After the system's folders: the wheel brings its own fmt, protobuf and others, without their
  # libraries, and a plain -isystem would put them before Debian's.
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  target_compile_options(LibTorch::cpu INTERFACE
    "SHELL:-idirafter ${_torch_include}/torch/csrc/api/include"
    "SHELL:-idirafter ${_torch_include}")
  target_compile_definitions(LibTorch::cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_link_libraries(LibTorch::cpu INTERFACE LibTorch::torch_cpu LibTorch::c10)
  # at::parallel_for is a template: without OpenMP in our own units it would run on one thread.
  # The runtime must be LibTorch's, or its thread count would not be ours.
  target_compile_options(LibTorch::cpu INTERFACE -fopenmp)
  if(EXISTS "${LIBTORCH_LIBRARY_DIR}/libgomp.so.1")
    target_link_libraries(LibTorch::cpu INTERFACE "${LIBTORCH_LIBRARY_DIR}/libgomp.so.1")
  else()
    target_link_options(LibTorch::cpu INTERFACE -fopenmp)
  endif()
  target_link_options(LibTorch::cpu INTERFACE
    "-Wl,-rpath-link,${LIBTORCH_LIBRARY_DIR}" ${_torch_cuda_dirs})
endif()
