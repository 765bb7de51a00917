//===- Directives.h - Custom pieces of the assembly formats -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The generated parsers and printers of the ops call these. They are private to
// the dialect's library.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_DIRECTIVES_H
#define COMMSIR_DIALECT_DIRECTIVES_H

#include "dialect/Comms.h"

namespace mlir::comms {

/// `produce(%a: tensor<…>, …) { … } consume(…) { … }`; either may be absent.
ParseResult parseTileRegions(OpAsmParser &parser, Region &produce,
                             Region &consume);
void printTileRegions(OpAsmPrinter &printer, Operation *op, Region &produce,
                      Region &consume);

/// `as %peer { … }`: the region of `for_peers`, whose argument is an index.
ParseResult parsePeerRegion(OpAsmParser &parser, Region &body);
void printPeerRegion(OpAsmPrinter &printer, Operation *op, Region &body);

/// `plus %d[%row, %column], …`: the addends of `contract`; nothing without any.
using UnresolvedOperands = SmallVectorImpl<OpAsmParser::UnresolvedOperand>;
ParseResult parseAddends(OpAsmParser &parser, UnresolvedOperands &addends,
                         UnresolvedOperands &rows, UnresolvedOperands &columns);
void printAddends(OpAsmPrinter &printer, Operation *op, OperandRange addends,
                  OperandRange rows, OperandRange columns);

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_DIRECTIVES_H
