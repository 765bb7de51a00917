//===- Problem.cpp - One operation at one size and type -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Problem.h"

#include "runtime/tune/Report.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

using namespace commsir;
using namespace commsir::tune;
using driver::Element;

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
struct OperationRow {
  Operation operation;
  llvm::StringLiteral name;
  /// What stands between the op's name and its team.
  llvm::StringLiteral detail;
};
} // namespace

static constexpr OperationRow kOperations[] = {
    {Operation::AllReduce, "all_reduce", "sum "},
    {Operation::AllGather, "all_gather", ""},
    {Operation::ReduceScatter, "reduce_scatter", "sum "},
    {Operation::AllToAll, "all_to_all", ""},
    {Operation::Broadcast, "broadcast", "root 0 "},
};

llvm::StringRef commsir::tune::operationName(Operation operation) {
  return kOperations[static_cast<unsigned>(operation)].name;
}

llvm::ArrayRef<Operation> commsir::tune::allOperations() {
  static constexpr Operation all[] = {
      Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
      Operation::AllToAll, Operation::Broadcast};
  return all;
}

llvm::Expected<Operation> commsir::tune::parseOperation(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const OperationRow &row : kOperations) {
    if (row.name == name)
      return row.operation;
    names.push_back(row.name);
  }
  return bad("there is no operation '" + name + "'; there are " +
             llvm::join(names, ", "));
}

//===----------------------------------------------------------------------===//
// Problem
//===----------------------------------------------------------------------===//

int64_t Problem::elements() const {
  return bytes / int64_t(driver::elementBytes(element));
}

int64_t Problem::outputBytes() const {
  switch (operation) {
  case Operation::AllGather:
    return bytes * ranks;
  case Operation::ReduceScatter:
    return bytes / ranks;
  default:
    return bytes;
  }
}

bool Problem::reduces() const {
  return operation == Operation::AllReduce ||
         operation == Operation::ReduceScatter;
}

std::string Problem::describe() const {
  return (operationName(operation) + ", " + renderSize(bytes) + ", " +
          driver::elementName(element))
      .str();
}

llvm::Error Problem::check() const {
  int64_t width = driver::elementBytes(element);
  if (bytes <= 0 || bytes % width)
    return bad(describe() + ": the size is not a whole number of elements of " +
               llvm::Twine(width) + " bytes");
  bool cut =
      operation == Operation::ReduceScatter || operation == Operation::AllToAll;
  if (cut && elements() % ranks)
    return bad(describe() + ": " + llvm::Twine(elements()) +
               " elements cannot be cut into " + llvm::Twine(ranks) +
               " equal parts");
  int64_t total;
  if (__builtin_mul_overflow(bytes, ranks, &total) || total > (1ll << 46))
    return bad(describe() + ": too large for " + llvm::Twine(ranks) + " ranks");
  return llvm::Error::success();
}

std::string Problem::kernelText() const {
  const OperationRow &row = kOperations[static_cast<unsigned>(operation)];
  constexpr const char *text = R"(
comms.kernel @bench(%x: !comms.window<{0}x{2}>, %y: !comms.window<{1}x{2}>) {{
  %team = comms.team world
  comms.{3} {4}%team ins(%x : !comms.window<{0}x{2}>) outs(%y : !comms.window<{1}x{2}>)
  comms.return
}
)";
  return llvm::formatv(text, elements(),
                       outputBytes() / int64_t(driver::elementBytes(element)),
                       driver::elementName(element), row.name, row.detail)
      .str();
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

/// Elements that are worked on at a time.
static constexpr int64_t kChunk = 1 << 14;

/// Calls `work(begin, end)` for pieces of [0, count), several at a time.
static void inPieces(int64_t count,
                     llvm::function_ref<void(int64_t, int64_t)> work) {
  int64_t most = std::max(1u, std::thread::hardware_concurrency());
  int64_t pieces = std::clamp<int64_t>(count / (4 * kChunk), 1, most);
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < pieces; ++i)
    threads.emplace_back(
        [&, i] { work(count * i / pieces, count * (i + 1) / pieces); });
  work(0, count / pieces);
  for (std::thread &thread : threads)
    thread.join();
}

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Half the distance between neighbours at 1.
static float unitRoundoff(Element element) {
  switch (element) {
  case Element::F32:
    return 0x1p-24f;
  case Element::F16:
    return 0x1p-11f;
  case Element::BF16:
    return 0x1p-8f;
  default:
    return 0;
  }
}

