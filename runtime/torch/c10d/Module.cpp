//===- Module.cpp - The Python extension libcommsir_c10d ------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What frontend/commsir/torch/backend.py calls. torch's own classes for Backend
// and Store are used; the module adds none.
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/PythonFunction.h"
#include "runtime/torch/c10d/Autograd.h"
#include "runtime/torch/c10d/Backend.h"
#include "runtime/torch/c10d/Interrupt.h"
#include "runtime/torch/c10d/Prepared.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

namespace py = pybind11;
using namespace commsir::torch_c10d;
using Ours = commsir::torch_c10d::Backend;

static decltype(Settings::delegate) fromPython(py::function function) {
  return
      [held = commsir::holdPython(std::move(function))](
          const StorePtr &store, const std::string &device, int rank, int size,
          const std::vector<uint64_t> &globalRanks, const std::string &name) {
        py::gil_scoped_acquire lock;
        return (*held)(store, device, rank, size, globalRanks, name)
            .cast<BackendPtr>();
      };
}

static BackendPtr create(const StorePtr &store, int rank, int size,
                         std::chrono::milliseconds timeout,
                         const std::string &name,
                         const std::vector<int64_t> &globalRanks,
                         const std::string &library, py::function delegate) {
  Settings settings;
  settings.store = store;
  settings.rank = rank;
  settings.size = size;
  settings.shared->timeout = timeout.count();
  settings.name = name;
  settings.globalRanks.assign(globalRanks.begin(), globalRanks.end());
  settings.library = library;
  settings.delegate = fromPython(std::move(delegate));
  // Groups that are gone end there, and their threads may need the GIL.
  py::gil_scoped_release unlock;
  return Ours::make(std::move(settings));
}

static Ours &ours(const BackendPtr &backend) {
  auto *result = dynamic_cast<Ours *>(backend.get());
  TORCH_CHECK(result, "commsir: this is a backend ", backend->getBackendName(),
              ", not commsir");
  return *result;
}

//===----------------------------------------------------------------------===//
// Collectives of a program's own
//===----------------------------------------------------------------------===//

namespace {
/// An error that the program's Python code raised. Unlike pybind11's own, it
/// may be thrown more than once, and by several threads.
struct PythonError : std::runtime_error {
  explicit PythonError(py::error_already_set &error)
      : std::runtime_error(error.what()),
        value(commsir::holdPython(py::object(error.value()))) {}
  std::shared_ptr<py::object> value;
};
} // namespace

static void rethrow(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PythonError &raised) {
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(raised.value->ptr())),
                    raised.value->ptr());
  }
}

static WorkPtr runInTurn(const BackendPtr &backend, const std::string &name,
                         std::vector<at::Tensor> inputs,
                         std::vector<at::Tensor> outputs, py::function run,
                         std::optional<std::chrono::milliseconds> timeout,
                         bool async) {
  auto call = [held = commsir::holdPython(std::move(run))] {
    py::gil_scoped_acquire lock;
    try {
      (*held)();
    } catch (py::error_already_set &error) {
      throw PythonError(error);
    }
  };
  py::gil_scoped_release unlock;
  return ours(backend).runInTurn(name, std::move(inputs), std::move(outputs),
                                 std::move(call),
                                 timeout.value_or(c10d::kUnsetTimeout), async);
}

