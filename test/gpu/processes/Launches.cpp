//===- Launches.cpp - Launches that must give right results ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Kernel.h"
#include "test/gpu/processes/Scenarios.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <functional>
#include <random>

using namespace commsir;
using namespace commsir::processes;

/// Sizes shrink and grow, eager and replayed.
std::string processes::runSizes(Rank &me) {
  me.join();
  std::vector<Sum> sums;
  double start = now(), first = 0;
  for (int64_t count : {1 << 20, 1, 4096, 33, 262144, 1000, 65536}) {
    sums.push_back(me.makeSum(Rank::request(count), count));
    if (first == 0) {
      me.sumOnce(sums.back(), 0, me.streams[0]);
      first = now() - start;
    }
  }
  for (int64_t round = 0; round < me.number; ++round)
    for (Sum &sum : sums)
      me.sumOnce(sum, round, me.streams[round % 2]);
  std::vector<CUgraphExec> graphs;
  for (Sum &sum : sums)
    graphs.push_back(me.capture({&sum}, 3));
  for (int64_t round = 0; round < me.number; ++round)
    for (auto [sum, graph] : llvm::zip(sums, graphs)) {
      me.fill(sum, round, me.streams[1]);
      me.check(me.driver().GraphLaunch(graph, me.streams[1]), "replaying");
      me.check(me.wait(me.streams[1]));
      me.compare(sum, round, me.streams[1]);
      // Eager between replays.
      me.sumOnce(sum, round + 1, me.streams[0]);
    }
  return llvm::formatv("group in {0:f0} ms, first sum after {1:f0} ms; {2}",
                       me.joinSeconds * 1e3, first * 1e3,
                       cuda::getWindowsNote(*me.group))
      .str();
}

