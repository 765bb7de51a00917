//===- ValueSums.cpp - Terms as sums of real numbers ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Values.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

bool Values::areClose(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-5 * std::max(std::abs(a), std::abs(b));
}

int64_t Values::coarse(double value) {
  if (value == 0 || !std::isfinite(value))
    return std::bit_cast<int64_t>(value);
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);
  return std::llround(fraction * (1 << 16)) * 4096 + exponent;
}

/// Sorts and joins equal parts.
void Values::order(Sum &sum) {
  llvm::sort(sum.parts, llvm::less_first());
  SmallVector<std::pair<Ref, double>, 2> joined;
  for (auto [ref, factor] : sum.parts) {
    if (!joined.empty() && joined.back().first == ref)
      joined.back().second += factor;
    else
      joined.emplace_back(ref, factor);
  }
  llvm::erase_if(joined, [](const auto &part) { return part.second == 0; });
  sum.parts = std::move(joined);
}

Sum Values::sumOf(Ref ref) {
  if (!nodes[ref.node].hasSum) {
    Sum made = computeSum(ref.node);
    nodes[ref.node].sum = std::move(made);
    nodes[ref.node].hasSum = true;
  }
  Sum sum = nodes[ref.node].sum;
  for (auto &[part, factor] : sum.parts) {
    if (nodes[part.node].moves)
      part.shift += ref.shift;
    if (nodes[part.node].isFixed)
      part.at += ref.at;
  }
  return sum;
}

bool Values::areEqual(const Sum &a, const Sum &b) const {
  return a.parts.size() == b.parts.size() && areClose(a.constant, b.constant) &&
         llvm::all_of(llvm::zip(a.parts, b.parts), [](const auto &pair) {
           const auto &[x, y] = pair;
           return x.first == y.first && areClose(x.second, y.second);
         });
}

/// Products that are compared after sums are multiplied out.
static constexpr size_t mostExpanded = 4096;

std::optional<Values::Polynomial> Values::expandFactor(Ref factor) {
  const Node node = nodes[factor.node];
  bool isApplied = node.kind == Kind::Apply;
  if (isApplied && nameTexts[node.name] == "linear")
    return expand(sumOf(factor));
  if (!isApplied || nameTexts[node.name] != "product")
    return Polynomial{{{factor}, 1.0}};
  Polynomial made = {{{}, 1.0}};
  for (Ref operand : node.operands) {
    auto other = expandFactor(within(operand, factor));
    if (!other || made.size() * other->size() > mostExpanded)
      return std::nullopt;
    Polynomial product;
    for (const auto &[left, a] : made)
      for (const auto &[right, b] : *other) {
        std::vector<Ref> both = left;
        both.insert(both.end(), right.begin(), right.end());
        llvm::sort(both);
        product[std::move(both)] += a * b;
      }
    made = std::move(product);
  }
  return made;
}

std::optional<Values::Polynomial> Values::expand(const Sum &sum) {
  Polynomial made;
  made[{}] = sum.constant;
  for (auto [ref, factor] : sum.parts) {
    auto part = expandFactor(ref);
    if (!part || made.size() + part->size() > mostExpanded)
      return std::nullopt;
    for (const auto &[product, times] : *part)
      made[product] += times * factor;
  }
  return made;
}

bool Values::areEqualExpanded(const Sum &a, const Sum &b) {
  auto left = expand(a), right = expand(b);
  if (!left || !right)
    return false;
  // What is on one side alone is not there, unless its factor is zero.
  for (const auto &[product, times] : *right)
    (*left)[product] -= times;
  return llvm::all_of(*left, [&](const auto &term) {
    auto it = right->find(term.first);
    double size = it == right->end() ? 0 : std::abs(it->second);
    return std::abs(term.second) <= 1e-5 * size;
  });
}

Ref Values::fold(Sum sum) {
  order(sum);
  if (sum.parts.empty())
    return constant(sum.constant);
  if (sum.constant == 0 && sum.parts.size() == 1 && sum.parts[0].second == 1)
    return sum.parts[0].first;
  SmallVector<Ref> operands;
  SmallVector<int64_t> factors = {coarse(sum.constant)};
  for (auto [ref, factor] : sum.parts) {
    operands.push_back(ref);
    factors.push_back(coarse(factor));
  }
  Ref made = make(Kind::Apply, "linear", factors, operands);
  Node &node = nodes[made.node];
  if (!node.hasSum) {
    // Its operands are related to the first by now.
    node.sum.constant = sum.constant;
    for (auto [ref, part] : llvm::zip(node.operands, sum.parts))
      node.sum.parts.emplace_back(ref, part.second);
    node.hasSum = true;
  }
  return made;
}

