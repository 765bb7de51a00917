//===- BenchCase.h - One operation at one size and type ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines a problem: the computation, its inputs and the expected outputs,
// independently of how it is run.
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

/// Integer attributes of a kernel, without the prefix `comms.`, and their
/// values.
using KernelNumbers = std::vector<std::pair<std::string, int64_t>>;

/// An array of a problem's kernel.
struct Operand {
  enum class Role { Input, Output };
  std::string name;
  driver::Element element;
  int64_t elements = 0;
  Role role = Role::Input;
  /// Peers may access it: x and, for flat operations, y.
  bool shared = false;

  int64_t bytes() const {
    return elements * int64_t(driver::elementBytes(element));
  }
};

/// A problem. Reductions compute sums; broadcasts send from rank 0.
struct BenchCase {
  Operation operation = Operation::AllReduce;
  driver::Element element = driver::Element::F32;
  int64_t ranks = 1;
  /// Size of one rank's input.
  int64_t bytes = 0;
  /// Row length in elements; 0: flat.
  int64_t columns = 0;

  bool operator==(const BenchCase &) const = default;
  int64_t elements() const;
  int64_t rows() const { return columns ? elements() / columns : 0; }
  /// Total size of one rank's outputs, which are stored one after the other.
  int64_t outputBytes() const;
  /// In the order of the kernel's arguments.
  std::vector<Operand> operands() const;
  /// "all_reduce", "all_reduce_rmsnorm 8192".
  std::string label() const;
  bool reduces() const;
  /// Fails if the size is not a whole number of elements, or cannot be divided
  /// into equal parts as the operation requires.
  llvm::Error check() const;
  /// "all_reduce, 64 KiB, bf16".
  std::string describe() const;
  /// A module with one kernel, @bench, whose arguments are the operands. Shared
  /// operands are windows, or plain memory if `windows` is false.
  std::string kernelText(bool windows = true,
                         const KernelNumbers &numbers = {}) const;
  /// Row operations: a module with one kernel, @bench, that computes the part
  /// after the all-reduce, without communication. Its argument "sum" is the
  /// result of the all-reduce.
  std::string tailText() const;
};

/// Result of checking outputs.
struct CheckResult {
  bool right = true;
  /// Whether every bit equals the reference.
  bool exact = true;
  /// Describes the first wrong element: "rank 3, element 17: got 1.5, expected
  /// 1.25".
  std::string message;
};

/// Inputs of all ranks and the expected outputs.
class Reference {
public:
  /// Generates the inputs deterministically: floats in [-1, 1], integers in
  /// [-100, 100]. Sums of 8-bit floats use few small integers, so that they are
  /// exact. `problem` must have passed its check.
  explicit Reference(const BenchCase &problem, uint64_t seed = 1);

  llvm::ArrayRef<char> input(int64_t rank) const { return inputs[rank]; }
  /// Contents of an input operand on `rank`.
  llvm::ArrayRef<char> content(const Operand &operand, int64_t rank) const;

  /// Compares the output of `rank`. Copies must match bit by bit. Sums may
  /// differ from sums in rank order in f32 by what another order, with rounding
  /// to the type after each addition, can cause; sums of integers and 8-bit
  /// floats may not differ.
  CheckResult check(int64_t rank, llvm::ArrayRef<char> output) const;

private:
  void makeSums();
  void makeRows();
  CheckResult checkSums(int64_t rank, llvm::ArrayRef<char> output) const;
  CheckResult checkRows(int64_t rank, llvm::ArrayRef<char> output) const;
  CheckResult checkCopies(int64_t rank, llvm::ArrayRef<char> output) const;

  BenchCase problem;
  std::vector<std::vector<char>> inputs;
  /// Reductions: the sums in rank order, rounded to the type, and the allowed
  /// difference.
  std::vector<char> sums;
  std::vector<float> allowed;
  /// Row operations: residual and weight, equal on all ranks, and each expected
  /// output.
  std::vector<char> residual, weight;
  struct ExpectedResults {
    std::vector<char> bytes;
    std::vector<float> allowed;
  };
  std::vector<ExpectedResults> wanted;
};

/// Byte with which outputs are filled before timed runs. In every type this is
/// a number far outside the range of inputs and sums (in f16 and 8-bit floats a
/// NaN); in i8 no input has it, and one sum in 256 does.
inline constexpr unsigned char kOutputPoison = 0x7F;

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_BENCH_BENCHCASE_H
