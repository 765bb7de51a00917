//===- Contracts.cpp - Matrix products of a kernel ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the operands of a kernel's products are, and the shared memory that its
// products take in turn. ContractLowering.cpp emits a product.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"

#include "lowering/analysis/Accesses.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;
using mlir::comms::target::getElementBytes;

/// Shared memory for what is not known yet: what leaders tell, rows.
static constexpr int64_t kReserve = 4 << 10;
/// A stage begins where a pattern of eight rows of 128 bytes does.
static constexpr int64_t kStageAlignment = 1 << 10;

/// Bytes of shared memory of a CTA.
static int64_t getMostShared(unsigned sm) {
  if (sm >= 90)
    return kMaxShared;
  return int64_t(sm == 80 || sm == 87 ? 163 : 99) << 10;
}

bool KernelLowering::isSharedMemory(Value memory) const {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  return scratch.contains(memory);
}

/// Chooses the shapes of all products, and takes their memory.
LogicalResult KernelLowering::layOutContracts(ImplicitLocOpBuilder &b) {
  if (contractMemory >= 0)
    return success();
  int64_t left =
      getMostShared(target.sm) - sharedBytes - kReserve - kStageAlignment;
  SmallVector<ContractOp> ops;
  function.walk([&](Operation *op) {
    if (auto product = dyn_cast<ContractOp>(op))
      ops.push_back(product);
    if (auto scratch = dyn_cast<ScratchOp>(op))
      if (auto type = dyn_cast<MemRefType>(scratch.getResult().getType());
          type && type.hasStaticShape())
        left -= llvm::alignTo(type.getNumElements() *
                                  getElementBytes(type.getElementType()),
                              128);
  });
  int64_t most = 0;
  for (ContractOp op : ops) {
    if (cast<MemRefType>(op.getLhs().getType()).getElementType().isF32())
      continue;
    FailureOr<ContractShape> shape =
        shapeContract(op, target.threads, left, target.sm);
    if (failed(shape))
      return failure();
    contracts[op] = *shape;
    most = std::max(most, shape->getBytes());
  }
  contractMemory = llvm::alignTo(sharedBytes, kStageAlignment);
  if (most > 0) {
    sharedBytes = contractMemory + most;
    (void)sharedAddress(contractMemory, b);
    sharedMemory.setAlignment(kStageAlignment);
  }
  return success();
}

ContractMemory KernelLowering::findMatrix(Value memory, Value row, Value column,
                                          ImplicitLocOpBuilder &b) {
  ContractMemory matrix;
  auto type = cast<MemRefType>(memory.getType());
  matrix.element = type.getElementType();
  matrix.stride = getMatrixColumns(type);
  Value before =
      b.createOrFold<arith::MulIOp>(row, constIndex(matrix.stride, b));
  Value place = b.createOrFold<arith::AddIOp>(before, column);
  int64_t bytes = getElementBytes(matrix.element);
  int64_t step = matrix.stride * bytes;
  int64_t alignment = std::min(getAlignment(memory, place), step & -step);
  bool isShared = isSharedMemory(memory);
  matrix.aligned = !isShared && alignment >= 16;
  matrix.paired = alignment >= 2 * bytes;
  matrix.address = isShared ? elementAddress(memory, place, b)
                            : globalAddress(memory, place, b);
  return matrix;
}

/// Whether one thread can copy the operands as tiles: stages are whole, and
/// rows begin where maps want them.
bool KernelLowering::canUseMaps(ContractOp op, const ContractShape &shape,
                                const ContractParts &parts) {
  constexpr int64_t kStageDepth = 64, kMostTileRows = 256;
  auto isMapped = [](Value memory, const ContractMemory &matrix) {
    int64_t bytes = matrix.element.getIntOrFloatBitWidth() / 8;
    return bytes == 2 && matrix.stride * bytes % 16 == 0 &&
           matrix.stride < (int64_t(1) << 31) &&
           getMatrixRows(memory.getType()) < (int64_t(1) << 31);
  };
  return shape.byGroups && getDivisor(op.getDepth()) % kStageDepth == 0 &&
         !isSharedMemory(op.getLhs()) && !isSharedMemory(op.getRhs()) &&
         isMapped(op.getLhs(), parts.lhs) && isMapped(op.getRhs(), parts.rhs) &&
         getAlignment(op.getLhs()) >= 16 && getAlignment(op.getRhs()) >= 16 &&
         shape.getMapRows(true) <= kMostTileRows &&
         shape.getMapRows(false) <= kMostTileRows;
}

