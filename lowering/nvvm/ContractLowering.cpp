//===- ContractLowering.cpp - Matrix products by tensor cores -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All threads of a CTA multiply together. Operands come through shared memory,
// 64 terms of the sum a stage (128 if elements of 8 bits are multiplied as they
// are), several stages ahead; sums stay in registers. This file has the loops
// over parts and stages. ContractSteps.h lists the files of the steps.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractStages.h"
#include "lowering/nvvm/ContractSteps.h"
#include "lowering/nvvm/Ptx.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

void nvvm::leaveStage(ImplicitLocOpBuilder &b, const ProductPart &part,
                      Int step) {
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part.lane,
                                        emitNumber(b, 0));
  emitWhen(b, isFirst, [&](ImplicitLocOpBuilder &in) {
    ProductStages stages(part.shape, part.product.memory);
    emitArrive(in, stages.getEmpty(in, Int(in, step.value)));
  });
}

/// One thread posts the job of a part: which tiles to copy. It posts none if
/// there are no tiles, since no thread would wait until the job has been read.
static void announce(ImplicitLocOpBuilder &b, const ProductPart &part,
                     Int steps) {
  Value speaks = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part.thread,
                                       emitNumber(b, 0));
  std::optional<int64_t> known = getConstantIntValue(steps.value);
  if (part.shape.addends == 0 && known == 0)
    return;
  if (part.shape.addends == 0 && !known)
    speaks = arith::AndIOp::create(b, speaks, steps.constant(0).isBelow(steps));
  emitWhen(b, speaks, [&](ImplicitLocOpBuilder &in) {
    CopyJob job;
    job.product = emitNumber(in, part.product.number);
    job.steps = steps.value;
    auto place = [&](const ContractMemory &memory, const StagedOperand &operand,
                     Value first, Value &row, Value &column) {
      Int more(in, first);
      row = memory.row;
      column = memory.column;
      Value &across = operand.alongDepth ? row : column;
      across = (more + across).value;
    };
    place(part.product.lhs, part.lhs, part.firstRow, job.lhsRow, job.lhsColumn);
    place(part.product.rhs, part.rhs, part.firstColumn, job.rhsRow,
          job.rhsColumn);
    job.lhsMap = part.product.lhs.map;
    job.rhsMap = part.product.rhs.map;
    SmallVector<MappedTile> addends;
    if (part.shape.addends > 0)
      for (const ContractMemory &addend : part.product.addends)
        addends.push_back({(Int(in, part.firstRow) + addend.row).value,
                           (Int(in, part.firstColumn) + addend.column).value,
                           addend.map});
    ProductStages(part.shape, part.product.memory).post(in, job, addends);
  });
}

/// Multiplies a stage whose sums are to be multiplied by `factors` (empty: by
/// nothing) before they are added to the others. Tensor cores add products of 8
/// bits with fewer bits than f32 has: the sums of each portion begin with 0,
/// and are added here while other groups multiply.
static void addStage(ImplicitLocOpBuilder &b, const ProductPart &part,
                     const WgmmaDescriptors &descriptors,
                     ArrayRef<ScaleFactor> factors, Sums &sums) {
  int64_t portions = part.shape.rowBlocks * part.shape.getPortions(),
          count = sums.size() / portions;
  for (int64_t portion = 0; portion < portions; ++portion) {
    Sums terms(count, LLVM::UndefOp::create(b, b.getF32Type()));
    emitText(b, "wgmma.fence.sync.aligned;", "", {});
    startPortion(b, part, descriptors, portion, terms, /*anew=*/true);
    emitText(b, "wgmma.commit_group.sync.aligned;", "", {});
    waitForGroups(b, terms);
    addTerms(b, terms,
             factors.empty() ? factors : factors.slice(portion * count, count),
             MutableArrayRef<Value>(sums).slice(portion * count, count));
  }
}

