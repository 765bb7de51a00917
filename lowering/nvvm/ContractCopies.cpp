//===- ContractCopies.cpp - The warp that copies by tensor maps -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread of a warp that does nothing else copies the stages of all products
// of a kernel (TMA), as the other threads ask for them.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractLowering.h"
#include "lowering/nvvm/ContractStages.h"
#include "lowering/nvvm/Ptx.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

void nvvm::emitCopyBarriers(const ContractShape &shape, Value memory,
                            int64_t threads, ImplicitLocOpBuilder &b) {
  ProductStages stages(shape, memory);
  auto init = [&](Value barrier, int64_t count) {
    emitText(b, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r",
             {barrier, emitNumber(b, count)});
  };
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    Int step(b, emitNumber(b, stage));
    init(stages.getFull(b, step), 1);
    init(stages.getEmpty(b, step), threads / 32);
  }
  init(stages.getPosted(b), 1);
  emitText(b, "st.shared.b32 [$0], 0;", "r", {stages.getOver(b)});
  emitText(b, "fence.mbarrier_init.release.cluster;", "", {});
}

void nvvm::emitEndOfCopies(const ContractShape &shape, Value memory,
                           ImplicitLocOpBuilder &b) {
  emitText(b, "st.volatile.shared.b32 [$0], 1;", "r",
           {ProductStages(shape, memory).getOver(b)});
}

/// Starts the copy of a tile from `row` and `column` on to `place` in shared
/// memory; the barrier `full` counts its bytes.
static void copyTile(ImplicitLocOpBuilder &b, Int place, Value map, Int column,
                     Value row, Value full) {
  emitText(b,
           "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
           "complete_tx::bytes [$0], [$1, {$2, $3}], [$4];",
           "r,l,r,r,r", {place.value, map, column.value, row, full});
}

/// Starts the copies of an operand's part of a stage: panels of 64 columns.
static void copyTiles(const ContractShape &shape, bool isLhs,
                      const CopyJob &job, Int step, Value stage, Value full,
                      ImplicitLocOpBuilder &b) {
  bool alongDepth = isLhs ? !shape.transposeLhs : shape.transposeRhs;
  Int row(b, isLhs ? job.lhsRow : job.rhsRow),
      column(b, isLhs ? job.lhsColumn : job.rhsColumn);
  Int &along = alongDepth ? column : row;
  along = along + step * shape.getDepth();
  int64_t begin = isLhs ? 0 : shape.getLhsBytes(),
          bytes = isLhs ? shape.getLhsBytes() : shape.getRhsBytes(),
          panel = shape.getMapRows(isLhs) * ContractShape::kRowBytes;
  for (int64_t at = 0; at * panel < bytes; ++at) {
    copyTile(b, Int(b, stage) + (begin + at * panel),
             isLhs ? job.lhsMap : job.rhsMap, column + at * shape.getDepth(),
             row.value, full);
  }
}

/// Waits until a stage is empty, and announces `bytes` to its barrier. Returns
/// the stage and that barrier.
static std::pair<Value, Value> fillStage(const ProductStages &stages, Int place,
                                         int64_t bytes,
                                         ImplicitLocOpBuilder &b) {
  // Before its first use a stage is empty.
  emitAwait(b, stages.getEmpty(b, place), (stages.getTurn(place) + 1) % 2);
  Value full = stages.getFull(b, place), stage = stages.getStage(b, place);
  emitText(b, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r",
           {full, emitNumber(b, bytes)});
  return {stage, full};
}

/// Brings panels of a product's addends to L2, one at a time behind the first
/// stages: all at once they would delay the copies of the operands.
static void prefetchAddends(const ContractShape &shape,
                            const ProductStages &stages, const CopyJob &job,
                            Int step, ImplicitLocOpBuilder &b) {
  int64_t ofEach = shape.getAddendPanels(), all = shape.addends * ofEach;
  Int later = step - shape.stages,
      interval = (Int(b, job.steps) - shape.stages) / all;
  interval = interval.apply<arith::MaxUIOp>(emitNumber(b, 1));
  Int panel = later.apply<arith::DivUIOp>(interval.value);
  auto holds = [&](arith::CmpIPredicate predicate, Int left, Int right) {
    return arith::CmpIOp::create(b, predicate, left.value, right.value);
  };
  using arith::CmpIPredicate;
  Value isDue = arith::AndIOp::create(
      b, holds(CmpIPredicate::sge, later, later.constant(0)),
      holds(CmpIPredicate::ult, panel, later.constant(all)));
  isDue =
      arith::AndIOp::create(b, isDue,
                            holds(CmpIPredicate::eq, later,
                                  panel.apply<arith::MulIOp>(interval.value)));
  emitWhen(b, isDue, [&](ImplicitLocOpBuilder &in) {
    MappedTile tile = stages.readAddend(in, Int(in, panel.value) / ofEach);
    Int column = Int(in, panel.value) % ofEach * 64 + tile.column;
    emitText(in, "cp.async.bulk.prefetch.tensor.2d.L2.global [$0, {$1, $2}];",
             "l,r,r", {tile.map, column.value, tile.row});
  });
}

