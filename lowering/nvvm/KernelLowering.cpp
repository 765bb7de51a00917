//===- KernelLowering.cpp - One kernel becomes one GPU function -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/nvvm/KernelLowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::nvvm;
using mlir::comms::target::getElementBytes;
using mlir::comms::target::kPrefetchAttr;

KernelLowering::KernelLowering(KernelOp kernel, const LLVMTypeConverter &types,
                               const Target &target)
    : KernelBase(kernel, types, {"GPU", "a GPU kernel", "comms-to-nvvm"}),
      target(target), isShared(kernel->hasAttr(kSharedChannelsAttr)),
      generic(LLVM::LLVMPointerType::get(kernel.getContext())),
      global(LLVM::LLVMPointerType::get(kernel.getContext(), 1)),
      shared(LLVM::LLVMPointerType::get(kernel.getContext(), 3)) {}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value KernelLowering::toI32(Value index, ImplicitLocOpBuilder &b) {
  if (index.getType().isInteger(32))
    return index;
  if (index.getType().isIndex())
    return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
  return b.createOrFold<arith::TruncIOp>(b.getI32Type(), index);
}

/// An unsigned number as an index.
Value KernelLowering::toIndex(Value integer, ImplicitLocOpBuilder &b) {
  return b.createOrFold<arith::IndexCastUIOp>(b.getIndexType(), integer);
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::checkShape() {
  if (kernel.getBody().empty())
    return kernel.emitOpError("has no body: a GPU kernel needs one");
  StringRef name = kernel.getSymName();
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (name.empty() || !llvm::all_of(name, isWord) ||
      llvm::isDigit(name.front()))
    return kernel.emitOpError("has a name that PTX cannot hold: use letters, "
                              "digits and underscores");
  auto needs = [&](const char *what, const char *option) {
    return kernel.emitOpError("needs a known number of ")
           << what << ": give the pipeline the option " << option;
  };
  if (!kernel.getRanks())
    return needs("ranks", "ranks=N");
  ranks = *kernel.getRanks();
  lsaSize = kernel.getLsaSize().value_or(ranks);
  if (!kernel.getBlocks())
    return needs("blocks", "blocks=N");
  target.blocks = *kernel.getBlocks();
  // As comms-distribute-tiles has spread the tiles.
  if (auto number = kernel->getAttrOfType<IntegerAttr>("comms.threads"))
    target.threads = number.getInt();
  launchedThreads = target.threads;
  if (auto number = kernel->getAttrOfType<IntegerAttr>("comms.cluster"))
    target.cluster = number.getInt();
  if (ranks < 1 || ranks > 1024 || lsaSize < 1 || lsaSize > ranks)
    return kernel.emitOpError("has ")
           << ranks << " ranks in reach of " << lsaSize
           << ": a GPU kernel takes 1 to 1024 ranks and 1 to `ranks` in reach";
  if (target.blocks < 1 || target.blocks > (1 << 20))
    return kernel.emitOpError("has ")
           << target.blocks << " blocks: a GPU kernel takes 1 to 2^20";
  if (!llvm::isPowerOf2_64(std::max<int64_t>(target.threads, 0)) ||
      target.threads > 1024)
    return kernel.emitOpError("has ")
           << target.threads
           << " threads a CTA: give a power of two from 1 to 1024";
  if (!llvm::isPowerOf2_64(std::max<int64_t>(target.cluster, 0)) ||
      target.cluster > 16)
    return kernel.emitOpError("has clusters of ")
           << target.cluster << " CTAs: give a power of two from 1 to 16";
  if (target.cluster > 1 && target.sm < 90)
    return kernel.emitOpError("asks for clusters of ")
           << target.cluster << " CTAs, which sm_" << target.sm
           << " does not have: set cluster=1 or a chip from sm_90 on";
  if (target.cluster > 1 && target.threads == 1)
    return kernel.emitOpError("asks for clusters of ")
           << target.cluster
           << " CTAs of one thread, which would all do the whole block's work: "
              "set cluster=1 or give 32 threads or more";
  return success();
}

/// Distance and number of the members of a team. It is made by this dialect's
/// ops, or refused where it is used.
static std::pair<int64_t, int64_t> shapeOf(Value team, int64_t ranks,
                                           int64_t lsaSize) {
  SmallVector<TeamSplitOp> splits;
  while (auto split = team.getDefiningOp<TeamSplitOp>()) {
    splits.push_back(split);
    team = split.getTeam();
  }
  int64_t stride = 1, size = ranks;
  if (auto base = team.getDefiningOp<TeamOp>()) {
    if (base.getKind() == TeamKind::Lsa)
      size = lsaSize;
    if (base.getKind() == TeamKind::Rail)
      stride = lsaSize, size = ranks / lsaSize;
  }
  for (TeamSplitOp split : llvm::reverse(splits)) {
    auto factor = std::max<int64_t>(split.getFactor(), 1);
    if (split.getKind() == SplitKind::Inner)
      size = factor;
    else
      stride *= factor, size /= factor;
  }
  return {size == 1 ? 1 : stride, size};
}

unsigned KernelLowering::barrierTeam(Value team) const {
  return llvm::find(barrierTeams, shapeOf(team, ranks, lsaSize)) -
         barrierTeams.begin();
}

/// Offsets of the arguments, and the hidden window of the barriers.
LogicalResult KernelLowering::layOutParameters() {
  SmallVector<unsigned> cast;
  llvm::DenseSet<Value> reached;
  auto meets = [&](Value team) {
    if (barrierTeam(team) == barrierTeams.size())
      barrierTeams.push_back(shapeOf(team, ranks, lsaSize));
  };
  kernel.getBody().walk([&](Operation *op) {
    if (auto barrier = dyn_cast<BarrierOp>(op))
      meets(barrier.getTeam());
    if (auto arrival = dyn_cast<BarrierArriveOp>(op))
      meets(arrival.getTeam());
    if (auto view = dyn_cast<MultimemOp>(op))
      reached.insert(view.getWindow());
  });
  if (!barrierTeams.empty()) {
    barrierArgument = kernel.getNumArguments();
    SmallVector<int64_t, 3> shape{kBarrierRows + target.blocks, ranks};
    if (isShared && barrierTeams.size() > 1)
      return kernel.emitOpError("has barriers of several teams, and such a "
                                "kernel cannot share channel memory");
    if (barrierTeams.size() > 1)
      shape.insert(shape.begin(), static_cast<int64_t>(barrierTeams.size()));
    auto window =
        WindowType::get(kernel.getContext(), shape, rewriter.getI32Type());
    NamedAttrList attributes;
    attributes.set("comms.name", rewriter.getStringAttr(kBarrierName));
    attributes.set("comms.hidden", rewriter.getUnitAttr());
    attributes.set("comms.init", rewriter.getStringAttr("zero"));
    if (isShared)
      attributes.set(kSharedSlotsAttr, rewriter.getStringAttr(kBarrierName));
    if (failed(kernel.insertArgument(
            barrierArgument, window,
            attributes.getDictionary(kernel.getContext()), kernel.getLoc())))
      return failure();
  }
  paramBytes = kArgumentsOffset;
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    offsets.push_back(paramBytes);
    bool hasParts = isa<WindowType, SignalType>(argument.getType());
    paramBytes += 8 * (hasParts ? ranks : 1);
    if (takesTurns(argument.getArgNumber()))
      paramBytes += 16;
    multicast.push_back(-1);
  }
  for (auto [index, argument] :
       llvm::enumerate(kernel.getBody().getArguments()))
    if (reached.contains(argument)) {
      multicast[index] = paramBytes;
      paramBytes += 8;
    }
  if (paramBytes > 4096)
    return kernel.emitOpError("needs ")
           << paramBytes
           << " bytes of parameters, more than the 4096 of a GPU kernel: use "
              "fewer windows or ranks";
  return success();
}

