//===- Sequence.cpp - Launches of several kernels in turn -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Sequence.h"

#include "dialect/Assumptions.h"
#include "lowering/analysis/Accesses.h"
#include "lowering/analysis/Blocks.h"
#include "lowering/check/Launches.h"
#include "lowering/check/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static llvm::Error badSequence(const Twine &message) {
  return llvm::createStringError(
      "the order of launches " + message +
      ": write kernels and accesses of the host, as in 'a, read x, b(x=inbox)' "
      "or 'any of a, b'");
}

/// Splits at commas outside of parentheses.
static SmallVector<StringRef> splitTurns(StringRef text) {
  SmallVector<StringRef> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (text[at] != ',' || depth > 0)
      continue;
    parts.push_back(text.slice(begin, at).trim());
    begin = at + 1;
  }
  parts.push_back(text.substr(begin).trim());
  return parts;
}

static bool isWord(StringRef text) {
  return !text.empty() && llvm::none_of(text, [](char c) {
    return llvm::isSpace(c) || StringRef("(),=").contains(c);
  });
}

static llvm::Expected<Turn> parseTurn(StringRef text) {
  Turn turn;
  turn.text = text.str();
  auto word = text.split(' ');
  if (!word.second.empty() && (word.first == "read" || word.first == "write")) {
    turn.kind = word.first == "read" ? Turn::HostRead : Turn::HostWrite;
    turn.name = word.second.trim().str();
    if (!isWord(turn.name))
      return badSequence("has '" + text + "', which names no memory");
    return turn;
  }
  auto [name, rest] = text.split('(');
  turn.name = name.trim().ltrim('@').str();
  if (!isWord(turn.name))
    return badSequence("has '" + text + "', which names no kernel");
  if (name.size() == text.size())
    return turn;
  if (!rest.consume_back(")"))
    return badSequence("has '" + text + "', which has no ')'");
  for (StringRef part : splitTurns(rest)) {
    auto [argument, memory] = part.split('=');
    turn.bound.emplace_back(argument.trim().str(), memory.trim().str());
    if (!isWord(turn.bound.back().first) || !isWord(turn.bound.back().second))
      return badSequence("has '" + text + "', where '" + part +
                         "' is not ARGUMENT=MEMORY");
  }
  return turn;
}

llvm::Expected<Sequence> mlir::comms::check::parseSequence(StringRef text) {
  Sequence sequence;
  StringRef rest = text.trim();
  sequence.isAnyOrder = rest.consume_front("any of ");
  constexpr size_t maxTurns = 64;
  SmallVector<StringRef> parts = splitTurns(rest);
  if (parts.size() > maxTurns)
    return badSequence("has more than " + Twine(maxTurns) + " launches");
  for (StringRef part : parts) {
    auto turn = parseTurn(part);
    if (!turn)
      return turn.takeError();
    sequence.turns.push_back(std::move(*turn));
  }
  return sequence;
}

FailureOr<std::vector<KernelOp>>
mlir::comms::check::findKernels(ModuleOp module, const Sequence &sequence) {
  llvm::StringSet<> wanted;
  for (const Turn &turn : sequence.turns)
    if (turn.kind == Turn::Launch)
      wanted.insert(turn.name);
  std::vector<KernelOp> kernels;
  std::string names;
  for (auto kernel : module.getOps<KernelOp>()) {
    names += (names.empty() ? "" : ", ") + kernel.getSymName().str();
    if (wanted.erase(kernel.getSymName()))
      kernels.push_back(kernel);
  }
  if (!wanted.empty())
    return module.emitError("the order of launches has '")
           << wanted.begin()->first() << "', which is not a kernel; there are "
           << (names.empty() ? "none" : names);
  if (kernels.empty())
    return module.emitError("the order of launches has no kernel");
  return kernels;
}

//===----------------------------------------------------------------------===//
// One kernel of several
//===----------------------------------------------------------------------===//

