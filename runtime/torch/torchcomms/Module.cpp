//===- Module.cpp - The Python extension libcommsir_torchcomms ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What frontend/commsir/torch/torchcomms.py calls.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/PythonFunction.h"
#include "runtime/torch/torchcomms/Backend.h"
#include "runtime/torch/torchcomms/Work.h"

#include <comms/torchcomms/TorchCommFactory.hpp>
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

namespace py = pybind11;
using namespace commsir::torchcomms;

/// The same for a thread without the interpreter's lock.
template <typename Result, typename... Arguments>
static void fromPython(std::function<Result(Arguments...)> &made,
                       py::function function) {
  made = [held = commsir::holdPython(std::move(function))](
             Arguments... arguments) -> Result {
    py::gil_scoped_acquire lock;
    return (*held)(arguments...).template cast<Result>();
  };
}

static void registerAs(const std::string &name, py::function connect,
                       py::function make, py::function isFromTorch,
                       const std::string &version) {
  auto maker = std::make_shared<PythonHooks>();
  fromPython(maker->connect, std::move(connect));
  fromPython(maker->make, std::move(make));
  fromPython(maker->isFromTorch, std::move(isFromTorch));
  maker->version = version;
  torch::comms::TorchCommFactory::get().register_backend(
      name, [maker] { return std::make_shared<Backend>(maker); });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "CommsIR as a backend of torchcomms";
  // Where they are not known, torch was built with another pybind11.
  py::type::of<c10d::Backend>();
  py::type::of<c10d::Store>();
  module.def("register", registerAs, py::arg("name"), py::arg("connect"),
             py::arg("make"), py::arg("is_from_torch"), py::arg("version"));
  module.def("end", [] {
    py::gil_scoped_release unlock;
    StatusWatcher::get().end();
  });
}
