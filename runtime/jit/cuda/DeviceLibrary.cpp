//===- DeviceLibrary.cpp - Device code for the loaded NCCL ----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/DeviceLibrary.h"

#include "runtime/jit/cuda/Libraries.h"
#include "runtime/jit/cuda/Link.h"
#include "runtime/jit/cuda/NcclDevice.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

#include <deque>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

std::string commsir::jit::formatNcclVersion(int version) {
  return formatv("{0}.{1}.{2}", version / 10000, version / 100 % 100,
                 version % 100);
}

//===----------------------------------------------------------------------===//
// Headers as NVRTC can read them
//===----------------------------------------------------------------------===//

static constexpr const char kTypesName[] = "commsir/types.h";
static constexpr const char kAtomicName[] = "cuda/atomic";

/// Start of the brace that the one at `close` ends; npos: there is none.
static size_t findOpening(StringRef text, size_t close) {
  int depth = 0;
  for (size_t at = close + 1; at-- > 0;) {
    if (text[at] == '}')
      ++depth;
    else if (text[at] == '{' && --depth == 0)
      return at;
  }
  return StringRef::npos;
}

/// End of the last word `struct` or `union` before `end`; npos: there is none.
static size_t findKeyword(StringRef text, size_t end) {
  StringRef before = text.take_front(end);
  size_t found = StringRef::npos;
  for (StringRef word : {StringRef("struct"), StringRef("union")}) {
    size_t at = before.rfind(word);
    if (at != StringRef::npos &&
        (found == StringRef::npos || at + word.size() > found))
      found = at + word.size();
  }
  return found;
}

/// NVRTC leaves out, with or without a warning, attributes that stand behind
/// the members of a structure, and so lays it out unlike the host: they move
/// to the front.
static std::string moveAttributes(std::string text) {
  static const Regex trailing("}[[:space:]]*((__attribute__[[:space:]]*\\(\\("
                              "([^()]|\\([^()]*\\))*\\)\\)[[:space:]]*)+)");
  SmallVector<StringRef> match;
  size_t from = 0;
  while (trailing.match(StringRef(text).drop_front(from), &match)) {
    size_t close = match[0].data() - text.data();
    size_t open = findOpening(text, close);
    size_t keyword = open == StringRef::npos ? open : findKeyword(text, open);
    if (keyword == StringRef::npos) {
      from = close + 1;
      continue;
    }
    std::string attributes = " " + match[1].rtrim().str() + " ";
    size_t end = close + match[0].size();
    text = text.substr(0, keyword) + attributes +
           text.substr(keyword, close + 1 - keyword) + " " + text.substr(end);
    from = keyword;
  }
  return text;
}

/// An array of sizeof(T)/8 elements is one of none for small T, in a branch
/// that is not taken: NVRTC refuses it all the same.
static std::string growArrays(StringRef text) {
  static const Regex array("\\[(sizeof\\(T\\) ?/ ?[0-9]+)\\];");
  std::string result;
  SmallVector<StringRef> match;
  while (array.match(text, &match)) {
    size_t at = match[0].data() - text.data();
    result += text.take_front(at).str() + "[" + match[1].str() + " ? " +
              match[1].str() + " : 1];";
    text = text.drop_front(at + match[0].size());
  }
  return result + text.str();
}

/// Where NCCL lies among the system's headers, theirs are not taken: NVRTC
/// cannot read the C library's.
static bool isOfNccl(StringRef file) {
  return file.starts_with("nccl.h") || file.starts_with("nccl_device");
}

/// The path below the folder that `name`, included from `includer`, means;
/// empty: it is no file of NCCL.
static std::string resolveInclude(StringRef folder, StringRef includer,
                                  StringRef name, bool isQuoted) {
  auto exists = [&](StringRef relative) {
    return isOfNccl(relative) && fs::is_regular_file(folder + "/" + relative);
  };
  if (isQuoted) {
    SmallString<128> beside(path::parent_path(includer));
    path::append(beside, name);
    path::remove_dots(beside, /*remove_dot_dot=*/true);
    if (exists(beside))
      return beside.str().str();
  }
  return exists(name) ? name.str() : std::string();
}

namespace {
/// Reads what nccl_device.h includes, and what that includes.
class HeaderReader {
public:
  explicit HeaderReader(StringRef folder) : folder(folder) {}
  Error run(NcclHeaders &result);

private:
  Error read(const std::string &name);
  std::string rewriteIncludes(StringRef includer, StringRef text);

  StringRef folder;
  StringMap<std::string> texts;
  std::deque<std::string> pending;
};
} // namespace

