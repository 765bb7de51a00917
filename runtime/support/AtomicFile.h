//===- AtomicFile.h - Files that appear whole or not at all -----*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_ATOMICFILE_H
#define COMMSIR_RUNTIME_SUPPORT_ATOMICFILE_H

#include "runtime/support/OwnFolder.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace commsir::driver {

/// A set of output files. Each is written beside its place under a temporary
/// name; `commit` moves all of them into place. Whatever was not committed is
/// removed: by the destructor, and when a signal ends the process.
///
/// Devices and pipes cannot be replaced; they are written at `commit`.
class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  OutputFiles &operator=(const OutputFiles &) = delete;
  ~OutputFiles();

  /// Fails when `path` is a folder, or its own is missing or cannot be written,
  /// so that a long run need not end to find out.
  static llvm::Error checkFolder(llvm::StringRef path);

  /// Writes the concatenation of `parts` for `path`. Every error (folder
  /// missing, no permission, disk full) names the path.
  llvm::Error write(llvm::StringRef path,
                    llvm::ArrayRef<llvm::StringRef> parts);

  /// Moves every file into its place. On an error none is left.
  llvm::Error commit();

private:
  struct Pending {
    std::string path;
    std::string temporary;
    /// A device or a pipe: copied from the temporary file, not replaced.
    bool special = false;
  };

  /// Creates the temporary file for `path`, of a name that nobody can foresee.
  llvm::Expected<Descriptor> reserve(llvm::StringRef path);
  llvm::Error place(const Pending &file);
  void discard();

  std::vector<Pending> pending;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_ATOMICFILE_H
