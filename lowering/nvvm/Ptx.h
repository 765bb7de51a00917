//===- Ptx.h - The one table of inline PTX ----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What neither LLVM nor the nvvm dialect can say: accesses with an order and a
// scope, multimem, fences. Every one has side effects and clobbers memory, so
// that no access moves across it. Addresses are global (address space 1).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_NVVM_PTX_H
#define COMMSIR_LOWERING_NVVM_PTX_H

#include "dialect/Comms.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::comms::nvvm {

enum class Ptx {
#define COMMSIR_PTX(name, text, constraints) name,
#include "lowering/nvvm/Ptx.inc"
#undef COMMSIR_PTX
};

/// Emits an instruction of the table. `results` are i16, i32, i64 or f32 as its
/// constraints say.
SmallVector<Value> emit(ImplicitLocOpBuilder &b, Ptx instruction,
                        ValueRange operands, TypeRange results = {});

/// Like emit, of an instruction with one result.
Value emitOne(ImplicitLocOpBuilder &b, Ptx instruction, ValueRange operands,
              Type result);

/// Whether `op` is that instruction.
bool is(Operation *op, Ptx instruction);

/// `fence.<acq_rel>.<scope>` or `fence.proxy.*`.
void emitFence(ImplicitLocOpBuilder &b, MemoryScope scope,
               Proxy proxy = Proxy::Generic);

/// The register that a multimem instruction combines elements of this type in:
/// i32 has two of 16 bits.
Type getMultimemWord(Type element);

/// multimem instructions on one vector of at most 16 bytes, given in words of
/// getMultimemWord, to be stored in words of i32. Kind and type are what
/// comms.multimem_reduce takes.
SmallVector<Value> emitMultimemLoadReduce(ImplicitLocOpBuilder &b,
                                          ReductionKind kind, Type element,
                                          Value address, int64_t words);
void emitMultimemStore(ImplicitLocOpBuilder &b, Value address,
                       ValueRange words);
void emitMultimemReduce(ImplicitLocOpBuilder &b, ReductionKind kind,
                        Type element, Value address, ValueRange words);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_PTX_H
