//===- KernelLowering.cpp - One kernel becomes one LLVM function ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/cpu/KernelLowering.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::cpu;

KernelLowering::KernelLowering(KernelOp kernel, const LLVMTypeConverter &types)
    : KernelBase(kernel, types, {"CPU", "a CPU kernel", "comms-to-cpu"}) {}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
/// The type in LLVM of a parameter or result as the ABI writes it in C.
struct AbiTypes {
  MLIRContext *context;
  template <typename T>
  Type get() const {
    if constexpr (std::is_pointer_v<T>)
      return LLVM::LLVMPointerType::get(context);
    else if constexpr (std::is_void_v<T>)
      return LLVM::LLVMVoidType::get(context);
    else
      return IntegerType::get(context, sizeof(T) * 8);
  }
  template <typename R, typename... A>
  LLVM::LLVMFunctionType get(R (*)(A...)) const {
    return LLVM::LLVMFunctionType::get(get<R>(), {get<A>()...});
  }
};
} // namespace

static LLVM::LLVMFunctionType getRuntimeType(StringRef name,
                                             MLIRContext *context) {
  AbiTypes abi{context};
#define COMMSIR_X(function, result, parameters)                                \
  if (name == #function)                                                       \
    return abi.get(static_cast<result(*) parameters>(nullptr));
  COMMSIR_CPU_RUNTIME(COMMSIR_X)
#undef COMMSIR_X
  llvm_unreachable("not a function of the runtime");
}

Value KernelLowering::callRuntime(ImplicitLocOpBuilder &b, StringRef name,
                                  ValueRange operands, Type result) {
  std::string symbol = ("commsir_cpu_" + name).str();
  auto module = function->getParentOfType<ModuleOp>();
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  if (!callee) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(module.getBody());
    callee = LLVM::LLVMFuncOp::create(rewriter, module.getLoc(), symbol,
                                      getRuntimeType(name, b.getContext()));
  }
  SmallVector<Value> all{context};
  llvm::append_range(all, operands);
  auto call = LLVM::CallOp::create(b, callee, all);
  return result ? call.getResult() : Value();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void KernelLowering::beginArgument(unsigned index, ImplicitLocOpBuilder &b) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  int64_t entry = int64_t(index) * sizeof(ArgTable);
  Value table = field(Field::Args);
  Value base =
      LLVM::LoadOp::create(b, pointer, addBytes(table, constI64(entry, b), b));
  Value stride = LLVM::LoadOp::create(
      b, b.getI64Type(),
      addBytes(table, constI64(entry + int64_t(offsetof(ArgTable, stride)), b),
               b));
  parts.push_back({base, stride});
}

Value KernelLowering::bindMemory(unsigned index, MemRefType type,
                                 ImplicitLocOpBuilder &b) {
  return viewPart(type, index, me.rank, b);
}

Value KernelLowering::bindScalar(unsigned index, Type type,
                                 ImplicitLocOpBuilder &b) {
  Value address = partAddress(index, me.rank, b);
  if (type.isInteger() && type.getIntOrFloatBitWidth() % 8 != 0) {
    Type bytes =
        b.getIntegerType(llvm::alignTo(type.getIntOrFloatBitWidth(), 8));
    Value whole = LLVM::LoadOp::create(b, bytes, address);
    return arith::TruncIOp::create(b, type, whole);
  }
  Type converted = types.convertType(type);
  Value scalar = LLVM::LoadOp::create(b, converted, address);
  if (converted == type)
    return scalar;
  return UnrealizedConversionCastOp::create(b, TypeRange{type}, scalar)
      .getResult(0);
}

/// Loads what the context says, except what the kernel fixes.
void KernelLowering::readFields(ImplicitLocOpBuilder &b) {
  auto constantField = [&](Field f) -> std::optional<int64_t> {
    std::optional<uint64_t> value;
    if (f == Field::Ranks)
      value = kernel.getRanks();
    else if (f == Field::LsaSize)
      value = kernel.getLsaSize() ? kernel.getLsaSize() : kernel.getRanks();
    else if (f == Field::Blocks)
      value = kernel.getBlocks();
    return value ? std::optional<int64_t>(*value) : std::nullopt;
  };
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  for (int64_t i = 0; i <= static_cast<int64_t>(Field::Fiber); ++i) {
    if (std::optional<int64_t> known = constantField(static_cast<Field>(i))) {
      fields.push_back(constIndex(*known, b));
      continue;
    }
    Value address = addBytes(context, constI64(i * 8, b), b);
    if (i >= static_cast<int64_t>(Field::Args)) {
      fields.push_back(LLVM::LoadOp::create(b, pointer, address));
      continue;
    }
    Value number = LLVM::LoadOp::create(b, b.getI64Type(), address);
    fields.push_back(arith::IndexCastOp::create(b, b.getIndexType(), number));
  }
  me = {field(Field::Rank), field(Field::Ranks), field(Field::LsaSize)};
  block = field(Field::Block);
  blocks = field(Field::Blocks);
  epoch = field(Field::Epoch);
}

