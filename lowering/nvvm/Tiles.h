//===- Tiles.h - Tiles as words and accesses --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm. Data that peers poll is moved as 32-bit words, in
// accesses of up to 16 bytes if the alignment is known.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_TILES_H
#define COMMSIR_LOWERING_NVVM_TILES_H

#include "lowering/target/Vectors.h"

namespace mlir::comms::nvvm {

/// Size of a tile in bytes.
int64_t getBytes(VectorType type);

/// The 32-bit words of the tile, low elements first, the last one padded with
/// zeros; and the tile of such words.
SmallVector<Value> splitWords(Value tile, ImplicitLocOpBuilder &b);
Value joinWords(ValueRange words, VectorType tile, ImplicitLocOpBuilder &b);

/// One access within a run of bytes: `bytes` (2, 4, 8 or 16) at `offset`.
struct Piece {
  int64_t offset, bytes;
};

/// Splits `bytes` bytes at an address of known alignment into accesses, the
/// widest first.
SmallVector<Piece> getPieces(int64_t bytes, int64_t alignment);

/// Emits `whole` for the case that all lanes are valid, else `part`; only
/// `whole` if there is no count.
void splitTail(Value count, Value lanes, ImplicitLocOpBuilder &b,
               llvm::function_ref<void(ImplicitLocOpBuilder &)> whole,
               llvm::function_ref<void(ImplicitLocOpBuilder &)> part);

/// The tile that a poll of poison has loaded.
Value joinPoison(ValueRange loaded, VectorType type, ImplicitLocOpBuilder &b);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_TILES_H
