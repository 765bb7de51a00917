//===- Autograd.h - torch.ops.commsir on their way to a device --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops are in runtime/torch/ops, over the stable ABI, which has no autograd;
// this module has torch's own.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_AUTOGRAD_H
#define COMMSIR_RUNTIME_TORCH_C10D_AUTOGRAD_H

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace commsir::torch_c10d {

/// What an op does whose result has a gradient.
using Differentiated = void (*)(const c10::OperatorHandle &op,
                                c10::DispatchKeySet keys,
                                torch::jit::Stack *stack);

/// From now on the op of torch.ops.commsir, whose first argument is a tensor,
/// goes on below autograd at once, or is `differentiated`, which is one
/// function for all.
void passAutograd(const std::string &op, Differentiated differentiated);

/// From now on the op, whose arguments may be any, throws `why` where one of
/// them has a gradient: it has no derivative, and would drop that.
void refuseGradients(const std::string &op, const std::string &why);

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_AUTOGRAD_H