/// The map of a memory, made where the memory is known.
Value KernelLowering::findMap(Value memory, int64_t tileRows,
                              ImplicitLocOpBuilder &b) {
  Value &known = maps[{memory, tileRows}];
  if (known)
    return known;
  constexpr int64_t kMapBytes = 128;
  std::string name =
      (function.getSymName() + "_map" + std::to_string(maps.size())).str();
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(function);
    auto type = LLVM::LLVMArrayType::get(rewriter.getI8Type(),
                                         ranks * target.blocks *
                                             target.cluster * kMapBytes);
    LLVM::GlobalOp::create(rewriter, function.getLoc(), type,
                           /*isConstant=*/false, LLVM::Linkage::Internal, name,
                           LLVM::ZeroAttr::get(rewriter.getContext()),
                           /*alignment=*/kMapBytes, /*addrSpace=*/1);
  }
  ImplicitLocOpBuilder at(b);
  at.setInsertionPointAfterValue(memory);
  auto type = cast<MemRefType>(memory.getType());
  // Each CTA has its own, of each rank that this GPU may run.
  Value cta = arith::ExtUIOp::create(
      at, at.getI64Type(), NVVM::BlockIdXOp::create(at, at.getI32Type()));
  auto number = [&](int64_t value) {
    return arith::ConstantOp::create(at, at.getI64IntegerAttr(value));
  };
  Value before = arith::MulIOp::create(at, toI64(me.rank, at),
                                       number(target.blocks * target.cluster));
  Value bytes = arith::MulIOp::create(
      at, arith::AddIOp::create(at, before, cta), number(kMapBytes));
  Value base = LLVM::AddressOfOp::create(at, global, name);
  known =
      LLVM::GEPOp::create(at, global, at.getI8Type(), base, ValueRange{bytes});
  int64_t place = llvm::alignTo(sharedBytes, kMapBytes);
  sharedBytes = place + kMapBytes;
  Value zero = arith::ConstantIndexOp::create(at, 0);
  Value shared =
      LLVM::PtrToIntOp::create(at, at.getI32Type(), sharedAddress(place, at));
  emitMap(known, shared,
          LLVM::PtrToIntOp::create(at, at.getI64Type(),
                                   globalAddress(memory, zero, at)),
          getMatrixRows(type), getMatrixColumns(type), type.getElementType(),
          tileRows, at);
  return known;
}

LogicalResult KernelLowering::lowerContract(ContractOp op,
                                            ImplicitLocOpBuilder &b) {
  if (isAlone())
    return refuseOp(op);
  if (failed(layOutContracts(b)))
    return failure();
  ContractParts parts;
  parts.lhs = findMatrix(op.getLhs(), op.getLhsRow(), op.getLhsColumn(), b);
  parts.rhs = findMatrix(op.getRhs(), op.getRhsRow(), op.getRhsColumn(), b);
  parts.acc = findMatrix(op.getAcc(), op.getAccRow(), op.getAccColumn(), b);
  parts.tileRows = op.getTileRows();
  parts.tileColumns = op.getTileColumns();
  auto count = [&](Value given, int64_t all) {
    return given ? toI32(given, b) : constI32(all, b);
  };
  parts.rows = count(op.getRows(), parts.tileRows);
  parts.columns = count(op.getColumns(), parts.tileColumns);
  parts.depth = toI32(op.getDepth(), b);
  parts.accumulate = op.getAccumulate();
  if (parts.lhs.element.isF32()) {
    emitPlainContract(parts, op.getTransposeLhs(), op.getTransposeRhs(),
                      target.threads, b);
  } else {
    parts.memory = LLVM::PtrToIntOp::create(b, b.getI32Type(),
                                            sharedAddress(contractMemory, b));
    ContractShape shape = contracts.lookup(op);
    shape.byMaps = canUseMaps(op, shape, parts);
    auto place = [&](ContractMemory &matrix, Value memory, Value row,
                     Value column, bool isLhs) {
      matrix.map = findMap(memory, shape.getMapRows(isLhs), b);
      matrix.row = toI32(row, b);
      matrix.column = toI32(column, b);
    };
    if (shape.byMaps) {
      place(parts.lhs, op.getLhs(), op.getLhsRow(), op.getLhsColumn(), true);
      place(parts.rhs, op.getRhs(), op.getRhsRow(), op.getRhsColumn(), false);
    }
    emitContract(parts, shape, target.threads, b);
  }
  rewriter.eraseOp(op);
  return success();
}
