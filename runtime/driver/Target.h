//===- Target.h - The interface of comms-run's targets ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface between comms-run and its targets. A session parses, fills,
// compares and writes in the same way for every target.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_TARGET_H
#define COMMSIR_RUNTIME_DRIVER_TARGET_H

#include "runtime/choose/ChooseKernel.h"
#include "runtime/cpu/World.h"
#include "runtime/driver/Options.h"

#include "mlir/Pass/PassManager.h"

#include "llvm/Support/JSON.h"

namespace commsir::driver {

/// All ranks of a run: their memory and its execution.
class World {
public:
  virtual ~World() = default;
  /// Window part, memory or cells of `rank` for argument `arg`.
  virtual llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank) = 0;
  /// `bytes` must have the size of the argument's element.
  virtual void setScalar(unsigned arg, int64_t rank,
                         llvm::ArrayRef<char> bytes) = 0;
  virtual std::variant<cpu::RunStats, cpu::RunError> run() = 0;
  /// Whether this process handles the inputs, results and comparisons of
  /// `rank`. Other processes handle the rest.
  virtual bool isLocal(int64_t /*rank*/) const { return true; }
};

/// A world of the runtime (cpu::World or cuda::World) within this process.
template <typename Inner>
class InProcessWorld final : public World {
public:
  explicit InProcessWorld(std::unique_ptr<Inner> world)
      : world(std::move(world)) {}
  llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank) override {
    return world->memory(arg, rank);
  }
  void setScalar(unsigned arg, int64_t rank,
                 llvm::ArrayRef<char> bytes) override {
    world->setScalar(arg, rank, bytes);
  }
  std::variant<cpu::RunStats, cpu::RunError> run() override {
    return world->run();
  }

private:
  std::unique_ptr<Inner> world;
};

/// A target, and after `compile` its kernel.
class Target {
public:
  virtual ~Target() = default;

  /// Makes the target that `options` names, or an error if this build lacks it.
  static llvm::Expected<std::unique_ptr<Target>> create(const Options &options);

  /// Number of ranks of the job that this process belongs to; none: no job.
  /// Called before anything that needs the number of ranks.
  virtual llvm::Expected<std::optional<int64_t>> findJobRanks() {
    return std::nullopt;
  }
  /// Checks that this machine can run that many ranks. Called before compiling.
  virtual llvm::Error checkMachine(int64_t ranks) = 0;
  /// Blocks per rank if neither kernel nor command line sets them and the
  /// kernel depends on the block.
  virtual int64_t defaultBlocks() const = 0;
  /// Adds the passes that `compile` runs.
  virtual void addPasses(mlir::OpPassManager &manager, int64_t ranks,
                         int64_t blocks) const = 0;
  /// Compiles kernel `name` of `module`; stores the machine code in `object` if
  /// it is not null.
  virtual llvm::Error compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                              llvm::StringRef name, int64_t ranks,
                              int64_t blocks, std::string *object) = 0;

  // Arguments of the compiled kernel.
  virtual llvm::ArrayRef<jit::ArgInfo> args() const = 0;
  virtual llvm::ArrayRef<jit::Choice> choices() const = 0;
  /// Blocks per rank; 0: as many as requested.
  virtual int64_t blocks() const = 0;
  /// The checker's verdict; null: unknown.
  virtual const jit::ProofInfo *proof() const { return nullptr; }
  /// Bytes of host memory per rank, without its arguments.
  virtual uint64_t hostBytes(int64_t blocks) const = 0;
  /// Index of the argument of that name.
  unsigned findArg(llvm::StringRef name) const;

  /// Makes a world with zeroed or poisoned memory. A target uses the fields of
  /// `run` that it supports.
  virtual llvm::Expected<std::unique_ptr<World>>
  createWorld(const cpu::RunOptions &run) = 0;
  /// Called after `world` has run.
  virtual void ran(const World &) {}
  /// A line on how the kernel ran, for the report; "": none.
  virtual std::string note() const { return ""; }
};

/// Finds kernel `name` of `module`; null: there is none.
mlir::comms::KernelOp findKernel(mlir::ModuleOp module, llvm::StringRef name);

/// Chooses what neither `wish` nor the kernel fixes, sets it on the kernel's
/// collectives, and explains the choice if `options` asks for that.
tune::KernelConfigs chooseConfigs(mlir::comms::KernelOp kernel,
                                  const tune::ConfigQuery &wish,
                                  const Options &options);

/// Whether something does not return, so that the process must exit without
/// cleaning up.
bool mustExitWithoutCleanup();

/// Declares that this process is comms-run and can start itself once per rank.
/// In a library, ranks are threads.
void allowProcesses();

/// Whether ranks may share GPUs, as processes.
bool mayShareMachine();

/// Keeps GPUs open between runs, because opening them is slow.
void keepMachineOpen();

/// If `arguments` are those of a process that a target started as a rank, runs
/// that rank and returns its exit status. `arguments` must stay valid.
std::optional<int> runAsRank(llvm::ArrayRef<const char *> arguments);

/// A kind of target. Each kind is one file *Target.cpp that defines
/// `get<File>`; CMake lists the files in Targets.inc. Null functions do
/// nothing, or return false.
struct TargetKind {
  /// Value of `--target`.
  llvm::StringLiteral name;
  std::unique_ptr<Target> (*create)(const Options &options);
  // Implementations of the functions of the same names above.
  bool (*mustExitWithoutCleanup)() = nullptr;
  bool (*mayShareMachine)() = nullptr;
  void (*keepMachineOpen)() = nullptr;
  void (*allowProcesses)() = nullptr;
  std::optional<int> (*runAsRank)(llvm::ArrayRef<const char *>) = nullptr;
  /// Adds the machine's support for the target to the report of commsir.doctor.
  void (*examine)(llvm::json::Object &report) = nullptr;
};

/// All kinds of targets in this build.
llvm::ArrayRef<const TargetKind *> getTargetKinds();
/// The kind of that name; null: this build lacks it.
const TargetKind *findTargetKind(llvm::StringRef name);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_TARGET_H
