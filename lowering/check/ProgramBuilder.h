//===- ProgramBuilder.h - Makes a program from a kernel ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds a program. Program.cpp finds the ops that matter in a kernel,
// ProgramFlow.cpp turns control flow and arithmetic into instructions,
// ProgramMemory.cpp finds the accessed memory, and ProgramActions.cpp describes
// the ops that synchronize.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_PROGRAMBUILDER_H
#define COMMSIR_LOWERING_CHECK_PROGRAMBUILDER_H

#include "lowering/check/Program.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::comms {
struct Access;
} // namespace mlir::comms

namespace mlir::comms::check {

/// Width in bits of an integer that a register can hold; 0: none.
unsigned widthOf(Type type);
/// Elements of a memref, window or tile of static shape; -1: not known.
int64_t elementsOf(Type type);
/// Tiles, and floats that are not in one.
bool isFollowedValue(Type type);
/// Ops that compute an integer from tiles or floats.
bool isOfTiles(Operation *op);
/// Ops by which blocks and ranks wait for or release one another.
bool isSync(Operation *op);
/// Ops that only access memory that others can access.
bool isPlainAccess(Operation *op);
/// Ops that become actions.
bool isAction(Operation *op);
/// Ops that load from or store to memory that is the block's alone.
bool isScratchAccess(Operation *op);
/// The code of an op that computes an integer from two.
std::optional<Code> binaryCode(Operation *op);
/// The memref that `value` is a view of, when the view keeps the place of the
/// first element.
Value throughViews(Value value);
/// The integer that `op` stores to each of its elements; null: it is no store
/// of one integer.
Value storedInteger(Operation *op);
/// The same, where the tile is a constant.
std::optional<int64_t> storedConstant(Operation *op);
/// The op that loads the integer that `op` extracts; null: there is none.
TileLoadOp loadedInteger(Operation *op);

/// Builds the program in three steps: which region ops matter, which values
/// they need, then the instructions in program order.
class ProgramBuilder {
public:
  ProgramBuilder(KernelOp kernel, bool withValues) : withValues(withValues) {
    program.kernel = kernel;
  }
  FailureOr<Program> build();

private:
  LogicalResult collectOps();
  void collectNeededValues(Operation *op);
  void live(Operation *op);
  void need(Value value);
  void needOperands(Operation *op);
  void needOf(Value value);
  void needView(Value memory);
  void needBlockArgument(BlockArgument argument);
  void needResult(OpResult result);

  Register reg(Value value);
  Register optionalReg(Value value) { return value ? reg(value) : noRegister; }
  Register temporary();
  Register constant(int64_t value);
  int32_t here() const { return static_cast<int32_t>(program.code.size()); }
  Instruction &emit(Code code) {
    program.code.push_back(Instruction{code});
    return program.code.back();
  }
  /// dst = a op b, of integers of `width` bits.
  void binary(Code code, Register dst, Register a, Register b,
              unsigned width = 64);
  void compare(arith::CmpIPredicate predicate, Register dst, Register a,
               Register b, unsigned width = 64);
  /// Emits a branch that is taken if `condition` is false. `land` sets its
  /// target.
  int32_t branchOn(Register condition, int32_t guard);
  void move(Register from, Register to);
  void moveAll(ValueRange from, ValueRange to);
  void forgetAll(ValueRange values);
  int32_t guard(Operation *op);
  void carry(int32_t guard, ValueRange values);
  int32_t regionEnd(int32_t guard);
  int32_t jump();
  void land(int32_t instruction) { program.code[instruction].target = here(); }

  /// Values whose registers were replaced, and the original registers.
  using Narrowed = SmallVector<std::pair<Value, Register>>;
  void narrow(CheckBoundsOp check, Narrowed &before);
  /// Assumes for the following code that `condition` is `holds`.
  void assume(Value condition, bool holds, Narrowed &before);
  void assumeOf(arith::CmpIPredicate predicate, Value value, Value other,
                Narrowed &before);
  LogicalResult region(Block &body, Value condition, bool holds);
  int32_t repeatsAfter(scf::ForOp loop);
  LogicalResult block(Block &block);
  LogicalResult structured(Operation *op);
  LogicalResult loop(scf::ForOp op);
  LogicalResult branch(scf::IfOp op);
  LogicalResult whileLoop(scf::WhileOp op);
  LogicalResult indexSwitch(scf::IndexSwitchOp op);
  LogicalResult forPeers(ForPeersOp op);
  LogicalResult role(RoleOp op);
  LogicalResult evaluate(Operation *op);
  void computeTile(Operation *op);

  FailureOr<int32_t> team(Value value, Operation *user);
  FailureOr<int32_t> argument(Value value, Operation *user);
  FailureOr<int32_t> channel(Value value, Operation *user);
  MemoryPlan memory(Value value);
  MemoryPlan viewed(Value value);
  /// Start of the view `view` in its source, in elements; none: unknown.
  std::optional<Register> viewStart(Operation *view);
  Register sum(Register a, Register b);
  Register product(Register a, int64_t factor);
  /// All of a memref.
  RangePlan whole(Value memref, bool write);
  Register elementOffset(Value memory, ValueRange indices);
  std::optional<Register> maskedLanes(Value mask);
  LogicalResult plainAction(Operation *op, Action &action);
  RangePlan range(Value memref, Value offset, Value valid, Type tile,
                  bool write);
  RangePlan countedRange(Value memref, Value offset, Value count, bool write);
  /// A part of a matrix.
  RangePlan matrixRange(const Access &access);
  RangePlan peerRange(Value window, Value offset, Value count, Value peer,
                      int32_t team, bool write);
  Register movedTile(Operation *op);
  /// Ops that become actions of this program: with values also those on memory
  /// of one block.
  bool acts(Operation *op) const {
    return isAction(op) || (withValues && isScratchAccess(op));
  }
  LogicalResult action(Operation *op);
  LogicalResult append(Action made);
  LogicalResult signalAction(Operation *op, Action &action);
  LogicalResult barrierAction(Operation *op, Action &action);
  LogicalResult transferAction(Operation *op, Action &action);
  LogicalResult tileAction(Operation *op, Action &action);
  LogicalResult matrixAction(Operation *op, Action &action);
  LogicalResult channelAction(Operation *op, Action &action);
  void share(const Action &action);

  Program program;
  /// Tiles and floats are followed, too.
  bool withValues;
  llvm::DenseSet<Operation *> liveOps;
  llvm::DenseMap<Operation *, Operation *> syncInside, spinInside, touchInside;
  llvm::DenseSet<Value> needed;
  SmallVector<Value> worklist;
  llvm::DenseMap<Value, Register> registers;
  llvm::DenseMap<int64_t, Register> constants;
  llvm::DenseMap<Operation *, int32_t> channelOf;
  llvm::DenseMap<Value, int32_t> scratchOf;
  /// Loads of tiles of one integer, and the registers that hold it.
  llvm::DenseMap<Operation *, Register> integerOf;
  /// Memory of a block that ops write which are no actions.
  llvm::DenseSet<Value> unfollowedScratch;
  /// The integers that ops store to a memory one by one, by its root.
  llvm::DenseMap<Value, SmallVector<Value, 2>> storedTo;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_PROGRAMBUILDER_H
