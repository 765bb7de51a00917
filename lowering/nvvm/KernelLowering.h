//===- KernelLowering.h - One kernel becomes one GPU function ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm. Rewrites the comms ops of one kernel as arith, scf,
// LLVM and nvvm ops; MLIR's conversions handle the rest of the body.
//
// Every thread of a block runs the kernel. Tiles are private to a thread.
// Operations of the whole block, such as moving data or signaling, are
// distributed over the threads here, or done by the leader (thread 0 of the
// cluster's CTA 0) between barriers of the threads.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_KERNELLOWERING_H
#define COMMSIR_LOWERING_NVVM_KERNELLOWERING_H

#include "dialect/Comms.h"
#include "lowering/nvvm/Abi.h"
#include "lowering/nvvm/ContractLowering.h"
#include "lowering/nvvm/Ptx.h"
#include "lowering/target/KernelBase.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::comms::nvvm {

/// Shape of a launch and target.
struct Target {
  int64_t blocks = 1, threads = 1, cluster = 1;
  /// 80, 90, 100: compute capability times ten.
  unsigned sm = 90;
};

/// A condition that a peer must establish, tested by loads.
struct Poll {
  PollKind kind;
  /// Op whose site errors name.
  Operation *op;
  /// i32: world rank that is awaited, or kNoPeer; null: kNoPeer.
  Value peer;
  /// i64: expected value in errors.
  Value wanted;
  llvm::SmallVector<Type> types;
  /// Emits the loads, of `types`.
  std::function<SmallVector<Value>(ImplicitLocOpBuilder &)> load;
  /// i1: whether the loaded values satisfy the condition.
  std::function<Value(ImplicitLocOpBuilder &, ValueRange)> ready;
  /// Alternative to `ready` for testing many words at once: two 16-bit numbers
  /// for holdsNoPoison. Null: not available.
  std::function<Value(ImplicitLocOpBuilder &, ValueRange)> most;
  /// i64: observed value in errors.
  std::function<Value(ImplicitLocOpBuilder &, ValueRange)> seen;
  /// The threads of a warp load together, and therefore continue or leave
  /// together.
  bool together = false;
};

/// i1: neither of two numbers, the maxima over halves of many words, is poison.
Value holdsNoPoison(Value most, ImplicitLocOpBuilder &b);

/// A thread's part of lines: 16 bytes of each line. Eight threads of a warp
/// share a line.
struct LinePart {
  /// Address of the part in the first line; of the line's rest, which the last
  /// thread moves.
  Value address, rest;
  /// i1: this thread has the end of the line, which holds the flag.
  Value isLast;
  /// i32: whether the line exists, and its rest for this thread; null: it does.
  Value exists, hasRest;
};

/// Maximum number of lanes of a tile per thread.
inline constexpr int64_t kMostLanes = 64;

/// Moves the clearing of slots behind the waits of its block of IR. See
/// HoistPolls.cpp.
void sinkFills(KernelOp kernel);

/// Runs sinkFills, then moves plain loads up and polls of one block of IR
/// together, so that they are in flight at the same time.
void hoistPolls(KernelOp kernel);

/// Moves stores before waits for other CTAs' parts of a row.
void hoistStores(KernelOp kernel);

/// Largest power of two, at most 2^20, that is known to divide an index.
int64_t getDivisor(Value index);

class KernelLowering : target::KernelBase {
public:
  KernelLowering(KernelOp kernel, const LLVMTypeConverter &types,
                 const Target &target);

  /// Makes the function next to the kernel, and erases the kernel. Emits a
  /// diagnostic and fails on unsupported ops.
  LogicalResult run();

private:
  // Structure: KernelLowering.cpp.
  LogicalResult checkShape();
  LogicalResult layOutParameters();
  LogicalResult makeFunction();
  void describeFunction();
  /// Has the threads of all blocks bring the arguments of kPrefetchAttr into
  /// L2.
  void prefetchArguments(ImplicitLocOpBuilder &b);
  void prefetch(unsigned index, int64_t bytes, ImplicitLocOpBuilder &b);
  void readState(ImplicitLocOpBuilder &b);
  Value bindMemory(unsigned index, MemRefType type,
                   ImplicitLocOpBuilder &b) override;
  Value bindScalar(unsigned index, Type type, ImplicitLocOpBuilder &b) override;
  Value bindExtent(ExtentOp op, ImplicitLocOpBuilder &b) override;
  void lowerReturn(ReturnOp op, ImplicitLocOpBuilder &b) override;
  LogicalResult lowerOtherOp(Operation *op, ImplicitLocOpBuilder &b) override;
  /// `entrance`: the op before which the block's channels are marked busy.
  /// `shared`: the ops before which enterShared is done, one on each branch.
  LogicalResult lowerBody(Operation *entrance, ArrayRef<Operation *> shared);
  void describe();
  LogicalResult makeShared();

