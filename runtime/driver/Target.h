//===- Target.h - What a kernel is compiled for and run on ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The seam between comms-run and the targets: a session parses, fills, compares
// and writes the same way whatever runs the kernel.
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

/// All ranks of a run: their memory, and what runs on it.
class World {
public:
  virtual ~World() = default;
  /// Window part, memory or cells of `rank` for argument number `arg`.
  virtual llvm::MutableArrayRef<char> memory(unsigned arg, int64_t rank) = 0;
  /// `bytes` has the size of the argument's element.
  virtual void setScalar(unsigned arg, int64_t rank,
                         llvm::ArrayRef<char> bytes) = 0;
  virtual std::variant<cpu::RunStats, cpu::RunError> run() = 0;
  /// Whether `rank` is this process's affair: inputs, results and comparisons
  /// of the others are theirs.
  virtual bool isLocal(int64_t /*rank*/) const { return true; }
};

/// A world of the runtime (cpu::World, cuda::World), all of it in this process.
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

/// A target, and after `compile` the kernel made for it.
class Target {
public:
  virtual ~Target() = default;

  /// The one that `options` names, or an error when this program was built
  /// without it.
  static llvm::Expected<std::unique_ptr<Target>> create(const Options &options);

  /// Ranks of the job that this process is one of; none: it is not in any.
  /// Called before all that needs the number of ranks.
  virtual llvm::Expected<std::optional<int64_t>> findJobRanks() {
    return std::nullopt;
  }
  /// Whether this machine can run that many ranks. Called before compiling.
  virtual llvm::Error checkMachine(int64_t ranks) = 0;
  /// Blocks of each rank when neither kernel nor command line says, and blocks
  /// differ.
  virtual int64_t defaultBlocks() const = 0;
  /// Adds the passes that `compile` runs.
  virtual void addPasses(mlir::OpPassManager &manager, int64_t ranks,
                         int64_t blocks) const = 0;
  /// Compiles kernel `name` of `module`; `object`, if any, takes the machine
  /// code.
  virtual llvm::Error compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                              llvm::StringRef name, int64_t ranks,
                              int64_t blocks, std::string *object) = 0;

  // Of the compiled kernel.
  virtual llvm::ArrayRef<jit::ArgInfo> args() const = 0;
  virtual llvm::ArrayRef<jit::Choice> choices() const = 0;
  /// Blocks of each rank; 0: as many as are asked for.
  virtual int64_t blocks() const = 0;
  /// What the checker says of it; null: it is not known.
  virtual const jit::ProofInfo *proof() const { return nullptr; }
  /// Bytes of the host's memory that each rank takes beside its arguments.
  virtual uint64_t hostBytes(int64_t blocks) const = 0;
  /// Number of the argument of that name.
  unsigned findArg(llvm::StringRef name) const;

  /// A world with zeroed or poisoned memory. Of `run`, a target takes what it
  /// knows.
  virtual llvm::Expected<std::unique_ptr<World>>
  createWorld(const cpu::RunOptions &run) = 0;
  /// `world` has run.
  virtual void ran(const World &) {}
  /// A line about how it ran, for the report; "" for none.
  virtual std::string note() const { return ""; }
};

/// Kernel `name` of `module`; null: none.
mlir::comms::KernelOp findKernel(mlir::ModuleOp module, llvm::StringRef name);

/// Chooses what neither `wish` nor the kernel says, writes it on the kernel's
/// collectives, and tells of it where `options` asks for that.
tune::KernelConfigs chooseConfigs(mlir::comms::KernelOp kernel,
                                  const tune::ConfigQuery &wish,
                                  const Options &options);

/// Whether something that runs does not return, so that the process must leave
/// without cleaning up.
bool mustExitWithoutCleanup();

/// From now on this process is comms-run, which can start itself once for each
/// rank. A library cannot: its ranks are threads.
void allowProcesses();

/// Whether ranks may share GPUs, as processes.
bool mayShareMachine();

/// Keeps GPUs open from run to run, where opening them takes long.
void keepMachineOpen();

/// If `arguments`, which stay where they are, are those of a process that a
/// target has started to be a rank, runs that rank and returns its exit status.
std::optional<int> runAsRank(llvm::ArrayRef<const char *> arguments);

/// A kind of target. Each is one file *Target.cpp, which defines the function
/// `get<File>`; CMake lists the files in Targets.inc. What is null is nothing
/// to do, or no.
struct TargetKind {
  /// As `--target` has it.
  llvm::StringLiteral name;
  std::unique_ptr<Target> (*create)(const Options &options);
  // The functions above of the same names.
  bool (*mustExitWithoutCleanup)() = nullptr;
  bool (*mayShareMachine)() = nullptr;
  void (*keepMachineOpen)() = nullptr;
  void (*allowProcesses)() = nullptr;
  std::optional<int> (*runAsRank)(llvm::ArrayRef<const char *>) = nullptr;
  /// Adds to the report of commsir.doctor what this machine has for the target.
  void (*examine)(llvm::json::Object &report) = nullptr;
};

/// All kinds of targets of this build.
llvm::ArrayRef<const TargetKind *> getTargetKinds();
/// The kind of that name; null: this build does not have it.
const TargetKind *findTargetKind(llvm::StringRef name);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_TARGET_H
