//===- Size.h - Numbers of bytes, as people write them ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_SIZE_H
#define COMMSIR_RUNTIME_SUPPORT_SIZE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace commsir {

/// "64 KiB", "1.5 MiB", "100 B".
std::string renderSize(int64_t bytes);

/// Parses "65536", "64K" or "1G" to bytes. Returns false for other texts.
bool parseSize(llvm::StringRef text, uint64_t &bytes);

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_SIZE_H
