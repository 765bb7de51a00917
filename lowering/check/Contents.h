//===- Contents.h - What tiles and memory hold ------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The terms (Values.h) of whole tiles and of each rank's memory, piece by
// piece, while a machine follows a program. A program without races has one
// result, whatever its schedule: the one that the machine goes by shows it.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_CHECK_CONTENTS_H
#define COMMSIR_LOWERING_CHECK_CONTENTS_H

#include "lowering/check/Program.h"
#include "lowering/check/Values.h"

#include <map>

namespace mlir::comms::check {

/// Elements up to `end`, the tile's first one being number 0.
struct TilePiece {
  int64_t end = 0;
  Ref ref;
};
using Tile = llvm::SmallVector<TilePiece, 1>;

/// A tile of `length` elements that all hold `ref`, where they are.
Tile makeTile(int64_t length, Ref ref);
int64_t lengthOf(const Tile &tile);
/// Element `element`, as it is repeated.
Ref elementOf(Values &values, const Tile &tile, int64_t element);
/// `tile`, but zeros from element `valid` on.
Tile cutTile(Values &values, Tile tile, int64_t valid);

/// `combine` of elements in the same places; the tiles are equally long.
Tile zipTiles(llvm::ArrayRef<Tile> tiles,
              llvm::function_ref<Ref(llvm::ArrayRef<Ref>)> combine);
/// The name under which Values knows how `kind` combines.
llvm::StringRef nameOf(ReductionKind kind);
/// Tiles combined by `kind` from the first to the last; `avg` is a sum that is
/// still to be divided.
Tile reduceTiles(Values &values, ReductionKind kind,
                 llvm::ArrayRef<Tile> tiles);
/// `isInteger`: towards zero.
Tile divideTile(Values &values, const Tile &tile, double divisor,
                bool isInteger);

/// What an op without effects computes; a scalar is a tile of one. The length
/// of the result comes from its type.
Tile evaluateTile(Values &values, Operation *op, llvm::ArrayRef<Tile> operands);

/// Memory of one rank, or of one block.
class Memory {
public:
  struct StoredPiece {
    Ref ref;
    /// Who wrote it; null: nobody in this run.
    Operation *by = nullptr;
  };
  /// All of it holds `ref`.
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
  /// By their first element, each up to the next.
  std::map<int64_t, StoredPiece> pieces;
};

/// The memory and tiles of a run. A tile is known by a number, its handle.
class Contents {
public:
  explicit Contents(Values &values) : values(values), tiles(1) {}

  int64_t keep(Tile tile) {
    tiles.push_back(std::move(tile));
    return static_cast<int64_t>(tiles.size()) - 1;
  }
  const Tile &tile(int64_t handle) const { return tiles[handle]; }
  /// Forgets all tiles: no handle of an earlier launch is used in a later one.
  void forgetTiles() { tiles.resize(1); }

  /// The part of `argument` at `rank`; at first as it was before the first
  /// launch.
  Memory &part(int32_t argument, int64_t rank);
  /// Packets of the same, by elements of the tiles that they carry.
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
