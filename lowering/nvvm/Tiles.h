//===- Tiles.h - Tiles as words and accesses --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm. What peers poll moves as 32-bit words, in accesses
// of up to 16 bytes where the alignment is known.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_TILES_H
#define COMMSIR_LOWERING_NVVM_TILES_H

#include "lowering/target/Vectors.h"

namespace mlir::comms::nvvm {

/// Bytes of a tile.
int64_t getBytes(VectorType type);

/// 32-bit words that hold the tile, low element first, the last padded with
/// zeros; and the tile of such words.
SmallVector<Value> splitWords(Value tile, ImplicitLocOpBuilder &b);
Value joinWords(ValueRange words, VectorType tile, ImplicitLocOpBuilder &b);

/// One access of a run of bytes: at `offset`, of `bytes` (2, 4, 8 or 16).
struct Piece {
  int64_t offset, bytes;
};

/// Accesses that make up `bytes` bytes at an address of known alignment, the
/// widest first.
SmallVector<Piece> getPieces(int64_t bytes, int64_t alignment);

/// Runs `whole` when all lanes are valid, else `part`; only `whole` when there
/// is no count.
void splitTail(Value count, Value lanes, ImplicitLocOpBuilder &b,
               llvm::function_ref<void(ImplicitLocOpBuilder &)> whole,
               llvm::function_ref<void(ImplicitLocOpBuilder &)> part);

/// The tile of what a poll of poison has loaded.
Value joinPoison(ValueRange loaded, VectorType type, ImplicitLocOpBuilder &b);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_TILES_H
