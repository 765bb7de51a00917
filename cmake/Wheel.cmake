# Target `wheel`: one py3-none-manylinux wheel in build/wheel, with LLVM inside
# and hidden, so that it lives in one process with torch's and Triton's LLVM. The
# objects are those of the shared build; only the link differs (see Bundle.cmake).

if(NOT TARGET commsir_ffi OR NOT commsir_llvm_archives OR NOT COMMSIR_ZSTD_ARCHIVE
   OR NOT COMMSIR_ZLIB_ARCHIVE OR NOT COMMSIR_BOOST_CONTEXT_ARCHIVE)
  message(STATUS "the Python binding or static archives are missing: no target wheel")
  return()
endif()

set(wheel "${PROJECT_BINARY_DIR}/wheel")
set(wheel_libraries "${wheel}/stage/commsir/_lib")

# CommsIR uses only Boost.Context's assembly, which is relocatable, unlike the rest
# of Debian's archive.
add_library(commsir-static SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:commsir_capi>
  "${PROJECT_SOURCE_DIR}/runtime/capi/Glibc.c")
set_target_properties(commsir-static PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME commsir
  LIBRARY_OUTPUT_DIRECTORY "${wheel_libraries}" BUILD_RPATH "" INSTALL_RPATH "" BUILD_WITH_INSTALL_RPATH ON)
set(commsir_travels -static-libstdc++ -static-libgcc -s LINKER:--gc-sections LINKER:--as-needed
  LINKER:-O2 LINKER:--no-undefined)
target_link_options(commsir-static PRIVATE ${commsir_travels} LINKER:-Bsymbolic
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/runtime/capi/commsir.map")
target_link_libraries(commsir-static PRIVATE -Wl,--start-group
  $<TARGET_FILE:CommsIRRuntime> $<TARGET_FILE:CommsIRLowering> $<TARGET_FILE:CommsIRDialect>
  ${commsir_llvm_archives} -Wl,--end-group ${COMMSIR_BOOST_CONTEXT_ARCHIVE}
  ${COMMSIR_ZSTD_ARCHIVE} ${COMMSIR_ZLIB_ARCHIVE} dl pthread m)
add_dependencies(commsir-static CommsIRRuntime CommsIRLowering CommsIRDialect)
set_property(TARGET commsir-static APPEND PROPERTY LINK_DEPENDS
  $<TARGET_FILE:CommsIRRuntime> $<TARGET_FILE:CommsIRLowering> $<TARGET_FILE:CommsIRDialect>
  "${PROJECT_SOURCE_DIR}/runtime/capi/commsir.map")

add_library(commsir_ffi-static SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:commsir_ffi_objects>)
set_target_properties(commsir_ffi-static PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME commsir_ffi
  LIBRARY_OUTPUT_DIRECTORY "${wheel_libraries}" BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN"
  BUILD_WITH_INSTALL_RPATH ON)
target_link_options(commsir_ffi-static PRIVATE ${commsir_travels}
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/frontend/ffi/binding.map")
target_link_libraries(commsir_ffi-static PRIVATE commsir-static "${tvm_ffi_libdir}/libtvm_ffi.so")

# What is made for torch goes along as it is: torch brings the C++ library. What an
# earlier wheel had for other torches does not.
set(wheel_torch)
set(wheel_strip COMMAND find "${wheel_libraries}" -name "libcommsir_c10d.*" -delete)
get_property(c10d_modules GLOBAL PROPERTY COMMSIR_C10D_MODULES)
foreach(target commsir_torch_ops ${c10d_modules})
  if(TARGET ${target})
    list(APPEND wheel_torch ${target})
    list(APPEND wheel_strip COMMAND "${CMAKE_STRIP}" -o "${wheel_libraries}/$<TARGET_FILE_NAME:${target}>"
      "$<TARGET_FILE:${target}>")
  endif()
endforeach()

file(GLOB_RECURSE wheel_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/frontend/commsir/*.py"
  "${PROJECT_SOURCE_DIR}/frontend/commsir/*.pyi" "${PROJECT_SOURCE_DIR}/test/demo/*.mlir"
  "${PROJECT_SOURCE_DIR}/runtime/torch/*.h" "${PROJECT_SOURCE_DIR}/runtime/torch/*.cpp")
set(wheel_stamp "${wheel}/made")
add_custom_command(OUTPUT "${wheel_stamp}" ${wheel_strip}
  COMMAND "${COMMSIR_PYTHON}" "${PROJECT_SOURCE_DIR}/frontend/make_wheel.py" --version "${PROJECT_VERSION}"
    --sources "${PROJECT_SOURCE_DIR}/frontend" --stage "${wheel}/stage" --out "${wheel}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${wheel_stamp}"
  DEPENDS commsir-static commsir_ffi-static ${wheel_torch} "${PROJECT_SOURCE_DIR}/frontend/make_wheel.py"
    "${PROJECT_SOURCE_DIR}/frontend/pyproject.toml" ${wheel_sources}
  COMMENT "Packing the wheel" VERBATIM)
add_custom_target(wheel DEPENDS "${wheel_stamp}")
