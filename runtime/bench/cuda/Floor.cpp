//===- Floor.cpp - What no collective on this host can beat ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/cuda/Floor.h"

#include <algorithm>

using namespace commsir;
using namespace commsir::tune;

/// From sm_90 on the next kernel of a stream starts while this one ends, as our
/// kernels do.
static constexpr char kOverlapHead[] = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry floor_empty()
{
  griddepcontrol.launch_dependents;
  griddepcontrol.wait;
  ret;
}
)";
static constexpr char kPlainHead[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry floor_empty()
{
  ret;
}
)";

/// Every wait is bounded: a GPU must not hang on a measurement.
static constexpr char kPtx[] = R"(

// A flag goes to the peer and back, base+1 ... base+rounds; `first` starts.
.visible .entry floor_hop(.param .u64 p_own, .param .u64 p_peer,
                          .param .u32 p_base, .param .u32 p_rounds,
                          .param .u32 p_first)
{
  .reg .u64 %own, %peer;
  .reg .u32 %i, %last, %first, %seen, %spins;
  .reg .pred %is;
  ld.param.u64 %own, [p_own];
  ld.param.u64 %peer, [p_peer];
  ld.param.u32 %i, [p_base];
  ld.param.u32 %last, [p_rounds];
  ld.param.u32 %first, [p_first];
  add.u32 %last, %last, %i;
ROUND:
  add.u32 %i, %i, 1;
  setp.eq.u32 %is, %first, 0;
  @%is bra WAIT;
  st.relaxed.sys.global.u32 [%peer], %i;
WAIT:
  mov.u32 %spins, 0;
POLL:
  ld.relaxed.sys.global.u32 %seen, [%own];
  setp.ge.u32 %is, %seen, %i;
  @%is bra SEEN;
  add.u32 %spins, %spins, 1;
  setp.lt.u32 %is, %spins, 4000000;
  @%is bra POLL;
  ret;
SEEN:
  setp.ne.u32 %is, %first, 0;
  @%is bra NEXT;
  st.relaxed.sys.global.u32 [%peer], %i;
NEXT:
  setp.lt.u32 %is, %i, %last;
  @%is bra ROUND;
  ret;
}

// Fills `vectors` times 16 bytes at each of the `count` addresses of a table;
// CTA b writes to address b mod count.
.visible .entry floor_push(.param .u64 p_table, .param .u32 p_count,
                           .param .u64 p_vectors)
{
  .reg .u64 %table, %to, %i, %vectors, %stride, %at, %end;
  .reg .u32 %count, %cta, %ctas, %group, %place, %t, %nt, %zero;
  .reg .pred %is;
  ld.param.u64 %table, [p_table];
  ld.param.u32 %count, [p_count];
  ld.param.u64 %vectors, [p_vectors];
  mov.u32 %cta, %ctaid.x;
  mov.u32 %ctas, %nctaid.x;
  mov.u32 %t, %tid.x;
  mov.u32 %nt, %ntid.x;
  rem.u32 %place, %cta, %count;
  div.u32 %group, %cta, %count;
  div.u32 %ctas, %ctas, %count;
  mul.wide.u32 %at, %place, 8;
  add.u64 %at, %at, %table;
  ld.global.u64 %to, [%at];
  mad.lo.u32 %group, %group, %nt, %t;
  cvt.u64.u32 %i, %group;
  mul.wide.u32 %stride, %ctas, %nt;
  mov.u32 %zero, 0;
PUSH:
  setp.ge.u64 %is, %i, %vectors;
  @%is bra DONE;
  mad.lo.u64 %at, %i, 16, %to;
  st.global.v4.u32 [%at], {%zero, %zero, %zero, %zero};
  add.u64 %i, %i, %stride;
  bra PUSH;
DONE:
  ret;
}
)";

