//===- Overlap.h - Tensors that share memory --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective writes each element of its outputs once, in unspecified order.
// Outputs that overlap would hold arbitrary values, and an input that overlaps
// an output could change before it is read.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_OVERLAP_H
#define COMMSIR_RUNTIME_TORCH_C10D_OVERLAP_H

#include <ATen/core/Tensor.h>

#include <vector>

namespace commsir::torch_c10d {

/// Whether an element of `a` shares memory with an element of `b`. Different
/// columns of one matrix do not overlap.
bool doOverlap(const at::Tensor &a, const at::Tensor &b);

/// Whether two elements of the tensor share memory, as in an expanded tensor.
bool overlapsItself(const at::Tensor &tensor);

/// Throws if a tensor of `outputs` overlaps itself or another one.
void checkApart(const char *call, const std::vector<at::Tensor> &outputs);

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_OVERLAP_H