Value KernelLowering::bindMemory(unsigned index, MemRefType type,
                                 ImplicitLocOpBuilder &b) {
  return makeMemRef(type, parameter(offsets[index], global, b), kAlignment, b);
}

Value KernelLowering::bindScalar(unsigned index, Type type,
                                 ImplicitLocOpBuilder &b) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (width > 64)
    return {};
  Value word = parameter(offsets[index], b.getI64Type(), b);
  Value bits = width == 64
                   ? word
                   : arith::TruncIOp::create(b, b.getIntegerType(width), word)
                         .getResult();
  if (type.isIndex())
    return arith::IndexCastOp::create(b, type, bits);
  if (isa<FloatType>(type))
    return arith::BitcastOp::create(b, type, bits);
  return bits;
}

Value KernelLowering::bindExtent(ExtentOp op, ImplicitLocOpBuilder &b) {
  Value word = parameter(offsetof(Launch, extent), b.getI64Type(), b);
  Value given =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, word, constI64(0, b));
  Value most = constI64(static_cast<int64_t>(op.getMost()), b);
  return toIndex(arith::SelectOp::create(b, given, word, most), b);
}

/// An entry of one struct by value, for CTAs of this shape.
void KernelLowering::describeFunction() {
  MLIRContext *context = kernel.getContext();
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    rewriter.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    rewriter.getDenseI32ArrayAttr({int32_t(target.threads)}));
  if (target.cluster > 1)
    function->setAttr(
        NVVM::NVVMDialect::getClusterDimAttrName(),
        rewriter.getDenseI32ArrayAttr({int32_t(target.cluster), 1, 1}));
  auto structType = LLVM::LLVMStructType::getLiteral(
      context,
      {LLVM::LLVMArrayType::get(rewriter.getI64Type(), paramBytes / 8)});
  function.setArgAttrs(
      0,
      rewriter.getDictionaryAttr(
          {rewriter.getNamedAttr(LLVM::LLVMDialect::getByValAttrName(),
                                 TypeAttr::get(structType)),
           rewriter.getNamedAttr(LLVM::LLVMDialect::getAlignAttrName(),
                                 rewriter.getI64IntegerAttr(8)),
           rewriter.getNamedAttr(NVVM::NVVMDialect::getGridConstantAttrName(),
                                 rewriter.getUnitAttr())}));
}

