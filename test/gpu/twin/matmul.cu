//===- matmul.cu - Hand-written matmuls next to collectives ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plans of frontend/commsir/torch/matmul/overlapped.py written by hand:
// cuBLASLt multiplies blocks of rows, copy engines move them in a stream of
// their own, 4-byte copies and small kernels signal, small kernels wait and add
// up. One process, one thread a GPU, peer access. Copies from other GPUs of one
// process stall for seconds now and then, so that the sums of an all_reduce are
// sent here, while those plans fetch them. Calls are captured in graphs, as
// ours are.
//
//   matmul [--ranks N] [--rows N,...] [--width N] [--only NAME] [--json FILE]
//
// The products are [rows, width] by [width, width / ranks] behind an
// all_gather, and [rows, width / ranks] by [width / ranks, width] before a
// reduce_scatter or an all_reduce, in bf16. 16 elements of each row of a result
// are compared with sums in float64. Every wait gives up after about two
// seconds, so a mistake cannot hang a GPU.
//
//===----------------------------------------------------------------------===//

#include "Common.h"

#include <cublasLt.h>

#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#define CUBLAS(call)                                                           \
  do {                                                                         \
    cublasStatus_t e = (call);                                                 \
    if (e != CUBLAS_STATUS_SUCCESS) {                                          \
      std::fprintf(stderr, "%s:%d: %s: status %d\n", __FILE__, __LINE__,       \
                   #call, (int)e);                                             \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

using BF16 = __nv_bfloat16;

constexpr int kMostBlocks = 4;
/// Flags of blocks in which rows arrive, of blocks whose sums are ready, and of
/// the meeting at the begin of a call, by the rank that signals.
constexpr int kArrived = 0, kReady = kMostBlocks, kMeeting = 2 * kMostBlocks;
constexpr int kFlags = (2 * kMostBlocks + 1) * kMaxRanks;
constexpr size_t kWorkspace = 32 << 20;
constexpr int kAlgorithms = 8;
constexpr int kSamples = 16;
/// Calls of a graph, as test/gpu/matmul.py has them.
constexpr int kCallsAtOnce = 10;
/// The seed of the first rank's weight; that of its rows is 0.
constexpr int kWeights = 100;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

struct Peers {
  uint32_t *flags[kMaxRanks];
};

/// Signals all other ranks that this one has come to `slot`.
__global__ void signalOthers(Peers peers, int slot, int rank, int ranks) {
  int peer = threadIdx.x;
  if (peer < ranks && peer != rank)
    storeRelease(peers.flags[peer] + slot * kMaxRanks + rank, 1);
}

/// Waits for the signals of ranks [first, first + count), modulo all, and takes
/// them back. Of the first wait that gives up, `failed` gets the slot plus one;
/// later ones do not wait.
__global__ void takeSignals(uint32_t *flags, int slot, int first, int count,
                            int ranks, uint32_t *failed) {
  if (threadIdx.x >= count)
    return;
  uint32_t *flag = flags + slot * kMaxRanks + (first + threadIdx.x) % ranks;
  uint32_t spins = 0;
  while (loadAcquire(flag) == 0)
    if (++spins > kSpinLimit || *(volatile uint32_t *)failed) {
      atomicCAS(failed, 0, slot + 1);
      return;
    }
  *flag = 0;
}

/// Adds up `parts` arrays of `vectors` vectors, one behind the other, in f32.
__global__ void __launch_bounds__(512)
    addParts(const uint4 *parts, uint4 *total, size_t vectors, int count) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < vectors;
       i += stride) {
    Sum sum;
    for (int part = 0; part < count; ++part)
      add(sum, parts[part * vectors + i], part == 0);
    total[i] = pack(sum);
  }
}

/// Element `i` of an array: in [-1, 1), the same on every GPU.
__device__ __forceinline__ BF16 elementOf(size_t i, int seed) {
  uint32_t h = (uint32_t)(i * 2654435761u) ^ (uint32_t)(seed * 40503u + 977u);
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return __float2bfloat16((float)(h & 0xFFFF) / 32768.0f - 1.0f);
}

__global__ void fill(BF16 *x, size_t count, int seed) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += stride)
    x[i] = elementOf(i, seed);
}

/// What a result is compared with: row `i` of it is the sum of the products of
/// row `first + i` of each of `count` pairs of arrays, by their seeds. Arrays
/// of other GPUs are not read: columns of them would take minutes.
struct Exact {
  int a[kMaxRanks], b[kMaxRanks];
  int count;
  size_t first, k, n;
};

