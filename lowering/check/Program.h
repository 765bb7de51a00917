//===- Program.h - A kernel prepared for fast interpretation ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checker simulates a kernel on every rank and block, in this form: a flat
// list of instructions on integer registers, which contains only what
// determines control flow, synchronization and addresses. Data values are
// omitted; for an integer that depends on data, at most an interval is known.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_PROGRAM_H
#define COMMSIR_LOWERING_CHECK_PROGRAM_H

#include "dialect/Comms.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::comms::check {

/// Index of a register; negative: absent.
using Register = int32_t;
constexpr Register noRegister = -1;

/// Range of an integer, inclusive. The integer is known if both ends are equal.
struct Interval {
  int64_t low = INT64_MIN, high = INT64_MAX;
  /// Identifies the value (Terms.h): two unknown integers with the same term
  /// are equal. 0: none.
  int32_t term = 0;
  /// Computed by the kernel by counting in its own memory, not given directly
  /// by data.
  bool isCounted = false;
  static Interval of(int64_t value) { return {value, value}; }
  bool isKnown() const { return low == high; }
};

/// Instruction code. Arithmetic reads `a`, `b`, `c` and writes `dst`; jumps
/// read `a` and `target`; `Program::actions` describes actions.
enum class Code : uint8_t {
  Add,
  Sub,
  Mul,
  DivS,
  DivU,
  RemS,
  RemU,
  CeilDivS,
  CeilDivU,
  FloorDivS,
  And,
  Or,
  Xor,
  Shl,
  ShrS,
  ShrU,
  MinS,
  MaxS,
  MinU,
  MaxU,
  /// dst = a (predicate `extra`) b.
  Compare,
  /// dst = a ? b : c.
  Select,
  /// dst = a, truncated or sign-extended to `width`; `extra` is the source's
  /// width.
  SignCast,
  /// Same, zero-extended.
  ZeroCast,
  Move,
  /// dst = a, which was checked to be at least 0 and, with b, which is too, at
  /// most c.
  Checked,
  /// dst = a, under the condition a (predicate `extra`) b.
  Assume,
  /// dst becomes unknown.
  Forget,
  /// dst = the result of op `extra`, computed from data (`Program::opaque`).
  Opaque,
  /// Rank and size of team `extra`; dst = world rank of a, etc.
  Rank,
  Size,
  /// dst = rank a of team `extra` as a rank of team `target`.
  Translate,
  BlockId,
  NumBlocks,
  Epoch,
  /// dst = the a-th peer of team `extra`; `width` != 0: reversed.
  PeerAt,
  /// Goes to `target`.
  Jump,
  /// Goes to `target` if a is false. If it is unknown, see `Guard`.
  Branch,
  /// End of a branch's region: goes to `target`, the end of the branch; or, if
  /// the condition is unknown, to `other`, the next region.
  RegionEnd,
  /// End of a branch's last region.
  ChoiceEnd,
  /// Goes to `target`, the head of loop `extra`; leaves a loop with unknown
  /// bounds.
  Back,
  /// Checks that a loop's bounds a, b and step c are known and the step is
  /// positive. With unknown bounds, dst (if given) is between a and b.
  LoopEnter,
  /// Performs `Program::actions[extra]`.
  Act,
  /// dst = the tile that op `extra` of `Program::tileOps` computes.
  Compute,
  /// The kernel has returned.
  End,
};

struct Instruction {
  Code code;
  /// Width of the integers in bits (index: 64).
  uint8_t width = 64;
  Register dst = noRegister, a = noRegister, b = noRegister, c = noRegister;
  int32_t extra = 0, target = 0, other = 0;
};

/// A branch or loop, for the case that its condition is unknown. A
/// synchronization inside is then an error. Otherwise every region is simulated
/// once, with unknown carried values, and its accesses may or may not happen.
struct Guard {
  Operation *op = nullptr;
  /// A synchronization inside.
  Operation *sync = nullptr;
  /// Whether an op inside accesses memory.
  bool touches = false;
  /// Instruction after it.
  int32_t skip = 0;
  /// Loop: first instruction of its region, and the registers that are unknown
  /// there.
  int32_t body = -1;
  llvm::SmallVector<Register, 4> carried;
  /// Loop whose iterations order only by barriers, and do the same after a
  /// period: so many iterations represent all. 0: none do.
  int32_t repeatsAfter = 0;
};

