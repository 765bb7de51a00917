//===- Group.cpp - Groups of processes for Python, by tvm-ffi -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group is held by the Python object and by every array in its windows, so
// that no array outlives its memory.
//
//===----------------------------------------------------------------------===//

#include "frontend/ffi/Binding.h"

#include <tvm/ffi/extra/c_env_api.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <unistd.h>

using namespace commsir::binding;

namespace {

struct Held {
  explicit Held(commsir_group *group) : group(group) {}
  ~Held() { end(group); }
  commsir_group *const group;
  /// The last reference may be an array's, which garbage is collected of.
  void (*end)(commsir_group *) = commsir_group_drop;
};

/// The groups that Python has open, by handle.
struct Registry {
  std::mutex mutex;
  std::map<int64_t, std::shared_ptr<Held>> groups;
  int64_t next = 1;
};

/// Two functions of Python as a store.
struct Callbacks {
  Function set, get;
};

} // namespace

static Registry &registry() {
  static auto *made = new Registry; // Never destroyed: other threads may run.
  return *made;
}

static std::shared_ptr<Held> find(int64_t handle) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.groups.find(handle);
  return found == all.groups.end() ? nullptr : found->second;
}

/// [status, text] for a group that was closed.
static Array<Any> closed() {
  return {int64_t(COMMSIR_ABORTED),
          String(R"({"kind": "aborted", "message": )"
                 R"("the group is closed; make a new one"})")};
}

/// [0, handle] or [status, text].
static Array<Any> hold(commsir_status status, commsir_group *group) {
  if (status != COMMSIR_OK)
    return answer(status);
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  int64_t handle = all.next++;
  all.groups[handle] = std::make_shared<Held>(group);
  return {int64_t(COMMSIR_OK), handle};
}

//===----------------------------------------------------------------------===//
// Ctrl-C
//===----------------------------------------------------------------------===//

static thread_local bool interruptible = false, raised = false;

static int checkSignals() {
  // Other threads would wait for the interpreter in vain.
  if (!interruptible || ::getpid() != ::gettid())
    return 0;
  raised = raised || TVMFFIEnvCheckSignals() != 0;
  return raised;
}

Interruptible::Interruptible() {
  static std::once_flag once;
  std::call_once(once, [] { commsir_set_interrupt(checkSignals); });
  interruptible = true;
}

Interruptible::~Interruptible() { interruptible = false; }

void commsir::binding::throwInterrupt() {
  if (std::exchange(raised, false))
    throw ffi::EnvErrorAlreadySet();
}

//===----------------------------------------------------------------------===//
// Making groups
//===----------------------------------------------------------------------===//

static int callSet(void *self, const char *key, const void *data,
                   size_t bytes) {
  try {
    static_cast<Callbacks *>(self)->set(
        String(key), Bytes(static_cast<const char *>(data), bytes));
    return 0;
  } catch (...) { // Python has noted what it was.
    return 1;
  }
}

static int callGet(void *self, const char *key, double timeout, void **data,
                   size_t *bytes) {
  try {
    Bytes value =
        static_cast<Callbacks *>(self)->get(String(key), timeout).cast<Bytes>();
    *data = std::malloc(value.size() + 1);
    if (!*data)
      return 1;
    std::memcpy(*data, value.data(), value.size());
    *bytes = value.size();
    return 0;
  } catch (...) {
    return 1;
  }
}

/// `communicator` is the address of an ncclComm_t, or 0; `ctas` is as in
/// commsir_group_options.
static Array<Any> groupCreate(String name, int64_t rank, int64_t ranks,
                              int64_t device, double timeout,
                              int64_t communicator, int64_t ctas, String folder,
                              Optional<Function> set, Optional<Function> get) {
  Interruptible inside;
  commsir_group_options options = {sizeof options,
                                   name.c_str(),
                                   rank,
                                   ranks,
                                   int32_t(device),
                                   timeout,
                                   reinterpret_cast<void *>(communicator),
                                   ctas};
  commsir_group *group = nullptr;
  if (!set || !get)
    return hold(
        commsir_group_create_in_folder(&options, folder.c_str(), &group),
        group);
  Callbacks callbacks{*set, *get};
  commsir_store store = {sizeof store, &callbacks, callSet, callGet};
  commsir_status status = commsir_group_create(&options, &store, &group);
  return hold(status, group);
}

