//===- BenchCase.cpp - One operation at one size and type -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/BenchCase.h"

#include "runtime/bench/BenchReport.h"
#include "runtime/support/Size.h"

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
// BenchCase
//===----------------------------------------------------------------------===//

int64_t BenchCase::elements() const {
  return bytes / int64_t(driver::elementBytes(element));
}

int64_t BenchCase::outputBytes() const {
  int64_t sum = 0;
  for (const Operand &operand : operands())
    if (operand.role == Operand::Role::Output)
      sum += operand.bytes();
  return sum;
}

std::vector<Operand> BenchCase::operands() const {
  using enum Operand::Role;
  int64_t count = elements();
  if (isOnRows(operation)) {
    bool fp8 = operation == Operation::AllReduceRmsNormFp8;
    std::vector<Operand> all = {
        {"x", element, count, Input, true},
        {"residual", element, count, Input},
        {"weight", element, columns, Input},
        {"y", fp8 ? Element::F8E4M3FN : element, count, Output},
        {"next", element, count, Output}};
    if (fp8)
      all.push_back({"scale", Element::F32, rows(), Output});
    return all;
  }
  int64_t out = operation == Operation::AllGather       ? count * ranks
                : operation == Operation::ReduceScatter ? count / ranks
                                                        : count;
  return {{"x", element, count, Input, true},
          {"y", element, out, Output, true}};
}

std::string BenchCase::label() const {
  std::string text = operationName(operation).str();
  return columns ? text + " " + std::to_string(columns) : text;
}

bool BenchCase::reduces() const {
  return operation == Operation::AllReduce ||
         operation == Operation::ReduceScatter || isOnRows(operation);
}

std::string BenchCase::describe() const {
  if (columns)
    return llvm::formatv("{0}, {1} x {2}, {3}", operationName(operation),
                         rows(), columns, driver::elementName(element));
  return (operationName(operation) + ", " + renderSize(bytes) + ", " +
          driver::elementName(element))
      .str();
}

llvm::Error BenchCase::check() const {
  int64_t width = driver::elementBytes(element);
  if (bytes <= 0 || bytes % width)
    return bad(describe() + ": the size is not a whole number of elements of " +
               llvm::Twine(width) + " bytes");
  if (isOnRows(operation) != (columns > 0) ||
      (columns && (elements() % columns || columns > (1 << 16))))
    return bad(describe() + ": " + llvm::Twine(elements()) +
               " elements are not whole rows of " + llvm::Twine(columns));
  if (isOnRows(operation) && element != Element::BF16 &&
      element != Element::F16)
    return bad(describe() + ": it is measured for bf16 and f16; name one of "
                            "them by --types");
  bool cut =
      operation == Operation::ReduceScatter || operation == Operation::AllToAll;
  if (cut && elements() % ranks)
    return bad(describe() + ": " + llvm::Twine(elements()) +
               " elements cannot be cut into " + llvm::Twine(ranks) +
               " equal parts; name sizes by --sizes that are multiples of " +
               llvm::Twine(ranks * width) +
               " bytes, or leave the operation out by --op");
  int64_t total;
  if (__builtin_mul_overflow(bytes, ranks, &total) || total > (1ll << 46))
    return bad(describe() + ": too large for " + llvm::Twine(ranks) + " ranks");
  return llvm::Error::success();
}

/// The type of an operand's memory: "memref<8x64xbf16>".
static std::string renderType(const Operand &operand, const BenchCase &problem,
                              bool windows) {
  std::string shape;
  if (problem.columns && operand.elements % problem.columns == 0 &&
      operand.name != "weight" && operand.name != "scale")
    shape = llvm::formatv("{0}x{1}", problem.rows(), problem.columns);
  else
    shape = operand.name == "scale" ? llvm::formatv("{0}x1", operand.elements)
                                    : std::to_string(operand.elements);
  return llvm::formatv("{0}<{1}x{2}>",
                       operand.shared && windows ? "!comms.window" : "memref",
                       shape, driver::elementName(operand.element));
}

/// "%x: …, %y: …", or in two halves "%x, %y" and "…, …".
static std::string renderOperands(llvm::ArrayRef<Operand> operands,
                                  const BenchCase &problem, bool windows) {
  return llvm::join(llvm::map_range(operands,
                                    [&](const Operand &operand) {
                                      return "%" + operand.name + ": " +
                                             renderType(operand, problem,
                                                        windows);
                                    }),
                    ", ");
}

