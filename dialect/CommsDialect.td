//===- CommsDialect.td - The comms dialect -----------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COMMSDIALECT_TD
#define COMMSIR_DIALECT_COMMSDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Comms_Dialect : Dialect {
  let name = "comms";
  let summary = "Collective kernels: what ranks exchange, over which channels, in which memory.";
  let description = [{
    The comms dialect describes GPU collective kernels at three levels: whole
    *collectives* (what), *channels* (who sends what to whom) and *block programs*
    over windows, signals, barriers and packets (how, in memory). A `comms.kernel`
    is an SPMD program that every block of every rank runs. `docs/Spec.md` is the
    reference. Verifiers print its constraint numbers.
  }];
  let cppNamespace = "::mlir::comms";
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    /// Called once, by the constructor.
    void registerTypes();

    ::mlir::Type parseType(::mlir::DialectAsmParser &parser) const override;
    void printType(::mlir::Type type, ::mlir::DialectAsmPrinter &printer) const override;
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser, ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute, ::mlir::DialectAsmPrinter &printer) const override;
    /// For operations that the dialect does not have: says which one is meant.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect",
    "::mlir::tensor::TensorDialect",
  ];
}

#endif // COMMSIR_DIALECT_COMMSDIALECT_TD
