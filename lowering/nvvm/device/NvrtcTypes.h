//===- NvrtcTypes.h - System headers for NVRTC ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVRTC has no system headers, and a machine that runs kernels has neither
// those nor CUDA's. This file replaces everything that NCCL's device headers
// include besides each other: the types and constants that they use.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_DEVICE_NVRTCTYPES_H
#define COMMSIR_LOWERING_NVVM_DEVICE_NVRTCTYPES_H

// Host functions that device code calls become device functions.
#undef __host__
#define __host__ __device__

#ifndef CUDART_VERSION
#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif
#ifndef CUDA_VERSION
#define CUDA_VERSION CUDART_VERSION
#endif

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long ssize_t;

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef unsigned short __be16;
typedef unsigned int __be32;
typedef unsigned long long __be64;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef enum CUmemLocationType_enum : int32_t {
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_LOCATION_TYPE_HOST = 2,
  CU_MEM_LOCATION_TYPE_HOST_NUMA = 3
} CUmemLocationType;

// Amazon's adapter is disabled, because its headers need further C extensions.
// If NCCL selects it, commsir_describe_comm reports that.
#define NCCL_GIN_EFA_GDA_ENABLE 0

// A C extension that NVRTC lacks.
template <typename T>
struct CommsirObject {
  using Type = T;
};
template <typename T>
struct CommsirObject<T &> {
  using Type = T;
};
template <typename T>
struct CommsirObject<T &&> {
  using Type = T;
};
template <typename T>
using CommsirTypeOf = typename CommsirObject<T>::Type;
#define typeof(object) CommsirTypeOf<decltype(object)>
// Headers that test __GNUC__ get decltype instead, which yields references.
#define ACCESS_ONCE(object) (*(volatile typeof(object) *)&(object))

#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ul
#define EIO 5
#define EBUSY 16
#define EINVAL 22
#define __builtin_memcpy memcpy

#endif // COMMSIR_LOWERING_NVVM_DEVICE_NVRTCTYPES_H
