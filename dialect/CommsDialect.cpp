//===- CommsDialect.cpp - The comms dialect ---------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/Directives.h"
#include "dialect/Spelling.h"
#include "dialect/Words.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;

#include "dialect/CommsDialect.cpp.inc"

#include "dialect/CommsEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/CommsAttrs.cpp.inc"

#include "dialect/CommsInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/CommsOps.cpp.inc"

void CommsDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/CommsAttrs.cpp.inc"
      >();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/CommsOps.cpp.inc"
      >();
}

/// The mnemonics of attributes.
template <typename... Attrs>
static SmallVector<StringRef> getMnemonics() {
  return {Attrs::getMnemonic()...};
}

Attribute CommsDialect::parseAttribute(DialectAsmParser &parser,
                                       Type type) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  Attribute attribute;
  if (generatedAttributeParser(parser, &word, type, attribute).has_value())
    return attribute;
  parser.emitError(loc) << "unknown attribute of comms: "
                        << commsir::describeUnknown(word, getMnemonics<
#define GET_ATTRDEF_LIST
#include "dialect/CommsAttrs.cpp.inc"
                                                              >());
  return {};
}

void CommsDialect::printAttribute(Attribute attribute,
                                  DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attribute, printer);
}

//===----------------------------------------------------------------------===//
// Gin
//===----------------------------------------------------------------------===//

/// Parses `<context_id = 1, backend = proxy, fence = gpu>`, of which any may be
/// absent.
Attribute GinAttr::parse(AsmParser &parser, Type) {
  int64_t contextId = 0;
  GinBackend backend = GinBackend::Any;
  MemoryScope fence = MemoryScope::Sys;
  SmallVector<StringRef> left = {"context_id", "backend", "fence"};
  auto parseEnum = [&](auto &value, StringRef what) -> ParseResult {
    auto word = parseWord<std::decay_t<decltype(value)>>(parser, what);
    return failed(word) ? failure() : (value = *word, ParseResult(success()));
  };
  auto parseParameter = [&]() -> ParseResult {
    FailureOr<unsigned> index = parseWordOf(parser, "parameter of gin", left);
    if (failed(index) || parser.parseEqual())
      return failure();
    StringRef name = left[*index];
    left.erase(left.begin() + *index);
    if (name == "context_id")
      return parser.parseInteger(contextId);
    return name == "backend" ? parseEnum(backend, "GIN backend")
                             : parseEnum(fence, "PTX memory scope");
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseParameter))
    return {};
  return get(parser.getContext(), contextId, backend, fence);
}

void GinAttr::print(AsmPrinter &printer) const {
  SmallVector<std::string> parameters;
  if (getContextId() != 0)
    parameters.push_back("context_id = " + std::to_string(getContextId()));
  if (getBackend() != GinBackend::Any)
    parameters.push_back(("backend = " + stringifyEnum(getBackend())).str());
  if (getFence() != MemoryScope::Sys)
    parameters.push_back(("fence = " + stringifyEnum(getFence())).str());
  printer << '<' << llvm::join(parameters, ", ") << '>';
}

Operation *CommsDialect::materializeConstant(OpBuilder &builder,
                                             Attribute value, Type type,
                                             Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
