//===- Doctor.cpp - C API: what this machine has --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Version.h"
#include "runtime/capi/Error.h"

using namespace commsir;
using namespace commsir::capi;

char *commsir_doctor(void) {
  llvm::json::Object report{{"version", getVersion()}};
  return copyText(render(std::move(report)));
}
