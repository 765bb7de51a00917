//===- CpuBench.cpp - Contenders on this processor ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ours run in the CPU world. The baseline is what a program without CommsIR
// would do in shared memory: a thread a rank computes its output straight from
// all inputs.
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/BenchCompiler.h"
#include "runtime/bench/BenchTarget.h"
#include "runtime/cpu/World.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cstring>
#include <latch>
#include <thread>

using namespace commsir;
using namespace commsir::tune;
using driver::Element;

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

//===----------------------------------------------------------------------===//
// Ours
//===----------------------------------------------------------------------===//

namespace {
class WorldContender : public Contender {
public:
  static llvm::Expected<std::unique_ptr<Contender>>
  create(std::unique_ptr<jit::Kernel> kernel, const Plan &plan,
         const BenchCase &problem, const Reference &inputs) {
    auto self = std::unique_ptr<WorldContender>(new WorldContender);
    self->calls = plan.calls;
    for (const Operand &operand : problem.operands()) {
      self->args.push_back(kernel->findArg(operand.name));
      if (self->args.back() < 0)
        return bad("the compiled kernel has lost its argument " + operand.name);
    }
    self->kernel = std::move(kernel);
    cpu::RunOptions options;
    options.blocks = std::max<int64_t>(self->kernel->blocks(), 1);
    options.launches = plan.calls;
    options.fast = true;
    options.timeLimit = 600;
    auto world = cpu::World::create(*self->kernel, options);
    if (!world)
      return world.takeError();
    self->world = std::move(*world);
    for (int64_t rank = 0; rank < problem.ranks; ++rank)
      for (auto [arg, operand] : llvm::zip(self->args, problem.operands()))
        if (operand.role == Operand::Role::Input)
          llvm::copy(inputs.content(operand, rank),
                     self->world->memory(arg, rank).begin());
    self->problem = problem;
    return self;
  }

  llvm::Error poison() override {
    for (int64_t rank = 0; rank < problem.ranks; ++rank)
      for (llvm::MutableArrayRef<char> memory : outputs(rank))
        std::memset(memory.data(), kOutputPoison, memory.size());
    return llvm::Error::success();
  }

  llvm::Expected<double> replay() override {
    auto outcome = world->run();
    if (auto *error = std::get_if<cpu::RunError>(&outcome))
      return bad(llvm::StringRef(error->render()).rtrim());
    const auto &stats = std::get<cpu::RunStats>(outcome);
    return stats.totalMicroseconds / double(calls);
  }

  llvm::Error read(int64_t rank, llvm::MutableArrayRef<char> out) override {
    for (llvm::MutableArrayRef<char> memory : outputs(rank)) {
      llvm::copy(memory, out.begin());
      out = out.drop_front(memory.size());
    }
    return llvm::Error::success();
  }

private:
  WorldContender() = default;

  std::vector<llvm::MutableArrayRef<char>> outputs(int64_t rank) {
    std::vector<llvm::MutableArrayRef<char>> all;
    for (auto [arg, operand] : llvm::zip(args, problem.operands()))
      if (operand.role == Operand::Role::Output)
        all.push_back(world->memory(arg, rank));
    return all;
  }