/// Reads the thread's and the block's numbers, and the block's words in the
/// state.
void KernelLowering::readState(ImplicitLocOpBuilder &b) {
  Type i32 = b.getI32Type();
  me = {toIndex(parameter(offsetof(Launch, rank), i32, b), b),
        constIndex(ranks, b), constIndex(lsaSize, b)};
  state = parameter(offsetof(Launch, state), global, b);
  Value cta = NVVM::BlockIdXOp::create(
      b, i32,
      LLVM::ConstantRangeAttr::get(b.getContext(), APInt(32, 0),
                                   APInt(32, target.blocks * target.cluster)));
  Value number =
      target.cluster == 1
          ? cta
          : arith::DivUIOp::create(b, cta, constI32(target.cluster, b))
                .getResult();
  block = toIndex(number, b);
  blocks = constIndex(target.blocks, b);
  Value thread = NVVM::ThreadIdXOp::create(b, i32);
  Value inBlock = thread;
  if (target.cluster > 1)
    inBlock = arith::OrIOp::create(b, thread, NVVM::ClusterId::create(b, i32));
  leader = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, inBlock,
                                 constI32(0, b));
  words = findWords(b);
  Value finished = LLVM::LoadOp::create(
      b, b.getI64Type(), addBytes(words, offsetof(BlockState, epoch), b),
      /*alignment=*/8);
  epoch = toIndex(arith::AddIOp::create(b, finished, constI64(1, b)), b);
  if (isShared)
    takeTurns(b);
  else
    useThirds(b);
  Value one = constI32(1, b);
  budget = LLVM::AllocaOp::create(b, generic, i32, one);
  Value spin = LLVM::LoadOp::create(b, i32, addBytes(state, kSpinOffset, b), 4);
  LLVM::StoreOp::create(b, spin, budget);
  for (unsigned team = 0; team < barrierTeams.size(); ++team) {
    // Of the first team the block's words tell it, of others its own cell.
    Value place =
        team == 0
            ? addBytes(words, offsetof(BlockState, generation), b)
            : barrierCell(me.rank, team, BarrierExtent::Block, me.rank, b);
    Value generation = LLVM::AllocaOp::create(b, generic, i32, one);
    Value passed = LLVM::LoadOp::create(b, i32, place, 4);
    LLVM::StoreOp::create(b, passed, generation);
    generations.push_back(generation);
  }
}