static Array<Any> groupShrink(int64_t handle, Array<int64_t> survivors,
                              Function set, Function get) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  std::vector<int64_t> ranks(survivors.begin(), survivors.end());
  Callbacks callbacks{set, get};
  commsir_store store = {sizeof store, &callbacks, callSet, callGet};
  commsir_group *group = nullptr;
  commsir_status status = commsir_group_shrink(held->group, ranks.data(),
                                               ranks.size(), &store, &group);
  return hold(status, group);
}

/// With `waits` the caller closes it as all ranks do, else it is garbage.
static void groupClose(int64_t handle, bool waits) {
  std::shared_ptr<Held> last; // Destroyed without the lock.
  Registry &all = registry();
  {
    std::lock_guard lock(all.mutex);
    auto found = all.groups.find(handle);
    if (found == all.groups.end())
      return;
    last = std::move(found->second);
    all.groups.erase(found);
  }
  if (!waits)
    return;
  // Calls of other threads end; arrays keep their memory.
  commsir_group_close(last->group);
  if (last.use_count() == 1)
    last->end = commsir_group_destroy;
}

/// A group of another's, by the address of its commsir_group, as long as that
/// lives.
static int64_t groupBorrow(int64_t address) {
  auto held =
      std::make_shared<Held>(reinterpret_cast<commsir_group *>(address));
  held->end = [](commsir_group *) {};
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  all.groups[all.next] = std::move(held);
  return all.next++;
}

/// The address of a commsir_group, for C++ outside of this binding.
static int64_t groupAddress(int64_t handle) {
  auto held = find(handle);
  return held ? reinterpret_cast<int64_t>(held->group) : 0;
}

static Array<Any> groupAbort(int64_t handle, String reason) {
  auto held = find(handle);
  return held ? answer(commsir_group_abort(held->group, reason.c_str()))
              : closed();
}

static Array<Any> groupPoll(int64_t handle) {
  auto held = find(handle);
  return held ? answer(commsir_group_poll(held->group)) : closed();
}

static Array<Any> groupFinish(int64_t handle, int64_t stream) {
  auto held = find(handle);
  return held ? answer(commsir_group_finish(held->group,
                                            reinterpret_cast<void *>(stream)))
              : closed();
}

