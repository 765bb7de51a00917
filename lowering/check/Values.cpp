//===- Values.cpp - Terms for the contents of elements --------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Values.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <bit>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

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
  return {intern(
      {static_cast<int64_t>(Kind::Constant), std::bit_cast<int64_t>(value)},
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
