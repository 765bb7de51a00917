//===- Passes.td - The passes of CommsIR -------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_PASSES_TD
#define COMMSIR_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandCollectives : Pass<"comms-expand-collectives", "::mlir::comms::KernelOp"> {
  let summary = "Expand collectives into programs over channels";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"ranks", "ranks", "int64_t", "0", "Number of ranks; 0: the kernel's own `ranks`">,
    Option<"algorithm", "algorithm", "std::string", "\"\"", "Algorithm for all collectives; empty: each op's own, else the cheapest">,
    Option<"protocol", "protocol", "std::string", "\"\"", "Protocol for all channels; empty: each op's own, else the cheapest">,
    Option<"tileSize", "tile-size", "int64_t", "0", "Elements of a flat tile; 0: chosen">,
  ];
}

def CheckSync : Pass<"comms-check-sync", "::mlir::comms::KernelOp"> {
  let summary = "Prove that waits are met, barriers reached by all and accesses in bounds";
  let options = [
    Option<"ranks", "ranks", "int64_t", "0", "Number of ranks; 0: the kernel's own `ranks`">,
    Option<"blocks", "blocks", "int64_t", "0", "Blocks of each rank; 0: the kernel's own, else 2">,
    Option<"launches", "launches", "int64_t", "3", "Launches to follow: reuse shows at the second">,
    Option<"maxEvents", "max-events", "int64_t", "0", "Budget of events; 0: a default. Beyond it fewer ranks are followed, and a remark says so">,
  ];
}

def LowerChannels : Pass<"comms-lower-channels", "::mlir::comms::KernelOp"> {
  let summary = "Lower channels to memory operations, each by its protocol";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def EliminateBarriers : Pass<"comms-eliminate-barriers", "::mlir::comms::KernelOp"> {
  let summary = "Remove barriers that another barrier makes redundant";
  let statistics = [Statistic<"numRemoved", "num-removed", "Barriers removed">];
}

def Instrument : Pass<"comms-instrument", "::mlir::comms::KernelOp"> {
  let summary = "Record every window access and synchronisation for the race detector";
}

def AssertBounds : Pass<"comms-assert-bounds", "::mlir::comms::KernelOp"> {
  let summary = "Check at run time the offsets that cannot be proven in bounds";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def DistributeTiles : Pass<"comms-distribute-tiles", "::mlir::comms::KernelOp"> {
  let summary = "Distribute tiles over the lanes of a block";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect", "::mlir::memref::MemRefDialect"];
  let options = [
    Option<"lanes", "lanes", "int64_t", "16", "Elements of a vector, at most 16">,
  ];
}

def PinArithmetic : Pass<"comms-pin-arithmetic", "::mlir::comms::KernelOp"> {
  let summary = "Expand math and narrow conversions, so that every target gives the same bits";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect", "::mlir::math::MathDialect"];
}

def ConvertCommsToCPU : Pass<"convert-comms-to-cpu", "::mlir::ModuleOp"> {
  let summary = "Convert kernels to LLVM functions that the CPU world calls";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // COMMSIR_LOWERING_PASSES_TD
