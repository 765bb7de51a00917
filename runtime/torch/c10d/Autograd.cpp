//===- Autograd.cpp - torch.ops.commsir on their way to a device ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Autograd.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

using namespace commsir::torch_c10d;

static Differentiated differentiate = nullptr;

static void pass(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                 torch::jit::Stack *stack) {
  const c10::IValue &input =
      torch::jit::peek(*stack, 0, op.schema().arguments().size());
  if (at::GradMode::is_enabled() && input.toTensor().requires_grad())
    return differentiate(op, keys, stack);
  at::AutoDispatchBelowAutograd guard;
  op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

void commsir::torch_c10d::passAutograd(const std::string &op,
                                       Differentiated differentiated) {
  differentiate = differentiated;
  // As long as the process: the module is never unloaded.
  static auto *library =
      new torch::Library(torch::Library::IMPL, "commsir",
                         c10::DispatchKey::Autograd, __FILE__, __LINE__);
  library->impl(op.c_str(), torch::CppFunction::makeFromBoxedFunction<&pass>());
}
