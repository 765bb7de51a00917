//===- Binding.h - Declarations shared by the binding -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The binding is as thin as possible. Each function returns [status, result] of
// the function of commsir.h; after a failure, the result is the error's JSON,
// and Python chooses the exception. Handles are integers.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_FRONTEND_FFI_BINDING_H
#define COMMSIR_FRONTEND_FFI_BINDING_H

#include "runtime/capi/commsir.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

namespace commsir::binding {

namespace ffi = tvm::ffi;
using ffi::Any;
using ffi::Array;
using ffi::Bytes;
using ffi::Function;
using ffi::Optional;
using ffi::String;

/// While one is there, a wait of this thread ends on Ctrl-C: Python's handlers
/// run, and what they raise is what the call raises. Only on Python's main
/// thread, where Python runs them; and only in calls of this binding, as others
/// could not tell Python.
class Interruptible {
public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible &) = delete;
  Interruptible &operator=(const Interruptible &) = delete;
};

/// Throws what a handler has raised since the last call, if one has.
void throwInterrupt();

/// A text of the C API, which this frees.
inline String take(char *text) {
  String made(text ? text : "");
  commsir_free(text);
  return made;
}

/// [status, text].
inline Array<Any> answer(commsir_status status, char *text = nullptr) {
  if (status != COMMSIR_OK)
    throwInterrupt();
  String result = take(text);
  return {int64_t(status),
          status == COMMSIR_OK ? result : String(commsir_error_json())};
}

inline size_t bytesOf(const ffi::Tensor &tensor) {
  DLDataType type = tensor.dtype();
  return size_t(tensor.numel()) * ((type.bits + 7) / 8) * type.lanes;
}

} // namespace commsir::binding

#endif // COMMSIR_FRONTEND_FFI_BINDING_H
