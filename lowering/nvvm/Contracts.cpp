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
/// Shared memory by which threads that copy are told what.
static constexpr int64_t kCopyReserve = 256;
/// And for what it is told of each addend.
static constexpr int64_t kAddendReserve = 16;
/// Bytes of a map.
static constexpr int64_t kMapBytes = 128;
/// A stage begins where a pattern of eight rows of 128 bytes does.
static constexpr int64_t kStageAlignment = 1 << 10;
/// The barrier of all threads but those that copy.
static constexpr int64_t kOthersBarrier = 1;

bool KernelLowering::isSharedMemory(Value memory) const {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  return scratch.contains(memory);
}

/// Shared memory in which the maps of these products are made, at most: one for
/// each memory and each size of its tiles.
static int64_t getMapBytes(ArrayRef<ContractOp> ops) {
  // Tiles have rows of the product's, or (0) the terms of a stage.
  llvm::DenseSet<std::pair<Value, int64_t>> maps;
  for (ContractOp op : ops) {
    int64_t rows = op.getTileRows(), columns = op.getTileColumns();
    maps.insert({op.getLhs(), op.getTransposeLhs() ? 0 : rows});
    maps.insert({op.getRhs(), op.getTransposeRhs() ? columns : 0});
    if (op.getAddends().size() <= size_t(kMostMappedAddends))
      for (Value addend : op.getAddends())
        maps.insert({addend, rows});
  }
  return int64_t(maps.size()) * kMapBytes;
}

/// Chooses the shapes of all products, and takes their memory.
LogicalResult KernelLowering::layOutContracts(ImplicitLocOpBuilder &b) {
  if (contractMemory >= 0)
    return success();
  int64_t left =
      getMaxShared(target.sm) - sharedBytes - kReserve - kStageAlignment;
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
  llvm::erase_if(ops, [](ContractOp op) {
    return cast<MemRefType>(op.getLhs().getType()).getElementType().isF32();
  });
  left -= std::max<int64_t>(0, getMapBytes(ops) - kReserve / 2);
  for (bool byMaps : {true, false}) {
    if (failed(shapeContracts(ops, left, byMaps)))
      return failure();
    if (byMaps && shareStages(ops, left))
      break;
  }
  int64_t most = 0;
  for (auto &[op, shape] : contracts)
    most = std::max(most, shape.getBytes());
  contractMemory = llvm::alignTo(sharedBytes, kStageAlignment);
  if (most > 0) {
    sharedBytes = contractMemory + most;
    (void)sharedAddress(contractMemory, b);
    sharedMemory.setAlignment(kStageAlignment);
  }
  return success();
}

/// Chooses how the threads share each of the products.
LogicalResult KernelLowering::shapeContracts(ArrayRef<ContractOp> ops,
                                             int64_t left, bool byMaps) {
  for (ContractOp op : ops) {
    FailureOr<ContractShape> shape =
        shapeContract(op, target.threads, left, target.sm, byMaps);
    if (failed(shape))
      return failure();
    shape->constantOperands = constantContracts.contains(op);
    contracts[op] = *shape;
  }
  return success();
}

