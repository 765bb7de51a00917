//===- Algorithm.h - How a collective becomes a channel program -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An algorithm turns one collective into sends and receives over channels. Each
// is one file of lowering/collectives/algorithm; CMake makes the registry from
// their names.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_COLLECTIVES_ALGORITHM_H
#define COMMSIR_LOWERING_COLLECTIVES_ALGORITHM_H

#include "dialect/Comms.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::comms {

class CollectiveBuilder;
struct CollectiveInfo;

/// One way to carry out collectives.
struct Algorithm {
  /// Name that users write: `one_shot`.
  llvm::StringRef name;
  /// One line for `--help` and docs.
  llvm::StringRef summary;
  /// Whether the algorithm can carry out `problem`; if not, `why` says so in
  /// words that follow "algorithm 'x' cannot be used: ".
  bool (*supports)(const CollectiveInfo &problem, std::string &why);
  /// Estimated cost in microseconds on one NVLink host; lower is chosen.
  double (*cost)(const CollectiveInfo &problem);
  /// Emits the program. The builder stands where the collective was.
  LogicalResult (*expand)(CollectiveBuilder &builder);
  /// How many tiles a part must be cut into, if it has the elements, so that
  /// every rank has work; null: one.
  int64_t (*pieces)(const CollectiveInfo &problem) = nullptr;
  /// Whether tile t of every part belongs to block t mod num_blocks, as
  /// `forOwnTiles` has it: collectives that agree in their tiles then need no
  /// barrier between them.
  bool dealsTiles = true;
  /// Bytes that lie in slots of a rank when it has sent its last: a phase of
  /// its own reads them. Null: none.
  double (*waiting)(const CollectiveInfo &problem) = nullptr;
  /// A rank sends to one other, and tiles go from hand to hand.
  bool isChain = false;
  /// Ranks keep in step by barriers, which are the faster the fewer blocks
  /// there are.
  bool keepsStep = false;
};

/// All algorithms, in the order of their file names.
llvm::ArrayRef<const Algorithm *> getAlgorithms();

/// The algorithm of that name, or null.
const Algorithm *findAlgorithm(llvm::StringRef name);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_COLLECTIVES_ALGORITHM_H
