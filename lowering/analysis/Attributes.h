//===- Attributes.h - Attributes of a lowered kernel ------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes that conversions to targets leave on a kernel's function, for the
// code's loader. Attributes of a single target are in its Abi.h.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_ATTRIBUTES_H
#define COMMSIR_LOWERING_ANALYSIS_ATTRIBUTES_H

#include <cstdint>

namespace mlir::comms::target {

/// Array with the result of KernelBase::describeArgument for each argument.
inline constexpr const char kArgsAttr[] = "comms.args";
/// Array of [op, source location, detail], indexed by the site numbers in
/// errors.
inline constexpr const char kSitesAttr[] = "comms.sites";
/// Numbers that the code was compiled for, as i64.
inline constexpr const char kRanksAttr[] = "comms.ranks";
inline constexpr const char kLsaSizeAttr[] = "comms.lsa_size";
inline constexpr const char kBlocksAttr[] = "comms.blocks";
/// The choices of comms-expand-collectives.
inline constexpr const char kChoicesAttr[] = "comms.choices";
/// The verdict of comms-check-sync, a dictionary: `verdict` ("proven" or "not
/// decided"), the simulated world (`ranks`, `followed_ranks`, `blocks`,
/// `launches`), and arrays of strings: `assumptions`, `reasons` and, if
/// present, `computes` (outputs proven to hold what the kernel declares) and
/// `computed` (contents of arrays). Absent: the kernel was not checked.
inline constexpr const char kProofAttr[] = "comms.proof";

/// Unit attribute of a kernel whose channels lie in memory that the kernels of
/// a group use in turn. On each of its hidden windows: the contents of the
/// slots, a name of SlotKind.
inline constexpr const char kSharedChannelsAttr[] = "comms.shared_channels";
inline constexpr const char kSharedSlotsAttr[] = "comms.shared_slots";
/// Of a memref argument that the kernel does not read (unit): a later
/// kernel reads it. Chips that can prefetch load it into their L2 cache while
/// the ranks wait for each other.
inline constexpr const char kPrefetchAttr[] = "comms.prefetch";

/// Poison of lamport slots, for each 16 bits of a float.
inline constexpr uint16_t kPoison16 = 0xFFFA;
inline constexpr uint32_t kPoison32 = 0xFFFAFFFA;

} // namespace mlir::comms::target

#endif // COMMSIR_LOWERING_ANALYSIS_ATTRIBUTES_H
