//===- Protocol.h - How a channel becomes memory operations -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A protocol says where the tiles of a channel lie and how a receiver knows
// that one has come. Each is one file of lowering/protocol; CMake makes the
// registry from their names.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_PROTOCOL_H
#define COMMSIR_LOWERING_PROTOCOL_H

#include "dialect/Comms.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::comms {

/// What a protocol is given to lower one channel's operations.
struct ChannelContext {
  ChannelOp channel;
  /// Ranks of the channel's team.
  int64_t teamSize;
  /// The channel's hidden window, an argument of the kernel.
  Value window;
};

/// The memory that a channel needs on each rank.
struct ChannelMemory {
  WindowType window;
  bool poisoned = false;
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
  LogicalResult (*begin)(OpBuilder &builder, const ChannelContext &context);
  LogicalResult (*send)(OpBuilder &builder, const ChannelContext &context, SendOp op);
  /// Returns the tile.
  FailureOr<Value> (*recv)(OpBuilder &builder, const ChannelContext &context, RecvOp op);
  LogicalResult (*barrier)(OpBuilder &builder, const ChannelContext &context, ChannelBarrierOp op);
};

/// All protocols, in the order of their file names.
llvm::ArrayRef<const Protocol *> getProtocols();

/// The protocol of that name, or null.
const Protocol *findProtocol(llvm::StringRef name);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_PROTOCOL_H
