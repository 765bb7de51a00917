//===- bench-cpu.cpp - Compile time and speed of the CPU world ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures what docs/Benchmarks.md limits for the CPU target: the time from
// text to a kernel that can run, its growth with ops, ranks and row length,
// bandwidth against memcpy in the same process, and worlds of 1,024 and 8,192
// ranks. Every run's output is compared with the expected sums.
//
//===----------------------------------------------------------------------===//

#include "lowering/Register.h"
#include "runtime/cpu/World.h"
#include "runtime/jit/Compile.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

using namespace commsir;

namespace {

using Kernel = std::unique_ptr<jit::Kernel>;

mlir::MLIRContext &context() {
  static mlir::DialectRegistry *registry = [] {
    auto *all = new mlir::DialectRegistry;
    mlir::comms::registerAllDialects(*all);
    return all;
  }();
  static auto *one =
      new mlir::MLIRContext(*registry, mlir::MLIRContext::Threading::DISABLED);
  return *one;
}

/// All-reduce + residual add + RMSNorm over rows of `hidden` bf16.
std::string rmsnormText(int64_t rows, int64_t hidden) {
  constexpr const char *text = R"(
comms.kernel @rmsnorm(%x: !comms.window<{0}x{1}xbf16>, %residual: memref<{0}x{1}xbf16>,
                      %weight: memref<{1}xbf16>, %y: memref<{0}x{1}xbf16>, %sum: memref<{0}x{1}xbf16>) {{
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<{0}x{1}xbf16>)
      outs(%y, %sum : memref<{0}x{1}xbf16>, memref<{0}x{1}xbf16>)
      args(%residual, %weight : memref<{0}x{1}xbf16>, memref<{1}xbf16>)
      consume (%a: tensor<{1}xf32>, %r: tensor<{1}xbf16>, %w: tensor<{1}xbf16>) {{
    %re = arith.extf %r : tensor<{1}xbf16> to tensor<{1}xf32>
    %we = arith.extf %w : tensor<{1}xbf16> to tensor<{1}xf32>
    %h = arith.addf %a, %re : tensor<{1}xf32>
    %sq = arith.mulf %h, %h : tensor<{1}xf32>
    %ss = comms.row_reduce sum %sq : tensor<{1}xf32> -> tensor<1xf32>
    %n = arith.constant dense<{1}.0> : tensor<1xf32>
    %eps = arith.constant dense<1.0e-5> : tensor<1xf32>
    %mean = arith.divf %ss, %n : tensor<1xf32>
    %me = arith.addf %mean, %eps : tensor<1xf32>
    %inv = math.rsqrt %me : tensor<1xf32>
    %scale = comms.broadcast_row %inv : tensor<1xf32> -> tensor<{1}xf32>
    %norm = arith.mulf %h, %scale : tensor<{1}xf32>
    %out = arith.mulf %norm, %we : tensor<{1}xf32>
    %yt = arith.truncf %out : tensor<{1}xf32> to tensor<{1}xbf16>
    %st = arith.truncf %h : tensor<{1}xf32> to tensor<{1}xbf16>
    comms.yield %yt, %st : tensor<{1}xbf16>, tensor<{1}xbf16>
  }
  comms.return
})";
  return llvm::formatv(text, rows, hidden).str();
}

/// A plain all-reduce whose `consume` has a chain of `ops` additions.
std::string chainText(int64_t ops) {
  std::string body;
  llvm::raw_string_ostream os(body);
  os << "    %one = arith.constant dense<1.0> : tensor<1024xf32>\n";
  std::string last = "a";
  for (int64_t i = 0; i < ops; ++i) {
    os << "    %v" << i << " = arith.addf %" << last
       << ", %one : tensor<1024xf32>\n";
    last = "v" + std::to_string(i);
  }
  os << "    comms.yield %" << last << " : tensor<1024xf32>\n";
  return "comms.kernel @chain(%x: !comms.window<8x1024xf32>, %y: "
         "memref<8x1024xf32>) {\n"
         "  %team = comms.team world\n"
         "  comms.all_reduce sum %team ins(%x : !comms.window<8x1024xf32>) "
         "outs(%y : memref<8x1024xf32>) consume (%a: tensor<1024xf32>) {\n" +
         body + "  }\n  comms.return\n}\n";
}

std::string allReduceText(int64_t elements, llvm::StringRef type) {
  return llvm::formatv(
             "comms.kernel @sum(%x: !comms.window<{0}x{1}>, %y: "
             "memref<{0}x{1}>) {{\n"
             "  %team = comms.team world\n"
             "  comms.all_reduce sum %team ins(%x : !comms.window<{0}x{1}>) "
             "outs(%y : memref<{0}x{1}>)\n  comms.return\n}\n",
             elements, type)
      .str();
}

/// Ends the program: a benchmark of something broken is worth nothing.
[[noreturn]] void fail(const llvm::Twine &message) {
  llvm::errs() << "bench-cpu: " << message << "\n";
  std::exit(1);
}

Kernel compileText(llvm::StringRef text, int64_t ranks,
                   llvm::StringRef algorithm = "",
                   llvm::StringRef protocol = "") {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context());
  if (!module)
    fail("the kernel does not parse");
  jit::CompileOptions options;
  options.ranks = ranks;
  options.algorithm = algorithm.str();
  options.protocol = protocol.str();
  auto kernel = jit::compile(std::move(module), "", options);
  if (!kernel)
    fail(llvm::toString(kernel.takeError()));
  return std::move(*kernel);
}

