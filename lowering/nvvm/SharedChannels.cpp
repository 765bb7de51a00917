//===- SharedChannels.cpp - Channel memory that kernels take in turn ------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of a group run one after the other, so that they can use one
// memory. Its regions hold one kind of slots each, in two buffers (poison: in
// three) at a distance that the runtime chooses. A launch of whatever kernel
// uses one buffer, and the next launch another one.
//
// Why no kernel meets what another one left behind. Every launch of every
// kernel hears, directly or through others, from all ranks (CollectiveBuilder's
// beginCollective sees to it where the data alone would not). So a rank that
// begins launch k + 2 knows that every rank has begun launch k + 1, and has
// therefore ended launch k, whose buffer it now writes.
//   - data: a barrier publishes it; what lay there is not looked at.
//   - packets, lines: flags are numbers of launches. All launches are counted
//     by one number, so no flag of another launch is ever taken for this one's.
//     That asks for flags at the same places in all kernels: packets are
//     multiples of 8 bytes, lines of 128, and rests lie in a region apart.
//   - poison: launch k receives in one buffer, and fills in again what the last
//     launch with poison used up in another one (its extent is in the block
//     states). The third is the next launch's.
//
// A launch of few blocks also advances the states of the blocks that it does
// not have: the next launch may have them.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"

#include "lowering/channels/Protocol.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// Bytes that a thread fills with poison in one store.
static constexpr int64_t kPoisonUnit = 16;

bool KernelLowering::takesTurns(unsigned argument) {
  auto slots = kernel.getArgAttrOfType<StringAttr>(argument, kSharedSlotsAttr);
  return slots && slots.getValue() != kBarrierName;
}

/// Finds which buffer of each region the launch uses.
void KernelLowering::takeTurns(ImplicitLocOpBuilder &b) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  // The struct of parameters is the first argument.
  auto arguments = function.getBody().getArguments().drop_front();
  turns.assign(arguments.size(), Value());
  Value zero = constI64(0, b), turn;
  Value parity = arith::AndIOp::create(b, toI64(epoch, b), constI64(1, b));
  Value isOdd =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, parity, zero);
  StringRef poison = stringifySlotKind(SlotKind::Poison);
  for (unsigned i = 0; i < arguments.size(); ++i) {
    if (!takesTurns(i))
      continue;
    Value stride = parameter(offsets[i] + 8 * ranks, i64, b);
    if (kernel.getArgAttrOfType<StringAttr>(i, kSharedSlotsAttr) != poison) {
      turns[i] = arith::SelectOp::create(b, isOdd, stride, zero);
      continue;
    }
    auto window = cast<WindowType>(arguments[i].getType());
    int64_t bytes = window.getNumElements() *
                    window.getElementType().getIntOrFloatBitWidth() / 8;
    poisonUnits +=
        int64_t(llvm::alignTo(bytes, kSharedAlignment)) / kPoisonUnit;
    if (poisonArgument < 0) {
      poisonArgument = i;
      auto word = [&](int64_t offset) {
        return LLVM::LoadOp::create(b, i32, addBytes(words, offset, b), 4);
      };
      third = word(offsetof(BlockState, third));
      staleUnits = word(offsetof(BlockState, stale));
      Value flipped = arith::XOrIOp::create(b, third, constI32(1, b));
      turn = arith::AndIOp::create(b, flipped, constI32(3, b));
      // The turn before: 2, 0, 1.
      Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, turn,
                                            constI32(0, b));
      Value before = arith::SelectOp::create(
          b, isFirst, constI32(2, b),
          arith::SubIOp::create(b, turn, constI32(1, b)));
      staleTurn = arith::MulIOp::create(
          b, arith::ExtUIOp::create(b, i64, before), stride);
      turn = arith::ExtUIOp::create(b, i64, turn);
    }
    turns[i] = arith::MulIOp::create(b, turn, stride);
  }
}

/// Prepares the next launch while this one waits for its peers.
void KernelLowering::enterShared(ImplicitLocOpBuilder &b) {
  Value thread = b.createOrFold<arith::AddIOp>(
      b.createOrFold<arith::MulIOp>(
          block, constIndex(target.threads * target.cluster, b)),
      threadNumber(b));
  Value step = constIndex(target.blocks * target.threads * target.cluster, b);
  advanceOthers(thread, step, b);
  if (third)
    clearStale(thread, step, b);
  // A rank that looks at this one sees which kernel it runs.
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread,
                                        constIndex(0, b));
  auto only = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  ImplicitLocOpBuilder in(b.getLoc(), only.thenYield());
  for (auto [place, from] :
       {std::pair(offsetof(State, digest), offsetof(Launch, digest)),
        std::pair(offsetof(State, extent), offsetof(Launch, extent))})
    emit(in, Ptx::Store64,
         {addBytes(state, int64_t(place), in),
          parameter(int64_t(from), in.getI64Type(), in)});
}

/// Advances the states of blocks that this launch does not have.
void KernelLowering::advanceOthers(Value thread, Value step,
                                   ImplicitLocOpBuilder &b) {
  Value first = arith::AddIOp::create(b, thread, constIndex(target.blocks, b));
  Value all =
      toIndex(parameter(offsetof(Launch, blocks), b.getI32Type(), b), b);
  auto loop = scf::ForOp::create(b, first, all, step);
  ImplicitLocOpBuilder in(b.getLoc(), loop.getBody(), loop.getBody()->begin());
  Value bytes = arith::MulIOp::create(in, toI64(loop.getInductionVar(), in),
                                      constI64(sizeof(BlockState), in));
  Value other = addBytes(addBytes(state, bytes, in), getBlockOffset(0), in);
  auto keep = [&](Value value, int64_t offset, unsigned alignment) {
    LLVM::StoreOp::create(in, value, addBytes(other, offset, in), alignment);
  };
  keep(toI64(epoch, in), offsetof(BlockState, epoch), 8);
  if (!third)
    return;
  keep(getNextThird(in), offsetof(BlockState, third), 4);
  keep(constI32(poisonUnits, in), offsetof(BlockState, stale), 4);
}

/// Fills in the poison that the last launch with poison used up.
void KernelLowering::clearStale(Value thread, Value step,
                                ImplicitLocOpBuilder &b) {
  Value entry = addBytes(params, offsets[poisonArgument], b);
  Value rank = b.createOrFold<arith::MulIOp>(toI64(me.rank, b), constI64(8, b));
  auto own = LLVM::LoadOp::create(b, global, addBytes(entry, rank, b), 8);
  own.setInvariant(true);
  Value base = addBytes(own, staleTurn, b);
  auto loop = scf::ForOp::create(b, thread, toIndex(staleUnits, b), step);
  ImplicitLocOpBuilder in(b.getLoc(), loop.getBody(), loop.getBody()->begin());
  Value bytes = arith::MulIOp::create(in, toI64(loop.getInductionVar(), in),
                                      constI64(kPoisonUnit, in));
  Value poison = constI32(int32_t(kPoison32), in);
  emit(in, Ptx::StoreV4,
       {addBytes(base, bytes, in), poison, poison, poison, poison});
}
