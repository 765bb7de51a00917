//===- EntryFile.cpp - A cache entry as a file ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/EntryFile.h"

#include "llvm/Support/Endian.h"

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
    return "it is not an entry of this cache";
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

std::optional<std::string> commsir::jit::readEntry(const OwnFolder &folder,
                                                   const std::string &name,
                                                   const CacheKey &key,
                                                   std::string &why) {
  auto refuse = [&](StringRef fault) {
    why = fault.str();
    return std::nullopt;
  };
  Descriptor file = folder.openFile(name, O_RDONLY, why);
  if (!file)
    return errno == 0 || errno == ENOENT ? std::nullopt
                                         : refuse(std::strerror(errno));
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0 ||
      uint64_t(status.st_size) < kEntryHeader)
    return refuse("it is cut short");
  if (uint64_t(status.st_size) > kLargestEntry)
    return refuse("it is too large to be one");
  std::string bytes(status.st_size, '\0');
  if (!readAll(file.get(), bytes.data(), bytes.size()))
    return refuse("it cannot be read");
  if (StringRef fault = findFault(bytes, key); !fault.empty())
    return refuse(fault);
  bytes.erase(0, kEntryHeader);
  // Its last use. In a folder that is read-only nothing is ever thrown out.
  (void)::futimens(file.get(), nullptr);
  return bytes;
}

std::string commsir::jit::writeEntry(const OwnFolder &folder,
                                     const std::string &name,
                                     const CacheKey &key, StringRef payload) {
  return folder.replace(name, {makeHeader(key, payload), payload},
                        kTemporaryExtension);
}
