//===- KernelBase.cpp - The base of every target's lowering ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/target/KernelBase.h"

#include "lowering/analysis/Writes.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::target;

KernelBase::KernelBase(KernelOp kernel, const LLVMTypeConverter &types,
                       TargetNames names)
    : kernel(kernel), types(types), rewriter(kernel.getContext()),
      teams(names.kernel), names(names), written(findWrittenArguments(kernel)) {
}

//===----------------------------------------------------------------------===//
// Constants and sites
//===----------------------------------------------------------------------===//

/// Constants stand once, at the function's start.
Value KernelBase::constant(IntegerAttr value) {
  Value &known = constants[value];
  if (!known) {
    Block &entry = function.getBody().front();
    OpBuilder start(&entry, entry.begin());
    known = arith::ConstantOp::create(start, function.getLoc(), value);
  }
  return known;
}

Value KernelBase::constI64(int64_t value, ImplicitLocOpBuilder &b) {
  return constant(b.getI64IntegerAttr(value));
}

Value KernelBase::constI32(int64_t value, ImplicitLocOpBuilder &b) {
  return constant(b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value KernelBase::constIndex(int64_t value, ImplicitLocOpBuilder &b) {
  return constant(b.getIndexAttr(value));
}

Value KernelBase::toI64(Value index, ImplicitLocOpBuilder &b) {
  if (!index.getType().isIndex())
    return index;
  return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), index);
}

