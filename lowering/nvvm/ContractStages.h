//===- ContractStages.h - Stages that threads copy and multiply -*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to lowering/nvvm.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_CONTRACTSTAGES_H
#define COMMSIR_LOWERING_NVVM_CONTRACTSTAGES_H

#include "lowering/nvvm/ContractShape.h"
#include "lowering/nvvm/Int32.h"

namespace mlir::comms::nvvm {

/// Emits the arrival of this thread at a barrier in shared memory (i32).
void emitArrive(ImplicitLocOpBuilder &b, Value barrier);

/// Emits a wait until the phase of parity 0 or 1 of a barrier in shared memory
/// (i32) has ended.
void emitAwait(ImplicitLocOpBuilder &b, Value barrier, Int parity);

/// A tile to copy: its row and column (i32), and the address of its map (i64).
struct MappedTile {
  Value row, column, map;

  static constexpr int64_t kBytes = 16;
};

/// The copies of one part of a product: its number among the kernel's, its
/// number of stages, the row and column of each operand's first tile (i32), and
/// the addresses of the maps (i64). The tiles of addends lie behind the job.
struct CopyJob {
  Value product, steps, lhsRow, lhsColumn, rhsRow, rhsColumn, lhsMap, rhsMap;

  static constexpr int64_t kBytes = 48;
};

/// Shared memory between the threads that multiply and the thread that copies:
/// the stages; for each stage a barrier that counts the bytes that have come,
/// and one for the warps that have read them; a job with a barrier; whether all
/// products have ended. Steps are counted over all products of the kernel.
class ProductStages {
public:
  ProductStages(const ContractShape &shape, Value memory)
      : shape(shape), memory(memory) {}

  /// The address of a step's stage: i32.
  Value getStage(ImplicitLocOpBuilder &b, Int step) const {
    Int place = (step % shape.stages) * shape.getStageBytes();
    return arith::AddIOp::create(b, memory, place.value);
  }
  /// The barriers of a step's stage: the bytes have come, and the warps have
  /// read them. Addresses are i32.
  Value getFull(ImplicitLocOpBuilder &b, Int step) const {
    return at(b, (step % shape.stages) * 8, 0);
  }
  Value getEmpty(ImplicitLocOpBuilder &b, Int step) const {
    return at(b, (step % shape.stages) * 8, 8 * shape.stages);
  }
  /// The barrier of the job.
  Value getPosted(ImplicitLocOpBuilder &b) const {
    return at(b, {b, emitNumber(b, 0)}, 16 * shape.stages);
  }
  /// The word that says whether all products have ended.
  Value getOver(ImplicitLocOpBuilder &b) const {
    return at(b, {b, emitNumber(b, 0)}, 16 * shape.stages + 8);
  }
  /// How often a step's stage was used before.
  Int getTurn(Int step) const { return step / shape.stages; }
  /// Bytes behind the stages.
  int64_t getRest() const {
    return 16 * shape.stages + 16 + CopyJob::kBytes +
           shape.mostAddends * MappedTile::kBytes;
  }

  /// Writes the next job; the copying thread has read the last one, since all
  /// that it brought has come.
  void post(ImplicitLocOpBuilder &b, const CopyJob &job,
            ArrayRef<MappedTile> addends) const;
  /// Reads the job.
  CopyJob read(ImplicitLocOpBuilder &b) const;
  /// The tile of an addend of the job.
  MappedTile readAddend(ImplicitLocOpBuilder &b, Int number) const;
  /// Waits for the next job, whose number has this parity: i1, whether there is
  /// one.
  Value awaitJob(ImplicitLocOpBuilder &b, Value parity) const;

private:
  Value at(ImplicitLocOpBuilder &b, Int place, int64_t offset) const {
    Int whole = place + (shape.stages * shape.getStageBytes() + offset);
    return arith::AddIOp::create(b, memory, whole.value);
  }
  Value getJob(ImplicitLocOpBuilder &b) const {
    return at(b, {b, emitNumber(b, 0)}, 16 * shape.stages + 16);
  }
  /// The place of an addend's tile.
  Value getAddend(ImplicitLocOpBuilder &b, Int number) const {
    return at(b, number * MappedTile::kBytes,
              16 * shape.stages + 16 + CopyJob::kBytes);
  }

  const ContractShape &shape;
  Value memory;
};

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_CONTRACTSTAGES_H
