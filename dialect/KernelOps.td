//===- KernelOps.td - Kernels, roles and the visit of peers *- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_KERNELOPS_TD
#define COMMSIR_DIALECT_KERNELOPS_TD

include "CommsOpBase.td"

def Comms_KernelOp : Comms_Op<"kernel", [
    FunctionOpInterface, IsolatedFromAbove, OpAsmOpInterface, AutomaticAllocationScope]> {
  let summary = "A program that every block of every rank runs.";
  let description = [{
    A launch runs the body once on each block of each rank, concurrently. The
    runtime binds every argument by its name, the argument's string attribute
    `comms.name`. In text, the name after `%` gives the attribute, which is
    printed only if it differs. A window argument stands for N parts, one per
    rank. A memref argument is an array of this rank, which peers cannot access.
    Signals and counters are cells. A scalar has the same value on every rank
    unless the caller passes one value per rank. The launches of two ranks may
    begin and end in any order: only synchronization in the body orders them. If
    `ranks` or `blocks` is absent, the launch sets it.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<I64Attr>:$ranks,
                       OptionalAttr<I64Attr>:$lsa_size,
                       OptionalAttr<I64Attr>:$blocks);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// Name of argument `index` as the user wrote it (attribute `comms.name`), or "argN".
    std::string getArgumentName(unsigned index);
    static ::llvm::StringRef getArgumentNameAttrName() { return "comms.name"; }
    /// Turns the parser's names of block arguments into attributes, so that a
    /// runtime can bind by name after any pass.
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn setName);
  }];
}

def Comms_ReturnOp : Comms_Op<"return", [Pure, Terminator]> {
  let summary = "Ends a kernel.";
  let description = [{
    Ends the block. The host sees the block's writes to windows and memrefs once
    the launch has ended on that rank.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Comms_YieldOp : Comms_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "Ends a region of a collective, of `comms.for_peers` or of `comms.role`.";
  let description = [{
    In a region of a collective, the operands are the tiles to send (`produce`) or
    to store (`consume`). In `comms.for_peers` and `comms.role` the op has no
    operands and is omitted in text.
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{}]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Comms_RoleOp : Comms_Op<"role", [SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments,
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>]> {
  let summary = "Runs its region on some of the blocks of every rank.";
  let description = [{
    Blocks `first`, …, `last - 1` run the region; the others skip it. There is no
    barrier at the end, so roles of different blocks run concurrently.
    `comms.block_id` and `comms.num_blocks` have the same values inside and
    outside. Reports show the name.
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$first, I64Attr:$last);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name `blocks` $first `to` $last $body attr-dict";
  let hasVerifier = 1;
}

def Comms_ForPeersOp : Comms_Op<"for_peers", [SingleBlockImplicitTerminator<"YieldOp">,
    AutomaticAllocationScope, RecursiveMemoryEffects]> {
  let summary = "Runs its region once for each other rank of a team.";
  let description = [{
    Rank r of a team of z ranks runs the region z - 1 times in sequence. The
    argument is the peer r+1, r+2, …, r-1 (mod z); with `reversed`, it is r-1,
    r-2, …, r+1. So in each step all ranks address different peers. In a team of
    one rank the region does not run.
  }];
  let arguments = (ins Comms_Team:$team, UnitAttr:$reversed);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$team (`reversed` $reversed^)? custom<PeerRegion>($body) attr-dict";
  let hasVerifier = 1;
}

#endif // COMMSIR_DIALECT_KERNELOPS_TD