namespace {

/// An argument of the joined kernel.
struct Memory {
  std::string name;
  Type type;
  NamedAttrList attributes;
  Location location;
  /// The kernel that has it first.
  KernelOp kernel;
};

class Joiner {
public:
  Joiner(ModuleOp module, const Sequence &sequence, llvm::ArrayRef<Turn> turns,
         int64_t blocks)
      : module(module), sequence(sequence), turns(turns), blocks(blocks),
        builder(module.getContext()) {}
  FailureOr<KernelOp> join();

private:
  LogicalResult addKernel(const Turn &turn);
  LogicalResult addArgument(const Turn &turn, KernelOp kernel, unsigned index);
  std::string memoryOf(const Turn &turn, KernelOp kernel, unsigned index);
  LogicalResult checkBound(const Turn &turn, KernelOp kernel);
  LogicalResult checkBlocks();
  KernelOp create();
  /// Enters a region that only blocks below `count` run.
  void enterBlocks(Location location, int64_t count);
  void launch(const Turn &turn, Value cycle, int64_t perCycle, int64_t number);
  LogicalResult access(const Turn &turn, Location location);
  LogicalResult fill(KernelOp joined);
  int64_t blocksOf(KernelOp kernel) const {
    return blocks ? blocks : chooseBlocks(kernel);
  }
  Value constant(Location location, int64_t number) {
    return arith::ConstantIndexOp::create(builder, location, number);
  }
  BlockArgument argument(StringRef memory) {
    return body->getArgument(places.lookup(memory));
  }

  ModuleOp module;
  const Sequence &sequence;
  llvm::ArrayRef<Turn> turns;
  int64_t blocks;
  OpBuilder builder;
  llvm::StringMap<KernelOp> kernels;
  std::vector<Memory> memories;
  /// Where a memory of that name is.
  llvm::StringMap<unsigned> places;
  KernelOp first;
  int64_t mostBlocks = 1;
  Block *body = nullptr;
};

} // namespace

/// The memory that an argument is. Scalars and what the compiler added are the
/// kernel's own.
std::string Joiner::memoryOf(const Turn &turn, KernelOp kernel,
                             unsigned index) {
  std::string name = kernel.getArgumentName(index);
  Type type = kernel.getArgumentTypes()[index];
  if (type.isIntOrIndexOrFloat() || kernel.getArgAttr(index, "comms.hidden"))
    return turn.name + "." + name;
  for (const auto &[from, to] : turn.bound)
    if (from == name)
      return to;
  return name;
}

LogicalResult Joiner::addArgument(const Turn &turn, KernelOp kernel,
                                  unsigned index) {
  std::string name = memoryOf(turn, kernel, index);
  Type type = kernel.getArgumentTypes()[index];
  auto function = cast<FunctionOpInterface>(kernel.getOperation());
  NamedAttrList attributes(function.getArgAttrs(index));
  attributes.set(KernelOp::getArgumentNameAttrName(),
                 builder.getStringAttr(name));
  auto [it, isNew] =
      places.try_emplace(name, static_cast<unsigned>(memories.size()));
  if (isNew)
    memories.push_back(
        {name, type, attributes, kernel.getArgument(index).getLoc(), kernel});
  Memory &memory = memories[it->second];
  if (memory.type != type)
    return kernel.emitError("'")
           << turn.name << "' has '" << name << "' as " << type << ", but '"
           << memory.kernel.getSymName() << "' as " << memory.type
           << ": memory of one name is shared; name it apart in the order of "
              "launches, as in '"
           << turn.name << "(" << name << "=other)'";
  for (NamedAttribute attribute : attributes)
    memory.attributes.set(attribute.getName(), attribute.getValue());
  return success();
}

/// Whether the names in parentheses are arguments that memory can be given to.
LogicalResult Joiner::checkBound(const Turn &turn, KernelOp kernel) {
  for (const auto &[from, to] : turn.bound) {
    bool isThere = false;
    for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
      isThere |= kernel.getArgumentName(index) == from &&
                 memoryOf(turn, kernel, index) == to;
    if (!isThere)
      return kernel.emitError("'")
             << turn.name << "' has no window, array, signal or counter '"
             << from << "', which the order of launches names";
  }
  return success();
}

LogicalResult Joiner::addKernel(const Turn &turn) {
  auto kernel = module.lookupSymbol<KernelOp>(turn.name);
  assert(kernel && "findKernels has not been asked");
  kernels[turn.name] = kernel;
  if (!first)
    first = kernel;
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError("has unstructured control flow (cf.br), which the "
                            "checker does not follow");
  if (kernel->hasAttr("comms.run_time_extent"))
    return kernel.emitError("has sizes that only a launch knows, which a check "
                            "of several kernels does not follow");
  if (findRootArgument(kernel))
    return kernel.emitError("has a root that only a launch knows, which a "
                            "check of several kernels does not follow");
  if (kernel.getRanks() != first.getRanks() ||
      kernel.getLsaSize() != first.getLsaSize())
    return kernel.emitError("'")
           << turn.name << "' and '" << first.getSymName()
           << "' are not for the same ranks (ranks, lsa_size)";
  mostBlocks = std::max(mostBlocks, blocksOf(kernel));
  if (failed(checkBound(turn, kernel)))
    return failure();
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    if (failed(addArgument(turn, kernel, index)))
      return failure();
  return success();
}

