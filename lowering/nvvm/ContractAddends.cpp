//===- ContractAddends.cpp - Addends --------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Addends that come ahead of use: to L2 by all threads, or as tiles by the warp
// that copies.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractStages.h"
#include "lowering/nvvm/ContractSteps.h"
#include "lowering/nvvm/Ptx.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

void nvvm::prefetchAddend(ImplicitLocOpBuilder &b, const ProductPart &part,
                          const ContractMemory &addend) {
  constexpr int64_t kLineElements = 64;
  int64_t across = part.shape.columns / kLineElements;
  if (across == 0)
    return;
  Value whole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, part.columns,
                            emitNumber(b, part.shape.columns));
  emitWhen(b, whole, [&](ImplicitLocOpBuilder &in) {
    int64_t lines = part.shape.rows * across;
    for (int64_t first = 0; first < lines; first += part.threads) {
      Int line = Int(in, part.thread) + first;
      Int row = line / across;
      emitWhen(in, row.isBelow(part.rows), [&](ImplicitLocOpBuilder &inner) {
        Int place(inner, row.value),
            column = Int(inner, line.value) % across * kLineElements;
        emitText(inner, "prefetch.global.L2 [$0];", "l",
                 {addressOfSum(inner, part, addend, place, column)});
      });
    }
  });
}

/// Adds a block of 16 by 16 elements at $8 to a lane's eight sums of it:
/// ldmatrix gives each lane the elements of its sums. In one text, since the
/// compiler else loads all blocks before it adds the first.
static std::string spellAddedBlock(Type element) {
  std::string text =
      "{ .reg .b32 w0, w1, w2, w3, v; .reg .b16 h0, h1; .reg .f32 x; "
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {w0, w1, w2, w3}, [$8]; ";
  for (int64_t i = 0; i < 8; ++i) {
    std::string word = "w" + std::to_string(i / 2),
                sum = "$" + std::to_string(i);
    if (element.isBF16())
      text += (i % 2 ? "and.b32 v, " + word + ", -65536; "
                     : "shl.b32 v, " + word + ", 16; ") +
              "mov.b32 x, v; ";
    else
      text += "mov.b32 {h0, h1}, " + word + "; cvt.f32.f16 x, h" +
              std::to_string(i % 2) + "; ";
    text += "add.rn.f32 " + sum + ", " + sum + ", x; ";
  }
  return text + "}";
}

/// Adds what a panel of an addend holds of the columns from `first` on.
static void addPanel(ImplicitLocOpBuilder &b, const ProductPart &part,
                     Int panel, Type element, int64_t first, Sums &sums) {
  Int mine(b, part.lane), low = mine % 8;
  Int row = Int(b, part.warpRow) * part.shape.getWarpRows() +
            Int(b, part.thread) / 32 % 4 * 16 + mine / 8 % 2 * 8 + low;
  // A row's pieces are exchanged by its number.
  Int line = panel + (row * kRowBytes + ((mine / 16) ^ low) * 16);
  std::string text = spellAddedBlock(element);
  int64_t end = std::min<int64_t>(part.shape.columnBlocks, first / 16 + 4);
  for (int64_t n = first / 16; n < end; ++n) {
    Int place = line ^ line.constant(n % 4 * 32);
    for (int64_t m = 0; m < part.shape.rowBlocks; ++m) {
      auto own = MutableArrayRef<Value>(sums).slice(
          (m * part.shape.columnBlocks + n) * 8, 8);
      SmallVector<Value> operands = {
          (place + m * part.shape.getBlockRows() * kRowBytes).value};
      operands.append(own.begin(), own.end());
      llvm::copy(emitText(b, text, tieOperands(8, "r"), operands,
                          SmallVector<Type>(8, b.getF32Type())),
                 own.begin());
    }
  }
}

void nvvm::addTiles(ImplicitLocOpBuilder &b, const ProductPart &part,
                    Sums &sums) {
  ProductStages stages(part.shape, part.product.memory);
  int64_t held = part.shape.getPanelsOfStage(),
          bytes = part.shape.getPanelBytes(),
          all = part.shape.addends * part.shape.getAddendPanels();
  Int before(b, LLVM::LoadOp::create(b, b.getI32Type(), part.product.counter)),
      place = before;
  forAddendPanels(part.shape, [&](int64_t panel, int64_t addend,
                                  int64_t column) {
    if (panel % held == 0) {
      // Unknown to the compiler, which else has all places in registers.
      place =
          Int(b, emitOneText(b, "mov.b32 $0, $1;", "=r,r",
                             {(before + panel / held).value}, b.getI32Type()));
      emitAwait(b, stages.getFull(b, place), stages.getTurn(place) % 2);
    }
    addPanel(b, part, Int(b, stages.getStage(b, place)) + panel % held * bytes,
             part.product.addends[addend].element, column, sums);
    if ((panel + 1) % held != 0 && panel + 1 != all)
      return;
    emitText(b, "bar.warp.sync -1;", "", {});
    leaveStage(b, part, place);
  });
  LLVM::StoreOp::create(b, (before + part.shape.getAddendStages()).value,
                        part.product.counter);
}
