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

static Value isSame(Value x, Value y, ImplicitLocOpBuilder &b) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
}

/// The last of every `count` words that were loaded.
static SmallVector<Value> getFlags(ValueRange loaded, size_t count) {
  SmallVector<Value> flags;
  for (size_t i = count - 1; i < loaded.size(); i += count)
    flags.push_back(loaded[i]);
  return flags;
}

/// The first of `flags` that is not `flag`; the last if all are.
static Value findOldFlag(ArrayRef<Value> flags, Value flag,
                         ImplicitLocOpBuilder &b) {
  Value seen = flags.back();
  for (Value old : llvm::reverse(flags.drop_back()))
    seen = arith::SelectOp::create(b, isSame(old, flag, b), seen, old);
  return seen;
}

/// Loads `size` packets at an address of known alignment.
static SmallVector<Value>
loadPackets(int64_t size, int64_t alignment, ImplicitLocOpBuilder &b,
            llvm::function_ref<Value(int64_t)> addressAt) {
  SmallVector<Value> loaded;
  for (Piece piece : getPieces(8 * size, std::max<int64_t>(alignment, 8))) {
    SmallVector<Type> results(piece.bytes / 4, b.getI32Type());
    llvm::append_range(loaded,
                       emit(b, piece.bytes == 16 ? Ptx::LoadV4 : Ptx::LoadV2,
                            {addressAt(piece.offset)}, results));
  }
  return loaded;
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
    auto at = [&](int64_t offset) { return addBytes(address, offset, in); };
    if (!count)
      return loadPackets(size, alignment, in, at);
    SmallVector<Value> loaded;
    for (int64_t i = 0; i < size; ++i)
      llvm::append_range(loaded, emit(in, Ptx::LoadV2If,
                                      {at(8 * i), isBelow(i, count, in)},
                                      {in.getI32Type(), in.getI32Type()}));
    return loaded;
  };
  poll.ready = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) {
    Value all;
    for (auto [i, seen] : llvm::enumerate(getFlags(loaded, 2))) {
      Value fresh = isSame(seen, flag, in);
      if (count) { // A packet that does not exist needs no flag.
        Value absent = isSame(isBelow(i, count, in), constI32(0, in), in);
        fresh = arith::OrIOp::create(in, fresh, absent);
      }
      all = all ? arith::AndIOp::create(in, all, fresh).getResult() : fresh;
    }
    return all;
  };
  poll.seen = [=](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    Value seen = findOldFlag(getFlags(loaded, 2), flag, in);
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
/// Shuffles among the threads of a line, as the instruction takes it.
static constexpr int64_t lineSegments = ((32 - lineThreads) << 8) | 31;

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
  if (auto known = lineArguments.find(memref); known != lineArguments.end()) {
    // Where kernels share the memory, rests lie in a region of their own.
    Value shift =
        parameter(offsets[known->second] + 8 * (ranks + 1), b.getI64Type(), b);
    part.rest = addBytes(globalAddress(memref, rest, b), shift, b);
  } else {
    int64_t elements = cast<MemRefType>(memref.getType()).getNumElements();
    rest = arith::AddIOp::create(
        b, rest, index(countUnits(elements, Assumption::Store128Whole)));
    part.rest = globalAddress(memref, rest, b);
  }
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value lastThread = constI32(lineThreads - 1, b);
  part.isLast = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, arith::AndIOp::create(b, thread, lastThread),
      lastThread);
  part.hasRest = arith::ExtUIOp::create(b, b.getI32Type(), part.isLast);
  if (!valid)
    return part;
  // The line is there if its first thread has anything valid.
  part.exists = NVVM::ShflOp::create(
      b, b.getI32Type(), constI32(-1, b), isBelow(0, valid, b), constI32(0, b),
      constI32(lineSegments, b), NVVM::ShflKind::idx, UnitAttr());
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

/// Like emit of a load of 16 bytes, 0 where `exists` (null: always) is not.
static SmallVector<Value> loadPart(Value address, Value exists,
                                   ImplicitLocOpBuilder &b) {
  SmallVector<Type> words(partWords, b.getI32Type());
  if (!exists)
    return emit(b, Ptx::LoadV4, {address}, words);
  return emit(b, Ptx::LoadV4If, {address, exists}, words);
}

/// i32: 0 if all flags are there, in lines and in their rests.
static Value findDifference(ValueRange loaded, Value flag, Value zero,
                            ImplicitLocOpBuilder &b) {
  Value any = zero;
  for (Value seen : getFlags(loaded, partWords))
    any = arith::OrIOp::create(b, any, arith::XOrIOp::create(b, seen, flag));
  return any;
}

/// Loads give, for each line, four words of it and four of its rest. Only the
/// last thread of a line sees flags.
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
    SmallVector<Value> loaded;
    NVVM::SyncWarpOp::create(in, all);
    for (int64_t line = 0; line < lines; ++line) {
      Value mine = addBytes(part.address, line * lineBytes, in);
      llvm::append_range(loaded, loadPart(mine, part.exists, in));
      Value rest = addBytes(part.rest, line * kRestUnits * 8, in);
      llvm::append_range(loaded, loadPart(rest, part.hasRest, in));
    }
    return loaded;
  };
  poll.ready = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    Value zero = constI32(0, in);
    Value sees =
        arith::CmpIOp::create(in, arith::CmpIPredicate::ne, part.hasRest, zero);
    Value here = arith::SelectOp::create(
        in, sees, findDifference(loaded, flag, zero, in), zero);
    return arith::CmpIOp::create(in, arith::CmpIPredicate::eq, here, zero);
  };
  poll.seen = [=, this](ImplicitLocOpBuilder &in, ValueRange loaded) -> Value {
    Value seen = findOldFlag(getFlags(loaded, partWords), flag, in);
    // What the last thread sees.
    seen = NVVM::ShflOp::create(
        in, in.getI32Type(), all, seen, constI32(lineThreads - 1, in),
        constI32(lineSegments, in), NVVM::ShflKind::idx, UnitAttr());
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
