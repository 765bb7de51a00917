//===- Proof.cpp - Runs the checker in parallel with the compiler ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Proof.h"

#include "dialect/Comms.h"
#include "lowering/analysis/Attributes.h"
#include "runtime/jit/Prepare.h"
#include "runtime/support/FatalErrors.h"
#include "runtime/support/StartThread.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace commsir::jit;

Expected<std::unique_ptr<Proof>> Proof::start(mlir::ModuleOp module,
                                              Passes passes) {
  TimeTraceScope scope("commsir: copy for the proof");
  std::string bytes;
  raw_string_ostream stream(bytes);
  mlir::BytecodeWriterConfig config("CommsIR");
  if (mlir::failed(mlir::writeBytecodeToFile(module, stream, config)))
    return failCompilation(CompileError::Stage::Lowering,
                           "the kernel cannot be copied for the checker");
  std::unique_ptr<Proof> proof(
      new Proof(*module.getContext(), std::move(bytes), std::move(passes)));
  // Where the system gives no thread, `finishProof` does it.
  proof->thread = startThread([raw = proof.get()] {
    raw->failure = catchFailure([raw] { raw->judge(); });
  });
  return proof;
}

Proof::Proof(mlir::MLIRContext &context, std::string module, Passes passes)
    : context(context), module(std::move(module)), passes(std::move(passes)),
      printsOps(context.shouldPrintOpOnDiagnostic()),
      allowsUnregistered(context.allowsUnregisteredDialects()) {
  context.getDialectRegistry().appendTo(dialects);
  holding = std::make_unique<mlir::ScopedDiagnosticHandler>(
      &context, [this](mlir::Diagnostic &diagnostic) {
        held.push_back(std::move(diagnostic));
        return mlir::success();
      });
}

Proof::~Proof() {
  if (thread.joinable())
    thread.join();
  consumeError(std::move(verdict));
}

void Proof::judge() {
  // The other context may be one that only a single thread may use.
  mlir::MLIRContext own(dialects, mlir::MLIRContext::Threading::DISABLED);
  own.printOpOnDiagnostic(printsOps);
  own.allowUnregisteredDialects(allowsUnregistered);
  mlir::ScopedDiagnosticHandler listening(&own, [&](mlir::Diagnostic &one) {
    said.push_back(copyDiagnostic(one));
    return mlir::success();
  });
  auto copy = mlir::parseSourceString<mlir::ModuleOp>(module, &own);
  cantFail(std::move(verdict));
  verdict = copy ? runPipeline(*copy, passes)
                 : failCompilation(CompileError::Stage::Lowering,
                                   "the checker cannot read its copy of the "
                                   "kernel");
  refused = bool(verdict);
  if (copy && !refused)
    for (auto kernel : copy->getOps<mlir::comms::KernelOp>())
      found = readProof(kernel->getAttrOfType<mlir::DictionaryAttr>(
          mlir::comms::target::kProofAttr));
}

Error Proof::finishProof() {
  {
    TimeTraceScope scope("commsir: waiting for the proof");
    if (thread.joinable())
      thread.join();
    else
      judge();
  }
  holding.reset();
  if (failure)
    std::rethrow_exception(std::exchange(failure, nullptr));
  for (const Remark &remark : said)
    report(remark);
  if (!verdict)
    for (mlir::Diagnostic &diagnostic : held)
      context.getDiagEngine().emit(std::move(diagnostic));
  held.clear();
  return std::exchange(verdict, Error::success());
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

Proof::Remark Proof::copyDiagnostic(mlir::Diagnostic &diagnostic) {
  Remark remark;
  remark.severity = diagnostic.getSeverity();
  raw_string_ostream(remark.location)
      << mlir::LocationAttr(diagnostic.getLocation());
  remark.text = diagnostic.str();
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    remark.notes.push_back(copyDiagnostic(note));
  return remark;
}

/// The same place in the context of the module.
mlir::Location Proof::findPlace(const Remark &remark) const {
  auto place = mlir::dyn_cast_if_present<mlir::LocationAttr>(
      mlir::parseAttribute(remark.location, &context));
  return place ? mlir::Location(place) : mlir::UnknownLoc::get(&context);
}

void Proof::report(const Remark &remark) const {
  mlir::Diagnostic diagnostic(findPlace(remark), remark.severity);
  diagnostic << remark.text;
  for (const Remark &note : remark.notes)
    diagnostic.attachNote(findPlace(note)) << note.text;
  context.getDiagEngine().emit(std::move(diagnostic));
}
