//===- HoistPolls.cpp - Loads and polls in flight together ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A poll may move up to the poll before it, across computation, plain loads,
// and plain stores to memory that it does not read: nothing that a peer could
// wait for lies between. It may not move across what peers see (stores to them,
// signals, barriers), for the peer might wait for that before it sends.
// Clearing of slots that nobody waits for in this launch (`comms.stale`) moves
// down behind the polls.
//
// The wait for the start of a cluster's other CTAs moves down to where threads
// meet first. A plain load of a window may move up across what is sent through
// a channel, whose memory no argument of the user shares; one of what only this
// rank uses moves, where it stands behind a wait for what is received, in front
// of that, but no further: what is sent comes first.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"
#include "lowering/nvvm/MovableOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

static bool isPoll(Operation *op) {
  return isa<PacketLoadOp, PoisonLoadOp>(op);
}

static Value getPolled(Operation *poll) {
  if (auto packet = dyn_cast<PacketLoadOp>(poll))
    return packet.getMemref();
  return cast<PoisonLoadOp>(poll).getMemref();
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Words that loads may hold longer than where they stand, for the registers
/// that they take.
static constexpr int64_t maxHeldWords = 48;

/// The argument of `kernel` that a part of a window belongs to; null: none.
static BlockArgument getArgument(Value memref) {
  if (Value root = getRoot(memref))
    return dyn_cast<BlockArgument>(root);
  for (int depth = 0; depth < 64; ++depth) {
    Operation *op = memref.getDefiningOp();
    if (isa_and_nonnull<PeerOp>(op))
      return dyn_cast<BlockArgument>(op->getOperand(0));
    if (!isa_and_nonnull<memref::ReinterpretCastOp, memref::SubViewOp,
                         memref::CastOp>(op))
      return {};
    memref = op->getOperand(0);
  }
  return {};
}

/// Memory of a channel that `op` alone touches, in a packet, in poison or in
/// clearing it; null: it does something else.
static Value getTouchedChannel(Operation *op) {
  if (isPoll(op))
    return getPolled(op);
  if (auto store = dyn_cast<PacketStoreOp>(op))
    return store.getMemref();
  if (auto store = dyn_cast<PoisonStoreOp>(op))
    return store.getMemref();
  if (auto fill = dyn_cast<PoisonFillOp>(op))
    return fill.getMemref();
  return {};
}

static bool isHidden(KernelOp kernel, Value memref) {
  BlockArgument argument = getArgument(memref);
  return argument && argument.getOwner() == &kernel.getBody().front() &&
         kernel.getArgAttr(argument.getArgNumber(), "comms.hidden");
}

/// The kernel's argument that a load reads, where it is the user's; null else.
static BlockArgument getLoaded(KernelOp kernel, Operation *op) {
  Value memref;
  if (auto load = dyn_cast<vector::LoadOp>(op))
    memref = load.getBase();
  else if (auto load = dyn_cast<TileLoadOp>(op))
    memref = load.getMemref();
  if (!memref || isHidden(kernel, memref))
    return {};
  Value root = getRoot(memref);
  auto argument = root ? dyn_cast<BlockArgument>(root) : BlockArgument();
  bool isKernels = argument && argument.getOwner() == &kernel.getBody().front();
  return isKernels ? argument : BlockArgument();
}

namespace {
/// What loads may be moved in front of: the first ops, since something that
/// stops loads, that touch a channel and that wait for what is received.
struct HoistPoint {
  Operation *first = nullptr, *wait = nullptr;
  int64_t heldWords = 0;
};
} // namespace

/// Notes that `op` is to be crossed; false: no load may cross it.
static bool cross(KernelOp kernel, Operation *op, HoistPoint &front) {
  bool crosses = true, touches = false, waits = false;
  op->walk([&](Operation *inner) {
    Value channel = getTouchedChannel(inner);
    touches |= bool(channel);
    waits |= isPoll(inner);
    bool isControl = isa<scf::IfOp, scf::ForOp, scf::YieldOp>(inner);
    crosses &= channel ? isHidden(kernel, channel)
                       : isQuiet(inner) || isPlainLoad(inner) || isControl;
  });
  if (crosses && touches && !front.first)
    front.first = op;
  if (crosses && waits && !front.wait)
    front.wait = op;
  return crosses;
}

static void hoistLoad(HoistPoint &front, Operation *load,
                      BlockArgument argument) {
  // What is sent is loaded first; what only this rank uses need not be there
  // before the first wait, and would take the way to memory from it.
  bool isPeers = isa<WindowType>(argument.getType());
  auto type = dyn_cast<VectorType>(load->getResult(0).getType());
  Operation *place = isPeers ? front.first : front.wait;
  if (!place || !type || (front.wait && isPeers))
    return;
  int64_t words = llvm::divideCeil(
      type.getNumElements() * type.getElementTypeBitWidth(), 32);
  SmallVector<Operation *> needed;
  if (front.heldWords + words > maxHeldWords ||
      !collectNeeded(load, place, needed))
    return;
  front.heldWords += words;
  for (Operation *op : needed)
    op->moveBefore(place);
  load->moveBefore(place);
}

static void hoistLoadsIn(KernelOp kernel, Block &block) {
  HoistPoint front;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (BlockArgument argument = getLoaded(kernel, &op))
      hoistLoad(front, &op, argument);
    else if (!cross(kernel, &op, front))
      front = HoistPoint();
  }
}