Sum Values::product(const Sum &a, const Sum &b) {
  for (auto [one, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (one->parts.empty()) {
      Sum scaled = *other;
      scaled.constant *= one->constant;
      for (auto &[ref, factor] : scaled.parts)
        factor *= one->constant;
      order(scaled);
      return scaled;
    }
  // A product of one list of factors, whatever the order.
  double scale = 1;
  SmallVector<Ref> factors;
  for (const Sum *sum : {&a, &b}) {
    Ref ref;
    if (sum->constant == 0 && sum->parts.size() == 1) {
      scale *= sum->parts[0].second;
      ref = sum->parts[0].first;
    } else {
      ref = fold(*sum);
    }
    const Node node = nodes[ref.node];
    if (node.kind == Kind::Apply && nameTexts[node.name] == "product") {
      for (Ref operand : node.operands)
        factors.push_back(within(operand, ref));
    } else {
      factors.push_back(ref);
    }
  }
  llvm::sort(factors);
  return {0, {{makeReal(Kind::Apply, "product", {0}, factors), scale}}};
}

std::pair<double, double> Values::boundsOf(Ref ref) const {
  constexpr double all = std::numeric_limits<double>::infinity();
  const Node &node = nodes[ref.node];
  if (node.kind == Kind::Constant)
    return {node.value, node.value};
  StringRef name = nameTexts[node.name];
  bool isMax = name == "max", isMin = name == "min";
  if (node.kind != Kind::Apply || !(isMax || isMin))
    return {-all, all};
  std::pair<double, double> found =
      isMax ? std::pair(-all, -all) : std::pair(all, all);
  for (Ref operand : node.operands) {
    auto [low, high] = boundsOf(operand);
    found.first =
        isMax ? std::max(found.first, low) : std::min(found.first, low);
    found.second =
        isMax ? std::max(found.second, high) : std::min(found.second, high);
  }
  return found;
}

/// Equal operands count once, and constants that change nothing not at all.
Sum Values::extreme(StringRef kind, ArrayRef<Sum> sums) {
  SmallVector<Ref> operands;
  for (const Sum &sum : sums) {
    Ref ref = fold(sum);
    const Node node = nodes[ref.node];
    if (node.kind == Kind::Apply && nameTexts[node.name] == kind &&
        node.numbers.size() == 1) {
      for (Ref operand : node.operands)
        operands.push_back(within(operand, ref));
    } else {
      operands.push_back(ref);
    }
  }
  llvm::sort(operands);
  operands.erase(llvm::unique(operands), operands.end());
  auto isIdle = [&](Ref operand) {
    const Node &node = nodes[operand.node];
    return node.kind == Kind::Constant &&
           llvm::any_of(operands, [&](Ref other) {
             auto [low, high] = boundsOf(other);
             return !(other == operand) && (kind == "max"   ? low >= node.value
                                            : kind == "min" ? high <= node.value
                                                            : false);
           });
  };
  if (const Ref *idle = llvm::find_if(operands, isIdle); idle != operands.end())
    operands.erase(idle);
  return operands.size() == 1
             ? atom(operands[0])
             : atom(makeReal(Kind::Apply, kind, {0}, operands));
}

Sum Values::computeSum(int32_t id) {
  // Others are made meanwhile.
  const Node node = nodes[id];
  switch (node.kind) {
  case Kind::Constant:
    return {node.value, {}};
  case Kind::Apply:
    return sumOfApply(node);
  case Kind::Pin: {
    Sum sum = sumOf(node.operands[0]);
    for (auto &[ref, factor] : sum.parts)
      ref = pin(ref, 0);
    order(sum);
    return sum;
  }
  case Kind::Row: {
    SmallVector<std::pair<int64_t, Ref>> parts;
    for (auto [end, operand] : llvm::zip(node.numbers, node.operands)) {
      Ref ref = fold(sumOf(operand));
      if (!parts.empty() && parts.back().second == ref)
        parts.back().first = end;
      else
        parts.emplace_back(end, ref);
    }
    SmallVector<Ref> operands;
    SmallVector<int64_t> ends;
    for (auto [end, ref] : parts) {
      operands.push_back(ref);
      ends.push_back(end);
    }
    std::string kind = StringRef(nameTexts[node.name])
                           .take_until([](char c) { return c == ':'; })
                           .str();
    return atom(makeReal(Kind::Row, "real " + kind, ends, operands));
  }
  case Kind::Gather: {
    Ref number = fold(sumOf(node.operands[1]));
    return atom(makeReal(Kind::Gather, "real", {}, {node.operands[0], number}));
  }
  default:
    return atom({id});
  }
}

/// A sum of integers modulo 2^bits.
Sum Values::cut(const Sum &sum, unsigned bits) {
  Sum made;
  made.constant = sum.constant;
  for (auto [ref, factor] : sum.parts) {
    const Node node = nodes[ref.node];
    StringRef name = nameTexts[node.name];
    unsigned from = 0;
    bool isExtended = node.kind == Kind::Apply &&
                      name.consume_front("extend") &&
                      !name.getAsInteger(10, from) && from >= bits;
    if (!isExtended) {
      made.parts.emplace_back(ref, factor);
      continue;
    }
    Sum inner = cut(sumOf(within(node.operands.front(), ref)), bits);
    made.constant += inner.constant * factor;
    for (auto [part, scale] : inner.parts)
      made.parts.emplace_back(part, scale * factor);
  }
  order(made);
  return made;
}

Sum Values::sumOfApply(const Node &node) {
  StringRef name = nameTexts[node.name];
  // What follows the name, types and attributes, matters for bits alone, or is
  // kept with names that are not known.
  StringRef plain = name.take_until([](char c) { return c == ':'; });
  SmallVector<Sum> sums;
  for (Ref operand : node.operands)
    sums.push_back(sumOf(operand));
  auto scaled = [](Sum sum, double factor) {
    sum.constant *= factor;
    for (auto &part : sum.parts)
      part.second *= factor;
    return sum;
  };
  auto added = [&](ArrayRef<Sum> all) {
    Sum total;
    for (const Sum &sum : all) {
      total.constant += sum.constant;
      llvm::append_range(total.parts, sum.parts);
    }
    order(total);
    return total;
  };
  if (plain == "add")
    return added(sums);
  if (plain == "sub" && sums.size() == 2)
    return added({sums[0], scaled(sums[1], -1)});
  if (plain == "neg" && sums.size() == 1)
    return scaled(sums[0], -1);
  if (plain == "cast" && sums.size() == 1)
    return sums[0];
  // What arrays hold is what it is when it is extended; a result is not, if it
  // was cut before. Where the sum is cut itself, all is modulo its range.
  Kind kind = node.operands.empty() ? Kind::Unknown
                                    : nodes[node.operands.front().node].kind;
  bool isHeld = kind == Kind::Input || kind == Kind::Pin ||
                kind == Kind::Gather || kind == Kind::Constant ||
                kind == Kind::Number;
  unsigned bits = 0;
  if (plain.starts_with("extend") && isHeld)
    return sums[0];
  if (plain.starts_with("cut") && !plain.drop_front(3).getAsInteger(10, bits))
    return cut(sums[0], bits);
  if (plain == "mul") {
    Sum all = {1, {}};
    for (const Sum &sum : sums)
      all = product(all, sum);
    return all;
  }
  if (plain == "fma" && sums.size() == 3)
    return added({product(sums[0], sums[1]), sums[2]});
  if (plain == "div" && sums.size() == 2) {
    if (sums[1].parts.empty() && sums[1].constant != 0)
      return scaled(sums[0], 1 / sums[1].constant);
    Ref inverse =
        makeReal(Kind::Apply, "reciprocal", {0}, {fold(std::move(sums[1]))});
    return product(sums[0], atom(inverse));
  }
  if (plain == "max" || plain == "min" || plain == "and" || plain == "or")
    return extreme(plain, sums);
  SmallVector<Ref> operands;
  for (const Sum &sum : sums)
    operands.push_back(fold(sum));
  if (plain == "xor")
    llvm::sort(operands);
  return atom(makeReal(Kind::Apply, plain, {0}, operands));
}
