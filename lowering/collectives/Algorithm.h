//===- Algorithm.h - The interface of algorithms ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An algorithm expands one collective into sends and receives over channels.
// Each algorithm is one file of lowering/collectives/algorithm; CMake generates
// the registry from the file names.
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

/// An algorithm for collectives.
struct Algorithm {
  /// Name in the IR: `one_shot`.
  llvm::StringRef name;
  /// One line for `--help` and docs.
  llvm::StringRef summary;
  /// Whether the algorithm supports `problem`. If not, `why` completes
  /// "algorithm 'x' cannot be used: ".
  bool (*supports)(const CollectiveInfo &problem, std::string &why);
  /// Estimated microseconds on one NVLink host; the lowest is chosen.
  double (*cost)(const CollectiveInfo &problem);
  /// Emits the program. The builder is positioned at the collective.
  LogicalResult (*expand)(CollectiveBuilder &builder);
  /// Number of tiles that a part must be cut into, if it has enough elements,
  /// so that every rank has work; null: one.
  int64_t (*pieces)(const CollectiveInfo &problem) = nullptr;
  /// Whether tile t of every part belongs to block t mod num_blocks, as in
  /// `forOwnTiles`. Collectives with the same tiles then need no barrier
  /// between them.
  bool dealsTiles = true;
  /// Bytes in a rank's slots after its last send, which a separate phase reads.
  /// Null: none.
  double (*waiting)(const CollectiveInfo &problem) = nullptr;
  /// Each rank sends to one other rank, and tiles are passed along a chain.
  bool isChain = false;
  /// Ranks synchronize by barriers, which are faster with fewer blocks.
  bool keepsStep = false;
};

/// All algorithms, ordered by file name.
llvm::ArrayRef<const Algorithm *> getAlgorithms();

/// The algorithm of that name, or null.
const Algorithm *findAlgorithm(llvm::StringRef name);

} // namespace mlir::comms

#endif // COMMSIR_LOWERING_COLLECTIVES_ALGORITHM_H
