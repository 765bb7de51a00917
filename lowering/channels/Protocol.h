//===- Protocol.h - The interface of protocols ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A protocol defines where the tiles of a channel lie and how a receiver
// recognizes that one has arrived. Each protocol is one file of
// lowering/channels/protocol; CMake generates the registry from the file names.
// docs/AddAProtocol.md builds one step by step.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHANNELS_PROTOCOL_H
#define COMMSIR_LOWERING_CHANNELS_PROTOCOL_H

#include "dialect/Comms.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::comms {

/// Contents of slots between launches. A receiver recognizes a new tile by
/// them, so that kernels which share channel memory use a separate region for
/// each kind.
enum class SlotKind {
  /// Plain tiles. A barrier publishes them, and no initial value is needed.
  Data,
  /// 8-byte packets with the flag of the launch that stored them.
  Packets,
  /// 128-byte lines with a flag each, and their rests.
  Lines,
  /// Poison, except in slots that the last launch received.
  Poison,
};

/// The name of a kind: "data", "packets", "lines" or "poison".
llvm::StringRef stringifySlotKind(SlotKind kind);

/// Memory of a channel on each rank: a window of shape [buffers, rows, slots,
/// units]. Launches use the buffers in turn. A row belongs to one source or
/// destination of the team; there is a single row if every tile of a slot is
/// the same for all ranks or has one source. A slot has `units` elements, and
/// `rest` further ones behind all slots of the window.
struct ChannelMemory {
  int64_t buffers = 1, rows = 1, slots = 1, units = 1, rest = 0;
  Type elementType;
  /// Slots are in the sender's memory, and receivers read them there. Otherwise
  /// they are in the receiver's memory, and senders write there.
  bool atSender = false;
  /// Poison is written before the first launch; other kinds start as zeros.
  SlotKind kind = SlotKind::Data;
  /// Packets: their layout.
  Assumption packets = Assumption::Store8Whole;

  /// Elements per row; per buffer. LowerChannels ensures that they fit.
  int64_t rowElements() const { return slots * units; }
  int64_t bufferElements() const { return rows * rowElements(); }
};

/// Inputs for lowering the operations of one channel.
struct ChannelContext {
  ChannelOp channel;
  /// The channel's team and its number of ranks.
  Value team;
  int64_t teamSize;
  /// The memory that the protocol requested, and its window, a hidden argument
  /// of the kernel. If kernels share channel memory, the window is the single
  /// buffer of this launch.
  ChannelMemory memory;
  /// Kernels share the memory. The kernel's prologue clears what the previous
  /// launch received; a protocol clears nothing.
  bool isShared = false;
  Value window;
  /// This rank's own part of it; set after `begin`.
  Value local;

  // Values that `begin` computes once, at the channel op, for all later sends
  // and receives. A protocol sets those that it uses.

  /// This rank's index in the channel's team.
  Value rank;
  /// First element of the buffer of this launch.
  Value buffer;
  /// First element of this rank's row of that buffer, or of the buffer if it
  /// has a single row.
  Value ownRow;
  /// First element of an earlier launch's buffer that must be cleared.
  Value stale;
  /// The flag of this launch, an i32.
  Value flag;
};

/// Costs of moving tiles, used without measurements. Times are in microseconds.
/// A protocol without costs is used only by name, unless everything known of
/// the machine permits it.
struct ProtocolCost {
  /// Time from a send to the peer's receive, without launch and transfer time;
  /// comms-expand-collectives compares it. 0: used only by name.
  double hop = 0;
  /// Additional time of a GPU hop over one store and one poll.
  double moreHop = 1.5;
  /// Time of a hop in the CPU world. 0: used only by name there.
  double cpuHop = 0;
  /// Bytes of link traffic per byte in memory.
  double weight = 1;
  /// Sends are published, and receives wait, by a barrier of the blocks.
  bool meets = false;
  /// Requires links that write 128-byte lines as a whole, which is known for
  /// some devices only.
  bool needsWholeLines = false;
  /// Slots are cleared between launches, by stores that take time.
  bool clears = false;
};

