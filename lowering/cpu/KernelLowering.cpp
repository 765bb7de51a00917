//===- KernelLowering.cpp - One kernel becomes one LLVM function ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/cpu/KernelLowering.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::cpu;

KernelLowering::KernelLowering(KernelOp kernel, const LLVMTypeConverter &types)
    : KernelBase(kernel, types, "CPU", "a CPU kernel") {}

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

LogicalResult KernelLowering::bindArgument(unsigned index,
                                           BlockArgument argument,
                                           OpBuilder &builder) {
  ImplicitLocOpBuilder b(kernel.getLoc(), builder);
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
  Type type = argument.getType();
  auto refuse = [&](StringRef why) {
    return kernel.emitOpError("argument '")
           << kernel.getArgumentName(index) << "' of type " << type << " "
           << why;
  };
  if (isa<WindowType, SignalType, CounterType>(type)) {
    if (auto window = dyn_cast<WindowType>(type);
        window && !window.hasStaticShape())
      return refuse(
          "has an open dimension: specialise the kernel to its inputs first");
    symbolic[argument] = index;
    return success();
  }
  if (auto memref = dyn_cast<MemRefType>(type)) {
    if (!memref.hasStaticShape() || !memref.getLayout().isIdentity())
      return refuse("must have a static shape and the identity layout; "
                    "specialise the kernel to "
                    "its inputs first");
    argument.replaceAllUsesWith(
        makeMemRef(memref, partAddress(index, field(Field::Rank), b), b));
    return success();
  }
  if (!type.isIntOrIndexOrFloat())
    return refuse("cannot be an argument of a CPU kernel");
  Value address = partAddress(index, field(Field::Rank), b);
  if (type.isInteger() && type.getIntOrFloatBitWidth() % 8 != 0) {
    Type bytes =
        b.getIntegerType(llvm::alignTo(type.getIntOrFloatBitWidth(), 8));
    Value whole = LLVM::LoadOp::create(b, bytes, address);
    argument.replaceAllUsesWith(arith::TruncIOp::create(b, type, whole));
    return success();
  }
  Type converted = types.convertType(type);
  Value scalar = LLVM::LoadOp::create(b, converted, address);
  if (converted != type)
    scalar = UnrealizedConversionCastOp::create(b, TypeRange{type}, scalar)
                 .getResult(0);
  argument.replaceAllUsesWith(scalar);
  return success();
}

LogicalResult KernelLowering::makeFunction() {
  Location loc = kernel.getLoc();
  MLIRContext *mlir = kernel.getContext();
  if (kernel.getBody().empty())
    return kernel.emitOpError("has no body: a CPU kernel needs one");
  auto pointer = LLVM::LLVMPointerType::get(mlir);
  std::string name = kernel.getSymName().str();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(mlir), {pointer});
  rewriter.setInsertionPointAfter(kernel);
  function = LLVM::LLVMFuncOp::create(rewriter, loc, name, type);
  function.getBody().takeBody(kernel.getBody());
  Block &entry = function.getBody().front();
  context = entry.insertArgument(0u, pointer, loc);

  rewriter.setInsertionPointToStart(&entry);
  ImplicitLocOpBuilder b(loc, rewriter);
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
  while (entry.getNumArguments() > 1) {
    unsigned index = argTypes.size();
    BlockArgument argument = entry.getArgument(1);
    argTypes.push_back(argument.getType());
    if (failed(bindArgument(index, argument, b)))
      return failure();
    keepName(argument, index, b);
  }
  return success();
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
// All ops
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerOp(Operation *op) {
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op->getLoc(), rewriter);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<TeamOp, TeamSplitOp, RankOp, SizeOp, TranslateRankOp>(
          [&](auto) { return lowerTeamOp(op, b); })
      .Case<ForPeersOp>(
          [&](auto loop) { return lowerPeerLoop(loop, field(Field::Rank)); })
      .Case<RoleOp>([&](auto role) {
        return lowerRole(role, field(Field::Block)), success();
      })
      .Case<BlockIdOp>([&](auto) {
        rewriter.replaceOp(op, field(Field::Block));
        return success();
      })
      .Case<NumBlocksOp>([&](auto) {
        rewriter.replaceOp(op, field(Field::Blocks));
        return success();
      })
      .Case<EpochOp>([&](auto) {
        rewriter.replaceOp(op, field(Field::Epoch));
        return success();
      })
      .Case<ReturnOp>([&](auto) {
        rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange{});
        return success();
      })
      .Case<LocalOp, PeerOp, MultimemOp, ScratchOp, memref::AllocaOp>(
          [&](auto) { return lowerWindowOp(op, b); })
      .Case<PutOp, GetOp, PutSignalOp, EngineCopyOp, BulkCopyOp, BulkWaitOp>(
          [&](auto) { return lowerCopyOp(op, b); })
      .Case<SignalOp, WaitSignalOp, WaitSignalFromOp, ReadSignalOp,
            ResetSignalOp, WaitCounterOp, ReadCounterOp, ResetCounterOp,
            FlushOp, FenceOp, BarrierOp, BarrierArriveOp, BarrierWaitOp>(
          [&](auto) { return lowerSyncOp(op, b); })
      .Case<CheckBoundsOp, RecordAccessOp, RecordSyncOp>(
          [&](auto) { return lowerCheckOp(op, b); })
      .Case<TileLoadOp, TileStoreOp, PacketStoreOp, PacketLoadOp, PoisonStoreOp,
            PoisonLoadOp, PoisonFillOp, MultimemLoadReduceOp, MultimemStoreOp,
            MultimemReduceOp>([&](auto) { return lowerTileOp(op, b); })
      .Default([&](Operation *) -> LogicalResult {
        if (isa_and_present<CommsDialect>(op->getDialect()))
          return op->emitOpError(
              "has no form on the CPU: lower it first, the pipeline "
              "comms-to-cpu has the passes in order");
        return success();
      });
}

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
