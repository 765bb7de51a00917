//===- allreduce.cu - Hand-written all-reduce kernels ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CommsIR's algorithms, written by hand in CUDA: a yardstick for generated code
// and a place to try an idea in minutes. One process, one thread per GPU, peer
// access by cudaDeviceEnablePeerAccess. Results are compared bit for bit with
// sums in rank order in f32.
//
//   allreduce [--ranks N] [--min BYTES] [--max BYTES] [--sizes BYTES,...]
//             [--only NAME] [--json FILE]
//
// Measures every fourth power of two from --min to --max, or --sizes.
// test/gpu/twins.py compares the times with the first figures of such kernels.
//
// Every poll times out after about two seconds, so that a mistake cannot hang a
// GPU.
//
//===----------------------------------------------------------------------===//

#include "Common.h"

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

/// Two shots in permutations: at step k every rank pushes to rank + k, and a
/// barrier of each block keeps the ranks in phase. Parts are staged at their
/// owner, summed in rank order, and pushed again.
template <int N, int kUnroll>
__global__ void __launch_bounds__(1024)
    permutation(__grid_constant__ const Params p) {
  begin<true>();
  uint32_t epoch = p.epoch[blockIdx.x];
  uint32_t phase = epoch * (2 * N);
  size_t part = p.vectors / N;
  size_t slice = (part + gridDim.x - 1) / gridDim.x;
  size_t first = slice * blockIdx.x,
         last = first + slice < part ? first + slice : part;
  barrierBlock<N>(
      p, ++phase); // outputs of the last call have been read, staging too
  for (int k = 1; k < N; ++k) {
    int peer = (p.rank + k) % N;
    const uint4 *from = p.input[p.rank] + peer * part;
    uint4 *to = p.gather[peer] + p.rank * part;
    for (size_t i = first + threadIdx.x; i < last; i += blockDim.x * kUnroll) {
      uint4 v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (i + u * blockDim.x < last)
          v[u] = from[i + u * blockDim.x];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (i + u * blockDim.x < last)
          storeRelaxed(to + i + u * blockDim.x, v[u]);
    }
    barrierBlock<N>(p, ++phase);
  }
  const uint4 *staged = p.gather[p.rank];
  const uint4 *mine = p.input[p.rank] + p.rank * part;
  for (int k = 1; k < N; ++k) {
    int peer = (p.rank + k) % N;
    uint4 *own = p.output[p.rank] + p.rank * part,
          *to = p.output[peer] + p.rank * part;
    for (size_t i = first + threadIdx.x; i < last; i += blockDim.x * kUnroll) {
      uint4 v[kUnroll];
      if (k == 1) {
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          size_t at = i + u * blockDim.x;
          if (at < last) {
            Sum sum;
#pragma unroll
            for (int r = 0; r < N; ++r)
              add(sum,
                  r == p.rank ? mine[at] : loadRelaxed(staged + r * part + at),
                  r == 0);
            v[u] = pack(sum);
            own[at] = v[u];
          }
        }
      } else {
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
          if (i + u * blockDim.x < last)
            v[u] = own[i + u * blockDim.x];
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (i + u * blockDim.x < last)
          storeRelaxed(to + i + u * blockDim.x, v[u]);
    }
    barrierBlock<N>(p, ++phase);
  }
  end(p, epoch);
}

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
  for (int threads : {256, 512, 1024})
    for (int blocks : {32, 64, 128})
      all.push_back({"permutation/t" + std::to_string(threads) + "/b" +
                         std::to_string(blocks),
                     4 << 20, (size_t)256 << 20, [=](Rank &r) {
                       launch(permutation<N, 4>, r, blocks, threads, true);
                     }});
  all.push_back({"nccl", 16, (size_t)256 << 20, [](Rank &r) {
                   NCCL(ncclAllReduce(r.input, r.output, r.params.vectors * 8,
                                      ncclBfloat16, ncclSum, r.comm, r.stream));
                 }});
  return all;
}

/// "1024,8192".
static std::vector<size_t> readSizes(const char *text) {
  std::vector<size_t> sizes;
  for (char *end; *text; text = *end ? end + 1 : end) {
    sizes.push_back(std::strtoull(text, &end, 0));
    if (end == text || sizes.back() % 128) {
      std::fprintf(stderr, "--sizes: '%s' is not a multiple of 128\n", text);
      std::exit(1);
    }
  }
  return sizes;
}

int main(int argc, char **argv) {
  int ranks = 0;
  CUDA(cudaGetDeviceCount(&ranks));
  size_t minBytes = 1024, maxBytes = (size_t)64 << 20;
  std::vector<size_t> sizes;
  std::string only, json;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string flag = argv[i];
    if (flag == "--ranks")
      ranks = std::atoi(argv[i + 1]);
    else if (flag == "--min")
      minBytes = std::strtoull(argv[i + 1], nullptr, 0);
    else if (flag == "--max")
      maxBytes = std::strtoull(argv[i + 1], nullptr, 0);
    else if (flag == "--sizes")
      sizes = readSizes(argv[i + 1]);
    else if (flag == "--only")
      only = argv[i + 1];
    else if (flag == "--json")
      json = argv[i + 1];
  }
  if (sizes.empty())
    for (size_t bytes = minBytes; bytes <= maxBytes; bytes *= 4)
      sizes.push_back(bytes);
  maxBytes = *std::max_element(sizes.begin(), sizes.end());
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
    CUDA(cudaMalloc(&gather, std::max(3 * ranks * capacity * 16, maxBytes)));
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
  for (size_t bytes : sizes) {
    std::string best;
    double bestTime = 1e30;
    for (const Variant &variant : all) {
      if (bytes < variant.minBytes || bytes > variant.maxBytes ||
          (!only.empty() && variant.name.find(only) == std::string::npos))
        continue;
      std::vector<std::vector<float>> times(ranks);
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
          times[r] =
              timeReplays(rank.stream, together, [&] { variant.launch(rank); });
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
          together.arrive_and_wait();
        });
      for (std::thread &thread : threads)
        thread.join();
      std::vector<float> slowest = getSlowest(times);
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
