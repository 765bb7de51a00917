//===- KernelOps.cpp - Kernels, roles and the visit of peers --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/Directives.h"

#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// kernel
//===----------------------------------------------------------------------===//

std::string KernelOp::getArgumentName(unsigned index) {
  // The printer of IR that failed to verify comes here too: trust nothing.
  ArrayAttr all = getArgAttrsAttr();
  auto attributes = all && index < all.size()
                        ? dyn_cast<DictionaryAttr>(all[index])
                        : nullptr;
  if (auto name = attributes
                      ? attributes.getAs<StringAttr>(getArgumentNameAttrName())
                      : nullptr)
    return name.str();
  return "arg" + std::to_string(index);
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  for (BlockArgument argument : region.front().getArguments())
    setName(argument, getArgumentName(argument.getArgNumber()));
}

/// The argument's attributes with `comms.name`: the SSA name unless one is
/// given.
static DictionaryAttr nameArgument(Builder &builder,
                                   const OpAsmParser::Argument &argument) {
  NamedAttrList attributes(argument.attrs);
  StringRef key = KernelOp::getArgumentNameAttrName();
  if (!attributes.get(key))
    attributes.set(key,
                   builder.getStringAttr(argument.ssaName.name.drop_front()));
  return attributes.getDictionary(builder.getContext());
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  (void)impl::parseOptionalVisibilityKeyword(parser, result.attributes);
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true,
                               /*allowAttrs=*/true))
    return failure();
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  for (const OpAsmParser::Argument &argument : arguments) {
    if (!argument.type)
      return parser.emitError(argument.ssaName.location,
                              "an argument of a kernel has a type");
    types.push_back(argument.type);
    attributes.push_back(nameArgument(builder, argument));
  }
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(builder.getFunctionType(types, {})));
  if (!attributes.empty())
    result.addAttribute(getArgAttrsAttrName(result.name),
                        builder.getArrayAttr(attributes));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments);
}

/// The attributes that the text needs: `comms.name` is left out when the
/// printed SSA name says the same.
static SmallVector<NamedAttribute>
getPrintedAttributes(OpAsmPrinter &printer, KernelOp kernel,
                     BlockArgument argument) {
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  printer.printOperand(argument, stream);
  SmallVector<NamedAttribute> kept;
  auto function = cast<FunctionOpInterface>(kernel.getOperation());
  for (NamedAttribute attribute :
       function.getArgAttrs(argument.getArgNumber())) {
    auto text = dyn_cast<StringAttr>(attribute.getValue());
    bool said = attribute.getName() == KernelOp::getArgumentNameAttrName() &&
                text && printed == ("%" + text.getValue()).str();
    if (!said)
      kept.push_back(attribute);
  }
  return kept;
}

void KernelOp::print(OpAsmPrinter &printer) {
  StringRef visibilityName = SymbolTable::getVisibilityAttrName();
  if (auto visibility = (*this)->getAttrOfType<StringAttr>(visibilityName))
    printer << ' ' << visibility.getValue();
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(getArguments(), printer, [&](BlockArgument argument) {
    printer.printRegionArgument(argument,
                                getPrintedAttributes(printer, *this, argument));
  });
  printer << ')';
  function_interface_impl::printFunctionAttributes(
      printer, *this,
      {visibilityName, getFunctionTypeAttrName(), getArgAttrsAttrName(),
       getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/true);
}

LogicalResult KernelOp::verify() { return success(); }

// The implicit terminator of `role` and `for_peers` yields nothing.
void YieldOp::build(OpBuilder &, OperationState &) {}

LogicalResult YieldOp::verify() { return success(); }

//===----------------------------------------------------------------------===//
// role
//===----------------------------------------------------------------------===//

void RoleOp::getSuccessorRegions(RegionBranchPoint point,
                                 SmallVectorImpl<RegionSuccessor> &regions) {
  // Blocks outside [first, last) skip the region.
  if (point.isParent())
    regions.emplace_back(&getBody());
  regions.emplace_back(getOperation(), getOperation()->getResults());
}

LogicalResult RoleOp::verify() { return success(); }

//===----------------------------------------------------------------------===//
// for_peers
//===----------------------------------------------------------------------===//

ParseResult mlir::comms::parsePeerRegion(OpAsmParser &parser, Region &body) {
  OpAsmParser::Argument peer;
  if (parser.parseKeyword("as") || parser.parseArgument(peer))
    return failure();
  peer.type = parser.getBuilder().getIndexType();
  if (parser.parseRegion(body, peer))
    return failure();
  ForPeersOp::ensureTerminator(body, parser.getBuilder(),
                               parser.getEncodedSourceLoc(parser.getNameLoc()));
  return success();
}

void mlir::comms::printPeerRegion(OpAsmPrinter &printer, Operation *op,
                                  Region &body) {
  printer << "as ";
  printer.printRegionArgument(body.getArgument(0), {}, /*omitType=*/true);
  printer << ' ';
  Operation *end = body.front().getTerminator();
  bool plain = end->getAttrDictionary().empty() && end->getNumOperands() == 0;
  printer.printRegion(body, /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/!plain);
}

LogicalResult ForPeersOp::verify() { return success(); }
