//===- HoistStores.cpp - Stores while threads wait for each other ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CTAs of a cluster wait for each other's parts of a row. A plain store, or the
// clearing of slots, that stands behind that wait and needs nothing of the row
// moves in front of it: it leaves while the threads have nothing to do, and is
// not among those that the end of the block waits for. It passes loads and
// stores of other memory alone; two arguments of a kernel are two arrays.
//
// The wait orders no memory but what is exchanged (ThreadOrder.h), so nothing
// that stands behind it is there for its sake.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"
#include "lowering/nvvm/MovableOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

namespace {
/// The ops between the last wait and an op that may move before it.
class CrossedOps {
public:
  explicit CrossedOps(KernelOp kernel) : entry(&kernel.getBody().front()) {}

  Operation *getWait() const { return wait; }
  void begin(Operation *newWait) {
    wait = newWait;
    touched.clear();
  }

  /// Notes what stays. What is not known to touch other memory alone ends the
  /// run.
  void note(Operation *op) {
    bool known = !op->walk([&](Operation *inner) {
                      return noteOne(inner) ? WalkResult::advance()
                                            : WalkResult::interrupt();
                    }).wasInterrupted();
    if (!known)
      begin(nullptr);
  }

  /// Whether memory of `root` is none that was noted.
  bool isFree(Value root) const {
    return root && !llvm::is_contained(touched, root);
  }

  /// The kernel's argument that `op` stores to; null: it is no store that may
  /// move.
  Value getTarget(Operation *op) const {
    Value memref;
    if (isStaleFill(op))
      memref = cast<PoisonFillOp>(op).getMemref();
    else if (isa<vector::StoreOp, vector::MaskedStoreOp>(op))
      memref = getStored(op);
    auto argument = memref ? dyn_cast_or_null<BlockArgument>(getRoot(memref))
                           : BlockArgument();
    return argument && argument.getOwner() == entry ? Value(argument) : Value();
  }

private:
  bool noteOne(Operation *op) {
    if (isQuiet(op) || isa<scf::IfOp, scf::ForOp, scf::YieldOp>(op))
      return true;
    Value memref = isPlainLoad(op) ? getLoaded(op) : getStored(op);
    if (isStaleFill(op))
      memref = cast<PoisonFillOp>(op).getMemref();
    Value root = memref ? getRoot(memref) : Value();
    touched.push_back(root);
    return bool(root);
  }

  Block *entry;
  Operation *wait = nullptr;
  SmallVector<Value> touched;
};
} // namespace

static void hoistStoresIn(Block &block, CrossedOps passed) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (is(&op, Ptx::AwaitBytes)) {
      passed.begin(&op);
      continue;
    }
    if (!passed.getWait())
      continue;
    SmallVector<Operation *> needed;
    if (!passed.isFree(passed.getTarget(&op)) ||
        !collectNeeded(&op, passed.getWait(), needed)) {
      passed.note(&op);
      continue;
    }
    needed.push_back(&op);
    for (Operation *each : needed)
      each->moveBefore(passed.getWait());
  }
}

void nvvm::hoistStores(KernelOp kernel) {
  kernel.getBody().walk(
      [&](Block *block) { hoistStoresIn(*block, CrossedOps(kernel)); });
}
