//===- OwnFolder.h - A folder that nobody else writes to --------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is read from a cache is run, and ranks do what they find in the folder
// in which they meet. So both are read from folders, and files, that this user
// or root owns and nobody else can write to. A folder is opened once, by its
// descriptor, and its files are opened in it without following links.
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

/// A file descriptor that is closed.
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

/// Writes all of `text`, in as many pieces as the system takes; false: errno
/// says why not.
bool writeAll(int fd, llvm::StringRef text);
/// Reads `bytes` from the start of a file; false: it has fewer, or cannot be
/// read.
bool readAll(int fd, char *to, size_t bytes);

/// Makes an empty file `before` + random digits + `after` that was not there,
/// with these permissions less those that umask takes away; relative to
/// `folder`. Empty: errno says why not.
std::string createUnique(int folder, const llvm::Twine &before,
                         llvm::StringRef after, unsigned mode,
                         Descriptor &file);

/// A new folder for this user alone, below TMPDIR or /tmp: its path, or empty:
/// errno says why not.
std::string makeTemporaryFolder(llvm::StringRef name);

class OwnFolder {
public:
  OwnFolder() = default;
  /// Opens the folder; with `make`, it and those above are made where they are
  /// missing, for this user alone. On failure `why` says why, and is empty
  /// where it is missing.
  static OwnFolder open(llvm::StringRef path, bool make, std::string &why);

  explicit operator bool() const { return bool(descriptor); }
  int get() const { return descriptor.get(); }

  /// Opens a file in it, which has to be a plain one that this user or root
  /// owns and nobody else can write to; `flags` beside O_CLOEXEC, O_NOFOLLOW
  /// and O_NONBLOCK. A new one is for its owner alone. On failure errno is 0
  /// where `why` says why, which begins with "it".
  Descriptor openFile(const std::string &name, int flags,
                      std::string &why) const;
  /// Puts a file of that content in its place at once. Returns why not, or "".
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
