//===- Session.h - One run of a kernel, step by step ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   Session.cpp           the order of the steps, and their failures
//   SessionKernel.cpp     from a file to a compiled kernel
//   SessionChecks.cpp     checks of arguments, files and memory
//   SessionRun.cpp        filling and running worlds
//   SessionSchedules.cpp  one kernel under many orders
//   SessionResults.cpp    comparing, writing and returning results
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_SESSION_H
#define COMMSIR_RUNTIME_DRIVER_SESSION_H

#include "runtime/driver/Arguments.h"
#include "runtime/driver/HostData.h"
#include "runtime/driver/Listener.h"
#include "runtime/driver/Report.h"
#include "runtime/driver/Target.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Progress.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/Support/SourceMgr.h"

namespace commsir::driver {

/// Carries out one command line, or one call of a program that passes source
/// and arrays in `host`. Each step returns whether to continue; if not, the
/// report has the exit code and the error.
class Session {
public:
  Session(const Options &options, mlir::MLIRContext &context,
          const HostData *host = nullptr);
  ~Session();

  /// Runs all steps. Afterwards the report is complete, and output files are in
  /// place or removed.
  const Report &execute();

private:
  bool prepare();
  bool chooseTarget();
  std::unique_ptr<llvm::MemoryBuffer> readSource();
  bool parse();
  bool selectKernel();
  bool fixRanks();
  bool fixJobRanks(int64_t started);
  bool fixBlocks();
  bool refuseCount(llvm::StringRef what, int64_t given, int64_t own);
  bool fixShapes();
  void printIr();
  bool compile();
  bool checkLaunchOrder();
  bool writeCertificate();

  bool checkMachine();
  bool checkBindings();
  bool checkScalars();
  bool checkHostArrays();
  llvm::Error checkSharing() const;
  bool checkHostScalars();
  bool refuseValue(const Argument &argument, const llvm::Twine &what);
  bool checkFiles();
  bool checkReferences();
  bool checkReplaced(const std::string &path, const std::string &writer);
  bool checkOutputs();
  bool checkOutput(const std::string &path, const std::string &writer,
                   llvm::StringMap<std::string> &writers);
  bool checkMemory(uint64_t extraPerRank, llvm::StringRef what);

  bool run();
  bool runOnce();
  bool attend(llvm::function_ref<bool()> work);
  llvm::Error fillFromHost(World &world);
  void copyToHost(World &world);
  bool compareResults(World &world);
  bool writeResults(World &world);
  bool commit();

  bool runSchedules();
  bool runFirstSchedule(const cpu::RunOptions &run);
  unsigned countWorkers(int64_t schedules) const;

  bool fail(ExitCode code, const llvm::Twine &message);
  bool fail(ExitCode code, llvm::Error error);
  bool failRun(cpu::RunError error, const llvm::Twine &prefix = "");

  Listener::Output listenerOutput();

  /// Makes a world with its inputs bound.
  llvm::Expected<std::unique_ptr<World>> makeWorld(cpu::RunOptions runOptions);
  cpu::RunOptions runOptions() const;
  double secondsLeft() const;
  unsigned compiledIndex(llvm::StringRef name) const;
  /// Arguments that --fuzz-schedules compares bit by bit.
  std::vector<const Argument *> fuzzedArguments() const;
  /// Describes the first difference between two worlds after the same kernel,
  /// or "".
  std::string firstDifference(World &left, World &right,
                              llvm::ArrayRef<const Argument *> compared) const;

  const Options &options;
  mlir::MLIRContext &context;
  const HostData *host;
  llvm::SourceMgr sources;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::comms::KernelOp kernel;
  std::vector<Argument> arguments;
  std::unique_ptr<Target> target;
  uint64_t bytesPerWorld = 0;
  std::unique_ptr<World> reference;
  std::stop_source stopped;
  /// Time at which setting up the first run began.
  const std::chrono::steady_clock::time_point begun =
      std::chrono::steady_clock::now();
  OutputFiles files;
  Report report;
  Progress progress;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_SESSION_H
