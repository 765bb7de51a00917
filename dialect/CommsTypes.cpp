//===- CommsTypes.cpp - Types of comms --------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Spelling.h"
#include "dialect/Verify.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::comms;

#define GET_TYPEDEF_CLASSES
#include "dialect/CommsTypes.cpp.inc"

void CommsDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/CommsTypes.cpp.inc"
      >();
}

/// The mnemonics of types.
template <typename... Types>
static SmallVector<StringRef> getMnemonics() {
  return {Types::getMnemonic()...};
}

Type CommsDialect::parseType(DialectAsmParser &parser) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  Type type;
  if (generatedTypeParser(parser, &word, type).has_value())
    return type;
  parser.emitError(loc) << "unknown type of comms: "
                        << commsir::describeUnknown(word, getMnemonics<
#define GET_TYPEDEF_LIST
#include "dialect/CommsTypes.cpp.inc"
                                                              >());
  return {};
}

void CommsDialect::printType(Type type, DialectAsmPrinter &printer) const {
  (void)generatedTypePrinter(type, printer);
}

//===----------------------------------------------------------------------===//
// Window
//===----------------------------------------------------------------------===//

Type WindowType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() || parser.parseDimensionList(shape) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  return parser.getChecked<WindowType>(parser.getContext(), shape, elementType);
}

void WindowType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t dim : getShape()) {
    if (ShapedType::isDynamic(dim))
      printer << '?';
    else
      printer << dim;
    printer << 'x';
  }
  printer << getElementType() << '>';
}

LogicalResult WindowType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType) {
  if (shape.empty())
    return emitError()
           << "window C1: a window must have at least one dimension; "
              "write 1 for a scalar";
  for (int64_t dim : shape)
    if (dim < 0 && !ShapedType::isDynamic(dim))
      return emitError() << "window C1: dimension " << dim << " is negative";
  if (!isStorable(elementType))
    return emitError() << "window C2: elements are floats or signless integers "
                          "of 8, 16, 32 or "
                          "64 bits, not "
                       << elementType;
  if (!countBytes(shape, elementType))
    return emitError() << "window C3: a rank's part does not fit in 2^63 bytes";
  return success();
}

MemRefType WindowType::getLocalType() const {
  return MemRefType::get(getShape(), getElementType());
}

bool WindowType::hasStaticShape() const {
  return !ShapedType::isDynamicShape(getShape());
}

int64_t WindowType::getNumElements() const {
  return ShapedType::getNumElements(getShape());
}

//===----------------------------------------------------------------------===//
// Signal and counter
//===----------------------------------------------------------------------===//

/// Checks the number of cells; more than 2^31 would not be a count but a
/// mistake.
static LogicalResult verifyCells(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef what, int64_t count) {
  if (count >= 1 && count <= std::numeric_limits<int32_t>::max())
    return success();
  return emitError() << what << " C1: number of cells is " << count
                     << "; it must be 1 to 2147483647";
}

LogicalResult SignalType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t count) {
  return verifyCells(emitError, "signal", count);
}

LogicalResult CounterType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t count) {
  return verifyCells(emitError, "counter", count);
}

//===----------------------------------------------------------------------===//
// Channel
//===----------------------------------------------------------------------===//

Type ChannelType::parse(AsmParser &parser) {
  std::string protocol;
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() || parser.parseKeywordOrString(&protocol) ||
      parser.parseComma())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  if (shape.size() != 1) {
    parser.emitError(loc, "a channel's tile has one dimension, as in 256xf32");
    return {};
  }
  return parser.getChecked<ChannelType>(
      parser.getContext(), StringAttr::get(parser.getContext(), protocol),
      shape[0], elementType);
}

void ChannelType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printKeywordOrString(getProtocol().getValue());
  printer << ", " << getTileSize() << 'x' << getElementType() << '>';
}

LogicalResult ChannelType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  StringAttr protocol, int64_t tileSize,
                                  Type elementType) {
  if (!protocol || protocol.getValue().empty())
    return emitError() << "channel C1: a channel must name its protocol";
  if (tileSize < 1)
    return emitError()
           << "channel C2: a tile must have at least one element, not "
           << tileSize;
  if (!isStorable(elementType))
    return emitError() << "channel C3: elements are floats or signless "
                          "integers of 8, 16, 32 or "
                          "64 bits, not "
                       << elementType;
  if (!countBytes(tileSize, elementType))
    return emitError() << "channel C4: a tile does not fit in 2^63 bytes";
  return success();
}

RankedTensorType ChannelType::getTileType() const {
  return RankedTensorType::get({getTileSize()}, getElementType());
}
