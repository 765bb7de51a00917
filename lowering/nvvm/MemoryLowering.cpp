//===- MemoryLowering.cpp - Windows, scratch memory and copies ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/IR/Matchers.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;
using mlir::comms::target::getElementBytes;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Parameters never change while the kernel runs.
static Value loadParameter(Value address, Type type, ImplicitLocOpBuilder &b) {
  auto load = LLVM::LoadOp::create(
      b, type, address, isa<IntegerType>(type) && type.isInteger(32) ? 4 : 8);
  load.setInvariant(true);
  return load;
}

Value KernelLowering::parameter(int64_t offset, Type type,
                                ImplicitLocOpBuilder &b) {
  return loadParameter(addBytes(params, offset, b), type, b);
}

Value KernelLowering::partAddress(unsigned argument, Value worldRank,
                                  ImplicitLocOpBuilder &b) {
  Value bytes =
      b.createOrFold<arith::MulIOp>(toI64(worldRank, b), constI64(8, b));
  Value entry = addBytes(addBytes(params, offsets[argument], b), bytes, b);
  Value part = loadParameter(entry, global, b);
  bool hasTurn = argument < turns.size() && turns[argument];
  return hasTurn ? addBytes(part, turns[argument], b) : part;
}

/// Cell `index` of a signal of a rank, or of a counter (null rank).
Value KernelLowering::cellAddress(unsigned argument, Value worldRank,
                                  Value index, ImplicitLocOpBuilder &b) {
  Value base = worldRank ? partAddress(argument, worldRank, b)
                         : parameter(offsets[argument], global, b);
  Value bytes = b.createOrFold<arith::MulIOp>(toI64(index, b), constI64(8, b));
  return addBytes(base, bytes, b);
}

/// Memrefs hold generic pointers, whose space LLVM finds out, except for those
/// of shared memory.
Value KernelLowering::makeMemRef(MemRefType type, Value address,
                                 int64_t alignment, ImplicitLocOpBuilder &b) {
  auto space = dyn_cast_or_null<MemorySpaceAttr>(type.getMemorySpace());
  bool isShared = space && space.getValue() == MemorySpace::Shared;
  if (address.getType() != generic && !isShared)
    address = LLVM::AddrSpaceCastOp::create(b, generic, address);
  Value descriptor =
      MemRefDescriptor::fromStaticShape(b, b.getLoc(), types, type, address);
  Value memref =
      UnrealizedConversionCastOp::create(b, TypeRange{type}, descriptor)
          .getResult(0);
  alignments[memref] = alignment;
  return memref;
}

Value KernelLowering::viewPart(MemRefType type, unsigned argument,
                               Value worldRank, ImplicitLocOpBuilder &b) {
  Value view =
      makeMemRef(type, partAddress(argument, worldRank, b), kAlignment, b);
  if (takesTurns(argument))
    lineArguments[view] = argument;
  return view;
}

Value KernelLowering::globalAddress(Value memref, Value offset,
                                    ImplicitLocOpBuilder &b) {
  return LLVM::AddrSpaceCastOp::create(b, global,
                                       elementAddress(memref, offset, b));
}

//===----------------------------------------------------------------------===//
// Alignment
//===----------------------------------------------------------------------===//

constexpr int64_t kMostAlignment = int64_t(1) << 20;

static int64_t powerOfTwoIn(int64_t value) {
  if (value == 0)
    return kMostAlignment;
  // Without a sign, for -value may not exist.
  uint64_t bits = static_cast<uint64_t>(value);
  return std::min<uint64_t>(kMostAlignment, bits & -bits);
}

static int64_t findDivisor(Value index, int depth) {
  APInt known;
  if (matchPattern(index, m_ConstantInt(&known)))
    return powerOfTwoIn(known.getSExtValue());
  if (depth == 0)
    return 1;
  auto of = [&](Value value) { return findDivisor(value, depth - 1); };
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop =
        dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || loop.getInductionVar() != index)
      return 1;
    return std::min(of(loop.getLowerBound()), of(loop.getStep()));
  }
  Operation *op = index.getDefiningOp();
  if (isa<arith::AddIOp, arith::SubIOp, arith::RemUIOp, arith::RemSIOp,
          arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp,
          arith::OrIOp, arith::XOrIOp>(op))
    return std::min(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::MulIOp>(op))
    return std::min(kMostAlignment,
                    of(op->getOperand(0)) * of(op->getOperand(1)));
  if (isa<arith::AndIOp>(op))
    return std::max(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::ShLIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&known)))
    return std::min<uint64_t>(
        kMostAlignment, of(op->getOperand(0))
                            << std::min<uint64_t>(known.getLimitedValue(), 20));
  if (isa<arith::DivUIOp, arith::DivSIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&known)) &&
      known.isPowerOf2())
    return std::max<int64_t>(1, of(op->getOperand(0)) /
                                    int64_t(std::min<uint64_t>(
                                        known.getZExtValue(), kMostAlignment)));
  if (isa<arith::SelectOp>(op))
    return std::min(of(op->getOperand(1)), of(op->getOperand(2)));
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp,
          arith::ExtSIOp, arith::TruncIOp>(op))
    return of(op->getOperand(0));
  return 1;
}