void measureCompile(benchmark::State &state, llvm::StringRef text,
                    int64_t ranks) {
  for (auto _ : state)
    benchmark::DoNotOptimize(compileText(text, ranks));
}

void compileRmsnorm(benchmark::State &state) {
  measureCompile(state, rmsnormText(8, 64), state.range(0));
}
void compileRow(benchmark::State &state) {
  measureCompile(state, rmsnormText(8, state.range(0)), 8);
}
void compileChain(benchmark::State &state) {
  measureCompile(state, chainText(state.range(0)), 8);
}

/// Integers small enough that every sum is exact in the array's type.
float inputOf(int64_t rank, int64_t index) {
  return static_cast<float>((rank + index) % 3);
}

float sumOf(int64_t ranks, int64_t index) {
  float sum = 0;
  for (int64_t rank = 0; rank < ranks; ++rank)
    sum += inputOf(rank, index);
  return sum;
}

uint16_t toBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>(bits >> 16);
}

template <typename T>
T encode(float value) {
  if constexpr (sizeof(T) == 2)
    return toBF16(value);
  else
    return value;
}

/// A world with its input set: argument 0 is the input, 1 the output.
template <typename T>
std::unique_ptr<cpu::World> makeWorld(const jit::Kernel &kernel,
                                      const cpu::RunOptions &options) {
  auto world = cpu::World::create(kernel, options);
  if (!world)
    fail(llvm::toString(world.takeError()));
  for (int64_t rank = 0; rank < kernel.ranks(); ++rank) {
    auto bytes = (*world)->memory(0, rank);
    auto *data = reinterpret_cast<T *>(bytes.data());
    for (size_t i = 0; i < bytes.size() / sizeof(T); ++i)
      data[i] = encode<T>(inputOf(rank, i));
  }
  return std::move(*world);
}

template <typename T>
void verify(cpu::World &world, int64_t ranks) {
  size_t elements = world.memory(1, 0).size() / sizeof(T);
  // inputOf has period 3, so three sums are all there are.
  T expected[3] = {encode<T>(sumOf(ranks, 0)), encode<T>(sumOf(ranks, 1)),
                   encode<T>(sumOf(ranks, 2))};
  for (int64_t rank = 0; rank < ranks; ++rank) {
    auto *data = reinterpret_cast<const T *>(world.memory(1, rank).data());
    for (size_t i = 0; i < elements; ++i)
      if (data[i] != expected[i % 3])
        fail(llvm::formatv("rank {0} element {1} is wrong", rank, i));
  }
}

