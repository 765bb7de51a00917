//===- Interrupt.cpp - Ctrl-C during an op --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/ops/Interrupt.h"

#include "runtime/capi/commsir.h"

#include <dlfcn.h>
#include <unistd.h>

#include <mutex>
#include <utility>

using namespace commsir::torch_ops;

namespace {
/// The functions of this process's Python that are used, all in the stable ABI
/// of Python 3.10 and newer. They are looked up at run time, because the
/// library serves all versions.
struct PythonApi {
  using Object = void *;
  int (*ensure)() = nullptr;
  void (*release)(int) = nullptr;
  int (*checkSignals)() = nullptr;
  void (*fetch)(Object *, Object *, Object *) = nullptr;
  void (*restore)(Object, Object, Object) = nullptr;
  int (*addPendingCall)(int (*)(void *), void *) = nullptr;
  bool isThere = false;

  PythonApi() {
    isThere = find(ensure, "PyGILState_Ensure") &&
              find(release, "PyGILState_Release") &&
              find(checkSignals, "PyErr_CheckSignals") &&
              find(fetch, "PyErr_Fetch") && find(restore, "PyErr_Restore") &&
              find(addPendingCall, "Py_AddPendingCall");
  }

  static const PythonApi &get() {
    static PythonApi python;
    return python;
  }

private:
  template <typename Function>
  static bool find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
    return function != nullptr;
  }
};

/// The error that a signal handler raised on the main thread.
struct PythonError {
  PythonApi::Object type = nullptr, value = nullptr, traceback = nullptr;
};
} // namespace

static thread_local int depth = 0;
static thread_local bool raised = false;
static PythonError exception;

/// The callback by which libcommsir checks for interrupts while it waits.
static int askInterrupted() {
  if (raised || depth == 0 || ::getpid() != ::gettid())
    return raised;
  const PythonApi &python = PythonApi::get();
  int state = python.ensure();
  raised = python.checkSignals() != 0;
  if (raised)
    python.fetch(&exception.type, &exception.value, &exception.traceback);
  python.release(state);
  return raised;
}

/// Python calls it on its main thread, between two instructions.
static int rethrow(void * /*unused*/) {
  PythonError own = std::exchange(exception, {});
  if (!own.type)
    return 0;
  PythonApi::get().restore(own.type, own.value, own.traceback);
  return -1;
}

Interruptible::Interruptible() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (PythonApi::get().isThere)
      commsir_set_interrupt(askInterrupted);
  });
  ++depth;
}

Interruptible::~Interruptible() {
  if (--depth == 0 && std::exchange(raised, false))
    PythonApi::get().addPendingCall(rethrow, nullptr);
}