/// Multiplies stages that the copying thread fills.
static Sums multiplyByMaps(ImplicitLocOpBuilder &b, const ProductPart &part,
                           Int steps, Sums sums) {
  ProductStages stages(part.shape, part.product.memory);
  Int before(b, LLVM::LoadOp::create(b, b.getI32Type(), part.product.counter));
  auto loop = scf::ForOp::create(b, emitNumber(b, 0), steps.value,
                                 emitNumber(b, 1), sums);
  ImplicitLocOpBuilder in(b);
  in.setInsertionPointToStart(loop.getBody());
  Int step(in, loop.getInductionVar());
  Int place = step + before.value;
  WgmmaDescriptors descriptors =
      describeStage(in, part, getStage(in, part, place));
  // Scales are on their way while the stage is.
  ScaleFactors factors;
  if (part.shape.hasBlockScales)
    factors =
        loadFactors(in, part, step * part.shape.getDepth(), /*ofBlocks=*/true);
  emitAwait(in, stages.getFull(in, place), stages.getTurn(place) % 2);
  Sums carried(loop.getRegionIterArgs());
  if (part.shape.elementBytes == 1) {
    addStage(in, part, descriptors, factors, carried);
    leaveStage(in, part, place);
    scf::YieldOp::create(in, carried);
    LLVM::StoreOp::create(b, (before + steps).value, part.product.counter);
    return Sums(loop.getResults());
  }
  multiplyByGroups(in, part, descriptors, carried);
  emitText(in, "wgmma.wait_group.sync.aligned 1;", "", {});
  emitWhen(in, step.constant(0).isBelow(step),
           [&](ImplicitLocOpBuilder &inner) {
             leaveStage(inner, part, Int(inner, place.value) - 1);
           });
  scf::YieldOp::create(in, carried);
  Sums total(loop.getResults());
  waitForGroups(b, total);
  Int after = before + steps;
  emitWhen(b, steps.constant(0).isBelow(steps),
           [&](ImplicitLocOpBuilder &inner) {
             leaveStage(inner, part, Int(inner, after.value) - 1);
           });
  LLVM::StoreOp::create(b, after.value, part.product.counter);
  return total;
}

/// Multiplies a stage that threads have copied, and adds its sums, each times
/// its scales.
static void addScaledStage(ImplicitLocOpBuilder &b, const ProductPart &part,
                           Int step, Sums &sums) {
  ScaleFactors factors = loadFactors(b, part, step * kDepth, /*ofBlocks=*/true);
  if (part.shape.byGroups)
    return addStage(b, part, describeStage(b, part, getStage(b, part, step)),
                    factors, sums);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  Sums terms(sums.size(), zero);
  multiplyStage(b, part, getStage(b, part, step), terms);
  addTerms(b, terms, factors, sums);
}

/// Multiplies stages that all threads copy ahead of their use.
static Sums multiplyByCopies(ImplicitLocOpBuilder &b, const ProductPart &part,
                             Int steps) {
  // Groups read a stage until they start on the next but one.
  int64_t ahead = part.shape.stages - (part.shape.byGroups ? 2 : 1);
  for (int64_t stage = 0; stage < ahead; ++stage)
    copyStage(b, part, steps.constant(stage), steps);
  Sums sums = beginSums(b, part);
  auto loop = scf::ForOp::create(b, emitNumber(b, 0), steps.value,
                                 emitNumber(b, 1), sums);
  {
    ImplicitLocOpBuilder in(b);
    in.setInsertionPointToStart(loop.getBody());
    emitText(in, "cp.async.wait_group " + std::to_string(ahead - 1) + ";", "",
             {});
    if (part.shape.byGroups)
      nvvm::emit(in, Ptx::FenceAsyncShared, {});
    NVVM::Barrier0Op::create(in);
    Int step(in, loop.getInductionVar());
    Sums carried(loop.getRegionIterArgs());
    if (part.shape.byGroups && !part.shape.hasBlockScales)
      multiplyByGroups(
          in, part, describeStage(in, part, getStage(in, part, step)), carried);
    copyStage(in, part, step + ahead, Int(in, steps.value));
    if (part.shape.hasBlockScales)
      addScaledStage(in, part, step, carried);
    else if (part.shape.byGroups)
      emitText(in, "wgmma.wait_group.sync.aligned 1;", "", {});
    else
      multiplyStage(in, part, getStage(in, part, step), carried);
    scf::YieldOp::create(in, carried);
  }
  Sums total(loop.getResults());
  if (part.shape.byGroups && !part.shape.hasBlockScales)
    waitForGroups(b, total);
  return total;
}

