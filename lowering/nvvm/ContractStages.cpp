//===- ContractStages.cpp - Stages that threads copy and multiply ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages of shared memory, their barriers, and the jobs between the threads
// that multiply and the thread that copies by tensor maps.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractStages.h"

#include "lowering/nvvm/Ptx.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

void nvvm::emitArrive(ImplicitLocOpBuilder &b, Value barrier) {
  emitText(b, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r", {barrier});
}

void nvvm::emitAwait(ImplicitLocOpBuilder &b, Value barrier, Int parity) {
  emitText(b,
           "{ .reg .pred p; again: "
           "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; "
           "@!p bra again; }",
           "r,r", {barrier, parity.value});
}

int64_t ContractShape::getBytes() const {
  return stages * getStageBytes() +
         (byMaps ? ProductStages(*this, {}).getRest() : 0);
}

void ProductStages::post(ImplicitLocOpBuilder &b, const CopyJob &job,
                         ArrayRef<MappedTile> addends) const {
  for (auto [number, tile] : llvm::enumerate(addends)) {
    Value place = getAddend(b, {b, emitNumber(b, int64_t(number))});
    emitText(b, "st.shared.v2.b32 [$0], {$1, $2};", "r,r,r",
             {place, tile.row, tile.column});
    emitText(b, "st.shared.b64 [$0 + 8], $1;", "r,l", {place, tile.map});
  }
  Value place = getJob(b);
  emitText(b, "st.shared.v4.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r",
           {place, job.product, job.steps, job.lhsRow, job.lhsColumn});
  emitText(b, "st.shared.v2.b32 [$0 + 16], {$1, $2};", "r,r,r",
           {place, job.rhsRow, job.rhsColumn});
  emitText(b, "st.shared.v2.b64 [$0 + 32], {$1, $2};", "r,l,l",
           {place, job.lhsMap, job.rhsMap});
  emitArrive(b, getPosted(b));
}

CopyJob ProductStages::read(ImplicitLocOpBuilder &b) const {
  Value place = getJob(b);
  auto load = [&](StringRef text, StringRef constraints, Type type,
                  int64_t count) {
    return emitText(b, text, constraints, {place},
                    SmallVector<Type>(count, type));
  };
  Type i32 = b.getI32Type();
  SmallVector<Value> first = load("ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
                                  "=r,=r,=r,=r,r", i32, 4),
                     second = load("ld.shared.v2.b32 {$0, $1}, [$2 + 16];",
                                   "=r,=r,r", i32, 2),
                     maps = load("ld.shared.v2.b64 {$0, $1}, [$2 + 32];",
                                 "=l,=l,r", b.getI64Type(), 2);
  return {first[0],  first[1],  first[2], first[3],
          second[0], second[1], maps[0],  maps[1]};
}

MappedTile ProductStages::readAddend(ImplicitLocOpBuilder &b,
                                     Int number) const {
  Value place = getAddend(b, number);
  Type i32 = b.getI32Type();
  SmallVector<Value> first = emitText(b, "ld.shared.v2.b32 {$0, $1}, [$2];",
                                      "=r,=r,r", {place}, {i32, i32});
  Value map = emitOneText(b, "ld.shared.b64 $0, [$1 + 8];", "=l,r", {place},
                          b.getI64Type());
  return {first[0], first[1], map};
}

Value ProductStages::awaitJob(ImplicitLocOpBuilder &b, Value parity) const {
  Value more = emitOneText(
      b,
      "{ .reg .pred p, q; .reg .b32 over; again: "
      "mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; "
      "@p bra done; "
      "ld.volatile.shared.b32 over, [$3]; setp.eq.s32 q, over, 0; "
      "@q bra again; done: selp.b32 $0, 1, 0, p; }",
      "=r,r,r,r", {getPosted(b), parity, getOver(b)}, b.getI32Type());
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, more,
                               emitNumber(b, 0));
}
