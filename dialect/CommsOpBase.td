//===- CommsOpBase.td - What all operations of comms share -*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COMMSOPBASE_TD
#define COMMSIR_DIALECT_COMMSOPBASE_TD

include "CommsTypes.td"
include "CommsInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Refuses attributes with unknown names, except those with a dialect's prefix.
def Comms_KnownAttributes : NativeOpTrait<"KnownAttributes"> {
  let cppNamespace = "::mlir::comms";
}

class Comms_Op<string mnemonic, list<Trait> traits = []>
    : Op<Comms_Dialect, mnemonic, !listconcat(traits, [Comms_KnownAttributes])>;

/// Orders memory: no read or write may move across the op.
class Comms_SyncOp<string mnemonic, list<Trait> traits = []>
    : Comms_Op<mnemonic, !listconcat(traits, [MemoryEffects<[MemRead, MemWrite]>])>;

#endif // COMMSIR_DIALECT_COMMSOPBASE_TD
