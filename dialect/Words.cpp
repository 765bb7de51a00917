//===- Words.cpp - Words of the assembly format ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Words.h"

#include "dialect/Spelling.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

FailureOr<unsigned> mlir::comms::parseWordOf(AsmParser &parser, StringRef what,
                                             ArrayRef<StringRef> words) {
  SMLoc loc = parser.getCurrentLocation();
  std::string word;
  if (failed(parser.parseOptionalKeywordOrString(&word)))
    return parser.emitError(loc, "expected the ")
           << what << ": one of " << llvm::join(words, ", ");
  const StringRef *found = llvm::find(words, word);
  if (found == words.end())
    return parser.emitError(loc, "got the unknown ")
           << what << ' ' << commsir::describeUnknown(word, words);
  return unsigned(found - words.begin());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// "; did you mean 'comms.all_reduce'?", or `otherwise` if no operation of a
/// loaded dialect has a similar name. A name without a dialect's prefix is
/// taken for one of this dialect.
static std::string suggestOperation(MLIRContext *context, StringRef name,
                                    StringRef otherwise = "") {
  std::string whole = name.str();
  if (!name.contains('.'))
    whole = (CommsDialect::getDialectNamespace() + "." + name).str();
  SmallVector<StringRef> known;
  for (RegisteredOperationName op : context->getRegisteredOperations())
    known.push_back(op.getStringRef());
  return commsir::didYouMean(whole, known, otherwise);
}

/// Adds to an error of MLIR's parser what its author may have meant.
static void addHint(Diagnostic &diagnostic, MLIRContext *context) {
  std::string text = diagnostic.str();
  StringRef rest = text;
  bool noDialect = rest.starts_with("Dialect `");
  if (!noDialect && !rest.contains("' is unknown"))
    return;
  if (rest.contains("did you mean") || !rest.contains("custom op '"))
    return;
  StringRef name = rest.split("custom op '").second.split('\'').first;
  if (!name.contains('.'))
    diagnostic << ": the operation before it does not take the word '" << name
               << "' here, and no operation begins with it";
  diagnostic << suggestOperation(context, name);
}

OperationHints::OperationHints(MLIRContext *context)
    : handler(context, [context](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          addHint(diagnostic, context);
        return failure(); // The next handler reports it.
      }) {}

std::optional<Dialect::ParseOpHook>
CommsDialect::getParseOperationHook(StringRef name) const {
  return [](OpAsmParser &parser, OperationState &state) -> ParseResult {
    return parser.emitError(parser.getNameLoc(), "is unknown")
           << suggestOperation(parser.getContext(), state.name.getStringRef(),
                               "; comms has no such operation");
  };
}

//===----------------------------------------------------------------------===//
// Attributes of operations
//===----------------------------------------------------------------------===//

/// The names of attributes that have a meaning on the operation.
static SmallVector<StringRef> getAttributeNames(Operation *op) {
  SmallVector<StringRef> known = {SymbolTable::getVisibilityAttrName()};
  for (StringAttr inherent : op->getName().getAttributeNames())
    known.push_back(inherent);
  // The lowering chooses an algorithm for every collective.
  if (isa<SendRecvOp>(op))
    known.push_back("algorithm");
  return known;
}

LogicalResult mlir::comms::verifyAttributeNames(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    StringRef name = attribute.getName();
    if (name.contains('.'))
      continue;
    SmallVector<StringRef> known = getAttributeNames(op);
    if (llvm::is_contained(known, name))
      continue;
    return op->emitOpError("has no attribute '")
           << name << "'"
           << commsir::didYouMean(name, known,
                                  "; attributes for other tools need a "
                                  "prefix, as in 'tool.name'");
  }
  return success();
}