/// The column that sample `s` of a row is in.
__device__ __forceinline__ size_t columnOf(size_t row, int s, size_t n) {
  size_t part = n / kSamples;
  return s * part + (row * 2654435761u + s * 40503u) % part;
}

/// A warp an element. Counts those that are off, and those that are no numbers.
__global__ void compare(Exact exact, const BF16 *got, size_t rows, float bound,
                        unsigned long long *wrong) {
  size_t warp = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  size_t row = warp / kSamples;
  if (row >= rows)
    return;
  size_t column = columnOf(row, warp % kSamples, exact.n);
  double sum = 0;
  for (int r = 0; r < exact.count; ++r)
    for (size_t i = threadIdx.x % 32; i < exact.k; i += 32)
      sum +=
          (double)__bfloat162float(
              elementOf((exact.first + row) * exact.k + i, exact.a[r])) *
          (double)__bfloat162float(elementOf(i * exact.n + column, exact.b[r]));
  for (int lane = 16; lane; lane /= 2)
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, lane);
  double off =
      fabs((double)__bfloat162float(got[row * exact.n + column]) - sum);
  if (threadIdx.x % 32 == 0 && !(off <= bound))
    atomicAdd(wrong, 1ULL);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// cuBLASLt's matmuls of row-major matrices in one stream: the fastest of those
/// that its heuristics offer, found at the first call of a shape.
class Products {
public:
  explicit Products(cudaStream_t stream) : stream(stream) {
    CUBLAS(cublasLtCreate(&handle));
    CUDA(cudaMalloc(&workspace, kWorkspace));
    CUBLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    size_t bytes = kWorkspace;
    CUBLAS(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
        sizeof bytes));
  }

  /// out = a b + addend; [rows, k] by [k, n]. Without an addend: a b.
  void multiply(const BF16 *a, const BF16 *b, const BF16 *addend, BF16 *out,
                size_t rows, size_t n, size_t k) {
    Plan &plan = planOf(a, b, addend, out, {rows, n, k, addend != nullptr});
    run(plan, plan.algorithm, a, b, addend, out);
  }

private:
  using Shape = std::tuple<size_t, size_t, size_t, bool>;
  struct Plan {
    cublasLtMatrixLayout_t weight{}, rows{}, result{};
    cublasLtMatmulAlgo_t algorithm{};
  };

  cublasStatus_t tryRun(const Plan &plan, const cublasLtMatmulAlgo_t &algorithm,
                        const BF16 *a, const BF16 *b, const BF16 *addend,
                        BF16 *out) {
    // Row-major matrices are transposed column-major ones: out' = b' a'.
    float one = 1, beta = addend ? 1 : 0;
    return cublasLtMatmul(handle, desc, &one, b, plan.weight, a, plan.rows,
                          &beta, addend ? addend : out, plan.result, out,
                          plan.result, &algorithm, workspace, kWorkspace,
                          stream);
  }

  void run(const Plan &plan, const cublasLtMatmulAlgo_t &algorithm,
           const BF16 *a, const BF16 *b, const BF16 *addend, BF16 *out) {
    CUBLAS(tryRun(plan, algorithm, a, b, addend, out));
  }

  static cublasLtMatrixLayout_t layout(size_t rows, size_t columns) {
    cublasLtMatrixLayout_t made;
    CUBLAS(
        cublasLtMatrixLayoutCreate(&made, CUDA_R_16BF, columns, rows, columns));
    return made;
  }

  Plan &planOf(const BF16 *a, const BF16 *b, const BF16 *addend, BF16 *out,
               Shape shape) {
    auto [it, isNew] = plans.try_emplace(shape);
    if (isNew)
      prepare(it->second, a, b, addend, out, shape);
    return it->second;
  }

  void prepare(Plan &plan, const BF16 *a, const BF16 *b, const BF16 *addend,
               BF16 *out, Shape shape) {
    auto [rows, n, k, adds] = shape;
    plan.weight = layout(k, n);
    plan.rows = layout(rows, k);
    plan.result = layout(rows, n);
    cublasLtMatmulHeuristicResult_t found[kAlgorithms];
    int count = 0;
    CUBLAS(cublasLtMatmulAlgoGetHeuristic(handle, desc, plan.weight, plan.rows,
                                          plan.result, plan.result, preference,
                                          kAlgorithms, found, &count));
    float best = 1e30f;
    for (int i = 0; i < count; ++i) {
      if (tryRun(plan, found[i].algo, a, b, addend, out) !=
          CUBLAS_STATUS_SUCCESS)
        continue;
      float ms = time([&] { run(plan, found[i].algo, a, b, addend, out); });
      if (ms < best) {
        best = ms;
        plan.algorithm = found[i].algo;
      }
    }
    if (best == 1e30f) {
      std::fprintf(stderr, "cuBLASLt has no matmul of %zu x %zu by %zu x %zu\n",
                   rows, k, k, n);
      std::exit(1);
    }
  }

  template <typename Call>
  float time(Call call) {
    constexpr int kTimes = 5;
    cudaEvent_t start, stop;
    CUDA(cudaEventCreate(&start));
    CUDA(cudaEventCreate(&stop));
    CUDA(cudaEventRecord(start, stream));
    for (int i = 0; i < kTimes; ++i)
      call();
    CUDA(cudaEventRecord(stop, stream));
    CUDA(cudaStreamSynchronize(stream));
    float ms = 0;
    CUDA(cudaEventElapsedTime(&ms, start, stop));
    CUDA(cudaEventDestroy(start));
    CUDA(cudaEventDestroy(stop));
    return ms;
  }

  cudaStream_t stream;
  cublasLtHandle_t handle{};
  cublasLtMatmulDesc_t desc{};
  cublasLtMatmulPreference_t preference{};
  void *workspace{};
  std::map<Shape, Plan> plans;
};

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

