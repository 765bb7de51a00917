//===- Reference.cpp - The results that collectives define ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lowering/check/Reference.h"

#include "lowering/check/ProgramBuilder.h"

#include "dialect/Collectives.h"
#include "dialect/Rows.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::comms;
using namespace mlir::comms::check;

int32_t Reference::argumentOf(Value value) {
  if (auto local = value.getDefiningOp<LocalOp>())
    value = local.getWindow();
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner()->getParentOp() == kernel &&
                 elementsOf(argument.getType()) >= 0
             ? static_cast<int32_t>(argument.getArgNumber())
             : -1;
}

bool Reference::prepare(std::string &problem) {
  for (Operation &op : kernel.getBody().front()) {
    if (isa<TeamOp, LocalOp, ReturnOp>(op) ||
        op.hasTrait<OpTrait::ConstantLike>())
      continue;
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    auto move = dyn_cast<SendRecvOp>(op);
    if (!collective && !move) {
      problem = "has '" + op.getName().getStringRef().str() +
                "' besides its collectives, which is not followed";
      return false;
    }
    auto team = (collective ? collective.getTeam() : move.getTeam())
                    .getDefiningOp<TeamOp>();
    bool isKnown = team && team.getKind() == TeamKind::World;
    auto note = [&](Value value, llvm::SetVector<int32_t> &into, bool reads) {
      int32_t argument = argumentOf(value);
      isKnown &= argument >= 0;
      if (!reads || !written.contains(argument))
        into.insert(argument);
    };
    SmallVector<Value> sources, targets;
    if (collective) {
      llvm::append_range(sources, collective.getInputs());
      llvm::append_range(sources, collective.getArgs());
      llvm::append_range(targets, collective.getOutputs());
    } else {
      sources.push_back(move.getInput());
      targets.push_back(move.getOutput());
    }
    for (Value value : sources)
      note(value, read, true);
    for (Value value : targets)
      note(value, written, false);
    if (!isKnown) {
      problem =
          "has '" + op.getName().getStringRef().str() +
          "' over other teams than all ranks, or of other memory than its "
          "arguments, whose meaning is not followed";
      return false;
    }
    collectives.push_back(&op);
  }
  return true;
}

void Reference::run(int32_t launch) {
  for (int32_t argument : read)
    for (int64_t rank = 0; rank < ranks; ++rank)
      contents.part(argument, rank).fill(values.input(argument, rank, launch));
  for (Operation *op : collectives)
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      carryOut(collective);
    else
      carryOut(cast<SendRecvOp>(op));
}

Expected Reference::expected(int32_t argument, int64_t rank, int64_t begin,
                             int64_t end) {
  Expected found;
  contents.part(argument, rank)
      .visit(begin, end,
             [&](int64_t from, int64_t until, const Memory::StoredPiece &held) {
               if (from == begin)
                 found = {held.ref, until};
             });
  return found;
}

//===----------------------------------------------------------------------===//
// One collective
//===----------------------------------------------------------------------===//

SmallVector<Tile> Reference::evaluate(Region &region,
                                      llvm::ArrayRef<Tile> arguments) {
  llvm::DenseMap<Value, Tile> known;
  for (auto [argument, tile] : llvm::zip(region.getArguments(), arguments))
    known[argument] = tile;
  std::function<Tile(Value)> of = [&](Value value) -> Tile {
    if (auto it = known.find(value); it != known.end())
      return it->second;
    Operation *op = value.getDefiningOp();
    int64_t length =
        isa<ShapedType>(value.getType()) ? elementsOf(value.getType()) : 1;
    if (!op || op->getNumResults() != 1)
      return makeTile(length, values.unknown(op));
    SmallVector<Tile> operands;
    for (Value operand : op->getOperands())
      operands.push_back(of(operand));
    return known[value] = evaluateTile(values, op, operands);
  };
  SmallVector<Tile> results;
  for (Value value : region.front().getTerminator()->getOperands())
    results.push_back(of(value));
  return results;
}

/// How many parts each of the inputs and of the outputs holds.
static std::pair<int64_t, int64_t> countParts(const CollectiveKind &kind,
                                              int64_t ranks) {
  return {kind.cutsInput() ? ranks : 1, kind.joinsOutput() ? ranks : 1};
}

