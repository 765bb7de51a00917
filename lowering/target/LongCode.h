//===- LongCode.h - Code that is too long to optimize -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time of several of LLVM's passes grows with the square of a function's
// length. Code beyond a target's limits is compiled without optimization, so
// that no kernel text keeps the compiler busy for minutes.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_TARGET_LONGCODE_H
#define COMMSIR_LOWERING_TARGET_LONGCODE_H

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::comms {

/// The longest code that a target optimizes.
struct LongCodeLimits {
  /// Instructions of the module.
  unsigned instructions;
  /// Instructions of which each uses the one before it: passes look along such
  /// a chain from each of its instructions. Phis end it.
  unsigned chain;
  /// Loops of a function.
  unsigned loops;
  /// Basic blocks of a function.
  unsigned blocks;
};

/// Whether `module` exceeds one of `limits`.
bool isTooLongToOptimize(llvm::Module &module, const LongCodeLimits &limits);

/// Cuts blocks of many instructions: without optimization, the time of code
/// generation grows with the square of their number in a block.
void cutLongBlocks(llvm::Module &module);

/// Gives functions that are local to `module` external linkage. For each call
/// of a local function, NVPTX's code generation looks at all uses of the
/// function, so that the time grows with the square of the number of calls.
void exposeLocalFunctions(llvm::Module &module);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_TARGET_LONGCODE_H
