//===- CudaTarget.cpp - Contenders on GPUs --------------------------------===//
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

#include "runtime/cuda/Kernel.h"
#include "runtime/tune/Compile.h"
#include "runtime/tune/Target.h"
#include "runtime/tune/cuda/Floor.h"
#include "runtime/tune/cuda/Machine.h"

#include "llvm/Support/FormatVariadic.h"

#include "llvm/Support/raw_ostream.h"

#include <map>

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

/// Input and output of a problem on every GPU.
class Buffers {
public:
  Buffers(Machine &machine, const Problem &problem)
      : problem(problem), machine(machine), all(machine.size()) {}

  ~Buffers() {
    auto owned = std::make_shared<std::vector<Pair>>(std::move(all));
    if (machine.isStuck()) {
      // GPUs that have not finished still use them.
      new std::shared_ptr<std::vector<Pair>>(owned);
      return;
    }
    llvm::consumeError(machine.together("freeing", [owned](Rank &, int r) {
      (*owned)[r] = Pair();
      return llvm::Error::success();
    }));
  }

  llvm::Error make(const Reference &inputs) {
    return machine.together("allocating buffers",
                            [this, &inputs](Rank &rank, int r) {
                              return makeOne(rank, all[r], inputs.input(r));
                            });
  }

  const cuda::Window &inputWindow(int r) const { return *all[r].inputWindow; }
  const cuda::Window &outputWindow(int r) const { return *all[r].outputWindow; }
  CUdeviceptr input(int r, bool registered) const {
    return registered ? all[r].inputWindow->base() : all[r].input->address();
  }
  CUdeviceptr output(int r, bool registered) const {
    return registered ? all[r].outputWindow->base() : all[r].output->address();
  }

  const Problem problem;

private:
  struct Pair {
    std::unique_ptr<cuda::Window> inputWindow, outputWindow;
    std::optional<cuda::Memory> input, output;
  };

  llvm::Error makeOne(Rank &rank, Pair &pair, llvm::ArrayRef<char> content) {
    size_t inBytes = problem.bytes, outBytes = problem.outputBytes();
    for (auto [window, bytes] : {std::pair(&pair.inputWindow, inBytes),
                                 {&pair.outputWindow, outBytes}}) {
      auto made = rank.communicator->allocate(bytes);
      if (!made)
        return made.takeError();
      *window = std::move(*made);
    }
    for (auto [memory, bytes] :
         {std::pair(&pair.input, inBytes), {&pair.output, outBytes}}) {
      auto made = cuda::Memory::allocate(*rank.device, bytes);
      if (!made)
        return made.takeError();
      memory->emplace(std::move(*made));
    }
    const cuda::Driver &cu = rank.driver();
    for (CUdeviceptr to : {pair.inputWindow->base(), pair.input->address()})
      if (auto error =
              cu.check(cu.MemcpyHtoD(to, content.data(), content.size()),
                       "copying an input to the GPU"))
        return error;
    return cu.check(cu.CtxSynchronize(), "copying an input to the GPU");
  }

  Machine &machine;
  std::vector<Pair> all;
};

//===----------------------------------------------------------------------===//
// Contenders
//===----------------------------------------------------------------------===//

/// What ours and NCCL's have in common: buffers, graphs, time.
class GpuContender : public Contender {
public:
  llvm::Error poison() override {
    return machine.together("poisoning outputs", [this](Rank &rank, int r) {
      const cuda::Driver &cu = rank.driver();
      if (auto error = cu.check(cu.MemsetD8(buffers->output(r, registered),
                                            kOutputPoison,
                                            buffers->problem.outputBytes()),
                                "poisoning an output"))
        return error;
      return cu.check(cu.CtxSynchronize(), "poisoning an output");
    });
  }

