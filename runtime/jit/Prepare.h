//===- Prepare.h - What every target does with a module ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Choosing the kernel, running a pipeline, and reading the attributes that the
// last pass leaves on the kernel's function.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_JIT_PREPARE_H
#define COMMSIR_RUNTIME_JIT_PREPARE_H

#include "dialect/Comms.h"
#include "runtime/jit/Compile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace commsir::jit {

/// A CompileError.
llvm::Error failCompilation(CompileError::Stage stage,
                            const llvm::Twine &message);

/// The kernel of that name (empty: the only one).
llvm::Expected<mlir::comms::KernelOp> findKernel(mlir::ModuleOp module,
                                                 llvm::StringRef name);

/// Finds kernel `name` (empty: the only one), writes the numbers of ranks and
/// blocks on it (0: its own), and removes all other kernels. Fails when there
/// is no such kernel, when it is written for other numbers, or when nobody says
/// how many ranks there are.
llvm::Expected<mlir::comms::KernelOp> prepareKernel(mlir::ModuleOp module,
                                                    llvm::StringRef name,
                                                    int64_t ranks,
                                                    int64_t blocks);

/// For targets that have to know the number of blocks: one, where nobody has
/// said and isBlockDependent knows that more would all do the same.
void resolveBlocks(mlir::comms::KernelOp kernel);

/// Runs the passes that `build` adds. The error names the pass that failed.
llvm::Error runPipeline(mlir::ModuleOp module,
                        llvm::function_ref<void(mlir::OpPassManager &)> build);

/// What the runtime has to know of a kernel.
struct Description {
  std::vector<ArgInfo> args;
  std::vector<Choice> choices;
  std::vector<SourceSite> sites;
  int64_t ranks = 0, lsaSize = 0, blocks = 0;
  ProofInfo proof;
};

/// Reads the attributes `comms.args`, … of a lowered kernel.
Description describe(mlir::LLVM::LLVMFuncOp function);

/// The verdict of a kernel's attribute `comms.proof`; null: it was not checked.
ProofInfo readProof(mlir::DictionaryAttr said);

/// An integer attribute; 0 when there is none.
int64_t readNumber(mlir::Operation *op, llvm::StringRef name);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_PREPARE_H