  std::unique_ptr<jit::Kernel> kernel;
  std::unique_ptr<cpu::World> world;
  BenchCase problem;
  /// Numbers of the operands in the kernel.
  std::vector<int> args;
  int64_t calls = 1;
};

//===----------------------------------------------------------------------===//
// The baseline
//===----------------------------------------------------------------------===//

/// Storage of a bf16, with the arithmetic that sums need.
struct BFloat {
  uint16_t bits;
  operator float() const { return llvm::bit_cast<float>(uint32_t(bits) << 16); }
  static BFloat round(float value) {
    uint32_t bits = llvm::bit_cast<uint32_t>(value);
    return {uint16_t((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
  }
};

/// Storage of a number of eight bits, with the arithmetic that sums need: by
/// tables, or a baseline would be slow for no reason of its own.
template <Element kElement>
struct Float8 {
  uint8_t bits;
  operator float() const { return tables().wide[bits]; }
  static Float8 round(float value) {
    // What is cut off leaves a bit behind (rounding to odd), so that rounding
    // what is left gives what rounding `value` itself does.
    uint32_t all = llvm::bit_cast<uint32_t>(value);
    return {tables().narrow[(all >> 16) | ((all & 0xFFFF) != 0)]};
  }

private:
  struct Tables {
    float wide[256];
    uint8_t narrow[1 << 16];
    Tables() {
      for (unsigned i = 0; i < 256; ++i) {
        auto byte = char(i);
        double value;
        driver::decode(kElement, &byte, value);
        wide[i] = float(value);
      }
      for (unsigned i = 0; i < 1 << 16; ++i)
        driver::encode(kElement, llvm::bit_cast<float>(i << 16),
                       reinterpret_cast<char *>(&narrow[i]));
    }
  };
  static const Tables &tables() {
    static const Tables all;
    return all;
  }
};

template <typename T>
T narrow(float value) {
  if constexpr (requires { T::round(value); })
    return T::round(value);
  else
    return static_cast<T>(value);
}

/// Sums elements [first, first + count) of all inputs in rank order. `Sum` is
/// the type of the accumulator.
template <typename T, typename Sum>
void sumInto(const Reference &inputs, int64_t ranks, int64_t first,
             int64_t count, char *out) {
  constexpr int64_t kChunk = 1024;
  Sum sum[kChunk];
  for (int64_t at = 0; at < count; at += kChunk) {
    int64_t n = std::min(kChunk, count - at);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      auto *in =
          reinterpret_cast<const T *>(inputs.input(rank).data()) + first + at;
      for (int64_t i = 0; i < n; ++i)
        sum[i] = rank ? sum[i] + Sum(in[i]) : Sum(in[i]);
    }
    auto *to = reinterpret_cast<T *>(out) + at;
    for (int64_t i = 0; i < n; ++i)
      if constexpr (std::is_same_v<Sum, float>)
        to[i] = narrow<T>(sum[i]);
      else
        to[i] = static_cast<T>(sum[i]);
  }
}

class DirectContender : public Contender {
public:
  DirectContender(const Plan &plan, const BenchCase &problem,
                  const Reference &inputs)
      : problem(problem), inputs(inputs), calls(plan.calls),
        outputs(problem.ranks) {
    for (std::vector<char> &output : outputs)
      output.resize(problem.outputBytes());
  }

  llvm::Error poison() override {
    for (std::vector<char> &output : outputs)
      std::memset(output.data(), kOutputPoison, output.size());
    return llvm::Error::success();
  }

  llvm::Expected<double> replay() override {
    using Clock = std::chrono::steady_clock;
    std::latch start(problem.ranks);
    std::vector<double> times(problem.ranks);
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < problem.ranks; ++rank)
      threads.emplace_back([&, rank] {
        start.arrive_and_wait();
        Clock::time_point begin = Clock::now();
        for (int64_t call = 0; call < calls; ++call)
          runOnce(rank);
        std::chrono::duration<double, std::micro> time = Clock::now() - begin;
        times[rank] = time.count() / double(calls);
      });
    for (std::thread &thread : threads)
      thread.join();
    // A clock that stands still must not give a time of 0.
    return std::max(*llvm::max_element(times), 1e-3);
  }

  llvm::Error read(int64_t rank, llvm::MutableArrayRef<char> out) override {
    llvm::copy(outputs[rank], out.begin());
    return llvm::Error::success();
  }

private:
  void runOnce(int64_t rank) {
    char *out = outputs[rank].data();
    if (problem.reduces())
      return sum(rank, out);
    bool toAll = problem.operation == Operation::AllToAll;
    bool fromOne = problem.operation == Operation::Broadcast;
    int64_t part = toAll ? problem.bytes / problem.ranks : problem.bytes;
    for (int64_t source = 0; source < (fromOne ? 1 : problem.ranks); ++source)
      std::memcpy(out + source * part,
                  inputs.input(source).data() + (toAll ? rank * part : 0),
                  part);
  }

  void sum(int64_t rank, char *out) {
    int64_t count =
        problem.outputBytes() / int64_t(driver::elementBytes(problem.element));
    bool cut = problem.operation == Operation::ReduceScatter;
    int64_t first = cut ? rank * count : 0;
    switch (problem.element) {
    case Element::BF16:
      return sumInto<BFloat, float>(inputs, problem.ranks, first, count, out);
    case Element::F16:
      return sumInto<_Float16, float>(inputs, problem.ranks, first, count, out);
    case Element::F8E4M3FN:
      return sumInto<Float8<Element::F8E4M3FN>, float>(inputs, problem.ranks,
                                                       first, count, out);
    case Element::F8E5M2:
      return sumInto<Float8<Element::F8E5M2>, float>(inputs, problem.ranks,
                                                     first, count, out);
    case Element::I32:
      return sumInto<int32_t, int32_t>(inputs, problem.ranks, first, count,
                                       out);
    case Element::I8: // Wraps around.
      return sumInto<int8_t, int32_t>(inputs, problem.ranks, first, count, out);
    default:
      return sumInto<float, float>(inputs, problem.ranks, first, count, out);
    }
  }

  BenchCase problem;
  const Reference &inputs;
  int64_t calls;
  std::vector<std::vector<char>> outputs;
};

//===----------------------------------------------------------------------===//
// BenchTarget
//===----------------------------------------------------------------------===//

class CpuBench : public BenchTarget {
public:
  explicit CpuBench(const Plan &plan) : plan(plan) {}

