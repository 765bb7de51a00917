//===- Tensors.h - Tensors of ops: types, memory, shapes --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an op requires of the tensors that it is given, and how it makes its
// own. Functions named `require` throw an error that says what to pass instead.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_OPS_TENSORS_H
#define COMMSIR_RUNTIME_TORCH_OPS_TENSORS_H

#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commsir::torch_ops {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Element types.

/// MLIR's name of a type. Throws for types that kernels do not have.
const char *typeName(ScalarType type);
/// The type that has an MLIR name. Throws if there is none.
ScalarType typeNamed(std::string_view name);
/// Returns the caller's name of an element type if it is moved or reduced as
/// another; null otherwise.
const char *givenName(ScalarType type);
/// The type as which a kernel handles elements of `type`: complex numbers as
/// their real and imaginary parts and, if they are only moved, types without
/// arithmetic as bytes.
ScalarType partOf(ScalarType type, bool isMoved = false);
/// Returns the reduction by which a kernel does `reduce` with elements of
/// `type`; "" for none. Throws if it has none.
std::string reductionFor(ScalarType type, const std::string &reduce);

// Memory.

/// The address range of a contiguous tensor.
struct Extent {
  const char *begin, *end;
  explicit Extent(const Tensor &tensor)
      : begin(static_cast<const char *>(tensor.data_ptr())),
        end(begin + tensor.numel() * tensor.element_size()) {}
  int64_t size() const { return end - begin; }
  bool meets(const Extent &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// The tensor, or a contiguous copy. Throws if its storage is too small.
Tensor dense(const Tensor &tensor);
/// The same for a kernel that calculates with it. Booleans may be any byte, as
/// in a view of uint8: all but 0 are true, and a kernel gets 0 and 1.
Tensor calculable(const Tensor &tensor);
/// New memory on the device of `like`; by default of its element type. Takes
/// about 1 µs; torch::stable::new_empty, which goes through the dispatcher,
/// takes 10 µs.
Tensor emptyOf(const Tensor &like, const std::vector<int64_t> &shape,
               std::optional<ScalarType> type = {});

void requireTensor(const char *what, const Tensor &tensor);
/// Requires a tensor on the device of `input`.
void requireDevice(const char *what, const Tensor &tensor, const Tensor &input);
void requireContiguous(const Tensor &out);

// Shapes.

/// Requires that `ranks` divides `rows`.
void requireShares(int64_t rows, int64_t ranks);
/// The shape of `input` with `numerator / denominator` times the rows.
std::vector<int64_t> shapeOfRows(const Tensor &input, int64_t numerator,
                                 int64_t denominator);
/// Requires of a plain collective's `out` the device, type and shape of the
/// result: that of `input` with `numerator / denominator` times the rows. The
/// library gets only the number of elements.
void requireResult(const Tensor &out, const Tensor &input, int64_t numerator,
                   int64_t denominator);

} // namespace commsir::torch_ops

#endif // COMMSIR_RUNTIME_TORCH_OPS_TENSORS_H
