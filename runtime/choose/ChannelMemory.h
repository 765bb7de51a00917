//===- ChannelMemory.h - The channel memory of a config ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only the lowering knows how many slots an algorithm uses and how a protocol
// lays them out. A configuration's channel memory is therefore computed by
// expanding the collective.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CHOOSE_CHANNELMEMORY_H
#define COMMSIR_RUNTIME_CHOOSE_CHANNELMEMORY_H

#include "dialect/Comms.h"
#include "runtime/choose/Choose.h"

#include "llvm/Support/Error.h"

#include <optional>

namespace commsir::tune {

/// Default limit on the channel memory of a rank on a GPU, in bytes:
/// COMMSIR_CHANNEL_BYTES (bytes, or with suffix K, M, G or T), else 1 GiB.
llvm::Expected<uint64_t> getChannelLimit();

/// Upper bound on the channel memory of any configuration, without running the
/// lowering. If the bound fits, an exact count is unnecessary.
uint64_t boundChannels(const ConfigQuery &query);

/// Bytes of channel memory per rank that `collective`, an op of `kernel`, takes
/// with `config`, without the kernel's own channels. None if the configuration
/// is impossible; the compiler reports the reason.
std::optional<uint64_t> countChannels(mlir::comms::KernelOp kernel,
                                      mlir::Operation *collective,
                                      const Config &config);

/// Same, for a kernel with just the collective of `query`.
std::optional<uint64_t> countChannels(const ConfigQuery &query,
                                      const Config &config);

} // namespace commsir::tune

#endif // COMMSIR_RUNTIME_CHOOSE_CHANNELMEMORY_H