/// Address of the block's BlockState.
Value KernelLowering::findWords(ImplicitLocOpBuilder &b) {
  Value size = constI64(sizeof(BlockState), b);
  Value before = arith::MulIOp::create(b, toI64(block, b), size);
  return addBytes(addBytes(state, before, b), getBlockOffset(0), b);
}

/// Takes the launch's number modulo 3 from where the last one left it.
void KernelLowering::useThirds(ImplicitLocOpBuilder &b) {
  SmallVector<arith::RemUIOp> turns;
  function.walk([&](EpochOp launch) {
    for (Operation *user : launch->getUsers())
      if (auto turn = dyn_cast<arith::RemUIOp>(user))
        if (turn.getLhs() == launch && isConstantIntValue(turn.getRhs(), 3))
          turns.push_back(turn);
  });
  if (turns.empty())
    return;
  third = LLVM::LoadOp::create(b, b.getI32Type(),
                               addBytes(words, offsetof(BlockState, third), b),
                               /*alignment=*/4);
  Value flipped = arith::XOrIOp::create(b, third, constI32(1, b));
  // Two bits, as the optimizer has to know for the turns that follow.
  Value turn = toIndex(arith::AndIOp::create(b, flipped, constI32(3, b)), b);
  for (arith::RemUIOp op : turns)
    rewriter.replaceOp(op, turn);
}

/// `third` of the next launch: 0, 3, 1 and again.
Value KernelLowering::getNextThird(ImplicitLocOpBuilder &b) {
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, third, constI32(0, b));
  Value half = arith::ShRUIOp::create(b, third, constI32(1, b));
  return arith::SelectOp::create(b, isFirst, constI32(3, b), half);
}

void KernelLowering::prefetchArguments(ImplicitLocOpBuilder &b) {
  for (unsigned i = 0, e = kernel.getFunctionType().getNumInputs(); i < e;
       ++i) {
    auto type = dyn_cast<MemRefType>(kernel.getFunctionType().getInput(i));
    if (target.sm >= 90 && type && type.hasStaticShape() &&
        kernel.getArgAttr(i, kPrefetchAttr))
      prefetch(
          i, type.getNumElements() * getElementBytes(type.getElementType()), b);
  }
}

