//===- AtomicFile.cpp - Files that appear whole or not at all -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/AtomicFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

using namespace commsir::driver;
namespace fs = llvm::sys::fs;

static llvm::Error cannotWrite(llvm::StringRef path, std::error_code why) {
  std::string hint;
  if (why == llvm::errc::no_space_on_device)
    hint = "; free some space or write elsewhere";
  else if (llvm::StringRef folder = llvm::sys::path::parent_path(path);
           why == llvm::errc::no_such_file_or_directory && !folder.empty() &&
           !fs::exists(folder))
    hint = ("; create the folder '" + folder + "' first").str();
  return llvm::createStringError(why, "cannot write '" + path +
                                          "': " + why.message() + hint +
                                          " (no output was kept)");
}

static std::error_code writeParts(int fd,
                                  llvm::ArrayRef<llvm::StringRef> parts) {
  for (llvm::StringRef part : parts)
    if (!commsir::writeAll(fd, part))
      return std::error_code(errno, std::generic_category());
  return {};
}

OutputFiles::~OutputFiles() { discard(); }

void OutputFiles::discard() {
  for (const Pending &file : pending) {
    fs::remove(file.temporary);
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  }
  pending.clear();
}

llvm::Error OutputFiles::checkFolder(llvm::StringRef path) {
  // A device is written itself, whatever its folder allows.
  fs::file_status status;
  if (!fs::status(path, status) && fs::is_other(status))
    return llvm::Error::success();
  if (fs::is_directory(status))
    return cannotWrite(path, llvm::make_error_code(llvm::errc::is_a_directory));
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (std::error_code error =
          fs::access(folder.empty() ? "." : folder, fs::AccessMode::Write))
    return cannotWrite(path, error);
  return llvm::Error::success();
}

llvm::Expected<commsir::Descriptor> OutputFiles::reserve(llvm::StringRef path) {
  // A link stays a link: what it points to is replaced.
  llvm::SmallString<256> target(path);
  fs::file_status status;
  bool special = false;
  if (!fs::status(path, status) && fs::exists(status)) {
    if (fs::is_directory(status))
      return cannotWrite(path,
                         llvm::make_error_code(llvm::errc::is_a_directory));
    special = !fs::is_regular_file(status);
    llvm::SmallString<256> real;
    if (!special && !fs::real_path(path, real))
      target = real;
  }
  llvm::SmallString<256> model = target;
  if (special) {
    model.clear();
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, model);
    llvm::sys::path::append(model, "commsir");
  }
  Descriptor file;
  std::string temporary =
      createUnique(AT_FDCWD, model + ".", ".tmp", special ? 0600 : 0666, file);
  if (temporary.empty())
    return cannotWrite(path, std::error_code(errno, std::generic_category()));
  llvm::sys::RemoveFileOnSignal(temporary);
  pending.push_back({target.str().str(), temporary, special});
  return std::move(file);
}

llvm::Error OutputFiles::write(llvm::StringRef path,
                               llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::Expected<Descriptor> file = reserve(path);
  if (!file)
    return file.takeError();
  std::error_code error = writeParts(file->get(), parts);
  // A network file system tells of a full disk only here.
  if (::close(file->release()) != 0 && !error)
    error = std::error_code(errno, std::generic_category());
  if (error)
    return cannotWrite(path, error);
  return llvm::Error::success();
}

llvm::Error OutputFiles::place(const Pending &file) {
  if (!file.special) {
    if (std::error_code error = fs::rename(file.temporary, file.path))
      return cannotWrite(file.path, error);
    return llvm::Error::success();
  }
  auto content = llvm::MemoryBuffer::getFile(file.temporary);
  if (!content)
    return cannotWrite(file.path, content.getError());
  int fd;
  if (std::error_code error =
          fs::openFileForWrite(file.path, fd, fs::CD_OpenExisting, fs::OF_None))
    return cannotWrite(file.path, error);
  std::error_code error = writeParts(fd, {(*content)->getBuffer()});
  if (::close(fd) != 0 && !error)
    error = std::error_code(errno, std::generic_category());
  return error ? cannotWrite(file.path, error) : llvm::Error::success();
}

llvm::Error OutputFiles::commit() {
  std::vector<std::string> placed;
  // Devices first: they are the ones that can still fail.
  llvm::stable_sort(pending, [](const Pending &a, const Pending &b) {
    return a.special > b.special;
  });
  for (const Pending &file : pending) {
    if (llvm::Error error = place(file)) {
      for (const std::string &path : placed)
        fs::remove(path);
      discard();
      return error;
    }
    if (!file.special)
      placed.push_back(file.path);
  }
  discard();
  return llvm::Error::success();
}