Reference::Plan Reference::plan(CollectiveOpInterface op) {
  Plan made;
  auto [inParts, outParts] = countParts(*getCollectiveKind(op), ranks);
  Block *produce = op.getProduce().empty() ? nullptr : &op.getProduce().front();
  Block *consume = op.getConsume().empty() ? nullptr : &op.getConsume().front();
  auto add = [&](SmallVector<Array> &into, Value value, int64_t parts,
                 Value tile) {
    Array array;
    array.argument = argumentOf(value);
    array.elements = elementsOf(value.getType());
    array.part = array.elements / parts;
    array.row = tile ? elementsOf(tile.getType()) : array.part;
    into.push_back(array);
  };
  for (auto [at, value] : llvm::enumerate(op.getInputs()))
    add(made.inputs, value, inParts,
        produce   ? produce->getArgument(at)
        : consume ? consume->getArgument(at)
                  : Value());
  Operation *end = consume   ? consume->getTerminator()
                   : produce ? produce->getTerminator()
                             : nullptr;
  for (auto [at, value] : llvm::enumerate(op.getOutputs()))
    add(made.outputs, value, outParts, end ? end->getOperand(at) : Value());
  size_t arrived = produce ? produce->getTerminator()->getNumOperands()
                           : op.getInputs().size();
  for (auto [at, value] : llvm::enumerate(op.getArgs()))
    add(made.args, value, outParts,
        consume ? consume->getArgument(arrived + at) : Value());
  made.rows = made.inputs[0].part / std::max<int64_t>(made.inputs[0].row, 1);
  return made;
}

Tile Reference::rowOf(const Array &array, int64_t rank, int64_t part,
                      int64_t row) {
  // One row goes with all.
  bool isShared = array.elements == array.row;
  int64_t begin = isShared ? 0 : part * array.part + row * array.row;
  return contents.part(array.argument, rank).read(values, begin, array.row);
}

SmallVector<Tile> Reference::produce(CollectiveOpInterface op, const Plan &plan,
                                     int64_t rank, int64_t part, int64_t row) {
  SmallVector<Tile> rows;
  for (const Array &input : plan.inputs)
    rows.push_back(rowOf(input, rank, part, row));
  return op.getProduce().empty() ? rows : evaluate(op.getProduce(), rows);
}

void Reference::carryOut(CollectiveOpInterface op) {
  Plan made = plan(op);
  auto [inParts, outParts] = countParts(*getCollectiveKind(op), ranks);
  bool fromRoot = isa<BroadcastOp, ScatterOp>(op.getOperation());
  bool toRoot = isa<ReduceOp, GatherOp>(op.getOperation());
  int64_t root = op.getRootRank().value_or(0);
  auto reduction = op.getReduction();
  struct Write {
    const Array *array;
    int64_t rank, begin;
    Tile tile;
  };
  std::vector<Write> writes;
  for (int64_t me = 0; me < ranks; ++me) {
    if (toRoot && me != root)
      continue;
    for (int64_t part = 0; part < outParts; ++part)
      for (int64_t row = 0; row < made.rows; ++row) {
        // Whose part `part` of the output is, and which of theirs.
        int64_t source = fromRoot ? root : outParts > 1 ? part : me;
        int64_t theirs = inParts > 1 ? me : 0;
        SmallVector<Tile> arrived;
        if (!reduction) {
          arrived = produce(op, made, source, theirs, row);
        } else {
          std::vector<SmallVector<Tile>> all;
          for (int64_t rank = 0; rank < ranks; ++rank)
            all.push_back(produce(op, made, rank, theirs, row));
          for (size_t wire = 0; wire < all[0].size(); ++wire) {
            SmallVector<Tile> tiles;
            for (auto &one : all)
              tiles.push_back(one[wire]);
            Tile sum = reduceTiles(values, *reduction, tiles);
            bool isInteger = isa<IntegerType>(
                op.getProduce().empty()
                    ? isa<WindowType>(op.getInputs()[wire].getType())
                          ? cast<WindowType>(op.getInputs()[wire].getType())
                                .getElementType()
                          : getElementTypeOrSelf(op.getInputs()[wire])
                    : getElementTypeOrSelf(
                          op.getProduce().front().getTerminator()->getOperand(
                              wire)));
            if (*reduction == ReductionKind::Avg)
              sum = divideTile(values, sum, static_cast<double>(ranks),
                               isInteger);
            arrived.push_back(std::move(sum));
          }
        }
        if (!op.getConsume().empty()) {
          for (const Array &arg : made.args)
            arrived.push_back(rowOf(arg, me, part, row));
          arrived = evaluate(op.getConsume(), arrived);
        }
        for (auto [array, tile] : llvm::zip(made.outputs, arrived))
          writes.push_back({&array, me, part * array.part + row * array.row,
                            std::move(tile)});
      }
  }
  for (Write &write : writes)
    contents.part(write.array->argument, write.rank)
        .write(values, write.begin, write.tile, op);
}

void Reference::carryOut(SendRecvOp op) {
  int32_t input = argumentOf(op.getInput()),
          output = argumentOf(op.getOutput());
  Tile tile = contents.part(input, static_cast<int64_t>(op.getSource()))
                  .read(values, 0, elementsOf(op.getInput().getType()));
  contents.part(output, static_cast<int64_t>(op.getDest()))
      .write(values, 0, tile, op);
}
