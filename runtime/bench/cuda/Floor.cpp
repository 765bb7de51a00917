//===- Floor.cpp - The lower bound on this host ---------------------------===//
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
struct RankProbe {
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

class FloorProbes {
public:
  explicit FloorProbes(GpuRanks &machine)
      : machine(machine), all(machine.size()) {}
  ~FloorProbes();

  llvm::Error make();
  llvm::Expected<double> measureLaunch();
  llvm::Expected<double> measureHop();
  llvm::Expected<double> measureBandwidth();

private:
  llvm::Error load(Rank &rank, RankProbe &probe);
  llvm::Error makeTable(Rank &rank, int number, RankProbe &probe);
  llvm::Error launch(Rank &rank, CUfunction function, unsigned ctas,
                     unsigned threads, void **arguments);
  llvm::Error launchHop(Rank &rank, int number, uint32_t base);
  llvm::Error launchPush(Rank &rank, int number);

  /// The least time of several turns.
  llvm::Expected<double>
  least(const std::function<llvm::Error(Rank &, int, int turn)> &enqueue);

  GpuRanks &machine;
  std::vector<RankProbe> all;
};

FloorProbes::~FloorProbes() {
  if (machine.isStuck()) {
    // What a GPU may still use stays.
    new std::vector<RankProbe>(std::move(all));
    return;
  }
  llvm::consumeError(machine.together("freeing", [this](Rank &rank, int r) {
    RankProbe &probe = all[r];
    probe.graph.reset();
    probe.table.reset();
    probe.window.reset();
    if (probe.module)
      rank.driver().ModuleUnload(probe.module);
    return llvm::Error::success();
  }));
}

llvm::Error FloorProbes::load(Rank &rank, RankProbe &probe) {
  const cuda::Driver &cu = rank.driver();
  std::string ptx = overlaps(rank) ? kOverlapHead : kPlainHead;
  ptx += kPtx;
  if (auto error = cu.check(
          cu.ModuleLoadDataEx(&probe.module, ptx.c_str(), 0, nullptr, nullptr),
          "loading the kernels that measure the floor"))
    return error;
  for (auto [function, name] : {std::pair(&probe.empty, "floor_empty"),
                                {&probe.hop, "floor_hop"},
                                {&probe.push, "floor_push"}})
    if (auto error =
            cu.check(cu.ModuleGetFunction(function, probe.module, name), name))
      return error;
  return llvm::Error::success();
}

llvm::Error FloorProbes::makeTable(Rank &rank, int number, RankProbe &probe) {
  int peers = machine.size() - 1;
  auto table = cuda::Memory::allocate(*rank.device, sizeof(uint64_t) * peers);
  if (!table)
    return table.takeError();
  std::vector<uint64_t> addresses;
  for (int k = 1; k <= peers; ++k) {
    CUdeviceptr part = probe.window->parts()[(number + k) % machine.size()];
    if (!part)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "a peer is out of load/store reach");
    addresses.push_back(part + kFlagBytes + size_t(number) * kPushBytes);
  }
  probe.table.emplace(std::move(*table));
  const cuda::Driver &cu = rank.driver();
  return cu.check(cu.MemcpyHtoD(probe.table->address(), addresses.data(),
                                sizeof(uint64_t) * peers),
                  "cuMemcpyHtoD");
}

llvm::Error FloorProbes::make() {
  return machine.together(
      "preparing to measure the floor",
      [this](Rank &rank, int number) -> llvm::Error {
        RankProbe &probe = all[number];
        if (auto error = load(rank, probe))
          return error;
        auto window = rank.communicator->allocate(
            kFlagBytes + kPushBytes * size_t(machine.size()));
        if (!window)
          return window.takeError();
        probe.window = std::move(*window);
        const cuda::Driver &cu = rank.driver();
        if (auto error = cu.check(
                cu.MemsetD8(probe.window->base(), 0, kFlagBytes), "cuMemset"))
          return error;
        if (auto error = cu.check(cu.CtxSynchronize(), "cuMemset"))
          return error;
        if (auto error = makeTable(rank, number, probe))
          return error;
        auto graph = Graph::capture(rank, kCalls, [&] {
          return launch(rank, probe.empty, 1, 32, nullptr);
        });
        if (!graph)
          return graph.takeError();
        probe.graph = std::move(*graph);
        return llvm::Error::success();
      });
}

llvm::Error FloorProbes::launch(Rank &rank, CUfunction function, unsigned ctas,
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

llvm::Error FloorProbes::launchHop(Rank &rank, int number, uint32_t base) {
  if (number > 1)
    return llvm::Error::success();
  RankProbe &probe = all[number];
  CUdeviceptr own = probe.window->base();
  CUdeviceptr peer = probe.window->parts()[1 - number];
  uint32_t rounds = kRounds, first = number == 0;
  void *arguments[] = {&own, &peer, &base, &rounds, &first};
  return launch(rank, probe.hop, 1, 1, arguments);
}

llvm::Error FloorProbes::launchPush(Rank &rank, int number) {
  RankProbe &probe = all[number];
  CUdeviceptr table = probe.table->address();
  uint32_t peers = uint32_t(machine.size() - 1);
  uint64_t vectors = kPushBytes / 16;
  unsigned ctas =
      std::max(1u, unsigned(rank.device->getMultiprocessors()) / peers) * peers;
  void *arguments[] = {&table, &peers, &vectors};
  return launch(rank, probe.push, ctas, kThreads, arguments);
}

llvm::Expected<double> FloorProbes::least(
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

llvm::Expected<double> FloorProbes::measureLaunch() {
  auto time = least(
      [this](Rank &, int number, int) { return all[number].graph->launch(); });
  if (!time)
    return time.takeError();
  return *time / double(kCalls);
}

llvm::Expected<double> FloorProbes::measureHop() {
  auto time = least([this](Rank &rank, int number, int turn) {
    return launchHop(rank, number, uint32_t(turn) * kRounds);
  });
  if (!time)
    return time.takeError();
  return *time / (2.0 * kRounds);
}

llvm::Expected<double> FloorProbes::measureBandwidth() {
  auto time = least(
      [this](Rank &rank, int number, int) { return launchPush(rank, number); });
  if (!time)
    return time.takeError();
  double bytes = double(kPushBytes) * double(machine.size() - 1);
  return bytes / (*time * 1000);
}

} // namespace

llvm::Expected<Floor> commsir::tune::measureFloor(GpuRanks &machine) {
  FloorProbes probes(machine);
  if (auto error = probes.make())
    return error;
  Floor floor;
  for (auto [value, measure] :
       {std::pair(&floor.launch, &FloorProbes::measureLaunch),
        {&floor.hop, &FloorProbes::measureHop},
        {&floor.bandwidth, &FloorProbes::measureBandwidth}}) {
    auto measured = (probes.*measure)();
    if (!measured)
      return measured.takeError();
    *value = *measured;
  }
  return floor;
}