static std::string renderList(llvm::ArrayRef<Operand> operands,
                              const BenchCase &problem, bool windows) {
  auto name = [](const Operand &operand) { return "%" + operand.name; };
  auto type = [&](const Operand &operand) {
    return renderType(operand, problem, windows);
  };
  return llvm::join(llvm::map_range(operands, name), ", ") + " : " +
         llvm::join(llvm::map_range(operands, type), ", ");
}

/// Of tiles %sum (f32), %r and %w makes %out, %kept and, in fp8, %factor. Rows
/// in fp8 are quantized before they are normalized: neither of the two
/// reductions awaits the other, and the scale alone is normalized.
static std::string renderNorm(const BenchCase &problem) {
  constexpr const char *norm = R"(
    %rest = arith.extf %r : tensor<{0}x{1}> to tensor<{0}xf32>
    %added = arith.addf %sum, %rest : tensor<{0}xf32>
    %squares = arith.mulf %added, %added : tensor<{0}xf32>
    %total = comms.row_reduce sum %squares : tensor<{0}xf32> -> tensor<1xf32>
    %count = arith.constant dense<{0}.0> : tensor<1xf32>
    %epsilon = arith.constant dense<1.0e-5> : tensor<1xf32>
    %mean = arith.divf %total, %count : tensor<1xf32>
    %safe = arith.addf %mean, %epsilon : tensor<1xf32>
    %root = math.rsqrt %safe : tensor<1xf32>
)";
  constexpr const char *plain = R"(
    %roots = comms.broadcast_row %root : tensor<1xf32> -> tensor<{0}xf32>
    %normal = arith.mulf %added, %roots : tensor<{0}xf32>
    %wide = arith.extf %w : tensor<{0}x{1}> to tensor<{0}xf32>
    %scaled = arith.mulf %normal, %wide : tensor<{0}xf32>
    %kept = arith.truncf %added : tensor<{0}xf32> to tensor<{0}x{1}>
    %out = arith.truncf %scaled : tensor<{0}xf32> to tensor<{0}x{1}>
)";
  constexpr const char *fp8 = R"(
    %kept = arith.truncf %added : tensor<{0}xf32> to tensor<{0}x{1}>
    %wide = arith.extf %w : tensor<{0}x{1}> to tensor<{0}xf32>
    %weighted = arith.mulf %added, %wide : tensor<{0}xf32>
    %size = math.absf %weighted : tensor<{0}xf32>
    %largest = comms.row_reduce max %size : tensor<{0}xf32> -> tensor<1xf32>
    %tiny = arith.constant dense<1.0e-15> : tensor<1xf32>
    %limit = arith.constant dense<448.0> : tensor<1xf32>
    %least = arith.maximumf %largest, %tiny : tensor<1xf32>
    %inverse = arith.divf %limit, %least : tensor<1xf32>
    %inverses = comms.broadcast_row %inverse : tensor<1xf32> -> tensor<{0}xf32>
    %small = arith.mulf %weighted, %inverses : tensor<{0}xf32>
    %out = arith.truncf %small : tensor<{0}xf32> to tensor<{0}xf8E4M3FN>
    %unit = arith.divf %least, %limit : tensor<1xf32>
    %factor = arith.mulf %unit, %root : tensor<1xf32>
)";
  llvm::StringRef type = driver::elementName(problem.element);
  bool is8 = problem.operation == Operation::AllReduceRmsNormFp8;
  return llvm::formatv(norm, problem.columns, type).str() +
         llvm::formatv(is8 ? fp8 : plain, problem.columns, type).str();
}

/// " attributes {comms.step_bytes = 0 : i64}".
static std::string renderNumbers(const KernelNumbers &numbers) {
  std::string text;
  for (const auto &[name, value] : numbers)
    text += (text.empty() ? " attributes {comms." : ", comms.") + name + " = " +
            std::to_string(value) + " : i64";
  return text.empty() ? text : text + "}";
}

