//===- CudaBench.cpp - Contenders on GPUs ---------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All contenders of a problem work on the same buffers: a pair of registered
// windows for ours and for NCCL, and a pair of plain ones for NCCL.
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/BenchCompiler.h"
#include "runtime/bench/BenchTarget.h"
#include "runtime/bench/cuda/Floor.h"
#include "runtime/bench/cuda/GpuRanks.h"
#include "runtime/choose/ChannelMemory.h"
#include "runtime/choose/Recipe.h"
#include "runtime/choose/cuda/Fitting.h"
#include "runtime/cuda/Kernel.h"

#include "llvm/Support/FormatVariadic.h"

#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <map>
#include <thread>

using namespace commsir;
using namespace commsir::tune;
using driver::Element;

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

namespace {

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The operands of a problem on every GPU; of shared ones a window and plain
/// memory. On rows there is one more, for NCCL's sums.
class Buffers {
public:
  Buffers(GpuRanks &machine, const BenchCase &problem)
      : problem(problem), operands(problem.operands()), machine(machine),
        all(machine.size()) {
    if (problem.columns) {
      operands.push_back(operands.front());
      operands.back().name = "sum_of_ranks";
    }
  }

  ~Buffers() {
    auto owned =
        std::make_shared<std::vector<std::vector<Place>>>(std::move(all));
    if (machine.isStuck()) {
      // GPUs that have not finished still use them.
      new std::shared_ptr<std::vector<std::vector<Place>>>(owned);
      return;
    }
    llvm::consumeError(machine.together("freeing", [owned](Rank &, int r) {
      (*owned)[r].clear();
      return llvm::Error::success();
    }));
  }

  llvm::Error make(const Reference &inputs) {
    return machine.together("allocating buffers",
                            [this, &inputs](Rank &rank, int r) {
                              return makeRank(rank, r, inputs);
                            });
  }

  /// Number of the operand of that name, or -1.
  int find(llvm::StringRef name) const {
    for (auto [i, operand] : llvm::enumerate(operands))
      if (operand.name == name)
        return int(i);
    return -1;
  }
  /// Null: the operand is not shared.
  const cuda::Window *window(int r, int operand) const {
    return all[r][operand].window.get();
  }
  CUdeviceptr address(int r, int operand, bool registered) const {
    const Place &place = all[r][operand];
    return registered && place.window ? place.window->base()
                                      : place.memory->address();
  }
  /// Calls `body(address, bytes)` for the outputs of a rank in turn.
  llvm::Error
  forOutputs(int r, bool registered,
             llvm::function_ref<llvm::Error(CUdeviceptr, size_t)> body) const {
    for (auto [i, operand] : llvm::enumerate(operands))
      if (operand.role == Operand::Role::Output)
        if (auto error = body(address(r, int(i), registered), operand.bytes()))
          return error;
    return llvm::Error::success();
  }

  /// Bytes of all operands of one rank.
  int64_t bytes() const {
    int64_t total = 0;
    for (const Operand &operand : operands)
      total += operand.bytes();
    return total;
  }

  const BenchCase problem;

private:
  struct Place {
    std::unique_ptr<cuda::Window> window;
    std::optional<cuda::Memory> memory;
  };

  llvm::Error makeRank(Rank &rank, int r, const Reference &inputs) {
    // Windows first: all ranks come to each of them, and fail together.
    for (const Operand &operand : operands) {
      Place &place = all[r].emplace_back();
      if (!operand.shared)
        continue;
      auto made = rank.communicator->allocate(operand.bytes());
      if (!made)
        return made.takeError();
      place.window = std::move(*made);
    }
    for (auto [operand, place] : llvm::zip(operands, all[r])) {
      llvm::ArrayRef<char> content;
      if (operand.role == Operand::Role::Input)
        content = inputs.content(operand, r);
      if (auto error = makeOne(rank, operand, place, content))
        return error;
    }
    return rank.driver().check(rank.driver().CtxSynchronize(),
                               "copying an input to the GPU");
  }

