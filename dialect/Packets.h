//===- Packets.h - How packets lie in memory --------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A packet is as large as what is assumed to arrive whole. One of 8 bytes
// (`store8_whole`, `store16_whole`) is an i64 of memory: 32 bits of the tile
// and a flag. One of 128 bytes (`store128_whole`) is a line of 16 i64, whose
// last is the flag: what it displaces lies in the line's rest, 2 i64 behind all
// lines of the memory, with a flag of its own. So elements of a tile lie where
// they would without flags, and nothing is shifted.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_PACKETS_H
#define COMMSIR_DIALECT_PACKETS_H

#include "dialect/Comms.h"

namespace mlir::comms {

/// The i64 of a line, its flag included, and of its rest.
inline constexpr int64_t kLineUnits = 16, kRestUnits = 2;
/// Bits of a tile in a line and its rest.
inline constexpr int64_t kLineBits = 64 * kLineUnits;

/// Whether packets are lines.
inline bool areLines(Assumption assumes) {
  return assumes == Assumption::Store128Whole;
}

/// Bits of a tile for each i64 of memory that an offset counts.
inline int64_t getUnitBits(Assumption assumes) {
  return areLines(assumes) ? 64 : 32;
}

/// Lines in memory of so many i64.
inline int64_t countLines(int64_t elements) {
  return elements / (kLineUnits + kRestUnits);
}

/// The i64 that offsets may count in memory of so many: all but the rests.
inline int64_t countUnits(int64_t elements, Assumption assumes) {
  return areLines(assumes) ? kLineUnits * countLines(elements) : elements;
}

/// Lines that a tile fills.
inline int64_t countLinesOf(int64_t tileElements, int64_t elementBits) {
  int64_t perLine = kLineBits / elementBits;
  return tileElements / perLine + (tileElements % perLine != 0);
}

} // namespace mlir::comms

#endif // COMMSIR_DIALECT_PACKETS_H
