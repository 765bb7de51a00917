//===- CommsAttrs.td - Enums and attributes of comms -------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COMMSATTRS_TD
#define COMMSIR_DIALECT_COMMSATTRS_TD

include "CommsDialect.td"

class Comms_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::comms";
  let genSpecializedAttr = 0;
}

/// `what` names the enum in errors about unknown words.
class Comms_EnumAttr<I32EnumAttr info, string mnemonic, string what = info.summary, bit inAngles = 0>
    : EnumAttr<Comms_Dialect, info, mnemonic> {
  let assemblyFormat = ?;
  let hasCustomAssemblyFormat = 1;
  string open = !if(inAngles, "<", " ");
  string close = !if(inAngles, ">", "");
  let extraClassDefinition = [{
    ::mlir::Attribute $cppClass::parse(::mlir::AsmParser &parser, ::mlir::Type) {
      return parseWordAttr<$cppClass>(parser, "}] # what # [{", }] # inAngles # [{);
    }
    void $cppClass::print(::mlir::AsmPrinter &printer) const {
      printer << "}] # open # [{" << stringifyEnum(getValue()) << "}] # close # [{";
    }
  }];
}

def Comms_ReductionKind : Comms_Enum<"ReductionKind", "reduction kind", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">,
  I32EnumAttrCase<"Min", 2, "min">, I32EnumAttrCase<"Max", 3, "max">,
  I32EnumAttrCase<"Avg", 4, "avg">, I32EnumAttrCase<"And", 5, "and">,
  I32EnumAttrCase<"Or", 6, "or">, I32EnumAttrCase<"Xor", 7, "xor">]>;
def Comms_ReductionKindAttr : Comms_EnumAttr<Comms_ReductionKind, "reduction">;

def Comms_MathFunction : Comms_Enum<"MathFunction", "math function whose result IEEE 754 does not define", [
  I32EnumAttrCase<"Acos", 0, "acos">, I32EnumAttrCase<"Acosh", 1, "acosh">, I32EnumAttrCase<"Asin", 2, "asin">,
  I32EnumAttrCase<"Asinh", 3, "asinh">, I32EnumAttrCase<"Atan", 4, "atan">, I32EnumAttrCase<"Atan2", 5, "atan2">,
  I32EnumAttrCase<"Atanh", 6, "atanh">, I32EnumAttrCase<"Cbrt", 7, "cbrt">, I32EnumAttrCase<"Cos", 8, "cos">,
  I32EnumAttrCase<"Cosh", 9, "cosh">, I32EnumAttrCase<"Erf", 10, "erf">, I32EnumAttrCase<"Erfc", 11, "erfc">,
  I32EnumAttrCase<"Exp", 12, "exp">, I32EnumAttrCase<"Exp2", 13, "exp2">, I32EnumAttrCase<"Expm1", 14, "expm1">,
  I32EnumAttrCase<"Log", 15, "log">, I32EnumAttrCase<"Log1p", 16, "log1p">, I32EnumAttrCase<"Log2", 17, "log2">,
  I32EnumAttrCase<"Powf", 18, "powf">, I32EnumAttrCase<"Round", 19, "round">, I32EnumAttrCase<"Rsqrt", 20, "rsqrt">,
  I32EnumAttrCase<"Sin", 21, "sin">, I32EnumAttrCase<"Sinh", 22, "sinh">, I32EnumAttrCase<"Tan", 23, "tan">,
  I32EnumAttrCase<"Tanh", 24, "tanh">]>;
def Comms_MathFunctionAttr : Comms_EnumAttr<Comms_MathFunction, "math_function", "math function">;

def Comms_TeamKind : Comms_Enum<"TeamKind", "predefined team", [
  I32EnumAttrCase<"World", 0, "world">, I32EnumAttrCase<"Lsa", 1, "lsa">,
  I32EnumAttrCase<"Rail", 2, "rail">]>;
def Comms_TeamKindAttr : Comms_EnumAttr<Comms_TeamKind, "team_kind">;

def Comms_SplitKind : Comms_Enum<"SplitKind",
    "kind of split (inner: neighbors stay together; outer: every n-th rank)", [
  I32EnumAttrCase<"Inner", 0, "inner">, I32EnumAttrCase<"Outer", 1, "outer">]>;
def Comms_SplitKindAttr : Comms_EnumAttr<Comms_SplitKind, "split_kind", "kind of split">;

def Comms_SignalKind : Comms_Enum<"SignalKind", "kind of signal", [
  I32EnumAttrCase<"Set", 0, "set">, I32EnumAttrCase<"Inc", 1, "inc">,
  I32EnumAttrCase<"Add", 2, "add">]>;
