//===- Prepare.h - Steps that all targets share -----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Selecting the kernel, running a pipeline, and reading the attributes that the
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

/// Makes a CompileError.
llvm::Error failCompilation(CompileError::Stage stage,
                            const llvm::Twine &message);

/// Finds the kernel of that name (empty: the only kernel).
llvm::Expected<mlir::comms::KernelOp> findKernel(mlir::ModuleOp module,
                                                 llvm::StringRef name);

/// Finds kernel `name` (empty: the only kernel), sets its numbers of ranks and
/// blocks (0: its own), and removes all other kernels. Fails if there is no
/// such kernel, if it is written for other numbers, or if the number of ranks
/// is unknown.
llvm::Expected<mlir::comms::KernelOp> prepareKernel(mlir::ModuleOp module,
                                                    llvm::StringRef name,
                                                    int64_t ranks,
                                                    int64_t blocks);

/// Sets the kernel's numbers of ranks and blocks (0: its own). Fails if it is
/// written for other numbers, or if the number of ranks is unknown.
llvm::Error setWorld(mlir::comms::KernelOp kernel, int64_t ranks,
                     int64_t blocks);

/// The module as bytecode: the same for the same module, however it was written
/// down. Locations are part of it, since reports name them.
llvm::Expected<std::string> makeBytecode(mlir::ModuleOp module);
/// SHA-256 in hex.
std::string digestOf(llvm::StringRef bytecode);
/// Adds the digest of the checked kernel to the verdict that a lowered one has.
void recordDigest(mlir::ModuleOp module, llvm::StringRef digest);

/// For targets that need the number of blocks: sets it to 1 if it is open and
/// isBlockDependent finds that further blocks would all do the same.
void resolveBlocks(mlir::comms::KernelOp kernel);

/// Runs the passes that `build` adds. The error names the failed pass.
llvm::Error runPipeline(mlir::ModuleOp module,
                        llvm::function_ref<void(mlir::OpPassManager &)> build);

/// Description of a kernel for the runtime.
struct Description {
  std::vector<ArgInfo> args;
  std::vector<Choice> choices;
  std::vector<SourceSite> sites;
  int64_t ranks = 0, lsaSize = 0, blocks = 0;
  ProofInfo proof;
};

/// Reads the attributes `comms.args`, … of a lowered kernel.
Description describe(mlir::LLVM::LLVMFuncOp function);

/// Reads the verdict from a kernel's attribute `comms.proof`; null: not
/// checked.
ProofInfo readProof(mlir::DictionaryAttr said);

/// Reads an integer attribute; 0 if it is missing.
int64_t readNumber(mlir::Operation *op, llvm::StringRef name);

} // namespace commsir::jit

#endif // COMMSIR_RUNTIME_JIT_PREPARE_H
