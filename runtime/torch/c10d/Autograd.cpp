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

#include <map>

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

static bool hasGradient(const c10::IValue &value) {
  if (value.isTensor())
    return value.toTensor().defined() && value.toTensor().requires_grad();
  if (!value.isTensorList())
    return false;
  for (const at::Tensor &tensor : value.toTensorVector())
    if (tensor.defined() && tensor.requires_grad())
      return true;
  return false;
}

/// By the op's name and overload.
static std::map<std::pair<std::string, std::string>, std::string> &refusals() {
  static auto *all =
      new std::map<std::pair<std::string, std::string>, std::string>;
  return *all;
}

static void refuse(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                   torch::jit::Stack *stack) {
  if (at::GradMode::is_enabled()) {
    size_t count = op.schema().arguments().size();
    for (size_t i = 0; i < count; ++i)
      TORCH_CHECK(
          !hasGradient(torch::jit::peek(*stack, i, count)),
          refusals()[{op.schema().name(), op.schema().overload_name()}]);
  }
  at::AutoDispatchBelowAutograd guard;
  op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

/// Lives as long as the process: the module is never unloaded.
static torch::Library &implementations() {
  static auto *library =
      new torch::Library(torch::Library::IMPL, "commsir",
                         c10::DispatchKey::Autograd, __FILE__, __LINE__);
  return *library;
}

void commsir::torch_c10d::passAutograd(const std::string &op,
                                       Differentiated differentiated) {
  differentiate = differentiated;
  implementations().impl(op.c_str(),
                         torch::CppFunction::makeFromBoxedFunction<&pass>());
}

void commsir::torch_c10d::refuseGradients(const std::string &op,
                                          const std::string &why) {
  size_t dot = op.find('.');
  refusals()[{"commsir::" + op.substr(0, dot),
              dot == std::string::npos ? "" : op.substr(dot + 1)}] = why;
  implementations().impl(op.c_str(),
                         torch::CppFunction::makeFromBoxedFunction<&refuse>());
}
