//===- Diagnosis.cpp - Diagnostics as data --------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Diagnosis.h"

#include "mlir/IR/Location.h"

using namespace commsir::driver;

static const char *name(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Note:
    return "note";
  case mlir::DiagnosticSeverity::Warning:
    return "warning";
  case mlir::DiagnosticSeverity::Error:
    return "error";
  case mlir::DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("covered switch");
}

/// The first place in a file that `location` holds: of a call, the callee's.
static mlir::FileLineColLoc findPlace(mlir::Location location) {
  mlir::FileLineColLoc place;
  location->walk([&](mlir::Location part) {
    place = mlir::dyn_cast<mlir::FileLineColLoc>(part);
    return place ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return place;
}

Diagnosis commsir::driver::describe(const mlir::Diagnostic &diagnostic) {
  Diagnosis made;
  made.severity = name(diagnostic.getSeverity());
  made.message = diagnostic.str();
  if (mlir::FileLineColLoc place = findPlace(diagnostic.getLocation())) {
    made.file = place.getFilename().str();
    made.line = place.getLine();
    made.column = place.getColumn();
  }
  for (const mlir::Diagnostic &note :
       const_cast<mlir::Diagnostic &>(diagnostic).getNotes())
    made.notes.push_back(describe(note));
  return made;
}

std::string Diagnosis::render() const {
  std::string text;
  if (!file.empty())
    text =
        file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
  text += severity + ": " + message;
  for (const Diagnosis &note : notes)
    text += "\n" + note.render();
  return text;
}
