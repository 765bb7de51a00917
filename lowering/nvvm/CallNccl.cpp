//===- CallNccl.cpp - Operations become calls into NCCL -------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The calls are to the functions of lowering/nvvm/device/NcclDevice.cu. What
// they take of the host (the communicator, windows, first signals and counters)
// are further, hidden arguments of the kernel; what a communicator must have
// for them is the attribute comms.nccl (lowering/nvvm/Abi.h).
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "lowering/Passes.h"
#include "lowering/nvvm/Abi.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::comms {
#define GEN_PASS_DEF_CALLNCCL
#include "lowering/Passes.h.inc"
} // namespace mlir::comms

using namespace mlir;
using namespace mlir::comms;

namespace {

/// The operations of one kernel.
class Caller {
public:
  Caller(KernelOp kernel, bool onlyGin)
      : kernel(kernel), onlyGin(onlyGin), builder(kernel.getContext()),
        pointer(LLVM::LLVMPointerType::get(kernel.getContext())),
        types(kernel.getContext()) {}
  LogicalResult run();

private:
  LogicalResult collect();
  LogicalResult checkShape();
  LogicalResult lower(Operation *op);
  LogicalResult lowerTransfer(Operation *op, Value source, Value sourceOffset,
                              Value window, Value offset, Value count,
                              Value team, Value peer, StringRef name,
                              ValueRange more);
  LogicalResult lowerSignal(SignalOp op);
  LogicalResult lowerPutSignal(PutSignalOp op);
  LogicalResult lowerWait(Operation *op, Value cells, Value index, Value least,
                          bool isEqual);
  LogicalResult lowerCell(Operation *op, Value cells, Value index,
                          bool isReset);
  LogicalResult lowerBarrier(Operation *op, Value team, BarrierExtent extent,
                             MemoryOrder order, StringRef suffix);
  LogicalResult lowerPart(Operation *op, Value window, Value team, Value peer);
  LogicalResult lowerMultimem(MultimemOp op);
  void lowerNumber(Operation *op, TeamKind kind, StringRef what);
  void tellNeeds();

  Value extra(const Twine &name);
  Value comm() { return toPointer(extra(nvvm::kNcclComm)); }
  Value handle(Value window);
  Value offset(Value window);
  Value view(Value address, MemRefType type);
  FailureOr<Value> cell(Operation *op, Value cells, Value index);
  Value toPointer(Value word) {
    return LLVM::IntToPtrOp::create(*b, pointer, word);
  }
  Value toI64(Value value);
  Value toI32(Value value);
  Value worldRank(Value team, Value peer);
  Value context(Attribute gin);
  Value bytes(Value elements, Type element);
  Value call(StringRef name, ValueRange operands, Type result = {});
  void byLeader(llvm::function_ref<void()> body, bool fenced = false);
  void replaceToken(Operation *op);

  KernelOp kernel;
  bool onlyGin;
  OpBuilder builder;
  Type pointer;
  LLVMTypeConverter types;
  ImplicitLocOpBuilder *b = nullptr;
  /// Signals and counters that adapters change.
  llvm::SetVector<Value> overGin;
  /// What the calls need of the device communicator.
  bool usesLsaBarrier = false, usesRailBarrier = false, usesMultimem = false;
  int64_t contexts = 0;
  llvm::SmallVector<Operation *> ops;
  llvm::DenseSet<Operation *> waits, parts;
  llvm::StringMap<Value> arguments;
};

struct CallNccl : comms::impl::CallNcclBase<CallNccl> {
  using CallNcclBase::CallNcclBase;
  void runOnOperation() override;
};

} // namespace

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// A scalar argument, added when it is first asked for.
Value Caller::extra(const Twine &what) {
  std::string name = what.str();
  Value &known = arguments[name];
  if (known)
    return known;
  auto attributes = builder.getDictionaryAttr(
      {builder.getNamedAttr("comms.name", builder.getStringAttr(name)),
       builder.getNamedAttr(nvvm::kNcclAttr, builder.getUnitAttr())});
  unsigned index = kernel.getNumArguments();
  if (failed(kernel.insertArgument(index, builder.getI64Type(), attributes,
                                   kernel.getLoc())))
    return {};
  return known = kernel.getBody().getArgument(index);
}