/// One instruction of each thread. Nothing is written before it that it had to
/// see, so that it does not wait for the launch before.
void KernelLowering::prefetch(unsigned index, int64_t bytes,
                              ImplicitLocOpBuilder &b) {
  constexpr int64_t unit = 16;
  int64_t ctas = target.blocks * target.cluster;
  int64_t piece =
      llvm::alignTo(llvm::divideCeil(bytes, ctas * target.threads), unit);
  Type i64 = b.getI64Type();
  Value address = parameter(offsets[index], i64, b);
  auto roundDown = [&](Value number) -> Value {
    return arith::AndIOp::create(b, number, constI64(-unit, b));
  };
  Value end = roundDown(arith::AddIOp::create(b, address, constI64(bytes, b)));
  Value first =
      roundDown(arith::AddIOp::create(b, address, constI64(unit - 1, b)));
  Value thread = arith::ExtUIOp::create(
      b, i64, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  Value cta = arith::ExtUIOp::create(
      b, i64, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  Value before = arith::MulIOp::create(b, cta, constI64(target.threads, b));
  Value number = arith::AddIOp::create(b, before, thread);
  Value from = arith::AddIOp::create(
      b, first, arith::MulIOp::create(b, number, constI64(piece, b)));
  Value rest = arith::SubIOp::create(b, end, from);
  Value isAny =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, rest, constI64(0, b));
  auto branch = scf::IfOp::create(b, isAny, /*withElseRegion=*/false);
  ImplicitLocOpBuilder in(b.getLoc(), branch.thenYield());
  Value size = arith::TruncIOp::create(
      in, in.getI32Type(),
      arith::MinSIOp::create(in, rest, constI64(piece, in)));
  emit(in, Ptx::PrefetchL2, {from, size});
}

LogicalResult KernelLowering::makeFunction() {
  Location loc = kernel.getLoc();
  rewriter.setInsertionPointAfter(kernel);
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(kernel.getContext()), {generic});
  function = LLVM::LLVMFuncOp::create(rewriter, loc, kernel.getSymName(), type);
  describeFunction();
  findConstantContracts();
  // The kernel keeps its name for messages until it is erased.
  function.getBody().takeBody(kernel.getBody());
  Block &entry = function.getBody().front();
  params = entry.insertArgument(0u, generic, loc);
  rewriter.setInsertionPointToStart(&entry);
  ImplicitLocOpBuilder b(loc, rewriter);
  prefetchArguments(b);
  if (target.sm >= 90) { // The next launch may start; the last has ended.
    emit(b, Ptx::LaunchDependents, {});
    emit(b, Ptx::WaitForPrevious, {});
  }
  readState(b);
  return bindArguments(entry, b);
}

/// Whether `op` loads, calculates or sends, and waits for nobody.
static bool isNonBlocking(Operation &op) {
  if (isa<PoisonStoreOp, PacketStoreOp, vector::LoadOp, vector::MaskedLoadOp,
          memref::AllocaOp, memref::StoreOp, ScratchOp,
          NVVM::ClusterArriveRelaxedOp, LLVM::InlineAsmOp>(op))
    return true;
  return !op.getNumRegions() && isMemoryEffectFree(&op) &&
         !op.hasTrait<OpTrait::IsTerminator>();
}

/// Whether `op` is a branch or a loop that holds nothing else.
static bool isNonBlockingRegion(Operation &op) {
  return isa<scf::IfOp, scf::ForOp>(op) &&
         llvm::all_of(op.getRegions(), [](Region &region) {
           return llvm::all_of(region.getOps(), [](Operation &inner) {
             return isa<scf::YieldOp>(inner) || isNonBlocking(inner) ||
                    isNonBlockingRegion(inner);
           });
         });
}

/// Returns where the block marks its channels busy: after the first loads and
/// sends, because the mark is a branch, which waits for everything before it.
static Operation *findEntrance(Block &entry) {
  return &*llvm::find_if_not(entry, isNonBlocking);
}

/// Finds where a launch on shared channel memory prepares the next launch:
/// after the sends that precede the first wait, on each branch that a block may
/// take.
static void findSharedEntrances(Block &block,
                                SmallVectorImpl<Operation *> &entrances) {
  Operation &op = *llvm::find_if(block, [](Operation &one) {
    return !isNonBlocking(one) && !isNonBlockingRegion(one);
  });
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch)
    return entrances.push_back(&op);
  if (branch.getElseRegion().empty()) {
    OpBuilder b(op.getContext());
    b.createBlock(&branch.getElseRegion());
    scf::YieldOp::create(b, op.getLoc());
  }
  findSharedEntrances(*branch.thenBlock(), entrances);
  findSharedEntrances(*branch.elseBlock(), entrances);
}

