//===- Version.cpp - The version of CommsIR -------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Version.h"

#include "llvm/Config/llvm-config.h"

const char *commsir::getVersion() {
  return COMMSIR_VERSION " (LLVM " LLVM_VERSION_STRING ")";
}
