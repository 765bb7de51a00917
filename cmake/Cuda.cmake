# Headers for the GPU target. CUDA and NCCL themselves are loaded at run time, so
# only headers are needed; `make setup` brings them from PyPI into .venv.

file(GLOB commsir_wheels "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia")
find_path(COMMSIR_CUDA_INCLUDE cuda.h
  HINTS ${commsir_wheels} PATH_SUFFIXES cu13/include
  PATHS /usr/local/cuda/include DOC "Folder of cuda.h")
find_path(COMMSIR_NCCL_INCLUDE nccl_device.h
  HINTS ${commsir_wheels} PATH_SUFFIXES nccl/include
  PATHS /usr/local/cuda/include DOC "Folder of nccl.h and nccl_device.h")
find_program(COMMSIR_PTXAS ptxas HINTS ${commsir_wheels} PATH_SUFFIXES cu13/bin
  PATHS /usr/local/cuda/bin DOC "ptxas, for the tests of generated PTX")
if(COMMSIR_CUDA_INCLUDE AND COMMSIR_NCCL_INCLUDE)
  option(COMMSIR_CUDA "Build the runtime for NVIDIA GPUs" ON)
elseif(NOT COMMSIR_CUDA) # Not cached: the headers may be there next time.
  set(COMMSIR_CUDA OFF)
  message(STATUS "no headers of CUDA and NCCL: the GPU runtime is left out (make setup installs them)")
endif()