  llvm::Error makeOne(Rank &rank, const Operand &operand, Place &place,
                      llvm::ArrayRef<char> content) {
    const cuda::Driver &cu = rank.driver();
    auto fill = [&](CUdeviceptr to) {
      return cu.check(cu.MemcpyHtoD(to, content.data(), content.size()),
                      "copying an input to the GPU");
    };
    if (place.window && !content.empty())
      if (auto error = fill(place.window->base()))
        return error;
    auto made = cuda::Memory::allocate(*rank.device, operand.bytes());
    if (!made)
      return made.takeError();
    place.memory.emplace(std::move(*made));
    return content.empty() ? llvm::Error::success()
                           : fill(place.memory->address());
  }

  std::vector<Operand> operands;
  GpuRanks &machine;
  std::vector<std::vector<Place>> all;
};

//===----------------------------------------------------------------------===//
// Contenders
//===----------------------------------------------------------------------===//

/// Shared by CommsIR's contenders and NCCL's: buffers, graphs, timing.
class GpuContender : public Contender {
public:
  llvm::Error poison() override {
    return machine.together("poisoning outputs", [this](Rank &rank, int r) {
      const cuda::Driver &cu = rank.driver();
      auto fill = [&](CUdeviceptr at, size_t bytes) {
        return cu.check(cu.MemsetD8(at, kOutputPoison, bytes),
                        "poisoning an output");
      };
      if (auto error = buffers->forOutputs(r, registered, fill))
        return error;
      return cu.check(cu.CtxSynchronize(), "poisoning an output");
    });
  }

  llvm::Expected<double> replay() override {
    auto time = machine.time([this](Rank &rank, int r) -> llvm::Error {
      if (graph)
        return graphs[r]->launch();
      for (int64_t call = 0; call < calls; ++call)
        if (auto error = enqueue(rank, r))
          return error;
      return llvm::Error::success();
    });
    if (auto failure = findFailure()) {
      if (!time)
        llvm::consumeError(time.takeError());
      return std::move(failure);
    }
    if (!time)
      return time.takeError();
    return *time / double(calls);
  }

  llvm::Error read(int64_t number, llvm::MutableArrayRef<char> out) override {
    Rank &rank = machine[int(number)];
    const cuda::Driver &cu = rank.driver();
    cuda::ContextGuard guard(cu, rank.device->context());
    return buffers->forOutputs(
        int(number), registered, [&](CUdeviceptr at, size_t bytes) {
          char *to = out.data();
          out = out.drop_front(bytes);
          return cu.check(cu.MemcpyDtoH(to, at, bytes),
                          "copying an output from the GPU");
        });
  }

protected:
  GpuContender(GpuRanks &machine, const Plan &plan,
               std::shared_ptr<Buffers> buffers, const Candidate &candidate)
      : machine(machine), plan(plan), buffers(std::move(buffers)),
        registered(candidate.registered), graph(!candidate.eager),
        calls(plan.callsWith(this->buffers->bytes())), graphs(machine.size()) {}

  /// Puts one call into the rank's stream.
  virtual llvm::Error enqueue(Rank &rank, int number) = 0;
  /// Returns the error that the kernels have reported, if any.
  virtual llvm::Error findFailure() { return llvm::Error::success(); }

  /// Runs once, so that what libraries do lazily is done, and captures.
  llvm::Error prepare() {
    auto once =
        machine.time([this](Rank &rank, int r) { return enqueue(rank, r); });
    if (auto failure = findFailure()) {
      if (!once)
        llvm::consumeError(once.takeError());
      return failure;
    }
    if (!once)
      return once.takeError();
    if (!graph)
      return llvm::Error::success();
    return machine.together(
        "capturing a graph", [this](Rank &rank, int r) -> llvm::Error {
          auto graph =
              Graph::capture(rank, calls, [&] { return enqueue(rank, r); });
          if (!graph)
            return graph.takeError();
          graphs[r] = std::move(*graph);
          return llvm::Error::success();
        });
  }

