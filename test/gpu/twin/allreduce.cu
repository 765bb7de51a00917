//===- allreduce.cu - Hand-written all-reduce kernels ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The algorithms that CommsIR generates, written by hand in CUDA: a yardstick
// for generated code and a place to try an idea in minutes. One process, one
// thread a GPU, peer access by cudaDeviceEnablePeerAccess. Results are compared
// bit for bit with sums in rank order in f32.
//
//   allreduce [--ranks N] [--min BYTES] [--max BYTES] [--only NAME] [--json
//   FILE]
//
// Every poll gives up after about two seconds, so a mistake cannot hang a GPU.
//
//===----------------------------------------------------------------------===//

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

/// One shot: every rank pushes all to all, and sums what has come.
template <int N, bool kPdl>
__global__ void __launch_bounds__(1024)
    lamportOneShot(__grid_constant__ const Params p) {
  begin<kPdl>();
  uint32_t epoch = p.epoch[blockIdx.x];
  size_t stride = (size_t)gridDim.x * blockDim.x;
  uint32_t now = epoch % 3, last = (epoch + 2) % 3;
  size_t base = now * N * p.capacity;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.vectors;
       i += stride) {
    uint4 x = canonical(p.input[p.rank][i]);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      int peer = p.rank + k < N ? p.rank + k : p.rank + k - N;
      storeRelaxed(p.slots[peer] + base + p.rank * p.capacity + i, x);
    }
  }
  uint4 *own = p.slots[p.rank];
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.vectors;
       i += stride) {
    uint4 v[N];
    const uint4 *from[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      from[k] = own + base + k * p.capacity + i;
    pollAll<N>(v, from, p.failed);
    Sum sum;
#pragma unroll
    for (int k = 0; k < N; ++k)
      add(sum, v[k], k == 0);
    p.output[p.rank][i] = pack(sum);
#pragma unroll
    for (int k = 0; k < N; ++k)
      own[last * N * p.capacity + k * p.capacity + i] = {kPoison, kPoison,
                                                         kPoison, kPoison};
  }
  end(p, epoch);
}

/// Two shots, both by pushing: rank r sums part r and pushes the sum to all.
template <int N, bool kPdl>
__global__ void __launch_bounds__(1024)
    lamportTwoShot(__grid_constant__ const Params p) {
  begin<kPdl>();
  uint32_t epoch = p.epoch[blockIdx.x];
  size_t stride = (size_t)gridDim.x * blockDim.x;
  uint32_t now = epoch % 3, last = (epoch + 2) % 3;
  size_t part = p.vectors / N, base = now * N * p.capacity;
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  uint4 *own = p.slots[p.rank], *mine = p.gather[p.rank];
  const uint4 empty = {kPoison, kPoison, kPoison, kPoison};
  for (size_t i = first; i < part; i += stride) {
    uint4 x[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      int peer = p.rank + k < N ? p.rank + k : p.rank + k - N;
      x[k] = p.input[p.rank][peer * part + i];
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      int peer = p.rank + k < N ? p.rank + k : p.rank + k - N;
      storeRelaxed(p.slots[peer] + base + p.rank * p.capacity + i,
                   canonical(x[k]));
    }
  }
  for (size_t i = first; i < part; i += stride) {
    uint4 v[N];
    const uint4 *from[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      from[k] = own + base + k * p.capacity + i;
    pollAll<N>(v, from, p.failed);
    Sum sum;
#pragma unroll
    for (int k = 0; k < N; ++k)
      add(sum, v[k], k == 0);
    uint4 total = canonical(pack(sum));
#pragma unroll
    for (int k = 0; k < N; ++k) {
      int peer = p.rank + k < N ? p.rank + k : p.rank + k - N;
      storeRelaxed(p.gather[peer] + now * N * p.capacity + p.rank * part + i,
                   total);
    }
#pragma unroll
    for (int k = 0; k < N; ++k)
      own[last * N * p.capacity + k * p.capacity + i] = empty;
  }
  for (size_t i = first; i < part; i += stride) {
    uint4 v[N];
    const uint4 *from[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      from[k] = mine + now * N * p.capacity + k * part + i;
    pollAll<N>(v, from, p.failed);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      p.output[p.rank][k * part + i] = v[k];
      mine[last * N * p.capacity + k * part + i] = empty;
    }
  }
  end(p, epoch);
}

/// Block b of every rank has come.
template <int N>
__device__ __forceinline__ void barrierBlock(const Params &p, uint32_t value) {
  __syncthreads();
  if (threadIdx.x < N) {
    storeRelease(p.flags[threadIdx.x] + blockIdx.x * kMaxRanks + p.rank, value);
    const uint32_t *cell =
        p.flags[p.rank] + blockIdx.x * kMaxRanks + threadIdx.x;
    uint32_t spins = 0;
    while (loadAcquire(cell) < value)
      if (++spins > kSpinLimit) {
        *p.failed = 1;
        break;
      }
  }
  __syncthreads();
}

/// Two shots between barriers: pull the inputs of part r, push the sum to all
/// outputs. `kUnroll` vectors a thread are in flight.
template <int N, int kUnroll, bool kPdl>
__global__ void __launch_bounds__(1024)
    barrierTwoShot(__grid_constant__ const Params p) {
  begin<kPdl>();
  uint32_t epoch = p.epoch[blockIdx.x];
  barrierBlock<N>(p, 2 * epoch + 1);
  size_t part = p.vectors / N, begin = part * p.rank;
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < part;
       i += stride * kUnroll) {
    uint4 v[kUnroll][N];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
#pragma unroll
      for (int k = 0; k < N; ++k) {
        int peer = p.rank + k < N ? p.rank + k : p.rank + k - N;
        if (i + u * stride < part)
          v[u][k] = loadRelaxed(p.input[peer] + begin + i + u * stride);
      }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (i + u * stride >= part)
        break;
      // v is rotated by rank; rank order needs a select that unrolls to moves.
      Sum sum;
#pragma unroll
      for (int r = 0; r < N; ++r) {
        uint4 x = v[u][0];
#pragma unroll
        for (int k = 1; k < N; ++k)
          if ((p.rank + k) % N == r)
            x = v[u][k];
        add(sum, x, r == 0);
      }
      uint4 total = pack(sum);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        int peer = p.rank + k < N ? p.rank + k : p.rank + k - N;
        storeRelaxed(p.output[peer] + begin + i + u * stride, total);
      }
    }
  }
  barrierBlock<N>(p, 2 * epoch + 2);
  end(p, epoch);
}