/// The part of the product from one row and column on.
static void emitPart(ImplicitLocOpBuilder &b, ProductPart part, Int fromRow,
                     Int fromColumn) {
  part.firstRow = fromRow.value;
  part.firstColumn = fromColumn.value;
  // A tile of one part has no more rows and columns than the part.
  Int rows(b, part.product.rows), columns(b, part.product.columns);
  if (part.product.tileRows > part.shape.rows)
    rows = fromRow.getRest(rows, part.shape.rows);
  if (part.product.tileColumns > part.shape.columns)
    columns = fromColumn.getRest(columns, part.shape.columns);
  part.rows = rows.value;
  part.columns = columns.value;
  part.lhs = getOperand(b, part, true, fromRow, rows);
  part.rhs = getOperand(b, part, false, fromColumn, columns);
  int64_t depth = part.shape.getDepth();
  Int steps = (Int(b, part.product.depth) + (depth - 1)) / depth;
  // The last part's stages have been read, also by a thread that copies now;
  // operands may have been written.
  if (part.shape.byGroups && !part.shape.constantOperands)
    nvvm::emit(b, Ptx::FenceAsync, {});
  if (part.shape.byMaps && part.shape.constantOperands)
    announce(b, part, steps);
  NVVM::Barrier0Op::create(b);
  if (part.shape.byMaps && !part.shape.constantOperands)
    announce(b, part, steps);
  for (const ContractMemory &addend : part.product.addends)
    if (part.shape.addends == 0 && holdsBlocks(part, addend))
      prefetchAddend(b, part, addend);
  Sums total = part.shape.byMaps
                   ? multiplyByMaps(b, part, steps, beginSums(b, part))
                   : multiplyByCopies(b, part, steps);
  finishSums(b, part, total);
  storeProduct(b, part, total);
}

/// The product, part by part.
static void emitProduct(ImplicitLocOpBuilder &b, const ProductPart &part) {
  bool tall = part.product.tileRows > part.shape.rows,
       broad = part.product.tileColumns > part.shape.columns;
  auto loop =
      [&](ImplicitLocOpBuilder &b, bool several, Value last, int64_t step,
          llvm::function_ref<void(ImplicitLocOpBuilder &, Value)> body) {
        if (!several)
          return body(b, emitNumber(b, 0));
        auto made =
            scf::ForOp::create(b, emitNumber(b, 0), last, emitNumber(b, step));
        ImplicitLocOpBuilder in(b);
        in.setInsertionPointToStart(made.getBody());
        body(in, made.getInductionVar());
      };
  loop(b, tall, part.product.rows, part.shape.rows,
       [&](ImplicitLocOpBuilder &in, Value row) {
         loop(in, broad, part.product.columns, part.shape.columns,
              [&](ImplicitLocOpBuilder &inner, Value column) {
                emitPart(inner, part, Int(inner, row), Int(inner, column));
              });
       });
  NVVM::Barrier0Op::create(b); // All may read the product.
}

void nvvm::emitContract(const ContractParts &parts, const ContractShape &shape,
                        int64_t threads, ImplicitLocOpBuilder &b) {
  emitProduct(b, ProductPart(b, parts, shape, threads));
}
