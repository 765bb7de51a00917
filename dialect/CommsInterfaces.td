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
    arithmetic, and the regions around it. Lowering sees collectives through
    this interface and through the traits of its problem table only.
  }];
  let methods = [
    InterfaceMethod<"The team that takes part.", "::mlir::Value", "getTeam">,
    InterfaceMethod<"Arrays that are exchanged.", "::mlir::OperandRange", "getInputs">,
    InterfaceMethod<"Arrays that are written.", "::mlir::OperandRange", "getOutputs">,
    InterfaceMethod<"Local arrays that only `consume` reads.", "::mlir::OperandRange", "getArgs">,
    InterfaceMethod<"Arithmetic before the exchange; may be empty.", "::mlir::Region &", "getProduce">,
    InterfaceMethod<"Arithmetic after the exchange; may be empty.", "::mlir::Region &", "getConsume">,
    InterfaceMethod<"Reduction, for those that reduce.", "std::optional<::mlir::comms::ReductionKind>",
      "getReduction", (ins), "", "return std::nullopt;">,
    InterfaceMethod<"Team rank of the root, for those that have one.", "std::optional<int64_t>",
      "getRootRank", (ins), "", "return std::nullopt;">,
    InterfaceMethod<"Algorithm asked for, or null.", "::mlir::StringAttr", "getAlgorithmAttr">,
    InterfaceMethod<"Protocol asked for, or null.", "::mlir::StringAttr", "getProtocolAttr">,
  ];
}

def TileOpInterface : OpInterface<"TileOpInterface"> {
  let cppNamespace = "::mlir::comms";
  let description = [{
    An op that moves a tile between registers and memory. `valid` is the number
    of leading elements that exist; the rest of the tile is neither read from
    nor written to memory, and reads as zero.
  }];
  let methods = [
    InterfaceMethod<"The tile read or written.", "::mlir::Value", "getTileValue">,
    InterfaceMethod<"Number of elements that exist, or null: all.", "::mlir::Value", "getValid">,
  ];
}

#endif // COMMSIR_DIALECT_COMMSINTERFACES_TD