//===----------------------------------------------------------------------===//
// Host
//===----------------------------------------------------------------------===//

struct Rank {
  Params params{};
  cudaStream_t stream{};
  ncclComm_t comm{};
  uint4 *input{}, *output{};
};

using Launch = std::function<void(Rank &)>;
struct Variant {
  std::string name;
  size_t minBytes, maxBytes;
  Launch launch;
};

template <typename Kernel>
void launch(Kernel kernel, Rank &rank, int blocks, int threads, bool pdl) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = rank.stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = pdl ? 1 : 0;
  CUDA(cudaLaunchKernelEx(&config, kernel, rank.params));
}

int divCeil(size_t a, size_t b) { return (int)((a + b - 1) / b); }

template <int N>
std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (int threads : {32, 64, 128, 256, 512})
    for (bool pdl : {false, true})
      all.push_back(
          {"one_shot_lamport/t" + std::to_string(threads) + (pdl ? "/pdl" : ""),
           16, 256 << 10, [=](Rank &r) {
             int blocks = std::min(divCeil(r.params.vectors, threads), 264);
             if (pdl)
               launch(lamportOneShot<N, true>, r, blocks, threads, true);
             else
               launch(lamportOneShot<N, false>, r, blocks, threads, false);
           }});
  for (int threads : {64, 128, 256})
    all.push_back({"two_shot_lamport/t" + std::to_string(threads), 32 << 10,
                   8 << 20, [=](Rank &r) {
                     int blocks =
                         std::min(divCeil(r.params.vectors / N, threads), 264);
                     launch(lamportTwoShot<N, true>, r, blocks, threads, true);
                   }});
  for (int threads : {256, 512})
    for (int blocks : {16, 32, 64, 128})
      all.push_back(
          {"two_shot_barrier/t" + std::to_string(threads) + "/b" +
               std::to_string(blocks),
           64 << 10, (size_t)256 << 20, [=](Rank &r) {
             int want =
                 std::min(divCeil(r.params.vectors / N, threads), blocks);
             launch(barrierTwoShot<N, 2, true>, r, want, threads, true);
           }});
  all.push_back({"nccl", 16, (size_t)256 << 20, [](Rank &r) {
                   NCCL(ncclAllReduce(r.input, r.output, r.params.vectors * 8,
                                      ncclBfloat16, ncclSum, r.comm, r.stream));
                 }});
  return all;
}