//===----------------------------------------------------------------------===//
// The start of a cluster
//===----------------------------------------------------------------------===//

/// Whether no thread meets another in `op`, nor reaches another CTA's memory.
static bool isSingleThreaded(Operation *op) {
  return !op->walk([](Operation *inner) {
              bool isKnown = isQuiet(inner) || isPlainLoad(inner) ||
                             getStored(inner) || getTouchedChannel(inner) ||
                             isa<scf::IfOp, scf::ForOp, scf::YieldOp>(inner);
              return isKnown ? WalkResult::advance() : WalkResult::interrupt();
            }).wasInterrupted();
}

/// The wait for all CTAs to have begun, which nothing but their shared memory
/// needs. Those that order memory have an arrival that does.
static void sinkClusterWait(Block &entry) {
  for (Operation &op : entry) {
    if (isa<NVVM::ClusterArriveOp>(op))
      return;
    if (!isa<NVVM::ClusterWaitOp>(op))
      continue;
    Operation *place = op.getNextNode();
    while (!place->hasTrait<OpTrait::IsTerminator>() && isSingleThreaded(place))
      place = place->getNextNode();
    op.moveBefore(place);
    return;
  }
}

//===----------------------------------------------------------------------===//
// Polls
//===----------------------------------------------------------------------===//

namespace {
/// Polls of one block that are next to each other.
struct Group {
  Operation *first = nullptr, *last = nullptr;
  SmallVector<Value> stored; // Memory that was written since `last`.
};
} // namespace

/// Moves `poll` and what it needs up to the group; false: it cannot.
static bool join(Group &group, Operation *poll) {
  Value root = getRoot(getPolled(poll));
  for (Value stored : group.stored)
    if (!root || stored == root)
      return false;
  SmallVector<Operation *> order;
  if (!collectNeeded(poll, group.first, order))
    return false;
  for (Operation *op : order)
    op->moveBefore(group.first);
  poll->moveAfter(group.last);
  group.last = poll;
  return true;
}

static void hoistIn(Block &block) {
  Group group;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isPoll(&op)) {
      if (!group.first || !join(group, &op)) {
        group = Group();
        group.first = group.last = &op;
      }
      continue;
    }
    if (isQuiet(&op) || isPlainLoad(&op) || isStaleFill(&op))
      continue;
    Value stored = getStored(&op);
    Value root = stored ? getRoot(stored) : Value();
    if (root)
      group.stored.push_back(root);
    else
      group = Group();
  }
}

/// Fills move down to the next op that synchronizes or holds other ops, or to
/// the block's end.
static void sinkFillsIn(Block &block) {
  SmallVector<Operation *> fills;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isStaleFill(&op)) {
      fills.push_back(&op);
      continue;
    }
    if (isQuiet(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (isPoll(&op) || isPlainLoad(&op) || getStored(&op) ||
        isa<PoisonStoreOp, PacketStoreOp>(op))
      continue;
    for (Operation *fill : fills)
      fill->moveBefore(&op);
    fills.clear();
  }
}

static SmallVector<Block *> getBlocks(KernelOp kernel) {
  SmallVector<Block *> blocks;
  kernel.getBody().walk([&](Block *block) { blocks.push_back(block); });
  return blocks;
}

void nvvm::sinkFills(KernelOp kernel) {
  for (Block *block : getBlocks(kernel))
    sinkFillsIn(*block);
}

void nvvm::hoistPolls(KernelOp kernel) {
  sinkFills(kernel);
  sinkClusterWait(kernel.getBody().front());
  for (Block *block : getBlocks(kernel)) {
    hoistLoadsIn(kernel, *block);
    hoistIn(*block);
  }
}