static Array<Any> groupStats(int64_t handle) {
  auto held = find(handle);
  return held ? answer(COMMSIR_OK, commsir_group_stats(held->group)) : closed();
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {
/// A tensor over a window, and what keeps the window there.
struct WindowTensor {
  WindowTensor(std::shared_ptr<Held> given, void *window)
      : held(std::move(given)), window(window) {
    commsir_window_keep(held->group, window);
  }
  ~WindowTensor() { commsir_window_drop(held->group, window); }
  WindowTensor(const WindowTensor &) = delete;
  WindowTensor &operator=(const WindowTensor &) = delete;

  DLManagedTensor tensor = {};
  std::vector<int64_t> shape;
  std::shared_ptr<Held> held;
  void *window;
};
} // namespace

/// A tensor of `shape` at `base`, which lies in some rank's part of the window
/// and keeps that and the group.
static ffi::Tensor tensorOver(std::unique_ptr<WindowTensor> made, void *base,
                              int64_t device, const Array<int64_t> &shape,
                              DLDataType type) {
  made->shape.assign(shape.begin(), shape.end());
  DLTensor &tensor = made->tensor.dl_tensor;
  tensor = {};
  tensor.data = base;
  tensor.device = {device < 0 ? kDLCPU : kDLCUDA,
                   device < 0 ? 0 : int32_t(device)};
  tensor.ndim = int32_t(made->shape.size());
  tensor.dtype = type;
  tensor.shape = made->shape.data();
  made->tensor.manager_ctx = made.get();
  made->tensor.deleter = [](DLManagedTensor *self) {
    delete static_cast<WindowTensor *>(self->manager_ctx);
  };
  return ffi::Tensor::FromDLPack(&made.release()->tensor);
}

static Array<Any> noArray(const Array<int64_t> &shape, int64_t size) {
  std::string sizes;
  for (int64_t one : shape)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(one);
  std::string why =
      size < 0 ? "sizes are 0 or more" : "no memory has so many elements";
  return {int64_t(COMMSIR_USAGE),
          String(R"({"message": "no array has the shape ()" + sizes +
                 "): " + why + R"("})")};
}

/// "float32 (2, 3)"
static std::string describe(const Array<int64_t> &shape, DLDataType type) {
  std::string text = ffi::DLDataTypeToString(type);
  const char *before = " (";
  for (int64_t one : shape) {
    text += before + std::to_string(one);
    before = ", ";
  }
  return text + (shape.empty() ? " ()" : ")");
}

/// [0, tensor]; the window is as long as the tensor.
static Array<Any> windowAllocate(int64_t handle, int64_t device,
                                 Array<int64_t> shape, DLDataType type) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  int64_t elements = 1;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements) ||
        elements > INT64_MAX / 8)
      return noArray(shape, size);
  void *base = nullptr;
  std::string purpose = describe(shape, type);
  commsir_status status = commsir_window_allocate_for(
      held->group, size_t(elements) * ((type.bits + 7) / 8), purpose.c_str(),
      &base);
  if (status != COMMSIR_OK)
    return answer(status);
  auto kept = std::make_unique<WindowTensor>(std::move(held), base);
  return {int64_t(COMMSIR_OK),
          tensorOver(std::move(kept), base, device, shape, type)};
}

static Array<Any> windowRelease(int64_t handle, int64_t address) {
  Interruptible inside;
  auto held = find(handle);
  return held ? answer(commsir_window_release(
                    held->group, reinterpret_cast<void *>(address)))
              : closed();
}

static Array<Any> windowShare(int64_t handle, int64_t address, int64_t bytes) {
  Interruptible inside;
  auto held = find(handle);
  return held ? answer(commsir_window_share(held->group,
                                            reinterpret_cast<void *>(address),
                                            size_t(bytes)))
              : closed();
}

static void windowForget(int64_t handle, int64_t address) {
  if (auto held = find(handle))
    commsir_window_forget(held->group, reinterpret_cast<void *>(address));
}

static bool windowContains(int64_t handle, int64_t address, int64_t bytes) {
  auto held = find(handle);
  return held &&
         commsir_window_contains(held->group, reinterpret_cast<void *>(address),
                                 size_t(bytes));
}

/// [0, tensor] over rank `peer`'s copy of what lies at `address` in a window.
static Array<Any> windowPeer(int64_t handle, int64_t device, int64_t address,
                             int64_t peer, Array<int64_t> shape,
                             DLDataType type) {
  auto held = find(handle);
  if (!held)
    return closed();
  // Kept before it is looked for: another thread may release it.
  commsir_group *group = held->group;
  auto *window = reinterpret_cast<void *>(address);
  auto kept = std::make_unique<WindowTensor>(std::move(held), window);
  void *base = commsir_window_peer(group, window, peer);
  if (!base)
    return {int64_t(COMMSIR_USAGE),
            String(R"({"message": "the window of that rank is out of this )"
                   R"(rank's reach or was released, or there is no such )"
                   R"(rank"})")};
  return {int64_t(COMMSIR_OK),
          tensorOver(std::move(kept), base, device, shape, type)};
}

//===----------------------------------------------------------------------===//
// One-sided access. Memory is given by its address.
//===----------------------------------------------------------------------===//

static void *at(int64_t address) { return reinterpret_cast<void *>(address); }