/// A team as a chain of splits.
struct TeamPlan {
  TeamKind kind = TeamKind::World;
  llvm::SmallVector<std::pair<SplitKind, int64_t>, 2> splits;
  bool operator==(const TeamPlan &other) const = default;
};

/// Memory that an access refers to, as far as it is statically known.
struct MemoryPlan {
  enum Kind { Unknown, Own, Peer, Multimem, Scratch } kind = Unknown;
  /// Kernel argument (window or memref), or -1.
  int32_t argument = -1;
  Register peer = noRegister;
  int32_t team = -1;
  /// Index of the scratch memory.
  int32_t scratch = -1;
  /// Start of the view; absent: 0.
  Register start = noRegister;
  /// The view's start or layout is unknown.
  bool moved = false;
  /// Number of elements, or -1: unknown.
  int64_t limit = -1;
};

/// A contiguous range of memory, in elements; or several of equal size at equal
/// distances.
struct RangePlan {
  MemoryPlan memory;
  /// Number of ranges, and distance between their first elements.
  int64_t rows = 1, stride = 0;
  /// Register with the number of rows; absent: `rows`, else `rows` is the
  /// maximum (-1: unbounded).
  Register rowCount = noRegister;
  Register offset = noRegister;
  /// Register with the number of elements; absent: `fixedCount`.
  Register count = noRegister;
  /// Number of elements; with a register, the maximum (0: unbounded).
  int64_t fixedCount = 0;
  /// A part of a matrix of `stride` columns: the first column's register.
  Register column = noRegister;
  bool write = false;
  bool used = false;
};

enum class ActionKind : uint8_t {
  Access,
  Signal,
  WaitSignal,
  ReadSignal,
  ResetSignal,
  WaitCounter,
  ResetCounter,
  Fence,
  Flush,
  EngineCopy,
  Barrier,
  Arrive,
  BarrierWait,
  PacketStore,
  PacketLoad,
  PoisonStore,
  PoisonLoad,
  PoisonFill,
  BulkCopy,
  BulkWait,
  Send,
  Recv,
  ChannelBarrier,
};

/// Whether the op uses packets or poison.
inline bool isMail(ActionKind kind) {
  switch (kind) {
  case ActionKind::PacketStore:
  case ActionKind::PacketLoad:
  case ActionKind::PoisonStore:
  case ActionKind::PoisonLoad:
  case ActionKind::PoisonFill:
    return true;
  default:
    return false;
  }
}

/// When a transfer completes, as seen by its block.
enum class Deferral : uint8_t {
  /// At the end of the op.
  None,
  /// At the next release; its reads also at a flush.
  Put,
  /// At the next flush.
  Get,
  /// At the wait for its token.
  Bulk,
};

/// An op that synchronizes or accesses memory.
struct Action {
  ActionKind kind;
  Operation *op = nullptr;
  /// Signal or counter: the kernel argument. Channel: index in `channels`.
  int32_t object = -1;
  int32_t team = -1;
  Register index = noRegister, value = noRegister, peer = noRegister;
  Register valid = noRegister, dst = noRegister, token = noRegister;
  SignalKind signal = SignalKind::Inc;
  WaitKind wait = WaitKind::Ge;
  MemoryOrder order = MemoryOrder::AcqRel;
  MemoryScope scope = MemoryScope::Sys;
  BarrierExtent extent = BarrierExtent::Block;
  /// Counter that the transfer increments, and its cell.
  int32_t counter = -1;
  Register counterIndex = noRegister;
  /// When its accesses are complete.
  Deferral deferral = Deferral::None;
  /// It uses a network adapter, in this GIN context.
  bool gin = false;
  int64_t context = 0;
  /// The proxy that a fence names.
  Proxy proxy = Proxy::Generic;
  /// Access to a single integer: the register that a load writes, or that a
  /// store reads.
  Register loads = noRegister, stores = noRegister;
  /// The transferred tile, if values are tracked (`Program::tileOps`).
  Register tile = noRegister;
  /// Ranges read and written, in this order.
  RangePlan ranges[3];
  /// Further parts of memory that a matrix product reads; other actions touch
  /// them.
  llvm::SmallVector<RangePlan, 0> further;
  /// Of its left and right operand, the first term and the first row (column)
  /// that it multiplies, if it has scales: the last two of `further`.
  std::pair<Register, Register> scaled[2] = {{noRegister, noRegister},
                                             {noRegister, noRegister}};
  /// Tokens of bulk copies.
  llvm::SmallVector<Register, 2> tokens;
  /// Elements of a tile, and bits per element.
  int64_t tileSize = 0;
  int64_t elementBits = 0;
  /// Packets: their layout in memory.
  Assumption assumes = Assumption::Store8Whole;
};

