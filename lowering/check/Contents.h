//===- Contents.h - Terms for the contents of tiles and memory --*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Terms (Values.h) of whole tiles and of each rank's memory, piece by piece,
// while a machine simulates a program. A race-free program has the same result
// under every schedule, so that one simulated schedule determines it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_CONTENTS_H
#define COMMSIR_LOWERING_CHECK_CONTENTS_H

#include "lowering/check/Program.h"
#include "lowering/check/Values.h"

#include <map>

namespace mlir::comms::check {

/// Elements up to `end`; the tile's first element has index 0.
struct TilePiece {
  int64_t end = 0;
  Ref ref;
};
using Tile = llvm::SmallVector<TilePiece, 1>;

/// A tile of `length` elements that all hold `ref`, at their own positions.
Tile makeTile(int64_t length, Ref ref);
int64_t lengthOf(const Tile &tile);
/// Element `element`, as it is repeated.
Ref elementOf(Values &values, const Tile &tile, int64_t element);
/// `tile` with zeros from element `valid` on.
Tile cutTile(Values &values, Tile tile, int64_t valid);

/// Elementwise `combine` of tiles of equal length.
Tile zipTiles(llvm::ArrayRef<Tile> tiles,
              llvm::function_ref<Ref(llvm::ArrayRef<Ref>)> combine);
/// Name of the combination by `kind` in Values.
llvm::StringRef nameOf(ReductionKind kind);
/// Tiles combined by `kind` from first to last; for `avg` the sum, before the
/// division.
Tile reduceTiles(Values &values, ReductionKind kind,
                 llvm::ArrayRef<Tile> tiles);
/// `isInteger`: rounds toward zero.
Tile divideTile(Values &values, const Tile &tile, double divisor,
                bool isInteger);

/// Result of an op without side effects; a scalar is a tile of one element. The
/// result's type determines the length.
Tile evaluateTile(Values &values, Operation *op, llvm::ArrayRef<Tile> operands);

/// Memory of one rank, or of one block.
class Memory {
public:
  struct StoredPiece {
    Ref ref;
    /// The op that wrote it; null: not written in this run.
    Operation *by = nullptr;
  };
  /// Sets all of it to `ref`.
  void fill(Ref ref);
  bool isEmpty() const { return pieces.empty(); }
  Tile read(const Values &values, int64_t begin, int64_t count) const;
  void write(const Values &values, int64_t begin, const Tile &tile,
             Operation *by);
  /// Calls `visit` for pieces that cover exactly [begin, end).
  void visit(int64_t begin, int64_t end,
             llvm::function_ref<void(int64_t, int64_t, const StoredPiece &)>
                 visit) const;

private:
  /// Pieces by their first element; each extends to the next.
  std::map<int64_t, StoredPiece> pieces;
};

/// The memory and tiles of a run. A tile is identified by a number, its handle.
class Contents {
public:
  explicit Contents(Values &values) : values(values), tiles(1) {}

  int64_t keep(Tile tile) {
    tiles.push_back(std::move(tile));
    return static_cast<int64_t>(tiles.size()) - 1;
  }
  const Tile &tile(int64_t handle) const { return tiles[handle]; }
  /// Drops all tiles. Handles are not used across launches.
  void forgetTiles() { tiles.resize(1); }

  /// The part of `argument` at `rank`, initially as before the first launch.
  Memory &part(int32_t argument, int64_t rank);
  /// Packets in the same memory, indexed by the tile elements that they carry.
  Memory &mail(int32_t argument, int64_t rank);
  Memory &scratch(int32_t thread, int32_t scratch);

  Values &values;

private:
  std::vector<Tile> tiles;
  std::map<std::pair<int32_t, int64_t>, Memory> parts, mails;
  std::map<std::pair<int32_t, int32_t>, Memory> scratches;
};

} // namespace mlir::comms::check

#endif // COMMSIR_LOWERING_CHECK_CONTENTS_H
