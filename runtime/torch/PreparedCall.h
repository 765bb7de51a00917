//===- PreparedCall.h - Prepared calls of c10d and ops ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A prepared call holds everything about a fused collective except its tensors.
// The Python extension (c10d) reads tensors and allocates results; the library
// of ops knows the groups. Neither is linked to the other, so that Python
// passes the addresses of the functions below from one to the other.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_PREPAREDCALL_H
#define COMMSIR_RUNTIME_TORCH_PREPAREDCALL_H

#include <cstddef>
#include <cstdint>

namespace commsir {

/// Texts of a call, as in torch.ops.commsir.fused_collective. `produce` reads
/// the first `sources` arguments.
struct PreparedTexts {
  const char *op, *reduction, *consume, *group, *site;
  bool symmetric;
  const char *produce;
  size_t sources;
};

/// A contiguous tensor. `columns` is the size of its last dimension, `width`
/// the bytes per element, `type` torch's number of its ScalarType.
struct PreparedTensor {
  void *data;
  int64_t elements, columns, dimensions, width;
  int8_t type;
};

struct PreparedTensors {
  PreparedTensor input;
  const PreparedTensor *arguments;
  size_t argumentCount;
  const PreparedTensor *outputs;
  size_t outputCount;
};

/// Outcome of a prepared call.
enum class PreparedOutcome : int {
  Done = 0,
  /// Nothing was done. The caller must call the op, which makes the group, lets
  /// the ranks agree, or reports the error.
  CallOp = 1,
  Failed = 2
};

/// Returns the number of ranks of the call's group on GPU `device`; 0: the
/// caller must call the op.
using PreparedRanks = int64_t (*)(const PreparedTexts *texts, int32_t device);

/// Launches the call in the current stream of GPU `device`. After `Failed`,
/// `message` is valid until the thread's next call.
using PreparedRun = PreparedOutcome (*)(const PreparedTexts *texts,
                                        int32_t device,
                                        const PreparedTensors *tensors,
                                        const char **message);

} // namespace commsir

#endif // COMMSIR_RUNTIME_TORCH_PREPAREDCALL_H