struct ChannelPlan {
  ChannelOp op;
  int32_t team = -1;
  int64_t slots = 0, tileSize = 0;
  ChannelPattern pattern = ChannelPattern::Multicast;
  /// Slots carry one tile per round rather than per launch.
  bool reused = false;
  /// The caller guarantees that sender and receiver count the same elements
  /// (`comms.all_to_all_v`).
  bool countsAgree = false;
  /// Receivers write the slots between two launches, too, and the protocol
  /// assumes packets_cumulative where a sender hears of it by other ranks.
  bool isCleared = false;
};

/// A kernel argument with cells or memory.
struct ArgumentPlan {
  std::string name;
  /// Cells of a signal or counter per rank.
  int64_t count = 0;
  bool isCounter = false;
  /// A window that some op reaches on a peer.
  bool shared = false;
  /// A bulk copy reads it, through the async proxy.
  bool isCopied = false;
  /// Some op writes it, by packets (or poison), or by anything else.
  bool written = false, hasMail = false, hasData = false;
  /// Some op reads an integer of it that matters.
  bool isRead = false;
  /// Between two launches of a rank its part belongs to the host, which reads
  /// and writes all of it (`comms.host`).
  bool host = false;
  /// Integers in it are the same on all ranks, as the kernel states, which does
  /// not write it.
  bool isSame = false;
  /// It holds poison before the first launch (`comms.init`).
  bool isPoisoned = false;
  /// Elements of a window of static shape.
  int64_t elements = 0;
};

/// An op that computes a tile or a float, where values are followed. Their
/// registers hold the handles of tiles (Contents.h).
struct TileOp {
  Operation *op = nullptr;
  llvm::SmallVector<Register, 3> operands;
};

class Program {
public:
  /// Prepares `kernel`. Emits errors for what cannot be followed: collectives
  /// that have not been expanded, unstructured control flow around a
  /// synchronization, teams and signals that are not resolved statically.
  /// `withValues`: what elements hold is followed as well.
  static FailureOr<Program> build(KernelOp kernel, bool withValues = false);

  KernelOp kernel;
  std::vector<Instruction> code;
  std::vector<Action> actions;
  std::vector<Guard> guards;
  std::vector<TeamPlan> teams;
  std::vector<ChannelPlan> channels;
  std::vector<ArgumentPlan> arguments;
  /// Integers that the host gives each launch, the same to all ranks: the
  /// register and the number of the argument.
  std::vector<std::pair<Register, int32_t>> scalars;
  /// Floats that the host gives each launch, likewise.
  std::vector<std::pair<Register, int32_t>> floats;
  /// Ops that compute an integer from data.
  std::vector<Operation *> opaque;
  /// Ops that compute tiles.
  std::vector<TileOp> tileOps;
  /// The argument that holds the root of collectives, a rank of the world.
  std::vector<Register> roots;
  /// The results of comms.extent, and the most that they can be.
  std::vector<Register> extents;
  int64_t mostExtent = 0;
  /// Memory of a block whose contents are not followed.
  llvm::DenseSet<int32_t> unfollowedScratch;
  /// Initial registers: constants are known, everything else is not.
  std::vector<Interval> initialValues;
  /// One more than the highest block that a role names.
  int64_t roleBlocks = 0;
  /// Some op synchronizes.
  bool synchronizes = false;
  /// Blocks of a rank do different things. Where they do not, what one writes
  /// to its rank's own memory the others write as well.
  bool isBlockDependent = true;
  /// Memory is accessed through another proxy than the generic one.
  bool usesProxies = false;
  /// The kernel, or a protocol of its channels, assumes packets_cumulative.
  bool followsChains = false;
  /// Integers that are the same on all ranks may decide control flow.
  bool hasSameIntegers() const;
  /// Ranks order one another by nothing but barriers of all ranks.
  bool meetsInWorldOnly() const;
  /// Integers that decide control flow, synchronization and addresses.
  std::vector<Value> values;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_PROGRAM_H
