//===- Protocol.h - How a channel becomes memory operations -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A protocol says where the tiles of a channel lie and how a receiver knows
// that one has come. Each is one file of lowering/protocol; CMake makes the
// registry from their names. docs/AddAProtocol.md builds one step by step.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_PROTOCOL_H
#define COMMSIR_LOWERING_PROTOCOL_H

#include "dialect/Comms.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::comms {

/// What a protocol is given to lower one channel's operations.
struct ChannelContext {
  ChannelOp channel;
  /// The channel's team, and the number of its ranks.
  Value team;
  int64_t teamSize;
  /// The channel's hidden window, an argument of the kernel.
  Value window;

  // What `begin` computes once, at the channel op, for every send and receive
  // below it. A protocol fills what it uses.

  /// This rank's rank in the channel's team.
  Value rank;
  /// This rank's own part of the window.
  Value local;
  /// First element of the buffer that this launch uses.
  Value buffer;
  /// First element of this rank's row of that buffer.
  Value ownRow;
  /// First element of a buffer of an earlier launch that is to be cleared.
  Value stale;
  /// The flag of this launch, an i32.
  Value flag;
};

/// The memory that a channel needs on each rank: a window of shape
/// [buffers, rows, slots, units]. Launches take the buffers in turn. A row
/// belongs to one source or destination of the team; there is one row where
/// every tile of a slot is the same for all, or has one source. A slot is
/// `units` elements, and `rest` more behind all slots of the window.
struct ChannelMemory {
  int64_t buffers = 1, rows = 1, slots = 1, units = 1, rest = 0;
  Type elementType;
  /// Filled with poison rather than zero before the first launch.
  bool poisoned = false;

  /// Elements of a row; of a buffer. LowerChannels has made sure that they fit.
  int64_t rowElements() const { return slots * units; }
  int64_t bufferElements() const { return rows * rowElements(); }
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

  /// Elements of which tiles of elements of this type are a multiple.
  int64_t getTileStep(Type elementType) const;
};

/// All protocols, in the order of their file names.
llvm::ArrayRef<const Protocol *> getProtocols();

/// The protocol of that name, or null.
const Protocol *findProtocol(llvm::StringRef name);

//===----------------------------------------------------------------------===//
// What protocols share (LowerChannels.cpp)
//===----------------------------------------------------------------------===//

/// Emits the first element of the buffer that the launch of number
/// `epoch + delay` uses: ((epoch + delay) mod buffers) * bufferElements.
Value emitBuffer(OpBuilder &builder, Location loc, const ChannelMemory &memory,
                 int64_t delay = 0);

/// Emits `base + row * rowElements`. A null row is row 0.
Value emitRow(OpBuilder &builder, Location loc, const ChannelMemory &memory,
              Value base, Value row);

/// Emits `row + slot * units`: the first element of a slot.
Value emitSlot(OpBuilder &builder, Location loc, const ChannelMemory &memory,
               Value row, Value slot);

/// Emits the memref of a peer's part of the channel's window.
Value emitPeer(OpBuilder &builder, Location loc, const ChannelContext &context,
               Value peer);

/// Emits `body` for every rank that a send reaches: the named peer, or for a
/// multicast all ranks in a loop that begins after the own rank and ends with
/// it, so that at any moment all ranks address different peers.
void emitForEachDestination(
    OpBuilder &builder, const ChannelContext &context, SendOp op,
    llvm::function_ref<void(OpBuilder &, Value peer)> body);

// Protocols whose receivers wait for packets: `begin`, `send` and `recv`. The
// flag is the launch's number; `assumes` says how packets lie.

void beginPackets(OpBuilder &builder, ChannelContext &context,
                  const ChannelMemory &memory);
void sendPackets(OpBuilder &builder, const ChannelContext &context,
                 const ChannelMemory &memory, SendOp op, Assumption assumes);
Value recvPackets(OpBuilder &builder, const ChannelContext &context,
                  const ChannelMemory &memory, RecvOp op, Assumption assumes);

/// Bytes that the channels of `kernel` will take on each rank, before they are
/// lowered. What cannot be numbered counts as 2^63 - 1.
int64_t countChannelBytes(KernelOp kernel);

/// Whether `op` runs in every launch alike, with the same operands: they and
/// the control flow around it depend on constants, on who and where the block
/// is and on loops over such values, and on no scalar argument, no memory and
/// no epoch.
bool isLaunchInvariant(Operation *op);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_PROTOCOL_H
