//===- Autograd.h - Autograd of torch.ops.commsir ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops are implemented in runtime/torch/ops with torch's stable ABI, which
// lacks autograd; this module uses torch's own.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_AUTOGRAD_H
#define COMMSIR_RUNTIME_TORCH_C10D_AUTOGRAD_H

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace commsir::torch_c10d {

/// The differentiable version of an op.
using Differentiated = void (*)(const c10::OperatorHandle &op,
                                c10::DispatchKeySet keys,
                                torch::jit::Stack *stack);

/// Makes an op of torch.ops.commsir, whose first argument is a tensor, skip
/// autograd if no gradient is needed, or else run `differentiated`. All ops
/// share one function.
void passAutograd(const std::string &op, Differentiated differentiated);

/// Makes the op throw `why` if an argument requires a gradient: the op has no
/// derivative and would drop the gradient.
void refuseGradients(const std::string &op, const std::string &why);

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_AUTOGRAD_H
