//===- Sized.h - Structs of the C API that may grow -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A struct of commsir.h that may grow begins with `size`, which the caller sets
// to the struct's size in its own header. To add a field, append it with a type
// of 8 bytes and let 0 mean what the library did without it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CAPI_SIZED_H
#define COMMSIR_RUNTIME_CAPI_SIZED_H

#include "runtime/capi/commsir.h"

#include <cstddef>
#include <type_traits>

namespace commsir::capi {

/// Copies the caller's struct `given`, which begins with its size in bytes, to
/// `known`, a struct of `knownSize` bytes. Bytes that `given` does not have
/// become 0. Returns COMMSIR_USAGE, and names the struct `name`, if the size is
/// not that of a struct, or if `given` sets a field that `known` does not have.
commsir_status copySized(const char *name, const void *given, void *known,
                         size_t knownSize);

/// The same for a struct of the type `T`. `given` must not be null.
template <typename T>
commsir_status readSized(const char *name, const T *given, T &known) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0 &&
                sizeof(T) % sizeof(void *) == 0);
  commsir_status status = copySized(name, given, &known, sizeof known);
  known.size = sizeof known;
  return status;
}

} // namespace commsir::capi

#endif // COMMSIR_RUNTIME_CAPI_SIZED_H
