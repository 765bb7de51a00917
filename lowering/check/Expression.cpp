//===- Expression.cpp - Expressions of `comms.computes` -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Expression.h"

#include "dialect/Collectives.h"
#include "lowering/check/ProgramBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

using Node = Expression::Node;

/// Variables and levels of parentheses of one expression.
static constexpr size_t mostVariables = 16;
static constexpr int mostDepth = 64;
/// Operators of one expression: each is a level of its tree.
static constexpr int mostOperators = 4096;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
class Parser {
public:
  Parser(KernelOp kernel, llvm::StringRef text) : kernel(kernel), text(text) {}

  /// Nothing: `mistake` says why.
  std::optional<Node> parse() {
    auto made = comparison();
    if (made && !peek().empty())
      return fail("unexpected text after the expression: '" + peek().str() +
                  "'");
    return made;
  }
  std::string mistake;
  llvm::SmallVector<int32_t> reads;

private:
  std::nullopt_t fail(const llvm::Twine &what) {
    if (mistake.empty())
      mistake = what.str();
    return std::nullopt;
  }

  /// The next word, number or sign.
  llvm::StringRef peek() {
    llvm::StringRef rest = text.drop_front(at).ltrim();
    at = text.size() - rest.size();
    if (rest.empty())
      return rest;
    if (llvm::isAlpha(rest[0]) || rest[0] == '_')
      return rest.take_while(
          [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (llvm::isDigit(rest[0]))
      return rest.take_while(
          [](char c) { return llvm::isAlnum(c) || c == '.'; });
    for (llvm::StringRef sign : {"==", "!=", "<=", ">="})
      if (rest.starts_with(sign))
        return rest.take_front(2);
    return rest.take_front(1);
  }
  llvm::StringRef next() {
    llvm::StringRef word = peek();
    at += word.size();
    return word;
  }
  bool take(llvm::StringRef word) {
    if (peek() != word)
      return false;
    at += word.size();
    return true;
  }
  bool expect(llvm::StringRef word) {
    if (take(word))
      return true;
    llvm::StringRef found = peek();
    (void)fail(
        "'" + word + "' is expected " +
        (found.empty() ? llvm::Twine("at the end") : "before '" + found + "'"));
    return false;
  }

  std::optional<Node> binary(std::optional<Node> (Parser::*operand)(),
                             llvm::ArrayRef<llvm::StringRef> signs) {
    auto left = (this->*operand)();
    while (left && llvm::is_contained(signs, peek())) {
      if (++operators > mostOperators)
        return fail("it has more than " + llvm::Twine(mostOperators) +
                    " operators");
      Node made;
      made.kind = Node::Binary;
      made.name = next().str();
      auto right = (this->*operand)();
      if (!right)
        return std::nullopt;
      // A list of initializers would copy the trees.
      made.operands.push_back(std::move(*left));
      made.operands.push_back(std::move(*right));
      left = std::move(made);
    }
    return left;
  }
  std::optional<Node> comparison() {
    if (++depth > mostDepth)
      return fail("it is nested too deeply");
    auto made = binary(&Parser::summation, {"==", "!=", "<", "<=", ">", ">="});
    --depth;
    return made;
  }
  std::optional<Node> summation() { return binary(&Parser::term, {"+", "-"}); }
  std::optional<Node> term() {
    return binary(&Parser::factor, {"*", "/", "%"});
  }

  std::optional<Node> factor() {
    if (take("-")) {
      Node made;
      made.kind = Node::Negate;
      if (++depth > mostDepth)
        return fail("it is nested too deeply");
      auto operand = factor();
      --depth;
      if (!operand)
        return std::nullopt;
      made.operands = {std::move(*operand)};
      return made;
    }
    if (take("(")) {
      auto made = comparison();
      return made && expect(")") ? std::move(made) : std::nullopt;
    }
    llvm::StringRef word = next();
    if (word.empty())
      return fail("a value is expected at the end");
    if (llvm::isDigit(word[0]))
      return literal(word);
    if (llvm::isAlpha(word[0]) || word[0] == '_')
      return named(word);
    return fail("a value is expected before '" + word + "'");
  }

  std::optional<Node> literal(llvm::StringRef word) {
    Node made;
    made.kind = Node::Number;
    if (!word.getAsInteger(10, made.number)) {
      made.real = static_cast<double>(made.number);
      return made;
    }
    made.kind = Node::Real;
    if (word.getAsDouble(made.real))
      return fail("'" + word + "' is not a number");
    return made;
  }

  int32_t argumentOf(llvm::StringRef name) {
    for (BlockArgument argument : kernel.getBody().front().getArguments())
      if (kernel.getArgumentName(argument.getArgNumber()) == name)
        return static_cast<int32_t>(argument.getArgNumber());
    return -1;
  }

  std::optional<Node> named(llvm::StringRef word) {
    Node made;
    for (auto [number, variable] : llvm::enumerate(llvm::reverse(variables)))
      if (variable == word) {
        made.kind = Node::Variable;
        made.index = static_cast<int32_t>(variables.size() - 1 - number);
        return made;
      }
    if (int32_t argument = argumentOf(word); argument >= 0)
      return access(word, argument);
    bool isExtent = word == "extent" && isExtentGiven(kernel);
    if (word == "i" || word == "rank" || word == "size" || isExtent) {
      made.kind = word == "i"      ? Node::Element
                  : word == "rank" ? Node::Rank
                  : isExtent       ? Node::Extent
                                   : Node::Size;
      return made;
    }
    if (peek() != "(")
      return fail("'" + word +
                  "' is not an argument of the kernel, and none of i, rank and "
                  "size");
    if (word == "len")
      return length();
    if (word != "avg" && llvm::is_contained(getReductionNames(), word))
      return reduction(word);
    return call(word);
  }

  /// `x(rank)[place]`, `x[place]`, or a scalar.
  std::optional<Node> access(llvm::StringRef name, int32_t argument) {
    Node made;
    made.kind = Node::Access;
    made.index = argument;
    Type type = kernel.getBody().front().getArgument(argument).getType();
    reads.push_back(argument);
    if (type.isIntOrIndexOrFloat())
      return made;
    if (!isa<WindowType, MemRefType>(type))
      return fail("'" + name + "' holds no elements");
    Node own;
    own.kind = Node::Rank;
    made.operands.push_back(own);
    if (take("(")) {
      auto rank = comparison();
      if (!rank || !expect(")"))
        return std::nullopt;
      made.operands[0] = std::move(*rank);
    }
    if (!take("["))
      return fail("'" + name + "' is an array: say which element, as in " +
                  name + "(r)[i]");
    auto place = comparison();
    if (!place || !expect("]"))
      return std::nullopt;
    made.operands.push_back(std::move(*place));
    return made;
  }

  std::optional<Node> length() {
    Node made;
    made.kind = Node::Number;
    (void)take("(");
    llvm::StringRef name = next();
    int32_t argument = argumentOf(name);
    if (argument < 0)
      return fail("'" + name + "' is not an argument of the kernel");
    made.number =
        elementsOf(kernel.getBody().front().getArgument(argument).getType());
    if (made.number < 0)
      return fail("it is not known how many elements '" + name + "' has");
    made.real = static_cast<double>(made.number);
    return expect(")") ? std::optional(made) : std::nullopt;
  }

  std::optional<Node> call(llvm::StringRef name) {
    Node made;
    made.kind = name == "where" ? Node::Where : Node::Call;
    made.name = name == "abs" ? "absf" : name.str();
    (void)take("(");
    do {
      auto operand = comparison();
      if (!operand)
        return std::nullopt;
      made.operands.push_back(std::move(*operand));
    } while (take(","));
    if (made.kind == Node::Where && made.operands.size() != 3)
      return fail("where takes a condition and two values");
    return expect(")") ? std::optional(std::move(made)) : std::nullopt;
  }

  /// `sum(r, e)`, `sum(r, n, e)`; and `max(a, b)`.
  std::optional<Node> reduction(llvm::StringRef name) {
    size_t before = at;
    (void)take("(");
    llvm::StringRef variable = next();
    bool isLoop = !variable.empty() && !llvm::isDigit(variable[0]) &&
                  (llvm::isAlpha(variable[0]) || variable[0] == '_') &&
                  argumentOf(variable) < 0 && peek() == "," &&
                  !llvm::is_contained({"i", "rank", "size"}, variable) &&
                  !llvm::is_contained(variables, variable);
    if (!isLoop) {
      at = before;
      return call(name);
    }
    if (variables.size() == mostVariables)
      return fail("it has too many variables");
    Node made;
    made.kind = Node::Reduce;
    made.name = name.str();
    made.index = static_cast<int32_t>(variables.size());
    (void)take(",");
    // Without a number of its own, a variable runs over all ranks.
    Node count;
    count.kind = Node::Size;
    size_t body = at;
    variables.push_back(variable);
    auto operand = comparison();
    if (operand && take(",")) {
      // The first was the number, which does not depend on the variable.
      variables.pop_back();
      at = body;
      auto number = comparison();
      if (!number)
        return std::nullopt;
      count = std::move(*number);
      (void)take(",");
      variables.push_back(variable);
      operand = comparison();
    }
    variables.pop_back();
    if (!operand || !expect(")"))
      return std::nullopt;
    made.operands = {std::move(count), std::move(*operand)};
    return made;
  }

  KernelOp kernel;
  llvm::StringRef text;
  size_t at = 0;
  int depth = 0, operators = 0;
  llvm::SmallVector<llvm::StringRef> variables;
};
} // namespace

bool mlir::comms::check::isExtentGiven(KernelOp kernel) {
  return kernel->hasAttr("comms.run_time_extent");
}

FailureOr<Expression> Expression::parse(KernelOp kernel, int32_t output,
                                        llvm::StringRef text) {
  Parser parser(kernel, text);
  auto root = parser.parse();
  if (!root)
    return kernel.emitOpError("says what '")
           << kernel.getArgumentName(output) << "' holds by \"" << text
           << "\", which cannot be read: " << parser.mistake;
  Expression made;
  made.kernel = kernel;
  made.output = output;
  made.root = std::move(*root);
  made.reads = std::move(parser.reads);
  return made;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

namespace {
/// A number that grows by `slope` an element, or a value, for the elements from
/// the present one up to `end`. Of a place that data decide, the number is
/// added to the value, which is fixed.
struct Result {
  bool isValue = false;
  int64_t number = 0, slope = 0;
  Ref ref;
  bool isInteger = false;
  int64_t end = INT64_MAX;
};

class Evaluation {
public:
  Evaluation(KernelOp kernel, Values &values, int64_t rank, int64_t ranks,
             int32_t launch, const GivenNumbers &given, int64_t element,
             std::string &problem)
      : kernel(kernel), values(values), rank(rank), ranks(ranks),
        launch(launch), given(given), element(element), problem(problem) {}

  Result of(const Node &node);
  /// A value, whatever it is.
  Result valueOf(Result result);

private:
  Result fail(const llvm::Twine &what) {
    if (problem.empty())
      problem = what.str();
    Result made;
    made.isValue = true;
    made.ref = values.unknown(kernel);
    return made;
  }
  static Result number(int64_t value, int64_t slope = 0) {
    Result made;
    made.number = value;
    made.slope = slope;
    made.isInteger = true;
    return made;
  }
  Result access(const Node &node);
  Result placeOf(const Node &node);
  Result binary(const Node &node);
  Result numbers(const std::string &sign, Result left, Result right);
  Result compare(const std::string &sign, const Result &left,
                 const Result &right);
  Result reduce(const Node &node);
  Result computeReduction(const Node &node);
  Result apply(llvm::StringRef name, llvm::ArrayRef<Result> operands);

  KernelOp kernel;
  Values &values;
  int64_t rank, ranks;
  int32_t launch;
  const GivenNumbers &given;
  int64_t element;
  std::string &problem;
  llvm::SmallVector<int64_t> variables;
  /// Reductions that are the same for all elements.
  std::map<const Node *, Result> reductions;
};
} // namespace

Result Evaluation::valueOf(Result result) {
  if (result.isValue)
    return result;
  Result made = result;
  made.isValue = true;
  if (result.slope == 0) {
    made.ref = values.constant(static_cast<double>(result.number));
  } else if (result.slope == 1) {
    made.ref = values.moved(values.number(), result.number - element);
  } else {
    made.ref = values.constant(static_cast<double>(result.number));
    made.end = element + 1;
  }
  return made;
}

/// Summands that data decide, and those that are known.
Result Evaluation::placeOf(const Node &node) {
  if (node.kind == Node::Binary && node.name == "+") {
    Result left = placeOf(node.operands[0]), right = placeOf(node.operands[1]);
    Result made = numbers("+", left, right);
    made.isValue = left.isValue || right.isValue;
    made.ref = left.isValue && right.isValue
                   ? values.apply("add", {left.ref, right.ref})
               : left.isValue ? left.ref
                              : right.ref;
    return made;
  }
  Result made = of(node);
  if (!made.isValue)
    return made;
  Ref fixed = values.pin(made.ref, element);
  if (!(fixed == made.ref))
    made.end = element + 1;
  made.ref = fixed;
  return made;
}

Result Evaluation::apply(llvm::StringRef name,
                         llvm::ArrayRef<Result> operands) {
  Result made;
  made.isValue = made.isInteger = true;
  llvm::SmallVector<Ref> refs;
  for (const Result &operand : operands) {
    Result value = valueOf(operand);
    refs.push_back(value.ref);
    made.isInteger &= value.isInteger;
    made.end = std::min(made.end, value.end);
  }
  made.ref = values.apply(name, refs);
  return made;
}

Result Evaluation::access(const Node &node) {
  Type type = kernel.getBody().front().getArgument(node.index).getType();
  Result made;
  made.isValue = true;
  made.isInteger = isa<IntegerType, IndexType>(getElementTypeOrSelf(type));
  if (node.operands.empty()) {
    if (auto it = given.arguments.find(node.index); it != given.arguments.end())
      return number(it->second);
    made.ref = values.scalar(node.index, launch);
    return made;
  }
  if (auto window = dyn_cast<WindowType>(type))
    made.isInteger = isa<IntegerType>(window.getElementType());
  Result who = of(node.operands[0]), place = placeOf(node.operands[1]);
  std::string name = kernel.getArgumentName(node.index);
  if (who.isValue)
    return fail("the rank of '" + name + "' is not a number that is known");
  if (who.number < 0 || who.number >= ranks)
    return fail("'" + name + "' of rank " + llvm::Twine(who.number) +
                " is named, but there are " + llvm::Twine(ranks) + " ranks");
  made.end = std::min(who.slope == 0 ? who.end : element + 1, place.end);
  Ref array = values.input(node.index, who.number, launch);
  if (place.isValue) {
    Ref found = values.gather(array, place.ref, place.number);
    if (place.slope == 1)
      found = values.moved(found, -element);
    else
      found = values.pin(found, 0);
    if (place.slope > 1 || place.slope < 0)
      made.end = element + 1;
    made.ref = found;
    return made;
  }
  int64_t count = elementsOf(type);
  if (place.number < 0 || (count >= 0 && place.number >= count))
    return fail("element " + llvm::Twine(place.number) + " of '" + name +
                "' is named, which has " + llvm::Twine(count));
  if (place.slope == 0) {
    made.ref = values.pin(array, place.number);
    return made;
  }
  made.ref = values.moved(array, place.number - element);
  if (place.slope != 1)
    made.end = element + 1;
  else if (count >= 0)
    made.end = std::min(made.end, element + count - place.number);
  return made;
}

/// Where a comparison of numbers changes.
Result Evaluation::compare(const std::string &sign, const Result &left,
                           const Result &right) {
  int64_t apart = left.number - right.number, slope = left.slope - right.slope;
  bool holds = sign == "=="   ? apart == 0
               : sign == "!=" ? apart != 0
               : sign == "<"  ? apart < 0
               : sign == "<=" ? apart <= 0
               : sign == ">"  ? apart > 0
                              : apart >= 0;
  Result made = number(holds);
  made.end = std::min(left.end, right.end);
  if (slope == 0)
    return made;
  // It moves towards zero, where it may change, or away from it.
  bool towards = (apart > 0) != (slope > 0);
  if (apart == 0)
    made.end = std::min(made.end, element + 1);
  else if (towards)
    made.end =
        std::min(made.end, element + llvm::divideCeilSigned(std::abs(apart),
                                                            std::abs(slope)));
  return made;
}

Result Evaluation::numbers(const std::string &sign, Result left, Result right) {
  int64_t end = std::min(left.end, right.end);
  Result made = number(0);
  bool overflow = false;
  if (sign == "+" || sign == "-") {
    overflow =
        sign == "+"
            ? __builtin_add_overflow(left.number, right.number, &made.number)
            : __builtin_sub_overflow(left.number, right.number, &made.number);
    made.slope =
        sign == "+" ? left.slope + right.slope : left.slope - right.slope;
  } else if (sign == "*") {
    overflow = __builtin_mul_overflow(left.number, right.number, &made.number);
    if (left.slope != 0 && right.slope != 0) {
      end = element + 1;
      made.slope = 2;
    } else {
      made.slope = left.slope * right.number + right.slope * left.number;
    }
  } else {
    if (right.slope != 0)
      end = element + 1;
    if (right.number <= 0)
      return fail("it divides by " + llvm::Twine(right.number));
    int64_t quotient = llvm::divideFloorSigned(left.number, right.number);
    int64_t rest = left.number - quotient * right.number;
    bool isQuotient = sign == "/";
    made.number = isQuotient ? quotient : rest;
    // The rest of a number that grows by one grows until the next multiple.
    if (left.slope == 1) {
      end = std::min(end, element + right.number - rest);
      made.slope = isQuotient ? 0 : 1;
    } else if (left.slope != 0) {
      end = element + 1;
      made.slope = 0;
    }
  }
  if (overflow)
    return fail("a number in it leaves 64 bits");
  made.end = end;
  return made;
}

Result Evaluation::binary(const Node &node) {
  Result left = of(node.operands[0]), right = of(node.operands[1]);
  const std::string &sign = node.name;
  bool compares =
      sign == "==" || sign == "!=" || sign[0] == '<' || sign[0] == '>';
  if (!left.isValue && !right.isValue)
    return compares ? compare(sign, left, right) : numbers(sign, left, right);
  if (sign == "!=")
    return apply("not", {apply("equal", {left, right})});
  if (compares) {
    bool isTurned = sign[0] == '>';
    return apply(sign == "=="       ? "equal"
                 : sign.size() == 1 ? "less"
                                    : "at most",
                 {isTurned ? right : left, isTurned ? left : right});
  }
  if (sign == "%")
    return fail("'" + sign + "' takes numbers that are known, not values");
  bool isInteger =
      (left.isInteger || !left.isValue) && (right.isInteger || !right.isValue);
  llvm::StringRef name = sign == "+"   ? "add"
                         : sign == "-" ? "sub"
                         : sign == "*" ? "mul"
                         : isInteger   ? "divsi"
                                       : "div";
  return apply(name, {left, right});
}

/// Whether the element or a variable of an outer reduction occurs in it.
static bool isInvariant(const Node &node, int32_t bound) {
  if (node.kind == Node::Element ||
      (node.kind == Node::Variable && node.index < bound))
    return false;
  return llvm::all_of(node.operands, [&](const Node &operand) {
    return isInvariant(operand, bound);
  });
}

Result Evaluation::reduce(const Node &node) {
  if (!isInvariant(node, static_cast<int32_t>(variables.size())))
    return computeReduction(node);
  auto it = reductions.find(&node);
  if (it == reductions.end())
    it = reductions.try_emplace(&node, computeReduction(node)).first;
  return it->second;
}

Result Evaluation::computeReduction(const Node &node) {
  Result count = of(node.operands[0]);
  bool mayBeEmpty = node.name == "sum" || node.name == "prod";
  if (count.isValue || count.slope != 0 || count.number < (mayBeEmpty ? 0 : 1))
    return fail("the number of terms of '" + llvm::Twine(node.name) +
                "' is not known, or less than " + (mayBeEmpty ? "0" : "1"));
  llvm::StringRef name = llvm::StringSwitch<llvm::StringRef>(node.name)
                             .Case("sum", "add")
                             .Case("prod", "mul")
                             .Default(node.name);
  // Of no terms.
  Result total = number(node.name == "prod");
  size_t depth = variables.size();
  for (int64_t at = 0; at < count.number && problem.empty(); ++at) {
    variables.resize(depth);
    variables.push_back(at);
    Result next = of(node.operands[1]);
    total = at == 0 ? valueOf(next) : apply(name, {total, next});
  }
  variables.resize(depth);
  total.end = std::min(total.end, count.end);
  return total;
}

Result Evaluation::of(const Node &node) {
  switch (node.kind) {
  case Node::Number:
    return number(node.number);
  case Node::Real: {
    Result made;
    made.isValue = true;
    made.ref = values.constant(node.real);
    return made;
  }
  case Node::Element:
    return number(element, 1);
  case Node::Rank:
    return number(rank);
  case Node::Size:
    return number(ranks);
  case Node::Extent:
    return number(given.extent);
  case Node::Variable:
    return number(variables[node.index]);
  case Node::Access:
    return access(node);
  case Node::Binary:
    return binary(node);
  case Node::Negate: {
    Result operand = of(node.operands[0]);
    return operand.isValue ? apply("neg", {operand})
                           : numbers("-", number(0), operand);
  }
  case Node::Reduce:
    return reduce(node);
  case Node::Where: {
    Result condition = of(node.operands[0]);
    if (condition.isValue) {
      Result yes = valueOf(of(node.operands[1]));
      Result no = valueOf(of(node.operands[2]));
      yes.isInteger &= no.isInteger;
      yes.end = std::min({condition.end, yes.end, no.end});
      yes.ref = values.choose(condition.ref, yes.ref, no.ref);
      return yes;
    }
    if (condition.slope != 0)
      return fail("the condition of where is a number that changes");
    Result chosen = of(node.operands[condition.number ? 1 : 2]);
    chosen.end = std::min(chosen.end, condition.end);
    return chosen;
  }
  case Node::Call: {
    llvm::SmallVector<Result> operands;
    for (const Node &operand : node.operands)
      operands.push_back(of(operand));
    return apply(node.name, operands);
  }
  }
  llvm_unreachable("a kind of node");
}

Expected Expression::evaluate(Values &values, int64_t rank, int64_t ranks,
                              int32_t launch, const GivenNumbers &given,
                              int64_t begin, int64_t end,
                              std::string &problem) const {
  Evaluation evaluation(kernel, values, rank, ranks, launch, given, begin,
                        problem);
  Result result = evaluation.valueOf(evaluation.of(root));
  return {result.ref,
          std::clamp<int64_t>(result.end, begin + 1, std::max(end, begin + 1))};
}
