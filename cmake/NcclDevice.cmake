# The device library over nccl_device.h: bitcode to link into generated kernels,
# and PTX of the resolver kernel, both embedded in the runtime library.
# commsir_nccl_device(OUT): path of the .cpp that holds them, and the sources that
# NVRTC compiles when another NCCL is loaded.

find_program(COMMSIR_DEVICE_CLANG NAMES clang++-22 clang++
  HINTS "${LLVM_TOOLS_BINARY_DIR}" DOC "clang++ that compiles device code")

function(commsir_nccl_device out)
  set(source "${PROJECT_SOURCE_DIR}/lowering/nvvm/device/NcclDevice.cu")
  set(folder "${PROJECT_BINARY_DIR}/lowering/nvvm/device")
  set(embed "${PROJECT_SOURCE_DIR}/cmake/Embed.cmake")
  file(MAKE_DIRECTORY "${folder}")
  # clang's CUDA wrapper includes a header of cuRAND, which nothing here uses and
  # which is not among CUDA's headers proper.
  file(WRITE "${folder}/stubs/curand_mtgp32_kernel.h" "// Empty on purpose.\n")
  get_filename_component(cuda "${COMMSIR_CUDA_INCLUDE}" DIRECTORY)
  set(compile "${COMMSIR_DEVICE_CLANG}" -x cuda --cuda-device-only "--cuda-path=${cuda}"
    -nocudalib -Wno-unknown-cuda-version -std=gnu++17 -O2
    "-I${COMMSIR_NCCL_INCLUDE}" -isystem "${COMMSIR_CUDA_INCLUDE}/cccl"
    -isystem "${COMMSIR_CUDA_INCLUDE}" -isystem "${folder}/stubs" "${source}")
  set(names NcclDevice.cu NvrtcTypes.h NvrtcAtomic.h)
  list(TRANSFORM names PREPEND "${PROJECT_SOURCE_DIR}/lowering/nvvm/device/"
    OUTPUT_VARIABLE sources)
  set(files "ncclDeviceBitcode=${folder}/NcclDevice.bc" "ncclDevicePtx=${folder}/NcclDevice.ptx"
    "ncclDeviceSource=${source}" "nvrtcTypes=${PROJECT_SOURCE_DIR}/lowering/nvvm/device/NvrtcTypes.h"
    "nvrtcAtomic=${PROJECT_SOURCE_DIR}/lowering/nvvm/device/NvrtcAtomic.h")
  list(JOIN files "$<SEMICOLON>" files)
  # The PTX runs on every GPU from sm_80 on: the driver translates it.
  add_custom_command(OUTPUT "${folder}/NcclDevice.cpp"
    COMMAND ${compile} --cuda-gpu-arch=sm_90 -emit-llvm -c -o "${folder}/NcclDevice.bc"
    COMMAND ${compile} --cuda-gpu-arch=sm_80 --cuda-feature=+ptx80 -DCOMMSIR_KERNELS_ONLY -S -o "${folder}/NcclDevice.ptx"
    COMMAND "${CMAKE_COMMAND}" "-DOUT=${folder}/NcclDevice.cpp"
      "-DFILES=${files}"
      -P "${embed}"
    DEPENDS ${sources} "${embed}" "${COMMSIR_NCCL_INCLUDE}/nccl.h"
    COMMENT "Compiling the device library for the NCCL headers at hand" VERBATIM)
  set(${out} "${folder}/NcclDevice.cpp" PARENT_SCOPE)
endfunction()
