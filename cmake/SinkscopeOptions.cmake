# SPDX-License-Identifier: GPL-3.0-or-later
# What every target of the project compiles with: C++20, warnings by name, sanitizers on request.
add_library(sinkscope_options INTERFACE)
add_library(sinkscope::options ALIAS sinkscope_options)
target_compile_features(sinkscope_options INTERFACE cxx_std_20)
set(CMAKE_CXX_EXTENSIONS OFF)
target_include_directories(sinkscope_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(sinkscope_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual
  # gcc 12 sees overlap and overflow inside std::string at -O3 where there is none (PR 105329 and
  # its relatives); the sanitizer presets look for the real ones.
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>"
  $<$<BOOL:${SINKSCOPE_WERROR}>:-Werror>)
# Offsets and sizes are 64-bit signed throughout; sinks must never change the last bit between builds.
target_compile_options(sinkscope_options INTERFACE -ffp-contract=off)
if(SINKSCOPE_SANITIZE)
  target_compile_options(sinkscope_options INTERFACE
    -fsanitize=${SINKSCOPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    # gcc 12 takes its own instrumentation of std::function for a use before initialization.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(sinkscope_options INTERFACE -fsanitize=${SINKSCOPE_SANITIZE})
endif()

# sinkscope_module(NAME SOURCES… ) : a static library sinkscope_NAME with the alias sinkscope::NAME.
function(sinkscope_module name)
  add_library(sinkscope_${name} STATIC ${ARGN})
  add_library(sinkscope::${name} ALIAS sinkscope_${name})
  target_link_libraries(sinkscope_${name} PUBLIC sinkscope::options)
endfunction()

# What most sources of a target include anyway, compiled once: halves the time of a whole build.
function(sinkscope_precompile name)
  target_precompile_headers(${name} PRIVATE <algorithm> <cstdint> <map> <memory> <optional> <string>
    <vector> ${ARGN})
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

# sinkscope_add_tests(NAME LABEL… SOURCES s… LIBS l… [TIMEOUT 120]) : one test binary per module, found
# by CTest.
function(sinkscope_add_tests name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} sinkscope::options GTest::gmock_main)
  sinkscope_precompile(${name} <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_definitions(${name} PRIVATE
    SINKSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SINKSCOPE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
