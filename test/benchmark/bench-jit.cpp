//===- bench-jit.cpp - Compile time of GPU kernels ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures the path from text to machine code for sm_90 as groups take it
// (compileRequest): cold, from disk and from memory, for the first kernel of
// the process and for later ones, with the time of each phase. It also measures
// the host's time of a repeated collective beyond the driver's launch. No GPU
// is needed: a fake driver (test/gpu/FakeCuda.cpp) provides GPUs. Prints JSON.
//
// COMMSIR_CACHE_DIR decides whether the first compilation is cold.
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Collective.h"
#include "runtime/group/cuda/CudaGroup.h"
#include "runtime/group/cuda/GroupRequest.h"
#include "runtime/jit/Cache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include <sys/resource.h>

using namespace commsir;
using llvm::json::Object;

static llvm::cl::opt<std::string>
    kernelName("kernel", llvm::cl::init("fused"),
               llvm::cl::desc("fused: all-reduce, residual, RMSNorm, 8 x 8192 "
                              "bf16; flat: all-reduce of 64 Ki bf16; calls: "
                              "what repeated calls cost"));
static llvm::cl::opt<bool>
    noCheck("no-check", llvm::cl::desc("without proving the kernel first"));
static llvm::cl::opt<int> times("times", llvm::cl::init(5),
                                llvm::cl::desc("compilations of each kind"));
static llvm::cl::opt<bool>
    phases("phases", llvm::cl::desc("tell the phases; takes time itself"));

namespace {

[[noreturn]] void fail(const llvm::Twine &message) {
  llvm::errs() << "bench-jit: " << message << "\n";
  std::exit(1);
}

template <typename T>
T need(llvm::Expected<T> value) {
  if (!value)
    fail(llvm::toString(value.takeError()));
  return std::move(*value);
}

constexpr const char *kFused = R"(
comms.kernel @rmsnorm(%x: !comms.window<8x8192xbf16>, %residual: memref<8x8192xbf16>,
                      %weight: memref<8192xbf16>, %y: memref<8x8192xbf16>, %sum: memref<8x8192xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<8x8192xbf16>)
      outs(%y, %sum : memref<8x8192xbf16>, memref<8x8192xbf16>)
      args(%residual, %weight : memref<8x8192xbf16>, memref<8192xbf16>)
      consume (%a: tensor<8192xf32>, %r: tensor<8192xbf16>, %w: tensor<8192xbf16>) {
    %re = arith.extf %r : tensor<8192xbf16> to tensor<8192xf32>
    %we = arith.extf %w : tensor<8192xbf16> to tensor<8192xf32>
    %h = arith.addf %a, %re : tensor<8192xf32>
    %sq = arith.mulf %h, %h : tensor<8192xf32>
    %ss = comms.row_reduce sum %sq : tensor<8192xf32> -> tensor<1xf32>
    %n = arith.constant dense<8192.0> : tensor<1xf32>
    %eps = arith.constant dense<1.0e-5> : tensor<1xf32>
    %mean = arith.divf %ss, %n : tensor<1xf32>
    %me = arith.addf %mean, %eps : tensor<1xf32>
    %inv = math.rsqrt %me : tensor<1xf32>
    %scale = comms.broadcast_row %inv : tensor<1xf32> -> tensor<8192xf32>
    %norm = arith.mulf %h, %scale : tensor<8192xf32>
    %out = arith.mulf %norm, %we : tensor<8192xf32>
    %yt = arith.truncf %out : tensor<8192xf32> to tensor<8192xbf16>
    %st = arith.truncf %h : tensor<8192xf32> to tensor<8192xbf16>
    comms.yield %yt, %st : tensor<8192xbf16>, tensor<8192xbf16>
  }
  comms.return
}
)";

constexpr const char *kFlat = R"(
comms.kernel @all_reduce(%x: !comms.window<65536xbf16>, %y: memref<65536xbf16>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<65536xbf16>) outs(%y : memref<65536xbf16>)
  comms.return
}
)";

double seconds(const timeval &time) {
  return double(time.tv_sec) + double(time.tv_usec) * 1e-6;
}

