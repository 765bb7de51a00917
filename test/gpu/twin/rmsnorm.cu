//===- rmsnorm.cu - Hand-written all-reduce + residual + RMSNorm ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is spread over a cluster of CTAs; its sum of squares meets in
// distributed shared memory. Checked against float64 on the host.
//
// With fp8 each row of y is e4m3 with a scale: x * w is quantized and the scale
// alone is normalized, so that the sum of squares and the greatest |x * w| meet
// in one exchange.
//
//   rmsnorm [--ranks N] [--hidden H] [--fp8 1] [--json FILE]
//
//===----------------------------------------------------------------------===//

#include "Common.h"

#include <cmath>

struct Fused {
  Params p;
  const uint4 *residual, *weight;
  uint4 *y, *sum;
  uint2 *y8;
  float *scale;
  int rows, rowVectors;
};

/// What the threads of a row exchange.
template <bool Fp8>
struct Part {
  float squares;
};
template <>
struct alignas(8) Part<true> {
  float squares, largest;
};
template <bool Fp8>
__device__ __forceinline__ Part<Fp8> combine(Part<Fp8> a, Part<Fp8> b) {
  a.squares += b.squares;
  if constexpr (Fp8)
    a.largest = fmaxf(a.largest, b.largest);
  return a;
}
template <bool Fp8>
__device__ __forceinline__ Part<Fp8> shuffle(Part<Fp8> a, int distance) {
  a.squares = __shfl_xor_sync(~0u, a.squares, distance);
  if constexpr (Fp8)
    a.largest = __shfl_xor_sync(~0u, a.largest, distance);
  return a;
}

__device__ __forceinline__ uint32_t clusterRank() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
template <int C>
__device__ __forceinline__ void clusterBarrier() {
  if (C == 1) {
    __syncthreads();
  } else {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
}
template <bool Fp8>
__device__ __forceinline__ void storeCluster(Part<Fp8> *local, uint32_t cta,
                                             Part<Fp8> v) {
  uint32_t address = (uint32_t)__cvta_generic_to_shared(local), remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote)
               : "r"(address), "r"(cta));
  if constexpr (Fp8)
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(remote),
                 "f"(v.squares), "f"(v.largest)
                 : "memory");
  else
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote),
                 "f"(v.squares)
                 : "memory");
}

/// The parts of a row that C CTAs of T threads hold, combined, on every thread.
/// `parity` alternates from row to row, so that one barrier a row is enough.
template <int C, int T, bool Fp8>
__device__ __forceinline__ Part<Fp8>
reduceRow(Part<Fp8> v, Part<Fp8> (&partial)[2][C * T / 32], int parity) {
#pragma unroll
  for (int d = 1; d < 32; d *= 2)
    v = combine(v, shuffle(v, d));
  constexpr int kWarps = T / 32, kAll = C * kWarps;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane < C) {
    Part<Fp8> *slot = &partial[parity][clusterRank() * kWarps + warp];
    if (C == 1)
      *slot = v;
    else
      storeCluster(slot, lane, v);
  }
  clusterBarrier<C>();
  Part<Fp8> total{};
  if (kAll <= 32) {
    if (lane < kAll)
      total = partial[parity][lane];
  } else if (2 * lane < kAll) {
    total = combine(partial[parity][2 * lane], partial[parity][2 * lane + 1]);
  }
#pragma unroll
  for (int d = 1; d < 32; d *= 2)
    total = combine(total, shuffle(total, d));
  return total;
}