/// Where threads that only copy can serve all products of the kernel, these
/// share their stages in `left` bytes. False: they cannot.
bool KernelLowering::shareStages(ArrayRef<ContractOp> ops, int64_t left) {
  // The library's barriers count all threads of a CTA.
  if (kernel->hasAttr(kNcclAttr) || target.threads + kCopyThreads > 1024)
    return false;
  int64_t most = 0, stages = INT64_MAX, addends = 0;
  for (ContractOp op : ops) {
    ContractShape &shape = contracts[op];
    if (!canUseMaps(op, shape))
      return false;
    most = std::max(most, shape.getLhsBytes() + shape.getRhsBytes());
    stages = std::min(stages, shape.stages);
    if (canMapAddends(op, shape))
      shape.addends = int64_t(op.getAddends().size());
    addends = std::max(addends, shape.addends);
  }
  int64_t reserve = kCopyReserve + addends * kAddendReserve;
  for (ContractOp op : ops) {
    ContractShape &shape = contracts[op];
    shape.byMaps = true;
    shape.stageBytes = most;
    shape.stages = stages;
    shape.mostAddends = addends;
    if (shape.addends > 0 && !constantAddends.contains(op))
      shape.constantOperands = false;
    while (shape.stages * most + reserve > left)
      --shape.stages;
    mapped.push_back(shape);
    numbers[op] = int64_t(mapped.size()) - 1;
  }
  return true;
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

/// Whether memory of elements of so many bytes can have a map of tiles of
/// `tileRows` rows: its rows begin where maps want them.
bool KernelLowering::canHaveMap(Value memory, int64_t bytes, int64_t tileRows) {
  constexpr int64_t kMostTileRows = 256;
  auto type = cast<MemRefType>(memory.getType());
  int64_t stride = getMatrixColumns(type);
  return getElementBytes(type.getElementType()) == bytes &&
         stride * bytes % 16 == 0 && stride > 0 &&
         stride < (int64_t(1) << 31) &&
         getMatrixRows(type) < (int64_t(1) << 31) && !isSharedMemory(memory) &&
         getAlignment(memory) >= 16 && tileRows <= kMostTileRows;
}

/// Whether one thread can copy the operands as tiles: stages are whole.
bool KernelLowering::canUseMaps(ContractOp op, const ContractShape &shape) {
  auto isMapped = [&](Value memory, bool isLhs) {
    return canHaveMap(memory, shape.elementBytes, shape.getMapRows(isLhs));
  };
  return shape.byGroups && getDivisor(op.getDepth()) % shape.getDepth() == 0 &&
         isMapped(op.getLhs(), true) && isMapped(op.getRhs(), false);
}

/// Whether that thread can copy the tiles of the addends, too. Each group has
/// all columns, so that each knows which panels are its own.
bool KernelLowering::canMapAddends(ContractOp op, const ContractShape &shape) {
  OperandRange addends = op.getAddends();
  return !addends.empty() && addends.size() <= size_t(kMostMappedAddends) &&
         shape.warpColumns == 1 && llvm::all_of(addends, [&](Value memory) {
           return canHaveMap(memory, 2, shape.getAddendRows());
         });
}

/// A product ends with a barrier, and the next op may begin with one: of
/// barriers with nothing but arithmetic between them, one is enough.
void KernelLowering::joinBarriers() {
  if (contracts.empty())
    return;
  function.walk([](Block *block) {
    bool isBehindBarrier = false;
    for (Operation &op : llvm::make_early_inc_range(*block)) {
      bool isBarrier = isa<NVVM::Barrier0Op>(op);
      if (isBarrier && isBehindBarrier)
        op.erase();
      else
        isBehindBarrier =
            isBarrier || (isBehindBarrier && isMemoryEffectFree(&op));
    }
  });
}

/// Adds the branch of the threads that copy to the function.
void KernelLowering::addCopyThreads() {
  if (mapped.empty())
    return;
  Location loc = function.getLoc();
  // Of their own: the kernel's constants are defined in its body.
  auto number = [](ImplicitLocOpBuilder &b, int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  function.walk([&](NVVM::Barrier0Op op) {
    ImplicitLocOpBuilder at(op.getLoc(), op);
    Value id = number(at, kOthersBarrier), count = number(at, target.threads);
    NVVM::BarrierOp::create(at, Type(), id, count, NVVM::BarrierReductionAttr(),
                            Value());
    op.erase();
  });
  function.walk([&](LLVM::ReturnOp op) {
    ImplicitLocOpBuilder at(op.getLoc(), op);
    emitEndOfCopies(mapped.front(), getContractMemory(at), at);
  });
  Block *body = &function.getBody().front();
  Block *entry = rewriter.createBlock(body);
  for (BlockArgument argument : body->getArguments())
    argument.replaceAllUsesWith(
        entry->addArgument(argument.getType(), argument.getLoc()));
  params = entry->getArgument(0);
  body->eraseArguments(0, body->getNumArguments());
  ImplicitLocOpBuilder b(loc, rewriter);
  b.setInsertionPointToStart(entry);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value memory = getContractMemory(b);
  auto first = scf::IfOp::create(
      b,
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, number(b, 0)),
      /*withElseRegion=*/false);
  ImplicitLocOpBuilder one(loc, first.thenYield());
  emitCopyBarriers(mapped.front(), memory, target.threads, one);
  NVVM::Barrier0Op::create(b);
  Block *copies = rewriter.createBlock(&function.getBody());
  b.setInsertionPointToEnd(entry);
  Value isOther = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, thread,
                                        number(b, target.threads));
  LLVM::CondBrOp::create(b, isOther, body, copies);
  b.setInsertionPointToStart(copies);
  emit(b, Ptx::WaitForPrevious, {}); // Chips with maps have it.
  emitCopies(mapped, memory, b);
  LLVM::ReturnOp::create(b, ValueRange{});
  launchedThreads = target.threads + kCopyThreads;
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    rewriter.getDenseI32ArrayAttr({int32_t(launchedThreads)}));
}