/// Processor time of all threads so far.
double processorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Milliseconds of each phase, as TimeTraceScope took them down.
Object readPhases() {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::timeTraceProfilerWrite(out);
  llvm::timeTraceProfilerCleanup();
  auto parsed = need(llvm::json::parse(text));
  std::map<std::string, double> sums;
  for (const llvm::json::Value &event :
       *parsed.getAsObject()->getArray("traceEvents")) {
    const Object &one = *event.getAsObject();
    llvm::StringRef name = one.getString("name").value_or("");
    if (one.getString("ph") == "X" && name.consume_front("commsir: "))
      sums[name.str()] += double(one.getInteger("dur").value_or(0)) / 1000;
  }
  Object object;
  for (const auto &[name, sum] : sums)
    object[name] = sum;
  return object;
}

class Compiler {
public:
  /// One compilation of the source moved down by `lines`, which is another
  /// kernel for the cache and the same one for the compiler.
  Object measure(int lines) {
    group::KernelRequest request;
    request.source =
        std::string(lines, '\n') + (kernelName == "fused" ? kFused : kFlat);
    request.check = !noCheck;
    if (phases)
      llvm::timeTraceProfilerInitialize(0, "bench-jit");
    double processor = processorSeconds();
    auto start = std::chrono::steady_clock::now();
    auto kernel =
        cuda::compileRequest(request, /*ranks=*/8, device, {uint64_t(1) << 30});
    auto end = std::chrono::steady_clock::now();
    Object sample;
    sample["processor_ms"] = 1000 * (processorSeconds() - processor);
    if (!kernel)
      fail(llvm::toString(kernel.takeError()));
    sample["ms"] =
        std::chrono::duration<double, std::milli>(end - start).count();
    sample["cached"] = (*kernel)->cached();
    if (phases)
      sample["phases"] = readPhases();
    jit::LaunchShape shape = (*kernel)->shape();
    sample["kernel"] =
        llvm::formatv("{0}/{1}, {2} x {3} x {4}, {5}",
                      (*kernel)->choices().front().algorithm,
                      (*kernel)->choices().front().protocol, shape.blocks,
                      shape.cluster, shape.threads, (*kernel)->linker())
            .str();
    return sample;
  }

private:
  cuda::Device device = need(cuda::Device::open(0));
};

void printCompilations() {
  Compiler compiler;
  Object all;
  all["first"] = compiler.measure(0);
  llvm::json::Array later, disk, memory;
  for (int i = 1; i <= times; ++i)
    later.push_back(compiler.measure(i));
  for (int i = 1; i <= times; ++i) {
    jit::Cache::shared().forget();
    disk.push_back(compiler.measure(i));
  }
  for (int i = 1; i <= times; ++i)
    memory.push_back(compiler.measure(i));
  all["later"] = std::move(later);
  all["disk"] = std::move(disk);
  all["memory"] = std::move(memory);
  llvm::outs() << llvm::json::Value(std::move(all)) << "\n";
}

//===----------------------------------------------------------------------===//
// Repeated calls
//===----------------------------------------------------------------------===//

CUcontext current = nullptr;

/// Makes the driver's functions that a launch calls do nothing: what is left is
/// what CommsIR adds to them.
void silenceDriver() {
  // The one table of the process.
  auto &driver = const_cast<cuda::Driver &>(*need(cuda::Driver::get()));
  driver.CtxGetCurrent(&current);
  driver.CtxGetCurrent = [](CUcontext *now) {
    *now = current;
    return CUDA_SUCCESS;
  };
  driver.StreamGetCaptureInfo = [](CUstream, CUstreamCaptureStatus *status,
                                   auto...) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  driver.LaunchKernelEx = [](auto...) { return CUDA_SUCCESS; };
}

/// Nanoseconds of a call, the least of ten rounds.
double timeCall(llvm::function_ref<llvm::Error()> call) {
  constexpr int kCalls = 20000;
  double best = 0;
  for (int round = 0; round < 10; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i)
      if (auto error = call())
        fail(llvm::toString(std::move(error)));
    double took = std::chrono::duration<double, std::nano>(
                      std::chrono::steady_clock::now() - start)
                      .count() /
                  kCalls;
    best = round ? std::min(best, took) : took;
  }
  return best;
}

