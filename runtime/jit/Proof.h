//===- Proof.h - The checker, parallel to the compiler ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// comms-check-sync changes no code, so it runs in parallel with code
// generation: on a copy of the module, in a separate context and thread. Nobody
// gets the code before the verdict, and diagnostics appear as if the checker
// had run first.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_PROOF_H
#define COMMSIR_RUNTIME_JIT_PROOF_H

#include "runtime/jit/Compile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/Error.h"

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace commsir::jit {

/// A proof in progress. It delays diagnostics of the module's context from its
/// start until the verdict.
class Proof {
public:
  /// Adds the passes of the checker.
  using Passes = std::function<void(mlir::OpPassManager &)>;

  /// Starts to check `module` as it is now.
  static llvm::Expected<std::unique_ptr<Proof>> start(mlir::ModuleOp module,
                                                      Passes passes);
  /// Waits for the verdict.
  ~Proof();
  Proof(const Proof &) = delete;
  Proof &operator=(const Proof &) = delete;

  /// Whether the passes have already reported an error.
  bool isRefused() const { return refused; }
  /// Waits for the verdict and emits the diagnostics of the passes. If they
  /// reported no error, it then emits the delayed diagnostics: a rejected
  /// module would not have reached those. Throws what the passes have thrown.
  /// Call it once.
  llvm::Error finishProof();
  /// The checker's verdict on a kernel without errors, once it is known.
  const ProofInfo &info() const { return found; }

private:
  /// A diagnostic that has left its context.
  struct Remark {
    mlir::DiagnosticSeverity severity;
    std::string location, text;
    std::vector<Remark> notes;
  };

  Proof(mlir::MLIRContext &context, std::string module, Passes passes);
  /// The main function of the thread.
  void judge();
  static Remark copyDiagnostic(mlir::Diagnostic &diagnostic);
  mlir::Location findPlace(const Remark &remark) const;
  void report(const Remark &remark) const;

  mlir::MLIRContext &context;
  const std::string module;
  const Passes passes;
  /// State of the context, copied before others change it.
  mlir::DialectRegistry dialects;
  const bool printsOps, allowsUnregistered;
  /// Written by the thread.
  std::vector<Remark> said;
  ProofInfo found;
  llvm::Error verdict = llvm::Error::success();
  std::atomic<bool> refused = false;
  /// What `judge` has thrown.
  std::exception_ptr failure;

  std::vector<mlir::Diagnostic> held;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> holding;
  std::thread thread;
};

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_PROOF_H