  /// Before what `enqueue` uses is freed.
  void dropGraphs() {
    if (machine.isStuck()) {
      new std::vector<std::unique_ptr<Graph>>(std::move(graphs));
      return;
    }
    llvm::consumeError(machine.together("freeing", [this](Rank &, int r) {
      graphs[r].reset();
      return llvm::Error::success();
    }));
  }

  GpuRanks &machine;
  const Plan &plan;
  std::shared_ptr<Buffers> buffers;
  bool registered, graph;
  /// In a replay.
  int64_t calls;

private:
  std::vector<std::unique_ptr<Graph>> graphs;
};

std::optional<ncclDataType_t> toNccl(Element element) {
  switch (element) {
  case Element::BF16:
    return ncclBfloat16;
  case Element::F16:
    return ncclFloat16;
  case Element::F32:
    return ncclFloat32;
  case Element::F8E4M3FN:
    return ncclFloat8e4m3;
  case Element::F8E5M2:
    return ncclFloat8e5m2;
  case Element::I32:
    return ncclInt32;
  case Element::I8:
    return ncclInt8;
  default:
    return std::nullopt;
  }
}

/// A kernel of ours on all ranks, with its channels, on the buffers' memory.
class KernelOnRanks {
public:
  KernelOnRanks(GpuRanks &machine, const Buffers &buffers, bool registered,
                std::unique_ptr<jit::CudaKernel> kernel)
      : machine(machine), buffers(buffers), registered(registered),
        kernel(std::move(kernel)), instances(machine.size()) {}

  ~KernelOnRanks() {
    if (machine.isStuck()) {
      (void)kernel.release();
      new std::vector<Instance>(std::move(instances));
      return;
    }
    llvm::consumeError(machine.together("freeing", [this](Rank &, int r) {
      instances[r] = Instance();
      return llvm::Error::success();
    }));
  }

  llvm::Error load(const cuda::StateOptions &limits) {
    if (auto error = layOut())
      return error;
    // No rank waits in the second step for one that failed in the first.
    if (auto error =
            machine.together("loading the kernel", [&](Rank &rank, int r) {
              return loadOne(rank, r, instances[r], limits);
            }))
      return error;
    return machine.together("making its channels", [&](Rank &rank, int r) {
      return makeChannels(rank, r, instances[r]);
    });
  }

  llvm::Error launch(Rank &rank, int number) const {
    return instances[number].kernel->launch(rank.stream);
  }

  llvm::Error findFailure() const {
    for (int r = 0; r < machine.size(); ++r)
      if (auto record = instances[r].kernel->failure())
        return bad(llvm::formatv("rank {0}, block {1}: {2}{3}", r,
                                 record->block, describeSite(record->site),
                                 cuda::describeFailure(*record))
                       .str());
    return llvm::Error::success();
  }

private:
  /// The kernel on one rank, and its channels.
  struct Instance {
    std::unique_ptr<cuda::LoadedKernel> kernel;
    std::unique_ptr<cuda::Window> window;
    std::vector<cuda::Memory> memories;
  };

  std::string describeSite(uint32_t site) const {
    if (site >= kernel->sites().size())
      return "";
    return kernel->sites()[site].op + ": ";
  }

  llvm::Error loadOne(Rank &rank, int number, Instance &instance,
                      const cuda::StateOptions &limits) {
    auto loaded =
        cuda::LoadedKernel::load(*rank.device, *kernel, number, limits);
    if (!loaded)
      return loaded.takeError();
    instance.kernel = std::move(*loaded);
    return llvm::Error::success();
  }