Value KernelLowering::getContractMemory(ImplicitLocOpBuilder &b) {
  return LLVM::PtrToIntOp::create(b, b.getI32Type(),
                                  sharedAddress(contractMemory, b));
}

/// Where the number of stages is that have been multiplied so far.
Value KernelLowering::getStageCounter() {
  if (stageCounter)
    return stageCounter;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(&function.getBody().front());
  ImplicitLocOpBuilder b(function.getLoc(), rewriter);
  // Before the constants that the body shares.
  Value one = arith::ConstantOp::create(b, b.getI32IntegerAttr(1)),
        zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  stageCounter = LLVM::AllocaOp::create(b, generic, b.getI32Type(), one);
  LLVM::StoreOp::create(b, zero, stageCounter);
  return stageCounter;
}

/// Finds the products whose operands nothing in the kernel writes, and those
/// whose addends nothing writes.
void KernelLowering::findConstantContracts() {
  SmallVector<Access> accesses;
  kernel.walk([&](Operation *op) { getAccesses(op, accesses); });
  llvm::DenseSet<Value> written;
  for (const Access &access : accesses)
    if (access.isWrite()) {
      MemoryRoot root = access.getRoot();
      if (root.kind == MemoryRoot::Unknown)
        return;
      written.insert(root.value);
    }
  auto isConstant = [&](Value memory) {
    MemoryRoot root = getMemoryRoot(memory);
    return root.kind == MemoryRoot::Argument && !written.contains(root.value);
  };
  kernel.walk([&](ContractOp op) {
    if (isConstant(op.getLhs()) && isConstant(op.getRhs()))
      constantContracts.insert(op);
    if (llvm::all_of(op.getAddends(), isConstant))
      constantAddends.insert(op);
  });
}

/// The map of a memory, made where the memory is known.
Value KernelLowering::findMap(Value memory, int64_t tileRows,
                              ImplicitLocOpBuilder &b) {
  Value &known = maps[{memory, tileRows}];
  if (known)
    return known;
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

ContractScales KernelLowering::findScales(ContractOp op, bool isLhs,
                                          ImplicitLocOpBuilder &b) {
  OperandScales how = op.getScales(isLhs);
  ContractScales scales;
  if (!how.memory)
    return scales;
  auto type = cast<MemRefType>(how.memory.getType());
  int64_t rows = getMatrixRows(type), columns = getMatrixColumns(type);
  Value zero = constIndex(0, b);
  scales.address = isSharedMemory(how.memory)
                       ? elementAddress(how.memory, zero, b)
                       : globalAddress(how.memory, zero, b);
  scales.acrossStride = how.termsAreRows ? 1 : columns;
  scales.termStride = how.termsAreRows ? columns : 1;
  scales.count = how.termsAreRows ? columns : rows;
  scales.across = how.across;
  scales.terms = how.terms;
  scales.firstAcross = toI32(how.firstAcross, b);
  scales.firstTerm = toI32(how.firstTerm, b);
  scales.divisor = getDivisor(how.firstAcross);
  return scales;
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
  for (auto [memory, row, column] : llvm::zip_equal(
           op.getAddends(), op.getAddendRows(), op.getAddendColumns()))
    parts.addends.push_back(findMatrix(memory, row, column, b));
  parts.lhsScales = findScales(op, /*isLhs=*/true, b);
  parts.rhsScales = findScales(op, /*isLhs=*/false, b);
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
    parts.memory = getContractMemory(b);
    ContractShape shape = contracts.lookup(op);
    auto place = [&](ContractMemory &matrix, Value memory, Value row,
                     Value column, int64_t tileRows) {
      matrix.map = findMap(memory, tileRows, b);
      matrix.row = toI32(row, b);
      matrix.column = toI32(column, b);
    };
    if (shape.byMaps) {
      parts.number = numbers.lookup(op);
      parts.counter = getStageCounter();
      place(parts.lhs, op.getLhs(), op.getLhsRow(), op.getLhsColumn(),
            shape.getMapRows(/*isLhs=*/true));
      place(parts.rhs, op.getRhs(), op.getRhsRow(), op.getRhsColumn(),
            shape.getMapRows(/*isLhs=*/false));
    }
    for (auto [addend, memory, row, column] :
         llvm::zip_equal(parts.addends, op.getAddends(), op.getAddendRows(),
                         op.getAddendColumns()))
      if (shape.addends > 0)
        place(addend, memory, row, column, shape.getAddendRows());
    emitContract(parts, shape, target.threads, b);
  }
  rewriter.eraseOp(op);
  return success();
}
