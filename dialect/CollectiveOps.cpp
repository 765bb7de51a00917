//===- CollectiveOps.cpp - Whole collectives -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Comms.h"
#include "dialect/Directives.h"

using namespace mlir;
using namespace mlir::comms;

//===----------------------------------------------------------------------===//
// Regions in the assembly format
//===----------------------------------------------------------------------===//

/// Parses `keyword(%a: type, …) { … }` when `keyword` is there.
static ParseResult parseTileRegion(OpAsmParser &parser, StringRef keyword,
                                   Region &region) {
  if (parser.parseOptionalKeyword(keyword))
    return success();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseRegion(region, arguments))
    return failure();
  if (region.empty())
    return parser.emitError(parser.getNameLoc())
           << "'" << keyword << "' has an empty region";
  return success();
}

static void printTileRegion(OpAsmPrinter &printer, StringRef keyword,
                            Region &region) {
  if (region.empty())
    return;
  printer << keyword << '(';
  llvm::interleaveComma(
      region.getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

ParseResult mlir::comms::parseTileRegions(OpAsmParser &parser, Region &produce,
                                          Region &consume) {
  return failure(parseTileRegion(parser, "produce", produce) ||
                 parseTileRegion(parser, "consume", consume));
}

void mlir::comms::printTileRegions(OpAsmPrinter &printer, Operation *op,
                                   Region &produce, Region &consume) {
  printTileRegion(printer, "produce", produce);
  if (!produce.empty() && !consume.empty())
    printer << ' ';
  printTileRegion(printer, "consume", consume);
}

//===----------------------------------------------------------------------===//
// What the interface asks for
//===----------------------------------------------------------------------===//

std::optional<ReductionKind> AllReduceOp::getReduction() { return getKind(); }
std::optional<ReductionKind> ReduceScatterOp::getReduction() {
  return getKind();
}
std::optional<ReductionKind> ReduceOp::getReduction() { return getKind(); }
std::optional<int64_t> ReduceOp::getRootRank() { return getRoot(); }
std::optional<int64_t> BroadcastOp::getRootRank() { return getRoot(); }
std::optional<int64_t> GatherOp::getRootRank() { return getRoot(); }
std::optional<int64_t> ScatterOp::getRootRank() { return getRoot(); }

LogicalResult AllReduceOp::verify() { return success(); }
LogicalResult ReduceScatterOp::verify() { return success(); }
LogicalResult AllGatherOp::verify() { return success(); }
LogicalResult AllToAllOp::verify() { return success(); }
LogicalResult AllToAllVOp::verify() { return success(); }
LogicalResult BroadcastOp::verify() { return success(); }
LogicalResult ReduceOp::verify() { return success(); }
LogicalResult GatherOp::verify() { return success(); }
LogicalResult ScatterOp::verify() { return success(); }
LogicalResult SendRecvOp::verify() { return success(); }