double runOnce(cpu::World &world) {
  auto result = world.run();
  if (auto *error = std::get_if<cpu::RunError>(&result))
    fail(error->render());
  return std::get<cpu::RunStats>(result).totalMicroseconds * 1e-6;
}

/// Bytes copied a second by memcpy, with as many threads as the world uses;
/// one copied byte is one read and one written.
double memcpyBandwidth(size_t bytes) {
  unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<char> from(bytes, 1), to(bytes);
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < workers; ++i)
      threads.emplace_back([&, i] {
        size_t part = bytes / workers;
        std::memcpy(to.data() + i * part, from.data() + i * part, part);
      });
    for (auto &thread : threads)
      thread.join();
    benchmark::DoNotOptimize(to.data());
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(bytes) / seconds.count());
  }
  return best;
}

/// Bytes that an all-reduce reads and writes, in copies (one read, one write):
/// one-shot stages each input once, reads N staged inputs and writes one output
/// on each of N ranks; two-shot stages, reads N parts of 1/N, stages the result
/// and reads it once more.
double copiesOf(llvm::StringRef algorithm, int64_t ranks, double bytes) {
  if (algorithm == "one_shot")
    return bytes * ranks * (2 + ranks + 1) / 2;
  return bytes * ranks * (2 + 1 + 1.0 / ranks + 1 + 1) / 2;
}

void bandwidth(benchmark::State &state, llvm::StringRef algorithm) {
  constexpr int64_t ranks = 8, bytes = int64_t(64) << 20;
  Kernel kernel =
      compileText(allReduceText(bytes / 2, "bf16"), ranks, algorithm, "pull");
  cpu::RunOptions options;
  options.fast = true;
  auto world = makeWorld<uint16_t>(*kernel, options);
  // Channels alternate two buffers: after two launches all memory is mapped.
  for (int warmUp = 0; warmUp < 3; ++warmUp)
    runOnce(*world);
  double seconds = 0;
  for (auto _ : state) {
    double one = runOnce(*world);
    state.SetIterationTime(one);
    seconds += one;
  }
  verify<uint16_t>(*world, ranks);
  double rate =
      copiesOf(algorithm, ranks, bytes) * state.iterations() / seconds;
  double memcpyRate = memcpyBandwidth(size_t(512) << 20);
  state.counters["GB/s"] = rate * 1e-9;
  state.counters["memcpy_GB/s"] = memcpyRate * 1e-9;
  state.counters["of_memcpy_%"] = 100 * rate / memcpyRate;
}

void manyRanks(benchmark::State &state, int64_t ranks, int64_t elements,
               llvm::StringRef algorithm, llvm::StringRef protocol) {
  Kernel kernel =
      compileText(allReduceText(elements, "f32"), ranks, algorithm, protocol);
  for (auto _ : state) {
    auto world = makeWorld<float>(*kernel, {});
    state.SetIterationTime(runOnce(*world));
    verify<float>(*world, ranks);
  }
}

} // namespace

BENCHMARK(compileRmsnorm)
    ->Arg(8)
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(compileRow)
    ->Arg(256)
    ->Arg(4096)
    ->Arg(8192)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(compileChain)
    ->Arg(16)
    ->Arg(64)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bandwidth, two_shot, "two_shot")
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bandwidth, one_shot, "one_shot")
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(manyRanks, 1024_ranks_64KiB_two_shot_ll, 1024, 16384,
                  "two_shot", "ll")
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(manyRanks, 1024_ranks_64KiB_two_shot_pull, 1024, 16384,
                  "two_shot", "pull")
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(manyRanks, 8192_ranks_1KiB_ring_ll, 8192, 256, "ring", "ll")
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