struct Rank {
  int rank{}, ranks{};
  cudaStream_t main{}, sends{};
  cudaEvent_t forked{}, joined{};
  std::unique_ptr<Products> products;
  /// Every rank's copy of the memory that peers write to or read from.
  BF16 *arrive[kMaxRanks]{}, *results[kMaxRanks]{};
  Peers peers{};
  uint32_t *one{}, *failed{};
  /// This rank's rows and weight of either kind, results and parts of them.
  BF16 *rows{}, *weight{}, *out{}, *made{};
};

struct Sizes {
  size_t rows, n, k;
};

/// The copies and signals of one call, in parallel with the matmuls of `main`.
class Call {
public:
  explicit Call(Rank &rank) : rank(rank) {
    signalOthers<<<1, 32, 0, rank.main>>>(rank.peers, kMeeting, rank.rank,
                                          rank.ranks);
    takeOthers(kMeeting);
  }

  /// To whom this rank sends at a step, and from whom it gets something.
  int next(int step) const { return (rank.rank + step) % rank.ranks; }
  int before(int step) const {
    return (rank.rank + rank.ranks - step) % rank.ranks;
  }

  /// Copies `count` elements to a place at rank `to`, and signals it.
  void put(int to, BF16 *there, const BF16 *from, size_t count, int slot) {
    fork(rank.sends);
    CUDA(cudaMemcpyAsync(there, from, count * sizeof(BF16),
                         cudaMemcpyDeviceToDevice, rank.sends));
    uint32_t *flag = rank.peers.flags[to] + slot * kMaxRanks + rank.rank;
    CUDA(cudaMemcpyAsync(flag, rank.one, sizeof(uint32_t),
                         cudaMemcpyDeviceToDevice, rank.sends));
  }

  void take(int from, int slot) {
    takeSignals<<<1, 32, 0, rank.main>>>(rank.peers.flags[rank.rank], slot,
                                         from, 1, rank.ranks, rank.failed);
  }
  void takeOthers(int slot) {
    takeSignals<<<1, 32, 0, rank.main>>>(rank.peers.flags[rank.rank], slot,
                                         rank.rank + 1, rank.ranks - 1,
                                         rank.ranks, rank.failed);
  }

  void end() { join(rank.sends); }

private:
  void fork(cudaStream_t to) {
    CUDA(cudaEventRecord(rank.forked, rank.main));
    CUDA(cudaStreamWaitEvent(to, rank.forked, 0));
  }
  void join(cudaStream_t from) {
    CUDA(cudaEventRecord(rank.joined, from));
    CUDA(cudaStreamWaitEvent(rank.main, rank.joined, 0));
  }

  Rank &rank;
};

//===----------------------------------------------------------------------===//
// The three forms
//===----------------------------------------------------------------------===//

