//===- Problem.h - One operation at one size and type -----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is computed, from which inputs, and what has to come out. Knows nothing
// of how it is run.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TUNE_PROBLEM_H
#define COMMSIR_RUNTIME_TUNE_PROBLEM_H

#include "runtime/driver/Element.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace commsir::tune {

enum class Operation {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Broadcast
};

/// "all_reduce".
llvm::StringRef operationName(Operation operation);

/// The operation of that name; the error lists all.
llvm::Expected<Operation> parseOperation(llvm::StringRef name);

/// All operations, in the order of --help.
llvm::ArrayRef<Operation> allOperations();

/// Sums for the reductions; broadcasts come from rank 0.
struct Problem {
  Operation operation = Operation::AllReduce;
  driver::Element element = driver::Element::F32;
  int64_t ranks = 1;
  /// Of one rank's input.
  int64_t bytes = 0;

  bool operator==(const Problem &) const = default;
  int64_t elements() const;
  /// Of one rank's output.
  int64_t outputBytes() const;
  bool reduces() const;
  /// Fails when the size is no whole number of elements, or cannot be cut into
  /// equal parts where the operation needs that.
  llvm::Error check() const;
  /// "all_reduce, 64 KiB, bf16".
  std::string describe() const;
  /// A module with one kernel, @bench, of a window "x" (input) and a window "y"
  /// (output).
  std::string kernelText() const;
};

/// What a check of outputs found.
struct CheckResult {
  bool right = true;
  /// Whether every bit is that of the reference.
  bool exact = true;
  /// Of the first wrong element: "rank 3, element 17: got 1.5, expected 1.25".
  std::string message;
};

/// Inputs of all ranks, and what must come out of them.
class Reference {
public:
  /// Makes the inputs, reproducibly: floats in [-1, 1), integers in
  /// [-100, 100]. `problem` must pass its check.
  explicit Reference(const Problem &problem, uint64_t seed = 1);

  llvm::ArrayRef<char> input(int64_t rank) const { return inputs[rank]; }

  /// Compares the output of `rank`. Copies must agree to the bit. Sums may
  /// differ from sums in rank order in f32 by what another order and a rounding
  /// to the type after each addition can bring; integers may not.
  CheckResult check(int64_t rank, llvm::ArrayRef<char> output) const;

private:
  void makeSums();
  CheckResult checkSums(int64_t rank, llvm::ArrayRef<char> output) const;
  CheckResult checkCopies(int64_t rank, llvm::ArrayRef<char> output) const;

  Problem problem;
  std::vector<std::vector<char>> inputs;
  /// Of a reduction: the sums in rank order as the type holds them, and how far
  /// a result may lie from them.
  std::vector<char> sums;
  std::vector<float> allowed;
};

/// Byte that outputs are filled with before the timed runs: in every type a
/// number (in f16 a NaN) far beyond all inputs and their sums.
inline constexpr unsigned char kOutputPoison = 0x7F;

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_TUNE_PROBLEM_H