  llvm::Error makeChannels(Rank &rank, int number, Instance &instance) {
    if (windowBytes > 0) {
      auto window = rank.communicator->allocate(windowBytes);
      if (!window)
        return window.takeError();
      instance.window = std::move(*window);
    }
    for (size_t i = 0; i < kernel->args().size(); ++i)
      if (auto error = bind(rank, number, instance, unsigned(i)))
        return error;
    const cuda::Driver &cu = rank.driver();
    return cu.check(cu.CtxSynchronize(), "filling channels");
  }

  llvm::Error bind(Rank &rank, int number, Instance &instance, unsigned arg) {
    const jit::ArgInfo &info = kernel->args()[arg];
    int operand = info.hidden ? -1 : buffers.find(info.name);
    if (operand >= 0 && isShared(info)) {
      instance.kernel->bindParts(arg, buffers.window(number, operand)->parts());
      return llvm::Error::success();
    }
    if (operand >= 0) {
      instance.kernel->bindBase(arg,
                                buffers.address(number, operand, registered));
      return llvm::Error::success();
    }
    size_t bytes = std::max<size_t>(info.bytes(), 16);
    if (isShared(info)) {
      size_t offset = offsets[arg];
      std::vector<CUdeviceptr> parts(instance.window->parts().begin(),
                                     instance.window->parts().end());
      for (CUdeviceptr &part : parts)
        part += part ? offset : 0;
      instance.kernel->bindParts(arg, parts);
      return fill(rank, instance.window->base() + offset, bytes, info.poisoned);
    }
    auto memory = cuda::Memory::allocate(*rank.device, bytes);
    if (!memory)
      return memory.takeError();
    instance.kernel->bindBase(arg, memory->address());
    instance.memories.push_back(std::move(*memory));
    return fill(rank, instance.memories.back().address(), bytes, info.poisoned);
  }

  /// Whether peers reach the argument, so that it lies in the channels' window.
  static bool isShared(const jit::ArgInfo &info) {
    return info.kind == jit::ArgKind::Window ||
           info.kind == jit::ArgKind::Signal;
  }

  /// Lays the shared arguments that are not ours to bind one after the other.
  llvm::Error layOut() {
    for (const jit::ArgInfo &info : kernel->args()) {
      offsets.push_back(windowBytes);
      bool own = isShared(info) && (info.hidden || buffers.find(info.name) < 0);
      if (own && __builtin_add_overflow(windowBytes,
                                        llvm::alignTo(info.bytes() + 16, 256),
                                        &windowBytes))
        return bad("the channels are too large");
    }
    return llvm::Error::success();
  }

  static llvm::Error fill(Rank &rank, CUdeviceptr at, size_t bytes,
                          bool poisoned) {
    const cuda::Driver &cu = rank.driver();
    constexpr auto poison = uint16_t(mlir::comms::nvvm::kPoison32);
    return cu.check(poisoned ? cu.MemsetD16(at, poison, bytes / 2)
                             : cu.MemsetD8(at, 0, bytes),
                    "filling a channel");
  }

  GpuRanks &machine;
  const Buffers &buffers;
  bool registered;
  std::unique_ptr<jit::CudaKernel> kernel;
  std::vector<Instance> instances;
  /// Offset in the channels' window and size of each argument.
  std::vector<size_t> offsets;
  size_t windowBytes = 0;
};

/// NCCL's function; on rows, its all-reduce and then a kernel of ours that
/// exchanges nothing.
class NcclContender : public GpuContender {
public:
  static llvm::Expected<std::unique_ptr<Contender>>
  create(GpuRanks &machine, const Plan &plan, std::shared_ptr<Buffers> buffers,
         const Candidate &candidate, std::unique_ptr<jit::CudaKernel> tail) {
    std::unique_ptr<NcclContender> self(
        new NcclContender(machine, plan, std::move(buffers), candidate));
    if (tail) {
      self->tail.emplace(machine, *self->buffers, candidate.registered,
                         std::move(tail));
      if (auto error = self->tail->load({plan.timeout}))
        return std::move(error);
    }
    if (auto error = self->prepare())
      return std::move(error);
    return self;
  }
  ~NcclContender() override { dropGraphs(); }

protected:
  using GpuContender::GpuContender;

