//===- PreparedOps.cpp - Prepared calls of fused collectives --------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/PreparedCall.h"
#include "runtime/torch/ops/FusedCall.h"
#include "runtime/torch/ops/Interrupt.h"
#include "runtime/torch/ops/OpCall.h"
#include "runtime/torch/ops/Tensors.h"

#include <array>
#include <vector>

using namespace commsir::torch_ops;
using commsir::PreparedOutcome;
using commsir::PreparedTensor;
using torch::headeronly::ScalarType;

/// The group, where the call can be launched as it is.
static LockedGroup *groupOf(const commsir::PreparedTexts &texts,
                            int32_t device) {
  LockedGroup *used = Groups::get().findMade(texts.group, device);
  return used && (!*texts.site || used->isAgreed(texts.site)) ? used : nullptr;
}

static commsir_status launch(LockedGroup &used,
                             const commsir::PreparedTexts &texts,
                             const commsir::PreparedTensors &tensors) {
  std::array<commsir_operand, 16> kept;
  std::vector<commsir_operand> more;
  commsir_operand *operands = kept.data();
  if (tensors.argumentCount + tensors.outputCount > kept.size()) {
    more.resize(tensors.argumentCount + tensors.outputCount);
    operands = more.data();
  }
  commsir_operand *outputs = operands + tensors.argumentCount;
  for (size_t i = 0; i < tensors.argumentCount; ++i)
    operands[i] = operand(tensors.arguments[i]);
  for (size_t i = 0; i < tensors.outputCount; ++i) {
    outputs[i] = operand(tensors.outputs[i]);
    outputs[i].per_row = 1;
  }
  const PreparedTensor &input = tensors.input;
  std::string reduction =
      reductionOfSent(texts.op, ScalarType(input.type), texts.reduction,
                      texts.produce && *texts.produce);
  commsir_fused call = {};
  call.size = sizeof call;
  call.op = texts.op;
  call.reduction = reduction.c_str();
  call.type = typeName(ScalarType(input.type));
  call.rows = input.elements / input.columns;
  call.columns = input.columns;
  call.input = input.data;
  setArguments(call, texts.produce, texts.sources, operands,
               tensors.argumentCount);
  call.outputs = outputs;
  call.output_count = tensors.outputCount;
  call.consume = texts.consume;
  std::lock_guard<std::mutex> lock(used.mutex);
  if (texts.symmetric)
    Groups::get().adopt(used, input.data, input.elements * input.width);
  Interruptible scope;
  return commsir_group_fused(used.group, &call, streamOn(used.device));
}

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): names of a C interface.
/// A commsir::PreparedRanks.
COMMSIR_API int64_t commsir_torch_prepared_ranks(
    const commsir::PreparedTexts *texts, int32_t device) {
  LockedGroup *used = groupOf(*texts, device);
  return used ? used->ranks : 0;
}

/// A commsir::PreparedRun.
COMMSIR_API PreparedOutcome commsir_torch_run_prepared(
    const commsir::PreparedTexts *texts, int32_t device,
    const commsir::PreparedTensors *tensors, const char **message) {
  static thread_local std::string text;
  try {
    LockedGroup *used = groupOf(*texts, device);
    if (!used)
      return PreparedOutcome::CallOp;
    commsir_status status = launch(*used, *texts, *tensors);
    if (*texts->site) {
      used->note(texts->site, status != COMMSIR_DISAGREE);
      // The op makes the call once more, and sees what to do instead.
      if (status == COMMSIR_DISAGREE || isDefect(status))
        return PreparedOutcome::CallOp;
    }
    check(status);
    return PreparedOutcome::Done;
  } catch (const std::exception &error) {
    text = error.what();
    *message = text.c_str();
    return PreparedOutcome::Failed;
  }
}
// NOLINTEND(readability-identifier-naming)
}