std::string BenchCase::kernelText(bool windows,
                                  const KernelNumbers &numbers) const {
  std::vector<Operand> all = operands();
  if (!columns) {
    constexpr const char *text = R"(
comms.kernel @bench({0}){5} {{
  %team = comms.team world
  comms.{1} {2}%team ins({3}) outs({4})
  comms.return
}
)";
    return llvm::formatv(text, renderOperands(all, *this, windows),
                         operationName(operation), operationDetail(operation),
                         renderList(all[0], *this, windows),
                         renderList(all[1], *this, windows),
                         renderNumbers(numbers))
        .str();
  }
  llvm::ArrayRef<Operand> arguments(all);
  constexpr const char *text = R"(
comms.kernel @bench({0}){10} {{
  %team = comms.team world
  comms.all_reduce sum %team ins({1}) outs({2}) args({3})
  consume (%sum: tensor<{4}xf32>, %r: tensor<{4}x{5}>, %w: tensor<{4}x{5}>) {{{6}
    comms.yield %out, %kept{7} : tensor<{4}x{8}>, tensor<{4}x{5}>{9}
  }
  comms.return
}
)";
  bool fp8 = operation == Operation::AllReduceRmsNormFp8;
  return llvm::formatv(text, renderOperands(all, *this, windows),
                       renderList(arguments.take_front(1), *this, windows),
                       renderList(arguments.drop_front(3), *this, windows),
                       renderList(arguments.slice(1, 2), *this, windows),
                       columns, driver::elementName(element), renderNorm(*this),
                       fp8 ? ", %factor" : "",
                       driver::elementName(all[3].element),
                       fp8 ? ", tensor<1xf32>" : "", renderNumbers(numbers))
      .str();
}

std::string BenchCase::tailText() const {
  std::vector<Operand> all = operands();
  all[0].name = "sum_of_ranks";
  all[0].shared = false;
  constexpr const char *text = R"(
comms.kernel @bench({0}) {{
  %zero = arith.constant 0 : index
  %rows = arith.constant {1} : index
  %columns = arith.constant {2} : index
  %first = comms.block_id
  %step = comms.num_blocks
  scf.for %row = %first to %rows step %step {{
    %at = arith.muli %row, %columns : index
    %s = comms.tile_load %sum_of_ranks[%at] : {3} -> tensor<{2}x{4}>
    %r = comms.tile_load %residual[%at] : {3} -> tensor<{2}x{4}>
    %w = comms.tile_load %weight[%zero] : memref<{2}x{4}> -> tensor<{2}x{4}>
    %sum = arith.extf %s : tensor<{2}x{4}> to tensor<{2}xf32>{5}
    comms.tile_store %out, %y[%at] : tensor<{2}x{6}>, {7}
    comms.tile_store %kept, %next[%at] : tensor<{2}x{4}>, {3}{8}
  }
  comms.return
}
)";
  bool fp8 = operation == Operation::AllReduceRmsNormFp8;
  std::string scale = llvm::formatv(
      "\n    comms.tile_store %factor, %scale[%row] : tensor<1xf32>, "
      "memref<{0}x1xf32>",
      rows());
  return llvm::formatv(text, renderOperands(all, *this, false), rows(), columns,
                       renderType(all[1], *this, false),
                       driver::elementName(element), renderNorm(*this),
                       driver::elementName(all[3].element),
                       renderType(all[3], *this, false), fp8 ? scale : "")
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

/// Half the distance between neighbors at 1.
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

/// One of -1, 0 and 1, and 0 on all but eight ranks: a sum of such has at most
/// three digits, which floats of eight bits hold, so that every order of
/// additions gives the same. Bounds on what others may round would let a sum
/// without one of the ranks pass.
static double makeCoarse(uint64_t bits, int64_t index, int64_t rank,
                         int64_t ranks) {
  uint64_t turn = uint64_t(rank) + mix(uint64_t(index)) % uint64_t(ranks);
  return turn % uint64_t(ranks) < 8 ? double(bits % 3) - 1 : 0;
}

Reference::Reference(const BenchCase &problem, uint64_t seed)
    : problem(problem), inputs(problem.ranks) {
  int64_t width = driver::elementBytes(problem.element);
  bool isFloat = driver::isFloat(problem.element);
  bool isCoarse = isFloat && width == 1 && problem.reduces();
  for (int64_t rank = 0; rank < problem.ranks; ++rank) {
    inputs[rank].resize(problem.bytes);
    char *data = inputs[rank].data();
    uint64_t state = mix(mix(seed) ^ uint64_t(rank));
    inPieces(problem.elements(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        uint64_t bits = mix(state + uint64_t(i));
        double value = isCoarse  ? makeCoarse(bits, i, rank, problem.ranks)
                       : isFloat ? std::ldexp(double(bits >> 11), -52) - 1
                                 : double(bits % 201) - 100;
        driver::encode(problem.element, value, data + i * width);
      }
    });
  }
  if (problem.reduces())
    makeSums();
  if (problem.columns)
    makeRows();
}

llvm::ArrayRef<char> Reference::content(const Operand &operand,
                                        int64_t rank) const {
  return operand.name == "residual" ? llvm::ArrayRef<char>(residual)
         : operand.name == "weight" ? llvm::ArrayRef<char>(weight)
                                    : llvm::ArrayRef<char>(inputs[rank]);
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
        // Integers wrap around; those of 32 bits do not come so far.
        double value = problem.element == Element::I8
                           ? double(int8_t(int64_t(sum[i])))
                           : double(sum[i]);
        driver::encode(problem.element, value, sums.data() + (at + i) * width);
        allowed[at + i] = isFloat ? magnitude[i] * share : 0;
      }
    }
  });
}