__device__ __forceinline__ uint32_t packFp8(float a, float b, float c,
                                            float d) {
  uint32_t word;
  asm("{ .reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f32 l, %2, %1; "
      "cvt.rn.satfinite.e4m3x2.f32 h, %4, %3; mov.b32 %0, {l, h}; }"
      : "=r"(word)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return word;
}

/// What follows the reduction, on one vector of a row.
template <int C, int T, bool Fp8>
__device__ __forceinline__ void
finish(const Fused &f, Sum h, int row, size_t column, uint4 residual,
       uint4 weight, Part<Fp8> (&partial)[2][C * T / 32], int parity) {
  size_t at = (size_t)row * f.rowVectors + column;
  add(h, residual, false);
  Part<Fp8> part{};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    part.squares += h.v[i] * h.v[i];
  uint32_t w[4] = {weight.x, weight.y, weight.z, weight.w};
  Sum y;
  if constexpr (Fp8) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      y.v[2 * i] = h.v[2 * i] * __uint_as_float(w[i] << 16);
      y.v[2 * i + 1] = h.v[2 * i + 1] * __uint_as_float(w[i] & 0xFFFF0000u);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
      part.largest = fmaxf(part.largest, fabsf(y.v[i]));
  }
  part = reduceRow<C, T, Fp8>(part, partial, parity);
  if constexpr (Fp8) {
    float least = fmaxf(part.largest, 1e-15f), inverse = 448.0f / least;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      y.v[i] *= inverse;
    f.y8[at] = {packFp8(y.v[0], y.v[1], y.v[2], y.v[3]),
                packFp8(y.v[4], y.v[5], y.v[6], y.v[7])};
    f.sum[at] = pack(h);
    if (column == 0)
      f.scale[row] =
          least / 448.0f * rsqrtf(part.squares / (8.0f * f.rowVectors) + 1e-5f);
    return;
  }
  float inv = rsqrtf(part.squares / (8.0f * f.rowVectors) + 1e-5f);
  f.sum[at] = pack(h);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    h.v[2 * i] *= inv * __uint_as_float(w[i] << 16);
    h.v[2 * i + 1] *= inv * __uint_as_float(w[i] & 0xFFFF0000u);
  }
  f.y[at] = pack(h);
}

template <int N, int C, int T, bool Fp8>
__global__ void __launch_bounds__(T) oneShot(__grid_constant__ const Fused f) {
  __shared__ Part<Fp8> partial[2][C * T / 32];
  const Params &p = f.p;
  begin<true>();
  uint32_t epoch = p.epoch[blockIdx.x];
  uint32_t now = epoch % 3, last = (epoch + 2) % 3;
  size_t base = now * N * p.capacity;
  size_t column = clusterRank() * T + threadIdx.x;
  int clusters = gridDim.x / C, first = blockIdx.x / C;
  const uint4 empty = {kPoison, kPoison, kPoison, kPoison};
  uint4 weight = f.weight[column];
  for (int row = first; row < f.rows; row += clusters) {
    size_t at = (size_t)row * f.rowVectors + column;
    uint4 x = canonical(p.input[p.rank][at]);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      int peer = p.rank + k < N ? p.rank + k : p.rank + k - N;
      storeRelaxed(p.slots[peer] + base + p.rank * p.capacity + at, x);
    }
  }
  uint4 *own = p.slots[p.rank];
  int parity = 0;
  for (int row = first; row < f.rows; row += clusters, parity ^= 1) {
    size_t at = (size_t)row * f.rowVectors + column;
    uint4 residual = f.residual[at];
    uint4 v[N];
    const uint4 *from[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      from[k] = own + base + k * p.capacity + at;
    pollAll<N>(v, from, p.failed);
    Sum sum;
#pragma unroll
    for (int k = 0; k < N; ++k)
      add(sum, v[k], k == 0);
    finish<C, T, Fp8>(f, sum, row, column, residual, weight, partial, parity);
#pragma unroll
    for (int k = 0; k < N; ++k)
      own[last * N * p.capacity + k * p.capacity + at] = empty;
  }
  if (C > 1)
    clusterBarrier<C>();
  end(p, epoch);
}

