//===- BenchCompiler.h - Kernels of a problem -------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_BENCH_BENCHCOMPILER_H
#define COMMSIR_RUNTIME_BENCH_BENCHCOMPILER_H

#include "runtime/bench/BenchCase.h"
#include "runtime/bench/Plan.h"
#include "runtime/choose/Choose.h"
#include "runtime/jit/Compile.h"

#include "mlir/IR/MLIRContext.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>
#include <string>

namespace commsir::tune {

/// Compiles the kernels of problems in one MLIR context.
class Compiler {
public:
  Compiler();

  /// Parses `text`, calls `compile` with the module and returns its result.
  /// Diagnostics are not printed; they become part of the error.
  llvm::Error
  withModule(llvm::StringRef text,
             llvm::function_ref<llvm::Error(mlir::OwningOpRef<mlir::ModuleOp>)>
                 compile);

private:
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
};

/// Converts a problem to a query of `choose`, without the machine's fields.
ConfigQuery makeQuery(const BenchCase &problem);

/// "commsir one_shot/lamport", with " (chosen)" if the kernel chose them, and,
/// if the choice sets them, " b32 t128 c2 step_bytes=0". `made` holds what the
/// kernel uses; empty: it is not compiled.
std::string renderChoice(const KernelChoice &choice,
                         llvm::ArrayRef<jit::Choice> made);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCHCOMPILER_H