int64_t nvvm::getDivisor(Value index) { return findDivisor(index, 24); }

/// Alignment of a memref's first element.
int64_t KernelLowering::getAlignment(Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type)
    return 1;
  auto it = alignments.find(memref);
  if (it != alignments.end())
    return it->second;
  int64_t element = getElementBytes(type.getElementType());
  Operation *op = memref.getDefiningOp();
  if (auto known =
          op ? op->getAttrOfType<IntegerAttr>(kAlignmentAttr) : IntegerAttr())
    return known.getInt();
  // A part of a window that is not lowered yet.
  if (isa_and_present<LocalOp, PeerOp>(op))
    return kAlignment;
  // A cycle cannot be: views come after what they view.
  if (isa_and_present<memref::CastOp, memref::CollapseShapeOp,
                      memref::ExpandShapeOp>(op))
    return getAlignment(op->getOperand(0));
  if (isa_and_present<memref::ReinterpretCastOp, memref::SubViewOp>(op)) {
    auto [strides, offset] = type.getStridesAndOffset();
    if (ShapedType::isDynamic(offset))
      return powerOfTwoIn(element);
    return std::min(getAlignment(op->getOperand(0)),
                    powerOfTwoIn(offset * element));
  }
  return powerOfTwoIn(element);
}

/// Alignment of element `offset` of a memref.
int64_t KernelLowering::getAlignment(Value memref, Value offset) {
  int64_t element =
      getElementBytes(cast<MemRefType>(memref.getType()).getElementType());
  return std::min(
      getAlignment(memref),
      std::min(kMostAlignment, getDivisor(offset) * powerOfTwoIn(element)));
}

/// Says of a vector access how far it is aligned.
void KernelLowering::alignVector(Operation *op) {
  auto load = dyn_cast<vector::LoadOp>(op);
  auto store = dyn_cast<vector::StoreOp>(op);
  Value memref = load ? load.getBase() : store.getBase();
  ValueRange indices = load ? load.getIndices() : store.getIndices();
  VectorType vector = load ? load.getVectorType() : store.getVectorType();
  auto type = cast<MemRefType>(memref.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t element = getElementBytes(type.getElementType());
  int64_t alignment = getAlignment(memref);
  for (auto [index, stride] : llvm::zip_equal(indices, strides)) {
    int64_t step = ShapedType::isDynamic(stride) ? 1 : powerOfTwoIn(stride);
    alignment = std::min(alignment,
                         std::min(kMostAlignment, getDivisor(index) * step *
                                                      powerOfTwoIn(element)));
  }
  int64_t size = llvm::PowerOf2Ceil(llvm::divideCeil(
      vector.getNumElements() * vector.getElementTypeBitWidth(), 8));
  // Whoever made the access may know more.
  std::optional<uint64_t> given =
      load ? load.getAlignment() : store.getAlignment();
  alignment = std::max<int64_t>(std::min(alignment, size), given.value_or(1));
  if (load)
    load.setAlignment(alignment);
  else
    store.setAlignment(alignment);
}

//===----------------------------------------------------------------------===//
// Windows and memory of the block
//===----------------------------------------------------------------------===//

/// One symbol stands for all that the kernel needs.
Value KernelLowering::sharedAddress(int64_t at, ImplicitLocOpBuilder &b) {
  if (!sharedMemory) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(function);
    sharedMemory = LLVM::GlobalOp::create(
        rewriter, function.getLoc(),
        LLVM::LLVMArrayType::get(rewriter.getI8Type(), 0), /*isConstant=*/false,
        LLVM::Linkage::Internal, (function.getSymName() + "_shared").str(),
        Attribute(), /*alignment=*/128, /*addrSpace=*/3);
  }
  Value base = LLVM::AddressOfOp::create(b, shared, sharedMemory.getSymName());
  return addBytes(base, at, b);
}

/// Shared memory of the CTA.
LogicalResult KernelLowering::lowerScratch(Operation *op, MemRefType type,
                                           ImplicitLocOpBuilder &b) {
  if (!type.getLayout().isIdentity() || !type.hasStaticShape())
    return op->emitOpError("needs a static shape and the identity layout");
  int64_t bytes = getElementBytes(type.getElementType());
  bool tooLarge = false;
  for (int64_t dim : type.getShape())
    tooLarge |= dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes);
  if (tooLarge || bytes > kMaxShared || sharedBytes + bytes > kMaxShared)
    return op->emitOpError("needs more shared memory than the ")
           << kMaxShared
           << " bytes of a CTA: use shorter rows, or spread a row over more "
              "threads or a larger cluster";
  Value address = sharedAddress(sharedBytes, b);
  sharedBytes += llvm::alignTo(bytes, 128);
  Value memref = makeMemRef(type, address, 128, b);
  scratch.insert(memref);
  rewriter.replaceOp(op, memref);
  return success();
}

