# Target `bundle`: programs that need no LLVM on the host that runs them, in one
# archive (build/commsir-bundle.tar.xz). The objects are those of the shared
# build; only the link differs. MLIR's CMake targets would bring the shared
# libraries along, so the static archives are named by path.

file(GLOB commsir_llvm_archives "${LLVM_LIBRARY_DIR}/libLLVM*.a" "${LLVM_LIBRARY_DIR}/libMLIR*.a")
# Libraries that none of the tools needs.
list(FILTER commsir_llvm_archives EXCLUDE REGEX "libMLIR(CAPI|.*Test|.*SPIRV)")
find_library(COMMSIR_ZSTD_ARCHIVE NAMES libzstd.a)
find_library(COMMSIR_ZLIB_ARCHIVE NAMES libz.a)
find_library(COMMSIR_BOOST_CONTEXT_ARCHIVE NAMES libboost_context.a)
if(NOT commsir_llvm_archives OR NOT COMMSIR_ZSTD_ARCHIVE OR NOT COMMSIR_ZLIB_ARCHIVE
   OR NOT COMMSIR_BOOST_CONTEXT_ARCHIVE)
  message(STATUS "static archives of LLVM, zstd, zlib or Boost.Context are missing: no target bundle")
  return()
endif()

set(folder "${PROJECT_BINARY_DIR}/bundle")
set(programs)
# A test and a benchmark for hosts with GPUs: linked in the same way, but not packed.
set(for_hosts)
if(COMMSIR_BUILD_TESTS AND COMMSIR_CUDA)
  list(APPEND for_hosts gpu-processes)
  if(COMMSIR_BUILD_BENCHMARKS)
    list(APPEND for_hosts bench-jit)
  endif()
endif()
foreach(tool comms-run comms-opt comms-bench ${for_hosts})
  # With functions that a glibc older than that of LLVM's archives lacks.
  add_executable(${tool}-static EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${tool}>
    "${PROJECT_SOURCE_DIR}/runtime/capi/Glibc.c")
  set_target_properties(${tool}-static PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${tool}
    RUNTIME_OUTPUT_DIRECTORY "${folder}/bin" POSITION_INDEPENDENT_CODE OFF)
  # Not relocatable, because Debian's archive of Boost.Context is not.
  target_link_options(${tool}-static PRIVATE -no-pie -static-libstdc++ -static-libgcc -s
    LINKER:--gc-sections LINKER:--as-needed LINKER:-O2)
  target_link_libraries(${tool}-static PRIVATE -Wl,--start-group
    $<TARGET_FILE:CommsIRRuntime> $<TARGET_FILE:CommsIRLowering> $<TARGET_FILE:CommsIRDialect>
    ${commsir_llvm_archives} -Wl,--end-group ${COMMSIR_BOOST_CONTEXT_ARCHIVE}
    ${COMMSIR_ZSTD_ARCHIVE} ${COMMSIR_ZLIB_ARCHIVE} dl pthread m)
  add_dependencies(${tool}-static CommsIRRuntime CommsIRLowering CommsIRDialect)
  set_property(TARGET ${tool}-static APPEND PROPERTY LINK_DEPENDS
    $<TARGET_FILE:CommsIRRuntime> $<TARGET_FILE:CommsIRLowering> $<TARGET_FILE:CommsIRDialect>)
  if(tool IN_LIST for_hosts)
    set_target_properties(${tool}-static PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${folder}/test")
    continue()
  endif()
  list(APPEND programs ${tool}-static)
endforeach()

# The programs have most of their code in common: a dictionary over both finds it.
add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/commsir-bundle.tar.xz"
  COMMAND tar -C "${folder}" -I "xz -T2 --lzma2=preset=6,dict=128MiB"
    -cf "${PROJECT_BINARY_DIR}/commsir-bundle.tar.xz" bin
  DEPENDS ${programs} COMMENT "Packing commsir-bundle.tar.xz" VERBATIM)
add_custom_target(bundle DEPENDS "${PROJECT_BINARY_DIR}/commsir-bundle.tar.xz")
