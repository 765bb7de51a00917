//===- Packets.h - The layout of packets in memory --------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A packet is as large as a store that the program assumes to arrive as a
// whole. A packet of 8 bytes (`store8_whole`, `store16_whole`) is an i64 in
// memory: 32 bits of the tile and a flag. A packet of 128 bytes
// (`store128_whole`) is a line of 16 i64, the last of which is the flag. The
// flag displaces data, which is stored in the line's *rest*: 2 i64 after all
// lines of the memory, with their own flag. So elements of a tile have the same
// positions as without flags.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_PACKETS_H
#define COMMSIR_DIALECT_PACKETS_H

#include "dialect/Comms.h"

namespace mlir::comms {

/// Number of i64 in a line, including its flag, and in its rest.
inline constexpr int64_t kLineUnits = 16, kRestUnits = 2;
/// Bits of a tile in a line and its rest.
inline constexpr int64_t kLineBits = 64 * kLineUnits;

/// Whether packets are lines.
inline bool areLines(Assumption assumes) {
  return assumes == Assumption::Store128Whole;
}

/// Bits of a tile per i64 of memory that an offset counts.
inline int64_t getUnitBits(Assumption assumes) {
  return areLines(assumes) ? 64 : 32;
}

/// Number of lines in memory of `elements` i64.
inline int64_t countLines(int64_t elements) {
  return elements / (kLineUnits + kRestUnits);
}

/// Number of i64 that offsets can address in memory of `elements` i64: all
/// except the rests.
inline int64_t countUnits(int64_t elements, Assumption assumes) {
  return areLines(assumes) ? kLineUnits * countLines(elements) : elements;
}

/// Number of lines that a tile fills.
inline int64_t countLinesOf(int64_t tileElements, int64_t elementBits) {
  int64_t perLine = kLineBits / elementBits;
  return tileElements / perLine + (tileElements % perLine != 0);
}

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_PACKETS_H
