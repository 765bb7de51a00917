//===- Values.cpp - Terms for the contents of elements --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Values.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

/// Summands that are printed of one sum, and characters of one text.
static constexpr size_t mostPrinted = 12, longestText = 400;

static int64_t bitsOf(double value) {
  int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

size_t Values::Hash::operator()(const std::vector<int64_t> &key) const {
  return llvm::hash_combine_range(key.begin(), key.end());
}

Values::Values() { nameTexts.emplace_back(); }

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

int32_t Values::nameId(StringRef name) {
  auto [it, isNew] =
      names.try_emplace(name, static_cast<int32_t>(nameTexts.size()));
  if (isNew)
    nameTexts.push_back(name.str());
  return it->second;
}

int32_t Values::intern(std::vector<int64_t> key, Node node) {
  auto [it, isNew] =
      known.try_emplace(std::move(key), static_cast<int32_t>(nodes.size()));
  if (!isNew)
    return it->second;
  node.origin = current;
  for (Ref operand : node.operands) {
    const Node &other = nodes[operand.node];
    node.isUnordered |= other.isUnordered;
    node.isUnknown |= other.isUnknown;
    if (!node.unknownBy)
      node.unknownBy = other.unknownBy;
  }
  nodes.push_back(std::move(node));
  return it->second;
}

Ref Values::make(Kind kind, StringRef name, ArrayRef<int64_t> numbers,
                 ArrayRef<Ref> operands) {
  Node node;
  node.kind = kind;
  node.name = nameId(name);
  node.numbers.assign(numbers.begin(), numbers.end());
  node.operands.assign(operands.begin(), operands.end());
  Ref base = makeRelative(node.operands);
  std::vector<int64_t> key = {static_cast<int64_t>(kind), node.name,
                              static_cast<int64_t>(numbers.size())};
  llvm::append_range(key, numbers);
  for (Ref operand : node.operands) {
    node.moves |= nodes[operand.node].moves;
    node.isFixed |= nodes[operand.node].isFixed;
    llvm::append_range(
        key, ArrayRef<int64_t>{operand.node, operand.shift, operand.at});
  }
  base.node = intern(std::move(key), std::move(node));
  return base;
}

Ref Values::makeReal(Kind kind, StringRef name, ArrayRef<int64_t> numbers,
                     ArrayRef<Ref> operands) {
  Ref made = make(kind, name, numbers, operands);
  Node &node = nodes[made.node];
  if (!std::exchange(node.hasSum, true))
    node.sum = atom({made.node});
  return made;
}

Ref Values::makeRelative(llvm::MutableArrayRef<Ref> operands) const {
  Ref base;
  bool moves = false, isFixed = false;
  for (Ref &operand : operands) {
    const Node &node = nodes[operand.node];
    if (node.moves && !std::exchange(moves, true))
      base.shift = operand.shift;
    if (node.isFixed && !std::exchange(isFixed, true))
      base.at = operand.at;
    operand.shift = node.moves ? operand.shift - base.shift : 0;
    operand.at = node.isFixed ? operand.at - base.at : 0;
  }
  return base;
}

Ref Values::input(int32_t argument, int64_t rank, int32_t launch) {
  if (sameOnRanks.contains(argument))
    rank = 0;
  Node node;
  node.kind = Kind::Input;
  node.moves = true;
  node.numbers = {argument, rank, launch};
  return {intern({static_cast<int64_t>(Kind::Input), argument, rank, launch},
                 std::move(node))};
}

Ref Values::constant(double value) {
  Node node;
  node.kind = Kind::Constant;
  node.value = value;
  return {intern({static_cast<int64_t>(Kind::Constant), bitsOf(value)},
                 std::move(node))};
}

Ref Values::scalar(int32_t argument, int32_t launch) {
  Node node;
  node.kind = Kind::Scalar;
  node.numbers = {argument, launch};
  return {intern({static_cast<int64_t>(Kind::Scalar), argument, launch},
                 std::move(node))};
}

Ref Values::number() {
  Node node;
  node.kind = Kind::Number;
  node.moves = true;
  return {intern({static_cast<int64_t>(Kind::Number)}, std::move(node))};
}

Ref Values::unknown(Operation *op) {
  Node node;
  node.isUnknown = true;
  node.unknownBy = op;
  return {intern({static_cast<int64_t>(Kind::Unknown), ++unknowns},
                 std::move(node))};
}

Ref Values::apply(StringRef name, ArrayRef<Ref> operands) {
  return make(Kind::Apply, name, {}, operands);
}

Ref Values::combineAnyhow(StringRef kind, ArrayRef<Ref> operands) {
  SmallVector<Ref> sorted(operands);
  llvm::sort(sorted);
  // Two additions of one term are two nodes of equal sums.
  Ref made = make(Kind::Apply, kind, {++unknowns}, sorted);
  nodes[made.node].isUnordered = true;
  return made;
}

Ref Values::reduceRow(StringRef kind, ArrayRef<std::pair<int64_t, Ref>> parts) {
  SmallVector<Ref> operands;
  SmallVector<int64_t> ends;
  for (auto [end, ref] : parts) {
    operands.push_back(ref);
    ends.push_back(end);
  }
  Ref made = make(Kind::Row, kind, ends, operands);
  // Where the row begins is a place that no longer moves.
  return pin(made, 0);
}

Ref Values::pin(Ref ref, int64_t element) {
  if (!nodes[ref.node].moves)
    return {ref.node, 0, ref.at};
  Node node;
  node.kind = Kind::Pin;
  node.isFixed = true;
  int64_t place = ref.shift + element;
  // Its moving places, at 0, are the first ones that are fixed.
  Ref operand{ref.node, 0, nodes[ref.node].isFixed ? ref.at - place : 0};
  node.operands = {operand};
  int32_t id =
      intern({static_cast<int64_t>(Kind::Pin), operand.node, operand.at},
             std::move(node));
  return {id, 0, place};
}

Ref Values::assume(Ref ref, const Sum &condition, bool holds,
                   std::map<Ref, Ref> &done) {
  auto [it, isNew] = done.try_emplace(ref, ref);
  // Others are made meanwhile.
  const Node node = nodes[ref.node];
  if (!isNew || node.kind != Kind::Apply || node.isUnordered)
    return it->second;
  bool isChoice = nameTexts[node.name] == "where";
  if (isChoice && areEqual(sumOf(within(node.operands[0], ref)), condition)) {
    Ref side = within(node.operands[holds ? 1 : 2], ref);
    return done[ref] = assume(side, condition, holds, done);
  }
  SmallVector<Ref> operands;
  bool isSame = true;
  for (Ref inner : node.operands) {
    Ref operand = within(inner, ref);
    operands.push_back(assume(operand, condition, holds, done));
    isSame &= operands.back() == operand;
  }
  if (isSame)
    return ref;
  return done[ref] = isChoice
                         ? chooseDecided(operands[0], operands[1], operands[2])
                         : make(node.kind, nameTexts[node.name], node.numbers,
                                operands);
}

std::optional<Ref> Values::negated(Ref condition) const {
  const Node &node = nodes[condition.node];
  if (node.kind != Kind::Apply || nameTexts[node.name] != "not")
    return std::nullopt;
  return within(node.operands[0], condition);
}

Ref Values::assume(Ref ref, Ref condition, bool holds) {
  if (auto opposite = negated(condition))
    return assume(ref, *opposite, !holds);
  std::map<Ref, Ref> done;
  return assume(ref, sumOf(condition), holds, done);
}

Ref Values::choose(Ref condition, Ref yes, Ref no) {
  double known = 0;
  if (isConstant(condition, known))
    return known != 0 ? yes : no;
  // Within a choice the same condition is decided.
  return chooseDecided(condition, assume(yes, condition, true),
                       assume(no, condition, false));
}

Ref Values::chooseDecided(Ref condition, Ref yes, Ref no) {
  double known = 0;
  if (isConstant(condition, known))
    return known != 0 ? yes : no;
  if (auto opposite = negated(condition))
    return chooseDecided(*opposite, no, yes);
  return yes == no ? yes : apply("where", {condition, yes, no});
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Elements of a row that are spelled out.
static constexpr int64_t longestRow = 4096;

Ref Values::atElement(Ref ref, int64_t element) {
  Ref key = moved(ref, element);
  if (auto it = elements.find(key); it != elements.end())
    return it->second;
  Ref made = computeElement(key);
  elements[key] = made;
  return made;
}

Ref Values::computeElement(Ref ref) {
  constexpr int64_t element = 0;
  // Others are made meanwhile.
  const Node node = nodes[ref.node];
  switch (node.kind) {
  case Kind::Number:
    return constant(static_cast<double>(ref.shift + element));
  case Kind::Pin: {
    // Its operand's positions that move are at the place of the pin.
    Ref operand = node.operands[0];
    operand.shift = ref.at;
    operand.at += nodes[operand.node].isFixed ? ref.at : 0;
    return atElement(operand, 0);
  }
  case Kind::Row:
    return atElementOfRow(node, ref, element);
  case Kind::Gather:
    return atElementOfGather(node, ref, element);
  case Kind::Apply: {
    SmallVector<Ref> operands;
    for (Ref operand : node.operands)
      operands.push_back(atElement(within(operand, ref), element));
    Ref made = make(node.kind, nameTexts[node.name], node.numbers, operands);
    nodes[made.node].isUnordered |= node.isUnordered;
    return made;
  }
  default:
    return pin(ref, element);
  }
}

Ref Values::atElementOfRow(const Node &node, Ref ref, int64_t element) {
  int64_t length = node.numbers.empty() ? 0 : node.numbers.back();
  if (length > longestRow)
    return pin(ref, element);
  std::optional<Ref> total;
  int64_t at = 0;
  for (auto [end, operand] : llvm::zip(node.numbers, node.operands))
    for (; at < end; ++at) {
      Ref next = atElement(within(operand, ref), element + at);
      total = total ? apply(nameTexts[node.name], {*total, next}) : next;
    }
  return total ? *total : pin(ref, element);
}

/// What is known of the place goes to the array's position.
Ref Values::atElementOfGather(const Node &node, Ref ref, int64_t element) {
  Sum number = sumOf(atElement(within(node.operands[1], ref), 0));
  auto known = static_cast<int64_t>(number.constant);
  Ref array = within(node.operands[0], ref);
  if (static_cast<double>(known) == number.constant)
    number.constant = 0;
  else
    known = 0;
  return pin(gather(array, fold(std::move(number)), known), element);
}

Ref Values::gather(Ref array, Ref number, int64_t begin) {
  return make(Kind::Gather, "", {}, {moved(array, begin), number});
}

Ref Values::moved(Ref ref, int64_t distance) const {
  if (nodes[ref.node].moves)
    ref.shift += distance;
  return ref;
}

bool Values::isConstant(Ref ref, double &value) const {
  value = nodes[ref.node].value;
  return nodes[ref.node].kind == Kind::Constant;
}

bool Values::isInput(Ref ref, int32_t &argument, int64_t &rank,
                     int32_t &launch) const {
  const Node *node = &nodes[ref.node];
  if (node->kind == Kind::Pin)
    node = &nodes[node->operands[0].node];
  if (node->kind != Kind::Input)
    return false;
  argument = static_cast<int32_t>(node->numbers[0]);
  rank = node->numbers[1];
  launch = static_cast<int32_t>(node->numbers[2]);
  return true;
}

Ref Values::within(Ref operand, Ref ref) const {
  operand.shift += nodes[operand.node].moves ? ref.shift : 0;
  operand.at += nodes[operand.node].isFixed ? ref.at : 0;
  return operand;
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

Ref Values::canonical(Ref ref) {
  auto it = canonicals.find(ref.node);
  Ref made = it == canonicals.end() ? computeCanonical(ref.node) : it->second;
  canonicals[ref.node] = made;
  return within(made, ref);
}

Ref Values::computeCanonical(int32_t id) {
  // Others are made meanwhile.
  const Node node = nodes[id];
  if (node.operands.empty() || node.isUnordered)
    return {id};
  SmallVector<Ref> operands;
  for (Ref operand : node.operands)
    operands.push_back(canonical(operand));
  if (node.kind == Kind::Pin)
    return pin(operands[0], 0);
  StringRef name = nameTexts[node.name];
  StringRef plain = name.take_until([](char c) { return c == ':'; });
  bool isExtreme =
      plain == "max" || plain == "min" || plain == "and" || plain == "or";
  if (node.kind != Kind::Apply ||
      !(isExtreme || plain == "add" || plain == "mul" || plain == "xor"))
    return make(node.kind, name, node.numbers, operands);
  if (isExtreme) {
    // Neither order, nor number, nor grouping matter.
    SmallVector<Ref> all;
    for (Ref operand : operands) {
      const Node &inner = nodes[operand.node];
      bool isSame = inner.kind == Kind::Apply && inner.name == node.name;
      if (isSame)
        for (Ref one : inner.operands)
          all.push_back(within(one, operand));
      else
        all.push_back(operand);
    }
    operands = std::move(all);
  }
  llvm::sort(operands);
  if (isExtreme)
    operands.erase(llvm::unique(operands), operands.end());
  // Zero is where a sum begins.
  if (plain == "add")
    llvm::erase_if(operands, [&](Ref operand) {
      const Node &inner = nodes[operand.node];
      return inner.kind == Kind::Constant && inner.value == 0;
    });
  if (operands.empty())
    return constant(0);
  return operands.size() == 1 ? operands[0]
                              : make(Kind::Apply, name, {}, operands);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Whether two factors are one, except for rounding.
static bool areClose(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-5 * std::max(std::abs(a), std::abs(b));
}

/// Rounded, so that factors that differ by roundings make one node.
static int64_t coarse(double value) {
  if (value == 0 || !std::isfinite(value))
    return bitsOf(value);
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

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

std::string mlir::comms::check::printNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", value);
  return text;
}

/// The element's own place is not said.
static std::string placeText(int64_t shift) {
  if (shift == 0)
    return "";
  return llvm::formatv("[i {0} {1}]", shift < 0 ? "-" : "+", std::abs(shift));
}

std::string Values::print(Ref ref, int32_t launch,
                          llvm::function_ref<std::string(int32_t)> nameOf) {
  // Others are made meanwhile.
  const Node node = nodes[ref.node];
  auto inner = [&](Ref operand) {
    return print(sumOf(within(operand, ref)), launch, nameOf);
  };
  auto list = [&](StringRef name) {
    std::string text = name.str() + "(";
    for (auto [at, operand] : llvm::enumerate(node.operands)) {
      text += (at ? ", " : "") + inner(operand);
      if (text.size() > longestText)
        return text + " …)";
    }
    return text + ")";
  };
  auto inputText = [&](const Node &leaf, const std::string &place) {
    auto from = static_cast<int32_t>(leaf.numbers[2]);
    std::string text = llvm::formatv(
        "{0}({1}){2}", nameOf(static_cast<int32_t>(leaf.numbers[0])),
        leaf.numbers[1], place);
    if (from == 0)
      return "(" + text + " as it was before the first launch)";
    return from == launch
               ? text
               : "(" + text + " of launch " + std::to_string(from) + ")";
  };
  switch (node.kind) {
  case Kind::Input:
    return inputText(node, placeText(ref.shift));
  case Kind::Constant:
    return printNumber(node.value);
  case Kind::Scalar:
    return nameOf(static_cast<int32_t>(node.numbers[0]));
  case Kind::Number:
    if (ref.shift == 0)
      return "i";
    return llvm::formatv("(i {0} {1})", ref.shift < 0 ? "-" : "+",
                         std::abs(ref.shift));
  case Kind::Unknown:
    return "…";
  case Kind::Pin: {
    const Node child = nodes[node.operands[0].node];
    if (child.kind == Kind::Input)
      return inputText(child, "[" + std::to_string(ref.at) + "]");
    Ref operand = node.operands[0];
    operand.shift = ref.at;
    operand.at += ref.at;
    return child.kind == Kind::Row ? print(operand, launch, nameOf)
                                   : print(operand, launch, nameOf) + " there";
  }
  case Kind::Row: {
    StringRef kind = nameTexts[node.name];
    kind.consume_front("real ");
    return list("the row's " +
                kind.take_until([](char c) { return c == ':'; }).str());
  }
  case Kind::Gather:
    return inner(node.operands[0]) + " from " + inner(node.operands[1]) + " on";
  case Kind::Apply:
    break;
  }
  StringRef name = nameTexts[node.name];
  if (name == "linear")
    return "(" + print(sumOf(ref), launch, nameOf) + ")";
  // A factor that is a sum stands in parentheses.
  auto factor = [&](Ref operand) {
    Sum sum = sumOf(operand);
    bool isSum = sum.parts.size() + (sum.constant != 0) > 1;
    return isSum ? "(" + inner(operand) + ")" : inner(operand);
  };
  if (name == "product") {
    std::string text;
    for (auto [at, operand] : llvm::enumerate(node.operands))
      text += (at ? " * " : "") + factor(operand);
    return text;
  }
  if (name == "reciprocal")
    return "1 / " + factor(node.operands[0]);
  StringRef sign = llvm::StringSwitch<StringRef>(name)
                       .Case("less", " < ")
                       .Case("at most", " <= ")
                       .Case("equal", " == ")
                       .Default("");
  if (!sign.empty() && node.operands.size() == 2)
    return inner(node.operands[0]) + sign.str() + inner(node.operands[1]);
  return list(name.take_until([](char c) { return c == ':'; }));
}

std::string Values::print(const Sum &sum, int32_t launch,
                          llvm::function_ref<std::string(int32_t)> nameOf) {
  std::string text;
  size_t shown = 0;
  // In the order of ranks, as one writes it.
  auto parts = sum.parts;
  auto keyOf = [&](Ref ref) {
    int32_t argument = INT32_MAX, from = 0;
    int64_t rank = 0;
    (void)isInput(ref, argument, rank, from);
    return std::tuple(argument, from, rank, ref);
  };
  llvm::sort(parts, [&](const auto &a, const auto &b) {
    return keyOf(a.first) < keyOf(b.first);
  });
  for (auto [ref, factor] : parts) {
    if (++shown > mostPrinted || text.size() > longestText)
      return text + llvm::formatv(" + … ({0} summands)", parts.size()).str();
    double size = std::abs(factor);
    text += text.empty() ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ";
    double parted = std::round(1 / size);
    if (size == 1)
      text += print(ref, launch, nameOf);
    else if (size < 1 && areClose(parted * size, 1))
      text += print(ref, launch, nameOf) + " / " + printNumber(parted);
    else
      text += printNumber(size) + " * " + print(ref, launch, nameOf);
  }
  if (text.empty())
    return printNumber(sum.constant);
  if (sum.constant != 0)
    text += (sum.constant < 0 ? " - " : " + ") +
            printNumber(std::abs(sum.constant));
  return text;
}