  llvm::Error enqueue(Rank &rank, int number) override {
    const cuda::Nccl &nccl = *machine.nccl();
    int y = buffers->find(tail ? "sum_of_ranks" : "y");
    ncclResult_t result =
        call(nccl, rank,
             reinterpret_cast<const void *>(
                 buffers->address(number, buffers->find("x"), registered)),
             reinterpret_cast<void *>(buffers->address(number, y, registered)));
    if (auto error = nccl.check(
            result, operationName(buffers->problem.operation), rank.comm))
      return error;
    return tail ? tail->launch(rank, number) : llvm::Error::success();
  }

private:
  ncclResult_t call(const cuda::Nccl &nccl, Rank &rank, const void *x,
                    void *y) {
    const BenchCase &problem = buffers->problem;
    size_t count = problem.elements(), part = count / problem.ranks;
    ncclDataType_t type = *toNccl(problem.element);
    switch (problem.operation) {
    case Operation::AllReduce:
    case Operation::AllReduceRmsNorm:
    case Operation::AllReduceRmsNormFp8:
      return nccl.AllReduce(x, y, count, type, ncclSum, rank.comm, rank.stream);
    case Operation::AllGather:
      return nccl.AllGather(x, y, count, type, rank.comm, rank.stream);
    case Operation::ReduceScatter:
      return nccl.ReduceScatter(x, y, part, type, ncclSum, rank.comm,
                                rank.stream);
    case Operation::AllToAll:
      return nccl.AlltoAll(x, y, part, type, rank.comm, rank.stream);
    case Operation::Broadcast:
      return nccl.Broadcast(x, y, count, type, 0, rank.comm, rank.stream);
    }
    return ncclInvalidArgument;
  }

  std::optional<KernelOnRanks> tail;
};

class KernelContender : public GpuContender {
public:
  static llvm::Expected<std::unique_ptr<Contender>>
  create(GpuRanks &machine, const Plan &plan, std::shared_ptr<Buffers> buffers,
         const Candidate &candidate, std::unique_ptr<jit::CudaKernel> kernel) {
    std::unique_ptr<KernelContender> self(new KernelContender(
        machine, plan, std::move(buffers), candidate, std::move(kernel)));
    if (auto error = self->kernel.load({plan.timeout}))
      return std::move(error);
    if (auto error = self->prepare())
      return std::move(error);
    return self;
  }

  ~KernelContender() override { dropGraphs(); }

protected:
  KernelContender(GpuRanks &machine, const Plan &plan,
                  std::shared_ptr<Buffers> shared, const Candidate &candidate,
                  std::unique_ptr<jit::CudaKernel> compiled)
      : GpuContender(machine, plan, std::move(shared), candidate),
        kernel(machine, *buffers, candidate.registered, std::move(compiled)) {}

  llvm::Error enqueue(Rank &rank, int number) override {
    return kernel.launch(rank, number);
  }
  llvm::Error findFailure() override { return kernel.findFailure(); }

private:
  KernelOnRanks kernel;
};

//===----------------------------------------------------------------------===//
// BenchTarget
//===----------------------------------------------------------------------===//

class CudaBench : public BenchTarget {
public:
  CudaBench(const Plan &plan, std::unique_ptr<GpuRanks> machine)
      : plan(plan), machine(std::move(machine)) {}
  ~CudaBench() override {
    buffers.reset();
    if (machine->isStuck())
      (void)machine.release();
  }

  int64_t ranks() const override { return machine->size(); }
  bool isStuck() const override { return machine->isStuck(); }
  bool isBroken() const override { return machine->isBroken(); }

