//===- ValueSamples.cpp - Terms with random elements ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Values.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

/// Seeds from this one on give elements the values of constants; nodes that are
/// searched for those.
static constexpr uint64_t firstSpecial = 16;
static constexpr unsigned mostVisited = 10000;

/// A number that `parts` determine: a real one between 1 and 2 for seed 0, for
/// others an integer of a range that grows with the seed.
static double randomOf(uint64_t seed, ArrayRef<uint64_t> parts,
                       uint64_t salt = 0) {
  uint64_t state = 0x9e3779b97f4a7c15 + seed + (salt << 32);
  for (uint64_t part : parts) {
    state = (state ^ part) * 0xbf58476d1ce4e5b9;
    state ^= state >> 29;
    state *= 0x94d049bb133111eb;
    state ^= state >> 32;
  }
  double unit =
      static_cast<double>(state >> 12) / static_cast<double>(1ULL << 52);
  if (seed == 0)
    return 1 + unit;
  double range = std::exp2(static_cast<double>(seed % 8 + 1));
  return std::floor(unit * range * 1.25 - range / 4);
}

/// The op `name` of numbers; absent: it has no known meaning.
static std::optional<double> compute(StringRef name, ArrayRef<double> of) {
  auto fold = [&](llvm::function_ref<double(double, double)> combine) {
    double total = of.front();
    for (double next : of.drop_front())
      total = combine(total, next);
    return total;
  };
  if (of.empty())
    return std::nullopt;
  if (name == "add")
    return fold([](double a, double b) { return a + b; });
  if (name == "mul" || name == "product")
    return fold([](double a, double b) { return a * b; });
  if (name == "max")
    return fold([](double a, double b) { return std::max(a, b); });
  if (name == "min")
    return fold([](double a, double b) { return std::min(a, b); });
  using Function = double (*)(double);
  auto unary = llvm::StringSwitch<Function>(name)
                   .Case("cast", [](double a) { return a; })
                   .Case("neg", [](double a) { return -a; })
                   .Case("not", [](double a) { return a == 0 ? 1.0 : 0.0; })
                   .Case("reciprocal", [](double a) { return 1 / a; })
                   .Case("rsqrt", [](double a) { return 1 / std::sqrt(a); })
                   .Case("absf", std::fabs)
                   .Case("sqrt", std::sqrt)
                   .Case("cbrt", std::cbrt)
                   .Case("exp", std::exp)
                   .Case("exp2", std::exp2)
                   .Case("expm1", std::expm1)
                   .Case("log", std::log)
                   .Case("log2", std::log2)
                   .Case("log1p", std::log1p)
                   .Case("tanh", std::tanh)
                   .Case("sinh", std::sinh)
                   .Case("cosh", std::cosh)
                   .Case("sin", std::sin)
                   .Case("cos", std::cos)
                   .Case("tan", std::tan)
                   .Case("erf", std::erf)
                   .Case("erfc", std::erfc)
                   .Case("floor", std::floor)
                   .Case("ceil", std::ceil)
                   .Default(nullptr);
  if (of.size() == 1)
    return unary ? std::optional(unary(of[0])) : std::nullopt;
  if (of.size() == 3 && name == "fma")
    return of[0] * of[1] + of[2];
  if (of.size() == 3 && name == "where")
    return of[0] != 0 ? of[1] : of[2];
  if (of.size() != 2)
    return std::nullopt;
  if (name == "sub")
    return of[0] - of[1];
  if (name == "div")
    return of[0] / of[1];
  if (name == "powf")
    return std::pow(of[0], of[1]);
  if (name == "divsi" && of[1] != 0)
    return std::trunc(of[0] / of[1]);
  if (name == "floordivsi" && of[1] != 0)
    return std::floor(of[0] / of[1]);
  if (name == "less")
    return of[0] < of[1];
  if (name == "at most")
    return of[0] <= of[1];
  if (name == "equal")
    return of[0] == of[1];
  return std::nullopt;
}

void Values::findConstants(Ref ref, llvm::DenseSet<int32_t> &seen,
                           std::vector<double> &into) const {
  const Node &node = nodes[ref.node];
  if (!seen.insert(ref.node).second || seen.size() > mostVisited)
    return;
  if (node.kind == Kind::Constant)
    into.push_back(node.value);
  for (Ref operand : node.operands)
    findConstants(operand, seen, into);
}

std::vector<double> Values::constantsIn(ArrayRef<Ref> refs) const {
  std::vector<double> found = {0, 1, -1};
  llvm::DenseSet<int32_t> seen;
  for (Ref ref : refs)
    findConstants(ref, seen, found);
  return found;
}

double Values::sample(Ref ref, uint64_t seed, ArrayRef<double> special,
                      std::map<Ref, double> &done) const {
  auto it = done.find(ref);
  if (it != done.end())
    return it->second;
  double found = computeSample(ref, seed, special, done);
  done[ref] = found;
  return found;
}

double Values::computeSample(Ref ref, uint64_t seed, ArrayRef<double> special,
                             std::map<Ref, double> &done) const {
  const Node &node = nodes[ref.node];
  SmallVector<uint64_t> parts = {static_cast<uint64_t>(node.kind),
                                 static_cast<uint64_t>(node.name)};
  llvm::append_range(parts, node.numbers);
  switch (node.kind) {
  case Kind::Constant:
    return node.value;
  case Kind::Number:
    return static_cast<double>(ref.shift);
  case Kind::Pin: {
    Ref operand = node.operands[0];
    return sample({operand.node, ref.at, operand.at + ref.at}, seed, special,
                  done);
  }
  case Kind::Input:
    parts.push_back(ref.shift);
    [[fallthrough]];
  case Kind::Scalar:
    // Comparisons change where an element equals what it is compared with.
    return seed < firstSpecial
               ? randomOf(seed, parts)
               : special[static_cast<size_t>(randomOf(0, parts, seed) *
                                             double(1 << 20)) %
                         special.size()];
  case Kind::Unknown:
    parts.push_back(ref.node);
    return randomOf(seed, parts);
  default:
    break;
  }
  SmallVector<double> of;
  for (Ref operand : node.operands)
    of.push_back(sample(within(operand, ref), seed, special, done));
  StringRef plain = StringRef(nameTexts[node.name]).take_until([](char c) {
    return c == ':';
  });
  if (node.kind == Kind::Apply)
    if (auto known = compute(plain, of))
      return *known;
  for (double value : of)
    parts.push_back(static_cast<uint64_t>(coarse(value)));
  if (node.kind != Kind::Apply)
    parts.push_back(ref.shift);
  return randomOf(seed, parts);
}