namespace {

constexpr int64_t kCalls = 60;
constexpr int kTurns = 7;
constexpr uint32_t kRounds = 200;
constexpr unsigned kThreads = 1024;
/// To each peer.
constexpr size_t kPushBytes = size_t(32) << 20;

/// The kernels and memory of one rank.
struct Gauge {
  CUmodule module = nullptr;
  CUfunction empty = nullptr, hop = nullptr, push = nullptr;
  std::unique_ptr<Graph> graph;
  /// A flag, then a part for each source.
  std::unique_ptr<cuda::Window> window;
  std::optional<cuda::Memory> table;
};

/// Bytes before the parts.
constexpr size_t kFlagBytes = 256;

/// Whether the GPU has programmatic dependent launch: sm_90 and later.
bool overlaps(const Rank &rank) {
  int number = 0;
  llvm::StringRef chip = rank.device->getChip();
  return chip.consume_front("sm_") && !chip.consumeInteger(10, number) &&
         number >= 90;
}

class Gauges {
public:
  explicit Gauges(GpuRanks &machine) : machine(machine), all(machine.size()) {}
  ~Gauges();

  llvm::Error make();
  llvm::Expected<double> measureLaunch();
  llvm::Expected<double> measureHop();
  llvm::Expected<double> measureBandwidth();

private:
  llvm::Error load(Rank &rank, Gauge &gauge);
  llvm::Error makeTable(Rank &rank, int number, Gauge &gauge);
  llvm::Error launch(Rank &rank, CUfunction function, unsigned ctas,
                     unsigned threads, void **arguments);
  llvm::Error launchHop(Rank &rank, int number, uint32_t base);
  llvm::Error launchPush(Rank &rank, int number);

  /// The least time of several turns.
  llvm::Expected<double>
  least(const std::function<llvm::Error(Rank &, int, int turn)> &enqueue);

  GpuRanks &machine;
  std::vector<Gauge> all;
};

Gauges::~Gauges() {
  if (machine.isStuck()) {
    // What a GPU may still use stays.
    new std::vector<Gauge>(std::move(all));
    return;
  }
  llvm::consumeError(machine.together("freeing", [this](Rank &rank, int r) {
    Gauge &gauge = all[r];
    gauge.graph.reset();
    gauge.table.reset();
    gauge.window.reset();
    if (gauge.module)
      rank.driver().ModuleUnload(gauge.module);
    return llvm::Error::success();
  }));
}

llvm::Error Gauges::load(Rank &rank, Gauge &gauge) {
  const cuda::Driver &cu = rank.driver();
  std::string ptx = overlaps(rank) ? kOverlapHead : kPlainHead;
  ptx += kPtx;
  if (auto error = cu.check(
          cu.ModuleLoadDataEx(&gauge.module, ptx.c_str(), 0, nullptr, nullptr),
          "loading the kernels that measure the floor"))
    return error;
  for (auto [function, name] : {std::pair(&gauge.empty, "floor_empty"),
                                {&gauge.hop, "floor_hop"},
                                {&gauge.push, "floor_push"}})
    if (auto error =
            cu.check(cu.ModuleGetFunction(function, gauge.module, name), name))
      return error;
  return llvm::Error::success();
}

llvm::Error Gauges::makeTable(Rank &rank, int number, Gauge &gauge) {
  int peers = machine.size() - 1;
  auto table = cuda::Memory::allocate(*rank.device, sizeof(uint64_t) * peers);
  if (!table)
    return table.takeError();
  std::vector<uint64_t> addresses;
  for (int k = 1; k <= peers; ++k) {
    CUdeviceptr part = gauge.window->parts()[(number + k) % machine.size()];
    if (!part)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "a peer is out of load/store reach");
    addresses.push_back(part + kFlagBytes + size_t(number) * kPushBytes);
  }
  gauge.table.emplace(std::move(*table));
  const cuda::Driver &cu = rank.driver();
  return cu.check(cu.MemcpyHtoD(gauge.table->address(), addresses.data(),
                                sizeof(uint64_t) * peers),
                  "cuMemcpyHtoD");
}

