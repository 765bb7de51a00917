//===- Version.h - The version of CommsIR -----------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_VERSION_H
#define COMMSIR_RUNTIME_SUPPORT_VERSION_H

namespace commsir {

/// "0.1.0 (LLVM 22.1.8)": what `--version` prints.
const char *getVersion();

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_VERSION_H
