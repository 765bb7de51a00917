//===- Diagnosis.h - Diagnostics as data ------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_DIAGNOSIS_H
#define COMMSIR_RUNTIME_SUPPORT_DIAGNOSIS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace commsir::driver {

/// A diagnostic that outlives its MLIR context.
struct Diagnosis {
  /// "error", "warning", "remark" or "note".
  std::string severity, message;
  /// Source position; "" and 0 if unknown.
  std::string file;
  unsigned line = 0, column = 0;
  std::vector<Diagnosis> notes;

  /// "file:line:column: severity: message", plus one line per note.
  std::string render() const;
};

Diagnosis describe(const mlir::Diagnostic &diagnostic);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_DIAGNOSIS_H
