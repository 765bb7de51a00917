//===- Ptx.h - Inline PTX ---------------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions that neither LLVM nor the nvvm dialect can express: accesses
// with an order and a scope, multimem, fences. Ptx.inc is the table of those
// whose text is fixed. Each has side effects and clobbers memory, so that no
// access moves across it. Addresses are global (address space 1).
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

/// Emits an instruction of the table. `results` have the types i16, i32, i64 or
/// f32, as its constraints require.
SmallVector<Value> emit(ImplicitLocOpBuilder &b, Ptx instruction,
                        ValueRange operands, TypeRange results = {});

/// Like emit, for an instruction with one result.
Value emitOne(ImplicitLocOpBuilder &b, Ptx instruction, ValueRange operands,
              Type result);

/// Like emit, for a text that depends on the kernel, such as one whose number
/// of operands does. LLVM's syntax: operands are `$0`, `$1` and so on, results
/// first.
SmallVector<Value> emitText(ImplicitLocOpBuilder &b, StringRef text,
                            StringRef constraints, ValueRange operands,
                            TypeRange results = {});

/// Like emitText, for a text with one result.
Value emitOneText(ImplicitLocOpBuilder &b, StringRef text,
                  StringRef constraints, ValueRange operands, Type result);

/// `$first, $first+1, …`: `count` operands of a text.
std::string listOperands(int64_t first, int64_t count);

/// Constraints of a text that changes `count` values of f32, which are its
/// first results and its last operands; `others` are those of the other
/// operands.
std::string tieOperands(int64_t count, StringRef others);

/// Whether `op` is that instruction.
bool is(Operation *op, Ptx instruction);

/// `fence.<acq_rel>.<scope>` or `fence.proxy.*`.
void emitFence(ImplicitLocOpBuilder &b, MemoryScope scope,
               Proxy proxy = Proxy::Generic);

/// The register type in which multimem instructions combine elements of this
/// type: i32 holds two of 16 bits.
Type getMultimemWord(Type element);

/// multimem instructions on one vector of at most 16 bytes. Operands are words
/// of getMultimemWord; stores take words of i32. Kind and type are those of
/// comms.multimem_reduce.
SmallVector<Value> emitMultimemLoadReduce(ImplicitLocOpBuilder &b,
                                          ReductionKind kind, Type element,
                                          Value address, int64_t words);
void emitMultimemStore(ImplicitLocOpBuilder &b, Value address,
                       ValueRange words);
void emitMultimemReduce(ImplicitLocOpBuilder &b, ReductionKind kind,
                        Type element, Value address, ValueRange words);

} // namespace mlir::comms::nvvm

#endif // COMMSIR_LOWERING_NVVM_PTX_H
