//===- PacketLowering.cpp - Packets, alone and in lines -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Packets.h"

#include "lowering/nvvm/KernelLowering.h"
#include "lowering/nvvm/Tiles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;
using namespace mlir::comms::target;

//===----------------------------------------------------------------------===//
// Packets
//===----------------------------------------------------------------------===//

void KernelLowering::lowerPacketStore(PacketStoreOp op, VectorType type,
                                      ImplicitLocOpBuilder &b) {
  SmallVector<Value> words =
      splitWords(clearInvalid(op.getTile(), op.getValid(), b), b);
  Value address = globalAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment = getAlignment(op.getMemref(), op.getOffset());
  Value count = countWords(type, op.getValid(), b), flag = op.getFlag();
  int64_t size = words.size();
  auto whole = [&](ImplicitLocOpBuilder &in) {
    for (Piece piece : getPieces(8 * size, std::max<int64_t>(alignment, 8))) {
      Value at = addBytes(address, piece.offset, in);
      int64_t i = piece.offset / 8;
      if (piece.bytes == 16)
        emit(in, Ptx::StoreV4, {at, words[i], flag, words[i + 1], flag});
      else
        emit(in, Ptx::StoreV2, {at, words[i], flag});
    }
  };
  auto part = [&](ImplicitLocOpBuilder &in) {
    for (int64_t i = 0; i < size; ++i)
      emit(in, Ptx::StoreV2If,
           {addBytes(address, 8 * i, in), words[i], flag,
            isBelow(i, count, in)});
  };
  splitTail(count, constIndex(size, b), b, whole, part);
  rewriter.eraseOp(op);
}

/// Loads give word, flag, word, flag, …
Poll KernelLowering::pollPackets(PacketLoadOp op, VectorType type,
                                 ImplicitLocOpBuilder &b) {
  int64_t size = llvm::divideCeil(
      type.getNumElements() * type.getElementTypeBitWidth(), 32);
  Value address = globalAddress(op.getMemref(), op.getOffset(), b);
  int64_t alignment = getAlignment(op.getMemref(), op.getOffset());
  Value count = countWords(type, op.getValid(), b), flag = op.getFlag();
  Poll poll;
  poll.kind = PollKind::Packet;
  poll.op = op;
  poll.wanted = arith::ExtUIOp::create(b, b.getI64Type(), flag);
  poll.types.assign(2 * size, b.getI32Type());
  poll.load = [=, this](ImplicitLocOpBuilder &in) {
    Type i32 = in.getI32Type();
    SmallVector<Value> loaded;
    if (count) {
      for (int64_t i = 0; i < size; ++i)
        llvm::append_range(
            loaded, emit(in, Ptx::LoadV2If,
                         {addBytes(address, 8 * i, in), isBelow(i, count, in)},
                         {i32, i32}));
      return loaded;
    }
    for (Piece piece : getPieces(8 * size, std::max<int64_t>(alignment, 8))) {
      Value at = addBytes(address, piece.offset, in);
      SmallVector<Type> results(piece.bytes / 4, i32);
      llvm::append_range(loaded,
                         emit(in, piece.bytes == 16 ? Ptx::LoadV4 : Ptx::LoadV2,
                              {at}, results));
    }
    return loaded;
  };
  poll.ready = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) {
    Value all;
    for (int64_t i = 0; i < size; ++i) {
      Value fresh = arith::CmpIOp::create(in, arith::CmpIPredicate::eq,
                                          loaded[2 * i + 1], flag);
      if (count) { // A packet that does not exist needs no flag.
        Value absent =
            arith::CmpIOp::create(in, arith::CmpIPredicate::eq,
                                  isBelow(i, count, in), constI32(0, in));
        fresh = arith::OrIOp::create(in, fresh, absent);
      }
      all = all ? arith::AndIOp::create(in, all, fresh).getResult() : fresh;
    }
    return all;
  };
  poll.seen = [=](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    // The first flag that is not the one.
    Value seen = loaded[2 * size - 1];
    for (int64_t i = size - 1; i-- > 0;) {
      Value old = loaded[2 * i + 1];
      Value fresh =
          arith::CmpIOp::create(in, arith::CmpIPredicate::eq, old, flag);
      seen = arith::SelectOp::create(in, fresh, seen, old);
    }
    return arith::ExtUIOp::create(in, in.getI64Type(), seen);
  };
  return poll;
}