/// `rows` are those of all ranks.
static void allGatherMatmul(Rank &rank, Sizes sizes) {
  size_t rows = sizes.rows / rank.ranks, size = rows * sizes.k;
  Call call(rank);
  for (int step = 1; step < rank.ranks; ++step) {
    int to = call.next(step);
    call.put(to, rank.arrive[to] + rank.rank * size, rank.rows, size, kArrived);
  }
  auto multiply = [&](const BF16 *given, int source) {
    rank.products->multiply(given, rank.weight, nullptr,
                            rank.out + source * rows * sizes.n, rows, sizes.n,
                            sizes.k);
  };
  multiply(rank.rows, rank.rank);
  for (int step = 1; step < rank.ranks; ++step) {
    int source = call.before(step);
    call.take(source, kArrived);
    multiply(rank.arrive[rank.rank] + source * size, source);
  }
  call.end();
}

/// What ranks send of blocks of rows: each part to the rank that adds it up.
class Partials {
public:
  Partials(Rank &rank, Call &call, Sizes sizes, size_t rows)
      : rank(rank), call(call), sizes(sizes), rows(rows), size(rows * sizes.n) {
  }

  /// The products of all parts of a block but this rank's; `first(r)` is the
  /// first row of rank r's part.
  template <typename First>
  void send(int block, First first) {
    for (int step = 1; step < rank.ranks; ++step) {
      int to = call.next(step);
      size_t place = (block * (rank.ranks - 1) + step - 1) * size;
      rank.products->multiply(rank.rows + first(to) * sizes.k, rank.weight,
                              nullptr, rank.made + place, rows, sizes.n,
                              sizes.k);
      call.put(to, rank.arrive[to] + place, rank.made + place, size,
               kArrived + block);
    }
  }

  /// The sum of all ranks' parts of a block, of which this rank's begins at row
  /// `first`.
  void total(int block, size_t first, BF16 *out) {
    call.takeOthers(kArrived + block);
    const BF16 *others =
        rank.arrive[rank.rank] + block * (rank.ranks - 1) * size;
    if (rank.ranks > 2) {
      addParts<<<128, 512, 0, rank.main>>>((const uint4 *)others, (uint4 *)out,
                                           size / 8, rank.ranks - 1);
      others = out;
    }
    rank.products->multiply(rank.rows + first * sizes.k, rank.weight, others,
                            out, rows, sizes.n, sizes.k);
  }

private:
  Rank &rank;
  Call &call;
  Sizes sizes;
  size_t rows, size;
};

static void matmulReduceScatter(Rank &rank, Sizes sizes, int blocks) {
  size_t rows = sizes.rows / (rank.ranks * blocks);
  Call call(rank);
  Partials partials(rank, call, sizes, rows);
  for (int block = 0; block < blocks; ++block)
    partials.send(block, [&](int r) { return (r * blocks + block) * rows; });
  for (int block = 0; block < blocks; ++block)
    partials.total(block, (rank.rank * blocks + block) * rows,
                   rank.out + block * rows * sizes.n);
  call.end();
}

