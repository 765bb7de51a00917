//===- TensorMap.cpp - Tensor maps made by a kernel -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel makes the tensor maps (TMA) of its products in shared memory, and
// moves them to global memory.
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/ContractLowering.h"
#include "lowering/nvvm/Int32.h"
#include "lowering/nvvm/Ptx.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;

/// Fills in a map of 128 bytes of zeros at `place` in shared memory.
static void writeFields(ImplicitLocOpBuilder &b, Value place, Value base,
                        int64_t rows, int64_t columns, Type element,
                        int64_t tileRows) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  auto replace = [&](StringRef field, StringRef type, StringRef rest,
                     StringRef constraint, Value value) {
    emitText(b,
             ("tensormap.replace.tile." + field + ".shared::cta.b1024." + type +
              " [$0], " + rest + ";")
                 .str(),
             value ? ("r," + constraint).str() : std::string("r"),
             value ? SmallVector<Value>{place, value}
                   : SmallVector<Value>{place});
  };
  auto number = [&](int64_t value) { return emitNumber(b, value); };
  replace("global_address", "b64", "$1", "l", base);
  replace("rank", "b32", "1", "", {});
  replace("box_dim", "b32", "0, $1", "r",
          number(ContractShape::kRowBytes / bytes));
  replace("box_dim", "b32", "1, $1", "r", number(tileRows));
  replace("global_dim", "b32", "0, $1", "r", number(columns));
  replace("global_dim", "b32", "1, $1", "r", number(rows));
  replace("global_stride", "b64", "0, $1", "l",
          arith::ConstantOp::create(b, b.getI64IntegerAttr(columns * bytes)));
  replace("element_stride", "b32", "0, $1", "r", number(1));
  replace("element_stride", "b32", "1, $1", "r", number(1));
  StringRef kind = bytes == 1 ? "0" : element.isBF16() ? "10" : "6";
  replace("elemtype", "b32", kind, "", {});
  replace("interleave_layout", "b32", "0", "", {});
  replace("swizzle_mode", "b32", "3", "", {});
  replace("fill_mode", "b32", "0", "", {});
}

void nvvm::emitMap(Value map, Value place, Value base, int64_t rows,
                   int64_t columns, Type element, int64_t tileRows,
                   ImplicitLocOpBuilder &b) {
  Int thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  emitWhen(
      b, thread.isBelow(thread.constant(32)), [&](ImplicitLocOpBuilder &in) {
        Value word = arith::AddIOp::create(
            in, place,
            arith::MulIOp::create(in, thread.value, emitNumber(in, 4)));
        emitText(in, "st.shared.b32 [$0], 0;", "r", {word});
        emitText(in, "bar.warp.sync -1;", "", {});
        Value isFirst = arith::CmpIOp::create(in, arith::CmpIPredicate::eq,
                                              thread.value, emitNumber(in, 0));
        emitWhen(in, isFirst, [&](ImplicitLocOpBuilder &one) {
          writeFields(one, place, base, rows, columns, element, tileRows);
        });
        emitText(in, "bar.warp.sync -1;", "", {});
        emitText(
            in,
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic."
            "release.gpu.sync.aligned [$0], [$1], 128;",
            "l,r", {map, place});
      });
}
