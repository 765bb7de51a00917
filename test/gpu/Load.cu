//===- Load.cu - Data, checks and other work on a GPU -----------*- CUDA
//-*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that gpu-processes launches in addition to collectives: data that
// differ for every rank, launch and element, a check of the collectives'
// results, delays, and a matrix product. Compiled without any header of CUDA.
//
//===----------------------------------------------------------------------===//

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

// As gpu-processes numbers them.
enum Type { F32, F16, BF16, I32 };
enum Op { Sum, Max, Gather, Scatter, Exchange, Broadcast };

static __device__ u32 self() {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}
static __device__ u32 threads() {
  return __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
}

/// From 0 to 7: sums over ranks are exact in every type.
static __device__ u32 value(u32 rank, u32 launch, u32 i) {
  u32 x = (rank + 1) * 0x9E3779B1u ^ launch * 0x85EBCA77u ^ i * 0xC2B2AE3Du;
  x ^= x >> 15;
  x *= 0x2C1B3C6Du;
  x ^= x >> 13;
  return x & 7;
}

static __device__ u32 bitsOf(float x) { return __builtin_bit_cast(u32, x); }

static __device__ void store(void *data, int type, u32 i, u32 number) {
  if (type == F32)
    static_cast<float *>(data)[i] = float(number);
  else if (type == F16)
    static_cast<_Float16 *>(data)[i] = _Float16(float(number));
  else if (type == BF16) // Exact: the lower half is zero.
    static_cast<u16 *>(data)[i] = u16(bitsOf(float(number)) >> 16);
  else
    static_cast<u32 *>(data)[i] = number;
}

static __device__ bool holds(const void *data, int type, u32 i, u32 number) {
  if (type == F32)
    return static_cast<const u32 *>(data)[i] == bitsOf(float(number));
  if (type == F16)
    return static_cast<const u16 *>(data)[i] ==
           __builtin_bit_cast(u16, _Float16(float(number)));
  if (type == BF16)
    return static_cast<const u16 *>(data)[i] == bitsOf(float(number)) >> 16;
  return static_cast<const u32 *>(data)[i] == number;
}

/// Fills x, and spoils y.
extern "C" __global__ void fill(void *x, u32 xCount, void *y, u32 yCount,
                                int type, u32 rank, u32 launch) {
  for (u32 i = self(); i < xCount; i += threads())
    store(x, type, i, value(rank, launch, i));
  for (u32 i = self(); i < yCount; i += threads())
    store(y, type, i, 255);
}

/// Element `i` of what rank `rank` has to get of arrays of `count` elements a
/// part.
static __device__ u32 wanted(int op, u32 count, u32 rank, u32 ranks, u32 launch,
                             u32 i) {
  if (op == Gather)
    return value(i / count, launch, i % count);
  if (op == Exchange)
    return value(i / count, launch, rank * count + i % count);
  if (op == Broadcast)
    return value(ranks - 1, launch, i);
  u32 at = op == Scatter ? rank * count + i : i, result = 0;
  for (u32 peer = 0; peer < ranks; ++peer) {
    u32 one = value(peer, launch, at);
    result = op != Max ? result + one : one > result ? one : result;
  }
  return result;
}

/// wrong: elements that are not as wanted, and the first launch that has any,
/// plus 1, and an element of it.
extern "C" __global__ void check(const void *y, u32 yCount, int type, int op,
                                 u32 count, u32 rank, u32 ranks, u32 launch,
                                 u32 *wrong) {
  for (u32 i = self(); i < yCount; i += threads())
    if (!holds(y, type, i, wanted(op, count, rank, ranks, launch, i))) {
      __atomic_fetch_add(&wrong[0], 1u, __ATOMIC_RELAXED);
      u32 none = 0;
      if (__atomic_compare_exchange_n(&wrong[1], &none, launch + 1, false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        wrong[2] = i;
    }
}

/// Whoever comes after this in a stream is late.
extern "C" __global__ void delay(u64 nanoseconds) {
  u64 start = __nvvm_read_ptx_sreg_globaltimer();
  while (__nvvm_read_ptx_sreg_globaltimer() - start < nanoseconds)
    ;
}

/// c = a * b, of n by n, by blocks of 256 threads for 16 by 16 elements; n is a
/// multiple of 16.
extern "C" __global__ void gemm(const float *a, const float *b, float *c,
                                u32 n) {
  __shared__ float left[16][16], right[16][16];
  u32 tile = n / 16, block = __nvvm_read_ptx_sreg_ctaid_x();
  u32 thread = __nvvm_read_ptx_sreg_tid_x();
  u32 x = thread % 16, y = thread / 16;
  u32 column = block % tile * 16 + x, row = block / tile * 16 + y;
  float sum = 0;
  for (u32 k = 0; k < n; k += 16) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (u32 i = 0; i < 16; ++i)
      sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
