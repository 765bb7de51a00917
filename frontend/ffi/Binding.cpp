//===- Binding.cpp - The C API for Python, by tvm-ffi ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As thin as it can be: what a function of commsir.h returns comes back as
// [status, text], where text is the result or the error's JSON. Which exception
// that is, is Python's affair. Handles are integers.
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/commsir.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace ffi = tvm::ffi;
using ffi::Any;
using ffi::Array;
using ffi::Bytes;
using ffi::Function;
using ffi::Optional;
using ffi::String;
using ffi::TensorView;

/// A text of the C API, which this frees.
static String take(char *text) {
  String made(text ? text : "");
  commsir_free(text);
  return made;
}

/// [status, text].
static Array<Any> answer(commsir_status status, char *text = nullptr) {
  String result = take(text);
  return {int64_t(status),
          status == COMMSIR_OK ? result : String(commsir_error_json())};
}

static size_t bytesOf(const TensorView &tensor) {
  return size_t(tensor.numel()) * ((tensor.dtype().bits + 7) / 8) *
         tensor.dtype().lanes;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static String version() { return commsir_version(); }
static String doctor() { return take(commsir_doctor()); }

static Array<Any> compile(String request) {
  char *result = nullptr;
  commsir_status status = commsir_compile(request.c_str(), &result);
  return answer(status, result);
}

/// Tensor number i is of argument names[i] and rank ranks[i].
static Array<Any> simulate(String request, Array<String> names,
                           Array<int64_t> ranks, Array<ffi::Tensor> tensors) {
  std::vector<String> held(names.begin(), names.end());
  std::vector<commsir_host_array> arrays;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ffi::Tensor tensor = tensors[i];
    arrays.push_back({held[i].c_str(), ranks[i], tensor.data_ptr(),
                      bytesOf(TensorView(tensor))});
  }
  char *result = nullptr;
  commsir_status status =
      commsir_simulate(request.c_str(), arrays.data(), arrays.size(), &result);
  return answer(status, result);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(version, version);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(doctor, doctor);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(compile, compile);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(simulate, simulate);