  llvm::Expected<double> replay() override {
    auto time = machine.time([this](Rank &rank, int r) -> llvm::Error {
      if (plan.graph)
        return graphs[r]->launch();
      for (int64_t call = 0; call < plan.calls; ++call)
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
    return *time / double(plan.calls);
  }

  llvm::Error read(int64_t number, llvm::MutableArrayRef<char> out) override {
    Rank &rank = machine[int(number)];
    const cuda::Driver &cu = rank.driver();
    cuda::ContextGuard guard(cu, rank.device->context());
    return cu.check(cu.MemcpyDtoH(out.data(),
                                  buffers->output(int(number), registered),
                                  out.size()),
                    "copying an output from the GPU");
  }

protected:
  GpuContender(Machine &machine, const Plan &plan,
               std::shared_ptr<Buffers> buffers, bool registered)
      : machine(machine), plan(plan), buffers(std::move(buffers)),
        registered(registered), graphs(machine.size()) {}

  /// Puts one call into the rank's stream.
  virtual llvm::Error enqueue(Rank &rank, int number) = 0;
  /// What the kernels have reported; success without.
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
    if (!plan.graph)
      return llvm::Error::success();
    return machine.together(
        "capturing a graph", [this](Rank &rank, int r) -> llvm::Error {
          auto graph = Graph::capture(rank, plan.calls,
                                      [&] { return enqueue(rank, r); });
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

  Machine &machine;
  const Plan &plan;
  std::shared_ptr<Buffers> buffers;
  bool registered;

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
  case Element::I32:
    return ncclInt32;
  default:
    return std::nullopt;
  }
}

class NcclContender : public GpuContender {
public:
  static llvm::Expected<std::unique_ptr<Contender>>
  create(Machine &machine, const Plan &plan, std::shared_ptr<Buffers> buffers,
         bool registered) {
    std::unique_ptr<NcclContender> self(
        new NcclContender(machine, plan, std::move(buffers), registered));
    if (auto error = self->prepare())
      return std::move(error);
    return self;
  }
  ~NcclContender() override { dropGraphs(); }

protected:
  NcclContender(Machine &machine, const Plan &plan,
                std::shared_ptr<Buffers> buffers, bool registered)
      : GpuContender(machine, plan, std::move(buffers), registered) {}

  llvm::Error enqueue(Rank &rank, int number) override {
    const cuda::Nccl &nccl = *machine.nccl();
    ncclResult_t result =
        call(nccl, rank,
             reinterpret_cast<const void *>(buffers->input(number, registered)),
             reinterpret_cast<void *>(buffers->output(number, registered)));
    return nccl.check(result, operationName(buffers->problem.operation),
                      rank.comm);
  }

private:
  ncclResult_t call(const cuda::Nccl &nccl, Rank &rank, const void *x,
                    void *y) {
    const Problem &problem = buffers->problem;
    size_t count = problem.elements(), part = count / problem.ranks;
    ncclDataType_t type = *toNccl(problem.element);
    switch (problem.operation) {
    case Operation::AllReduce:
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
};

class OurContender : public GpuContender {
public:
  static llvm::Expected<std::unique_ptr<Contender>>
  create(Machine &machine, const Plan &plan, std::shared_ptr<Buffers> buffers,
         std::unique_ptr<jit::CudaKernel> kernel) {
    std::unique_ptr<OurContender> self(
        new OurContender(machine, plan, std::move(buffers), std::move(kernel)));
    if (auto error = self->load())
      return std::move(error);
    if (auto error = self->prepare())
      return std::move(error);
    return self;
  }

  ~OurContender() override {
    dropGraphs();
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

protected:
  /// The kernel on one rank, and its channels.
  struct Instance {
    std::unique_ptr<cuda::LoadedKernel> kernel;
    std::unique_ptr<cuda::Window> window;
    std::vector<cuda::Memory> memories;
  };

  OurContender(Machine &machine, const Plan &plan,
               std::shared_ptr<Buffers> buffers,
               std::unique_ptr<jit::CudaKernel> kernel)
      : GpuContender(machine, plan, std::move(buffers), /*registered=*/true),
        kernel(std::move(kernel)), instances(machine.size()) {}

  llvm::Error enqueue(Rank &rank, int number) override {
    return instances[number].kernel->launch(rank.stream);
  }

  llvm::Error findFailure() override {
    for (int r = 0; r < machine.size(); ++r)
      if (auto record = instances[r].kernel->failure())
        return bad(llvm::formatv("rank {0}, block {1}: {2}{3}", r,
                                 record->block, describeSite(record->site),
                                 cuda::describeFailure(*record))
                       .str());
    return llvm::Error::success();
  }

private:
  std::string describeSite(uint32_t site) const {
    if (site >= kernel->sites().size())
      return "";
    return kernel->sites()[site].op + ": ";
  }

  llvm::Error load() {
    if (auto error = layOut())
      return error;
    return machine.together("loading the kernel", [this](Rank &rank, int r) {
      return loadOne(rank, r, instances[r]);
    });
  }

  llvm::Error loadOne(Rank &rank, int number, Instance &instance) {
    auto loaded = cuda::LoadedKernel::load(*rank.device, *kernel, number,
                                           cuda::PollLimits());
    if (!loaded)
      return loaded.takeError();
    instance.kernel = std::move(*loaded);
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
    if (info.name == "x" && !info.hidden) {
      instance.kernel->bindParts(arg, buffers->inputWindow(number).parts());
      return llvm::Error::success();
    }
    if (info.name == "y" && !info.hidden) {
      instance.kernel->bindParts(arg, buffers->outputWindow(number).parts());
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
      bool own = isShared(info) && info.name != "x" && info.name != "y";
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

  std::unique_ptr<jit::CudaKernel> kernel;
  std::vector<Instance> instances;
  /// Of each argument in the channels' window, and its size.
  std::vector<size_t> offsets;
  size_t windowBytes = 0;
};

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

class CudaTarget : public Target {
public:
  CudaTarget(const Plan &plan, std::unique_ptr<Machine> machine)
      : plan(plan), machine(std::move(machine)) {}
  ~CudaTarget() override {
    buffers.reset();
    if (machine->isStuck())
      (void)machine.release();
  }

  int64_t ranks() const override { return machine->size(); }
  bool isStuck() const override { return machine->isStuck(); }

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

  std::vector<Candidate> baselines(const Problem &problem) override {
    std::vector<Candidate> all;
    if (!machine->nccl() || !toNccl(problem.element))
      return all;
    for (bool registered : {false, true}) {
      Candidate nccl;
      nccl.name = "nccl";
      nccl.baseline = true;
      nccl.registered = registered;
      all.push_back(nccl);
    }
    return all;
  }

  llvm::Expected<std::unique_ptr<Contender>>
  make(Candidate &candidate, const Problem &problem,
       const Reference &inputs) override {
    if (machine->isStuck())
      return bad("an earlier contender has not returned; run this one alone");
    if (auto error = makeBuffers(problem, inputs))
      return std::move(error);
    if (candidate.baseline)
      return NcclContender::create(*machine, plan, buffers,
                                   candidate.registered);
    auto kernel = compile(candidate, problem);
    if (!kernel)
      return kernel.takeError();
    jit::LaunchShape shape = (*kernel)->shape();
    KernelChoice made = candidate.choice;
    made.blocks = shape.blocks;
    made.threads = shape.threads;
    made.cluster = shape.cluster > 1 ? shape.cluster : 0;
    candidate.name = renderChoice(made, (*kernel)->choices());
    return OurContender::create(*machine, plan, buffers, std::move(*kernel));
  }

private:
  /// One problem's buffers at a time.
  llvm::Error makeBuffers(const Problem &problem, const Reference &inputs) {
    if (buffers && buffers->problem == problem)
      return llvm::Error::success();
    buffers.reset();
    auto made = std::make_shared<Buffers>(*machine, problem);
    if (auto error = made->make(inputs))
      return error;
    buffers = std::move(made);
    return llvm::Error::success();
  }

  /// As many blocks as give every thread one vector of 16 bytes, if as many
  /// CTAs fit the GPU: 512 threads a multiprocessor do, whatever their
  /// registers.
  int64_t chooseBlocks(const KernelChoice &choice, const Problem &problem,
                       int64_t threads, int64_t cluster) {
    bool whole = choice.algorithm.empty() || choice.algorithm == "one_shot";
    bool parts = problem.operation == Operation::ReduceScatter ||
                 problem.operation == Operation::AllToAll;
    int64_t bytes = problem.bytes / (parts || !whole ? problem.ranks : 1);
    int64_t perProcessor = std::max<int64_t>(512 / threads, 1);
    int64_t fitting =
        (*machine)[0].device->getMultiprocessors() * perProcessor / cluster;
    int64_t wanted = llvm::divideCeil(bytes, 16 * threads * cluster);
    return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(fitting, 1));
  }

  llvm::Expected<std::unique_ptr<jit::CudaKernel>>
  compile(const Candidate &candidate, const Problem &problem) {
    const KernelChoice &choice = candidate.choice;
    jit::CudaOptions options;
    options.ranks = problem.ranks;
    options.threads = choice.threads ? choice.threads : kThreads;
    options.cluster = choice.cluster ? choice.cluster : 1;
    options.blocks = choice.blocks;
    if (!options.blocks)
      options.blocks =
          chooseBlocks(choice, problem, options.threads, options.cluster);
    options.chip = (*machine)[0].device->getChip();
    options.algorithm = choice.algorithm;
    options.protocol = choice.protocol;
    options.check = plan.check;
    std::unique_ptr<jit::CudaKernel> kernel;
    llvm::Error error = compiler.withModule(
        problem, [&](mlir::OwningOpRef<mlir::ModuleOp> module) -> llvm::Error {
          auto compiled = jit::compileCuda(std::move(module), "bench", options);
          if (!compiled)
            return compiled.takeError();
          kernel = std::move(*compiled);
          return llvm::Error::success();
        });
    if (error)
      return std::move(error);
    return kernel;
  }

  /// Of a CTA, when the plan leaves it open: hand-written kernels were fastest
  /// with 64 to 128 up to 4 MiB.
  static constexpr int64_t kThreads = 128;

  const Plan &plan;
  Compiler compiler;
  std::unique_ptr<Machine> machine;
  std::shared_ptr<Buffers> buffers;
};

} // namespace

llvm::Expected<std::unique_ptr<Target>>
commsir::tune::createCudaTarget(const Plan &plan) {
  auto machine = Machine::create(int(plan.ranks), plan.baselines);
  if (!machine)
    return machine.takeError();
  return std::make_unique<CudaTarget>(plan, std::move(*machine));
}