static void matmulAllReduce(Rank &rank, Sizes sizes, int blocks) {
  size_t rows = sizes.rows / (rank.ranks * blocks), size = rows * sizes.n;
  Call call(rank);
  Partials partials(rank, call, sizes, rows);
  // The products of a block, and the sum of the one before, which goes to all.
  for (int block = 0; block <= blocks; ++block) {
    if (block < blocks)
      partials.send(block,
                    [&](int r) { return (block * rank.ranks + r) * rows; });
    if (block == 0)
      continue;
    size_t row = ((block - 1) * rank.ranks + rank.rank) * rows;
    BF16 *sum = rank.out + row * sizes.n;
    partials.total(block - 1, row, sum);
    for (int step = 1; step < rank.ranks; ++step) {
      int to = call.next(step);
      call.put(to, rank.results[to] + row * sizes.n, sum, size,
               kReady + block - 1);
    }
  }
  for (int block = 0; block < blocks; ++block)
    call.takeOthers(kReady + block);
  call.end();
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

struct Variant {
  std::string op, name;
  /// Of the whole product on one rank.
  Sizes sizes;
  std::function<void(Rank &)> launch;
};

static std::vector<Variant> variantsOf(size_t rows, size_t width, int ranks) {
  Sizes gathered{rows, width / ranks, width},
      summed{rows, width, width / ranks};
  std::vector<Variant> all;
  all.push_back({"all_gather", "all_gather", gathered,
                 [=](Rank &rank) { allGatherMatmul(rank, gathered); }});
  for (int blocks : {1, 2, 4}) {
    if (rows % (ranks * blocks))
      continue;
    std::string name = "/b" + std::to_string(blocks);
    all.push_back(
        {"reduce_scatter", "reduce_scatter" + name, summed,
         [=](Rank &rank) { matmulReduceScatter(rank, summed, blocks); }});
    all.push_back({"all_reduce", "all_reduce" + name, summed,
                   [=](Rank &rank) { matmulAllReduce(rank, summed, blocks); }});
  }
  return all;
}

/// Of a result that is right: what its samples are compared with.
static Exact exactOf(const Rank &rank, const Variant &variant, size_t part) {
  bool gathers = variant.op == "all_gather";
  Exact exact{
      {}, {}, gathers ? 1 : rank.ranks, 0, variant.sizes.k, variant.sizes.n};
  for (int r = 0; r < exact.count; ++r) {
    exact.a[r] = gathers ? (int)part : r;
    exact.b[r] = kWeights + (gathers ? rank.rank : r);
  }
  if (variant.op == "reduce_scatter")
    exact.first = rank.rank * (variant.sizes.rows / rank.ranks);
  return exact;
}

/// How many samples of this rank's result are wrong. Partial sums are rounded
/// on each rank, and once more where they are added up.
static size_t countWrong(const Rank &rank, const Variant &variant) {
  size_t rows = variant.sizes.rows, parts = 1;
  if (variant.op == "all_gather")
    parts = rank.ranks;
  if (variant.op != "all_reduce")
    rows /= rank.ranks;
  // Sums of `terms` products of numbers in [-1, 1): five standard deviations.
  size_t terms =
      variant.sizes.k * (variant.op == "all_gather" ? 1 : rank.ranks);
  float most = 5 * std::sqrt((float)terms) / 3;
  float bound = 2.0f / 256 * rank.ranks * most;
  unsigned long long *count, wrong;
  CUDA(cudaMalloc(&count, sizeof wrong));
  CUDA(cudaMemset(count, 0, sizeof wrong));
  for (size_t part = 0; part < parts; ++part)
    compare<<<(unsigned)((rows * kSamples + 7) / 8), 256>>>(
        exactOf(rank, variant, part), rank.out + part * rows * variant.sizes.n,
        rows, bound, count);
  CUDA(cudaMemcpy(&wrong, count, sizeof wrong, cudaMemcpyDeviceToHost));
  CUDA(cudaFree(count));
  uint32_t failed;
  CUDA(cudaMemcpy(&failed, rank.failed, 4, cudaMemcpyDeviceToHost));
  if (failed)
    std::fprintf(stderr,
                 "%s: rank %d gave up waiting for signals of slot %u (from %d: "
                 "blocks arrived, from %d: sums ready, %d: begin)\n",
                 variant.name.c_str(), rank.rank, failed - 1, kArrived, kReady,
                 kMeeting);
  return wrong + failed;
}

/// Microseconds a call by the slowest rank, sorted; `wrong`: elements, or waits
/// that gave up.
static std::vector<float> measure(std::vector<Rank> &world,
                                  const Variant &variant,
                                  std::atomic<size_t> &wrong) {
  int ranks = (int)world.size();
  std::vector<std::vector<float>> times(ranks);
  std::barrier together(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      CUDA(cudaSetDevice(r));
      Rank &rank = world[r];
      size_t rows =
          variant.sizes.rows / (variant.op == "all_gather" ? ranks : 1);
      fill<<<1024, 256, 0, rank.main>>>(rank.rows, rows * variant.sizes.k, r);
      fill<<<1024, 256, 0, rank.main>>>(
          rank.weight, variant.sizes.k * variant.sizes.n, kWeights + r);
      CUDA(cudaMemsetAsync(
          rank.out, 0xFF, variant.sizes.rows * variant.sizes.n * 2, rank.main));
      CUDA(cudaStreamSynchronize(rank.main));
      together.arrive_and_wait();
      // The first call loads and chooses matmuls, which a capture forbids, and
      // which may take longer than others wait.
      variant.launch(rank);
      CUDA(cudaDeviceSynchronize());
      together.arrive_and_wait();
      CUDA(cudaMemset(rank.peers.flags[r], 0, kFlags * 4));
      CUDA(cudaMemset(rank.failed, 0, 4));
      CUDA(
          cudaMemset(rank.out, 0xFF, variant.sizes.rows * variant.sizes.n * 2));
      CUDA(cudaDeviceSynchronize());
      together.arrive_and_wait();
      times[r] = timeReplays(
          rank.main, together, [&] { variant.launch(rank); }, kCallsAtOnce);
      CUDA(cudaDeviceSynchronize());
      together.arrive_and_wait();
      wrong += countWrong(rank, variant);
      together.arrive_and_wait();
    });
  for (std::thread &thread : threads)
    thread.join();
  return getSlowest(times);
}