llvm::Error Gauges::make() {
  return machine.together(
      "preparing to measure the floor",
      [this](Rank &rank, int number) -> llvm::Error {
        Gauge &gauge = all[number];
        if (auto error = load(rank, gauge))
          return error;
        auto window = rank.communicator->allocate(
            kFlagBytes + kPushBytes * size_t(machine.size()));
        if (!window)
          return window.takeError();
        gauge.window = std::move(*window);
        const cuda::Driver &cu = rank.driver();
        if (auto error = cu.check(
                cu.MemsetD8(gauge.window->base(), 0, kFlagBytes), "cuMemset"))
          return error;
        if (auto error = cu.check(cu.CtxSynchronize(), "cuMemset"))
          return error;
        if (auto error = makeTable(rank, number, gauge))
          return error;
        auto graph = Graph::capture(rank, kCalls, [&] {
          return launch(rank, gauge.empty, 1, 32, nullptr);
        });
        if (!graph)
          return graph.takeError();
        gauge.graph = std::move(*graph);
        return llvm::Error::success();
      });
}

llvm::Error Gauges::launch(Rank &rank, CUfunction function, unsigned ctas,
                           unsigned threads, void **arguments) {
  CUlaunchConfig config{};
  config.gridDimX = ctas;
  config.blockDimX = threads;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = rank.stream;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  if (!arguments && overlaps(rank)) { // The empty kernel.
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  const cuda::Driver &cu = rank.driver();
  return cu.check(cu.LaunchKernelEx(&config, function, arguments, nullptr),
                  "cuLaunchKernelEx");
}

llvm::Error Gauges::launchHop(Rank &rank, int number, uint32_t base) {
  if (number > 1)
    return llvm::Error::success();
  Gauge &gauge = all[number];
  CUdeviceptr own = gauge.window->base();
  CUdeviceptr peer = gauge.window->parts()[1 - number];
  uint32_t rounds = kRounds, first = number == 0;
  void *arguments[] = {&own, &peer, &base, &rounds, &first};
  return launch(rank, gauge.hop, 1, 1, arguments);
}

llvm::Error Gauges::launchPush(Rank &rank, int number) {
  Gauge &gauge = all[number];
  CUdeviceptr table = gauge.table->address();
  uint32_t peers = uint32_t(machine.size() - 1);
  uint64_t vectors = kPushBytes / 16;
  unsigned ctas =
      std::max(1u, unsigned(rank.device->getMultiprocessors()) / peers) * peers;
  void *arguments[] = {&table, &peers, &vectors};
  return launch(rank, gauge.push, ctas, kThreads, arguments);
}

llvm::Expected<double> Gauges::least(
    const std::function<llvm::Error(Rank &, int, int turn)> &enqueue) {
  double best = 0;
  for (int turn = 0; turn <= kTurns; ++turn) {
    auto time = machine.time([enqueue, turn](Rank &rank, int number) {
      return enqueue(rank, number, turn);
    });
    if (!time)
      return time.takeError();
    // The first turn warms up.
    if (turn == 1 || (turn > 1 && *time < best))
      best = *time;
  }
  return best;
}

llvm::Expected<double> Gauges::measureLaunch() {
  auto time = least(
      [this](Rank &, int number, int) { return all[number].graph->launch(); });
  if (!time)
    return time.takeError();
  return *time / double(kCalls);
}

llvm::Expected<double> Gauges::measureHop() {
  auto time = least([this](Rank &rank, int number, int turn) {
    return launchHop(rank, number, uint32_t(turn) * kRounds);
  });
  if (!time)
    return time.takeError();
  return *time / (2.0 * kRounds);
}

llvm::Expected<double> Gauges::measureBandwidth() {
  auto time = least(
      [this](Rank &rank, int number, int) { return launchPush(rank, number); });
  if (!time)
    return time.takeError();
  double bytes = double(kPushBytes) * double(machine.size() - 1);
  return bytes / (*time * 1000);
}

} // namespace

llvm::Expected<Floor> commsir::tune::measureFloor(GpuRanks &machine) {
  Gauges gauges(machine);
  if (auto error = gauges.make())
    return error;
  Floor floor;
  for (auto [value, measure] :
       {std::pair(&floor.launch, &Gauges::measureLaunch),
        {&floor.hop, &Gauges::measureHop},
        {&floor.bandwidth, &Gauges::measureBandwidth}}) {
    auto measured = (gauges.*measure)();
    if (!measured)
      return measured.takeError();
    *value = *measured;
  }
  return floor;
}
