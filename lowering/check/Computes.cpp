//===- Computes.cpp - Collectives as expressions --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the attribute `comms.computes`. A collective in it, as in
// "reduce_scatter(sum, x, outer 2)", stands for an expression.
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Expression.h"

#include "dialect/Collectives.h"
#include "lowering/analysis/Accesses.h"
#include "lowering/check/ProgramBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;
using llvm::StringRef;

namespace {
/// What a collective makes of X on a rank: R is its number in the team, N the
/// team's size, M(e) the world rank of member e, S(e)D the reduction of e over
/// the members r, K the root, Y what the output held, L the elements of a part.
struct Row {
  const char *name;
  const char *text;
  /// L, unless launches give it, and the parts of the output.
  const char *length, *parts;

  const CollectiveKind &kind() const { return *findCollectiveKind(name); }
};

/// One collective as it was written.
struct ParsedCollective {
  const Row *row = nullptr;
  std::string kind, input, root = "0";
  /// Splits of the world, from the first to the last: outer or inner, and by
  /// what.
  SmallVector<std::pair<bool, int64_t>, 2> splits;
};
} // namespace

static constexpr Row rows[] = {
    {"all_reduce", "S(X(M(r))[i])D", "len(Y)", "1"},
    {"reduce_scatter", "S(X(M(r))[R * L + i])D", "len(Y)", "1"},
    {"all_gather", "X(M(i / L))[i % L]", "len(X)", "N"},
    {"all_to_all", "X(M(i / L))[R * L + i % L]", "(len(X) / N)", "N"},
    {"broadcast", "X(M(K))[i]", "len(Y)", "1"},
    {"reduce", "where(R == K, S(X(M(r))[i])D, Y[i])", "len(Y)", "1"},
    {"gather", "where(R == K, X(M(i / L))[i % L], Y[i])", "len(X)", "N"},
    {"scatter", "X(M(K))[R * L + i]", "len(Y)", "1"},
};

/// Whether `text` names a collective; `mistake` says what is wrong with it.
static std::optional<ParsedCollective> readCollective(StringRef text,
                                                      std::string &mistake) {
  text = text.trim();
  StringRef name = text.take_until([](char c) { return c == '('; });
  const Row *row = llvm::find_if(
      rows, [&](const Row &one) { return name.trim() == one.name; });
  if (row == std::end(rows) || !text.ends_with(")"))
    return std::nullopt;
  ParsedCollective collective;
  collective.row = row;
  SmallVector<StringRef> parts;
  text.drop_front(name.size() + 1).drop_back().split(parts, ',', -1, false);
  auto fail = [&](const llvm::Twine &why) {
    mistake = why.str();
    return collective;
  };
  if (row->kind().reduces) {
    auto kinds = getReductionNames();
    if (parts.empty() || !llvm::is_contained(kinds, parts.front().trim()))
      return fail("its first argument must be one of " +
                  llvm::join(kinds, ", "));
    collective.kind = parts.front().trim().str();
    parts.erase(parts.begin());
  }
  for (StringRef part : parts) {
    part = part.trim();
    auto [word, number] = part.split(' ');
    int64_t factor = 0;
    bool isSplit = (word == "inner" || word == "outer");
    if (isSplit && !number.trim().getAsInteger(10, factor) && factor > 0)
      collective.splits.emplace_back(word == "outer", factor);
    else if (word == "root" && !number.trim().getAsInteger(10, factor))
      collective.root = std::to_string(factor);
    else if (collective.input.empty() && !part.contains(' '))
      collective.input = part.str();
    else
      return fail("'" + part +
                  "' in it is neither an array, nor 'root 0', "
                  "'inner 2' or 'outer 2'");
  }
  return collective;
}

/// The expression of it.
static std::string writeOut(const ParsedCollective &collective,
                            StringRef output, bool isExtent) {
  // Of the team so far: members are first + stride * number.
  std::string first = "0", stride = "1", size = "size", number = "rank";
  for (auto [isOuter, factor] : collective.splits) {
    std::string in =
        llvm::formatv("({0} {1} {2})", number, isOuter ? "%" : "/", factor);
    if (!isOuter)
      in += " * " + std::to_string(factor);
    first = llvm::formatv("({0} + {1} * {2})", first, in, stride);
    if (isOuter)
      stride = llvm::formatv("({0} * {1})", stride, factor);
    size = isOuter ? std::string(llvm::formatv("({0} / {1})", size, factor))
                   : std::to_string(factor);
    number =
        llvm::formatv("({0} {1} {2})", number, isOuter ? "/" : "%", factor);
  }
  bool isAverage = collective.kind == "avg";
  std::string text, pattern = collective.row->text;
  std::string length = isExtent ? "extent" : collective.row->length;
  if (isExtent) // Parts are packed; what lies behind them stays.
    pattern = llvm::formatv("where(i < {0} * L, {1}, Y[i])",
                            collective.row->parts, pattern);
  for (size_t found = 0;
       (found = pattern.find('L', found)) != std::string::npos;
       found += length.size())
    pattern.replace(found, 1, length);
  for (const char *at = pattern.c_str(); *at; ++at)
    switch (*at) {
    case 'X':
      text += collective.input;
      break;
    case 'Y':
      text += output;
      break;
    case 'R':
      text += number;
      break;
    case 'N':
      text += size;
      break;
    case 'K':
      text += collective.root;
      break;
    case 'M':
      text += collective.splits.empty() ? "" : first + " + " + stride + " * ";
      break;
    case 'S':
      text += (isAverage ? "sum" : collective.kind) + "(r, " + size + ", ";
      ++at; // Its parenthesis.
      break;
    case 'D':
      text += isAverage ? " / " + size : "";
      break;
    default:
      text += *at;
    }
  return text;
}

