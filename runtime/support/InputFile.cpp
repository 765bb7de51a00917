//===- InputFile.cpp - Files that a user names ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/InputFile.h"

#include "runtime/support/OwnFolder.h"

#include "llvm/Support/Errno.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::driver;
using Buffer = std::unique_ptr<llvm::MemoryBuffer>;

static llvm::Error failSystem() {
  return llvm::errorCodeToError(
      std::error_code(errno, std::generic_category()));
}

/// Opens without waiting for a FIFO's writer.
static llvm::Expected<Descriptor> openInput(llvm::StringRef path,
                                            struct stat &status) {
  Descriptor file(
      ::open(path.str().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file || ::fstat(file.get(), &status) != 0)
    return failSystem();
  return std::move(file);
}

/// Reads the whole of a regular file.
static llvm::Expected<Buffer> readRegular(const Descriptor &file,
                                          const struct stat &status,
                                          llvm::StringRef path, uint64_t most) {
  auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes > most)
    return llvm::createStringError("it has " + llvm::Twine(bytes) +
                                   " bytes, more than the limit of " +
                                   llvm::Twine(most));
  auto buffer = llvm::MemoryBuffer::getOpenFile(file.get(), path, bytes,
                                                /*RequiresNullTerminator=*/true,
                                                /*IsVolatile=*/true);
  if (!buffer)
    return llvm::errorCodeToError(buffer.getError());
  return std::move(*buffer);
}

llvm::Expected<Buffer> commsir::driver::readFile(llvm::StringRef path,
                                                 uint64_t most) {
  struct stat status = {};
  llvm::Expected<Descriptor> file = openInput(path, status);
  if (!file)
    return file.takeError();
  if (!S_ISREG(status.st_mode))
    return llvm::createStringError("it is not a regular file");
  return readRegular(*file, status, path, most);
}

llvm::Expected<Buffer> commsir::driver::readFileOrPipe(llvm::StringRef path) {
  struct stat status = {};
  // A socket, and some devices, cannot even be opened.
  if (::stat(path.str().c_str(), &status) != 0)
    return failSystem();
  if (S_ISDIR(status.st_mode))
    return llvm::createStringError("it is a folder");
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    return llvm::createStringError("it is neither a file nor a pipe");
  if (S_ISREG(status.st_mode))
    return readFile(path);
  Descriptor pipe(::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!pipe)
    return failSystem();
  llvm::Expected<std::string> text = readStream(pipe.get(), path);
  if (!text)
    return text.takeError();
  return llvm::MemoryBuffer::getMemBufferCopy(*text, path);
}

llvm::Expected<std::string> commsir::driver::readStream(int file,
                                                        llvm::StringRef name) {
  constexpr size_t kPiece = size_t(1) << 16;
  std::string text;
  while (true) {
    size_t before = text.size();
    text.resize(before + kPiece);
    ssize_t got =
        llvm::sys::RetryAfterSignal(-1, ::read, file, &text[before], kPiece);
    text.resize(before + std::max<ssize_t>(got, 0));
    if (got < 0)
      return llvm::createStringError(
          "cannot read '" + name +
          "': " + std::error_code(errno, std::generic_category()).message());
    if (got == 0)
      return text;
    if (text.size() > kMostTextBytes)
      return llvm::createStringError("'" + name +
                                     "' does not end within 1 GiB: give a "
                                     "file");
  }
}