/// Name of an argument of the kernel; empty: it is none.
static std::string nameOf(KernelOp kernel, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &kernel.getBody().front())
    return {};
  return kernel.getArgumentName(argument.getArgNumber());
}

Value Caller::handle(Value window) {
  return toPointer(extra(nvvm::kNcclWindow + nameOf(kernel, window)));
}

/// i64: bytes from the start of NCCL's window to that of the argument, which
/// can be a part of it.
Value Caller::offset(Value window) {
  return extra(nvvm::kNcclOffset + nameOf(kernel, window));
}

/// i32: number of the signal or counter that the cell is for NCCL.
FailureOr<Value> Caller::cell(Operation *op, Value cells, Value index) {
  std::string name = nameOf(kernel, cells);
  if (name.empty())
    return op->emitOpError("uses cells that are no argument of the kernel: use "
                           "the argument itself");
  Value first = extra(nvvm::kNcclFirst + name);
  return toI32(arith::AddIOp::create(*b, first, toI64(index)));
}

Value Caller::toI64(Value value) {
  if (!value.getType().isIndex())
    return value;
  return b->createOrFold<arith::IndexCastOp>(b->getI64Type(), value);
}

Value Caller::toI32(Value value) {
  return b->createOrFold<arith::TruncIOp>(b->getI32Type(), toI64(value));
}

/// i32.
Value Caller::worldRank(Value team, Value peer) {
  Value world =
      TeamOp::create(*b, TeamType::get(b->getContext()), TeamKind::World);
  return toI32(
      TranslateRankOp::create(*b, b->getIndexType(), peer, team, world));
}

Value Caller::context(Attribute gin) {
  int64_t number = cast<GinAttr>(gin).getContextId();
  contexts = std::max(contexts, number + 1);
  return arith::ConstantIntOp::create(*b, number, 32);
}

Value Caller::bytes(Value elements, Type element) {
  int64_t size = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  Value factor = arith::ConstantIntOp::create(*b, size, 64);
  return b->createOrFold<arith::MulIOp>(toI64(elements), factor);
}

Value Caller::call(StringRef name, ValueRange operands, Type result) {
  std::string symbol = ("commsir_nccl_" + name).str();
  auto module = kernel->getParentOfType<ModuleOp>();
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  if (!function) {
    OpBuilder outside(kernel);
    Type type = result ? result : LLVM::LLVMVoidType::get(b->getContext());
    function = LLVM::LLVMFuncOp::create(
        outside, kernel.getLoc(), symbol,
        LLVM::LLVMFunctionType::get(type,
                                    llvm::to_vector(operands.getTypes())));
  }
  auto made = LLVM::CallOp::create(*b, function, operands);
  return result ? made.getResult() : Value();
}

/// What the threads did before comes before it; one of them makes the call.
void Caller::byLeader(llvm::function_ref<void()> body, bool fenced) {
  if (fenced) // An adapter reads what all threads wrote; it has a barrier.
    FenceOp::create(*b, MemoryOrder::AcqRel, MemoryScope::Sys, Proxy::Generic);
  else
    gpu::BarrierOp::create(*b);
  Value thread = gpu::ThreadIdOp::create(*b, gpu::Dimension::x);
  Value zero = arith::ConstantIndexOp::create(*b, 0);
  Value first =
      arith::CmpIOp::create(*b, arith::CmpIPredicate::eq, thread, zero);
  auto only = scf::IfOp::create(*b, first, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*b);
  b->setInsertionPoint(only.thenYield());
  body();
}

void Caller::replaceToken(Operation *op) {
  if (op->getNumResults() && !op->use_empty()) {
    Value zero = arith::ConstantIntOp::create(*b, 0, 64);
    auto token = UnrealizedConversionCastOp::create(
        *b, TypeRange{op->getResult(0).getType()}, zero);
    op->getResult(0).replaceAllUsesWith(token.getResult(0));
  }
  op->erase();
}

//===----------------------------------------------------------------------===//
// GIN
//===----------------------------------------------------------------------===//

