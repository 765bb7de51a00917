//===- BenchCase.h - One operation at one size and type ---------*- C++ -*-===//
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

#ifndef COMMSIR_RUNTIME_BENCH_BENCHCASE_H
#define COMMSIR_RUNTIME_BENCH_BENCHCASE_H

#include "runtime/choose/Operation.h"
#include "runtime/support/Element.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace commsir::tune {

/// Integer attributes of a kernel, without their `comms.`, and their values.
using KernelNumbers = std::vector<std::pair<std::string, int64_t>>;

/// An array of the kernel of a problem.
struct Operand {
  enum class Role { Input, Output };
  std::string name;
  driver::Element element;
  int64_t elements = 0;
  Role role = Role::Input;
  /// Peers may reach it: x and, of flat operations, y.
  bool shared = false;

  int64_t bytes() const {
    return elements * int64_t(driver::elementBytes(element));
  }
};

/// Sums for the reductions; broadcasts come from rank 0.
struct BenchCase {
  Operation operation = Operation::AllReduce;
  driver::Element element = driver::Element::F32;
  int64_t ranks = 1;
  /// Of one rank's input.
  int64_t bytes = 0;
  /// Length of rows; 0: flat.
  int64_t columns = 0;

  bool operator==(const BenchCase &) const = default;
  int64_t elements() const;
  int64_t rows() const { return columns ? elements() / columns : 0; }
  /// Of one rank's outputs, one after the other.
  int64_t outputBytes() const;
  /// In the order of the kernel's arguments.
  std::vector<Operand> operands() const;
  /// "all_reduce", "all_reduce_rmsnorm 8192".
  std::string label() const;
  bool reduces() const;
  /// Fails when the size is no whole number of elements, or cannot be cut into
  /// equal parts where the operation needs that.
  llvm::Error check() const;
  /// "all_reduce, 64 KiB, bf16".
  std::string describe() const;
  /// A module with one kernel, @bench, whose arguments are the operands; shared
  /// ones are windows, or with `windows` false plain memory.
  std::string kernelText(bool windows = true,
                         const KernelNumbers &numbers = {}) const;
  /// On rows: a module with one kernel, @bench, that does without any exchange
  /// what comes after the all-reduce. Its argument "sum" is the result of that.
  std::string tailText() const;
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
  /// Makes the inputs, reproducibly: floats in [-1, 1], integers in
  /// [-100, 100]; sums of floats of eight bits come from few small integers, so
  /// that they are exact. `problem` must pass its check.
  explicit Reference(const BenchCase &problem, uint64_t seed = 1);

  llvm::ArrayRef<char> input(int64_t rank) const { return inputs[rank]; }
  /// What the input operand of that name holds on `rank`.
  llvm::ArrayRef<char> content(const Operand &operand, int64_t rank) const;

  /// Compares the output of `rank`. Copies must agree to the bit. Sums may
  /// differ from sums in rank order in f32 by what another order and a rounding
  /// to the type after each addition can bring; integers and floats of eight
  /// bits may not.
  CheckResult check(int64_t rank, llvm::ArrayRef<char> output) const;

private:
  void makeSums();
  void makeRows();
  CheckResult checkSums(int64_t rank, llvm::ArrayRef<char> output) const;
  CheckResult checkRows(int64_t rank, llvm::ArrayRef<char> output) const;
  CheckResult checkCopies(int64_t rank, llvm::ArrayRef<char> output) const;

  BenchCase problem;
  std::vector<std::vector<char>> inputs;
  /// Of a reduction: the sums in rank order as the type holds them, and how far
  /// a result may lie from them.
  std::vector<char> sums;
  std::vector<float> allowed;
  /// Of a problem on rows: residual and weight, the same on all ranks, and what
  /// each output must be.
  std::vector<char> residual, weight;
  struct ExpectedResults {
    std::vector<char> bytes;
    std::vector<float> allowed;
  };
  std::vector<ExpectedResults> wanted;
};

/// Byte that outputs are filled with before the timed runs: in every type a
/// number (in f16 and of eight bits a NaN) far beyond all inputs and their
/// sums; in i8 one that no input is, and of sums one in 256.
inline constexpr unsigned char kOutputPoison = 0x7F;

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCHCASE_H