/// Of a put, `own` is where it goes to in this rank's part; of a get, where it
/// comes from.
static Array<Any> windowPut(int64_t handle, int64_t peer, int64_t own,
                            int64_t from, int64_t bytes, int64_t stream) {
  auto held = find(handle);
  return held ? answer(commsir_put(held->group, peer, at(own), at(from),
                                   size_t(bytes), at(stream)))
              : closed();
}

static Array<Any> windowGet(int64_t handle, int64_t peer, int64_t own,
                            int64_t to, int64_t bytes, int64_t stream) {
  auto held = find(handle);
  return held ? answer(commsir_get(held->group, peer, at(own), at(to),
                                   size_t(bytes), at(stream)))
              : closed();
}

static Array<Any> windowPutSignal(int64_t handle, int64_t peer, int64_t own,
                                  int64_t from, int64_t bytes, int64_t cell,
                                  int64_t kind, int64_t value, int64_t stream) {
  auto held = find(handle);
  return held ? answer(commsir_put_signal(held->group, peer, at(own), at(from),
                                          size_t(bytes), cell, int32_t(kind),
                                          value, at(stream)))
              : closed();
}

static Array<Any> signalsReserve(int64_t handle, int64_t count) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  int64_t first = 0;
  commsir_status status = commsir_signals_reserve(held->group, count, &first);
  if (status != COMMSIR_OK)
    return answer(status);
  return {int64_t(COMMSIR_OK), first};
}

static Array<Any> signalsRelease(int64_t handle, int64_t first) {
  Interruptible inside;
  auto held = find(handle);
  return held ? answer(commsir_signals_release(held->group, first)) : closed();
}

static Array<Any> signalSend(int64_t handle, int64_t peer, int64_t cell,
                             int64_t kind, int64_t value, int64_t stream) {
  auto held = find(handle);
  return held ? answer(commsir_signal(held->group, peer, cell, int32_t(kind),
                                      value, at(stream)))
              : closed();
}

static Array<Any> signalWait(int64_t handle, int64_t cell, int64_t kind,
                             int64_t value, int64_t source, double timeout,
                             int64_t stream) {
  Interruptible inside;
  auto held = find(handle);
  return held ? answer(commsir_wait_signal(held->group, cell, int32_t(kind),
                                           value, source, timeout, at(stream)))
              : closed();
}

static Array<Any> signalRead(int64_t handle, int64_t cell) {
  auto held = find(handle);
  if (!held)
    return closed();
  int64_t value = 0;
  commsir_status status = commsir_read_signal(held->group, cell, &value);
  if (status != COMMSIR_OK)
    return answer(status);
  return {int64_t(COMMSIR_OK), value};
}

static Array<Any> signalReset(int64_t handle, int64_t cell, int64_t stream) {
  auto held = find(handle);
  return held ? answer(commsir_reset_signal(held->group, cell, at(stream)))
              : closed();
}

//===----------------------------------------------------------------------===//
// Collectives and kernels
//===----------------------------------------------------------------------===//

static void *dataOf(const Optional<ffi::Tensor> &tensor) {
  return tensor ? (*tensor).data_ptr() : nullptr;
}

static int64_t elementsOf(const Optional<ffi::Tensor> &tensor) {
  return tensor ? (*tensor).numel() : 0;
}

/// What the caller takes elements for, where their type in kernels does not say
/// it: "" else.
static std::string nameOf(const Optional<ffi::Tensor> &tensor,
                          const String &type) {
  // Types that DLPack lacks may come as integers.
  if (!tensor || type.size() == 0 || *type.c_str() != 'i')
    return "";
  auto code = (*tensor).dtype().code;
  return code == kDLBool   ? "i1"
         : code == kDLUInt ? "u" + std::string(type)
                           : "";
}