/// Marks the block's channels busy. What was there before is looked at when the
/// block ends, so that nothing waits for it.
void KernelLowering::enter(ImplicitLocOpBuilder &b) {
  Value word = addBytes(words, offsetof(BlockState, busy), b);
  Value isLeader = arith::ExtUIOp::create(b, b.getI32Type(), leader);
  busy = emitOne(b, Ptx::Exchange32If, {word, constI32(1, b), isLeader},
                 b.getI32Type());
}

/// By the leader: reports that another launch was here, and leaves.
void KernelLowering::exitRelaunched(ReturnOp op, Value words,
                                    ImplicitLocOpBuilder &b) {
  Value other =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, busy, constI32(0, b));
  auto shared = scf::IfOp::create(b, other, /*withElseRegion=*/false);
  ImplicitLocOpBuilder in(b.getLoc(), shared.thenYield());
  record(PollKind::Busy, siteOf(op, in), toI64(epoch, in), toI64(epoch, in),
         in);
  LLVM::StoreOp::create(b, constI32(0, b),
                        addBytes(words, offsetof(BlockState, busy), b), 4);
}

/// All threads are done; then the block's words tell the next launch.
void KernelLowering::lowerReturn(ReturnOp op, ImplicitLocOpBuilder &b) {
  threadBarrier(b, /*ordersMemory=*/false);
  ifLeader(b, [&](ImplicitLocOpBuilder &in) {
    Value words = findWords(in);
    exitRelaunched(op, words, in);
    auto keep = [&](Value value, int64_t offset, unsigned alignment) {
      LLVM::StoreOp::create(in, value, addBytes(words, offset, in), alignment);
    };
    keep(toI64(epoch, in), offsetof(BlockState, epoch), 8);
    if (third)
      keep(getNextThird(in), offsetof(BlockState, third), 4);
    if (third && isShared)
      keep(constI32(poisonUnits, in), offsetof(BlockState, stale), 4);
    if (!generations.empty()) {
      Value passed =
          LLVM::LoadOp::create(in, in.getI32Type(), generations.front());
      keep(passed, offsetof(BlockState, generation), 4);
    }
  });
  rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange{});
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// Ops that travel by GIN: comms-call-nccl has left none.
static LogicalResult refuseGin(Operation *op) {
  if (!op->hasAttr("gin"))
    return success();
  return op->emitOpError(
      "travels by GIN, for which the NCCL device library's ncclGin calls are "
      "needed: run comms-call-nccl first, as the pipeline comms-to-nvvm does, "
      "or drop `gin` for peers in load/store reach");
}

LogicalResult KernelLowering::lowerOtherOp(Operation *op,
                                           ImplicitLocOpBuilder &b) {
  if (isa<vector::LoadOp, vector::StoreOp>(op))
    return alignVector(op), success();
  if (isa_and_present<gpu::GPUDialect>(op->getDialect()))
    return lowerGpuOp(op, b);
  return success();
}

LogicalResult KernelLowering::lowerBody(Operation *entrance,
                                        ArrayRef<Operation *> shared) {
  // What is lowered may add ops, never comms ops: one list is enough. Parents
  // come before what is in them, so a loop's peer is known to its body.
  SmallVector<Operation *> ops;
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<YieldOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    // Polls that were lowered with an earlier one are gone.
    if (done.contains(op))
      continue;
    rewriter.setInsertionPoint(op);
    ImplicitLocOpBuilder b(op->getLoc(), rewriter);
    if (op == entrance)
      enter(b);
    if (llvm::is_contained(shared, op))
      enterShared(b);
    if (failed(refuseGin(op)) || failed(lowerOp(op)))
      return failure();
  }
  return success();
}

