//===- TensorLists.h - Tensors that a call is given -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of what a caller passes, and lists of tensors as one array.
// Collectives of the library take arrays; c10d's take a list with a tensor for
// each rank.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_TENSORLISTS_H
#define COMMSIR_RUNTIME_TORCH_C10D_TENSORLISTS_H

#include "runtime/torch/c10d/Call.h"

namespace commsir::torch_c10d {

using Tensors = std::vector<at::Tensor>;

/// Name of the exchange of sizes that precedes the data, so that a rank with
/// another call never receives the program's elements.
inline constexpr const char *kSizes = "sizes";

// Checks, which throw an error that begins with `name`, the name of the call.

/// The one tensor of a list.
const at::Tensor &single(const char *name, const Tensors &tensors);
/// Requires one tensor for each rank.
void checkCount(const char *name, size_t got, int ranks);
void checkRoot(const char *name, int64_t root, int ranks);
/// Requires two tensors of one element type.
void checkType(const char *name, const at::Tensor &a, const at::Tensor &b);

/// Number of elements of the largest tensor.
int64_t mostElements(const Tensors &tensors);

/// Copies each of `from` to that of `to`, which has its type and as many
/// elements. On GPUs, one launch copies several. All are contiguous.
void copyEach(const Tensors &to, const Tensors &from);

/// The parts of a flat array that correspond to the tensors of a list. They
/// begin `stride` elements after each other, or where the last one ends.
Tensors partsLike(const Tensors &list, const at::Tensor &flat,
                  std::optional<int64_t> stride = std::nullopt);

/// One flat array with `each` elements per tensor, to which the call copies the
/// list before its steps (`packed`), or from which it copies the list after
/// them (`unpacked`).
at::Tensor packed(Call &call, const Tensors &tensors, int64_t each);
at::Tensor unpacked(Call &call, const Tensors &tensors, int64_t each);

/// Adds a step on lists, of at most `each` elements per tensor. On the CPU the
/// step reads and writes them in place; on GPUs they are packed into one array.
void copyLists(Call &call, const char *op, const Tensors &in,
               const Tensors &out, int64_t each, int64_t root = 0);

/// Lets the ranks compare the sizes of a list whose tensors differ in size: it
/// must be alike on all ranks, and a kernel sees the largest size only. Does
/// nothing on GPUs, because hosts would have to wait for the comparison.
void compareSizes(Call &call, const Tensors &list);

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_TENSORLISTS_H