static Array<Any> groupCollective(int64_t handle, String op, String reduction,
                                  String type, int64_t root, int64_t peer,
                                  Optional<ffi::Tensor> input,
                                  Optional<ffi::Tensor> output,
                                  String algorithm, String protocol,
                                  int64_t stream) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  commsir_collective call = {};
  call.size = sizeof call;
  call.op = op.c_str();
  call.reduction = reduction.c_str();
  call.type = type.c_str();
  call.root = root;
  call.peer = peer;
  call.input = dataOf(input);
  call.input_elements = elementsOf(input);
  call.output = dataOf(output);
  call.output_elements = elementsOf(output);
  call.algorithm = algorithm.c_str();
  call.protocol = protocol.c_str();
  std::string name = nameOf(input ? input : output, type);
  if (!name.empty())
    call.type_name = name.c_str();
  return answer(commsir_group_collective(held->group, &call,
                                         reinterpret_cast<void *>(stream)));
}

/// [0, kernel, description].
static Array<Any> groupKernel(int64_t handle, String source, String name,
                              String options) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  commsir_kernel *kernel = nullptr;
  commsir_status status = commsir_group_kernel(
      held->group, source.c_str(), name.c_str(), options.c_str(), &kernel);
  if (status != COMMSIR_OK)
    return answer(status);
  return {int64_t(COMMSIR_OK), reinterpret_cast<int64_t>(kernel),
          take(commsir_kernel_describe(kernel))};
}

/// `arguments` has a tensor for each argument, or null for signals and
/// counters.
static Array<Any> kernelLaunch(int64_t handle, int64_t kernel,
                               Array<Optional<ffi::Tensor>> arguments,
                               int64_t stream) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  std::vector<commsir_argument> values;
  for (const Optional<ffi::Tensor> &argument : arguments)
    values.push_back(
        argument ? commsir_argument{(*argument).data_ptr(), bytesOf(*argument)}
                 : commsir_argument{nullptr, 0});
  return answer(commsir_kernel_launch(
      reinterpret_cast<commsir_kernel *>(kernel), values.data(), values.size(),
      reinterpret_cast<void *>(stream)));
}

//===----------------------------------------------------------------------===//
// The same on memory that is given by its address, as torch's tensors are:
// DLPack exports no tensor that has gradients, and not all types.
//===----------------------------------------------------------------------===//

/// A collective on flat memory; `named` is what the elements are taken for.
static commsir_collective collectiveAt(const String &op,
                                       const String &reduction,
                                       const String &type, const String &named,
                                       int64_t root, const String &algorithm,
                                       const Array<int64_t> &memory) {
  commsir_collective call = {};
  call.size = sizeof call;
  call.op = op.c_str();
  call.reduction = reduction.c_str();
  call.type = type.c_str();
  call.root = root;
  call.input = at(memory[0]);
  call.input_elements = memory[1];
  call.output = at(memory[2]);
  call.output_elements = memory[3];
  call.algorithm = algorithm.c_str();
  call.protocol = "";
  call.type_name = named.c_str();
  return call;
}

/// Why there is no such collective; empty: there is. `memory` is address and
/// elements of the input, then of the output.
static String collectiveWhyNot(int64_t handle, String op, String reduction,
                               String type, String named, int64_t root,
                               String algorithm, Array<int64_t> memory) {
  auto held = find(handle);
  if (!held)
    return "the group is closed";
  commsir_collective call =
      collectiveAt(op, reduction, type, named, root, algorithm, memory);
  return take(commsir_group_why_not(held->group, &call));
}

static Array<Any> collectiveRun(int64_t handle, String op, String reduction,
                                String type, String named, int64_t root,
                                String algorithm, Array<int64_t> memory,
                                int64_t stream) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  commsir_collective call =
      collectiveAt(op, reduction, type, named, root, algorithm, memory);
  return answer(commsir_group_collective(held->group, &call, at(stream)));
}

/// Fails unless all ranks pass the same text.
static Array<Any> groupCompare(int64_t handle, String text, int64_t stream) {
  Interruptible inside;
  auto held = find(handle);
  return held ? answer(commsir_group_compare(held->group, text.c_str(),
                                             at(stream)))
              : closed();
}

