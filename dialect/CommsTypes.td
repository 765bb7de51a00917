//===- CommsTypes.td - Types of comms ----------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COMMSTYPES_TD
#define COMMSIR_DIALECT_COMMSTYPES_TD

include "CommsAttrs.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

class Comms_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Comms_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Comms_Team : Comms_Type<"Team", "team"> {
  let summary = "team (ordered set of ranks)";
}

def Comms_Token : Comms_Type<"Token", "token"> {
  let summary = "token (an op that takes it runs after the wait or transfer that returned it)";
}

def Comms_Window : Comms_Type<"Window", "window"> {
  let summary = "window (array of the same shape on every rank, which peers can access)";
  let description = [{
    `!comms.window<8x64xbf16>`: each rank has its own 8x64 array of bf16. A `?`
    dimension gets its size when the kernel is specialized to its inputs.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The memref type of one rank's part, in the default memory space.
    ::mlir::MemRefType getLocalType() const;
    bool hasStaticShape() const;
    /// Number of elements of one rank's part; the shape must be static.
    int64_t getNumElements() const;
  }];
}

def Comms_Signal : Comms_Type<"Signal", "signal"> {
  let summary = "signal (64-bit cells on every rank, which peers set, increment or add to)";
  let description = [{
    `!comms.signal<16>`: 16 cells per rank. They are 0 before a kernel's first
    launch and keep their values between launches.
  }];
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
}

def Comms_Counter : Comms_Type<"Counter", "counter"> {
  let summary = "counter (64-bit cells of one rank, which count its completed puts)";
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
}

def Comms_Channel : Comms_Type<"Channel", "channel"> {
  let summary = "channel (carries tiles of one type between the ranks of a team)";
  let description = [{
    `!comms.channel<ll, 256xf32>`: a tile has 256 elements of f32, and the
    protocol `ll` moves it. One file in `lowering/channels/protocol` registers
    each protocol by its name.
  }];
  let parameters = (ins "::mlir::StringAttr":$protocol, "int64_t":$tileSize, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The tile this channel carries, as a tensor type of rank 1.
    ::mlir::RankedTensorType getTileType() const;
  }];
}

// Data of one rank: a window (its own part), or memory that no peer can access.
def Comms_LocalMemory : AnyTypeOf<[AnyMemRef], "memory of this rank or a view of a peer's">;
def Comms_Data : AnyTypeOf<[Comms_Window, AnyMemRef], "window or memref">;
// A tile is a tensor of rank 1 before comms-distribute-tiles, a vector after it.
def Comms_Tile : AnyTypeOf<[1DTensorOf<[AnyFloat, AnySignlessInteger]>,
                            VectorOfRankAndType<[1], [AnyFloat, AnySignlessInteger]>],
                           "tile: tensor of rank 1 (or, distributed, vector of rank 1)">;

#endif // COMMSIR_DIALECT_COMMSTYPES_TD