/// A barrier of all blocks of a rank counts those of its own kernel.
LogicalResult Joiner::checkBlocks() {
  for (const auto &entry : kernels) {
    KernelOp kernel = entry.second;
    if (blocksOf(kernel) == mostBlocks)
      continue;
    WalkResult result = kernel.walk([&](Operation *op) {
      bool isGrid = isa<EngineCopyOp>(op);
      if (auto barrier = dyn_cast<BarrierOp>(op))
        isGrid = barrier.getExtent() == BarrierExtent::Grid;
      if (auto arrive = dyn_cast<BarrierArriveOp>(op))
        isGrid = arrive.getExtent() == BarrierExtent::Grid;
      if (!isGrid)
        return WalkResult::advance();
      op->emitError("joins the ")
          << blocksOf(kernel) << " blocks of a rank of '" << kernel.getSymName()
          << "', but another kernel has " << mostBlocks
          << ": a check of several kernels follows this if all have the same "
             "number of blocks";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

KernelOp Joiner::create() {
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  SmallVector<Location> locations;
  for (Memory &memory : memories) {
    types.push_back(memory.type);
    attributes.push_back(memory.attributes.getDictionary(builder.getContext()));
    locations.push_back(memory.location);
  }
  std::string name = "sequence";
  while (module.lookupSymbol(name))
    name += "_";
  OperationState state(first.getLoc(), KernelOp::getOperationName());
  OperationName op = state.name;
  state.addAttribute(KernelOp::getSymNameAttrName(op),
                     builder.getStringAttr(name));
  state.addAttribute(KernelOp::getFunctionTypeAttrName(op),
                     TypeAttr::get(builder.getFunctionType(types, {})));
  state.addAttribute(KernelOp::getArgAttrsAttrName(op),
                     builder.getArrayAttr(attributes));
  for (StringAttr own :
       {KernelOp::getRanksAttrName(op), KernelOp::getLsaSizeAttrName(op)})
    if (Attribute value = first->getAttr(own))
      state.addAttribute(own, value);
  state.addAttribute(KernelOp::getBlocksAttrName(op),
                     builder.getI64IntegerAttr(mostBlocks));
  if (llvm::any_of(kernels, [](const auto &entry) {
        return statesAssumption(entry.second, kPacketsCumulative);
      }))
    state.addAttribute(kAssumesAttr,
                       builder.getStrArrayAttr({kPacketsCumulative}));
  if (sequence.isAnyOrder)
    state.addAttribute(kOneRoundAttr, builder.getUnitAttr());
  body = &state.addRegion()->emplaceBlock();
  body->addArguments(types, locations);
  builder.setInsertionPointToEnd(module.getBody());
  return cast<KernelOp>(builder.create(state));
}

void Joiner::enterBlocks(Location location, int64_t count) {
  if (count == mostBlocks)
    return;
  Value block = BlockIdOp::create(builder, location);
  Value runs =
      arith::CmpIOp::create(builder, location, arith::CmpIPredicate::ult, block,
                            constant(location, count));
  auto some = scf::IfOp::create(builder, location, runs, /*withElse=*/false);
  builder.setInsertionPoint(some.thenBlock()->getTerminator());
}

/// The body of a kernel, `number`-th of `perCycle` launches of it in each
/// cycle.
void Joiner::launch(const Turn &turn, Value cycle, int64_t perCycle,
                    int64_t number) {
  KernelOp kernel = kernels[turn.name];
  Location location = kernel.getLoc();
  enterBlocks(location, blocksOf(kernel));
  Value before = arith::MulIOp::create(builder, location, cycle,
                                       constant(location, perCycle));
  Value epoch = arith::AddIOp::create(builder, location, before,
                                      constant(location, number));
  Value count = constant(location, blocksOf(kernel));
  IRMapping mapping;
  for (BlockArgument own : kernel.getArguments())
    mapping.map(own, argument(memoryOf(turn, kernel, own.getArgNumber())));
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    copy->walk([&](Operation *inner) {
      Value known = isa<EpochOp>(inner)       ? epoch
                    : isa<NumBlocksOp>(inner) ? count
                                              : Value();
      if (known)
        inner->getResult(0).replaceAllUsesWith(known);
    });
    if (isa<EpochOp>(op))
      mapping.map(op.getResult(0), epoch);
    if (isa<NumBlocksOp>(op))
      mapping.map(op.getResult(0), count);
  }
}

/// The host reads or writes all that its rank has of a memory.
LogicalResult Joiner::access(const Turn &turn, Location location) {
  auto it = places.find(turn.name);
  Type known = it == places.end() ? Type() : memories[it->second].type;
  auto window = dyn_cast_or_null<WindowType>(known);
  auto array = dyn_cast_or_null<MemRefType>(known);
  if (!window && !array) {
    std::string names;
    for (const Memory &memory : memories)
      if (isa<WindowType, MemRefType>(memory.type) &&
          !memory.attributes.get("comms.hidden"))
        names += (names.empty() ? "" : ", ") + memory.name;
    return module.emitError("the host accesses '")
           << turn.name << "', which is not a window or array of the kernels; "
           << "there are " << (names.empty() ? "none" : names);
  }
  enterBlocks(location, 1);
  MemRefType type = array ? array : window.getLocalType();
  Value memory = argument(turn.name);
  if (window)
    memory = LocalOp::create(builder, location, type, memory);
  Value own = memref::AllocaOp::create(builder, location, type);
  bool reads = turn.kind == Turn::HostRead;
  memref::CopyOp::create(builder, location, reads ? memory : own,
                         reads ? own : memory);
  return success();
}

LogicalResult Joiner::fill(KernelOp joined) {
  Location location = first.getLoc();
  builder.setInsertionPointToStart(body);
  auto end = ReturnOp::create(builder, location);
  builder.setInsertionPoint(end);
  auto many = static_cast<int64_t>(turns.size());
  Value epoch = EpochOp::create(builder, location);
  Value before =
      arith::SubIOp::create(builder, location, epoch, constant(location, 1));
  Value length = constant(location, many);
  Value cycle = arith::DivUIOp::create(builder, location, before, length);
  Value turnNow = arith::RemUIOp::create(builder, location, before, length);
  llvm::StringMap<int64_t> perCycle, made;
  for (const Turn &turn : turns)
    perCycle[turn.name] += turn.kind == Turn::Launch;
  for (auto [at, turn] : llvm::enumerate(turns)) {
    builder.setInsertionPoint(end);
    Location place = turn.kind == Turn::Launch
                         ? kernels[turn.name].getLoc()
                         : Location(NameLoc::get(
                               builder.getStringAttr(turn.text), location));
    if (many > 1) {
      Value isNow = arith::CmpIOp::create(
          builder, place, arith::CmpIPredicate::eq, turnNow,
          constant(place, static_cast<int64_t>(at)));
      auto some = scf::IfOp::create(builder, place, isNow, /*withElse=*/false);
      builder.setInsertionPoint(some.thenBlock()->getTerminator());
    }
    if (turn.kind == Turn::Launch)
      launch(turn, cycle, perCycle[turn.name], ++made[turn.name]);
    else if (failed(access(turn, place)))
      return failure();
  }
  return success();
}

FailureOr<KernelOp> Joiner::join() {
  for (const Turn &turn : sequence.turns)
    if (turn.kind == Turn::Launch && failed(addKernel(turn)))
      return failure();
  if (!first)
    return module.emitError("the order of launches has no kernel");
  if (failed(checkBlocks()))
    return failure();
  KernelOp joined = create();
  if (failed(fill(joined))) {
    joined.erase();
    return failure();
  }
  return joined;
}

FailureOr<KernelOp> mlir::comms::check::joinKernels(ModuleOp module,
                                                    const Sequence &sequence,
                                                    ArrayRef<Turn> turns,
                                                    int64_t blocks) {
  return Joiner(module, sequence, turns, blocks).join();
}

FailureOr<std::optional<int64_t>>
mlir::comms::check::countLaunches(ModuleOp module, const Sequence &sequence,
                                  int64_t blocks) {
  auto kernels = findKernels(module, sequence);
  if (failed(kernels))
    return failure();
  int64_t count = 1;
  bool isKnown = true;
  for (KernelOp kernel : *kernels) {
    FailureOr<Program> program = Program::build(kernel);
    if (failed(program))
      return failure();
    LaunchPattern pattern = findLaunchPattern(
        *program, static_cast<int64_t>(kernel.getRanks().value_or(1)),
        blocks ? blocks : chooseBlocks(kernel));
    isKnown &= !pattern.irregular;
    // Reuse shows at the second launch, that of two buffers at the third.
    count += std::max<int64_t>(pattern.launches(), 3) - 1;
  }
  for (const Turn &turn : sequence.turns)
    count += turn.kind != Turn::Launch;
  return isKnown ? std::optional(count) : std::nullopt;
}