/// `memory` has an address and bytes for each argument, 0 and 0 for signals and
/// counters.
static Array<Any> kernelLaunchAt(int64_t handle, int64_t kernel,
                                 Array<int64_t> memory, int64_t stream) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  std::vector<commsir_argument> values;
  for (size_t i = 0; i + 1 < memory.size(); i += 2)
    values.push_back({at(memory[i]), size_t(memory[i + 1])});
  return answer(
      commsir_kernel_launch(reinterpret_cast<commsir_kernel *>(kernel),
                            values.data(), values.size(), at(stream)));
}

/// [0, address]
static Array<Any> windowAllocateBytes(int64_t handle, int64_t bytes) {
  Interruptible inside;
  auto held = find(handle);
  if (!held)
    return closed();
  void *base = nullptr;
  commsir_status status =
      commsir_window_allocate(held->group, size_t(bytes), &base);
  if (status != COMMSIR_OK)
    return answer(status);
  return {int64_t(COMMSIR_OK), reinterpret_cast<int64_t>(base)};
}

/// Memory that others made symmetric: where this rank reaches each rank's.
static Array<Any> windowAdopt(int64_t handle, int64_t own, int64_t bytes,
                              Array<int64_t> parts) {
  auto held = find(handle);
  if (!held)
    return closed();
  std::vector<uint64_t> reached(parts.begin(), parts.end());
  return answer(commsir_window_adopt(held->group, at(own), size_t(bytes),
                                     reached.data()));
}

/// Where this rank reaches another's copy; 0: it does not.
static int64_t windowAddress(int64_t handle, int64_t address, int64_t peer) {
  auto held = find(handle);
  return held ? reinterpret_cast<int64_t>(
                    commsir_window_peer(held->group, at(address), peer))
              : 0;
}

/// Waits for a signal as the stream does, and takes `value` from its cell.
static Array<Any> signalTake(int64_t handle, int64_t cell, int64_t value,
                             int64_t source, int64_t stream) {
  Interruptible inside;
  auto held = find(handle);
  return held ? answer(commsir_take_signal(held->group, cell, value, source,
                                           at(stream)))
              : closed();
}

/// Adds `value` to this rank's cell of `first` at every other rank.
static Array<Any> signalOthers(int64_t handle, int64_t first, int64_t value,
                               int64_t stream) {
  auto held = find(handle);
  return held ? answer(commsir_signal_others(held->group, first, value,
                                             at(stream)))
              : closed();
}

/// Takes `value` from the cell of `first` of every other rank.
static Array<Any> signalTakeOthers(int64_t handle, int64_t first, int64_t value,
                                   int64_t stream) {
  Interruptible inside;
  auto held = find(handle);
  return held ? answer(commsir_take_from_others(held->group, first, value,
                                                at(stream)))
              : closed();
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_create, groupCreate);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_shrink, groupShrink);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_close, groupClose);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_borrow, groupBorrow);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_address, groupAddress);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_abort, groupAbort);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_poll, groupPoll);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_finish, groupFinish);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_stats, groupStats);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_collective, groupCollective);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_kernel, groupKernel);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(kernel_launch, kernelLaunch);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_allocate, windowAllocate);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_release, windowRelease);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_share, windowShare);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_forget, windowForget);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_contains, windowContains);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_peer, windowPeer);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_put, windowPut);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_get, windowGet);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_put_signal, windowPutSignal);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signals_reserve, signalsReserve);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signals_release, signalsRelease);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signal_send, signalSend);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signal_wait, signalWait);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signal_read, signalRead);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signal_reset, signalReset);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(collective_why_not, collectiveWhyNot);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(collective_run, collectiveRun);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(group_compare, groupCompare);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(kernel_launch_at, kernelLaunchAt);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_allocate_bytes, windowAllocateBytes);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_adopt, windowAdopt);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(window_address, windowAddress);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signal_take, signalTake);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signal_others, signalOthers);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(signal_take_others, signalTakeOthers);
