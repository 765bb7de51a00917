//===- OpCall.cpp - What all ops do around their call ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/ops/OpCall.h"

#include "runtime/torch/ops/Tensors.h"

#include <dlfcn.h>

#include <utility>

using namespace commsir::torch_ops;
using torch::stable::Tensor;

int32_t commsir::torch_ops::deviceNumber(const Tensor &tensor) {
  requireTensor("the input", tensor);
  bool cpu = tensor.is_cpu();
  if (!cpu && !tensor.is_cuda())
    throw std::runtime_error("commsir: tensors are on the CPU or on a GPU");
  return cpu ? -1 : tensor.get_device_index();
}

LockedGroup &commsir::torch_ops::groupOf(const Tensor &tensor,
                                         const std::string &name) {
  return Groups::get().find(name, deviceNumber(tensor));
}

/// Looks up the function in the loaded torch. It cannot be linked, because a
/// torch without CUDA lacks it.
static auto findCurrentStream() {
  using Function = AOTITorchError (*)(int32_t, void **);
  void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(
      library ? library : RTLD_DEFAULT, "aoti_torch_get_current_cuda_stream"));
}

void *commsir::torch_ops::streamOn(int32_t device) {
  static auto current = findCurrentStream();
  void *stream = nullptr;
  if (!current || current(device, &stream) != 0)
    throw std::runtime_error("commsir: torch does not tell the current stream");
  return stream;
}

void *commsir::torch_ops::streamOf(const Tensor &tensor) {
  return tensor.is_cpu() ? nullptr : streamOn(tensor.get_device_index());
}

/// Status of this thread's last failed call, for commsir_torch_last_status.
static thread_local commsir_status lastStatus = COMMSIR_OK;
/// See setDefect.
static thread_local std::string lastDefect;

void commsir::torch_ops::check(commsir_status status) {
  lastStatus = status;
  if (status != COMMSIR_OK)
    throw std::runtime_error(commsir_error_message());
}

bool commsir::torch_ops::isDefect(commsir_status status) {
  return status == COMMSIR_COMPILE || status == COMMSIR_CHECKER;
}

void commsir::torch_ops::setDefect(const char *reason) { lastDefect = reason; }

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): names of a C interface.
/// Status of this thread's last call that raised an error.
COMMSIR_API int commsir_torch_last_status() { return lastStatus; }

/// Why the call that runs apart has no kernel although ranks had agreed on one;
/// empty: it has. Valid until the thread's next such call.
COMMSIR_API const char *commsir_torch_take_defect() {
  static thread_local std::string taken;
  taken = std::exchange(lastDefect, {});
  return taken.c_str();
}
// NOLINTEND(readability-identifier-naming)
}