/// A protocol.
struct Protocol {
  /// Name in the IR, as in `!comms.channel<ll, …>`.
  llvm::StringRef name;
  llvm::StringRef summary;
  /// Whether tiles of `elementType` can be sent; `reducing`: they are operands
  /// of a reduction. If not, `why` completes "protocol 'x' cannot be used: ".
  bool (*supports)(Type elementType, bool reducing, std::string &why);
  /// Bytes in memory per byte of data; a factor in the cost rule.
  double (*overhead)(Type elementType);
  ChannelMemory (*memory)(ChannelOp channel, int64_t teamSize);
  /// Called once per channel, at the channel op, before its operations.
  LogicalResult (*begin)(OpBuilder &builder, ChannelContext &context);
  LogicalResult (*send)(OpBuilder &builder, const ChannelContext &context,
                        SendOp op);
  /// Returns the tile.
  FailureOr<Value> (*recv)(OpBuilder &builder, const ChannelContext &context,
                           RecvOp op);
  LogicalResult (*barrier)(OpBuilder &builder, const ChannelContext &context,
                           ChannelBarrierOp op);
  /// Whether a slot can carry another tile in the same launch, once the
  /// previous one was received and the sender knows that: channels that are
  /// `reused`. False if a receiver recognizes a new tile by the launch's
  /// number.
  bool reusable = false;
  /// Tile sizes must be multiples of this number of bytes.
  int64_t tileBytes = 1;
  ProtocolCost cost = {};
  /// Receivers write a slot, too, before it is used again. If a sender observes
  /// that only through other ranks, the order of the two writes rests on this
  /// named assumption (docs/Spec.md). Empty: receivers only read.
  llvm::StringRef assumes = {};

  /// Number of elements that tile lengths must be multiples of.
  int64_t getTileStep(Type elementType) const;
};

/// All protocols, ordered by file name.
llvm::ArrayRef<const Protocol *> getProtocols();

/// The protocol of that name, or null.
const Protocol *findProtocol(llvm::StringRef name);

//===----------------------------------------------------------------------===//
// What protocols share (Slots.cpp)
//===----------------------------------------------------------------------===//

/// Slots at the receiver: one row per source, or a single row if there is only
/// one source.
ChannelMemory layOutSlots(ChannelOp channel, int64_t teamSize, int64_t buffers,
                          int64_t units, Type elementType);

/// Emits the first element of the buffer of launch number `epoch + delay`:
/// ((epoch + delay) mod buffers) * bufferElements.
Value emitBuffer(OpBuilder &builder, Location loc, const ChannelMemory &memory,
                 int64_t delay = 0);

/// Emits `base + row * rowElements`, or `base` if there is a single row.
Value emitRow(OpBuilder &builder, Location loc, const ChannelMemory &memory,
              Value base, Value row);

/// Emits `row + slot * units`: the first element of a slot.
Value emitSlot(OpBuilder &builder, Location loc, const ChannelMemory &memory,
               Value row, Value slot);

/// Emits the memref of a peer's part of the channel's window.
Value emitPeer(OpBuilder &builder, Location loc, const ChannelContext &context,
               Value peer);

/// A slot: a rank's part of the window, and the slot's first element in it.
struct Slot {
  Value part, offset;
};

/// Emits `store` for every slot that a send fills. If slots are at the
/// receiver, these are the named peer's, or, for a multicast, those of all
/// ranks, in a loop that starts after this rank and ends with it, so that at
/// any time all ranks address different peers.
void emitForEachTarget(
    OpBuilder &builder, const ChannelContext &context, SendOp op,
    llvm::function_ref<void(OpBuilder &, const Slot &)> store);

/// Emits the slot that a receive reads, in the buffer that begins at `buffer`;
/// null: the launch's buffer.
Slot emitSource(OpBuilder &builder, const ChannelContext &context, RecvOp op,
                Value buffer = {});

// Implementations of protocol fields.

/// Sets rank, buffer and ownRow of the context.
LogicalResult beginSlots(OpBuilder &builder, ChannelContext &context);

// Plain tiles, published by a barrier of the block.
LogicalResult sendTiles(OpBuilder &builder, const ChannelContext &context,
                        SendOp op);
FailureOr<Value> recvTiles(OpBuilder &builder, const ChannelContext &context,
                           RecvOp op);
LogicalResult synchronizeRanks(OpBuilder &builder,
                               const ChannelContext &context,
                               ChannelBarrierOp op);

// Packets, with the launch's number as their flag.
bool canBePackets(Type elementType, bool reducing, std::string &why);
LogicalResult beginPackets(OpBuilder &builder, ChannelContext &context);
LogicalResult sendPackets(OpBuilder &builder, const ChannelContext &context,
                          SendOp op);
FailureOr<Value> recvPackets(OpBuilder &builder, const ChannelContext &context,
                             RecvOp op);

/// Arrival is visible in the data itself, without a barrier.
LogicalResult needNoBarrier(OpBuilder &builder, const ChannelContext &context,
                            ChannelBarrierOp op);

//===----------------------------------------------------------------------===//
// Analysis of channels
//===----------------------------------------------------------------------===//

/// Bytes that the channels of `kernel` will take on each rank, before they are
/// lowered. Unknown sizes count as 2^63 - 1.
int64_t countChannelBytes(KernelOp kernel);

/// Whether `op` runs in the same way in every launch, with the same operands:
/// they and the control flow around it depend only on constants, rank and block
/// numbers and loops over such values, but not on scalar arguments, memory or
/// the epoch.
bool isLaunchInvariant(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_CHANNELS_PROTOCOL_H
