//===- FileStore.cpp - Ranks meet in a folder -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Group.h"
#include "runtime/group/Waiting.h"
#include "runtime/support/GroupError.h"
#include "runtime/support/OwnFolder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>

using namespace commsir;
using namespace commsir::group;

namespace {
/// A key is a file; it appears whole, by renaming.
class FileStore : public Store {
public:
  FileStore(llvm::StringRef path, OwnFolder folder)
      : path(path), folder(std::move(folder)) {}

  llvm::Error set(llvm::StringRef key, llvm::StringRef value) override {
    std::string why = folder.replace(nameOf(key), {value}, ".new");
    return why.empty() ? llvm::Error::success()
                       : fail("cannot write", key, why);
  }

  llvm::Expected<std::string> get(llvm::StringRef key,
                                  double timeout) override {
    using Clock = std::chrono::steady_clock;
    std::string name = nameOf(key);
    auto begun = Clock::now(), asked = begun;
    auto pause = std::chrono::microseconds(50);
    while (true) {
      std::string why;
      if (auto value = read(name, why))
        return std::move(*value);
      if (!why.empty())
        return fail("cannot read", key, why);
      if (std::chrono::duration<double>(Clock::now() - begun).count() > timeout)
        return makeError(GroupError::Kind::Peer,
                         "key '" + key + "' has not arrived within " +
                             llvm::formatv("{0:f1}", timeout).str() +
                             " s in folder " + path +
                             ": is every rank running, with this folder?");
      if (Clock::now() - asked >= kPeriod) {
        asked = Clock::now();
        if (isInterrupted())
          return makeError(GroupError::Kind::Aborted,
                           "interrupted while it waited for key '" + key +
                               "' in folder " + path);
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::microseconds(5000));
    }
  }

private:
  /// Returns the contents of a file. Returns none if the file is missing, or
  /// unusable; `why` then has the reason.
  std::optional<std::string> read(const std::string &name,
                                  std::string &why) const {
    Descriptor file = folder.openFile(name, O_RDONLY, why);
    struct stat status = {};
    if (!file || ::fstat(file.get(), &status) != 0) {
      if (errno && errno != ENOENT)
        why = std::strerror(errno);
      return std::nullopt;
    }
    if (static_cast<uint64_t>(status.st_size) > kMostStoreBytes) {
      why = "it is larger than anything that a rank writes";
      return std::nullopt;
    }
    std::string text(static_cast<size_t>(status.st_size), '\0');
    if (readAll(file.get(), text.data(), text.size()))
      return text;
    why = std::strerror(errno);
    return std::nullopt;
  }
  /// Letters and digits stay; other bytes are written as hexadecimal digits.
  static std::string nameOf(llvm::StringRef key) {
    std::string name;
    for (char c : key)
      if (llvm::isAlnum(c) || c == '-' || c == '_')
        name += c;
      else
        name += '.' + llvm::utohexstr(static_cast<unsigned char>(c), true, 2);
    return name;
  }
  llvm::Error fail(const char *what, llvm::StringRef key,
                   llvm::StringRef why) const {
    return makeError(GroupError::Kind::Usage, llvm::Twine(what) + " " + path +
                                                  "/" + nameOf(key) + ": " +
                                                  why);
  }
  std::string path;
  OwnFolder folder;
};
} // namespace

llvm::Expected<std::unique_ptr<Store>>
commsir::group::createFileStore(llvm::StringRef folder) {
  std::string why;
  OwnFolder opened = OwnFolder::open(folder, /*make=*/true, why);
  if (opened)
    return std::make_unique<FileStore>(folder, std::move(opened));
  return makeError(GroupError::Kind::Usage,
                   "ranks cannot rendezvous in folder " + folder + ": " + why +
                       "\n  name a folder that only you can write; a missing "
                       "folder is created");
}
