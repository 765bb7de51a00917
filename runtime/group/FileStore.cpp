//===- FileStore.cpp - Ranks meet in a folder -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Error.h"
#include "runtime/group/Group.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <thread>

using namespace commsir;
using namespace commsir::group;
namespace fs = llvm::sys::fs;

namespace {
/// A key is a file; it appears whole, by renaming.
class FileStore : public Store {
public:
  explicit FileStore(llvm::StringRef folder) : folder(folder) {}

  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override {
    std::string path = pathOf(key);
    llvm::SmallString<128> temporary;
    int file = -1;
    if (std::error_code error =
            fs::createUniqueFile(path + ".%%%%%%%%", file, temporary))
      return fail("cannot write", path, error);
    llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
    stream << value;
    stream.close();
    std::error_code error = stream.error();
    stream.clear_error();
    if (!error)
      error = fs::rename(temporary, path);
    if (!error)
      return llvm::Error::success();
    fs::remove(temporary);
    return fail("cannot write", path, error);
  }

  llvm::Expected<std::string> get(llvm::StringRef key,
                                  double timeout) override {
    using Clock = std::chrono::steady_clock;
    std::string path = pathOf(key);
    auto begun = Clock::now(), asked = begun;
    auto pause = std::chrono::microseconds(50);
    while (true) {
      auto buffer = llvm::MemoryBuffer::getFile(path);
      if (buffer)
        return (*buffer)->getBuffer().str();
      if (buffer.getError() != std::errc::no_such_file_or_directory)
        return fail("cannot read", path, buffer.getError());
      if (std::chrono::duration<double>(Clock::now() - begun).count() > timeout)
        return makeError(GroupError::Kind::Peer,
                         "key '" + key + "' has not come within " +
                             llvm::formatv("{0:f1}", timeout).str() +
                             " s in folder " + folder +
                             ": is every rank running, with this folder?");
      if (Clock::now() - asked >= std::chrono::milliseconds(20)) {
        asked = Clock::now();
        if (isInterrupted())
          return makeError(GroupError::Kind::Aborted,
                           "interrupted while it waited for key '" + key +
                               "' in folder " + folder);
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::microseconds(5000));
    }
  }

private:
  /// Letters and digits stay; other bytes are written as hexadecimal digits.
  std::string pathOf(llvm::StringRef key) const {
    std::string name;
    for (char c : key)
      if (llvm::isAlnum(c) || c == '-' || c == '_')
        name += c;
      else
        name += '.' + llvm::utohexstr(static_cast<unsigned char>(c), true, 2);
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }
  static llvm::Error fail(const char *what, llvm::StringRef path,
                          std::error_code error) {
    return makeError(GroupError::Kind::Usage,
                     llvm::Twine(what) + " " + path + ": " + error.message());
  }
  std::string folder;
};
} // namespace

llvm::Expected<std::unique_ptr<Store>>
commsir::group::createFileStore(llvm::StringRef folder) {
  if (std::error_code error = fs::create_directories(folder))
    return makeError(GroupError::Kind::Usage,
                     "cannot make folder " + folder + ": " + error.message());
  return std::make_unique<FileStore>(folder);
}