/// Copies the stages of a product's operands, the first of which is number
/// `before` of all.
static void copyStages(const ContractShape &shape, Value memory,
                       const CopyJob &job, Value before,
                       ImplicitLocOpBuilder &b) {
  ProductStages stages(shape, memory);
  auto loop =
      scf::ForOp::create(b, emitNumber(b, 0), job.steps, emitNumber(b, 1));
  ImplicitLocOpBuilder in(b);
  in.setInsertionPointToStart(loop.getBody());
  Int step(in, loop.getInductionVar());
  auto [stage, full] = fillStage(stages, step + before,
                                 shape.getLhsBytes() + shape.getRhsBytes(), in);
  for (bool isLhs : {true, false})
    copyTiles(shape, isLhs, job, step, stage, full, in);
  if (shape.addends > 0)
    prefetchAddends(shape, stages, job, step, in);
}

/// Copies the tiles of a product's addends, from stage number `place` of all
/// on.
static void copyAddends(const ContractShape &shape, Value memory,
                        ArrayRef<MappedTile> tiles, Int place,
                        ImplicitLocOpBuilder &b) {
  int64_t held = shape.getPanelsOfStage(), bytes = shape.getPanelBytes(),
          all = shape.addends * shape.getAddendPanels();
  Value stage, full;
  forAddendPanels(shape, [&](int64_t panel, int64_t addend, int64_t column) {
    const MappedTile &tile = tiles[addend];
    if (panel % held == 0)
      std::tie(stage, full) =
          fillStage(ProductStages(shape, memory), place + panel / held,
                    std::min(held, all - panel) * bytes, b);
    copyTile(b, Int(b, stage) + panel % held * bytes, tile.map,
             Int(b, tile.column) + column, tile.row, full);
  });
}

/// Makes what other threads wrote, and the maps, visible to the copies. If
/// nothing in the kernel writes the operands, it does so only at the product's
/// first job: `seen` has a bit for each product that had one.
static void acquireOperands(const ContractShape &shape, int64_t number,
                            const CopyJob &job, ArrayRef<MappedTile> addends,
                            Value seen, ImplicitLocOpBuilder &b) {
  SmallVector<Value> maps = {job.lhsMap, job.rhsMap};
  for (const MappedTile &tile : addends)
    maps.push_back(tile.map);
  auto acquire = [&](ImplicitLocOpBuilder &in) {
    nvvm::emit(in, Ptx::FenceAsync, {});
    for (Value map : maps)
      emitText(in, "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l",
               {map});
  };
  if (!shape.constantOperands || number >= 32)
    return acquire(b);
  Value bit =
      arith::AndIOp::create(b, seen, emitNumber(b, int64_t(1) << number));
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bit, emitNumber(b, 0));
  emitWhen(b, isFirst, acquire);
}

/// Copies what a job of product `number` asks for. `stages` were copied before,
/// for the products in `seen`.
static void copyJob(const ContractShape &shape, int64_t number, Value memory,
                    const CopyJob &job, Value stages, Value seen,
                    ImplicitLocOpBuilder &b) {
  SmallVector<MappedTile> addends;
  for (int64_t addend = 0; addend < shape.addends; ++addend)
    addends.push_back(
        ProductStages(shape, memory).readAddend(b, {b, emitNumber(b, addend)}));
  acquireOperands(shape, number, job, addends, seen, b);
  copyStages(shape, memory, job, stages, b);
  copyAddends(shape, memory, addends, Int(b, stages) + job.steps, b);
}

/// Takes one job. `state` and the results are the number of jobs so far, the
/// number of stages copied so far, and a bit for each product that had a job.
static SmallVector<Value> takeJob(ArrayRef<ContractShape> shapes, Value memory,
                                  ValueRange state, ImplicitLocOpBuilder &b) {
  CopyJob job = ProductStages(shapes.front(), memory).read(b);
  // The stages of the addends, for each product that has some: else 0.
  SmallVector<Value> more;
  for (auto [number, shape] : llvm::enumerate(shapes)) {
    Value isThis =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, job.product,
                              emitNumber(b, int64_t(number)));
    emitWhen(b, isThis,
             [&, number = number, &shape = shape](ImplicitLocOpBuilder &in) {
               copyJob(shape, int64_t(number), memory, job, state[1], state[2],
                       in);
             });
    if (int64_t stages = shape.getAddendStages())
      more.push_back(arith::SelectOp::create(b, isThis, emitNumber(b, stages),
                                             emitNumber(b, 0)));
  }
  Value bit = arith::ShLIOp::create(b, emitNumber(b, 1),
                                    (Int(b, job.product) % 32).value);
  Int jobs = Int(b, state[0]) + 1, stages = Int(b, state[1]) + job.steps;
  for (Value ofAddends : more)
    stages = stages + ofAddends;
  Value seen = arith::OrIOp::create(b, state[2], bit);
  return {jobs.value, stages.value, seen};
}

void nvvm::emitCopies(ArrayRef<ContractShape> shapes, Value memory,
                      ImplicitLocOpBuilder &b) {
  Value isElected = NVVM::ElectSyncOp::create(b, b.getI1Type(), Value());
  emitWhen(b, isElected, [&](ImplicitLocOpBuilder &one) {
    ProductStages stages(shapes.front(), memory);
    Value zero = emitNumber(one, 0);
    SmallVector<Value> state(3, zero);
    scf::WhileOp::create(
        one, ValueRange(state).getTypes(), state,
        [&](OpBuilder &builder, Location loc, ValueRange values) {
          ImplicitLocOpBuilder in(loc, builder);
          Value parity = (Int(in, values[0]) % 2).value;
          scf::ConditionOp::create(in, stages.awaitJob(in, parity), values);
        },
        [&](OpBuilder &builder, Location loc, ValueRange values) {
          ImplicitLocOpBuilder in(loc, builder);
          scf::YieldOp::create(in, takeJob(shapes, memory, values, in));
        });
  });
}