  // Memory: MemoryLowering.cpp.
  Value parameter(int64_t offset, Type type, ImplicitLocOpBuilder &b);
  Value partAddress(unsigned argument, Value worldRank,
                    ImplicitLocOpBuilder &b) override;
  Value cellAddress(unsigned argument, Value worldRank, Value index,
                    ImplicitLocOpBuilder &b);
  Value makeMemRef(MemRefType type, Value address, int64_t alignment,
                   ImplicitLocOpBuilder &b);
  Value viewPart(MemRefType type, unsigned argument, Value worldRank,
                 ImplicitLocOpBuilder &b) override;
  /// Like elementAddress, in address space 1.
  Value globalAddress(Value memref, Value offset, ImplicitLocOpBuilder &b);
  int64_t getAlignment(Value memref);
  int64_t getAlignment(Value memref, Value offset);
  LogicalResult lowerScratch(Operation *op, MemRefType type,
                             ImplicitLocOpBuilder &b) override;
  LogicalResult lowerAlloca(memref::AllocaOp op,
                            ImplicitLocOpBuilder &b) override;
  void alignVector(Operation *op);
  /// Address of a byte of the CTA's shared memory.
  Value sharedAddress(int64_t at, ImplicitLocOpBuilder &b);
  void copyBytes(Value source, Value dest, Value count, int64_t elementBytes,
                 int64_t alignment, ImplicitLocOpBuilder &b);
  LogicalResult lowerTransfer(Operation *op, const target::Transfer &transfer,
                              ImplicitLocOpBuilder &b) override;
  void lowerBulkCopy(BulkCopyOp op, ImplicitLocOpBuilder &b) override;
  void count(Operation *op, unsigned counter, Value index,
             ImplicitLocOpBuilder &b) override;

  // Polls: PollLowering.cpp.
  LogicalResult lowerPollGroup(Operation *first);
  SmallVector<Value> emitPolls(ArrayRef<Poll> polls, ImplicitLocOpBuilder &b);
  /// Whether `mine` (i1) is true for all threads of the warp.
  Value holdsForWarp(Value mine, ImplicitLocOpBuilder &b);

  // Channel memory that kernels share: SharedChannels.cpp.
  /// Whether an argument is a window of which each launch uses one buffer.
  bool takesTurns(unsigned argument);
  void takeTurns(ImplicitLocOpBuilder &b);
  void enterShared(ImplicitLocOpBuilder &b);
  void advanceOthers(Value thread, Value step, ImplicitLocOpBuilder &b);
  void clearStale(Value thread, Value step, ImplicitLocOpBuilder &b);

  // Threads: ThreadLowering.cpp.
  /// Barrier of the block's threads. `ordersMemory`: their earlier stores are
  /// visible to the others afterwards.
  void threadBarrier(ImplicitLocOpBuilder &b, bool ordersMemory = true);
  void syncThreads(ImplicitLocOpBuilder &b) override { threadBarrier(b); }
  void ifLeader(ImplicitLocOpBuilder &b,
                llvm::function_ref<void(ImplicitLocOpBuilder &)> body);
  Value threadNumber(ImplicitLocOpBuilder &b);
  bool isAlone() const { return target.threads * target.cluster == 1; }
  FailureOr<Value> broadcast(Value fromLeader, ImplicitLocOpBuilder &b);
  LLVM::LLVMFuncOp getStopFunction();
  void enter(ImplicitLocOpBuilder &b);
  void exitRelaunched(ReturnOp op, Value words, ImplicitLocOpBuilder &b);
  Value findWords(ImplicitLocOpBuilder &b);
  void useThirds(ImplicitLocOpBuilder &b);
  Value getNextThird(ImplicitLocOpBuilder &b);
  Value recordAddress(ImplicitLocOpBuilder &b);
  void record(PollKind kind, Value site, Value seen, Value wanted,
              ImplicitLocOpBuilder &b);
  LogicalResult lowerGpuOp(Operation *op, ImplicitLocOpBuilder &b);
  LogicalResult lowerSubgroupReduce(gpu::SubgroupReduceOp op,
                                    ImplicitLocOpBuilder &b);
  Value getLanes(ImplicitLocOpBuilder &b);

