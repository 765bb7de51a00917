//===- Collectives.h - The facts of each collective -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COLLECTIVES_H
#define COMMSIR_DIALECT_COLLECTIVES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mlir {
class Operation;

namespace comms {

/// Relation between the shapes of a rank's inputs and outputs, with N
/// participating ranks. It holds for whole arrays and for their rows.
enum class Movement {
  Same,     ///< R rows in, R rows out: one part.
  Cut,      ///< R rows in, one part a rank; R/N out, one part.
  Join,     ///< R rows in, one part; R*N out, the parts of all ranks.
  Exchange, ///< R rows in, R out: N parts leave and N parts come.
};

/// Which ranks send and which receive.
enum class Direction { AllToAll, RootToAll, AllToRoot, OneToOne };

/// A row of dialect/Collectives.def.
struct CollectiveKind {
  /// Name of the op without its dialect: `all_reduce`.
  llvm::StringRef name;
  Movement movement;
  Direction direction;
  /// Combines the ranks' data, in rank order.
  bool reduces;
  /// The number of rows exchanged by each pair of ranks is known only at run
  /// time.
  bool rowsVary;

  /// The inputs, or the outputs, consist of one part per rank.
  bool cutsInput() const {
    return movement == Movement::Cut || movement == Movement::Exchange;
  }
  bool joinsOutput() const {
    return movement == Movement::Join || movement == Movement::Exchange;
  }
  bool hasRoot() const {
    return direction == Direction::RootToAll ||
           direction == Direction::AllToRoot;
  }
};

/// All rows of the table.
llvm::ArrayRef<CollectiveKind> getCollectiveKinds();

/// The row of that name, or null.
const CollectiveKind *findCollectiveKind(llvm::StringRef name);

/// The row of `op`, or null if it is not a collective.
const CollectiveKind *getCollectiveKind(Operation *op);

/// The spellings of `ReductionKind`, in its order: "sum", "prod", ….
llvm::SmallVector<llvm::StringRef> getReductionNames();

/// The name in Collectives.def: "Same", "AllToRoot".
llvm::StringRef stringifyMovement(Movement movement);
llvm::StringRef stringifyDirection(Direction direction);

} // namespace comms
} // namespace mlir

#endif // COMMSIR_DIALECT_COLLECTIVES_H
