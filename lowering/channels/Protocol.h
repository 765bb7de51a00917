//===- Protocol.h - How a channel becomes memory operations -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A protocol says where the tiles of a channel lie and how a receiver knows
// that one has come. Each is one file of lowering/channels/protocol; CMake
// makes the registry from their names. docs/AddAProtocol.md builds one step by
// step.
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

/// What slots hold between launches. Kernels that share channel memory keep
/// each kind in a region of its own, because a receiver recognizes a new tile
/// by it.
enum class SlotKind {
  /// Tiles as they are; a barrier publishes them, and no start value is needed.
  Data,
  /// Packets of 8 bytes, each with the flag of the launch that stored it.
  Packets,
  /// Lines of 128 bytes with a flag each, and their rests.
  Lines,
  /// Poison, except where the last launch received.
  Poison,
};

/// The name of a kind: "data", "packets", "lines" or "poison".
llvm::StringRef stringifySlotKind(SlotKind kind);

/// The memory that a channel needs on each rank: a window of shape
/// [buffers, rows, slots, units]. Launches take the buffers in turn. A row
/// belongs to one source or destination of the team; there is one row where
/// every tile of a slot is the same for all, or has one source. A slot is
/// `units` elements, and `rest` more behind all slots of the window.
struct ChannelMemory {
  int64_t buffers = 1, rows = 1, slots = 1, units = 1, rest = 0;
  Type elementType;
  /// Slots lie with the sender, and receivers read there; else they lie with
  /// the receiver, and senders write there.
  bool atSender = false;
  /// Poison is filled in before the first launch; other kinds begin as zeros.
  SlotKind kind = SlotKind::Data;
  /// Of slots of packets: how these lie.
  Assumption packets = Assumption::Store8Whole;

  /// Elements of a row; of a buffer. LowerChannels has made sure that they fit.
  int64_t rowElements() const { return slots * units; }
  int64_t bufferElements() const { return rows * rowElements(); }
};

/// What a protocol is given to lower one channel's operations.
struct ChannelContext {
  ChannelOp channel;
  /// The channel's team, and the number of its ranks.
  Value team;
  int64_t teamSize;
  /// What the protocol said of its memory, and the window that it is: hidden,
  /// an argument of the kernel. Where kernels share channel memory, the window
  /// is the one buffer of this launch.
  ChannelMemory memory;
  /// Kernels share the memory. The kernel's prologue then clears what the
  /// launch before received; a protocol clears nothing.
  bool isShared = false;
  Value window;
  /// This rank's own part of it; made after `begin`.
  Value local;

  // What `begin` computes once, at the channel op, for every send and receive
  // below it. A protocol fills what it uses.

  /// This rank's rank in the channel's team.
  Value rank;
  /// First element of the buffer that this launch uses.
  Value buffer;
  /// First element of this rank's row of that buffer; of the buffer, where it
  /// has one row.
  Value ownRow;
  /// First element of a buffer of an earlier launch that is to be cleared.
  Value stale;
  /// The flag of this launch, an i32.
  Value flag;
};

/// What moving tiles costs, for choices that rest on no measurement. Times are
/// microseconds. A protocol that leaves it out is used by name only, but where
/// nothing of the machine speaks against it.
struct ProtocolCost {
  /// From a send to the peer's receive, without the launch and the bytes: what
  /// comms-expand-collectives compares. 0: that chooses it by name only.
  double hop = 0;
  /// What a hop of a GPU takes more than one store and one poll.
  double moreHop = 1.5;
  /// A hop in the CPU world. 0: chosen there by name only.
  double cpuHop = 0;
  /// Bytes of link time for each byte in memory.
  double weight = 1;
  /// A send is published, and a receive waits, by a barrier of the blocks.
  bool meets = false;
  /// Rests on lines of 128 bytes that a link writes whole, which has been shown
  /// of some devices only.
  bool needsWholeLines = false;
  /// Slots are emptied between launches, by stores that take time.
  bool clears = false;
};

