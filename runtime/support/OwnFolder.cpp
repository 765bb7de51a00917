//===- OwnFolder.cpp - A folder that nobody else writes to ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/OwnFolder.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

using namespace commsir;
using llvm::StringRef;

bool commsir::writeAll(int fd, StringRef text) {
  while (!text.empty()) {
    // Linux moves at most 2 GiB a call.
    size_t piece = std::min<size_t>(text.size(), size_t(1) << 30);
    ssize_t put = ::write(fd, text.data(), piece);
    if (put < 0 && errno == EINTR)
      continue;
    if (put == 0)
      errno = ENOSPC;
    if (put <= 0)
      return false;
    text = text.drop_front(static_cast<size_t>(put));
  }
  return true;
}

bool commsir::readAll(int fd, char *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = ::pread(fd, to + done, bytes - done, off_t(done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got == 0)
      errno = EIO;
    if (got <= 0)
      return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

std::string commsir::createUnique(int folder, const llvm::Twine &before,
                                  StringRef after, unsigned mode,
                                  Descriptor &file) {
  for (unsigned tries = 0; tries < 100; ++tries) {
    uint8_t random[8];
    if (::getrandom(random, sizeof random, 0) != ssize_t(sizeof random))
      return "";
    std::string name =
        (before + llvm::toHex(random, /*LowerCase=*/true) + after).str();
    file = Descriptor(
        ::openat(folder, name.c_str(),
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file)
      return name;
    if (errno != EEXIST)
      return "";
  }
  return "";
}

std::string commsir::makeTemporaryFolder(StringRef name) {
  llvm::SmallString<256> path;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
  llvm::sys::path::append(path, name + "-XXXXXX");
  std::string made = path.str().str();
  return ::mkdtemp(made.data()) ? made : std::string();
}

/// Why others may have made what has this status; empty: they have not.
static std::string findOthers(const struct stat &status) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    return llvm::formatv("it belongs to user {0}, and neither to this user "
                         "({1}) nor to root",
                         status.st_uid, ::geteuid());
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return llvm::formatv("users other than its owner can write to it (its "
                         "permissions are {0}; chmod go-w removes them)",
                         std::string({char('0' + (status.st_mode >> 6 & 7)),
                                      char('0' + (status.st_mode >> 3 & 7)),
                                      char('0' + (status.st_mode & 7))}));
  return "";
}

/// Makes a folder and those above it for this user alone.
static void makeFolders(StringRef path) {
  if (::mkdir(path.str().c_str(), 0700) == 0 || errno != ENOENT)
    return;
  StringRef above = llvm::sys::path::parent_path(path);
  if (above.empty())
    return;
  makeFolders(above);
  ::mkdir(path.str().c_str(), 0700);
}

OwnFolder OwnFolder::open(StringRef path, bool make, std::string &why) {
  why.clear();
  // A name that ends in a slash or a dot would be followed, were it a link.
  llvm::SmallString<256> name(path);
  llvm::sys::path::remove_dots(name);
  while (name.size() > 1 && name.back() == '/')
    name.pop_back();
  if (make)
    makeFolders(name);
  OwnFolder folder;
  Descriptor opened(
      ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (!opened && !make && errno == ENOENT)
    return folder;
  if (!opened && (errno == ENOTDIR || errno == ELOOP) &&
      ::lstat(name.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    why = "it is a link: name the folder that it leads to";
  else if (!opened || ::fstat(opened.get(), &status) != 0)
    why = std::strerror(errno);
  else
    why = findOthers(status);
  if (why.empty())
    folder.descriptor = std::move(opened);
  return folder;
}

Descriptor OwnFolder::openFile(const std::string &name, int flags,
                               std::string &why) const {
  why.clear();
  Descriptor file(::openat(descriptor.get(), name.c_str(),
                           flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status = {};
  if (!file && errno == ELOOP)
    why = "it is a link";
  else if (!file || ::fstat(file.get(), &status) != 0)
    return Descriptor();
  else if (!S_ISREG(status.st_mode))
    why = "it is not a plain file";
  else if (why = findOthers(status); why.empty() && status.st_nlink > 1)
    // Whoever could once write to the folder may have put a file of this user
    // there that was not meant for it.
    why = "it has other names too (hard links); remove it, or copy it";
  if (why.empty())
    return file;
  errno = 0;
  return Descriptor();
}

std::string OwnFolder::replace(const std::string &name,
                               llvm::ArrayRef<StringRef> parts,
                               StringRef temporaryEnd) const {
  Descriptor file;
  std::string temporary =
      createUnique(get(), name + ".", temporaryEnd, 0600, file);
  if (temporary.empty())
    return std::string("cannot make a file in it: ") + std::strerror(errno);
  auto rename = [&] {
    return ::renameat(get(), temporary.c_str(), get(), name.c_str()) == 0;
  };
  bool good =
      llvm::all_of(
          parts, [&](StringRef part) { return writeAll(file.get(), part); }) &&
      // What is in the way is none of ours: nobody makes folders here.
      (rename() ||
       (errno == EISDIR && ::unlinkat(get(), name.c_str(), AT_REMOVEDIR) == 0 &&
        rename()));
  if (good)
    return "";
  std::string why = std::strerror(errno);
  remove(temporary);
  return "cannot write '" + name + "': " + why;
}