static void setUp(std::vector<Rank> &world, size_t rows, size_t width) {
  int ranks = (int)world.size();
  // [rows, width] is the largest of all that is moved or made.
  size_t most = rows * width;
  for (int r = 0; r < ranks; ++r) {
    CUDA(cudaSetDevice(r));
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != r)
        CUDA(cudaDeviceEnablePeerAccess(peer, 0));
    Rank &rank = world[r];
    rank.rank = r;
    rank.ranks = ranks;
    int least, greatest;
    CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA(cudaStreamCreateWithFlags(&rank.main, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithPriority(&rank.sends, cudaStreamNonBlocking,
                                      greatest));
    for (cudaEvent_t *event : {&rank.forked, &rank.joined})
      CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    rank.products = std::make_unique<Products>(rank.main);
    BF16 *arrive;
    for (BF16 **memory : {&arrive, &rank.rows, &rank.out, &rank.made})
      CUDA(cudaMalloc(memory, most * sizeof(BF16)));
    CUDA(cudaMalloc(&rank.weight, width * width / ranks * sizeof(BF16)));
    uint32_t *flags, one = 1;
    CUDA(cudaMalloc(&flags, kFlags * 4));
    CUDA(cudaMalloc(&rank.one, 4));
    CUDA(cudaMalloc(&rank.failed, 4));
    CUDA(cudaMemset(flags, 0, kFlags * 4));
    CUDA(cudaMemset(rank.failed, 0, 4));
    CUDA(cudaMemcpy(rank.one, &one, 4, cudaMemcpyHostToDevice));
    for (Rank &other : world) {
      other.arrive[r] = arrive;
      other.results[r] = rank.out;
      other.peers.flags[r] = flags;
    }
  }
}

int main(int argc, char **argv) {
  int ranks = 0;
  CUDA(cudaGetDeviceCount(&ranks));
  size_t width = 8192;
  std::vector<size_t> rows{8192};
  std::string only, json;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string flag = argv[i];
    if (flag == "--ranks")
      ranks = std::atoi(argv[i + 1]);
    else if (flag == "--rows") {
      rows.clear();
      for (char *end = argv[i + 1]; *end; end += *end == ',')
        rows.push_back(std::strtoull(end, &end, 0));
    } else if (flag == "--width")
      width = std::strtoull(argv[i + 1], nullptr, 0);
    else if (flag == "--only")
      only = argv[i + 1];
    else if (flag == "--json")
      json = argv[i + 1];
  }
  if (ranks < 2 || ranks > kMaxRanks || width % (ranks * 128)) {
    std::fprintf(stderr,
                 "2 to %d GPUs are needed, here are %d; --width is a multiple "
                 "of 128 for each\n",
                 kMaxRanks, ranks);
    return 1;
  }
  for (size_t count : rows)
    if (count == 0 || count % (ranks * 16)) {
      std::fprintf(stderr, "--rows: %zu is no multiple of %d\n", count,
                   ranks * 16);
      return 1;
    }
  std::vector<Rank> world(ranks);
  setUp(world, *std::max_element(rows.begin(), rows.end()), width);
  std::string lines;
  bool isRight = true;
  for (size_t count : rows)
    for (const Variant &variant : variantsOf(count, width, ranks)) {
      if (!only.empty() && variant.name.find(only) == std::string::npos)
        continue;
      std::atomic<size_t> wrong{0};
      std::vector<float> slowest = measure(world, variant, wrong);
      double median = slowest[kReplays / 2];
      std::printf("%8zu %-20s %9.2f us  [%.2f %.2f]%s\n", count,
                  variant.name.c_str(), median, slowest.front(), slowest.back(),
                  wrong ? "  WRONG" : "");
      std::fflush(stdout);
      isRight = isRight && !wrong;
      lines += "{\"rows\":" + std::to_string(count) + ",\"op\":\"" +
               variant.op + "\",\"name\":\"" + variant.name +
               "\",\"us\":" + std::to_string(median) +
               ",\"wrong\":" + std::to_string(wrong) + "}\n";
    }
  if (!json.empty())
    if (FILE *file = std::fopen(json.c_str(), "w")) {
      std::fputs(lines.c_str(), file);
      std::fclose(file);
    }
  return isRight ? 0 : 1;
}
