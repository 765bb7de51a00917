//===- CacheKey.cpp - The key of a cache entry ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/CacheKey.h"

#include "runtime/jit/EntryFile.h"
#include "runtime/support/Version.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"

#include <dlfcn.h>
#include <link.h>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace fs = llvm::sys::fs;
namespace endian = llvm::support::endian;

//===----------------------------------------------------------------------===//
// This build
//===----------------------------------------------------------------------===//

namespace {
/// Looks for the build id of the object that holds an address.
struct BuildIdSearch {
  uintptr_t address = 0;
  std::string id;
};
} // namespace

static bool holds(const dl_phdr_info &object, uintptr_t address) {
  for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object.dlpi_phdr[i];
    uintptr_t start = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= start &&
        address - start < segment.p_memsz)
      return true;
  }
  return false;
}

/// The description of the first note of type `type` in a segment of notes.
static StringRef findNote(StringRef notes, uint32_t type) {
  while (notes.size() >= 12) {
    uint64_t name = alignTo(endian::read32le(notes.data()), 4);
    uint64_t size = endian::read32le(notes.data() + 4);
    if (12 + name + size > notes.size())
      break;
    if (endian::read32le(notes.data() + 8) == type)
      return notes.substr(12 + name, size);
    notes = notes.drop_front(
        std::min<uint64_t>(12 + name + alignTo(size, 4), notes.size()));
  }
  return {};
}

static int visitObject(dl_phdr_info *object, size_t, void *data) {
  auto &search = *static_cast<BuildIdSearch *>(data);
  if (!holds(*object, search.address))
    return 0;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || !search.id.empty())
      continue;
    StringRef notes(
        reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr),
        segment.p_memsz);
    search.id = findNote(notes, NT_GNU_BUILD_ID).str();
  }
  return 1;
}

/// Tells this build of the compiler from every other: the linker's build id of
/// the program or library that holds it, else the size and age of its file.
static std::string makeBuildName() {
  BuildIdSearch search;
  search.address = reinterpret_cast<uintptr_t>(&visitObject);
  dl_iterate_phdr(visitObject, &search);
  if (!search.id.empty())
    return llvm::toHex(search.id);
  Dl_info info;
  fs::file_status status;
  if (!dladdr(reinterpret_cast<void *>(search.address), &info) ||
      !info.dli_fname || fs::status(info.dli_fname, status))
    return "unknown";
  return (Twine(info.dli_fname) + ":" + Twine(status.getSize()) + ":" +
          Twine(status.getLastModificationTime().time_since_epoch().count()))
      .str();
}

const std::string &commsir::jit::getBuildName() {
  static const std::string build = makeBuildName();
  return build;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

CacheKeyBuilder::CacheKeyBuilder() : CacheKeyBuilder(getVersion()) {}

CacheKeyBuilder::CacheKeyBuilder(StringRef version) {
  add("format", kEntryFormat)
      .add("version", version)
      .add("build", getBuildName());
}

CacheKeyBuilder &CacheKeyBuilder::add(StringRef label, StringRef value) {
  for (StringRef part : {label, value}) {
    char length[8];
    endian::write64le(length, part.size());
    hash.update(StringRef(length, 8));
    hash.update(part);
  }
  return *this;
}

CacheKeyBuilder &CacheKeyBuilder::add(StringRef label, int64_t value) {
  return add(label, StringRef(itostr(value)));
}

CacheKey CacheKeyBuilder::finish() {
  CacheKey key;
  hash.final(key);
  return key;
}

std::string commsir::jit::toHex(const CacheKey &key) {
  return llvm::toHex(key, /*LowerCase=*/true);
}
