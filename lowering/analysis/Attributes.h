//===- Attributes.h - What a lowered kernel says of itself ------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes that the conversions to targets leave on a kernel's function, for
// whoever loads the code. Those of one target alone are in its Abi.h.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_LOWERING_ANALYSIS_ATTRIBUTES_H
#define COMMSIR_LOWERING_ANALYSIS_ATTRIBUTES_H

#include <cstdint>

namespace mlir::comms::target {

/// An array of what KernelBase::describeArgument says of each argument.
inline constexpr const char kArgsAttr[] = "comms.args";
/// An array of [op, place in the source, detail]: what errors name by number.
inline constexpr const char kSitesAttr[] = "comms.sites";
/// Numbers that the code was made for, as i64.
inline constexpr const char kRanksAttr[] = "comms.ranks";
inline constexpr const char kLsaSizeAttr[] = "comms.lsa_size";
inline constexpr const char kBlocksAttr[] = "comms.blocks";
/// What comms-expand-collectives chose.
inline constexpr const char kChoicesAttr[] = "comms.choices";
/// The verdict of comms-check-sync, a dictionary: `verdict` ("proven" or "not
/// decided"), what was followed (`ranks`, `followed_ranks`, `blocks`,
/// `launches`), and arrays of strings: `assumptions`, `reasons` and, where
/// there are any, `computes` (outputs that hold what the kernel says) and
/// `computed` (what arrays hold). Absent: the kernel was not checked.
inline constexpr const char kProofAttr[] = "comms.proof";

/// Of a kernel whose channels lie in memory that the kernels of a group take in
/// turn (unit). Of each of its hidden windows, what the slots hold: a name of
/// SlotKind.
inline constexpr const char kSharedChannelsAttr[] = "comms.shared_channels";
inline constexpr const char kSharedSlotsAttr[] = "comms.shared_slots";

/// Poison of lamport slots: every 16 bits of a float.
inline constexpr uint16_t kPoison16 = 0xFFFA;
inline constexpr uint32_t kPoison32 = 0xFFFAFFFA;

} // namespace mlir::comms::target

#endif // COMMSIR_LOWERING_ANALYSIS_ATTRIBUTES_H