LogicalResult Caller::lowerTransfer(Operation *op, Value source,
                                    Value sourceOffset, Value window,
                                    Value offset, Value count, Value team,
                                    Value peer, StringRef name,
                                    ValueRange more) {
  auto local = source.getDefiningOp<LocalOp>();
  if (!local || nameOf(kernel, local.getWindow()).empty() ||
      nameOf(kernel, window).empty())
    return op->emitOpError("travels by GIN between windows that are no "
                           "arguments of the kernel: use the arguments "
                           "themselves");
  Type element = cast<WindowType>(window.getType()).getElementType();
  auto inWindow = [&](Value whole, Value elements) -> Value {
    return arith::AddIOp::create(*b, this->offset(whole),
                                 bytes(elements, element));
  };
  SmallVector<Value> operands = {comm(),
                                 context(op->getAttr("gin")),
                                 worldRank(team, peer),
                                 handle(window),
                                 inWindow(window, offset),
                                 handle(local.getWindow()),
                                 inWindow(local.getWindow(), sourceOffset),
                                 bytes(count, element)};
  llvm::append_range(operands, more);
  byLeader([&] { call(name, operands); }, /*fenced=*/true);
  return success();
}

LogicalResult Caller::lowerPutSignal(PutSignalOp op) {
  FailureOr<Value> number = cell(op, op.getSignal(), op.getIndex());
  if (failed(number))
    return failure();
  SmallVector<Value> more = {*number};
  bool isAdd = op.getKind() == SignalKind::Add;
  if (isAdd)
    more.push_back(op.getValue());
  return lowerTransfer(op, op.getSource(), op.getSourceOffset(), op.getWindow(),
                       op.getOffset(), op.getCount(), op.getTeam(),
                       op.getPeer(), isAdd ? "gin_put_add" : "gin_put_inc",
                       more);
}

LogicalResult Caller::lowerSignal(SignalOp op) {
  FailureOr<Value> number = cell(op, op.getSignal(), op.getIndex());
  if (failed(number))
    return failure();
  bool isAdd = op.getKind() == SignalKind::Add;
  SmallVector<Value> operands = {comm(), context(op.getGinAttr()),
                                 worldRank(op.getTeam(), op.getPeer()),
                                 *number};
  if (isAdd)
    operands.push_back(op.getValue());
  byLeader([&] { call(isAdd ? "gin_signal_add" : "gin_signal_inc", operands); },
           /*fenced=*/true);
  return success();
}

LogicalResult Caller::lowerWait(Operation *op, Value cells, Value index,
                                Value least, bool isEqual) {
  if (isEqual)
    return op->emitOpError("waits for one value of a signal that travels by "
                           "GIN, of which NCCL can only wait for the least: "
                           "use `ge`");
  FailureOr<Value> number = cell(op, cells, index);
  if (failed(number))
    return failure();
  bool isCounter = isa<CounterType>(cells.getType());
  Value communicator = comm();
  byLeader([&] {
    call(isCounter ? "gin_wait_counter" : "gin_wait_signal",
         {communicator, *number, least});
  });
  gpu::BarrierOp::create(*b);
  replaceToken(op);
  return success();
}