/// Row r belongs to rank r mod N, which sums it and pushes the sum to all; all
/// compute the tail.
template <int N, int C, int T, bool Fp8>
__global__ void __launch_bounds__(T) twoShot(__grid_constant__ const Fused f) {
  __shared__ Part<Fp8> partial[2][C * T / 32];
  const Params &p = f.p;
  begin<true>();
  uint32_t epoch = p.epoch[blockIdx.x];
  uint32_t now = epoch % 3, last = (epoch + 2) % 3;
  size_t base = now * N * p.capacity;
  size_t column = clusterRank() * T + threadIdx.x;
  int clusters = gridDim.x / C, first = blockIdx.x / C;
  const uint4 empty = {kPoison, kPoison, kPoison, kPoison};
  uint4 weight = f.weight[column];
  uint4 *own = p.slots[p.rank], *mine = p.gather[p.rank];
  int groups = f.rows / N;
  for (int g = first; g < groups; g += clusters) {
    uint4 x[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      x[k] = p.input[p.rank][(size_t)(g * N + (p.rank + k) % N) * f.rowVectors +
                             column];
#pragma unroll
    for (int k = 0; k < N; ++k)
      storeRelaxed(p.slots[(p.rank + k) % N] + base + p.rank * p.capacity +
                       (size_t)g * f.rowVectors + column,
                   canonical(x[k]));
  }
  for (int g = first; g < groups; g += clusters) {
    size_t at = (size_t)g * f.rowVectors + column;
    uint4 v[N];
    const uint4 *from[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      from[k] = own + base + k * p.capacity + at;
    pollAll<N>(v, from, p.failed);
    Sum sum;
#pragma unroll
    for (int k = 0; k < N; ++k)
      add(sum, v[k], k == 0);
    uint4 total = canonical(pack(sum));
#pragma unroll
    for (int k = 0; k < N; ++k)
      storeRelaxed(p.gather[(p.rank + k) % N] + now * N * p.capacity +
                       p.rank * p.capacity + at,
                   total);
#pragma unroll
    for (int k = 0; k < N; ++k)
      own[last * N * p.capacity + k * p.capacity + at] = empty;
  }
  int parity = 0;
  for (int row = first; row < f.rows; row += clusters, parity ^= 1) {
    // Clusters take rows in the order in which their owners finish them.
    int g = row / N, owner = row % N;
    size_t slot = owner * p.capacity + (size_t)g * f.rowVectors + column;
    size_t at = (size_t)row * f.rowVectors + column;
    uint4 residual = f.residual[at];
    uint4 v[1];
    const uint4 *from[1] = {mine + now * N * p.capacity + slot};
    pollAll<1>(v, from, p.failed);
    Sum sum;
    add(sum, v[0], true);
    finish<C, T, Fp8>(f, sum, row, column, residual, weight, partial, parity);
    mine[last * N * p.capacity + slot] = empty;
  }
  if (C > 1)
    clusterBarrier<C>();
  end(p, epoch);
}

struct Rank {
  Fused fused{};
  cudaStream_t stream{};
};

/// A launch of clusters; not to be copied, for it points into itself.
struct ClusterConfig : cudaLaunchConfig_t {
  ClusterConfig(int clusters, int size, int threads, cudaStream_t stream)
      : cudaLaunchConfig_t{} {
    gridDim = clusters * size;
    blockDim = threads;
    this->stream = stream;
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {(unsigned)size, 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    attrs = attributes;
    numAttrs = 2;
  }
  ClusterConfig(const ClusterConfig &) = delete;
  cudaLaunchAttribute attributes[2]{};
};

template <typename Kernel>
void launchClusters(Kernel kernel, Rank &rank, int clusters, int size,
                    int threads) {
  ClusterConfig config(clusters, size, threads, rank.stream);
  CUDA(cudaLaunchKernelEx(&config, kernel, rank.fused));
}

/// Whether all clusters are on the GPU at once, as kernels that wait for each
/// other have to be. How many fit depends on how the chip's processors are
/// grouped, which differs from one to the next.
template <typename Kernel>
bool fits(Kernel kernel, int clusters, int size, int threads) {
  ClusterConfig config(clusters, size, threads, nullptr);
  config.numAttrs = 1;
  int most = 0;
  CUDA(cudaOccupancyMaxActiveClusters(&most, kernel, &config));
  return clusters <= most;
}

struct Variant {
  std::string name;
  int minRows, maxRows;
  std::function<void(Rank &)> launch;
};

template <int N, int C, int T, bool Fp8>
void addVariants(std::vector<Variant> &all) {
  std::string shape = "/c" + std::to_string(C) + "/t" + std::to_string(T);
  // 1,024 threads of an SM are resident, whatever their registers.
  for (int limit : {132, 264, 528, 1056}) {
    if (limit * T > 132 * 1024)
      continue;
    int most = limit / C;
    auto add = [&](const char *name, auto kernel, int minRows, int maxRows) {
      if (fits(kernel, most, C, T))
        all.push_back({name + shape + "/g" + std::to_string(most), minRows,
                       maxRows, [=](Rank &r) {
                         launchClusters(kernel, r, std::min(r.fused.rows, most),
                                        C, T);
                       }});
    };
    add("one_shot", oneShot<N, C, T, Fp8>, 1, 64);
    add("two_shot", twoShot<N, C, T, Fp8>, 8, 1024);
  }
}

template <int N, bool Fp8>
std::vector<Variant> variants(int hidden) {
  std::vector<Variant> all;
  if (hidden == 8192) {
    addVariants<N, 1, 1024, Fp8>(all);
    addVariants<N, 2, 512, Fp8>(all);
    addVariants<N, 4, 256, Fp8>(all);
    addVariants<N, 8, 128, Fp8>(all);
  } else if (hidden == 4096) {
    addVariants<N, 1, 512, Fp8>(all);
    addVariants<N, 2, 256, Fp8>(all);
    addVariants<N, 4, 128, Fp8>(all);
  }
  return all;
}

template <bool Fp8>
std::vector<Variant> variants(int ranks, int hidden) {
  switch (ranks) {
  case 2:
    return variants<2, Fp8>(hidden);
  case 4:
    return variants<4, Fp8>(hidden);
  case 8:
    return variants<8, Fp8>(hidden);
  }
  return {};
}

/// The number that a byte of e4m3 is.
static double fromFp8(uint8_t byte) {
  int exponent = byte >> 3 & 15, fraction = byte & 7;
  if ((byte & 0x7F) == 0x7F)
    return std::nan("");
  double size = exponent ? std::ldexp(8 + fraction, exponent - 10)
                         : std::ldexp(fraction, -9);
  return byte & 0x80 ? -size : size;
}

int main(int argc, char **argv) {
  int ranks = 0, hidden = 8192;
  bool fp8 = false;
  const char *json = nullptr;
  CUDA(cudaGetDeviceCount(&ranks));
  for (int i = 1; i + 1 < argc; i += 2)
    if (!std::strcmp(argv[i], "--ranks"))
      ranks = std::atoi(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--json"))
      json = argv[i + 1];
    else if (!std::strcmp(argv[i], "--hidden"))
      hidden = std::atoi(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--fp8"))
      fp8 = std::atoi(argv[i + 1]);
  std::vector<Variant> all =
      fp8 ? variants<true>(ranks, hidden) : variants<false>(ranks, hidden);
  if (all.empty()) {
    std::fprintf(stderr, "2, 4 or 8 GPUs and hidden 4096 or 8192 are needed\n");
    return 1;
  }
  constexpr int kMaxRows = 512;
  size_t elements = (size_t)kMaxRows * hidden, capacity = elements / 8;
  std::vector<Rank> world(ranks);
  std::vector<float> sums(elements);
  for (int r = 0; r < ranks; ++r) {
    CUDA(cudaSetDevice(r));
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != r)
        CUDA(cudaDeviceEnablePeerAccess(peer, 0));
    Fused &f = world[r].fused;
    CUDA(cudaStreamCreateWithFlags(&world[r].stream, cudaStreamNonBlocking));
    uint4 *input, *slots, *gather, *residual, *weight;
    for (uint4 **array : {&input, &residual, &weight, &f.y, &f.sum})
      CUDA(cudaMalloc(array, elements * 2));
    CUDA(cudaMalloc(&f.y8, elements));
    CUDA(cudaMalloc(&f.scale, kMaxRows * 4));
    CUDA(cudaMalloc(&slots, 3 * ranks * capacity * 16));
    CUDA(cudaMalloc(&gather, 3 * ranks * capacity * 16));
    CUDA(cudaMalloc(&f.p.epoch, kMaxBlocks * 4));
    CUDA(cudaMalloc(&f.p.failed, 4));
    CUDA(cudaMemset(f.p.failed, 0, 4));
    std::vector<uint16_t> host(elements);
    for (size_t i = 0; i < elements; ++i) {
      host[i] = inputOf(r, i);
      sums[i] = r ? sums[i] + fromBF16(host[i]) : fromBF16(host[i]);
    }
    CUDA(cudaMemcpy(input, host.data(), elements * 2, cudaMemcpyHostToDevice));
    for (size_t i = 0; i < elements; ++i)
      host[i] = inputOf(100, i);
    CUDA(cudaMemcpy(residual, host.data(), elements * 2,
                    cudaMemcpyHostToDevice));
    for (size_t i = 0; i < elements; ++i)
      host[i] = inputOf(200, i);
    CUDA(cudaMemcpy(weight, host.data(), elements * 2, cudaMemcpyHostToDevice));
    f.residual = residual;
    f.weight = weight;
    f.rowVectors = hidden / 8;
    f.p.rank = r;
    f.p.ranks = ranks;
    f.p.capacity = capacity;
    for (Rank &other : world) {
      other.fused.p.input[r] = input;
      other.fused.p.slots[r] = slots;
      other.fused.p.gather[r] = gather;
    }
  }
  std::vector<uint32_t> poison(3 * ranks * capacity * 4, kPoison);
  std::string lines;
  for (int rows : {1, 2, 8, 16, 64, 128, 512}) {
    std::string best;
    double bestTime = 1e30;
    for (const Variant &variant : all) {
      if (rows < variant.minRows || rows > variant.maxRows)
        continue;
      std::vector<std::vector<float>> times(ranks);
      std::vector<double> errors(ranks);
      std::barrier together(ranks);
      std::vector<std::thread> threads;
      for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
          CUDA(cudaSetDevice(r));
          Rank &rank = world[r];
          rank.fused.rows = rows;
          CUDA(cudaMemset(rank.fused.p.epoch, 0, kMaxBlocks * 4));
          CUDA(cudaMemcpy(rank.fused.p.slots[r], poison.data(),
                          poison.size() * 4, cudaMemcpyHostToDevice));
          CUDA(cudaMemcpy(rank.fused.p.gather[r], poison.data(),
                          poison.size() * 4, cudaMemcpyHostToDevice));
          CUDA(cudaMemset(rank.fused.y, 0xFF, elements * 2));
          CUDA(cudaMemset(rank.fused.y8, 0xFF, elements));
          CUDA(cudaMemset(rank.fused.scale, 0xFF, kMaxRows * 4));
          CUDA(cudaDeviceSynchronize());
          together.arrive_and_wait();
          times[r] =
              timeReplays(rank.stream, together, [&] { variant.launch(rank); });
          uint32_t failed;
          CUDA(cudaMemcpy(&failed, rank.fused.p.failed, 4,
                          cudaMemcpyDeviceToHost));
          std::vector<uint16_t> got((size_t)rows * hidden);
          std::vector<uint8_t> got8(got.size());
          std::vector<float> scales(rows);
          CUDA(cudaMemcpy(got.data(), rank.fused.y, got.size() * 2,
                          cudaMemcpyDeviceToHost));
          CUDA(cudaMemcpy(got8.data(), rank.fused.y8, got8.size(),
                          cudaMemcpyDeviceToHost));
          CUDA(cudaMemcpy(scales.data(), rank.fused.scale, rows * 4,
                          cudaMemcpyDeviceToHost));
          errors[r] = failed ? 1e30 : 0;
          for (int row = 0; row < rows; row += std::max(1, rows / 8)) {
            double squares = 0;
            auto h = [&](int i) {
              size_t at = (size_t)row * hidden + i;
              return (double)sums[at] + fromBF16(inputOf(100, at));
            };
            for (int i = 0; i < hidden; ++i)
              squares += h(i) * h(i);
            double inv = 1 / std::sqrt(squares / hidden + 1e-5);
            for (int i = 0; i < hidden; ++i) {
              double want = h(i) * inv * fromBF16(inputOf(200, i));
              size_t at = (size_t)row * hidden + i;
              double value = fp8 ? fromFp8(got8[at]) * scales[row]
                                 : (double)fromBF16(got[at]);
              double error = std::abs(want - value);
              // Half of an eighth, which neighbors of e4m3 are apart.
              if (fp8)
                error = std::max(0.0, error - std::abs(want) / 16);
              errors[r] = std::isnan(error) ? 1e30 : std::max(errors[r], error);
            }
          }
          together.arrive_and_wait();
        });
      for (std::thread &thread : threads)
        thread.join();
      std::vector<float> slowest = getSlowest(times);
      double median = slowest[kReplays / 2],
             error = *std::max_element(errors.begin(), errors.end());
      std::printf("%5d rows %-26s %8.2f us  [%.2f %.2f] error %.3g%s\n", rows,
                  variant.name.c_str(), median, slowest.front(), slowest.back(),
                  error, error > 0.05 ? "  WRONG" : "");
      std::fflush(stdout);
      lines += "{\"rows\":" + std::to_string(rows) + ",\"name\":\"" +
               variant.name + "\",\"us\":" + std::to_string(median) +
               ",\"wrong\":" + (error > 0.05 ? "1" : "0") + "}\n";
      if (error <= 0.05 && median < bestTime) {
        bestTime = median;
        best = variant.name;
      }
    }
    std::printf("%5d rows best: %s %.2f us\n", rows, best.c_str(), bestTime);
  }
  if (FILE *file = json ? std::fopen(json, "w") : nullptr) {
    std::fputs(lines.c_str(), file);
    std::fclose(file);
  }
  return 0;
}
