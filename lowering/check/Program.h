//===- Program.h - A kernel prepared for fast interpretation ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checker follows a kernel on every rank and block. It does so over this
// form: a flat list of instructions over integer registers, which keeps only
// what decides control flow, synchronization and addresses. Data values do not
// appear; of an integer that depends on them an interval is known, at most.
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

/// Where an integer lies, the ends included. It is known where they are the
/// same.
struct Interval {
  int64_t low = INT64_MIN, high = INT64_MAX;
  /// Names the value (Terms.h): two unknown integers with one term are equal.
  /// 0: it has no name.
  int32_t term = 0;
  /// The kernel has counted it in its own memory: no data say it directly.
  bool isCounted = false;
  static Interval of(int64_t value) { return {value, value}; }
  bool isKnown() const { return low == high; }
};

/// What an instruction does. Arithmetic reads `a`, `b`, `c` and writes `dst`;
/// jumps read `a` and `target`; actions are described by `Program::actions`.
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
  /// dst = a cut or sign-extended to `width`; `extra` is the source's width.
  SignCast,
  /// The same, zero-extended.
  ZeroCast,
  Move,
  /// dst = a, which a check has found to be at least 0 and, with b, which is
  /// that too, at most c.
  Checked,
  /// dst = a, where a (predicate `extra`) b holds.
  Assume,
  /// dst becomes unknown.
  Forget,
  /// dst is what op `extra` computes from data (`Program::opaque`).
  Opaque,
  /// Rank and size of team `extra`; dst = a's world rank etc.
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
  /// Goes to `target` when a is false. When it is unknown, see `Guard`.
  Branch,
  /// A choice's region has ended: goes to `target`, the end of the choice; or,
  /// where the choice is unknown, to `other`, the next region.
  RegionEnd,
  /// The last region of a choice has ended.
  ChoiceEnd,
  /// Goes to `target`, the head of loop `extra`; leaves a loop that is unknown.
  Back,
  /// Checks that a loop's bounds a, b and step c are known and step is
  /// positive. Of an unknown one, dst (where it is given) is from a to b.
  LoopEnter,
  /// Performs `Program::actions[extra]`.
  Act,
  /// dst holds the tile that op `extra` of `Program::tileOps` computes.
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

/// A branch or loop: what happens when its condition is unknown. A
/// synchronization inside makes that an error. Else every region is followed
/// once, with what the loop carries unknown: its accesses may happen.
struct Guard {
  Operation *op = nullptr;
  /// A synchronization inside.
  Operation *sync = nullptr;
  /// Something inside touches memory.
  bool touches = false;
  /// Where to go on behind it.
  int32_t skip = 0;
  /// A loop: where its region begins, and what is unknown there.
  int32_t body = -1;
  llvm::SmallVector<Register, 4> carried;
  /// A loop all of whose iterations do the same, and that orders by nothing but
  /// barriers: what two of them show, all of them show.
  bool repeats = false;
};

/// A team as a chain of splits.
struct TeamPlan {
  TeamKind kind = TeamKind::World;
  llvm::SmallVector<std::pair<SplitKind, int64_t>, 2> splits;
  bool operator==(const TeamPlan &other) const = default;
};

/// Memory that an access goes to, as far as it is known statically.
struct MemoryPlan {
  enum Kind { Unknown, Own, Peer, Multimem, Scratch } kind = Unknown;
  /// Kernel argument (window or memref), or -1.
  int32_t argument = -1;
  Register peer = noRegister;
  int32_t team = -1;
  /// Scratch memory: which.
  int32_t scratch = -1;
  /// Where the view begins through which it is seen; absent: at 0.
  Register start = noRegister;
  /// It is not known where the view begins or how its elements lie.
  bool moved = false;
  /// Elements that exist, or -1: unknown.
  int64_t limit = -1;
};

/// A contiguous piece of memory, in elements; or several of one size, at equal
/// distances.
struct RangePlan {
  MemoryPlan memory;
  /// How many, and elements from one's first to the next one's.
  int64_t rows = 1, stride = 0;
  /// The number of rows; without a register, `rows`, which is the most else
  /// (-1: not bounded).
  Register rowCount = noRegister;
  Register offset = noRegister;
  /// Number of elements; without a register, `fixedCount`.
  Register count = noRegister;
  /// The number; with a register, the most that it can be (0: not bounded).
  int64_t fixedCount = 0;
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

/// Ops by packets and poison.
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

/// When a transfer is over, as its block sees it.
enum class Deferral : uint8_t {
  /// When the op ends.
  None,
  /// At the next release; what it reads, at a flush as well.
  Put,
  /// At the next flush.
  Get,
  /// At the wait for its token.
  Bulk,
};

/// An op that synchronizes or touches memory.
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
  /// A counter that the transfer increments, and its cell.
  int32_t counter = -1;
  Register counterIndex = noRegister;
  /// When what it touches has been touched.
  Deferral deferral = Deferral::None;
  /// It goes through a network adapter, in this context of GIN.
  bool gin = false;
  int64_t context = 0;
  /// The proxy that a fence names.
  Proxy proxy = Proxy::Generic;
  /// An access to a single integer: the register that a load fills, or that a
  /// store takes its value from.
  Register loads = noRegister, stores = noRegister;
  /// The tile that is moved, where values are followed (`Program::tileOps`).
  Register tile = noRegister;
  /// What is read and what is written, in this order.
  RangePlan ranges[3];
  /// Tokens of bulk copies.
  llvm::SmallVector<Register, 2> tokens;
  /// Elements of a tile, and bits of each.
  int64_t tileSize = 0;
  int64_t elementBits = 0;
  /// Packets: how they lie in memory.
  Assumption assumes = Assumption::Store8Whole;
};

struct ChannelPlan {
  ChannelOp op;
  int32_t team = -1;
  int64_t slots = 0, tileSize = 0;
  ChannelPattern pattern = ChannelPattern::Multicast;
  /// Slots carry a tile a round rather than a launch.
  bool reused = false;
  /// The caller answers for it that sender and receiver count the same elements
  /// (`comms.all_to_all_v`).
  bool countsAgree = false;
};

/// A kernel argument that holds cells or memory.
struct ArgumentPlan {
  std::string name;
  /// Cells of a signal or counter on each rank.
  int64_t count = 0;
  bool isCounter = false;
  /// A window that some op reaches on a peer.
  bool shared = false;
  /// Some op writes it, by packets (or poison), or by anything else.
  bool written = false, hasMail = false, hasData = false;
  /// Some op reads an integer of it that matters.
  bool isRead = false;
  /// Between two launches of a rank its part belongs to the host, which reads
  /// and writes all of it (`comms.host`).
  bool host = false;
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
  /// Ranks order one another by nothing but barriers of all ranks.
  bool meetsInWorldOnly() const;
  /// Integers that decide control flow, synchronization and addresses.
  std::vector<Value> values;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_PROGRAM_H
