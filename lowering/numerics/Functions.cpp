//===- Functions.cpp - The functions of math, in IEEE operations ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/numerics/Functions.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::numerics;

static Float emit(MathFunction function, ArrayRef<Float> values) {
  Float x = values.front();
  switch (function) {
  case MathFunction::Acos:
    return emitAcos(x);
  case MathFunction::Acosh:
    return emitAcosh(x);
  case MathFunction::Asin:
    return emitAsin(x);
  case MathFunction::Asinh:
    return emitAsinh(x);
  case MathFunction::Atan:
    return emitAtan(x);
  case MathFunction::Atan2:
    return emitAtan2(x, values[1]);
  case MathFunction::Atanh:
    return emitAtanh(x);
  case MathFunction::Cbrt:
    return emitCbrt(x);
  case MathFunction::Cos:
    return emitCos(x);
  case MathFunction::Cosh:
    return emitCosh(x);
  case MathFunction::Erf:
    return emitErf(x);
  case MathFunction::Erfc:
    return emitErfc(x);
  case MathFunction::Exp:
    return emitExp(x);
  case MathFunction::Exp2:
    return emitExp2(x);
  case MathFunction::Expm1:
    return emitExpm1(x);
  case MathFunction::Log:
    return emitLog(x);
  case MathFunction::Log1p:
    return emitLog1p(x);
  case MathFunction::Log2:
    return emitLog2(x);
  case MathFunction::Powf:
    return emitPow(x, values[1]);
  case MathFunction::Round:
    return emitRound(x);
  case MathFunction::Rsqrt:
    return emitRsqrt(x);
  case MathFunction::Sin:
    return emitSin(x);
  case MathFunction::Sinh:
    return emitSinh(x);
  case MathFunction::Tan:
    return emitTan(x);
  case MathFunction::Tanh:
    return emitTanh(x);
  }
  llvm_unreachable("a function without an expansion");
}

Value numerics::emitFunction(OpBuilder &builder, Location loc,
                             MathFunction function, ValueRange values) {
  ImplicitLocOpBuilder emitter(loc, builder);
  SmallVector<Float> numbers;
  for (Value value : values)
    numbers.emplace_back(emitter, value);
  return emit(function, numbers).getValue();
}