/// The first place in a file that `location` names; null: none.
static FileLineColLoc findFile(Location location) {
  FileLineColLoc found;
  location->walk([&](Location inner) {
    found = dyn_cast<FileLineColLoc>(inner);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

Value KernelBase::siteOf(Operation *op, ImplicitLocOpBuilder &b,
                         StringRef detail) {
  std::string where = "unknown location";
  if (FileLineColLoc file = findFile(op->getLoc()))
    where = (file.getFilename().strref() + ":" + Twine(file.getLine()) + ":" +
             Twine(file.getColumn()))
                .str();
  std::string name = op->getName().getStringRef().str();
  auto [it, isNew] = siteIds.try_emplace(
      name + "\n" + where + "\n" + detail.str(), int32_t(sites.size()));
  if (isNew)
    sites.push_back(rewriter.getStrArrayAttr({name, where, detail}));
  return constI32(it->second, b);
}

void KernelBase::replaceToken(Operation *op, Value number,
                              ImplicitLocOpBuilder &b) {
  if (!op->use_empty()) {
    if (!number)
      number = constI64(0, b);
    Value old = op->getResult(0);
    Value token =
        UnrealizedConversionCastOp::create(b, TypeRange{old.getType()}, number)
            .getResult(0);
    // A barrier's new token stands for the same arrival.
    auto arrival = arrivals.find(old);
    if (arrival != arrivals.end()) {
      Arrival same = arrival->second;
      arrivals[token] = same;
    }
    old.replaceAllUsesWith(token);
  }
  rewriter.eraseOp(op);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Bytes of one element in memory: whole bytes, 8 for an index.
int64_t target::getElementBytes(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

FailureOr<unsigned> KernelBase::getArgument(Operation *op, Value value) {
  auto it = symbolic.find(value);
  if (it != symbolic.end())
    return it->second;
  return op->emitOpError("takes a value of type ")
         << value.getType()
         << " that is not an argument of the kernel: use the argument itself";
}

Value KernelBase::addBytes(Value pointer, Value bytes,
                           ImplicitLocOpBuilder &b) {
  APInt known;
  if (matchPattern(bytes, m_ConstantInt(&known)) && known.isSignedIntN(31))
    return addBytes(pointer, known.getSExtValue(), b);
  return LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(bytes)});
}

Value KernelBase::addBytes(Value pointer, int64_t bytes,
                           ImplicitLocOpBuilder &b) {
  if (bytes == 0)
    return pointer;
  LLVM::GEPArg offset(static_cast<int32_t>(bytes));
  if (!llvm::isInt<31>(bytes))
    offset = LLVM::GEPArg(constI64(bytes, b));
  return LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value KernelBase::scale(Value elements, Type elementType,
                        ImplicitLocOpBuilder &b) {
  Value bytes = constI64(getElementBytes(elementType), b);
  return b.createOrFold<arith::MulIOp>(toI64(elements, b), bytes);
}

/// Address of element `offset`, counted in row-major order from the first.
Value KernelBase::elementAddress(Value memref, Value offset,
                                 ImplicitLocOpBuilder &b) {
  auto type = cast<MemRefType>(memref.getType());
  Type converted = types.convertType(type);
  Value cast =
      UnrealizedConversionCastOp::create(b, TypeRange{converted}, memref)
          .getResult(0);
  MemRefDescriptor descriptor(cast);
  Value pointer = descriptor.alignedPtr(b, b.getLoc());
  auto [strides, start] = type.getStridesAndOffset();
  Value elements = toI64(offset, b);
  if (start != 0)
    elements = b.createOrFold<arith::AddIOp>(elements,
                                             descriptor.offset(b, b.getLoc()));
  Value bytes = b.createOrFold<arith::MulIOp>(
      elements, constI64(getElementBytes(type.getElementType()), b));
  return addBytes(pointer, bytes, b);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

LogicalResult KernelBase::bindArgument(unsigned index, BlockArgument argument,
                                       ImplicitLocOpBuilder &b) {
  Type type = argument.getType();
  auto refuse = [&](const Twine &why) {
    return kernel.emitOpError("argument '")
           << kernel.getArgumentName(index) << "' of type " << type << " "
           << why;
  };
  if (isa<WindowType, SignalType, CounterType>(type)) {
    if (auto window = dyn_cast<WindowType>(type);
        window && !window.hasStaticShape())
      return refuse(
          "has an open dimension: specialize the kernel to its inputs first");
    symbolic[argument] = index;
    return success();
  }
  auto memref = dyn_cast<MemRefType>(type);
  if (memref && (!memref.hasStaticShape() || !memref.getLayout().isIdentity()))
    return refuse("must have a static shape and the identity layout; "
                  "specialize the kernel to its inputs first");
  if (!memref && !type.isIntOrIndexOrFloat())
    return refuse("cannot be an argument of " + names.kernel);
  Value value =
      memref ? bindMemory(index, memref, b) : bindScalar(index, type, b);
  if (!value)
    return refuse("cannot be an argument of " + names.kernel);
  argument.replaceAllUsesWith(value);
  return success();
}

LogicalResult KernelBase::bindArguments(Block &entry, ImplicitLocOpBuilder &b) {
  while (entry.getNumArguments() > 1) {
    unsigned index = argTypes.size();
    BlockArgument argument = entry.getArgument(1);
    argTypes.push_back(argument.getType());
    beginArgument(index, b);
    if (failed(bindArgument(index, argument, b)))
      return failure();
    keepName(argument, index, b);
  }
  return success();
}

/// Takes the entry's argument away; a comms value stays as a name until no op
/// uses it.
void KernelBase::keepName(BlockArgument argument, unsigned index,
                          ImplicitLocOpBuilder &b) {
  if (!argument.use_empty()) {
    Value name = UnrealizedConversionCastOp::create(
                     b, TypeRange{argument.getType()}, ValueRange{})
                     .getResult(0);
    symbolic[name] = index;
    argument.replaceAllUsesWith(name);
  }
  symbolic.erase(argument);
  argument.getOwner()->eraseArgument(argument.getArgNumber());
}

NamedAttrList KernelBase::describeArgument(unsigned index) {
  Type type = argTypes[index];
  StringRef kind;
  Type element = rewriter.getI64Type();
  SmallVector<int64_t> shape;
  TypeSwitch<Type>(type)
      .Case<WindowType>([&](auto window) {
        kind = "window";
        element = window.getElementType();
        llvm::append_range(shape, window.getShape());
      })
      .Case<MemRefType>([&](auto memref) {
        kind = "memory";
        element = memref.getElementType();
        llvm::append_range(shape, memref.getShape());
      })
      .Case<SignalType>([&](auto signal) {
        kind = "signal";
        shape.push_back(signal.getCount());
      })
      .Case<CounterType>([&](auto counter) {
        kind = "counter";
        shape.push_back(counter.getCount());
      })
      .Default([&](Type) {
        kind = "scalar";
        element = type;
      });
  int64_t bytes = getElementBytes(element);
  std::string elementText;
  llvm::raw_string_ostream(elementText) << element;
  auto init = kernel.getArgAttrOfType<StringAttr>(index, "comms.init");
  NamedAttrList list;
  list.set("name", rewriter.getStringAttr(kernel.getArgumentName(index)));
  list.set("kind", rewriter.getStringAttr(kind));
  list.set("element", rewriter.getStringAttr(elementText));
  list.set("bytes", rewriter.getI64IntegerAttr(bytes));
  list.set("shape", rewriter.getDenseI64ArrayAttr(shape));
  if (kernel.getArgAttr(index, "comms.hidden"))
    list.set("hidden", rewriter.getUnitAttr());
  if (init && init.getValue() == "poison")
    list.set("poisoned", rewriter.getUnitAttr());
  // Arguments that the lowering has added are not the caller's.
  if (index < written.size() && written[index])
    list.set("written", rewriter.getUnitAttr());
  return list;
}

//===----------------------------------------------------------------------===//
// What is left over
//===----------------------------------------------------------------------===//

/// Removes the values of comms types, which nothing but each other uses now.
LogicalResult KernelBase::eraseNames() {
  SmallVector<Operation *> named;
  function.getBody().walk([&](Operation *op) {
    if (isa<TeamOp, TeamSplitOp, MultimemOp>(op) ||
        (isa<UnrealizedConversionCastOp>(op) && op->getNumOperands() == 0))
      named.push_back(op);
  });
  for (Operation *op : llvm::reverse(named)) {
    if (!op->use_empty())
      return (*op->user_begin())->emitOpError("uses a value of type ")
             << op->getResult(0).getType()
             << " in a way that cannot be lowered for the " << names.target;
    op->erase();
  }
  return success();
}

/// Removes what was made for the case that it is needed.
void KernelBase::eraseDead() {
  SmallVector<Operation *> ops;
  function.getBody().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { ops.push_back(op); });
  // Users come after what they use: backwards, one look at each is enough.
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}
