//===- Common.h - Code that the hand-written kernels share ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_TWIN_COMMON_H
#define COMMSIR_TEST_GPU_TWIN_COMMON_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#define CUDA(call)                                                             \
  do {                                                                         \
    cudaError_t e = (call);                                                    \
    if (e != cudaSuccess) {                                                    \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,       \
                   cudaGetErrorString(e));                                     \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)
#define NCCL(call)                                                             \
  do {                                                                         \
    ncclResult_t e = (call);                                                   \
    if (e != ncclSuccess) {                                                    \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,       \
                   ncclGetErrorString(e));                                     \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

constexpr int kMaxRanks = 8;
constexpr int kMaxBlocks = 1024;
constexpr uint32_t kPoison = 0xFFFAFFFAu;
/// Polls before a kernel gives up: about two seconds.
constexpr uint32_t kSpinLimit = 4000000;

struct Params {
  int rank, ranks;
  size_t vectors;                // 16-byte vectors of the message
  const uint4 *input[kMaxRanks]; // every rank's input
  uint4 *output[kMaxRanks];      // every rank's output
  uint4 *slots[kMaxRanks];       // Lamport memory: [3][ranks][capacity]
  uint4 *gather[kMaxRanks]; // Lamport memory of the second shot: [3][capacity]
  size_t capacity;          // vectors of one source
  uint32_t *flags[kMaxRanks]; // barrier cells: [block][rank]
  uint32_t *epoch;            // own: [block]
  uint32_t *failed;           // own: set when a poll gave up
};

__device__ __forceinline__ uint4 loadRelaxed(const uint4 *p) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
__device__ __forceinline__ void storeRelaxed(uint4 *p, uint4 v) {
  asm volatile("st.relaxed.sys.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(p),
               "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ __forceinline__ uint32_t loadAcquire(const uint32_t *p) {
  uint32_t v;
  asm volatile("ld.acquire.sys.global.b32 %0, [%1];"
               : "=r"(v)
               : "l"(p)
               : "memory");
  return v;
}
__device__ __forceinline__ void storeRelease(uint32_t *p, uint32_t v) {
  asm volatile("st.release.sys.global.b32 [%0], %1;" ::"l"(p), "r"(v)
               : "memory");
}

__device__ __forceinline__ bool isPoison(uint4 v) {
  return v.x == kPoison | v.y == kPoison | v.z == kPoison | v.w == kPoison;
}
/// One multiply-add makes both NaN of a pair canonical and keeps every other
/// bit.
__device__ __forceinline__ uint32_t canonical(uint32_t pair) {
  uint32_t r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(r)
      : "r"(pair), "r"(0x3F803F80u), "r"(0x80008000u));
  return r;
}
__device__ __forceinline__ uint4 canonical(uint4 v) {
  return {canonical(v.x), canonical(v.y), canonical(v.z), canonical(v.w)};
}

struct Sum {
  float v[8];
};
__device__ __forceinline__ void add(Sum &sum, uint4 v, bool first) {
  uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float lo = __uint_as_float(w[i] << 16),
          hi = __uint_as_float(w[i] & 0xFFFF0000u);
    sum.v[2 * i] = first ? lo : sum.v[2 * i] + lo;
    sum.v[2 * i + 1] = first ? hi : sum.v[2 * i + 1] + hi;
  }
}
__device__ __forceinline__ uint4 pack(const Sum &sum) {
  uint32_t w[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
        : "=r"(w[i])
        : "f"(sum.v[2 * i + 1]), "f"(sum.v[2 * i]));
  return {w[0], w[1], w[2], w[3]};
}

/// Loads one vector from each of N places and waits until none is poison.
template <int N>
__device__ __forceinline__ void
pollAll(uint4 (&v)[N], const uint4 *const (&p)[N], uint32_t *failed) {
  for (uint32_t spins = 0; spins < kSpinLimit; ++spins) {
#pragma unroll
    for (int i = 0; i < N; ++i)
      v[i] = loadRelaxed(p[i]);
    bool poison = false;
#pragma unroll
    for (int i = 0; i < N; ++i)
      poison |= isPoison(v[i]);
    if (!poison)
      return;
  }
  *failed = 1;
}

template <bool kPdl>
__device__ __forceinline__ void begin() {
  if (kPdl) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
  }
}

/// Ends a launch: the next one sees the next epoch.
__device__ __forceinline__ void end(const Params &p, uint32_t epoch) {
  __syncthreads();
  if (threadIdx.x == 0)
    p.epoch[blockIdx.x] = epoch + 1;
}

//===----------------------------------------------------------------------===//
// Host
//===----------------------------------------------------------------------===//

inline uint16_t roundToBF16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return (uint16_t)((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}
inline float fromBF16(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
/// A reproducible input: element i of rank r.
inline uint16_t inputOf(int rank, size_t i) {
  uint32_t h = (uint32_t)(i * 2654435761u) ^ (uint32_t)(rank * 40503u + 977u);
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return roundToBF16((float)(h & 0xFFFF) / 32768.0f - 1.0f);
}

/// Calls captured in a graph, and timed replays of it.
constexpr int kCalls = 60, kReplays = 9;

/// Captures `calls` calls of `launch` on `stream` and replays them in step with
/// the other ranks; microseconds a call, of each replay but the first two.
template <typename LaunchOnce>
std::vector<float> timeReplays(cudaStream_t stream, std::barrier<> &together,
                               LaunchOnce launch, int calls = kCalls) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int call = 0; call < calls; ++call)
    launch();
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t start, stop;
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&stop));
  std::vector<float> times;
  for (int replay = -2; replay < kReplays; ++replay) {
    together.arrive_and_wait();
    CUDA(cudaEventRecord(start, stream));
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaEventRecord(stop, stream));
    CUDA(cudaStreamSynchronize(stream));
    float ms;
    CUDA(cudaEventElapsedTime(&ms, start, stop));
    if (replay >= 0)
      times.push_back(ms * 1000 / calls);
  }
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  return times;
}

/// The slowest rank of each replay, sorted.
inline std::vector<float>
getSlowest(const std::vector<std::vector<float>> &times) {
  std::vector<float> slowest(kReplays);
  for (const std::vector<float> &ofRank : times)
    for (int i = 0; i < kReplays; ++i)
      slowest[i] = std::max(slowest[i], ofRank[i]);
  std::sort(slowest.begin(), slowest.end());
  return slowest;
}

#endif // COMMSIR_TEST_GPU_TWIN_COMMON_H