  llvm::Error describe(Header &header) override {
    const cuda::Driver &cu = (*machine)[0].driver();
    std::map<std::string, int> names;
    for (int r = 0; r < machine->size(); ++r) {
      char name[128] = "";
      if (auto error =
              cu.check(cu.DeviceGetName(name, sizeof(name),
                                        (*machine)[r].device->handle()),
                       "cuDeviceGetName"))
        return error;
      ++names[name];
    }
    for (auto [name, count] : names)
      header.device +=
          llvm::formatv("{0}{1} x {2}", header.device.empty() ? "" : ", ",
                        count, name)
              .str();
    int version = 0;
    if (auto error =
            cu.check(cu.DriverGetVersion(&version), "cuDriverGetVersion"))
      return error;
    header.driver = "CUDA " + std::to_string(version / 1000) + "." +
                    std::to_string(version % 1000 / 10);
    if (const cuda::Nccl *nccl = machine->nccl())
      header.nccl =
          llvm::formatv("{0}.{1}.{2}", nccl->version / 10000,
                        nccl->version / 100 % 100, nccl->version % 100)
              .str();
    if (machine->size() < 2)
      return llvm::Error::success();
    auto floor = measureFloor(*machine);
    if (!floor) {
      // Everything else can be told without it.
      llvm::errs() << "comms-bench: warning: the host's floor could not be "
                      "measured: "
                   << llvm::toString(floor.takeError()) << "\n";
      return llvm::Error::success();
    }
    header.floor = *floor;
    return llvm::Error::success();
  }

  void describeMachine(ConfigQuery &query) const override {
    const cuda::Device &device = *(*machine)[0].device;
    query.chip = device.getChip();
    query.multiprocessors = device.getMultiprocessors();
    const cuda::Driver &cu = (*machine)[0].driver();
    char name[128] = "";
    if (cu.DeviceGetName(name, sizeof(name), device.handle()) == CUDA_SUCCESS)
      query.device = name;
  }

  std::vector<Candidate> baselines(const BenchCase &problem) override {
    std::vector<Candidate> all;
    if (!machine->nccl() || !toNccl(problem.element))
      return all;
    for (bool registered : {false, true}) {
      Candidate nccl;
      nccl.name = problem.columns ? "nccl, then a kernel" : "nccl";
      nccl.baseline = true;
      nccl.registered = registered;
      all.push_back(nccl);
    }
    return all;
  }

  /// Compiles into the cache of kernels, where `make` finds them.
  void prepare(llvm::ArrayRef<Candidate> candidates,
               const BenchCase &problem) override {
    std::atomic<size_t> next{0};
    auto work = [&] {
      Compiler own;
      for (size_t i; (i = next++) < candidates.size();) {
        Candidate candidate = candidates[i];
        auto kernel = compile(own, candidate, problem);
        if (!kernel) // `make` says it again.
          llvm::consumeError(kernel.takeError());
      }
    };
    size_t most = std::min<size_t>(candidates.size(),
                                   std::thread::hardware_concurrency() / 2);
    std::vector<std::thread> threads;
    for (size_t i = 1; i < most; ++i)
      threads.emplace_back(work);
    work();
    for (std::thread &thread : threads)
      thread.join();
  }

  llvm::Expected<std::unique_ptr<Contender>>
  make(Candidate &candidate, const BenchCase &problem,
       const Reference &inputs) override {
    if (machine->isStuck())
      return bad("an earlier contender has not returned; run this one alone");
    if (auto error = makeBuffers(problem, inputs))
      return std::move(error);
    if (candidate.baseline) {
      std::unique_ptr<jit::CudaKernel> tail;
      if (problem.columns) {
        auto made = compileTail(problem);
        if (!made)
          return made.takeError();
        tail = std::move(*made);
      }
      return NcclContender::create(*machine, plan, buffers, candidate,
                                   std::move(tail));
    }
    auto kernel = compile(compiler, candidate, problem);
    if (!kernel)
      return kernel.takeError();
    jit::LaunchShape shape = (*kernel)->shape();
    KernelChoice made = candidate.choice;
    made.blocks = shape.blocks;
    made.threads = shape.threads;
    made.cluster = shape.cluster > 1 ? shape.cluster : 0;
    candidate.name = renderChoice(made, (*kernel)->choices());
    return KernelContender::create(*machine, plan, buffers, candidate,
                                   std::move(*kernel));
  }

private:
  /// One problem's buffers at a time.
  llvm::Error makeBuffers(const BenchCase &problem, const Reference &inputs) {
    if (buffers && buffers->problem == problem)
      return llvm::Error::success();
    buffers.reset();
    auto made = std::make_shared<Buffers>(*machine, problem);
    if (auto error = made->make(inputs))
      return error;
    buffers = std::move(made);
    return llvm::Error::success();
  }

