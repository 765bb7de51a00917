//===- HostMemory.h - Limits the memory of a run ----------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_HOSTMEMORY_H
#define COMMSIR_RUNTIME_SUPPORT_HOSTMEMORY_H

#include <cstdint>
#include <string>

namespace commsir::driver {

/// Three quarters of the memory of the machine, or of the process's container,
/// in bytes.
uint64_t memoryLimit();

/// "1.5 GiB".
std::string renderBytes(uint64_t bytes);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_HOSTMEMORY_H
