//===- Stage.cpp - Runs of tile ops that become one loop ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/tiles/Stage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::tiles;

std::optional<int64_t> tiles::getTileLength(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 1 || tensor.isDynamicDim(0))
    return std::nullopt;
  return tensor.getDimSize(0);
}

bool tiles::isLongTile(Type type) {
  std::optional<int64_t> length = getTileLength(type);
  return length && *length != 1;
}

bool tiles::isRecomputed(Operation *op) {
  if (isa<SplatOp, BroadcastRowOp, IotaOp>(op))
    return true;
  auto constant = dyn_cast<arith::ConstantOp>(op);
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

bool tiles::touchesTiles(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return op
      ->walk([&](Operation *inner) {
        bool found = llvm::any_of(inner->getOperandTypes(), isTensor) ||
                     llvm::any_of(inner->getResultTypes(), isTensor);
        for (Region &region : inner->getRegions())
          for (Block &block : region)
            found |= llvm::any_of(block.getArgumentTypes(), isTensor);
        return found ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

SmallVector<Copy> tiles::getCopies(Operation *user, ValueRange sources,
                                   ValueRange targets) {
  SmallVector<Copy> copies;
  for (auto [source, target] : llvm::zip_equal(sources, targets))
    if (isLongTile(source.getType()))
      copies.push_back({source, target, user});
  return copies;
}

//===----------------------------------------------------------------------===//
// May two accesses share a loop?
//===----------------------------------------------------------------------===//

SmallVector<Touch, 2> tiles::getTouches(Operation *op) {
  SmallVector<Access> accesses;
  getAccesses(op, accesses);
  SmallVector<Touch, 2> touches;
  for (const Access &access : accesses)
    touches.push_back({access, access.getRoot()});
  return touches;
}

static bool areSame(Value a, Value b) {
  if (a == b)
    return true;
  if (!a || !b)
    return false;
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
  return x && y && *x == *y;
}

/// Whether two values are constants that differ.
static bool areDistinct(Value a, Value b) {
  if (!a || !b)
    return false;
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
  return x && y && *x != *y;
}

/// Whether one offset names elements at the same place in both: they are the
/// same memory, or whole parts of one window, be it of one rank or of two.
static bool isSameView(const Touch &a, const Touch &b) {
  if (a.access.memory == b.access.memory)
    return true;
  Operation *x = a.access.memory.getDefiningOp(),
            *y = b.access.memory.getDefiningOp();
  return isa_and_nonnull<LocalOp, PeerOp>(x) &&
         isa_and_nonnull<LocalOp, PeerOp>(y) && a.root.value == b.root.value;
}

bool tiles::areDisjoint(const Touch &a, const Touch &b) {
  if (a.root.kind == MemoryRoot::Unknown || b.root.kind == MemoryRoot::Unknown)
    return false;
  if (a.root.value != b.root.value)
    return true;
  // Two peers of one team hold two parts.
  if (a.root.team && a.root.team == b.root.team &&
      areDistinct(a.root.peer, b.root.peer))
    return true;
  if (!isSameView(a, b) || a.access.inLines != b.access.inLines)
    return false;
  std::optional<int64_t> x = a.access.getConstantOffset(),
                         y = b.access.getConstantOffset();
  std::optional<int64_t> m = a.access.getMaximumCount(),
                         n = b.access.getMaximumCount();
  if (!x || !y || !m || !n)
    return false;
  return *x + *m <= *y || *y + *n <= *x;
}

bool tiles::areAlike(const Touch &a, const Touch &b) {
  return isSameView(a, b) && a.access.inLines == b.access.inLines &&
         a.access.tileBits == b.access.tileBits &&
         a.access.unitBits == b.access.unitBits;
}

bool tiles::isElementwise(const Touch &a, const Touch &b) {
  return areAlike(a, b) && areSame(a.access.offset, b.access.offset);
}

/// Rules for packets and poison: what they order stays ordered.
static bool breaksOrder(const Touch &first, const Touch &second) {
  // A wait must not hold back what a peer may need before it answers.
  if (second.isBlocking() && first.access.isWrite() &&
      first.root.isVisibleToPeers())
    return true;
  // What follows a wait may rely on all of it.
  if (first.isBlocking() && !second.isBlocking() &&
      second.root.isVisibleToPeers())
    return true;
  // A tile of packets may tell that earlier stores have been made.
  return second.isSignaling() && !first.isSignaling() &&
         first.access.isWrite() && first.root.isVisibleToPeers();
}

/// Whether `second`, which follows `first`, may run element by element with it.
static bool canShareLoop(const Touch &first, const Touch &second) {
  if (breaksOrder(first, second))
    return false;
  if (first.access.isRead() && second.access.isRead())
    return true;
  return areDisjoint(first, second) || isElementwise(first, second);
}

/// Whether `second`, which follows `first`, may run before it.
static bool canRunBefore(const Touch &first, const Touch &second) {
  if (first.access.synchronizes || second.access.synchronizes)
    return !first.root.isVisibleToPeers() || !second.root.isVisibleToPeers();
  if (first.access.isRead() && second.access.isRead())
    return true;
  return areDisjoint(first, second);
}

//===----------------------------------------------------------------------===//
// Planner
//===----------------------------------------------------------------------===//

namespace {
/// Goes through a block once, with at most one stage open.
class Planner {
public:
  BlockPlan run(Block &block, ArrayRef<Copy> atEnd);

private:
  void visit(Operation *op);
  void visitLong(Operation *op, int64_t length);
  /// Ops without tiles, and ops on tiles of one element.
  void visitShort(Operation *op);
  void addItem(Operation *op);
  void addCopies(ArrayRef<Copy> copies, Operation *before);
  void flush(Operation *before);
  Stage &open(int64_t length);
  /// Whether `op` uses a result that exists only after the open stage's loop.
  bool needsOpenStage(Operation *op) const;
  bool isReducedInOpenStage(Value value) const;
  bool canMoveUp(Operation *op) const;
  bool canPassDeferred(const Touch &touch) const;

  std::unique_ptr<Stage> stage;
  SmallVector<Touch> touches;
  /// Stores of one element that come after the open stage, whose stores are
  /// many threads' work: one thread alone would hold up its warp's.
  SmallVector<Operation *> deferred;
  SmallVector<Touch> deferredTouches;
  BlockPlan plan;
};
} // namespace

BlockPlan Planner::run(Block &block, ArrayRef<Copy> atEnd) {
  Operation *terminator = block.getTerminator();
  for (Operation &op : block)
    if (&op != terminator)
      visit(&op);
  addCopies(atEnd, terminator);
  flush(terminator);
  return std::move(plan);
}

/// Length of the long tiles of `op`, or nullopt when it has none.
static std::optional<int64_t> getLongLength(Operation *op) {
  for (Value value : op->getOperands())
    if (isLongTile(value.getType()))
      return getTileLength(value.getType());
  for (Value value : op->getResults())
    if (isLongTile(value.getType()))
      return getTileLength(value.getType());
  return std::nullopt;
}

void Planner::visit(Operation *op) {
  if (op->getNumRegions() && touchesTiles(op)) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      addCopies(getCopies(op, loop.getInitArgs(), loop.getResults()), op);
    flush(op);
    return addItem(op);
  }
  if (std::optional<int64_t> length = getLongLength(op))
    return visitLong(op, *length);
  visitShort(op);
}

void Planner::visitLong(Operation *op, int64_t length) {
  if (isRecomputed(op))
    return addItem(op);
  if (op->hasTrait<OpTrait::ConstantLike>())
    return addItem(op);
  SmallVector<Touch, 2> mine = getTouches(op);
  bool joins = stage && stage->length == length && !needsOpenStage(op);
  for (const Touch &second : mine) {
    joins = joins && canPassDeferred(second);
    for (const Touch &first : touches)
      joins = joins && canShareLoop(first, second);
  }
  if (!joins)
    flush(op);
  Stage &target = open(length);
  target.ops.push_back(op);
  target.members.insert(op);
  touches.append(mine.begin(), mine.end());
}

void Planner::visitShort(Operation *op) {
  if (stage && isa<TileStoreOp>(op) && !needsOpenStage(op)) {
    deferred.push_back(op);
    deferredTouches.append(getTouches(op));
    return;
  }
  if (stage && (needsOpenStage(op) || !canMoveUp(op)))
    flush(op);
  if (touchesTiles(op))
    addItem(op);
}

bool Planner::canMoveUp(Operation *op) const {
  if (isMemoryEffectFree(op) || isa<CheckBoundsOp, ScratchOp>(op))
    return true;
  if (!isa<TileOpInterface, memref::LoadOp, RecordAccessOp>(op))
    return false;
  if (isa<RecordAccessOp>(op))
    return llvm::none_of(
        touches, [](const Touch &touch) { return touch.access.synchronizes; });
  for (const Touch &second : getTouches(op)) {
    if (!canPassDeferred(second))
      return false;
    for (const Touch &first : touches)
      if (!canRunBefore(first, second))
        return false;
  }
  return true;
}

bool Planner::canPassDeferred(const Touch &touch) const {
  return llvm::all_of(deferredTouches, [&](const Touch &first) {
    return !breaksOrder(first, touch) && canRunBefore(first, touch);
  });
}

bool Planner::isReducedInOpenStage(Value value) const {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<RowReduceOp>(op) && stage->members.contains(op);
}

bool Planner::needsOpenStage(Operation *op) const {
  for (Value operand : op->getOperands()) {
    if (isReducedInOpenStage(operand))
      return true;
    Operation *source = operand.getDefiningOp();
    if (isa_and_nonnull<BroadcastRowOp>(source) &&
        isReducedInOpenStage(source->getOperand(0)))
      return true;
  }
  return false;
}

void Planner::addItem(Operation *op) {
  plan.itemOf[op] = plan.items.size();
  plan.items.push_back({op, nullptr});
}

Stage &Planner::open(int64_t length) {
  if (!stage) {
    stage = std::make_unique<Stage>();
    stage->length = length;
  }
  return *stage;
}

void Planner::addCopies(ArrayRef<Copy> copies, Operation *before) {
  // Copies of one length share a stage: they may exchange what they copy.
  llvm::SmallPtrSet<const Copy *, 4> done;
  for (const Copy &first : copies) {
    if (done.contains(&first))
      continue;
    int64_t length = *getTileLength(first.source.getType());
    bool late = false;
    for (const Copy &copy : copies) {
      Operation *source = copy.source.getDefiningOp();
      late |= stage && source && needsOpenStage(source);
    }
    if (stage && (stage->length != length || late))
      flush(before);
    for (const Copy &copy : copies) {
      if (getTileLength(copy.source.getType()) != length)
        continue;
      open(length).copies.push_back(copy);
      done.insert(&copy);
    }
  }
}

void Planner::flush(Operation *before) {
  if (!stage)
    return;
  for (Operation *op : stage->ops)
    plan.itemOf[op] = plan.items.size();
  for (Operation *op : deferred)
    op->moveBefore(before);
  plan.items.push_back(
      {deferred.empty() ? before : deferred.front(), std::move(stage)});
  for (Operation *op : deferred)
    addItem(op);
  touches.clear();
  deferred.clear();
  deferredTouches.clear();
}

BlockPlan tiles::planBlock(Block &block, ArrayRef<Copy> atEnd) {
  return Planner().run(block, atEnd);
}
