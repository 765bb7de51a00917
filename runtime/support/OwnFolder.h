//===- OwnFolder.h - A folder that nobody else writes to --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code read from a cache is executed, and ranks trust the files in the folder
// in which they meet. Both are therefore read only from folders and files that
// this user or root owns and nobody else can write. A folder is opened once, as
// a descriptor, and its files are opened relative to it without following
// links.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_OWNFOLDER_H
#define COMMSIR_RUNTIME_SUPPORT_OWNFOLDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>
#include <unistd.h>
#include <utility>

namespace commsir {

/// A file descriptor that the destructor closes.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  explicit operator bool() const { return fd >= 0; }
  int get() const { return fd; }
  int release() { return std::exchange(fd, -1); }

private:
  int fd;
};

/// Writes all of `text`, in several writes if necessary. Returns false and sets
/// errno on failure.
bool writeAll(int fd, llvm::StringRef text);
/// Reads `bytes` bytes from the start of a file. Returns false if the file is
/// shorter or cannot be read.
bool readAll(int fd, char *to, size_t bytes);

/// Creates a new empty file named `before` + random digits + `after` in
/// `folder`, with the given permissions minus the umask. Returns its name, or
/// "" and sets errno.
std::string createUnique(int folder, const llvm::Twine &before,
                         llvm::StringRef after, unsigned mode,
                         Descriptor &file);

/// Creates a folder that only this user can access, below TMPDIR or /tmp.
/// Returns its path, or "" and sets errno.
std::string makeTemporaryFolder(llvm::StringRef name);

class OwnFolder {
public:
  OwnFolder() = default;
  /// Opens the folder. `make`: creates it and missing parents, accessible by
  /// this user only. On failure `why` holds the reason; it is empty if the
  /// folder is missing.
  static OwnFolder open(llvm::StringRef path, bool make, std::string &why);

  explicit operator bool() const { return bool(descriptor); }
  int get() const { return descriptor.get(); }

  /// Opens a regular file in the folder, which must be owned by this user or
  /// root, not writable by others and without other names (hard links).
  /// `flags` are combined with O_CLOEXEC,
  /// O_NOFOLLOW and O_NONBLOCK. A new file is accessible by its owner only. On
  /// failure errno is set, or 0 if `why` holds the reason, which begins with
  /// "it".
  Descriptor openFile(const std::string &name, int flags,
                      std::string &why) const;
  /// Atomically replaces a file by one with that content. Returns "" or the
  /// reason of the failure.
  std::string replace(const std::string &name,
                      llvm::ArrayRef<llvm::StringRef> parts,
                      llvm::StringRef temporaryEnd) const;
  void remove(const std::string &name) const {
    ::unlinkat(descriptor.get(), name.c_str(), 0);
  }

private:
  Descriptor descriptor;
};

} // namespace commsir

#endif // COMMSIR_RUNTIME_SUPPORT_OWNFOLDER_H
