//===- ValueTexts.cpp - Terms in messages ---------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Values.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::StringRef;

/// Summands that are printed of one sum, and characters of one text.
static constexpr size_t mostPrinted = 12, longestText = 400;

std::string mlir::comms::check::printNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", value);
  return text;
}

/// The place of an element at a distance from the described one; empty: that
/// one itself.
static std::string placeText(int64_t shift) {
  if (shift == 0)
    return "";
  return llvm::formatv("[i {0} {1}]", shift < 0 ? "-" : "+", std::abs(shift));
}

/// "name(" and the operands of the node of `ref`.
std::string Values::printList(StringRef name, Ref ref, int32_t launch,
                              NameOf nameOf) {
  const Node node = nodes[ref.node];
  std::string text = name.str() + "(";
  for (auto [at, operand] : llvm::enumerate(node.operands)) {
    text += (at ? ", " : "") + printOperand(operand, ref, launch, nameOf);
    if (text.size() > longestText)
      return text + " …)";
  }
  return text + ")";
}

std::string Values::printOperand(Ref operand, Ref ref, int32_t launch,
                                 NameOf nameOf) {
  return print(sumOf(within(operand, ref)), launch, nameOf);
}

std::string Values::printInput(const Node &leaf, const std::string &place,
                               int32_t launch, NameOf nameOf) {
  auto from = static_cast<int32_t>(leaf.numbers[2]);
  std::string text = llvm::formatv(
      "{0}({1}){2}", nameOf(static_cast<int32_t>(leaf.numbers[0])),
      leaf.numbers[1], place);
  if (from == 0)
    return "(" + text + " as it was before the first launch)";
  return from == launch
             ? text
             : "(" + text + " of launch " + std::to_string(from) + ")";
}

std::string Values::printPin(Ref ref, int32_t launch, NameOf nameOf) {
  Ref operand = nodes[ref.node].operands[0];
  const Node child = nodes[operand.node];
  if (child.kind == Kind::Input)
    return printInput(child, "[" + std::to_string(ref.at) + "]", launch,
                      nameOf);
  operand.shift = ref.at;
  operand.at += ref.at;
  return child.kind == Kind::Row ? print(operand, launch, nameOf)
                                 : print(operand, launch, nameOf) + " there";
}

std::string Values::printApply(Ref ref, int32_t launch, NameOf nameOf) {
  const Node node = nodes[ref.node];
  StringRef name = nameTexts[node.name];
  if (name == "linear")
    return "(" + print(sumOf(ref), launch, nameOf) + ")";
  // A factor that is a sum stands in parentheses.
  auto factor = [&](Ref operand) {
    Sum sum = sumOf(operand);
    bool isSum = sum.parts.size() + (sum.constant != 0) > 1;
    std::string text = printOperand(operand, ref, launch, nameOf);
    return isSum ? "(" + text + ")" : text;
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
    return printOperand(node.operands[0], ref, launch, nameOf) + sign.str() +
           printOperand(node.operands[1], ref, launch, nameOf);
  return printList(name.take_until([](char c) { return c == ':'; }), ref,
                   launch, nameOf);
}

std::string Values::print(Ref ref, int32_t launch, NameOf nameOf) {
  // A copy: printing creates nodes.
  const Node node = nodes[ref.node];
  switch (node.kind) {
  case Kind::Input:
    return printInput(node, placeText(ref.shift), launch, nameOf);
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
  case Kind::Pin:
    return printPin(ref, launch, nameOf);
  case Kind::Row: {
    StringRef kind = nameTexts[node.name];
    kind.consume_front("real ");
    kind = kind.take_until([](char c) { return c == ':'; });
    return printList("the row's " + kind.str(), ref, launch, nameOf);
  }
  case Kind::Gather:
    return printOperand(node.operands[0], ref, launch, nameOf) + " from " +
           printOperand(node.operands[1], ref, launch, nameOf) + " on";
  case Kind::Apply:
    return printApply(ref, launch, nameOf);
  }
  llvm_unreachable("unknown kind of node");
}

std::string Values::print(const Sum &sum, int32_t launch, NameOf nameOf) {
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
