# Toolchain, LLVM and the helpers that the folders' CMakeLists.txt use.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# Installed programs find the shared LLVM and MLIR that they were built with.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# The distribution's LLVM and MLIR have no sanitizers; test/tsan.supp suppresses reports about them.
set(COMMSIR_SANITIZE "" CACHE STRING "Sanitizers of the C++ code, as -fsanitize= has them: thread; address,undefined")
if(COMMSIR_SANITIZE)
  add_compile_options("-fsanitize=${COMMSIR_SANITIZE}" -fno-sanitize=vptr -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${COMMSIR_SANITIZE}")
endif()
# Python has no sanitizers. Its tests preload the sanitizers' runtime, and the
# C++ library, because the runtime looks up exception functions when it starts.
set(COMMSIR_PYTHON_PRELOAD "")
if(COMMSIR_SANITIZE MATCHES "address")
  foreach(library libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so libstdc++.so.6)
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=${library}
      OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND COMMSIR_PYTHON_PRELOAD "${path}")
  endforeach()
  list(JOIN COMMSIR_PYTHON_PRELOAD ":" COMMSIR_PYTHON_PRELOAD)
  set(COMMSIR_PYTHON_PRELOAD "LD_PRELOAD=${COMMSIR_PYTHON_PRELOAD}")
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache requires this sloppiness for precompiled headers.
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${launcher}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}")
endif()

find_package(MLIR REQUIRED CONFIG)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "CommsIR is written for LLVM and MLIR 22; ${MLIR_DIR} has ${LLVM_PACKAGE_VERSION}. "
    "Install libmlir-22-dev, or set CMAKE_PREFIX_PATH=/usr/lib/llvm-22.")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(GNUInstallDirs)

# SYSTEM: warnings in LLVM's headers are not ours. A property of the folders
# rather than of a target, because mlir_tablegen() reads it there.
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})

add_library(commsir_options INTERFACE)
separate_arguments(commsir_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(commsir_options INTERFACE
  ${commsir_llvm_definitions} -Wall -Wextra -Wno-unused-parameter)

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(commsir_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()

# Precompiled headers: commsir_precompiled, of MLIR, for libraries, tools and tests;
# commsir_precompiled_passes, which also has the dialects that passes lower between.
foreach(name commsir_precompiled commsir_precompiled_passes)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cpp" CONTENT "\n")
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE commsir_options)
endforeach()
target_precompile_headers(commsir_precompiled PRIVATE "${PROJECT_SOURCE_DIR}/cmake/Precompiled.h")
target_precompile_headers(commsir_precompiled_passes PRIVATE "${PROJECT_SOURCE_DIR}/cmake/PrecompiledPasses.h")
target_include_directories(commsir_precompiled_passes PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
add_dependencies(commsir_precompiled_passes CommsIRDialectIncGen)

# commsir_library(NAME SOURCES… DEPENDS targets LINK libraries PRECOMPILED target):
# a static library of one top-level folder. LLVM and MLIR are the distribution's
# shared libraries.
function(commsir_library name)
  cmake_parse_arguments(arg "" "PRECOMPILED" "SOURCES;DEPENDS;LINK" ${ARGN})
  if(NOT arg_PRECOMPILED)
    set(arg_PRECOMPILED commsir_precompiled)
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/commsir>)
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:commsir_options>)
  target_link_libraries(${name} PUBLIC MLIR LLVM)
  target_precompile_headers(${name} REUSE_FROM ${arg_PRECOMPILED})
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
endfunction()

# commsir_tool(NAME SOURCES… LINK libraries): a program in bin/.
function(commsir_tool name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} commsir_options)
  # -fPIC after CMake's -fPIE: the precompiled header was made without -fPIE.
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM commsir_precompiled)
  if(CMAKE_CURRENT_SOURCE_DIR STREQUAL "${PROJECT_SOURCE_DIR}/tools")
    set_property(GLOBAL APPEND PROPERTY COMMSIR_TOOLS ${name})
  endif()
endfunction()

# commsir_registry(OUT MACRO files…): a .inc with one line MACRO(Stem) a file, so
# that a new file is registered by being there.
function(commsir_registry out macro)
  set(text "// Made by CMake from the file names; do not edit.\n")
  foreach(file ${ARGN})
    get_filename_component(stem "${file}" NAME_WE)
    string(APPEND text "${macro}(${stem})\n")
  endforeach()
  file(GENERATE OUTPUT "${out}" CONTENT "${text}")
endfunction()