/// Converts a call to the form that commsir/torch/flight.py expects.
static py::dict toPython(const CallRecord &record) {
  auto list = [](const CallRecord::Shapes &shapes) {
    py::list made;
    const int64_t *size = shapes.sizes.begin();
    for (auto [dimensions, type] : shapes.tensors) {
      std::vector<int64_t> sizes(size, size + dimensions);
      size += dimensions;
      made.append(py::make_tuple(std::move(sizes), c10::toString(type)));
    }
    return made;
  };
  py::dict made;
  made["name"] = record.name;
  made["what"] = record.describe();
  made["peer"] = record.root;
  made["is_p2p"] = record.pointToPoint;
  made["sequence"] = record.sequence;
  made["state"] = record.state;
  made["inputs"] = list(record.inputs);
  made["outputs"] = list(record.outputs);
  made["timeout_ms"] = record.timeout.count();
  made["created"] = record.created;
  made["begun"] = record.begun;
  made["ended"] = record.ended;
  return made;
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// Derivatives of ops, by names with "commsir::". They are never freed, because
/// ops may still be called when Python ends.
static std::map<std::string, py::object> &derivatives() {
  static auto *made = new std::map<std::string, py::object>;
  return *made;
}

static py::object toPython(const c10::IValue &value) {
  if (value.isTensor())
    return py::cast(value.toTensor());
  if (value.isInt())
    return py::cast(value.toInt());
  return py::cast(value.toStringRef());
}

/// Calls the op's function of (dispatch keys, its arguments…).
static void differentiate(const c10::OperatorHandle &op,
                          c10::DispatchKeySet keys, torch::jit::Stack *stack) {
  py::gil_scoped_acquire lock;
  size_t count = op.schema().arguments().size();
  py::tuple given(count + 1);
  given[0] = py::cast(keys);
  for (size_t i = 0; i < count; ++i)
    given[i + 1] = toPython(torch::jit::peek(*stack, i, count));
  auto result = derivatives().at(op.schema().name())(*given).cast<at::Tensor>();
  torch::jit::drop(*stack, count);
  torch::jit::push(*stack, std::move(result));
}

//===----------------------------------------------------------------------===//
// Prepared calls
//===----------------------------------------------------------------------===//

/// The state of a prepared function.
struct BoundCall {
  Prepared call;
  /// Takes the same arguments, where the op has to be called.
  py::object op;
};
static constexpr const char *kBoundCall = "commsir.BoundCall";

/// Whether `object` is a tensor of torch's own class; `tensor`: it.
static bool readTensor(PyObject *object, at::Tensor &tensor) {
  if (!THPVariable_CheckExact(object))
    return false;
  tensor = THPVariable_Unpack(object);
  return true;
}

static bool readTensors(PyObject *list, c10::SmallVector<at::Tensor, 6> &made) {
  if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list))
    return false;
  Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  made.resize(size);
  for (Py_ssize_t i = 0; i < size; ++i)
    if (!readTensor(PySequence_Fast_GET_ITEM(list, i), made[i]))
      return false;
  return true;
}

/// The tensors that a call is to fill, if that is all it says by name.
static PyObject *givenOutputs(PyObject *const *given, Py_ssize_t count,
                              PyObject *names) {
  bool isOnly =
      PyTuple_GET_SIZE(names) == 1 &&
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") == 0;
  return isOnly ? given[count] : nullptr;
}

/// (input, args, …, out=None) -> list of tensors.
static PyObject *callPrepared(PyObject *self, PyObject *const *given,
                              Py_ssize_t count, PyObject *names) {
  HANDLE_TH_ERRORS
  auto *bound =
      static_cast<BoundCall *>(PyCapsule_GetPointer(self, kBoundCall));
  at::Tensor input;
  c10::SmallVector<at::Tensor, 6> arguments, outputs;
  std::optional<std::vector<at::Tensor>> made;
  bool isRead = count >= 2 && readTensor(given[0], input) &&
                readTensors(given[1], arguments);
  if (isRead && !names) {
    py::gil_scoped_release unlock;
    made = bound->call.run(input, arguments);
  } else if (PyObject *wanted =
                 isRead ? givenOutputs(given, count, names) : nullptr;
             wanted && readTensors(wanted, outputs)) {
    bool isDone = false;
    {
      py::gil_scoped_release unlock;
      isDone = bound->call.runInto(input, arguments, outputs);
    }
    if (isDone)
      return PySequence_List(wanted);
  }
  if (!made)
    return PyObject_Vectorcall(bound->op.ptr(), given, count, names);
  py::list results(made->size());
  for (size_t i = 0; i < made->size(); ++i)
    PyList_SET_ITEM(results.ptr(), i, THPVariable_Wrap(std::move((*made)[i])));
  return results.release().ptr();
  END_HANDLE_TH_ERRORS
}

