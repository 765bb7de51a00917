//===- ChannelMemory.h - What a way takes of channel memory -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only the lowering knows how many slots an algorithm makes, and how a protocol
// lays them out. So a way's channels are counted by expanding the collective.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_CHANNELMEMORY_H
#define COMMSIR_RUNTIME_CHOOSE_CHANNELMEMORY_H

#include "dialect/Comms.h"
#include "runtime/choose/Choose.h"

#include "llvm/Support/Error.h"

#include <optional>

namespace commsir::tune {

/// Bytes of channel memory that a rank on a GPU may take where its group says
/// nothing else: COMMSIR_CHANNEL_BYTES (bytes, or with K, M, G
/// or T), else 1 GiB.
llvm::Expected<uint64_t> getChannelLimit();

/// More than the channels of any way take, without a look at the lowering: what
/// fits then need not be counted.
uint64_t boundChannels(const ConfigQuery &query);

/// Bytes of channel memory of each rank that `collective`, an op of `kernel`,
/// takes when it goes this `config`, beside the kernel's own channels. Nothing
/// where it cannot be carried out so: the compiler says why.
std::optional<uint64_t> countChannels(mlir::comms::KernelOp kernel,
                                      mlir::Operation *collective,
                                      const Config &config);

/// The same, of a kernel with the collective of `query` alone.
std::optional<uint64_t> countChannels(const ConfigQuery &query,
                                      const Config &config);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CHANNELMEMORY_H