Reference::Reference(const Problem &problem, uint64_t seed)
    : problem(problem), inputs(problem.ranks) {
  int64_t width = driver::elementBytes(problem.element);
  bool isFloat = driver::isFloat(problem.element);
  for (int64_t rank = 0; rank < problem.ranks; ++rank) {
    inputs[rank].resize(problem.bytes);
    char *data = inputs[rank].data();
    uint64_t state = mix(mix(seed) ^ uint64_t(rank));
    inPieces(problem.elements(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        uint64_t bits = mix(state + uint64_t(i));
        double value = isFloat ? std::ldexp(double(bits >> 11), -52) - 1
                               : double(bits % 201) - 100;
        driver::encode(problem.element, value, data + i * width);
      }
    });
  }
  if (problem.reduces())
    makeSums();
}

void Reference::makeSums() {
  int64_t width = driver::elementBytes(problem.element);
  bool isFloat = driver::isFloat(problem.element);
  sums.resize(problem.bytes);
  allowed.resize(problem.elements());
  // Every addition may round the sum so far, and the end once more.
  float share = unitRoundoff(problem.element) * float(problem.ranks + 1);
  inPieces(problem.elements(), [&](int64_t begin, int64_t end) {
    std::vector<double> values(kChunk);
    std::vector<float> sum(kChunk), magnitude(kChunk);
    for (int64_t at = begin; at < end; at += kChunk) {
      int64_t count = std::min(kChunk, end - at);
      llvm::MutableArrayRef<double> chunk(values.data(), count);
      for (int64_t rank = 0; rank < problem.ranks; ++rank) {
        driver::decode(problem.element, inputs[rank].data() + at * width,
                       chunk);
        for (int64_t i = 0; i < count; ++i) {
          float value = float(chunk[i]);
          sum[i] = rank ? sum[i] + value : value;
          magnitude[i] = (rank ? magnitude[i] : 0) + std::abs(value);
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        driver::encode(problem.element, sum[i], sums.data() + (at + i) * width);
        allowed[at + i] = isFloat ? magnitude[i] * share : 0;
      }
    }
  });
}

static std::string renderWrong(int64_t rank, int64_t element, double got,
                               double expected) {
  return llvm::formatv("rank {0}, element {1}: got {2}, expected {3}", rank,
                       element, got, expected)
      .str();
}

/// The first element of `got` that differs from `expected` by more than
/// `allowed` (all zero where null), as a message.
static CheckResult compareElements(Element element, int64_t rank, int64_t first,
                                   const char *got, const char *expected,
                                   const float *allowed, int64_t count) {
  CheckResult result;
  int64_t width = driver::elementBytes(element);
  if (!std::memcmp(got, expected, count * width))
    return result;
  result.exact = false;
  double a, b;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::memcmp(got + i * width, expected + i * width, width))
      continue;
    driver::decode(element, got + i * width, a);
    driver::decode(element, expected + i * width, b);
    if (allowed && std::abs(a - b) <= allowed[i]) // False for NaN.
      continue;
    result.right = false;
    result.message = renderWrong(rank, first + i, a, b);
    break;
  }
  return result;
}

CheckResult Reference::checkSums(int64_t rank,
                                 llvm::ArrayRef<char> output) const {
  int64_t width = driver::elementBytes(problem.element);
  bool cut = problem.operation == Operation::ReduceScatter;
  int64_t count = problem.outputBytes() / width;
  int64_t offset = cut ? rank * count : 0;
  return compareElements(problem.element, rank, 0, output.data(),
                         sums.data() + offset * width, allowed.data() + offset,
                         count);
}

CheckResult Reference::checkCopies(int64_t rank,
                                   llvm::ArrayRef<char> output) const {
  int64_t width = driver::elementBytes(problem.element);
  bool toAll = problem.operation == Operation::AllToAll;
  bool fromOne = problem.operation == Operation::Broadcast;
  int64_t part = toAll ? problem.bytes / problem.ranks : problem.bytes;
  CheckResult all;
  for (int64_t source = 0; source < (fromOne ? 1 : problem.ranks); ++source) {
    CheckResult one =
        compareElements(problem.element, rank, source * part / width,
                        output.data() + source * part,
                        inputs[source].data() + (toAll ? rank * part : 0),
                        nullptr, part / width);
    all.exact &= one.exact;
    if (!one.right)
      return one;
  }
  return all;
}

CheckResult Reference::check(int64_t rank, llvm::ArrayRef<char> output) const {
  if (int64_t(output.size()) != problem.outputBytes())
    return {false, false,
            llvm::formatv("rank {0}: the output has {1} bytes, not {2}", rank,
                          output.size(), problem.outputBytes())
                .str()};
  return problem.reduces() ? checkSums(rank, output)
                           : checkCopies(rank, output);
}
