//===- OpCall.h - What all ops do around their call -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The group, stream and status of an op's call of the library.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_OPS_OPCALL_H
#define COMMSIR_RUNTIME_TORCH_OPS_OPCALL_H

#include "runtime/torch/ops/Groups.h"

#include <torch/csrc/stable/tensor.h>

namespace commsir::torch_ops {

/// Number of the tensor's GPU; -1: the CPU. Throws for other devices.
int32_t deviceNumber(const torch::stable::Tensor &tensor);
/// The group of process group `name` on the tensor's device. Throws the reason
/// if it has none.
LockedGroup &groupOf(const torch::stable::Tensor &tensor,
                     const std::string &name);
/// The current stream of a GPU.
void *streamOn(int32_t device);
/// The current stream of the tensor's GPU; null on the CPU.
void *streamOf(const torch::stable::Tensor &tensor);

/// Throws the message of a call that failed, and keeps the status for
/// commsir_torch_last_status.
void check(commsir_status status);
/// Whether a call's arithmetic has no kernel. All ranks have been told, and
/// nothing has run.
bool isDefect(commsir_status status);
/// Keeps the reason why this thread's last call at a site had no kernel, for
/// commsir_torch_take_defect.
void setDefect(const char *reason);

} // namespace commsir::torch_ops

#endif // COMMSIR_RUNTIME_TORCH_OPS_OPCALL_H