/// In memory there are no folders: every file gets one name. What is not of
/// NCCL is the system's or CUDA's, for which our own texts stand in.
std::string HeaderReader::rewriteIncludes(StringRef includer, StringRef text) {
  static const Regex include("^[[:space:]]*#[[:space:]]*include[[:space:]]*"
                             "([<\"])([^>\"]+)[>\"]");
  std::string result;
  SmallVector<StringRef> match;
  for (StringRef line : split(text, '\n')) {
    if (include.match(line, &match)) {
      std::string file =
          resolveInclude(folder, includer, match[2], match[1] == "\"");
      if (!file.empty())
        pending.push_back(file);
      else
        file = match[2] == kAtomicName ? kAtomicName : kTypesName;
      result += "#include <" + file + ">\n";
      continue;
    }
    result += line.str() + "\n";
  }
  return result;
}

Error HeaderReader::read(const std::string &name) {
  auto buffer = MemoryBuffer::getFile(folder + "/" + name, /*IsText=*/true);
  if (!buffer)
    return createStringError("%s/%s cannot be read: %s", folder.str().c_str(),
                             name.c_str(), buffer.getError().message().c_str());
  // The name is taken while includes are looked at: headers include in rings.
  texts[name];
  texts[name] =
      growArrays(moveAttributes(rewriteIncludes(name, (*buffer)->getBuffer())));
  return Error::success();
}