  // Synchronization: SyncLowering.cpp.
  LogicalResult lowerSignal(Operation *op, Value signal, Value index,
                            SignalKind kind, Value value, Value team,
                            Value peer, bool release,
                            ImplicitLocOpBuilder &b) override;
  LogicalResult lowerWait(Operation *op, Value cells, Value index,
                          WaitKind kind, Value value, Value team, Value peer,
                          ImplicitLocOpBuilder &b) override;
  LogicalResult lowerCell(Operation *op, Value cells, Value index, bool reset,
                          ImplicitLocOpBuilder &b) override;
  void lowerFence(Operation *op, ImplicitLocOpBuilder &b) override;
  FailureOr<Value> arrive(Operation *op, Value team, BarrierExtent extent,
                          ImplicitLocOpBuilder &b) override;
  void arriveInGrid(const TeamNumbers &team, unsigned number, Value wanted,
                    ImplicitLocOpBuilder &b);
  LogicalResult awaitBarrier(Operation *op, const target::Arrival &arrival,
                             ImplicitLocOpBuilder &b) override;
  void forEachMember(const TeamNumbers &team, ImplicitLocOpBuilder &b,
                     llvm::function_ref<void(Value, ImplicitLocOpBuilder &)>);
  /// Index of the team among those that have barriers.
  unsigned barrierTeam(Value team) const;
  Value barrierCell(Value worldRank, unsigned team, BarrierExtent extent,
                    Value source, ImplicitLocOpBuilder &b);
  void failBounds(Operation *op, llvm::StringRef what, Value offset,
                  Value count, Value limit, ImplicitLocOpBuilder &b) override;

  // Tiles: TileLowering.cpp.
  LogicalResult lowerTileOp(Operation *op, ImplicitLocOpBuilder &b) override;
  Value laneMask(VectorType type, Value count, ImplicitLocOpBuilder &b);
  Value clearInvalid(Value tile, Value valid, ImplicitLocOpBuilder &b);
  Value isBelow(int64_t lane, Value count, ImplicitLocOpBuilder &b);
  void lowerTileLoad(TileLoadOp op, VectorType type, ImplicitLocOpBuilder &b);
  void lowerTileStore(TileStoreOp op, VectorType type, ImplicitLocOpBuilder &b);

  // Matrix products: Contracts.cpp.
  LogicalResult lowerContract(ContractOp op, ImplicitLocOpBuilder &b) override;
  LogicalResult layOutContracts(ImplicitLocOpBuilder &b);
  ContractMemory findMatrix(Value memory, Value row, Value column,
                            ImplicitLocOpBuilder &b);
  ContractScales findScales(ContractOp op, bool isLhs, ImplicitLocOpBuilder &b);
  bool isSharedMemory(Value memory) const;
  void findConstantContracts();
  LogicalResult shapeContracts(ArrayRef<ContractOp> ops, int64_t left,
                               bool byMaps);
  bool shareStages(ArrayRef<ContractOp> ops, int64_t left);
  bool canHaveMap(Value memory, int64_t bytes, int64_t tileRows);
  bool canUseMaps(ContractOp op, const ContractShape &shape);
  bool canMapAddends(ContractOp op, const ContractShape &shape);
  void joinBarriers();
  void addCopyThreads();
  Value getContractMemory(ImplicitLocOpBuilder &b);
  Value getStageCounter();
  Value findMap(Value memory, int64_t tileRows, ImplicitLocOpBuilder &b);