LogicalResult Caller::lowerCell(Operation *op, Value cells, Value index,
                                bool isReset) {
  FailureOr<Value> number = cell(op, cells, index);
  if (failed(number))
    return failure();
  std::string what = isa<CounterType>(cells.getType()) ? "counter" : "signal";
  Value communicator = comm();
  if (isReset) {
    byLeader([&] { call("gin_reset_" + what, {communicator, *number}); });
    gpu::BarrierOp::create(*b);
    op->erase();
    return success();
  }
  // Threads that each looked might see different values and part ways.
  auto shared = MemRefType::get(
      {1}, b->getI64Type(), MemRefLayoutAttrInterface(),
      MemorySpaceAttr::get(b->getContext(), MemorySpace::Shared));
  Value place = ScratchOp::create(*b, shared);
  Value zero = arith::ConstantIndexOp::create(*b, 0);
  byLeader([&] {
    Value seen =
        call("gin_read_" + what, {communicator, *number}, b->getI64Type());
    memref::StoreOp::create(*b, seen, place, zero);
  });
  gpu::BarrierOp::create(*b);
  Value seen = memref::LoadOp::create(*b, place, zero);
  op->getResult(0).replaceAllUsesWith(seen);
  op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Windows and barriers
//===----------------------------------------------------------------------===//

LogicalResult Caller::lowerPart(Operation *op, Value window, Value team,
                                Value peer) {
  if (op->use_empty())
    return op->erase(), success();
  auto type = cast<MemRefType>(op->getResult(0).getType());
  if (nameOf(kernel, window).empty() || !type.hasStaticShape())
    return op->emitOpError("needs a window of static shape that is an argument "
                           "of the kernel");
  SmallVector<Value> operands = {handle(window), offset(window)};
  if (peer)
    operands.push_back(worldRank(team, peer));
  Value address =
      call(peer ? "peer_pointer" : "local_pointer", operands, pointer);
  op->getResult(0).replaceAllUsesWith(view(address, type));
  op->erase();
  return success();
}

/// A memref at `address`, which is aligned as all arguments are, and in global
/// memory: LLVM would fold a mere cast there and back.
Value Caller::view(Value address, MemRefType type) {
  Value word = LLVM::PtrToIntOp::create(*b, b->getI64Type(), address);
  auto global = LLVM::LLVMPointerType::get(b->getContext(), 1);
  address = LLVM::AddrSpaceCastOp::create(
      *b, pointer, LLVM::IntToPtrOp::create(*b, global, word));
  Value descriptor =
      MemRefDescriptor::fromStaticShape(*b, b->getLoc(), types, type, address);
  auto memref =
      UnrealizedConversionCastOp::create(*b, TypeRange{type}, descriptor);
  memref->setAttr(nvvm::kAlignmentAttr,
                  builder.getI64IntegerAttr(nvvm::kAlignment));
  return memref.getResult(0);
}

/// The accesses themselves stay: the lowering of tiles finds their address in
/// the cast.
LogicalResult Caller::lowerMultimem(MultimemOp op) {
  auto known = op.getTeam().getDefiningOp<TeamOp>();
  bool isReach =
      known &&
      (known.getKind() == TeamKind::Lsa ||
       (known.getKind() == TeamKind::World &&
        kernel.getLsaSize().value_or(*kernel.getRanks()) == kernel.getRanks()));
  if (!isReach)
    return op->emitOpError("is of a team that is not the ranks in load/store "
                           "reach, of which alone NCCL has one address: take "
                           "lsa");
  if (nameOf(kernel, op.getWindow()).empty())
    return op->emitOpError("needs a window that is an argument of the kernel");
  usesMultimem = true;
  Value address =
      call("multimem_pointer",
           {handle(op.getWindow()), offset(op.getWindow()), comm()}, pointer);
  Value word = LLVM::PtrToIntOp::create(*b, b->getI64Type(), address);
  auto memref = UnrealizedConversionCastOp::create(
      *b, TypeRange{op.getResult().getType()}, word);
  op.getResult().replaceAllUsesWith(memref.getResult(0));
  op->erase();
  return success();
}

/// This rank's number in a team, or the team's size.
void Caller::lowerNumber(Operation *op, TeamKind kind, StringRef what) {
  StringRef name = kind == TeamKind::World ? "world_"
                   : kind == TeamKind::Lsa ? "lsa_"
                                           : "rail_";
  Value number = call((name + what).str(), {comm()}, b->getI32Type());
  Value index =
      arith::IndexCastUIOp::create(*b, b->getIndexType(), number).getResult();
  op->getResult(0).replaceAllUsesWith(index);
  op->erase();
}

LogicalResult Caller::lowerBarrier(Operation *op, Value team,
                                   BarrierExtent extent, MemoryOrder order,
                                   StringRef suffix) {
  if (extent == BarrierExtent::Grid)
    return op->emitOpError(
        "is a barrier of the whole grid, which NCCL does "
        "not have: make it one of blocks, or leave impl=nccl "
        "out");
  auto known = team.getDefiningOp<TeamOp>();
  if (!known)
    return op->emitOpError("is a barrier of a part of a team, which NCCL does "
                           "not have: take world, lsa or rail");
  bool isReach =
      known.getKind() == TeamKind::Lsa ||
      (known.getKind() == TeamKind::World &&
       kernel.getLsaSize().value_or(*kernel.getRanks()) == kernel.getRanks());
  if (!isReach && !suffix.empty())
    return op->emitOpError("is half a barrier through an adapter, which NCCL "
                           "does not have: use comms.barrier");
  std::string name = isReach                              ? "lsa_barrier"
                     : known.getKind() == TeamKind::World ? "world_barrier"
                                                          : "rail_barrier";
  Value block = toI32(BlockIdOp::create(*b, b->getIndexType()));
  Value orders =
      arith::ConstantIntOp::create(*b, order != MemoryOrder::Relaxed, 32);
  usesLsaBarrier |= name != "rail_barrier";
  usesRailBarrier |= !isReach;
  call(name + suffix.str(), {comm(), block, orders});
  replaceToken(op);
  return success();
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// Finds what becomes calls, and refuses cells that both an adapter and stores
/// would change.
LogicalResult Caller::collect() {
  kernel.getBody().walk([&](Operation *op) {
    if (!op->hasAttr("gin"))
      return;
    for (Value operand : op->getOperands())
      if (isa<SignalType, CounterType>(operand.getType()))
        overGin.insert(operand);
  });
  WalkResult result = kernel.getBody().walk([&](Operation *op) {
    bool isOfCells = llvm::any_of(op->getOperands(), [&](Value value) {
      return overGin.contains(value);
    });
    bool isGin = op->hasAttr("gin") || isOfCells;
    if (isOfCells && !op->hasAttr("gin") &&
        isa<PutOp, PutSignalOp, SignalOp>(op)) {
      op->emitOpError("changes by a store what other operations of the kernel "
                      "change by GIN: give all of them `gin`, or take two "
                      "arguments");
      return WalkResult::interrupt();
    }
    bool isNccl = !onlyGin && isa<LocalOp, PeerOp, MultimemOp, BarrierOp,
                                  BarrierArriveOp, BarrierWaitOp>(op);
    // Those of other teams are computed from NCCL's by generated code.
    bool isNumber = !onlyGin && isa<RankOp, SizeOp>(op) &&
                    op->getOperand(0).getDefiningOp<TeamOp>();
    if (isGin || isNccl || isNumber)
      ops.push_back(op);
    if (isa<BarrierWaitOp>(op))
      waits.insert(op);
    if (isa<LocalOp, PeerOp>(op))
      parts.insert(op);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Caller::checkShape() {
  if (!kernel.getRanks() || !kernel.getBlocks())
    return kernel.emitOpError("needs known numbers of ranks and blocks: give "
                              "the pipeline the options ranks=N and blocks=N");
  auto cluster = kernel->getAttrOfType<IntegerAttr>("comms.cluster");
  if (cluster && cluster.getInt() > 1)
    return kernel.emitOpError("calls NCCL's device library, whose barriers and "
                              "waits are of one CTA, in clusters of ")
           << cluster.getInt() << ": set cluster=1";
  return success();
}

LogicalResult Caller::lower(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<PutOp>([&](PutOp put) -> LogicalResult {
        SmallVector<Value> more;
        if (put.getCounter()) {
          FailureOr<Value> number =
              cell(op, put.getCounter(), put.getCounterIndex());
          if (failed(number))
            return failure();
          more.push_back(*number);
        }
        if (failed(lowerTransfer(
                op, put.getSource(), put.getSourceOffset(), put.getWindow(),
                put.getOffset(), put.getCount(), put.getTeam(), put.getPeer(),
                more.empty() ? "gin_put" : "gin_put_counted", more)))
          return failure();
        op->erase();
        return success();
      })
      .Case<PutSignalOp>([&](PutSignalOp put) -> LogicalResult {
        if (failed(lowerPutSignal(put)))
          return failure();
        op->erase();
        return success();
      })
      .Case<SignalOp>([&](SignalOp signal) -> LogicalResult {
        if (failed(lowerSignal(signal)))
          return failure();
        op->erase();
        return success();
      })
      .Case<GetOp>([&](GetOp) {
        return op->emitOpError("travels by GIN, whose device API has no get in "
                               "NCCL 2.28: let the owner put the data, or drop "
                               "`gin` for peers in load/store reach");
      })
      .Case<FlushOp>([&](FlushOp flush) {
        Value communicator = comm(), number = context(flush.getGinAttr());
        byLeader([&] { call("gin_flush", {communicator, number}); });
        gpu::BarrierOp::create(*b);
        op->erase();
        return success();
      })
      .Case<WaitSignalOp, WaitSignalFromOp>([&](auto wait) {
        return lowerWait(op, wait.getSignal(), wait.getIndex(), wait.getValue(),
                         wait.getKind() == WaitKind::Eq);
      })
      .Case<WaitCounterOp>([&](WaitCounterOp wait) {
        return lowerWait(op, wait.getCounter(), wait.getIndex(),
                         wait.getValue(), /*isEqual=*/false);
      })
      .Case<ReadSignalOp, ResetSignalOp>([&](auto access) {
        return lowerCell(op, access.getSignal(), access.getIndex(),
                         isa<ResetSignalOp>(op));
      })
      .Case<ReadCounterOp, ResetCounterOp>([&](auto access) {
        return lowerCell(op, access.getCounter(), access.getIndex(),
                         isa<ResetCounterOp>(op));
      })
      .Case<LocalOp>([&](LocalOp local) -> LogicalResult {
        return lowerPart(op, local.getWindow(), {}, {});
      })
      .Case<PeerOp>([&](PeerOp peer) -> LogicalResult {
        return lowerPart(op, peer.getWindow(), peer.getTeam(), peer.getPeer());
      })
      .Case<RankOp, SizeOp>([&](auto number) {
        auto team = number.getTeam().template getDefiningOp<TeamOp>();
        lowerNumber(op, team.getKind(), isa<RankOp>(op) ? "rank" : "size");
        return success();
      })
      .Case<MultimemOp>([&](MultimemOp all) { return lowerMultimem(all); })
      .Case<BarrierOp>([&](BarrierOp barrier) {
        return lowerBarrier(op, barrier.getTeam(), barrier.getExtent(),
                            barrier.getOrder(), "");
      })
      .Case<BarrierArriveOp>([&](BarrierArriveOp arrival) {
        return lowerBarrier(op, arrival.getTeam(), arrival.getExtent(),
                            arrival.getOrder(), "_arrive");
      })
      .Case<BarrierWaitOp>([&](BarrierWaitOp wait) -> LogicalResult {
        auto arrival = wait.getArrived().getDefiningOp<BarrierArriveOp>();
        if (!arrival)
          return op->emitOpError("takes a token that is not the result of "
                                 "comms.barrier_arrive itself: pass it "
                                 "directly");
        return lowerBarrier(op, arrival.getTeam(), arrival.getExtent(),
                            wait.getOrder(), "_wait");
      })
      .Default([&](Operation *) {
        return op->emitOpError("has no form over GIN: NCCL's device library "
                               "has no function for it");
      });
}

/// Says of the kernel what its communicator must have.
void Caller::tellNeeds() {
  int64_t signals = 0, counters = 0;
  for (auto [i, argument] : llvm::enumerate(kernel.getBody().getArguments())) {
    std::string name = kernel.getArgumentName(i);
    if (!arguments.contains(nvvm::kNcclFirst + name))
      continue;
    if (auto cells = dyn_cast<SignalType>(argument.getType()))
      signals += cells.getCount();
    if (auto cells = dyn_cast<CounterType>(argument.getType()))
      counters += cells.getCount();
  }
  // Block b of every rank meets in barrier b.
  int64_t blocks = kernel.getBlocks().value_or(0);
  auto number = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  // NCCL numbers signals and counters from 0 on, argument after argument.
  SmallVector<NamedAttribute> needs = {
      number("lsa_barriers", usesLsaBarrier ? blocks : 0),
      number("rail_barriers", usesRailBarrier ? blocks : 0),
      number("contexts", contexts), number("signals", signals),
      number("counters", counters)};
  if (usesMultimem)
    needs.push_back(builder.getNamedAttr("multimem", builder.getUnitAttr()));
  kernel->setAttr(nvvm::kNcclAttr, builder.getDictionaryAttr(needs));
}

LogicalResult Caller::run() {
  if (kernel.getBody().empty() || failed(collect()))
    return failure(!kernel.getBody().empty());
  if (ops.empty())
    return success();
  if (failed(checkShape()))
    return failure();
  // Waits find the team at the arrival, puts the window at its part: these go
  // after them.
  auto turn = [&](Operation *op) {
    return waits.contains(op) ? 0 : parts.contains(op) ? 2 : 1;
  };
  for (int now : {0, 1, 2})
    for (Operation *op : ops) {
      if (turn(op) != now)
        continue;
      ImplicitLocOpBuilder at(op->getLoc(), op);
      b = &at;
      if (failed(lower(op)))
        return failure();
    }
  tellNeeds();
  return success();
}

void CallNccl::runOnOperation() {
  // Functions are declared beside the kernels: no kernel alone.
  for (KernelOp kernel : llvm::to_vector(getOperation().getOps<KernelOp>()))
    if (failed(Caller(kernel, onlyGin).run()))
      return signalPassFailure();
}