static py::object
prepare(const std::string &op, const std::string &reduction,
        const std::string &consume,
        const std::vector<std::pair<at::ScalarType, int64_t>> &outputs,
        bool symmetric, const std::string &group, const std::string &site,
        const std::string &produce, size_t sources, uintptr_t ranks,
        uintptr_t run, py::object callOp) {
  static PyMethodDef method = {
      "prepared", reinterpret_cast<PyCFunction>(callPrepared),
      METH_FASTCALL | METH_KEYWORDS,
      "(input, args, parts=None, out=None) -> list of tensors: the collective "
      "that it was prepared for. It fills the tensors of out, if given."};
  auto bound = std::make_unique<BoundCall>(BoundCall{
      Prepared(
          {op, reduction, consume, group, site, symmetric, produce, sources},
          outputs, reinterpret_cast<commsir::PreparedRanks>(ranks),
          reinterpret_cast<commsir::PreparedRun>(run)),
      std::move(callOp)});
  auto capsule = py::reinterpret_steal<py::object>(
      PyCapsule_New(bound.get(), kBoundCall, [](PyObject *object) {
        delete static_cast<BoundCall *>(
            PyCapsule_GetPointer(object, kBoundCall));
      }));
  if (!capsule)
    throw py::error_already_set();
  bound.release();
  return py::reinterpret_steal<py::object>(
      PyCFunction_New(&method, capsule.ptr()));
}

//===----------------------------------------------------------------------===//
// Ctrl-C
//===----------------------------------------------------------------------===//

static unsigned long mainThread = 0;
/// The error that a signal handler raised on the main thread. A pointer,
/// because an object would be destroyed after Python.
static py::error_already_set *raisedByHandler = nullptr;

static bool isMain() {
  return PyThread_get_thread_ident() == mainThread && Py_IsInitialized();
}

static bool runHandlers() {
  py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() == 0)
    return false;
  raisedByHandler = new py::error_already_set;
  return true;
}

[[noreturn]] static void raiseFromHandler() {
  py::gil_scoped_acquire lock;
  std::unique_ptr<py::error_already_set> raised(
      std::exchange(raisedByHandler, nullptr));
  throw py::error_already_set(std::move(*raised));
}

static void watchSignals() {
  py::object thread = py::module_::import("threading").attr("main_thread")();
  mainThread = thread.attr("ident").cast<unsigned long>();
  Interrupts &interrupts = Interrupts::get();
  interrupts.isMain = isMain;
  interrupts.heard = runHandlers;
  interrupts.raise = raiseFromHandler;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "CommsIR's torch.distributed backend";
  // Where they are not known, torch was built with another pybind11: that is an
  // ImportError, and the module does not fit.
  py::type::of<c10d::Backend>();
  py::type::of<c10d::Store>();
  watchSignals();
  // Of all modules: torch's own functions throw it where a Work is waited for.
  py::register_exception_translator(rethrow);
  module.def("run_in_turn", runInTurn, py::arg("backend"), py::arg("name"),
             py::arg("inputs"), py::arg("outputs"), py::arg("run"),
             py::arg("timeout"), py::arg("asynchronous"));
  module.def("create", create, py::arg("store"), py::arg("rank"),
             py::arg("size"), py::arg("timeout"), py::arg("name"),
             py::arg("global_ranks"), py::arg("library"), py::arg("delegate"));
  module.def("counts", [] { return Counters::get().all(); });
  module.def("clear_counts", [] { Counters::get().clear(); });
  module.def(
      "group_counts",
      [](const BackendPtr &backend) { return ours(backend).groupCounts(); },
      py::call_guard<py::gil_scoped_release>());
  module.def("group", [](const BackendPtr &backend, const c10::Device &device) {
    py::gil_scoped_release unlock;
    return reinterpret_cast<uintptr_t>(ours(backend).groupOn(device));
  });
  module.def("recent", [](const BackendPtr &backend) {
    py::list result;
    for (const CallRecord &record : ours(backend).recent())
      result.append(toPython(record));
    return result;
  });
  module.def("differentiate", [](const std::string &op, py::object function) {
    derivatives()["commsir::" + op] = std::move(function);
    passAutograd(op, differentiate);
  });
  module.def("refuse_gradients", refuseGradients);
  module.def("prepare", prepare, py::arg("op"), py::arg("reduce_op"),
             py::arg("consume"), py::arg("outputs"), py::arg("symmetric"),
             py::arg("group_name"), py::arg("site"), py::arg("produce"),
             py::arg("sources"), py::arg("ranks"), py::arg("run"),
             py::arg("call_op"));
  module.def("end", [] {
    py::gil_scoped_release unlock;
    Ours::endAll();
  });
  module.def("timeout", [](const BackendPtr &backend) {
    return ours(backend).getBackendOptions()->timeout;
  });
  module.def("abort", [](const BackendPtr &backend, const std::string &reason) {
    py::gil_scoped_release unlock;
    ours(backend).abortBecause(reason);
  });
}