Error HeaderReader::run(NcclHeaders &result) {
  pending = {"nccl_device.h", "nccl_device/impl/core__funcs.h", "nccl.h"};
  while (!pending.empty()) {
    std::string name = pending.front();
    pending.pop_front();
    if (texts.contains(name))
      continue;
    if (Error error = read(name))
      return error;
  }
  for (const auto &entry : texts)
    result.headers.push_back({entry.getKey().str(), entry.getValue()});
  result.headers.push_back({kTypesName, cuda::getNvrtcTypes().str()});
  result.headers.push_back({"stdint.h", cuda::getNvrtcTypes().str()});
  result.headers.push_back({kAtomicName, cuda::getNvrtcAtomic().str()});
  sort(result.headers, [](const NvrtcHeader &a, const NvrtcHeader &b) {
    return a.name < b.name;
  });
  BLAKE3 hash;
  for (const NvrtcHeader &header : result.headers) {
    for (StringRef part : {StringRef(header.name), StringRef(header.text)}) {
      std::string length = std::to_string(part.size()) + ":";
      hash.update(length);
      hash.update(part);
    }
  }
  result.digest = toHex(hash.final());
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Which headers
//===----------------------------------------------------------------------===//

/// NCCL_VERSION_CODE of nccl.h in a folder; 0: there is none.
static int readHeaderVersion(StringRef folder) {
  auto buffer = MemoryBuffer::getFile(folder + "/nccl.h", /*IsText=*/true);
  if (!buffer)
    return 0;
  static const Regex code(
      "#[[:space:]]*define[[:space:]]+NCCL_VERSION_CODE[[:space:]]+([0-9]+)");
  SmallVector<StringRef> match;
  int version = 0;
  if (!code.match((*buffer)->getBuffer(), &match) ||
      match[1].getAsInteger(10, version))
    return 0;
  return version;
}

static SmallVector<std::string> listHeaderFolders(StringRef library) {
  if (StringRef own = getEnvironment("COMMSIR_NCCL_INCLUDE"); !own.empty())
    return {own.str()};
  SmallVector<std::string> folders;
  SmallString<128> real;
  if (fs::real_path(library, real))
    real = library;
  // The name it was loaded by may lie in another folder than the file.
  for (StringRef file : {library, StringRef(real)})
    for (StringRef up : {"..", "../.."}) {
      SmallString<128> folder(path::parent_path(file));
      path::append(folder, up, "include");
      path::remove_dots(folder, /*remove_dot_dot=*/true);
      if (!is_contained(folders, folder.str()))
        folders.push_back(folder.str().str());
    }
  return folders;
}

Expected<NcclHeaders>
commsir::jit::findNcclHeaders(const NcclInstallation &nccl) {
  std::string seen;
  for (const std::string &folder : listHeaderFolders(nccl.path)) {
    int version = readHeaderVersion(folder);
    if (version != nccl.version) {
      seen += "\n  " + folder +
              (version ? " has those of NCCL " + formatNcclVersion(version)
                       : std::string(" has no nccl.h"));
      continue;
    }
    if (!fs::exists(folder + "/nccl_device.h")) {
      seen += "\n  " + folder + " has no nccl_device.h";
      continue;
    }
    NcclHeaders result;
    result.folder = folder;
    if (Error error = HeaderReader(folder).run(result))
      return std::move(error);
    return result;
  }
  std::string wanted = formatNcclVersion(nccl.version);
  return createStringError(
      formatv("no headers of NCCL {0} were found for {1}:{2}\nInstall that "
              "release with its headers (pip install nvidia-nccl-cu13=={0} has "
              "both), or name their folder in COMMSIR_NCCL_INCLUDE",
              wanted, nccl.path, seen)
          .str());
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Whether the embedded code is used. An error if COMMSIR_NCCL_DEVICE has a
/// value that it does not know.
static Expected<bool> usesEmbedded(const NcclInstallation &nccl) {
  StringRef wanted = getEnvironment("COMMSIR_NCCL_DEVICE");
  if (!wanted.empty() && wanted != "embedded" && wanted != "nvrtc")
    return createStringError(
        "COMMSIR_NCCL_DEVICE='" + wanted +
        "' is neither embedded nor nvrtc: write one of them, or unset it");
  return nccl.version == cuda::getNcclDeviceVersion() && wanted != "nvrtc";
}

/// Says what was to be done before it says what failed.
static Error explain(const NcclInstallation &nccl, Error error) {
  bool isSame = nccl.version == cuda::getNcclDeviceVersion();
  std::string why =
      isSame ? std::string("COMMSIR_NCCL_DEVICE=nvrtc leaves the embedded "
                           "device library out")
             : "the embedded device library is for NCCL " +
                   formatNcclVersion(cuda::getNcclDeviceVersion()) + ", but " +
                   nccl.path + " is " + formatNcclVersion(nccl.version);
  return createStringError(formatv("{0}, and none could be made for it: {1}",
                                   why, toString(std::move(error)))
                               .str());
}

static Expected<std::string> compile(const NcclHeaders &headers,
                                     DevicePart part, StringRef chip) {
  // A system's own names are redefined: no warnings.
  std::vector<std::string> options = {"-arch=" + chip.str(), "-std=c++17",
                                      "-default-device", "-w"};
  bool isKernels = part == DevicePart::Kernels;
  options.push_back(isKernels ? "-DCOMMSIR_KERNELS_ONLY" : "-rdc=true");
  Expected<std::string> ptx = compileByNvrtc(
      cuda::getNcclDeviceSource(), "NcclDevice.cu", headers.headers, options);
  if (!ptx || !isKernels)
    return ptx;
  // A driver may be older than NVRTC, and then does not know its PTX.
  Expected<LinkedCode> linked =
      linkPtx(*ptx, "commsir_resolve_window", chip, /*optLevel=*/3, {});
  if (!linked)
    return linked.takeError();
  return std::move(linked->code);
}

Expected<DeviceCode> commsir::jit::getDeviceCode(const NcclInstallation &nccl,
                                                 DevicePart part,
                                                 StringRef chip, Cache &cache) {
  DeviceCode result;
  result.version = nccl.version;
  Expected<bool> embedded = usesEmbedded(nccl);
  if (!embedded)
    return embedded.takeError();
  if (*embedded) {
    result.isBitcode = part == DevicePart::Functions;
    result.code = (result.isBitcode ? cuda::getNcclDeviceBitcode()
                                    : cuda::getNcclDevicePtx())
                      .str();
    if (!result.isBitcode)
      result.code.push_back('\0');
    result.origin = "embedded";
    result.cached = true;
    return result;
  }
  Expected<NcclHeaders> headers = findNcclHeaders(nccl);
  if (!headers)
    return explain(nccl, headers.takeError());
  std::string name = part == DevicePart::Kernels ? "kernels" : "functions";
  CacheKey key = CacheKeyBuilder()
                     .add("what", "NCCL device library: " + name)
                     .add("nccl", nccl.version)
                     .add("headers", headers->digest)
                     .add("source", cuda::getNcclDeviceSource())
                     .add("chip", chip)
                     .finish();
  auto isCode = [](StringRef bytes) { return !bytes.empty(); };
  result.cached = true;
  Expected<Cache::Entry> entry =
      cache.get(key,
                "the device library for NCCL " +
                    formatNcclVersion(nccl.version) + " (" + name + ")",
                isCode, [&]() -> Expected<std::string> {
                  result.cached = false;
                  return compile(*headers, part, chip);
                });
  if (!entry)
    return explain(nccl, entry.takeError());
  result.code = **entry;
  result.origin = "NVRTC, with the headers in " + headers->folder;
  return result;
}

Expected<std::string>
commsir::jit::identifyDeviceCode(const NcclInstallation &nccl) {
  Expected<bool> embedded = usesEmbedded(nccl);
  if (!embedded)
    return embedded.takeError();
  if (*embedded)
    return std::to_string(nccl.version);
  Expected<NcclHeaders> headers = findNcclHeaders(nccl);
  if (!headers)
    return explain(nccl, headers.takeError());
  return std::to_string(nccl.version) + " " + headers->digest;
}

Error commsir::jit::checkDeviceCode(const NcclInstallation &nccl) {
  Expected<bool> embedded = usesEmbedded(nccl);
  if (!embedded)
    return embedded.takeError();
  if (*embedded)
    return Error::success();
  Expected<NcclHeaders> headers = findNcclHeaders(nccl);
  if (!headers)
    return explain(nccl, headers.takeError());
  Expected<std::string> nvrtc = describeNvrtc();
  if (!nvrtc)
    return explain(nccl, nvrtc.takeError());
  return Error::success();
}
