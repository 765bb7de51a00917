//===- Proof.h - The checker, beside the compiler ---------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// comms-check-sync changes no code, so it need not be waited for: it judges a
// copy of the module, in a context and a thread of its own, while machine code
// is made of the module. Nobody gets that code before the verdict, and what is
// said comes out as if the checker had run first.
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
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace commsir::jit {

/// A proof under way. Diagnostics of the module's context are held back from
/// its start until it is settled.
class Proof {
public:
  /// Adds the passes that judge.
  using Passes = std::function<void(mlir::OpPassManager &)>;

  /// Begins to judge `module` as it is now.
  static llvm::Expected<std::unique_ptr<Proof>> start(mlir::ModuleOp module,
                                                      Passes passes);
  /// Waits for the verdict.
  ~Proof();
  Proof(const Proof &) = delete;
  Proof &operator=(const Proof &) = delete;

  /// Whether the passes have refused the module by now.
  bool isRefused() const { return refused; }
  /// Waits for the verdict and lets out what the passes had to say, and then,
  /// unless they refused the module, what was held back since: a refused module
  /// would not have come that far. Only once.
  llvm::Error finishProof();
  /// What the checker says of a kernel that it has not refused, once that is
  /// settled.
  const ProofInfo &info() const { return found; }

private:
  /// A diagnostic that has left its context.
  struct Remark {
    mlir::DiagnosticSeverity severity;
    std::string location, text;
    std::vector<Remark> notes;
  };

  Proof(mlir::MLIRContext &context, std::string module, Passes passes);
  /// What the thread does.
  void judge();
  static Remark copyDiagnostic(mlir::Diagnostic &diagnostic);
  mlir::Location findPlace(const Remark &remark) const;
  void report(const Remark &remark) const;

  mlir::MLIRContext &context;
  const std::string module;
  const Passes passes;
  /// Of the context, taken before it is changed by others.
  mlir::DialectRegistry dialects;
  const bool printsOps, allowsUnregistered;
  /// Written by the thread.
  std::vector<Remark> said;
  ProofInfo found;
  llvm::Error verdict = llvm::Error::success();
  std::atomic<bool> refused = false;

  std::vector<mlir::Diagnostic> held;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> holding;
  std::thread thread;
};

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_PROOF_H
