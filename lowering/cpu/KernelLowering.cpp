//===- KernelLowering.cpp - One kernel becomes one LLVM function ----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/cpu/KernelLowering.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::cpu;

KernelLowering::KernelLowering(KernelOp kernel, const LLVMTypeConverter &types)
    : kernel(kernel), types(types), rewriter(kernel.getContext()) {}

//===----------------------------------------------------------------------===//
// Constants, calls, sites
//===----------------------------------------------------------------------===//

/// Constants stand once, at the function's start.
Value KernelLowering::constant(IntegerAttr value) {
  Value &known = constants[value];
  if (!known) {
    Block &entry = function.getBody().front();
    OpBuilder start(&entry, entry.begin());
    known = arith::ConstantOp::create(start, function.getLoc(), value);
  }
  return known;
}

Value KernelLowering::constI64(int64_t value, ImplicitLocOpBuilder &b) {
  return constant(b.getI64IntegerAttr(value));
}

Value KernelLowering::constIndex(int64_t value, ImplicitLocOpBuilder &b) {
  return constant(b.getIndexAttr(value));
}

Value KernelLowering::toI64(Value index, ImplicitLocOpBuilder &b) {
  if (!index.getType().isIndex())
    return index;
  return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), index);
}

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

/// The first place in a file that `location` names; null: none.
static FileLineColLoc findFile(Location location) {
  FileLineColLoc found;
  location->walk([&](Location inner) {
    found = dyn_cast<FileLineColLoc>(inner);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

Value KernelLowering::siteOf(Operation *op, ImplicitLocOpBuilder &b,
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
  return constant(b.getI32IntegerAttr(it->second));
}

void KernelLowering::replaceToken(Operation *op, Value number,
                                  ImplicitLocOpBuilder &b) {
  if (!op->use_empty()) {
    if (!number)
      number = constI64(0, b);
    auto token = UnrealizedConversionCastOp::create(
        b, TypeRange{op->getResult(0).getType()}, number);
    op->getResult(0).replaceAllUsesWith(token.getResult(0));
  }
  rewriter.eraseOp(op);
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
    if (argument.use_empty()) {
      entry.eraseArgument(1);
      continue;
    }
    // A comms value: it stays as a name until no op uses it.
    Value name = UnrealizedConversionCastOp::create(
                     b, TypeRange{argument.getType()}, ValueRange{})
                     .getResult(0);
    symbolic[name] = index;
    argument.replaceAllUsesWith(name);
    symbolic.erase(argument);
    entry.eraseArgument(1);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Loops and roles
//===----------------------------------------------------------------------===//

/// Moves the body of a comms region into `block`, before its scf.yield.
static void moveBody(IRRewriter &rewriter, Block *from, Block *to,
                     ValueRange arguments) {
  rewriter.eraseOp(from->getTerminator());
  rewriter.inlineBlockBefore(from, to->getTerminator(), arguments);
}

LogicalResult KernelLowering::lowerPeerLoop(ForPeersOp op) {
  FailureOr<TeamNumbers> team = getTeam(op.getTeam());
  if (failed(team))
    return failure();
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  Value one = constIndex(1, b);
  Value mine = b.createOrFold<arith::DivUIOp>(
      b.createOrFold<arith::SubIOp>(field(Field::Rank), team->first),
      team->stride);
  auto loop = scf::ForOp::create(b, one, team->size, one);
  ImplicitLocOpBuilder inner(op.getLoc(), loop.getBody(),
                             loop.getBody()->begin());
  // rank ± step, wrapped by one addition or subtraction of the size.
  Value step = loop.getInductionVar();
  if (op.getReversed())
    step = arith::SubIOp::create(inner, team->size, step);
  Value sum = arith::AddIOp::create(inner, mine, step);
  Value wrapped = arith::SubIOp::create(inner, sum, team->size);
  Value wraps =
      arith::CmpIOp::create(inner, arith::CmpIPredicate::uge, sum, team->size);
  Value peer = arith::SelectOp::create(inner, wraps, wrapped, sum);
  peersOf[peer] = op.getTeam();
  moveBody(rewriter, &op.getBody().front(), loop.getBody(), peer);
  rewriter.eraseOp(op);
  return success();
}

void KernelLowering::lowerRole(RoleOp op) {
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  Value block = field(Field::Block);
  Value from = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, block,
                                     constIndex(op.getFirst(), b));
  Value to = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, block,
                                   constIndex(op.getLast(), b));
  Value inside = arith::AndIOp::create(b, from, to);
  auto branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
  moveBody(rewriter, &op.getBody().front(), branch.thenBlock(), {});
  rewriter.eraseOp(op);
}

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
      .Case<ForPeersOp>([&](auto loop) { return lowerPeerLoop(loop); })
      .Case<RoleOp>([&](auto role) { return lowerRole(role), success(); })
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

DictionaryAttr KernelLowering::describeArgument(unsigned index) {
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
  int64_t bytes = element.isIndex()
                      ? 8
                      : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  std::string elementText;
  llvm::raw_string_ostream(elementText) << element;
  auto init = kernel.getArgAttrOfType<StringAttr>(index, "comms.init");
  bool hidden = kernel.getArgAttr(index, "comms.hidden") != nullptr;
  NamedAttrList list;
  list.set("name", rewriter.getStringAttr(kernel.getArgumentName(index)));
  list.set("kind", rewriter.getStringAttr(kind));
  list.set("element", rewriter.getStringAttr(elementText));
  list.set("bytes", rewriter.getI64IntegerAttr(bytes));
  list.set("shape", rewriter.getDenseI64ArrayAttr(shape));
  if (hidden)
    list.set("hidden", rewriter.getUnitAttr());
  if (init && init.getValue() == "poison")
    list.set("poisoned", rewriter.getUnitAttr());
  return list.getDictionary(rewriter.getContext());
}

void KernelLowering::describe() {
  SmallVector<Attribute> args;
  for (unsigned i = 0; i < argTypes.size(); ++i)
    args.push_back(describeArgument(i));
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

/// Removes what was made for the case that it is needed: parts of the context,
/// descriptors, bounds that folded.
static void eraseDead(LLVM::LLVMFuncOp function) {
  SmallVector<Operation *> ops;
  function.getBody().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { ops.push_back(op); });
  // Users come after what they use: backwards, one look at each is enough.
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

/// Removes the values of comms types, which nothing but each other uses now.
static LogicalResult eraseNames(LLVM::LLVMFuncOp function) {
  SmallVector<Operation *> names;
  function.getBody().walk([&](Operation *op) {
    bool isName =
        isa<TeamOp, TeamSplitOp, MultimemOp>(op) ||
        (isa<UnrealizedConversionCastOp>(op) && op->getNumOperands() == 0);
    if (isName)
      names.push_back(op);
  });
  for (Operation *op : llvm::reverse(names)) {
    if (!op->use_empty())
      return (*op->user_begin())->emitOpError("uses a value of type ")
             << op->getResult(0).getType()
             << " in a way that has no form on the CPU";
    op->erase();
  }
  return success();
}

LogicalResult KernelLowering::run() {
  if (failed(makeFunction()) || failed(lowerBody()))
    return failure();
  describe();
  if (failed(eraseNames(function)))
    return failure();
  eraseDead(function);
  kernel.erase();
  return success();
}
