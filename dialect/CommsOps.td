//===- CommsOps.td - Operations of comms -------------------*- tablegen -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Summaries and descriptions are the source of docs/Ops.md and of the paragraphs
// "Semantics" in docs/Spec.md, which `make docs` writes. Numbered constraints are
// in docs/Spec.md.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_DIALECT_COMMSOPS_TD
#define COMMSIR_DIALECT_COMMSOPS_TD

include "KernelOps.td"
include "TeamOps.td"
include "WindowOps.td"
include "TileOps.td"
include "ContractOp.td"
include "OneSidedOps.td"
include "BarrierOps.td"
include "PacketOps.td"
include "CopyOps.td"
include "ChannelOps.td"
include "CollectiveOps.td"
include "CheckOps.td"

#endif // COMMSIR_DIALECT_COMMSOPS_TD