  int64_t ranks() const override { return plan.ranks; }

  llvm::Error describe(Header &header) override {
    header.device =
        llvm::formatv("{0} processors", std::thread::hardware_concurrency())
            .str();
    return llvm::Error::success();
  }

  void describeMachine(ConfigQuery &query) const override {
    query.chip = "cpu";
  }

  std::vector<Candidate> baselines(const BenchCase &problem) override {
    if (problem.columns)
      return {};
    Candidate direct;
    direct.name = "threads";
    direct.baseline = true;
    direct.registered = true;
    return {direct};
  }

  llvm::Expected<std::unique_ptr<Contender>>
  make(Candidate &candidate, const BenchCase &problem,
       const Reference &inputs) override {
    if (candidate.baseline)
      return std::make_unique<DirectContender>(plan, problem, inputs);
    jit::CompileOptions options;
    options.ranks = problem.ranks;
    options.blocks = candidate.choice.blocks;
    options.algorithm = candidate.choice.algorithm;
    options.protocol = candidate.choice.protocol;
    options.check = plan.check;
    std::unique_ptr<jit::Kernel> kernel;
    llvm::Error error = compiler.withModule(
        problem.kernelText(candidate.registered, candidate.choice.numbers),
        [&](mlir::OwningOpRef<mlir::ModuleOp> module) -> llvm::Error {
          auto compiled = jit::compile(std::move(module), "bench", options);
          if (!compiled)
            return compiled.takeError();
          kernel = std::move(*compiled);
          return llvm::Error::success();
        });
    if (error)
      return error;
    candidate.name = renderChoice(candidate.choice, kernel->choices());
    return WorldContender::create(std::move(kernel), plan, problem, inputs);
  }

private:
  const Plan &plan;
  Compiler compiler;
};

} // namespace

static llvm::Expected<std::unique_ptr<BenchTarget>>
createBench(const Plan &plan) {
  return std::make_unique<CpuBench>(plan);
}

namespace commsir::tune {
const BenchKind &getCpuBench() {
  static const BenchKind kind = {"cpu", createBench};
  return kind;
}
} // namespace commsir::tune