/// A launch by the group against the driver's call alone.
std::string processes::runOverhead(Rank &me) {
  me.options.name += std::to_string(me.options.rank);
  me.options.rank = 0;
  me.options.ranks = 1;
  me.options.device = 0;
  if (me.number) // One process measures.
    return "";
  me.join();
  Sum sum = me.makeSum(Rank::request(1024, "one_shot", "pull", 1), 1024);
  const jit::CudaKernel &code = cuda::getCode(*sum.kernel);
  cuda::StateOptions limits;
  auto bare = me.take(
      cuda::LoadedKernel::load(cuda::getDevice(*me.group), code, 0, limits));
  auto scratch =
      me.take(cuda::Memory::allocate(cuda::getDevice(*me.group), 16 << 20));
  for (size_t i = 0; i < code.args().size(); ++i)
    bare->bindParts(unsigned(i), {scratch.address() + (i << 20)});
  auto measure = [&](const std::function<void()> &one) {
    std::vector<double> times;
    for (int batch = 0; batch < 60; ++batch) {
      double start = now();
      for (int i = 0; i < 200; ++i)
        one();
      times.push_back((now() - start) / 200 * 1e6);
      me.check(me.driver().StreamSynchronize(me.streams[0]), "waiting");
    }
    llvm::sort(times);
    return times[times.size() / 2];
  };
  auto byGroup = [&] { me.check(me.launch(sum, me.streams[0])); };
  auto byDriver = [&] { me.check(bare->launch(me.streams[0])); };
  measure(byGroup);
  double group = measure(byGroup), driver = measure(byDriver);
  std::string text =
      llvm::formatv("launch by the group {0:f2} us, bare {1:f2} us", group,
                    driver)
          .str();
  auto inCapture = [&](const std::function<void()> &one) {
    CUgraph graph;
    me.check(me.driver().StreamBeginCapture(
                 me.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             "capturing");
    double start = now();
    for (int i = 0; i < 2000; ++i)
      one();
    double each = (now() - start) / 2000 * 1e6;
    me.check(me.driver().StreamEndCapture(me.streams[0], &graph), "capturing");
    return each;
  };
  inCapture(byGroup);
  return text + llvm::formatv("; captured {0:f2} us, bare {1:f2} us",
                              inCapture(byGroup), inCapture(byDriver))
                    .str();
}

/// Many launches of 200 kernels in one order; the results of some are looked
/// at, in each batch of others.
std::string processes::runMany(Rank &me) {
  me.join();
  const char *protocols[] = {"ll", "lamport", "pull", "ll"};
  std::vector<Sum> sums;
  for (int64_t i = 0; i < 200; ++i) {
    int64_t count = 1 + (i * i * 37) % 20000;
    sums.push_back(
        me.makeSum(Rank::request(count, i % 2 ? "two_shot" : "one_shot",
                                 protocols[i % 4], 1 + i % 4),
                   count, nullptr));
  }
  std::mt19937 random(1);
  double start = now();
  for (int64_t launch = 0; launch < me.number;) {
    std::vector<size_t> looked;
    for (int i = 0; i < 4; ++i)
      looked.push_back(random() % sums.size());
    for (size_t at : looked)
      me.fill(sums[at], launch, me.streams[0]);
    me.check(me.driver().StreamSynchronize(me.streams[0]), "filling");
    for (int i = 0; i < 2000; ++i, ++launch)
      me.check(me.launch(sums[random() % sums.size()], me.streams[0]));
    for (size_t at : looked)
      me.check(me.launch(sums[at], me.streams[0]));
    me.check(me.wait(me.streams[0]));
    for (size_t at : looked) {
      Sum &sum = sums[at];
      int64_t filled = launch - 2000;
      // Twice the same kernel: what was filled last.
      me.compare(sum, filled, me.streams[0]);
    }
  }
  return llvm::formatv("{0} launches in {1:f1} s", me.group->counts().launches,
                       now() - start)
      .str();
}

namespace {
/// Arrays of a product of matrices, and what its first row is.
struct Product {
  static constexpr unsigned n = 1024;
  CUdeviceptr a = 0, b = 0, c = 0;

  explicit Product(Rank &me) {
    for (CUdeviceptr *array : {&a, &b, &c})
      *array = CUdeviceptr(me.take(me.group->allocateOwn(size_t(n) * n * 4)));
    // Numbers from 0 to 7: products are exact.
    for (CUdeviceptr array : {a, b})
      me.load("fill", 64, 256, me.streams[3], array, n * n, array, 0u,
              /*type=*/0, /*rank=*/unsigned(array == b), /*launch=*/0u);
    me.load("fill", 64, 256, me.streams[3], c, 0u, c, n * n, 0, 0u, 0u);
  }
  void launch(Rank &me) {
    me.load("gemm", n / 16 * n / 16, 256, me.streams[3], a, b, c, n);
  }
  void compare(Rank &me) {
    auto read = [&](CUdeviceptr from, size_t count) {
      std::vector<float> host(count);
      me.check(me.driver().MemcpyDtoHAsync(host.data(), from, count * 4,
                                           me.streams[3]),
               "reading");
      me.check(me.driver().StreamSynchronize(me.streams[3]), "the product");
      return host;
    };
    std::vector<float> left = read(a, n), right = read(b, size_t(n) * n),
                       row = read(c, n);
    for (unsigned column = 0; column < n; ++column) {
      float wanted = 0;
      for (unsigned k = 0; k < n; ++k)
        wanted += left[k] * right[size_t(k) * n + column];
      if (row[column] != wanted)
        me.fail(llvm::formatv("the product's column {0} is {1}, not {2}",
                              column, row[column], wanted)
                    .str());
    }
  }
};
} // namespace

/// Two kernels that are declared concurrent, started in opposite order on even
/// and odd ranks, in parallel with NCCL and a product of matrices that fills
/// the GPU.
std::string processes::runOrder(Rank &me) {
  me.join();
  KernelRequest first = Rank::request(8192, "one_shot", "ll", 4),
                other = Rank::request(65536, "two_shot", "ll", 8);
  first.concurrent = other.concurrent = true;
  Sum sums[] = {me.makeSum(first, 8192), me.makeSum(other, 65536)};
  for (Sum &sum : sums)
    me.sumOnce(sum, 0, me.streams[0]);
  const cuda::Nccl &nccl = *me.take(cuda::Nccl::get());
  ncclComm_t comm = me.makeNccl("id");
  constexpr size_t count = 1 << 20;
  void *x = me.take(me.group->allocate(count * 4));
  void *y = me.take(me.group->allocate(count * 4));
  Product product(me);
  for (int64_t round = 0; round < me.number; ++round) {
    for (Sum &sum : sums)
      me.fill(sum, round, me.streams[&sum - sums]);
    me.check(nccl.check(
        nccl.AllReduce(x, y, count, ncclFloat, ncclSum, comm,
                       reinterpret_cast<cudaStream_t>(me.streams[2])),
        "ncclAllReduce"));
    product.launch(me);
    int begin = me.options.rank % 2;
    for (int i : {begin, 1 - begin})
      me.check(me.launch(sums[i], me.streams[i]));
    for (int i : {0, 1}) {
      me.check(me.wait(me.streams[i]));
      me.compare(sums[i], round, me.streams[i]);
    }
  }
  me.check(me.driver().StreamSynchronize(me.streams[2]), "NCCL");
  product.compare(me);
  nccl.CommDestroy(comm);
  return "";
}

/// A group around a communicator of the caller's, on which nothing was run.
std::string processes::runAdopted(Rank &me) {
  auto device = me.take(cuda::Device::open(me.options.device));
  const cuda::Driver &cu = device.driver();
  me.check(cu.check(cu.CtxSetCurrent(device.context()), "cuCtxSetCurrent"));
  const cuda::Nccl &nccl = *me.take(cuda::Nccl::get());
  ncclComm_t comm = me.makeNccl("adopted");
  me.options.ncclComm = comm;
  me.options.windows = "nccl";
  me.join();
  Sum small = me.makeSum(Rank::request(1000), 1000);
  Sum large = me.makeSum(Rank::request(300000), 300000);
  for (int64_t launch = 0; launch < 20; ++launch)
    me.sumOnce(launch % 2 ? small : large, launch, me.streams[0]);
  // The communicator is the caller's still.
  me.fill(large, 7, me.streams[0]);
  me.check(nccl.check(
      nccl.AllReduce(large.x, large.y, size_t(large.count), ncclFloat, ncclSum,
                     comm, reinterpret_cast<cudaStream_t>(me.streams[0])),
      "ncclAllReduce"));
  me.compare(large, 7, me.streams[0]);
  std::string note = cuda::getWindowsNote(*me.group).str();
  me.meet();
  me.group.reset();
  nccl.CommDestroy(comm);
  return note;
}

/// Kernels that call NCCL's device library, in parallel with themselves in two
/// graphs. Number 1: with a communicator of the caller's own.
std::string processes::runDeviceLibrary(Rank &me) {
  auto device = me.take(cuda::Device::open(me.options.device));
  const cuda::Driver &cu = device.driver();
  me.check(cu.check(cu.CtxSetCurrent(device.context()), "cuCtxSetCurrent"));
  ncclComm_t comm = me.number ? me.makeNccl("device library") : nullptr;
  me.options.ncclComm = comm;
  me.options.windows = "nccl";
  me.join();
  KernelRequest what = Rank::request(20000, "one_shot", "pull", 8);
  what.impl = "nccl";
  CUstream stream = me.streams[0];
  Sum sum = me.makeSum(what, 20000);
  // What is generated takes turns with it.
  Sum generated =
      me.makeSum(Rank::request(20000, "one_shot", "push", 8), 20000, &sum);
  CUgraphExec first = me.capture({&sum, &generated}, 3);
  me.take(me.group->prepare(what)); // For one more capture.
  CUgraphExec other = me.capture({&sum}, 2);
  int64_t launch = 0;
  for (int round = 0; round < 20; ++round) {
    me.sumOnce(sum, ++launch, stream);
    for (CUgraphExec graph : {first, other}) {
      me.fill(sum, ++launch, stream);
      me.check(cu.check(cu.GraphLaunch(graph, stream), "cuGraphLaunch"));
      me.check(me.wait(stream));
      me.compare(sum, launch, stream);
    }
    me.sumOnce(generated, ++launch, stream);
  }
  me.meet();
  me.group.reset();
  if (comm)
    me.take(cuda::Nccl::get())->CommDestroy(comm);
  return "";
}