//===----------------------------------------------------------------------===//
// Lines of packets
//===----------------------------------------------------------------------===//

/// Bytes of a line that one access of a thread moves; 32-bit words of that.
static constexpr int64_t partBytes = 16, partWords = partBytes / 4;
static constexpr int64_t lineBytes = kLineBits / 8;
static constexpr int64_t lineThreads = lineBytes / partBytes;

/// Eight threads store a line in one instruction, on which it rests that it is
/// seen whole: their warp has all of its threads here, in one place.
LogicalResult KernelLowering::checkLines(Operation *op, Value memref,
                                         VectorType type) {
  if (target.threads % 32 != 0)
    return op->emitOpError("moves lines, which threads of a warp share: run "
                           "comms-distribute-tiles with threads");
  if (getBytes(type) % partBytes != 0)
    return op->emitOpError("moves ")
           << getBytes(type) << " bytes of a line, not a multiple of "
           << partBytes << ": run comms-distribute-tiles first";
  if (getAlignment(memref) < lineBytes)
    return op->emitOpError("moves lines of memory that is not known to be "
                           "aligned to ")
           << lineBytes << " bytes: use a window itself, not a view of it";
  return success();
}

LinePart KernelLowering::findLine(Value memref, Value offset, Value valid,
                                  ImplicitLocOpBuilder &b) {
  LinePart part;
  part.address = globalAddress(memref, offset, b);
  auto index = [&](int64_t value) { return constIndex(value, b); };
  Value line = arith::DivUIOp::create(b, offset, index(kLineUnits));
  Value rest = arith::MulIOp::create(b, line, index(kRestUnits));
  int64_t elements = cast<MemRefType>(memref.getType()).getNumElements();
  rest = arith::AddIOp::create(
      b, rest, index(countUnits(elements, Assumption::Store128Whole)));
  part.rest = globalAddress(memref, rest, b);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value lastThread = constI32(lineThreads - 1, b);
  part.isLast = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, arith::AndIOp::create(b, thread, lastThread),
      lastThread);
  part.hasRest = arith::ExtUIOp::create(b, b.getI32Type(), part.isLast);
  if (!valid)
    return part;
  // The line is there if its first thread has anything valid.
  constexpr int64_t segments = ((32 - lineThreads) << 8) | 31;
  part.exists = NVVM::ShflOp::create(
      b, b.getI32Type(), constI32(-1, b), isBelow(0, valid, b), constI32(0, b),
      constI32(segments, b), NVVM::ShflKind::idx, UnitAttr());
  part.hasRest = arith::AndIOp::create(b, part.hasRest, part.exists);
  return part;
}

LogicalResult KernelLowering::lowerLineStore(PacketStoreOp op, VectorType type,
                                             ImplicitLocOpBuilder &b) {
  if (failed(checkLines(op, op.getMemref(), type)))
    return failure();
  SmallVector<Value> words =
      splitWords(clearInvalid(op.getTile(), op.getValid(), b), b);
  LinePart part = findLine(op.getMemref(), op.getOffset(), op.getValid(), b);
  Value flag = op.getFlag();
  NVVM::SyncWarpOp::create(b, constI32(-1, b));
  for (size_t i = 0; i < words.size(); i += partWords) {
    int64_t line = i / partWords;
    // Where the flag stands, the data goes to the rest.
    Value third = arith::SelectOp::create(b, part.isLast, flag, words[i + 2]);
    Value fourth = arith::SelectOp::create(b, part.isLast, flag, words[i + 3]);
    SmallVector<Value> stored{addBytes(part.address, line * lineBytes, b),
                              words[i], words[i + 1], third, fourth};
    if (part.exists)
      stored.push_back(part.exists);
    emit(b, part.exists ? Ptx::StoreV4If : Ptx::StoreV4, stored);
    emit(b, Ptx::StoreV4If,
         {addBytes(part.rest, line * kRestUnits * 8, b), words[i + 2],
          words[i + 3], flag, flag, part.hasRest});
  }
  rewriter.eraseOp(op);
  return success();
}