/// Random numbers like the inputs'.
static std::vector<char> makeRandom(Element element, int64_t count,
                                    uint64_t state) {
  int64_t width = driver::elementBytes(element);
  std::vector<char> bytes(count * width);
  for (int64_t i = 0; i < count; ++i)
    driver::encode(element, std::ldexp(double(mix(state + i) >> 11), -52) - 1,
                   bytes.data() + i * width);
  return bytes;
}

void Reference::makeRows() {
  Element element = problem.element;
  int64_t width = driver::elementBytes(element), columns = problem.columns;
  residual = makeRandom(element, problem.elements(), mix(11));
  weight = makeRandom(element, columns, mix(12));
  std::vector<Operand> operands = problem.operands();
  llvm::ArrayRef<Operand> outputs =
      llvm::ArrayRef<Operand>(operands).drop_front(3);
  for (const Operand &output : outputs)
    wanted.push_back({std::vector<char>(output.bytes()),
                      std::vector<float>(output.elements)});
  float step = unitRoundoff(element);
  bool fp8 = outputs.size() == 3;
  std::vector<double> sum(columns), rest(columns), scale(columns);
  driver::decode(element, weight.data(), scale);
  for (int64_t row = 0; row < problem.rows(); ++row) {
    int64_t at = row * columns;
    driver::decode(element, sums.data() + at * width, sum);
    driver::decode(element, residual.data() + at * width, rest);
    double squares = 0, largest = 0;
    for (int64_t i = 0; i < columns; ++i) {
      sum[i] += rest[i];
      squares += sum[i] * sum[i];
    }
    double root = 1 / std::sqrt(squares / double(columns) + 1e-5);
    for (int64_t i = 0; i < columns; ++i)
      largest = std::max(largest, std::abs(sum[i] * scale[i]));
    double factor = fp8 ? std::max(largest, 1e-15) / 448 * root : 1;
    for (int64_t i = 0; i < columns; ++i) {
      // How far the sum may be off, and two roundings that fall to different
      // sides.
      double off = 2 * allowed[at + i] + 2.02 * step * std::abs(sum[i]);
      double value = sum[i] * root * scale[i] / factor;
      double share = std::abs(root * scale[i] / factor);
      driver::encode(outputs[0].element, value,
                     wanted[0].bytes.data() +
                         (at + i) * driver::elementBytes(outputs[0].element));
      // Neighbors of an fp8 are an eighth apart, the smallest 1/512.
      wanted[0].allowed[at + i] =
          float(fp8 ? off * share * 1.1 + std::abs(value) / 7 + 1.0 / 256
                    : off * share * 1.1 + 4 * step * std::abs(value) + 1e-6);
      driver::encode(element, sum[i],
                     wanted[1].bytes.data() + (at + i) * width);
      wanted[1].allowed[at + i] = float(off);
    }
    if (!fp8)
      continue;
    driver::encode(Element::F32, factor, wanted[2].bytes.data() + row * 4);
    wanted[2].allowed[row] = float(factor * 0.05);
  }
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

CheckResult Reference::checkRows(int64_t rank,
                                 llvm::ArrayRef<char> output) const {
  std::vector<Operand> operands = problem.operands();
  CheckResult all;
  for (auto [operand, want] :
       llvm::zip(llvm::ArrayRef<Operand>(operands).drop_front(3), wanted)) {
    CheckResult one = compareElements(operand.element, rank, 0, output.data(),
                                      want.bytes.data(), want.allowed.data(),
                                      operand.elements);
    output = output.drop_front(operand.bytes());
    all.exact &= one.exact;
    if (one.right)
      continue;
    one.message = operand.name + " of " + one.message;
    return one;
  }
  return all;
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
  return problem.columns     ? checkRows(rank, output)
         : problem.reduces() ? checkSums(rank, output)
                             : checkCopies(rank, output);
}
