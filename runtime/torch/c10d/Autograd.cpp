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

/// Whether `holds` is true of a tensor, or of one in a list, of which some may
/// be absent.
static bool anyTensor(const c10::IValue &value,
                      bool (*holds)(const at::Tensor &)) {
  if (value.isTensor())
    return value.toTensor().defined() && holds(value.toTensor());
  if (!value.isList())
    return false;
  for (const c10::IValue &one : value.toListRef())
    if (anyTensor(one, holds))
      return true;
  return false;
}

static bool anyArgument(const c10::OperatorHandle &op,
                        const torch::jit::Stack &stack,
                        bool (*holds)(const at::Tensor &)) {
  size_t count = op.schema().arguments().size();
  for (size_t i = 0; i < count; ++i)
    if (anyTensor(torch::jit::peek(stack, i, count), holds))
      return true;
  return false;
}

static bool hasGradient(const at::Tensor &tensor) {
  return tensor.requires_grad();
}

static bool hasTangent(const at::Tensor &tensor) {
  return tensor._fw_grad(/*level=*/0).defined();
}

/// No op has a derivative in forward mode: it would drop the tangent.
static void refuseTangents(const c10::OperatorHandle &op,
                           const torch::jit::Stack &stack) {
  TORCH_CHECK(!anyArgument(op, stack, hasTangent), op.schema().name(),
              " has no derivative in forward mode, but an argument is a dual "
              "tensor: use torch.func.vjp or backward()");
}

static void pass(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                 torch::jit::Stack *stack) {
  refuseTangents(op, *stack);
  const c10::IValue &input =
      torch::jit::peek(*stack, 0, op.schema().arguments().size());
  if (at::GradMode::is_enabled() && input.toTensor().requires_grad())
    return differentiate(op, keys, stack);
  at::AutoDispatchBelowAutograd guard;
  op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

/// By the op's name and overload.
static std::map<std::pair<std::string, std::string>, std::string> &refusals() {
  static auto *all =
      new std::map<std::pair<std::string, std::string>, std::string>;
  return *all;
}

static void refuse(const c10::OperatorHandle &op, c10::DispatchKeySet keys,
                   torch::jit::Stack *stack) {
  refuseTangents(op, *stack);
  if (at::GradMode::is_enabled())
    TORCH_CHECK(!anyArgument(op, *stack, hasGradient),
                refusals()[{op.schema().name(), op.schema().overload_name()}]);
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