/// Memory of the thread: registers, where the optimizer can tell.
LogicalResult KernelLowering::lowerAlloca(memref::AllocaOp op,
                                          ImplicitLocOpBuilder &b) {
  MemRefType type = op.getType();
  if (!type.getLayout().isIdentity() || !type.hasStaticShape() ||
      type.getNumElements() > (1 << 16))
    return op.emitOpError("must have a static shape of at most 65536 elements "
                          "and the identity layout on a GPU");
  Value count = constI64(1, b);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(count.getDefiningOp());
  Type storage = LLVM::LLVMArrayType::get(
      types.convertType(type.getElementType()), type.getNumElements());
  Value memory = LLVM::AllocaOp::create(b, generic, storage, count, 16);
  b.setInsertionPoint(op);
  rewriter.replaceOp(op, makeMemRef(type, memory, 16, b));
  return success();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// All threads of the block copy `count` elements: `alignment` bytes at a time,
/// then the rest by elements.
void KernelLowering::copyBytes(Value source, Value dest, Value count,
                               int64_t elementBytes, int64_t alignment,
                               ImplicitLocOpBuilder &b) {
  int64_t unit = std::max(std::min<int64_t>(alignment, 16), elementBytes);
  int64_t perUnit = unit / elementBytes;
  Value all = toI64(count, b);
  Value thread = toI64(threadNumber(b), b);
  Value step = constI64(target.threads * target.cluster, b);
  auto copy = [&](Value from, Value to, int64_t bytes) {
    Type type = bytes == 16 ? Type(VectorType::get({4}, b.getI32Type()))
                            : Type(b.getIntegerType(8 * bytes));
    auto loop =
        scf::ForOp::create(b, arith::AddIOp::create(b, from, thread), to, step);
    ImplicitLocOpBuilder in(b.getLoc(), loop.getBody(),
                            loop.getBody()->begin());
    Value offset =
        arith::MulIOp::create(in, loop.getInductionVar(), constI64(bytes, in));
    Value data =
        LLVM::LoadOp::create(in, type, addBytes(source, offset, in), bytes);
    LLVM::StoreOp::create(in, data, addBytes(dest, offset, in), bytes);
  };
  Value zero = constI64(0, b);
  if (perUnit == 1) {
    copy(zero, all, elementBytes);
    return;
  }
  Value per = constI64(perUnit, b);
  Value units = b.createOrFold<arith::DivSIOp>(all, per);
  copy(zero, units, unit);
  Value copied = b.createOrFold<arith::MulIOp>(units, per);
  APInt known;
  if (!matchPattern(all, m_ConstantInt(&known)) ||
      known.getSExtValue() % perUnit != 0)
    copy(copied, all, elementBytes);
}

LogicalResult KernelLowering::lowerTransfer(Operation *op,
                                            const target::Transfer &transfer,
                                            ImplicitLocOpBuilder &b) {
  FailureOr<target::TransferAddresses> ends = findEnds(op, transfer, b);
  if (failed(ends))
    return failure();
  int64_t bytes = getElementBytes(ends->element);
  Value mine = ends->mine;
  Value theirs = LLVM::AddrSpaceCastOp::create(b, generic, ends->theirs);
  int64_t alignment =
      std::min({kAlignment, getAlignment(transfer.local, transfer.localOffset),
                std::min(kMostAlignment,
                         getDivisor(transfer.offset) * powerOfTwoIn(bytes))});
  copyBytes(transfer.toPeer ? mine : theirs, transfer.toPeer ? theirs : mine,
            transfer.count, bytes, alignment, b);
  return success();
}

void KernelLowering::lowerBulkCopy(BulkCopyOp op, ImplicitLocOpBuilder &b) {
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  copyBytes(elementAddress(op.getSource(), op.getSourceOffset(), b),
            elementAddress(op.getDest(), op.getDestOffset(), b), op.getCount(),
            getElementBytes(element),
            std::min(getAlignment(op.getSource(), op.getSourceOffset()),
                     getAlignment(op.getDest(), op.getDestOffset())),
            b);
}

void KernelLowering::count(Operation *op, unsigned counter, Value index,
                           ImplicitLocOpBuilder &b) {
  threadBarrier(b);
  ifLeader(b, [&](ImplicitLocOpBuilder &in) {
    emit(in, Ptx::AddRelease64,
         {cellAddress(counter, {}, index, in), constI64(1, in)});
  });
}
