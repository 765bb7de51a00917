//===- PythonFunction.h - Functions of Python that C++ keeps ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_PYTHONFUNCTION_H
#define COMMSIR_RUNTIME_TORCH_PYTHONFUNCTION_H

#include <pybind11/pybind11.h>

#include <memory>

namespace commsir {

/// A function that a thread without the interpreter's lock may hold, copy and
/// drop, also after Python's end; to call it takes the lock.
inline std::shared_ptr<pybind11::function>
holdPython(pybind11::function function) {
  return {new pybind11::function(std::move(function)),
          [](pybind11::function *dropped) {
            if (!Py_IsInitialized())
              return;
            pybind11::gil_scoped_acquire lock;
            delete dropped;
          }};
}

} // namespace commsir

#endif // COMMSIR_RUNTIME_TORCH_PYTHONFUNCTION_H
