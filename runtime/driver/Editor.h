//===- Editor.h - Between an editor and a language server -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's language server parses whatever an editor sends, by recursion: deeply
// nested brackets would end it. Such documents do not reach it. It gets others
// of as many lines, with an op at the bracket that is too deep, whose parser
// says so: the editor shows it there.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_DRIVER_EDITOR_H
#define COMMSIR_RUNTIME_DRIVER_EDITOR_H

#include "mlir/IR/DialectRegistry.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace commsir::driver {

/// A message of an editor to a language server, in JSON, with documents that
/// are nested too deep (see Nesting.h) replaced. Others stay as they are.
std::string replaceDeepDocuments(llvm::StringRef message);

/// From now on standard input gives what an editor writes to it with such
/// documents replaced, as the dialect that is added here says them. Returns
/// whether that could be set up.
bool guardEditorInput(mlir::DialectRegistry &registry);

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_DRIVER_EDITOR_H