  // Packets: PacketLowering.cpp.
  void lowerPacketStore(PacketStoreOp op, VectorType type,
                        ImplicitLocOpBuilder &b);
  Poll pollPackets(PacketLoadOp op, VectorType type, ImplicitLocOpBuilder &b);
  LogicalResult checkLines(Operation *op, Value memref, VectorType type);
  LinePart findLine(Value memref, Value offset, Value valid,
                    ImplicitLocOpBuilder &b);
  LogicalResult lowerLineStore(PacketStoreOp op, VectorType type,
                               ImplicitLocOpBuilder &b);
  Poll pollLines(PacketLoadOp op, VectorType type, ImplicitLocOpBuilder &b);
  SmallVector<Value> joinLines(ValueRange loaded, ImplicitLocOpBuilder &b);

  // Poison: PoisonLowering.cpp.
  void lowerPoisonStore(PoisonStoreOp op, VectorType type,
                        ImplicitLocOpBuilder &b);
  void lowerPoisonFill(PoisonFillOp op, ImplicitLocOpBuilder &b);
  Poll pollPoison(PoisonLoadOp op, VectorType type, ImplicitLocOpBuilder &b);

  // Multimem: MultimemLowering.cpp.
  FailureOr<Value> multicastAddress(Operation *op, Value memref,
                                    ImplicitLocOpBuilder &b);
  LogicalResult lowerMultimem(Operation *op, ImplicitLocOpBuilder &b);

  // Numbers.
  Value toI32(Value index, ImplicitLocOpBuilder &b);
  Value toIndex(Value integer, ImplicitLocOpBuilder &b);

  Target target;
  /// The kernels of the group use channel memory in turn.
  const bool isShared;
  LLVM::LLVMPointerType generic, global, shared;
  int64_t ranks = 1, lsaSize = 1;
  /// The parameter struct; the state in global memory.
  Value params, state;
  /// The thread's pointer to an i32: number of polls before the clock is read.
  Value budget;
  /// For each of `barrierTeams`: the generation of its barriers.
  llvm::SmallVector<Value, 1> generations;
  /// Address of the block's BlockState.
  Value words;
  /// i32: its word `third`; null: not used.
  Value third;
  /// Shared channel memory. By argument, i64: byte offset of the launch's
  /// buffer from the first (null: the argument has one buffer). The first
  /// window of poison (-1: none), the buffer that it last used (i64, bytes),
  /// how much of that was used (i32, in 16 bytes), and how much this launch
  /// uses.
  llvm::SmallVector<Value> turns;
  int64_t poisonArgument = -1;
  Value staleTurn, staleUnits;
  int64_t poisonUnits = 0;
  /// Windows that take turns, by their views.
  llvm::DenseMap<Value, unsigned> lineArguments;
  /// i32: the block's busy word as read by the leader.
  Value busy;
  /// i1: this thread is the leader.
  Value leader;
  /// Byte offset of each argument in the parameters, and of its multicast
  /// address (-1: none).
  llvm::SmallVector<int64_t> offsets, multicast;
  int64_t paramBytes = 0;
  /// Index of the barrier window; -1: none.
  int64_t barrierArgument = -1;
  /// The teams with barriers: stride and number of members.
  llvm::SmallVector<std::pair<int64_t, int64_t>, 1> barrierTeams;
  /// Alignment in bytes of memrefs made here.
  llvm::DenseMap<Value, int64_t> alignments;
  llvm::DenseSet<Operation *> done;
  int64_t sharedBytes = 0;
  /// Memrefs in shared memory.
  llvm::DenseSet<Value> scratch;
  /// The shapes of matrix products, and where their operands' memory begins.
  llvm::DenseMap<Operation *, ContractShape> contracts;
  llvm::DenseSet<Operation *> constantContracts, constantAddends;
  /// Products by maps, and their numbers among these.
  SmallVector<ContractShape> mapped;
  llvm::DenseMap<Operation *, int64_t> numbers;
  Value stageCounter;
  /// Threads of a CTA, those that only copy too.
  int64_t launchedThreads = 0;
  int64_t contractMemory = -1;
  /// Maps of matrices, by memory and rows of their tiles.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> maps;
  LLVM::GlobalOp sharedMemory;
};

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_KERNELLOWERING_H