namespace {
/// What a program does to its arrays.
struct ArrayUse {
  bool reads = false, writes = false;
};
} // namespace

static std::vector<ArrayUse> usesOf(const Program &program) {
  std::vector<ArrayUse> uses(program.arguments.size());
  for (const Action &action : program.actions)
    for (const RangePlan &range : action.ranges) {
      if (!range.used || range.memory.argument < 0)
        continue;
      ArrayUse &use = uses[range.memory.argument];
      (range.write ? use.writes : use.reads) = true;
      use.reads |= isa<MultimemReduceOp>(action.op);
    }
  return uses;
}

static Type elementTypeOf(Type type) {
  auto window = dyn_cast<WindowType>(type);
  return window ? window.getElementType() : getElementTypeOrSelf(type);
}

/// The array that a kernel of one collective reads or writes: the only one of
/// which it does nothing else, or the only one with which it does both. -1: it
/// is not clear which.
static int32_t chooseArray(const Program &program, bool isOutput,
                           int32_t output) {
  KernelOp kernel = program.kernel;
  auto types = kernel.getFunctionType().getInputs();
  std::vector<ArrayUse> uses = usesOf(program);
  for (bool both : {false, true}) {
    SmallVector<int32_t> found;
    for (auto [at, use] : llvm::enumerate(uses)) {
      bool fits = isOutput ? use.writes && use.reads == both
                           : use.reads && use.writes == both;
      fits &= elementsOf(types[at]) > 0 && !program.arguments[at].hasMail;
      fits &=
          isOutput || elementTypeOf(types[at]) == elementTypeOf(types[output]);
      if (fits)
        found.push_back(static_cast<int32_t>(at));
    }
    if (found.size() == 1)
      return found.front();
    if (found.size() > 1)
      return -1;
  }
  return -1;
}

static LogicalResult add(const Program &program, int32_t output, StringRef text,
                         std::vector<Expression> &into) {
  KernelOp kernel = program.kernel;
  std::string mistake, written = text.str();
  if (auto collective = readCollective(text, mistake)) {
    if (mistake.empty() && collective->input.empty()) {
      int32_t input = chooseArray(program, /*isOutput=*/false, output);
      if (input < 0)
        mistake = "it is not clear which array goes in: name it, as in "
                  "all_reduce(sum, x)";
      else
        collective->input = kernel.getArgumentName(input);
    }
    if (!mistake.empty())
      return kernel.emitOpError("says that it computes \"")
             << text << "\": " << mistake;
    if (BlockArgument root = findRootArgument(kernel);
        root && collective->root == "0")
      collective->root = kernel.getArgumentName(root.getArgNumber());
    written = writeOut(*collective, kernel.getArgumentName(output),
                       isExtentGiven(kernel));
  }
  auto expression = Expression::parse(kernel, output, written);
  if (failed(expression))
    return failure();
  into.push_back(std::move(*expression));
  return success();
}

FailureOr<std::vector<Expression>>
mlir::comms::check::readComputes(const Program &program) {
  KernelOp kernel = program.kernel;
  std::vector<Expression> found;
  Attribute attribute = kernel->getAttr(kComputesAttr);
  if (!attribute)
    return found;
  if (auto text = dyn_cast<StringAttr>(attribute)) {
    int32_t output = chooseArray(program, /*isOutput=*/true, -1);
    if (output < 0)
      return kernel.emitOpError("says that it computes ")
             << text
             << ", but it is not clear in which array: say {y = " << text
             << "}";
    if (failed(add(program, output, text.getValue(), found)))
      return failure();
    return found;
  }
  auto outputs = dyn_cast<DictionaryAttr>(attribute);
  if (!outputs)
    return kernel.emitOpError("has ")
           << kComputesAttr << " = " << attribute
           << "; it is a collective, \"all_reduce(sum)\", or says by an "
              "output's "
              "name what element i of it is: {y = \"sum(r, x(r)[i])\"}";
  for (NamedAttribute entry : outputs) {
    int32_t output = -1;
    for (BlockArgument argument : kernel.getBody().front().getArguments())
      if (kernel.getArgumentName(argument.getArgNumber()) == entry.getName())
        output = static_cast<int32_t>(argument.getArgNumber());
    Type type = output < 0 ? Type() : kernel.getFunctionType().getInput(output);
    if (!type || elementsOf(type) < 0)
      return kernel.emitOpError("says in ")
             << kComputesAttr << " what '" << entry.getName().getValue()
             << "' holds, which is not an array among its arguments whose "
                "number "
                "of "
                "elements is known";
    auto text = dyn_cast<StringAttr>(entry.getValue());
    if (!text)
      return kernel.emitOpError("says in ")
             << kComputesAttr << " of '" << entry.getName().getValue() << "' "
             << entry.getValue() << ", which is not a string";
    if (failed(add(program, output, text.getValue(), found)))
      return failure();
  }
  return found;
}