/// One way to move tiles.
struct Protocol {
  /// Name that users write, in `!comms.channel<ll, …>`.
  llvm::StringRef name;
  llvm::StringRef summary;
  /// Whether tiles of `elementType` can travel; `reducing` says that the tiles
  /// are operands of a reduction. If not, `why` follows "protocol 'x' cannot be
  /// used: ".
  bool (*supports)(Type elementType, bool reducing, std::string &why);
  /// Bytes in memory for each byte of data: what the cost rule multiplies by.
  double (*overhead)(Type elementType);
  ChannelMemory (*memory)(ChannelOp channel, int64_t teamSize);
  /// Called once for each channel, at the channel op, before the operations.
  LogicalResult (*begin)(OpBuilder &builder, ChannelContext &context);
  LogicalResult (*send)(OpBuilder &builder, const ChannelContext &context,
                        SendOp op);
  /// Returns the tile.
  FailureOr<Value> (*recv)(OpBuilder &builder, const ChannelContext &context,
                           RecvOp op);
  LogicalResult (*barrier)(OpBuilder &builder, const ChannelContext &context,
                           ChannelBarrierOp op);
  /// Whether a slot can carry another tile in the same launch, once the one
  /// before has been received and the sender knows: channels that are `reused`.
  /// Not where a receiver tells a new tile by the number of the launch.
  bool reusable = false;
  /// Tiles are whole multiples of so many bytes.
  int64_t tileBytes = 1;
  ProtocolCost cost = {};

  /// Elements of which tiles of elements of this type are a multiple.
  int64_t getTileStep(Type elementType) const;
};

/// All protocols, in the order of their file names.
llvm::ArrayRef<const Protocol *> getProtocols();

/// The protocol of that name, or null.
const Protocol *findProtocol(llvm::StringRef name);

//===----------------------------------------------------------------------===//
// What protocols share (Slots.cpp)
//===----------------------------------------------------------------------===//

/// Slots at the receiver: a row for each source, but one where there is only
/// one source.
ChannelMemory layOutSlots(ChannelOp channel, int64_t teamSize, int64_t buffers,
                          int64_t units, Type elementType);

/// Emits the first element of the buffer that the launch of number
/// `epoch + delay` uses: ((epoch + delay) mod buffers) * bufferElements.
Value emitBuffer(OpBuilder &builder, Location loc, const ChannelMemory &memory,
                 int64_t delay = 0);

/// Emits `base + row * rowElements`; `base`, where there is one row.
Value emitRow(OpBuilder &builder, Location loc, const ChannelMemory &memory,
              Value base, Value row);

/// Emits `row + slot * units`: the first element of a slot.
Value emitSlot(OpBuilder &builder, Location loc, const ChannelMemory &memory,
               Value row, Value slot);

/// Emits the memref of a peer's part of the channel's window.
Value emitPeer(OpBuilder &builder, Location loc, const ChannelContext &context,
               Value peer);

/// A slot: a rank's part of the window, and the slot's first element there.
struct Slot {
  Value part, offset;
};

/// Emits `store` for every slot that a send fills. Where slots lie with the
/// receiver, those are the named peer's, or for a multicast all ranks' in a
/// loop that begins after the own rank and ends with it, so that at any moment
/// all ranks address different peers.
void emitForEachTarget(
    OpBuilder &builder, const ChannelContext &context, SendOp op,
    llvm::function_ref<void(OpBuilder &, const Slot &)> store);

/// Emits the slot that a receive reads, in the buffer that begins at `buffer`;
/// null: the launch's.
Slot emitSource(OpBuilder &builder, const ChannelContext &context, RecvOp op,
                Value buffer = {});

// Functions for the fields of a protocol.

/// Fills rank, buffer and ownRow of the context.
LogicalResult beginSlots(OpBuilder &builder, ChannelContext &context);

// Tiles as they are, published by a barrier of the block.
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

/// The data tells by itself that it has come: there is no barrier.
LogicalResult needNoBarrier(OpBuilder &builder, const ChannelContext &context,
                            ChannelBarrierOp op);

//===----------------------------------------------------------------------===//
// What is known of channels
//===----------------------------------------------------------------------===//

/// Bytes that the channels of `kernel` will take on each rank, before they are
/// lowered. What cannot be numbered counts as 2^63 - 1.
int64_t countChannelBytes(KernelOp kernel);

/// Whether `op` runs in every launch alike, with the same operands: they and
/// the control flow around it depend on constants, on who and where the block
/// is and on loops over such values, and on no scalar argument, no memory and
/// no epoch.
bool isLaunchInvariant(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_CHANNELS_PROTOCOL_H