/// Loads give, for each line, four words of it and four of its rest.
Poll KernelLowering::pollLines(PacketLoadOp op, VectorType type,
                               ImplicitLocOpBuilder &b) {
  LinePart part = findLine(op.getMemref(), op.getOffset(), op.getValid(), b);
  int64_t lines = getBytes(type) / partBytes;
  Value flag = op.getFlag(), all = constI32(-1, b);
  Poll poll;
  poll.kind = PollKind::Packet;
  poll.op = op;
  poll.together = true;
  poll.wanted = arith::ExtUIOp::create(b, b.getI64Type(), flag);
  poll.types.assign(2 * partWords * lines, b.getI32Type());
  poll.load = [=, this](ImplicitLocOpBuilder &in) {
    SmallVector<Type> results(partWords, in.getI32Type());
    SmallVector<Value> loaded;
    NVVM::SyncWarpOp::create(in, all);
    for (int64_t line = 0; line < lines; ++line) {
      SmallVector<Value> from{addBytes(part.address, line * lineBytes, in)};
      if (part.exists)
        from.push_back(part.exists);
      llvm::append_range(
          loaded,
          emit(in, part.exists ? Ptx::LoadV4If : Ptx::LoadV4, from, results));
      llvm::append_range(
          loaded,
          emit(in, Ptx::LoadV4If,
               {addBytes(part.rest, line * kRestUnits * 8, in), part.hasRest},
               results));
    }
    return loaded;
  };
  // Only the last thread sees flags: in the line, and in its rest.
  auto missing = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) {
    Value any = constI32(0, in);
    for (size_t i = partWords - 1; i < loaded.size(); i += partWords)
      any = arith::OrIOp::create(in, any,
                                 arith::XOrIOp::create(in, loaded[i], flag));
    return any;
  };
  poll.ready = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    Value zero = constI32(0, in);
    Value here = arith::SelectOp::create(
        in,
        arith::CmpIOp::create(in, arith::CmpIPredicate::ne, part.hasRest, zero),
        missing(in, loaded), zero);
    return arith::CmpIOp::create(in, arith::CmpIPredicate::eq, here, zero);
  };
  poll.seen = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    // What the last thread sees: the first flag that is not the one.
    Value seen = loaded.back();
    for (size_t i = loaded.size() - 1; i > size_t(partWords);) {
      i -= partWords;
      Value fresh =
          arith::CmpIOp::create(in, arith::CmpIPredicate::eq, loaded[i], flag);
      seen = arith::SelectOp::create(in, fresh, seen, loaded[i]);
    }
    constexpr int64_t segments = ((32 - lineThreads) << 8) | 31;
    seen = NVVM::ShflOp::create(
        in, in.getI32Type(), all, seen, constI32(lineThreads - 1, in),
        constI32(segments, in), NVVM::ShflKind::idx, UnitAttr());
    return arith::ExtUIOp::create(in, in.getI64Type(), seen);
  };
  return poll;
}

/// The words of a tile of what a poll of lines has loaded.
SmallVector<Value> KernelLowering::joinLines(ValueRange loaded,
                                             ImplicitLocOpBuilder &b) {
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value last = constI32(lineThreads - 1, b);
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                            arith::AndIOp::create(b, thread, last), last);
  SmallVector<Value> words;
  for (; !loaded.empty(); loaded = loaded.drop_front(2 * partWords)) {
    ValueRange rest = loaded.drop_front(partWords);
    llvm::append_range(words, loaded.take_front(2));
    for (int64_t i : {0, 1})
      words.push_back(
          arith::SelectOp::create(b, isLast, rest[i], loaded[i + 2]));
  }
  return words;
}
