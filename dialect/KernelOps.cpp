//===- KernelOps.cpp - Kernels, roles and the visit of peers ----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Assumptions.h"
#include "dialect/Comms.h"
#include "dialect/Directives.h"
#include "dialect/Verify.h"
#include "dialect/Words.h"

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

/// Says of a kernel without comms.return what MLIR's verifier does not: what to
/// write, and where.
static LogicalResult checkEnd(Region &body, Location kernel) {
  if (!body.hasOneBlock())
    return success();
  Block &block = body.front();
  if (!block.empty() && block.back().mightHaveTrait<OpTrait::IsTerminator>())
    return success();
  return emitError(block.empty() ? kernel : block.back().getLoc())
         << "the kernel is not terminated: write comms.return after this";
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
                              "an argument of a kernel must have a type");
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
  Region &body = *result.addRegion();
  OperationHints hints(parser.getContext());
  if (parser.parseRegion(body, arguments))
    return failure();
  return checkEnd(body, parser.getEncodedSourceLoc(parser.getNameLoc()));
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

/// Windows, signals, counters, scalars, and arrays in plain memory.
static LogicalResult verifyArgumentType(KernelOp kernel, unsigned index) {
  Type type = kernel.getArgumentTypes()[index];
  if (isa<WindowType, SignalType, CounterType, FloatType, IndexType>(type) ||
      type.isSignlessInteger())
    return success();
  if (!isa<BaseMemRefType>(type))
    return kernel.emitOpError()
           << "C3: argument " << index << " is " << type
           << "; arguments are windows, memrefs, signals, counters, "
              "integers, floats and index";
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || !memref.getLayout().isIdentity() || memref.getMemorySpace() ||
      !isStorable(memref.getElementType()) ||
      !countBytes(memref.getShape(), memref.getElementType()))
    return kernel.emitOpError() << "C4: argument " << index << " is " << type
                                << "; a memref argument has a rank, identity "
                                   "layout, the default memory space, and "
                                   "floats or signless integers of 8 to 64 "
                                   "bits that fit in 2^63 bytes";
  return success();
}

/// A runtime binds arguments by name: each has one of its own.
static LogicalResult verifyArgumentNames(KernelOp kernel) {
  auto function = cast<FunctionOpInterface>(kernel.getOperation());
  llvm::StringSet<> seen;
  for (unsigned i = 0, e = kernel.getArgumentTypes().size(); i < e; ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(
        i, KernelOp::getArgumentNameAttrName());
    if (!name || name.getValue().empty())
      return kernel.emitOpError()
             << "C5: argument " << i
             << " has no name; give it a string attribute comms.name";
    if (!seen.insert(name.getValue()).second)
      return kernel.emitOpError()
             << "C5: two arguments have the name '" << name.getValue() << "'";
  }
  return success();
}

/// Checks the counts that a kernel's attributes state about its world: each is
/// at least 1.
static LogicalResult verifyWorld(KernelOp kernel) {
  constexpr int64_t largest = std::numeric_limits<int32_t>::max();
  for (auto [constraint, name, attribute] :
       {std::tuple("C6", "ranks", kernel.getRanksAttr()),
        std::tuple("C7", "lsa_size", kernel.getLsaSizeAttr()),
        std::tuple("C8", "blocks", kernel.getBlocksAttr())})
    if (attribute && (attribute.getInt() < 1 || attribute.getInt() > largest))
      return kernel.emitOpError()
             << constraint << ": " << name << " is " << attribute.getInt()
             << "; it must be 1 to " << largest;
  IntegerAttr ranks = kernel.getRanksAttr(), reach = kernel.getLsaSizeAttr();
  if (ranks && reach && ranks.getInt() % reach.getInt() != 0)
    return kernel.emitOpError()
           << "C7: lsa_size " << reach.getInt() << " does not divide "
           << ranks.getInt() << " ranks";
  return success();
}

/// Windows that lowering added say how their memory starts.
static LogicalResult verifyHiddenArguments(KernelOp kernel) {
  auto function = cast<FunctionOpInterface>(kernel.getOperation());
  for (unsigned i = 0, e = kernel.getArgumentTypes().size(); i < e; ++i) {
    Attribute hidden = function.getArgAttr(i, "comms.hidden");
    Attribute init = function.getArgAttr(i, "comms.init");
    if (!hidden && !init)
      continue;
    auto text = dyn_cast_or_null<StringAttr>(init);
    bool known =
        text && (text.getValue() == "zero" || text.getValue() == "poison");
    if (!isa_and_nonnull<UnitAttr>(hidden) || !known ||
        !isa<WindowType>(kernel.getArgumentTypes()[i]))
      return kernel.emitOpError()
             << "C9: argument " << i
             << " is hidden: it must be a window with the unit attribute "
                "comms.hidden and with comms.init \"zero\" or \"poison\"";
  }
  return success();
}

/// Peers can reach nothing but windows, so there is nothing else to guard.
static LogicalResult verifyHostArguments(KernelOp kernel) {
  auto function = cast<FunctionOpInterface>(kernel.getOperation());
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Attribute host = function.getArgAttr(i, "comms.host");
    if (host && !(isa<UnitAttr>(host) && isa<WindowType>(type)))
      return kernel.emitOpError() << "C11: argument " << i
                                  << " has comms.host, a unit attribute of "
                                     "windows";
  }
  return success();
}

