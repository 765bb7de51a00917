//===- Binding.cpp - The C API for Python, by tvm-ffi ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/ffi/Binding.h"

#include <string>
#include <vector>

using namespace commsir::binding;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static String version() { return commsir_version(); }
static String doctor() { return take(commsir_doctor()); }
static String collectives() { return take(commsir_collectives()); }

static Array<Any> loadTables(String path) {
  return answer(commsir_load_tables(path.c_str()), nullptr);
}

static void compileAtOnce(int64_t enabled) {
  commsir_compile_at_once(int32_t(enabled));
}

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
    arrays.push_back(
        {held[i].c_str(), ranks[i], tensor.data_ptr(), bytesOf(tensor)});
  }
  Interruptible inside;
  char *result = nullptr;
  commsir_status status =
      commsir_simulate(request.c_str(), arrays.data(), arrays.size(), &result);
  Array<Any> made = answer(status, result);
  // It may have ended by itself just then.
  throwInterrupt();
  return made;
}

/// Like a program's main function; the first argument is its name.
static int64_t tool(Array<String> arguments) {
  std::vector<std::string> texts;
  for (String argument : arguments)
    texts.emplace_back(argument.c_str());
  std::vector<char *> pointers;
  for (std::string &text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return commsir_tool(int(texts.size()), pointers.data());
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(tool, tool);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(version, version);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(doctor, doctor);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(collectives, collectives);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(load_tables, loadTables);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(compile, compile);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(compile_at_once, compileAtOnce);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(simulate, simulate);
