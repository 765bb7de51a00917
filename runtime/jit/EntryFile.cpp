//===- EntryFile.cpp - A cache entry as a file ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/EntryFile.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace endian = llvm::support::endian;

static constexpr char kMagic[] = "CommsIRK";
static constexpr size_t kKeyOffset = 24, kChecksumOffset = 56;

static std::string whyNot() { return std::strerror(errno); }

/// Opens a file that is a plain one. Anything else (a pipe, a device) could
/// hold the process up.
static Descriptor openPlain(const std::string &path, struct stat &status) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file)
    return file;
  if (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode))
    return file;
  errno = EINVAL;
  return Descriptor();
}

static bool readAll(int fd, char *to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    ssize_t got = ::pread(fd, to + done, bytes - done, done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    done += got;
  }
  return true;
}

static bool writeAll(int fd, StringRef text) {
  while (!text.empty()) {
    ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return false;
    text = text.drop_front(put);
  }
  return true;
}

static std::array<uint8_t, 32> checksum(StringRef header, StringRef payload) {
  BLAKE3 hash;
  hash.update(header.take_front(kChecksumOffset));
  hash.update(payload);
  return hash.final();
}

static std::string makeHeader(const CacheKey &key, StringRef payload) {
  std::string header(kEntryHeader, '\0');
  std::memcpy(header.data(), kMagic, 8);
  endian::write32le(header.data() + 8, kEntryFormat);
  endian::write64le(header.data() + 16, payload.size());
  std::memcpy(header.data() + kKeyOffset, key.data(), key.size());
  auto sum = checksum(header, payload);
  std::memcpy(header.data() + kChecksumOffset, sum.data(), sum.size());
  return header;
}

/// Why the file is not the entry of `key`; empty when it is.
static StringRef findFault(StringRef file, const CacheKey &key) {
  if (file.size() < kEntryHeader)
    return "it is cut short";
  if (!file.starts_with(kMagic))
    return "it is no entry of this cache";
  if (endian::read32le(file.data() + 8) != kEntryFormat)
    return "another version of CommsIR wrote it";
  if (endian::read64le(file.data() + 16) != file.size() - kEntryHeader)
    return "its length is wrong";
  if (std::memcmp(file.data() + kKeyOffset, key.data(), key.size()) != 0)
    return "it is the entry of another kernel";
  auto sum = checksum(file, file.drop_front(kEntryHeader));
  if (std::memcmp(file.data() + kChecksumOffset, sum.data(), sum.size()) != 0)
    return "its checksum is wrong";
  return {};
}

std::optional<std::string> commsir::jit::readEntry(const std::string &path,
                                                   const CacheKey &key,
                                                   std::string &why) {
  auto refuse = [&](StringRef fault) {
    why = fault.str();
    return std::nullopt;
  };
  struct stat status;
  Descriptor file = openPlain(path, status);
  if (!file)
    return refuse(errno == ENOENT || errno == ENOTDIR ? "" : whyNot());
  if (uint64_t(status.st_size) < kEntryHeader)
    return refuse("it is cut short");
  if (uint64_t(status.st_size) > kLargestEntry)
    return refuse("it is too large to be one");
  std::string bytes(status.st_size, '\0');
  if (!readAll(file.get(), bytes.data(), bytes.size()))
    return refuse("it cannot be read");
  if (StringRef fault = findFault(bytes, key); !fault.empty())
    return refuse(fault);
  bytes.erase(0, kEntryHeader);
  return bytes;
}

/// A file of its own for this call, in the folder of `path`.
static Descriptor createBeside(const std::string &path,
                               std::string &temporary) {
  static std::atomic<unsigned> number{0};
  for (unsigned tries = 0; tries < 100; ++tries) {
    temporary = (path + "." + Twine(sys::Process::getProcessId()) + "-" +
                 Twine(number++) + kTemporaryExtension)
                    .str();
    Descriptor file(::open(temporary.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file || errno != EEXIST)
      return file;
  }
  return Descriptor();
}

std::string commsir::jit::writeEntry(const std::string &path,
                                     const CacheKey &key, StringRef payload) {
  std::string temporary;
  Descriptor file = createBeside(path, temporary);
  if (!file)
    return ("cannot write to the folder '" + sys::path::parent_path(path) +
            "': " + whyNot())
        .str();
  bool good = writeAll(file.get(), makeHeader(key, payload)) &&
              writeAll(file.get(), payload) &&
              // What is in the way is no entry: nobody else makes folders here.
              (::rename(temporary.c_str(), path.c_str()) == 0 ||
               (errno == EISDIR && ::rmdir(path.c_str()) == 0 &&
                ::rename(temporary.c_str(), path.c_str()) == 0));
  if (good)
    return "";
  std::string why = whyNot();
  ::unlink(temporary.c_str());
  return "cannot write '" + path + "': " + why;
}
