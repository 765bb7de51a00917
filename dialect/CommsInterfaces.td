//===- CommsInterfaces.td - Op interfaces of comms ---------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COMMSINTERFACES_TD
#define COMMSIR_DIALECT_COMMSINTERFACES_TD

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::mlir::comms";
  let description = [{
    A whole collective: a team, inputs, outputs, extra arguments of the fused
    arithmetic, and the regions around it. The lowering uses only this interface
    and the table of collectives (`Collectives.def`).
  }];
  let methods = [
    InterfaceMethod<"The team that takes part.", "::mlir::Value", "getTeam">,
    InterfaceMethod<"Arrays that the ranks exchange.", "::mlir::OperandRange", "getInputs">,
    InterfaceMethod<"Arrays that the op writes.", "::mlir::OperandRange", "getOutputs">,
    InterfaceMethod<"Local arrays that only `consume` reads.", "::mlir::OperandRange", "getArgs">,
    InterfaceMethod<"Arithmetic before the exchange; may be empty.", "::mlir::Region &", "getProduce">,
    InterfaceMethod<"Arithmetic after the exchange; may be empty.", "::mlir::Region &", "getConsume">,
    InterfaceMethod<"The reduction, if the op reduces.", "std::optional<::mlir::comms::ReductionKind>",
      "getReduction", (ins), "", "return std::nullopt;">,
    InterfaceMethod<"Team rank of the root, if the op has one.", "std::optional<int64_t>",
      "getRootRank", (ins), "", "return std::nullopt;">,
    InterfaceMethod<"The requested algorithm, or null.", "::mlir::StringAttr", "getAlgorithmAttr">,
    InterfaceMethod<"The requested protocol, or null.", "::mlir::StringAttr", "getProtocolAttr">,
  ];
}

def TileOpInterface : OpInterface<"TileOpInterface"> {
  let cppNamespace = "::mlir::comms";
  let description = [{
    An op that moves a tile between registers and memory. `valid` is the number of
    leading elements that exist. The op does not access memory for the others; a
    load returns zero for them.
  }];
  let methods = [
    InterfaceMethod<"The tile that the op reads or writes.", "::mlir::Value", "getTileValue">,
    InterfaceMethod<"Number of elements that exist; null: all.", "::mlir::Value", "getValid">,
  ];
}

#endif // COMMSIR_DIALECT_COMMSINTERFACES_TD