bool mlir::comms::statesAssumption(KernelOp kernel, StringRef name) {
  auto stated = kernel->getAttrOfType<ArrayAttr>(kAssumesAttr);
  return stated &&
         llvm::is_contained(stated, StringAttr::get(kernel.getContext(), name));
}

void mlir::comms::stateAssumption(KernelOp kernel, StringRef name) {
  if (statesAssumption(kernel, name))
    return;
  SmallVector<Attribute> names;
  if (auto stated = kernel->getAttrOfType<ArrayAttr>(kAssumesAttr))
    llvm::append_range(names, stated);
  names.push_back(StringAttr::get(kernel.getContext(), name));
  kernel->setAttr(kAssumesAttr, ArrayAttr::get(kernel.getContext(), names));
}

std::string mlir::comms::sameOnRanks(StringRef name) {
  return ("same_on_ranks(" + name + ")").str();
}

static bool canBeStated(KernelOp kernel, StringRef name) {
  if (name == kPacketsCumulative)
    return true;
  ArrayRef<Type> types = kernel.getFunctionType().getInputs();
  return llvm::any_of(llvm::enumerate(types), [&](const auto &argument) {
    return isa<MemRefType>(argument.value()) &&
           name == sameOnRanks(kernel.getArgumentName(argument.index()));
  });
}

static LogicalResult verifyAssumptions(KernelOp kernel) {
  Attribute stated = kernel->getAttr(kAssumesAttr);
  auto names = dyn_cast_or_null<ArrayAttr>(stated);
  if (!stated || (names && llvm::all_of(names, [&](Attribute name) {
                    auto text = dyn_cast<StringAttr>(name);
                    return text && canBeStated(kernel, text.getValue());
                  })))
    return success();
  return kernel.emitOpError()
         << "C12: " << kAssumesAttr << " is " << stated
         << "; it must be an array of assumptions that a kernel can state: \""
         << kPacketsCumulative
         << "\", or \"same_on_ranks(x)\" of an array x among its arguments";
}

/// Kernels become symbols of machine code, next to the runtime's and those of
/// what compilers call.
static LogicalResult verifyName(KernelOp kernel) {
  StringRef name = kernel.getSymName();
  if (name.empty())
    return kernel.emitOpError("C10: a kernel's name must not be empty");
  if (name.contains('\0')) // Names of machine code end there.
    return kernel.emitOpError(
        "C10: a kernel's name must not contain a zero byte");
  for (StringRef reserved : {"__", "commsir_", "llvm."})
    if (name.starts_with(reserved))
      return kernel.emitOpError() << "C10: names that begin with '" << reserved
                                  << "' are reserved; rename the kernel";
  return success();
}

LogicalResult KernelOp::verify() {
  if (getBody().empty())
    return emitOpError("C1: a kernel must have a body");
  if (!getFunctionType().getResults().empty())
    return emitOpError() << "C2: a kernel cannot have results; it writes to "
                            "windows and memrefs";
  for (unsigned i = 0, e = getArgumentTypes().size(); i < e; ++i)
    if (failed(verifyArgumentType(*this, i)))
      return failure();
  return failure(
      failed(verifyName(*this)) || failed(verifyArgumentNames(*this)) ||
      failed(verifyWorld(*this)) || failed(verifyHiddenArguments(*this)) ||
      failed(verifyHostArguments(*this)) || failed(verifyAssumptions(*this)));
}

// The implicit terminator of `role` and `for_peers` yields nothing.
void YieldOp::build(OpBuilder &, OperationState &) {}

LogicalResult ReturnOp::verify() {
  if (isa_and_nonnull<KernelOp>((*this)->getParentOp()))
    return success();
  return emitOpError("C1: may only terminate the body of a comms.kernel");
}

LogicalResult YieldOp::verify() {
  Operation *parent = (*this)->getParentOp();
  if (isa_and_nonnull<RoleOp, ForPeersOp>(parent)) {
    if (getNumOperands() == 0)
      return success();
    return emitOpError() << "C2: " << parent->getName()
                         << " has no results, but " << getNumOperands()
                         << " values are yielded";
  }
  if (isa_and_nonnull<CollectiveOpInterface>(parent))
    return success();
  return emitOpError("C1: may only terminate a region of a collective, of "
                     "comms.role or of comms.for_peers");
}

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

LogicalResult RoleOp::verify() {
  int64_t first = getFirstAttr().getInt(), last = getLastAttr().getInt();
  if (first < 0 || last <= first)
    return emitOpError()
           << "C1: blocks " << first << " to " << last
           << ": the first is at least 0 and less than the last, which is not "
              "included";
  auto kernel = dyn_cast_or_null<KernelOp>((*this)->getParentOp());
  if (!kernel)
    return emitOpError("C2: must be at the top level of a comms.kernel");
  IntegerAttr blocks = kernel.getBlocksAttr();
  if (blocks && last > blocks.getInt())
    return emitOpError() << "C3: blocks " << first << " to " << last
                         << " of a kernel of " << blocks.getInt();
  if (getName().empty())
    return emitOpError("C4: a role must have a name");
  return success();
}

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

LogicalResult ForPeersOp::verify() {
  Block &body = getBody().front();
  if (body.getNumArguments() == 1 && body.getArgument(0).getType().isIndex())
    return success();
  return emitOpError(
      "C1: the region has one argument, the peer's rank, of type index");
}
