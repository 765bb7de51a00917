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

/// A set of output files. Each is written next to its target under a temporary
/// name; `commit` moves all of them into place. Files that were not committed
/// are removed by the destructor, or when a signal ends the process.
///
/// Devices and pipes cannot be replaced; they are written by `commit`.
class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  OutputFiles &operator=(const OutputFiles &) = delete;
  ~OutputFiles();

  /// Fails if `path` is a folder, or if its folder is missing or not writable.
  /// Lets a long run fail early.
  static llvm::Error checkFolder(llvm::StringRef path);

  /// Writes the concatenation of `parts` for `path`. Every error (folder
  /// missing, no permission, disk full) names the path.
  llvm::Error write(llvm::StringRef path,
                    llvm::ArrayRef<llvm::StringRef> parts);

  /// Moves every file into place. After an error none of them is left.
  llvm::Error commit();

private:
  struct Pending {
    std::string path;
    std::string temporary;
    /// A device or pipe: written from the temporary file, not replaced.
    bool special = false;
  };

  /// Creates a temporary file for `path` with an unpredictable name.
  llvm::Expected<Descriptor> reserve(llvm::StringRef path);
  llvm::Error place(const Pending &file);
  void discard();

  std::vector<Pending> pending;
};

} // namespace commsir::driver

#endif // COMMSIR_RUNTIME_SUPPORT_ATOMICFILE_H
