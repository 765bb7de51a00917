//===- ExpandCollectives.cpp - Collectives become channel programs --------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads each collective of a kernel, chooses or obeys an algorithm and a
// protocol, lets the algorithm write its program, and says what was chosen.
//
// The choice is the pair of least estimated cost (Algorithm::cost) among those
// that support the collective. It knows a host with NVLink, not the machine at
// hand; who has measured passes the names instead.
//
// A collective orders nothing between the blocks of a rank. Where two
// collectives of a kernel share memory and cut it into different tiles, the
// pass puts a barrier of all blocks between them.
//
//===----------------------------------------------------------------------===//

#include "dialect/Spelling.h"
#include "lowering/Passes.h"
#include "lowering/analysis/Accesses.h"
#include "lowering/analysis/Attributes.h"
#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/CollectiveBuilder.h"
#include "lowering/collectives/CollectiveInfo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "comms-expand-collectives"

namespace mlir::comms {
#define GEN_PASS_DEF_EXPANDCOLLECTIVES
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

namespace {
struct Choice {
  const Algorithm *algorithm = nullptr;
  const Protocol *protocol = nullptr;
  double cost = 0;
};
} // namespace

template <typename T>
static SmallVector<StringRef> getNames(ArrayRef<const T *> all) {
  return llvm::map_to_vector(
      all, [](const T *one) -> StringRef { return one->name; });
}

/// The candidates that `name` leaves: all, or one. Emits an error when there is
/// none of that name.
template <typename T>
static FailureOr<SmallVector<const T *>>
select(Operation *op, StringRef what, StringRef name, ArrayRef<const T *> all) {
  if (name.empty())
    return SmallVector<const T *>(all);
  for (const T *one : all)
    if (one->name == name)
      return SmallVector<const T *>{one};
  op->emitOpError("asks for the unknown ")
      << what << ' ' << commsir::describeUnknown(name, getNames<T>(all));
  return failure();
}

/// Elements of which the tiles of the collective have to be a multiple.
static int64_t getTileStep(const Protocol &protocol,
                           const CollectiveInfo &problem) {
  int64_t step = 1;
  for (const WireTile &wire : problem.wires)
    for (Type type :
         {wire.elementType, problem.getPartialType(wire.elementType)})
      step = std::max(step, protocol.getTileStep(type));
  return step;
}

/// Whether all tiles of the collective can travel by `protocol`.
static bool canTravel(const Protocol &protocol, const CollectiveInfo &problem,
                      std::string &why) {
  for (const WireTile &wire : problem.wires)
    for (Type type :
         {wire.elementType, problem.getPartialType(wire.elementType)}) {
      if (!protocol.supports(type, problem.reduction.has_value(), why))
        return false;
      int64_t step = protocol.getTileStep(type);
      if (problem.flat || wire.length % step == 0)
        continue;
      why = llvm::formatv("rows of {0} elements are not a multiple of the {1} "
                          "that it moves at a time; use 'll'",
                          wire.length, step);
      return false;
    }
  return true;
}

/// Drops candidates that do not support the problem; an error says why when
/// none is left, and which would do.
template <typename T>
static LogicalResult
keepSupported(Operation *op, StringRef what, ArrayRef<const T *> all,
              SmallVector<const T *> &candidates,
              function_ref<bool(const T &, std::string &)> supports) {
  std::string why;
  StringRef first = candidates.front()->name;
  llvm::erase_if(candidates,
                 [&](const T *one) { return !supports(*one, why); });
  if (!candidates.empty())
    return success();
  SmallVector<const T *> others(all);
  std::string ignored;
  llvm::erase_if(others,
                 [&](const T *one) { return !supports(*one, ignored); });
  op->emitOpError() << what << " '" << first << "' cannot be used: " << why
                    << "; "
                    << (others.empty()
                            ? "no other can either"
                            : "usable here: " +
                                  llvm::join(getNames<T>(others), ", "));
  return failure();
}

/// The cheapest pair among the candidates.
static FailureOr<Choice> choose(CollectiveInfo &problem, StringRef algorithm,
                                StringRef protocol) {
  Operation *op = problem.op;
  auto algorithms =
      select<Algorithm>(op, "algorithm", algorithm, getAlgorithms());
  auto protocols = select<Protocol>(op, "protocol", protocol, getProtocols());
  if (failed(algorithms) || failed(protocols))
    return failure();
  auto runs = [&](const Algorithm &one, std::string &why) {
    return one.supports(problem, why);
  };
  auto travels = [&](const Protocol &one, std::string &why) {
    return (!protocol.empty() || one.cost.hop > 0) &&
           canTravel(one, problem, why);
  };
  if (failed(keepSupported<Algorithm>(op, "algorithm", getAlgorithms(),
                                      *algorithms, runs)) ||
      failed(keepSupported<Protocol>(op, "protocol", getProtocols(), *protocols,
                                     travels)))
    return failure();
  Choice best;
  for (const Algorithm *algorithm : *algorithms)
    for (const Protocol *protocol : *protocols) {
      problem.hop = problem.barrier =
          protocol->cost.hop > 0 ? protocol->cost.hop : 1.0;
      problem.overhead = 1.0;
      for (const WireTile &wire : problem.wires)
        problem.overhead =
            std::max(problem.overhead, protocol->overhead(wire.elementType));
      double cost = algorithm->cost(problem);
      LLVM_DEBUG(llvm::dbgs()
                 << op->getName() << ": " << algorithm->name << " over "
                 << protocol->name << " costs " << cost << " us\n");
      if (!best.algorithm || cost < best.cost)
        best = {algorithm, protocol, cost};
    }
  return best;
}

/// `name` where it is not empty, else what the op itself asks for.
static StringRef getWish(Operation *op, StringRef attribute, StringRef name) {
  if (!name.empty())
    return name;
  auto own = op->getAttrOfType<StringAttr>(attribute);
  return own ? own.getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// Collectives that share memory
//===----------------------------------------------------------------------===//

namespace {
/// An array that a collective touches, and which block touches what of it: two
/// collectives that agree in `tileLength` and `partElements` give every element
/// to the same block, and so need no barrier between them.
struct Footprint {
  Value memory;
  bool written;
  int64_t tileLength, partElements;

  /// `sameRole`: the same blocks run both collectives.
  bool conflicts(const Footprint &later, bool sameRole) const {
    bool sameBlocks = sameRole && tileLength > 0 &&
                      tileLength == later.tileLength &&
                      partElements == later.partElements;
    return memory == later.memory && (written || later.written) && !sameBlocks;
  }
};

/// A collective that has been expanded since the last barrier of all blocks.
struct EarlierCollective {
  StringRef name;
  RoleOp role;
  SmallVector<Footprint> footprints;
};
} // namespace

static SmallVector<Footprint> getFootprints(const CollectiveInfo &problem,
                                            bool dealsTiles) {
  SmallVector<Footprint> footprints;
  auto add = [&](const TileArray &array, bool written) {
    // Rows at run-time places, and rows that all blocks read, are nobody's.
    bool owned = dealsTiles && !problem.kind->rowsVary && !array.shared;
    footprints.push_back({getMemoryRoot(array.memory).value, written,
                          owned ? array.tileLength : 0, array.partElements});
  };
  for (const TileArray &array : problem.inputs)
    add(array, false);
  for (const TileArray &array : problem.args)
    add(array, false);
  for (const TileArray &array : problem.outputs)
    add(array, true);
  return footprints;
}

static bool conflict(ArrayRef<Footprint> earlier, ArrayRef<Footprint> later,
                     bool sameRole) {
  return llvm::any_of(earlier, [&](const Footprint &a) {
    return llvm::any_of(
        later, [&](const Footprint &b) { return a.conflicts(b, sameRole); });
  });
}

/// Makes all blocks meet before `problem` when it touches elements that another
/// block of an earlier collective touches.
static LogicalResult separate(const CollectiveInfo &problem, bool dealsTiles,
                              SmallVector<EarlierCollective> &earlier) {
  Operation *op = problem.op;
  auto role = op->getParentOfType<RoleOp>();
  SmallVector<Footprint> footprints = getFootprints(problem, dealsTiles);
  for (const EarlierCollective &before : earlier) {
    if (!conflict(before.footprints, footprints, role == before.role))
      continue;
    // Roles run concurrently: a kernel that shares memory between them
    // synchronizes.
    if (role && before.role && role != before.role)
      continue;
    if (role && before.role)
      return op->emitOpError("shares memory with the ")
             << before.name
             << " before it, but its tiles belong to other blocks, and the "
                "blocks "
             << "of a role have no barrier of their own: give both the same "
                "tiles, or leave the "
             << "role between them";
    Operation *place = role ? role.getOperation() : op;
    OpBuilder builder(place);
    Value team = TeamOp::create(builder, op->getLoc(), TeamKind::World);
    BarrierOp::create(builder, op->getLoc(), team, BarrierExtent::Grid,
                      MemoryOrder::AcqRel);
    earlier.clear();
    break;
  }
  earlier.push_back({problem.kind->name, role, std::move(footprints)});
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ExpandCollectives
    : comms::impl::ExpandCollectivesBase<ExpandCollectives> {
  using Base::Base;
  void runOnOperation() override;

private:
  LogicalResult setShape(KernelOp kernel);
  LogicalResult fix(KernelOp kernel, StringRef what, std::optional<int64_t> own,
                    int64_t wanted, function_ref<void(int64_t)> set);
  LogicalResult expand(KernelOp kernel, Operation *op, int64_t &nextChannel,
                       SmallVector<EarlierCollective> &earlier);
  void record(KernelOp kernel, const CollectiveInfo &problem,
              const Choice &choice);
};
} // namespace

/// A number that the kernel may have and the caller may ask for: both must
/// agree.
LogicalResult ExpandCollectives::fix(KernelOp kernel, StringRef what,
                                     std::optional<int64_t> own, int64_t wanted,
                                     function_ref<void(int64_t)> set) {
  if (wanted < 0)
    return kernel.emitOpError("cannot have ") << wanted << " " << what;
  if (wanted == 0)
    return success();
  if (own && *own != wanted)
    return kernel.emitOpError("is written for ")
           << *own << " " << what << ", but " << wanted
           << " are asked for: drop '" << what
           << "' from the kernel, or ask for " << *own;
  set(wanted);
  return success();
}

LogicalResult ExpandCollectives::setShape(KernelOp kernel) {
  if (failed(fix(kernel, "ranks", kernel.getRanks(), ranks,
                 [&](int64_t value) { kernel.setRanks(value); })))
    return failure();
  return fix(kernel, "blocks", kernel.getBlocks(), blocks,
             [&](int64_t value) { kernel.setBlocks(value); });
}

void ExpandCollectives::record(KernelOp kernel, const CollectiveInfo &problem,
                               const Choice &choice) {
  Builder b(&getContext());
  SmallVector<Attribute> choices;
  if (auto before = kernel->getAttrOfType<ArrayAttr>("comms.choices"))
    llvm::append_range(choices, before);
  choices.push_back(b.getDictionaryAttr({
      b.getNamedAttr("op", b.getStringAttr(problem.kind->name)),
      b.getNamedAttr("algorithm", b.getStringAttr(choice.algorithm->name)),
      b.getNamedAttr("protocol", b.getStringAttr(choice.protocol->name)),
      b.getNamedAttr("tile", b.getI64IntegerAttr(problem.tileSize)),
      b.getNamedAttr("tiles", b.getI64IntegerAttr(problem.tiles)),
  }));
  kernel->setAttr("comms.choices", b.getArrayAttr(choices));
  remark::passed(problem.op->getLoc(),
                 remark::RemarkOpts::name(problem.kind->name)
                     .category("comms-expand-collectives"))
      << llvm::formatv("{0} over {1}: {2} tiles of {3} for each part of {4} "
                       "bytes, {5} ranks, "
                       "estimated {6:f1} us",
                       choice.algorithm->name, choice.protocol->name,
                       problem.tiles, problem.tileSize,
                       int64_t(problem.partBytes()), problem.ranks, choice.cost)
             .str();
}

/// Marks the arguments of the kernel that `consume` shares among all rows and
/// does not use.
static void markPrefetched(KernelOp kernel, const CollectiveInfo &problem) {
  if (!problem.consume)
    return;
  ArrayRef<BlockArgument> tiles = problem.consume->getArguments();
  for (auto [array, tile] :
       llvm::zip_equal(problem.args, tiles.take_back(problem.args.size()))) {
    auto argument = dyn_cast<BlockArgument>(array.memory);
    auto type = dyn_cast<MemRefType>(array.memory.getType());
    if (tile.use_empty() && argument && type && type.getRank() == 1 &&
        argument.getOwner() == &kernel.getBody().front())
      kernel.setArgAttr(argument.getArgNumber(), target::kPrefetchAttr,
                        UnitAttr::get(kernel.getContext()));
  }
}

/// Vectors of 16 bytes that a thread has on their way to it: of 1024 threads
/// 128 KiB, which hide a loaded memory's latency where few CTAs are to keep
/// links busy. They are half of the registers that such threads have.
static constexpr int64_t batchLoadsOfGpu = 8;

LogicalResult
ExpandCollectives::expand(KernelOp kernel, Operation *op, int64_t &nextChannel,
                          SmallVector<EarlierCollective> &earlier) {
  auto problem = readCollective(op);
  if (failed(problem))
    return failure();
  auto choice = choose(*problem, getWish(op, "algorithm", algorithm),
                       getWish(op, "protocol", protocol));
  if (failed(choice))
    return failure();
  int64_t pieces =
      choice->algorithm->pieces ? choice->algorithm->pieces(*problem) : 1;
  int64_t wantedSize = tileSize;
  if (problem->batchLoads == 0)
    problem->batchLoads = threads > 1 ? batchLoadsOfGpu : 1;
  if (tileSize == 0 && threads > 1)
    wantedSize = getTileSizeFor(*problem, threads * cluster, pieces);
  chooseTiles(*problem, pieces, wantedSize,
              getTileStep(*choice->protocol, *problem));
  constexpr int64_t maxSlots = int64_t(1) << 40;
  if (problem->tiles > maxSlots / problem->ranks)
    return op->emitOpError("is cut into ")
           << problem->tiles << " tiles for each of " << problem->ranks
           << " ranks: more than a channel can number; use larger rows or "
              "fewer ranks";
  record(kernel, *problem, *choice);
  markPrefetched(kernel, *problem);
  if (failed(separate(*problem, choice->algorithm->dealsTiles, earlier)))
    return failure();
  // Nothing travels when the arrays are empty.
  if (problem->tiles > 0) {
    OpBuilder builder(op);
    CollectiveBuilder collective(builder, *problem, choice->protocol->name,
                                 nextChannel);
    if (failed(choice->algorithm->expand(collective)))
      return failure();
  }
  op->erase();
  return success();
}

void ExpandCollectives::runOnOperation() {
  KernelOp kernel = getOperation();
  if (threads < 0 || threads > 1024 || cluster < 1 || cluster > 16) {
    kernel.emitError() << "comms-expand-collectives: threads = "
                       << threads.getValue()
                       << ", cluster = " << cluster.getValue()
                       << " is not a block: a CTA has at most 1024 threads, a "
                          "cluster at most 16 CTAs";
    return signalPassFailure();
  }
  if (failed(setShape(kernel)))
    return signalPassFailure();
  SmallVector<Operation *> collectives;
  int64_t nextChannel = 0;
  kernel.walk([&](Operation *op) {
    if (getCollectiveKind(op))
      collectives.push_back(op);
    // Numbers that are out of the way cannot be met by counting.
    auto channel = dyn_cast<ChannelOp>(op);
    if (channel && static_cast<int64_t>(channel.getId()) < (int64_t(1) << 31))
      nextChannel = std::max<int64_t>(nextChannel, channel.getId() + 1);
  });
  SmallVector<EarlierCollective> earlier;
  for (Operation *op : collectives)
    if (failed(expand(kernel, op, nextChannel, earlier)))
      return signalPassFailure();
  // A name that nobody knows is told of where no collective asks for it, too.
  if (failed(
          select<Algorithm>(kernel, "algorithm", algorithm, getAlgorithms())) ||
      failed(select<Protocol>(kernel, "protocol", protocol, getProtocols())))
    signalPassFailure();
}
