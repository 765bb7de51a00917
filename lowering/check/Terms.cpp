//===- Terms.cpp - Names of unknown integers ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Terms.h"

#include "lowering/check/Arithmetic.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

/// First words of keys that are no instruction's.
enum : int64_t { leafKey = -1, freshKey = -2, constantKey = -3 };

int32_t Terms::intern(const Key &key, Code code,
                      llvm::ArrayRef<int32_t> operands) {
  auto [it, isNew] = known.try_emplace(key, static_cast<int32_t>(nodes.size()));
  if (!isNew)
    return it->second;
  Node &made = nodes.emplace_back();
  made.code = code;
  llvm::copy(operands, made.operands);
  made.isConstant = key[0] == constantKey;
  made.constant = key[1];
  made.extra = static_cast<int32_t>(key[2]);
  made.width = static_cast<unsigned>(key[1]);
  made.isUniform = key[0] != freshKey;
  if (key[0] == leafKey || key[0] == freshKey)
    made.leaves.push_back(it->second);
  if (key[0] == leafKey) {
    made.source = {static_cast<int32_t>(key[1]), key[2], key[3], key[4],
                   static_cast<int32_t>(key[5])};
    made.isUniform = key[2] < 0;
  }
  for (int32_t operand : operands) {
    made.isUniform &= operand == 0 || nodes[operand].isUniform;
    llvm::append_range(made.leaves, nodes[operand].leaves);
    llvm::sort(made.leaves);
    made.leaves.erase(llvm::unique(made.leaves), made.leaves.end());
  }
  return it->second;
}

int32_t Terms::leaf(const Leaf &leaf) {
  return intern({leafKey, leaf.argument, leaf.rank, leaf.offset, leaf.version,
                 leaf.launch},
                Code::Opaque, {});
}

int32_t Terms::fresh(Interval range) {
  int32_t made = intern({freshKey, ++freshLeaves}, Code::Opaque, {});
  nodes[made].low = range.low;
  nodes[made].high = range.high;
  return made;
}

int32_t Terms::nameOf(Interval value) {
  return value.isKnown() ? intern({constantKey, value.low}, Code::Opaque, {})
                         : value.term;
}

int32_t Terms::node(const Instruction &in, Interval a, Interval b, Interval c) {
  int32_t operands[3] = {};
  const Interval values[3] = {a, b, c};
  const Register registers[3] = {in.a, in.b, in.c};
  for (size_t at = 0; at < 3; ++at) {
    if (registers[at] < 0)
      continue;
    operands[at] = nameOf(values[at]);
    if (operands[at] == 0)
      return 0;
  }
  return intern({static_cast<int64_t>(in.code), in.width, in.extra, operands[0],
                 operands[1], operands[2]},
                in.code, operands);
}

Terms::Definition Terms::describe(int32_t term) const {
  const Node &node = nodes[term];
  Definition made{node.code,     {},         node.isConstant,
                  node.constant, node.extra, node.width};
  llvm::copy(node.operands, made.operands);
  return made;
}

std::optional<int64_t>
Terms::evaluate(int32_t term,
                llvm::function_ref<int64_t(int32_t)> valueOf) const {
  const Node &node = nodes[term];
  if (node.isConstant)
    return node.constant;
  if (node.operands[0] == 0)
    return valueOf(term);
  int64_t values[3] = {};
  for (auto [operand, value] : llvm::zip(node.operands, values)) {
    if (operand == 0)
      continue;
    auto found = evaluate(operand, valueOf);
    if (!found)
      return std::nullopt;
    value = *found;
  }
  auto [a, b, c] = values;
  switch (node.code) {
  case Code::Compare:
    return compare(static_cast<arith::CmpIPredicate>(node.extra), a, b,
                   node.width);
  case Code::Select:
    return a ? b : c;
  case Code::ZeroCast:
    return normalize(static_cast<int64_t>(unsignedOf(a, node.extra)),
                     node.width);
  case Code::SignCast:
    return normalize(node.extra == 1 ? -a : a, node.width);
  default:
    break;
  }
  auto value = compute(node.code, a, b, node.width);
  return value ? std::optional(normalize(*value, node.width)) : std::nullopt;
}

bool Terms::isAtMost(int32_t term, int32_t bound) const {
  if (term == 0 || bound == 0)
    return false;
  if (term == bound)
    return true;
  const Node &low = nodes[term], &high = nodes[bound];
  if (low.code == Code::MinS &&
      (isAtMost(low.operands[0], bound) || isAtMost(low.operands[1], bound)))
    return true;
  return high.code == Code::MaxS &&
         (isAtMost(term, high.operands[0]) || isAtMost(term, high.operands[1]));
}

bool Terms::isIndependent(int32_t a, int32_t b) const {
  if (a == 0 || b == 0)
    return false;
  llvm::SmallVector<int32_t> both;
  std::set_intersection(nodes[a].leaves.begin(), nodes[a].leaves.end(),
                        nodes[b].leaves.begin(), nodes[b].leaves.end(),
                        std::back_inserter(both));
  return both.empty();
}
