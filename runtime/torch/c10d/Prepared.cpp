//===- Prepared.cpp - Fused collectives without the dispatcher ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Prepared.h"

#include "runtime/torch/c10d/Call.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>

#include <algorithm>

using namespace commsir;
using namespace commsir::torch_c10d;

/// Whether nothing but the GPU's kernel would see a call on the tensor: no
/// mode, no transform of functorch, no autocast, no subclass, no lazy view.
static bool isPlain(const at::Tensor &tensor, const c10::Device &device,
                    const c10::impl::LocalDispatchKeySet &local,
                    bool hasGradients) {
  if (!tensor.defined() || tensor.device() != device ||
      !tensor.is_contiguous() || !isInStorage(tensor) ||
      tensor.scalar_type() == at::kBool ||
      (hasGradients && tensor.requires_grad()))
    return false;
  auto keys = (tensor.key_set() | local.included_) - local.excluded_;
  switch (keys.highestPriorityTypeId()) {
  case c10::DispatchKey::CUDA:
  case c10::DispatchKey::AutogradCUDA:
  case c10::DispatchKey::ADInplaceOrView:
  case c10::DispatchKey::BackendSelect:
    return true;
  default:
    return false;
  }
}

static PreparedTensor describe(const at::Tensor &tensor) {
  PreparedTensor made;
  made.data = tensor.data_ptr();
  made.elements = tensor.numel();
  made.dimensions = tensor.dim();
  made.columns = made.dimensions ? tensor.size(-1) : 1;
  made.width = int64_t(tensor.element_size());
  made.type = int8_t(tensor.scalar_type());
  return made;
}

/// `rows` of the first dimension.
std::vector<at::Tensor> Prepared::makeOutputs(const at::Tensor &input,
                                              int64_t rows) const {
  c10::SmallVector<int64_t, 5> shape(input.sizes());
  while (shape.size() < 2)
    shape.insert(shape.begin(), 1);
  shape.front() = rows;
  std::vector<at::Tensor> made;
  made.reserve(outputs.size());
  for (auto [type, columns] : outputs) {
    shape.back() = columns;
    made.push_back(at::empty(shape, input.options().dtype(type)));
  }
  return made;
}

PreparedTexts Prepared::given() const {
  return {texts.op.c_str(),      texts.reduction.c_str(),
          texts.consume.c_str(), texts.group.c_str(),
          texts.site.c_str(),    texts.symmetric,
          texts.produce.c_str(), texts.sources};
}

std::optional<int64_t> Prepared::resultRows(const at::Tensor &input) const {
  PreparedTexts named = given();
  int64_t size = ranks(&named, input.device().index());
  int64_t rows = input.dim() > 1 ? input.size(0) : 1;
  bool isCut = texts.op == "reduce_scatter";
  if (size == 0 || (isCut && rows % size))
    return std::nullopt;
  if (isCut)
    return rows / size;
  return texts.op == "all_gather" ? rows * size : rows;
}

/// Describes the tensors of a call; none if the op must be called.
static std::optional<c10::SmallVector<PreparedTensor, 8>>
describePlain(const at::Tensor &input, c10::ArrayRef<at::Tensor> others) {
  if (!input.is_cuda() || input.numel() == 0 || at::hasCallbacks())
    return std::nullopt;
  auto local = c10::impl::tls_local_dispatch_key_set();
  bool hasGradients = at::GradMode::is_enabled();
  c10::Device device = input.device();
  if (!isPlain(input, device, local, hasGradients))
    return std::nullopt;
  c10::SmallVector<PreparedTensor, 8> made;
  for (const at::Tensor &other : others) {
    if (!isPlain(other, device, local, hasGradients))
      return std::nullopt;
    made.push_back(describe(other));
  }
  return made;
}

bool Prepared::launch(const PreparedTensor &input, const Described &read,
                      const Described &written, int32_t device) const {
  PreparedTexts named = given();
  PreparedTensors tensors = {input, read.data(), read.size(), written.data(),
                             written.size()};
  const char *message = "";
  PreparedOutcome outcome = runCall(&named, device, &tensors, &message);
  TORCH_CHECK(outcome != PreparedOutcome::Failed, message);
  return outcome == PreparedOutcome::Done;
}

std::optional<std::vector<at::Tensor>>
Prepared::run(const at::Tensor &input,
              c10::ArrayRef<at::Tensor> arguments) const {
  std::optional<Described> read = describePlain(input, arguments);
  if (!read)
    return std::nullopt;
  std::optional<int64_t> rows = resultRows(input);
  if (!rows)
    return std::nullopt;
  std::vector<at::Tensor> made = makeOutputs(input, *rows);
  Described written;
  for (const at::Tensor &output : made)
    written.push_back(describe(output));
  if (!launch(describe(input), *read, written, input.device().index()))
    return std::nullopt;
  return made;
}

/// Whether two tensors have bytes in common.
static bool overlap(const PreparedTensor &one, const PreparedTensor &other) {
  auto begins = [](const PreparedTensor &tensor) {
    return static_cast<const char *>(tensor.data);
  };
  return begins(one) < begins(other) + other.elements * other.width &&
         begins(other) < begins(one) + one.elements * one.width;
}

bool Prepared::runInto(const at::Tensor &input,
                       c10::ArrayRef<at::Tensor> arguments,
                       c10::ArrayRef<at::Tensor> outputs) const {
  std::optional<Described> read = describePlain(input, arguments);
  std::optional<Described> written = describePlain(input, outputs);
  if (!read || !written || written->size() != this->outputs.size() ||
      !resultRows(input))
    return false;
  PreparedTensor given = describe(input);
  for (size_t i = 0; i < written->size(); ++i) {
    // The op knows which of them may share memory, and how.
    auto meets = [&](const PreparedTensor &other) {
      return overlap((*written)[i], other);
    };
    if (outputs[i].scalar_type() != this->outputs[i].first || meets(given) ||
        std::any_of(read->begin(), read->end(), meets) ||
        std::any_of(written->begin(), written->begin() + i, meets))
      return false;
  }
  return launch(given, *read, *written, input.device().index());
}