uint16_t roundToBF16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return (uint16_t)((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}
float fromBF16(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
/// A reproducible input: element i of rank r.
uint16_t inputOf(int rank, size_t i) {
  uint32_t h = (uint32_t)(i * 2654435761u) ^ (uint32_t)(rank * 40503u + 977u);
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return roundToBF16((float)(h & 0xFFFF) / 32768.0f - 1.0f);
}

int main(int argc, char **argv) {
  int ranks = 0;
  CUDA(cudaGetDeviceCount(&ranks));
  size_t minBytes = 1024, maxBytes = (size_t)64 << 20;
  std::string only, json;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string flag = argv[i];
    if (flag == "--ranks")
      ranks = std::atoi(argv[i + 1]);
    else if (flag == "--min")
      minBytes = std::strtoull(argv[i + 1], nullptr, 0);
    else if (flag == "--max")
      maxBytes = std::strtoull(argv[i + 1], nullptr, 0);
    else if (flag == "--only")
      only = argv[i + 1];
    else if (flag == "--json")
      json = argv[i + 1];
  }
  std::vector<Variant> all;
  switch (ranks) {
  case 2:
    all = variants<2>();
    break;
  case 4:
    all = variants<4>();
    break;
  case 8:
    all = variants<8>();
    break;
  default:
    std::fprintf(stderr, "2, 4 or 8 GPUs are needed, here are %d\n", ranks);
    return 1;
  }

  std::vector<Rank> world(ranks);
  std::vector<ncclComm_t> comms(ranks);
  NCCL(ncclCommInitAll(comms.data(), ranks, nullptr));
  size_t capacity =
      (size_t)(8 << 20) / 16; // vectors a source can hold in a slot buffer
  std::vector<uint16_t> host(maxBytes / 2), expected(maxBytes / 2);
  std::vector<float> sums(maxBytes / 2, 0);
  for (int r = 0; r < ranks; ++r) {
    CUDA(cudaSetDevice(r));
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != r)
        CUDA(cudaDeviceEnablePeerAccess(peer, 0));
    Rank &rank = world[r];
    rank.comm = comms[r];
    CUDA(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&rank.input, maxBytes));
    CUDA(cudaMalloc(&rank.output, maxBytes));
    uint4 *slots, *gather;
    uint32_t *flags;
    CUDA(cudaMalloc(&slots, 3 * ranks * capacity * 16));
    CUDA(cudaMalloc(&gather, 3 * ranks * capacity * 16));
    CUDA(cudaMalloc(&flags, kMaxBlocks * kMaxRanks * 4));
    CUDA(cudaMalloc(&rank.params.epoch, kMaxBlocks * 4));
    CUDA(cudaMalloc(&rank.params.failed, 4));
    CUDA(cudaMemset(rank.params.epoch, 0, kMaxBlocks * 4));
    CUDA(cudaMemset(rank.params.failed, 0, 4));
    CUDA(cudaMemset(flags, 0, kMaxBlocks * kMaxRanks * 4));
    std::vector<uint32_t> poison(3 * ranks * capacity * 4, kPoison);
    CUDA(cudaMemcpy(slots, poison.data(), poison.size() * 4,
                    cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(gather, poison.data(), poison.size() * 4,
                    cudaMemcpyHostToDevice));
    for (size_t i = 0; i < host.size(); ++i) {
      host[i] = inputOf(r, i);
      sums[i] = r ? sums[i] + fromBF16(host[i]) : fromBF16(host[i]);
    }
    CUDA(cudaMemcpy(rank.input, host.data(), maxBytes, cudaMemcpyHostToDevice));
    rank.params.rank = r;
    rank.params.ranks = ranks;
    rank.params.capacity = capacity;
    for (Rank &other : world) {
      other.params.input[r] = rank.input;
      other.params.output[r] = rank.output;
      other.params.slots[r] = slots;
      other.params.gather[r] = gather;
      other.params.flags[r] = flags;
    }
  }
  for (size_t i = 0; i < sums.size(); ++i)
    expected[i] = roundToBF16(sums[i]);

  std::string lines;
  for (size_t bytes = minBytes; bytes <= maxBytes; bytes *= 4) {
    std::string best;
    double bestTime = 1e30;
    for (const Variant &variant : all) {
      if (bytes < variant.minBytes || bytes > variant.maxBytes ||
          (!only.empty() && variant.name.find(only) == std::string::npos))
        continue;
      constexpr int kCalls = 60, kReplays = 9;
      std::vector<std::vector<float>> times(ranks,
                                            std::vector<float>(kReplays));
      std::atomic<size_t> wrong{0};
      std::barrier together(ranks);
      std::vector<std::thread> threads;
      for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
          CUDA(cudaSetDevice(r));
          Rank &rank = world[r];
          rank.params.vectors = bytes / 16;
          // A change of grid starts the epochs anew; slots must be empty then.
          CUDA(cudaMemset(rank.params.epoch, 0, kMaxBlocks * 4));
          CUDA(cudaMemset((void *)rank.params.flags[r], 0,
                          kMaxBlocks * kMaxRanks * 4));
          std::vector<uint32_t> poison(capacity * 4, kPoison);
          for (int part = 0; part < 3 * ranks; ++part) {
            size_t used = std::min(poison.size() * 4, bytes);
            CUDA(cudaMemcpy(rank.params.slots[r] + part * capacity,
                            poison.data(), used, cudaMemcpyHostToDevice));
            CUDA(cudaMemcpy(rank.params.gather[r] + part * capacity,
                            poison.data(), used, cudaMemcpyHostToDevice));
          }
          CUDA(cudaMemset(rank.output, 0xFF, bytes));
          CUDA(cudaDeviceSynchronize());
          together.arrive_and_wait();
          if (variant.name ==
              "nccl") { // its first call allocates, which a capture forbids
            variant.launch(rank);
            CUDA(cudaStreamSynchronize(rank.stream));
            together.arrive_and_wait();
          }
          cudaGraph_t graph;
          cudaGraphExec_t exec;
          CUDA(cudaStreamBeginCapture(rank.stream,
                                      cudaStreamCaptureModeThreadLocal));
          for (int call = 0; call < kCalls; ++call)
            variant.launch(rank);
          CUDA(cudaStreamEndCapture(rank.stream, &graph));
          CUDA(cudaGraphInstantiate(&exec, graph, 0));
          cudaEvent_t start, stop;
          CUDA(cudaEventCreate(&start));
          CUDA(cudaEventCreate(&stop));
          for (int replay = -2; replay < kReplays; ++replay) {
            together.arrive_and_wait();
            CUDA(cudaEventRecord(start, rank.stream));
            CUDA(cudaGraphLaunch(exec, rank.stream));
            CUDA(cudaEventRecord(stop, rank.stream));
            CUDA(cudaStreamSynchronize(rank.stream));
            float ms;
            CUDA(cudaEventElapsedTime(&ms, start, stop));
            if (replay >= 0)
              times[r][replay] = ms * 1000 / kCalls;
          }
          uint32_t failed;
          CUDA(cudaMemcpy(&failed, rank.params.failed, 4,
                          cudaMemcpyDeviceToHost));
          std::vector<uint16_t> got(bytes / 2);
          CUDA(cudaMemcpy(got.data(), rank.output, bytes,
                          cudaMemcpyDeviceToHost));
          size_t bad = failed ? 1 : 0;
          if (variant.name != "nccl")
            for (size_t i = 0; i < got.size(); ++i)
              bad += got[i] != expected[i];
          wrong += bad;
          CUDA(cudaGraphExecDestroy(exec));
          CUDA(cudaGraphDestroy(graph));
          together.arrive_and_wait();
        });
      for (std::thread &thread : threads)
        thread.join();
      std::vector<float> slowest(kReplays);
      for (int i = 0; i < kReplays; ++i)
        for (int r = 0; r < ranks; ++r)
          slowest[i] = std::max(slowest[i], times[r][i]);
      std::sort(slowest.begin(), slowest.end());
      double median = slowest[kReplays / 2];
      std::printf("%10zu %-28s %9.2f us  [%.2f %.2f]%s\n", bytes,
                  variant.name.c_str(), median, slowest.front(), slowest.back(),
                  wrong ? "  WRONG" : "");
      std::fflush(stdout);
      lines += "{\"bytes\":" + std::to_string(bytes) + ",\"name\":\"" +
               variant.name + "\",\"us\":" + std::to_string(median) +
               ",\"wrong\":" + std::to_string(wrong) + "}\n";
      if (!wrong && median < bestTime && variant.name != "nccl") {
        bestTime = median;
        best = variant.name;
      }
    }
    std::printf("%10zu best: %s %.2f us\n", bytes, best.c_str(), bestTime);
  }
  if (!json.empty())
    if (FILE *file = std::fopen(json.c_str(), "w")) {
      std::fputs(lines.c_str(), file);
      std::fclose(file);
    }
  return 0;
}