  llvm::Expected<std::unique_ptr<jit::CudaKernel>>
  compileText(Compiler &with, const std::string &text,
              jit::CudaOptions &options, const ConfigQuery &query,
              bool isOpen) const {
    std::unique_ptr<jit::CudaKernel> kernel;
    llvm::Error error = with.withModule(
        text, [&](mlir::OwningOpRef<mlir::ModuleOp> module) -> llvm::Error {
          auto compiled = compileFitting(std::move(module), "bench", options,
                                         query, isOpen);
          if (!compiled)
            return compiled.takeError();
          kernel = std::move(*compiled);
          return llvm::Error::success();
        });
    if (error)
      return std::move(error);
    return kernel;
  }

  llvm::Expected<std::unique_ptr<jit::CudaKernel>>
  compile(Compiler &with, const Candidate &candidate,
          const BenchCase &problem) const {
    ConfigQuery query = makeQuery(problem);
    describeMachine(query);
    // As groups choose.
    auto limit = getChannelLimit();
    if (!limit)
      return limit.takeError();
    query.memory = *limit;
    query.windows = candidate.registered && !problem.columns;
    const KernelChoice &choice = candidate.choice;
    query.algorithm = choice.algorithm;
    query.protocol = choice.protocol;
    query.blocks = choice.blocks;
    query.threads = choice.threads;
    query.cluster = choice.cluster;
    Config config = choose(query).config;
    jit::CudaOptions options;
    options.ranks = problem.ranks;
    options.threads = config.threads;
    options.cluster = config.cluster;
    options.blocks = config.blocks;
    options.chip = query.chip;
    options.algorithm = config.algorithm;
    options.protocol = config.protocol;
    options.check = plan.check;
    return compileText(
        with,
        problem.kernelText(candidate.registered, candidate.choice.numbers),
        options, query, /*isOpen=*/choice.blocks == 0);
  }

  /// A block a row, as far as they are on the GPU at a time.
  llvm::Expected<std::unique_ptr<jit::CudaKernel>>
  compileTail(const BenchCase &problem) {
    ConfigQuery query;
    describeMachine(query);
    jit::CudaOptions options;
    options.ranks = problem.ranks;
    int64_t vectors = problem.bytes / problem.rows() / 16;
    options.threads = std::clamp<int64_t>(
        int64_t(llvm::PowerOf2Ceil(uint64_t(vectors))), 32, 1024);
    options.cluster = 1;
    options.blocks = std::min<int64_t>(problem.rows(),
                                       countResident(query, options.threads));
    options.chip = query.chip;
    options.check = false;
    return compileText(compiler, problem.tailText(), options, query,
                       /*isOpen=*/false);
  }

  const Plan &plan;
  Compiler compiler;
  std::unique_ptr<GpuRanks> machine;
  std::shared_ptr<Buffers> buffers;
};

} // namespace

static llvm::Expected<std::unique_ptr<BenchTarget>>
createBench(const Plan &plan) {
  auto machine = GpuRanks::create(int(plan.ranks), plan.baselines);
  if (!machine)
    return machine.takeError();
  return std::make_unique<CudaBench>(plan, std::move(*machine));
}

namespace commsir::tune {
const BenchKind &getCudaBench() {
  static const BenchKind kind = {"cuda", createBench};
  return kind;
}
} // namespace commsir::tune