def Comms_SignalKindAttr : Comms_EnumAttr<Comms_SignalKind, "signal_kind">;

def Comms_WaitKind : Comms_Enum<"WaitKind", "comparison that a wait makes", [
  I32EnumAttrCase<"Eq", 0, "eq">, I32EnumAttrCase<"Ge", 1, "ge">]>;
def Comms_WaitKindAttr : Comms_EnumAttr<Comms_WaitKind, "wait_kind", "comparison">;

def Comms_MemoryOrder : Comms_Enum<"MemoryOrder", "PTX memory order", [
  I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
  I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcqRel", 3, "acq_rel">]>;
def Comms_MemoryOrderAttr : Comms_EnumAttr<Comms_MemoryOrder, "order">;

def Comms_MemoryScope : Comms_Enum<"MemoryScope", "PTX memory scope", [
  I32EnumAttrCase<"Block", 0, "block">, I32EnumAttrCase<"Cluster", 1, "cluster">,
  I32EnumAttrCase<"Gpu", 2, "gpu">, I32EnumAttrCase<"Sys", 3, "sys">]>;
def Comms_MemoryScopeAttr : Comms_EnumAttr<Comms_MemoryScope, "scope">;

def Comms_Proxy : Comms_Enum<"Proxy", "PTX memory proxy", [
  I32EnumAttrCase<"Generic", 0, "generic">, I32EnumAttrCase<"Async", 1, "async">,
  I32EnumAttrCase<"Alias", 2, "alias">, I32EnumAttrCase<"CopyEngine", 3, "copy_engine">]>;
def Comms_ProxyAttr : Comms_EnumAttr<Comms_Proxy, "proxy">;

def Comms_BarrierExtent : Comms_Enum<"BarrierExtent",
    "barrier extent (block: block b of every rank of the team; grid: all blocks of all ranks)", [
  I32EnumAttrCase<"Block", 0, "block">, I32EnumAttrCase<"Grid", 1, "grid">]>;
def Comms_BarrierExtentAttr : Comms_EnumAttr<Comms_BarrierExtent, "extent", "barrier extent">;

def Comms_ChannelPattern : Comms_Enum<"ChannelPattern", "channel pattern", [
  I32EnumAttrCase<"Multicast", 0, "multicast">, I32EnumAttrCase<"Pairwise", 1, "pairwise">,
  I32EnumAttrCase<"Single", 2, "single">]>;
def Comms_ChannelPatternAttr : Comms_EnumAttr<Comms_ChannelPattern, "pattern">;

def Comms_MemorySpace : Comms_Enum<"MemorySpace", "memory space other than global memory", [
  I32EnumAttrCase<"Multimem", 0, "multimem">, I32EnumAttrCase<"Scratch", 1, "scratch">,
  I32EnumAttrCase<"Shared", 2, "shared">]>;
def Comms_MemorySpaceAttr : Comms_EnumAttr<Comms_MemorySpace, "space", "memory space", /*inAngles=*/1>;

def Comms_Assumption : Comms_Enum<"Assumption",
    "assumed hardware behavior, which PTX does not guarantee", [
  I32EnumAttrCase<"Store16Whole", 0, "store16_whole">,
  I32EnumAttrCase<"Store8Whole", 1, "store8_whole">,
  I32EnumAttrCase<"Store128Whole", 2, "store128_whole">]>;
def Comms_AssumptionAttr : Comms_EnumAttr<Comms_Assumption, "assumption", "assumption">;

def Comms_AccessKind : Comms_Enum<"AccessKind", "kind of memory access", [
  I32EnumAttrCase<"Read", 0, "read">, I32EnumAttrCase<"Write", 1, "write">]>;
def Comms_AccessKindAttr : Comms_EnumAttr<Comms_AccessKind, "access">;

def Comms_GinBackend : Comms_Enum<"GinBackend", "NCCL GIN backend", [
  I32EnumAttrCase<"Any", 0, "any">, I32EnumAttrCase<"Proxy", 1, "proxy">,
  I32EnumAttrCase<"Gdaki", 2, "gdaki">]>;

/// How a one-sided operation reaches a peer that loads and stores cannot reach.
def Comms_GinAttr : AttrDef<Comms_Dialect, "Gin"> {
  let mnemonic = "gin";
  let summary = "GIN context, backend, and scope of the fence that precedes the operation";
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "0">:$context_id,
    DefaultValuedParameter<"::mlir::comms::GinBackend", "::mlir::comms::GinBackend::Any">:$backend,
    DefaultValuedParameter<"::mlir::comms::MemoryScope", "::mlir::comms::MemoryScope::Sys">:$fence);
  let hasCustomAssemblyFormat = 1;
}

#endif // COMMSIR_DIALECT_COMMSATTRS_TD