void KernelLowering::describe() {
  SmallVector<Attribute> args;
  for (unsigned i = 0; i < argTypes.size(); ++i) {
    NamedAttrList list = describeArgument(i);
    if (multicast[i] >= 0)
      list.set("multimem", rewriter.getUnitAttr());
    if (kernel.getArgAttr(i, kNcclAttr))
      list.set("hidden", rewriter.getUnitAttr());
    if (Attribute slots = kernel.getArgAttr(i, kSharedSlotsAttr))
      list.set("slots", slots);
    args.push_back(list.getDictionary(rewriter.getContext()));
  }
  function->setAttr(kArgsAttr, rewriter.getArrayAttr(args));
  function->setAttr(kSitesAttr, rewriter.getArrayAttr(sites));
  function->setAttr(kParamsAttr, rewriter.getI64IntegerAttr(paramBytes));
  function->setAttr(kRanksAttr, rewriter.getI64IntegerAttr(ranks));
  function->setAttr(kLsaSizeAttr, rewriter.getI64IntegerAttr(lsaSize));
  function->setAttr(kBlocksAttr, rewriter.getI64IntegerAttr(target.blocks));
  for (const char *name : {kChoicesAttr, kProofAttr, kNcclAttr})
    if (Attribute value = kernel->getAttr(name))
      function->setAttr(name, value);
  auto number = [&](const char *name, int64_t value) {
    return rewriter.getNamedAttr(name, rewriter.getI64IntegerAttr(value));
  };
  SmallVector<NamedAttribute> launch = {
      number("blocks", target.blocks), number("threads", launchedThreads),
      number("cluster", target.cluster),
      number("dynamic_shared", sharedBytes > kStaticShared ? sharedBytes : 0)};
  if (target.sm >= 90) // It begins by waiting for the launch before it.
    launch.push_back(rewriter.getNamedAttr("overlap", rewriter.getUnitAttr()));
  if (isShared)
    launch.push_back(rewriter.getNamedAttr("shared", rewriter.getUnitAttr()));
  function->setAttr(kLaunchAttr, rewriter.getDictionaryAttr(launch));
}

/// Gives the shared memory its size, now that it is known.
LogicalResult KernelLowering::makeShared() {
  if (!sharedMemory)
    return success();
  if (sharedBytes == 0) {
    sharedMemory.erase();
    return success();
  }
  if (int64_t limit = getMaxShared(target.sm); sharedBytes > limit)
    return kernel.emitOpError("needs ")
           << sharedBytes << " bytes of shared memory a CTA, more than the "
           << limit << " of sm_" << target.sm << ": "
           << (contracts.empty()
                   ? "spread a row over more threads or a larger cluster"
                   : "use less scratch memory, or fewer products in a kernel");
  bool isDynamic = sharedBytes > kStaticShared;
  auto array = LLVM::LLVMArrayType::get(rewriter.getI8Type(),
                                        isDynamic ? 0 : sharedBytes);
  sharedMemory.setGlobalType(array);
  sharedMemory.setLinkage(isDynamic ? LLVM::Linkage::External
                                    : LLVM::Linkage::Internal);
  return success();
}

LogicalResult KernelLowering::run() {
  if (failed(checkShape()))
    return failure();
  hoistPolls(kernel);
  hoistStores(kernel);
  Operation *entrance = findEntrance(kernel.getBody().front());
  SmallVector<Operation *> shared;
  if (isShared)
    findSharedEntrances(kernel.getBody().front(), shared);
  if (failed(layOutParameters()) || failed(makeFunction()) ||
      failed(lowerBody(entrance, shared)) || failed(makeShared()))
    return failure();
  joinBarriers();
  addCopyThreads();
  describe();
  if (failed(eraseNames()))
    return failure();
  eraseDead();
  kernel.erase();
  return success();
}
