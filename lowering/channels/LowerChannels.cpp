//===- LowerChannels.cpp - Channels become memory operations --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives every channel its memory, a hidden window argument of the kernel, and
// asks the channel's protocol for the memory operations that its sends and
// receives are.
//
//===----------------------------------------------------------------------===//

#include "dialect/Assumptions.h"
#include "lowering/Passes.h"
#include "lowering/analysis/Accesses.h"
#include "lowering/analysis/Attributes.h"
#include "lowering/channels/Protocol.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "comms-lower-channels"

namespace mlir::comms {
#define GEN_PASS_DEF_LOWERCHANNELS
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;
using target::kSharedChannelsAttr;
using target::kSharedSlotsAttr;

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The names of all protocols, as `'a', 'b'`.
static std::string listProtocols() {
  return llvm::join(llvm::map_range(getProtocols(),
                                    [](const Protocol *protocol) {
                                      return ("'" + protocol->name + "'").str();
                                    }),
                    ", ");
}

/// The protocol of a channel, or null after an error: no protocol has the name,
/// or it cannot carry the channel's elements.
static const Protocol *chooseProtocol(ChannelOp channel) {
  ChannelType type = channel.getChannel().getType();
  StringRef name = type.getProtocol().getValue();
  const Protocol *protocol = findProtocol(name);
  if (!protocol) {
    channel.emitOpError() << "names the protocol '" << name
                          << "', which does not exist; use " << listProtocols();
    return nullptr;
  }
  std::string why;
  if (!protocol->supports(type.getElementType(), /*reducing=*/true, why)) {
    channel.emitOpError() << "of " << type.getElementType() << ": protocol '"
                          << name << "' cannot be used: " << why;
    return nullptr;
  }
  int64_t step = protocol->getTileStep(type.getElementType());
  if (type.getTileSize() % step != 0) {
    channel.emitOpError() << "of tiles of " << type.getTileSize() << " "
                          << type.getElementType() << ": protocol '" << name
                          << "' cannot be used: its tiles are multiples of "
                          << step << " elements; use 'll', or `valid`";
    return nullptr;
  }
  if (channel.getReused() && !protocol->reusable) {
    channel.emitOpError() << "is `reused`, which protocol '" << name
                          << "' cannot be: its receivers tell tiles by the "
                             "launch; use 'pull' or 'push', or more slots";
    return nullptr;
  }
  return protocol;
}

/// Bytes of `memory` on each rank; nothing where they are not between 1 and
/// 2^63.
static std::optional<int64_t> countBytes(const ChannelMemory &memory) {
  int64_t bytes = memory.elementType.getIntOrFloatBitWidth() / 8;
  for (int64_t dim :
       {memory.buffers, memory.rows, memory.slots, memory.units + memory.rest})
    if (dim < 1 || __builtin_mul_overflow(bytes, dim, &bytes))
      return std::nullopt;
  return bytes;
}

/// Appends the channel's window to the kernel's arguments.
static FailureOr<Value> addWindow(KernelOp kernel, ChannelOp channel,
                                  const Protocol &protocol,
                                  const ChannelMemory &memory, bool isShared) {
  if (!countBytes(memory)) {
    channel.emitOpError()
        << "needs " << memory.buffers << " x " << memory.rows << " x "
        << memory.slots << " x " << memory.units + memory.rest
        << " elements of " << memory.elementType
        << ", which is not between 1 and 2^63 bytes; use fewer slots";
    return failure();
  }
  Builder builder(kernel.getContext());
  auto window = WindowType::get(
      kernel.getContext(),
      {memory.buffers, memory.rows, memory.slots, memory.units + memory.rest},
      memory.elementType);
  std::string name =
      ("channel" + Twine(int64_t(channel.getId())) + "." + protocol.name).str();
  LLVM_DEBUG(
      llvm::dbgs() << name << ": " << memory.buffers << " buffers x "
                   << memory.rows << " rows x " << memory.slots << " slots x "
                   << memory.units << " " << memory.elementType << ", "
                   << (memory.atSender ? "at the sender" : "at the receiver")
                   << "\n");
  bool isPoison = memory.kind == SlotKind::Poison;
  NamedAttrList attributes;
  attributes.set("comms.hidden", builder.getUnitAttr());
  attributes.set("comms.init",
                 builder.getStringAttr(isPoison ? "poison" : "zero"));
  attributes.set("comms.name", builder.getStringAttr(name));
  if (isShared)
    attributes.set(kSharedSlotsAttr,
                   builder.getStringAttr(stringifySlotKind(memory.kind)));
  unsigned index = kernel.getNumArguments();
  if (failed(kernel.insertArgument(
          index, window, attributes.getDictionary(kernel.getContext()),
          channel.getLoc())))
    return failure();
  return Value(kernel.getArgument(index));
}

/// Whether a send names a peer exactly when the channel's pattern wants one.
static LogicalResult checkPeer(ChannelOp channel, SendOp send) {
  bool multicast = channel.getPattern() == ChannelPattern::Multicast;
  if (multicast != bool(send.getPeer()))
    return success();
  return send.emitOpError()
         << (multicast ? "names a peer, but its channel is a multicast: "
                         "write no `to`"
                       : "names no peer, but its channel is not a multicast: "
                         "write `to`");
}

/// Replaces one operation over the channel.
static LogicalResult lowerUser(Operation *user, const Protocol &protocol,
                               const ChannelContext &context) {
  OpBuilder builder(user);
  if (auto send = dyn_cast<SendOp>(user)) {
    if (failed(checkPeer(context.channel, send)) ||
        failed(protocol.send(builder, context, send)))
      return failure();
  } else if (auto recv = dyn_cast<RecvOp>(user)) {
    FailureOr<Value> tile = protocol.recv(builder, context, recv);
    if (failed(tile))
      return failure();
    recv.getTile().replaceAllUsesWith(*tile);
  } else if (auto barrier = dyn_cast<ChannelBarrierOp>(user)) {
    if (failed(protocol.barrier(builder, context, barrier)))
      return failure();
  } else {
    return user->emitOpError(
        "uses a channel, which only comms.send, comms.recv and "
        "comms.channel_barrier can; use the channel where it is made");
  }
  user->erase();
  return success();
}

static LogicalResult lowerChannel(KernelOp kernel, ChannelOp channel,
                                  bool isShared) {
  const Protocol *protocol = chooseProtocol(channel);
  if (!protocol)
    return failure();
  std::optional<int64_t> size = getConstantTeamSize(channel.getTeam());
  if (!size)
    return channel.emitOpError(
        "needs to know the size of its team; set `ranks` on the kernel");

  ChannelContext context;
  context.memory = protocol->memory(channel, *size);
  context.isShared = isShared;
  if (isShared) // The window is the buffer that the launch has its turn in.
    context.memory.buffers = 1;
  // With two ranks every answer is direct.
  if (!protocol->assumes.empty() && *size > 2)
    stateAssumption(kernel, protocol->assumes);
  FailureOr<Value> window =
      addWindow(kernel, channel, *protocol, context.memory, isShared);
  if (failed(window))
    return failure();
  context.channel = channel;
  context.team = channel.getTeam();
  context.teamSize = *size;
  context.window = *window;
  OpBuilder builder(channel);
  if (failed(protocol->begin(builder, context)))
    return failure();
  auto type = cast<WindowType>(context.window.getType());
  context.local = LocalOp::create(builder, channel.getLoc(),
                                  type.getLocalType(), context.window);

  SmallVector<Operation *> users(channel->getUsers());
  for (Operation *user : llvm::reverse(users))
    if (failed(lowerUser(user, *protocol, context)))
      return failure();
  channel.erase();
  return success();
}

namespace {
struct LowerChannels : mlir::comms::impl::LowerChannelsBase<LowerChannels> {
  using Base::Base;
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (shared)
      kernel->setAttr(kSharedChannelsAttr, UnitAttr::get(&getContext()));
    SmallVector<ChannelOp> channels;
    kernel.walk([&](ChannelOp channel) { channels.push_back(channel); });
    for (ChannelOp channel : channels)
      if (failed(lowerChannel(kernel, channel, shared)))
        return signalPassFailure();
    if (failed(checkNoneIsLeft(kernel)))
      signalPassFailure();
  }

  /// An operation over a channel that no comms.channel of the kernel made.
  static LogicalResult checkNoneIsLeft(KernelOp kernel) {
    WalkResult result = kernel.walk([](Operation *op) {
      if (!isa<SendOp, RecvOp, ChannelBarrierOp>(op))
        return WalkResult::advance();
      op->emitOpError(
          "uses a channel that no comms.channel of this kernel makes");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Before channels are lowered
//===----------------------------------------------------------------------===//

int64_t mlir::comms::countChannelBytes(KernelOp kernel) {
  int64_t total = 0;
  kernel.walk([&](ChannelOp channel) {
    const Protocol *protocol =
        findProtocol(channel.getChannel().getType().getProtocol().getValue());
    std::optional<int64_t> size = getConstantTeamSize(channel.getTeam());
    if (!protocol || !size) // LowerChannels says so.
      return;
    std::optional<int64_t> bytes = countBytes(protocol->memory(channel, *size));
    if (!bytes || __builtin_add_overflow(total, *bytes, &total))
      total = std::numeric_limits<int64_t>::max();
  });
  return total;
}