group::FusedCall makeFusedCall(void *memory, llvm::StringRef consume) {
  constexpr int64_t kRows = 8, kColumns = 8192;
  auto rows = [&](bool perRow) {
    return group::FusedCall::Operand{
        {memory, (perRow ? kRows : 1) * kColumns}, "bf16", perRow, kColumns};
  };
  group::FusedCall call;
  call.op = "all_reduce";
  call.reduction = "sum";
  call.elementType = "bf16";
  call.rows = kRows;
  call.columns = kColumns;
  call.input = {memory, kRows * kColumns};
  call.arguments = {rows(true), rows(false)};
  call.outputs = {rows(true), rows(true)};
  call.consume = consume;
  return call;
}

/// Of the region of kFused.
std::string getConsume() {
  llvm::StringRef source = kFused;
  size_t from = source.find("(%a:"), to = source.find("  }\n  comms.return");
  return source.slice(from, to).str();
}

group::CollectiveCall makeFlatCall(void *memory) {
  group::CollectiveCall call;
  call.op = "all_reduce";
  call.reduction = "sum";
  call.elementType = "bf16";
  call.input = call.output = {memory, 65536};
  return call;
}

/// kFlat over memory that is not a window.
group::KernelRequest makeFlatRequest() {
  group::KernelRequest request;
  request.source = kFlat;
  constexpr llvm::StringLiteral window = "!comms.window<";
  for (size_t at; (at = request.source.find(window)) != std::string::npos;)
    request.source.replace(at, window.size(), "memref<");
  return request;
}

/// A group of one rank, whose calls are those of any other on the host.
std::unique_ptr<group::Group> makeGroup(group::Store &store) {
  group::GroupOptions options;
  options.device = 0;
  options.windows = "plain";
  return need(group::createCudaGroup(options, store));
}

Object timeCalls(group::Group &host) {
  group::Collectives collectives(host);
  void *memory = need(host.allocateOwn(8 * 8192 * 2));
  cuda::ContextGuard guard(cuda::getDevice(host).driver(),
                           cuda::getDevice(host).context());
  std::string consume = getConsume();
  group::FusedCall fused = makeFusedCall(memory, consume);
  group::CollectiveCall flat = makeFlatCall(memory);
  group::KernelRequest request = makeFlatRequest();
  group::GroupKernel *kernel = need(host.prepare(request));
  group::Argument arguments[] = {{memory, 131072}, {memory, 131072}};
  // The first calls compile.
  if (auto error = llvm::joinErrors(collectives.run(flat, nullptr),
                                    collectives.run(fused, nullptr)))
    fail(llvm::toString(std::move(error)));

  silenceDriver();
  Object all;
  all["launch_ns"] =
      timeCall([&] { return host.launch(*kernel, arguments, nullptr); });
  all["all_reduce_ns"] =
      timeCall([&] { return collectives.run(flat, nullptr); });
  all["fused_ns"] = timeCall([&] { return collectives.run(fused, nullptr); });
  all["prepare_ns"] = timeCall([&] {
    need(host.prepare(request));
    return llvm::Error::success();
  });
  return all;
}

void printCalls() {
  llvm::SmallString<128> folder;
  if (llvm::sys::fs::createUniqueDirectory("bench-jit", folder))
    fail("no temporary folder can be made");
  auto store = need(group::createFileStore(folder));
  auto host = makeGroup(*store);
  llvm::outs() << llvm::json::Value(timeCalls(*host)) << "\n";
  llvm::outs().flush();
  llvm::sys::fs::remove_directories(folder);
  // The driver is no longer one that a group could be ended with.
  std::_Exit(0);
}

} // namespace

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "Cost of kernels for GPUs\n");
  if (kernelName == "calls")
    printCalls();
  else if (kernelName == "fused" || kernelName == "flat")
    printCompilations();
  else
    fail("--kernel is fused, flat or calls");
  return 0;
}