LogicalResult KernelLowering::makeFunction() {
  Location loc = kernel.getLoc();
  if (kernel.getBody().empty())
    return kernel.emitOpError("has no body: a CPU kernel needs one");
  MLIRContext *mlir = kernel.getContext();
  auto pointer = LLVM::LLVMPointerType::get(mlir);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(mlir), {pointer});
  rewriter.setInsertionPointAfter(kernel);
  function = LLVM::LLVMFuncOp::create(rewriter, loc, kernel.getSymName(), type);
  function.getBody().takeBody(kernel.getBody());
  Block &entry = function.getBody().front();
  context = entry.insertArgument(0u, pointer, loc);
  rewriter.setInsertionPointToStart(&entry);
  ImplicitLocOpBuilder b(loc, rewriter);
  readFields(b);
  return bindArguments(entry, b);
}

void KernelLowering::lowerReturn(ReturnOp op, ImplicitLocOpBuilder &b) {
  rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange{});
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// A loop that is not known to be short asks in each turn whether to stop, so
/// that a limit in time holds for code that never waits. `op` is the loop, `at`
/// a place in its body.
void KernelLowering::addInterrupt(Operation *op, Block *block,
                                  Block::iterator at) {
  ImplicitLocOpBuilder b(op->getLoc(), block, at);
  Value flag = LLVM::LoadOp::create(b, b.getI32Type(), field(Field::Stop),
                                    /*alignment=*/4,
                                    /*isVolatile=*/true);
  Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  Value stop = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, flag, zero);
  auto check = scf::IfOp::create(b, stop, /*withElseRegion=*/false);
  ImplicitLocOpBuilder inner(op->getLoc(), check.thenYield());
  callRuntime(inner, "interrupt", {siteOf(op, inner)});
}

void KernelLowering::addInterrupt(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return addInterrupt(op, loop.getBody(), loop.getBody()->begin());
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    Block &body = loop.getAfter().front();
    return addInterrupt(op, &body, body.begin());
  }
  addInterrupt(op, op->getBlock(), op->getIterator());
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerBody() {
  // What is lowered may add ops, never comms ops: one list is enough. Parents
  // come before what is in them, so a loop's peer is known to its body.
  SmallVector<Operation *> ops, loops;
  DenseSet<Block *> seen;
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<scf::ForOp, scf::WhileOp>(op)) {
      if (!op->hasAttr("comms.tile"))
        loops.push_back(op);
    } else if (!isa<YieldOp>(op)) {
      ops.push_back(op);
    }
    // Every loop of blocks has a branch to its own or an earlier block.
    seen.insert(op->getBlock());
    if (llvm::any_of(op->getSuccessors(),
                     [&](Block *target) { return seen.contains(target); }))
      loops.push_back(op);
  });
  for (Operation *op : ops)
    if (failed(lowerOp(op)))
      return failure();
  for (Operation *loop : loops)
    addInterrupt(loop);
  return success();
}

void KernelLowering::describe() {
  SmallVector<Attribute> args;
  for (unsigned i = 0; i < argTypes.size(); ++i)
    args.push_back(describeArgument(i).getDictionary(rewriter.getContext()));
  function->setAttr(kArgsAttr, rewriter.getArrayAttr(args));
  function->setAttr(kSitesAttr, rewriter.getArrayAttr(sites));
  function->setAttr(kArenaAttr, rewriter.getI64IntegerAttr(arenaBytes));
  auto copy = [&](const char *name, Attribute value) {
    if (value)
      function->setAttr(name, value);
  };
  copy(kRanksAttr, kernel.getRanksAttr());
  copy(kLsaSizeAttr, kernel.getLsaSizeAttr());
  copy(kBlocksAttr, kernel.getBlocksAttr());
  copy(kChoicesAttr, kernel->getAttr(kChoicesAttr));
  copy(kProofAttr, kernel->getAttr(kProofAttr));
}

LogicalResult KernelLowering::run() {
  if (failed(makeFunction()) || failed(lowerBody()))
    return failure();
  describe();
  if (failed(eraseNames()))
    return failure();
  eraseDead();
  kernel.erase();
  return success();
}
