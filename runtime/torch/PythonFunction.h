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

/// A Python object that a thread may hold, copy and drop without the GIL, also
/// after Python has ended. Using it requires the GIL.
template <typename Object>
std::shared_ptr<Object> holdPython(Object object) {
  return {new Object(std::move(object)), [](Object *dropped) {
            if (!Py_IsInitialized())
              return;
            pybind11::gil_scoped_acquire lock;
            delete dropped;
          }};
}

} // namespace commsir

#endif // COMMSIR_RUNTIME_TORCH_PYTHONFUNCTION_H
