//===- Prepared.h - Fused collectives without the dispatcher ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// torch.ops.commsir.fused_collective takes lists and texts, which the
// dispatcher converts and copies in each call; that costs three times as much
// as the launch. A prepared call keeps them. It supports calls on plain GPU
// tensors; for all others the op must be called.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_PREPARED_H
#define COMMSIR_RUNTIME_TORCH_C10D_PREPARED_H

#include "runtime/torch/PreparedCall.h"

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace commsir::torch_c10d {

class Prepared {
public:
  struct Texts {
    std::string op, reduction, consume, group, site;
    bool symmetric = false;
    std::string produce;
    size_t sources = 0;
  };
  /// Type and number of columns of a result.
  using Output = std::pair<at::ScalarType, int64_t>;

  Prepared(Texts texts, std::vector<Output> outputs, PreparedRanks ranks,
           PreparedRun run)
      : texts(std::move(texts)), outputs(std::move(outputs)), ranks(ranks),
        runCall(run) {}

  /// Returns the results as the op would, or none if the op must be called.
  /// Throws c10::Error if the collective fails.
  std::optional<std::vector<at::Tensor>>
  run(const at::Tensor &input, c10::ArrayRef<at::Tensor> arguments) const;

  /// The same into `outputs`. Returns whether it was done; if not, the op must
  /// be called, which reports tensors that do not fit.
  bool runInto(const at::Tensor &input, c10::ArrayRef<at::Tensor> arguments,
               c10::ArrayRef<at::Tensor> outputs) const;

private:
  using Described = c10::SmallVector<PreparedTensor, 8>;

  PreparedTexts given() const;
  /// Rows of the results; none if the op must be called.
  std::optional<int64_t> resultRows(const at::Tensor &input) const;
  std::vector<at::Tensor> makeOutputs(const at::Tensor &input,
                                      int64_t rows) const;
  /// Returns whether it was done.
  bool launch(const PreparedTensor &input, const Described &read,
              const Described &written, int32_t device) const;

  Texts texts;
  std::vector<Output> outputs;
  PreparedRanks ranks;
  PreparedRun runCall;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_PREPARED_H
