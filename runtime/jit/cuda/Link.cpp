//===- Link.cpp - PTX becomes a cubin -------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/cuda/Link.h"

#include "runtime/jit/cuda/Libraries.h"
#include "runtime/support/OwnFolder.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <optional>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace fs = llvm::sys::fs;
namespace endian = llvm::support::endian;

/// ptxas takes milliseconds to seconds; after minutes it hangs.
static constexpr unsigned kPtxasSeconds = 300;

//===----------------------------------------------------------------------===//
// What a cubin says
//===----------------------------------------------------------------------===//

namespace {
using Elf = object::ELFFile<object::ELF64LE>;
} // namespace

/// Reads the records {form, kind, size, payload} of .nv.info. Those we want
/// carry a symbol and a number.
static void readInfo(ArrayRef<uint8_t> info, uint32_t symbol,
                     CubinFacts &facts) {
  constexpr uint8_t kSized = 4, kFrame = 0x11, kRegisters = 0x2f;
  while (info.size() >= 4) {
    size_t size = info[0] == kSized ? endian::read16le(&info[2]) : 0;
    if (info.size() < 4 + size)
      return;
    if (size >= 8 && endian::read32le(&info[4]) == symbol) {
      uint32_t value = endian::read32le(&info[8]);
      if (info[1] == kRegisters)
        facts.registers = value;
      else if (info[1] == kFrame)
        facts.stackBytes = value;
    }
    info = info.drop_front(4 + size);
  }
}

/// Number of the symbol of that name; 0 is no symbol.
static uint32_t findSymbol(const Elf &file, StringRef entry) {
  auto sections = file.sections();
  if (!sections)
    return consumeError(sections.takeError()), 0;
  for (const auto &section : *sections) {
    if (section.sh_type != ELF::SHT_SYMTAB)
      continue;
    auto symbols = file.symbols(&section);
    auto names = file.getStringTableForSymtab(section);
    if (!symbols || !names) {
      consumeError(symbols.takeError());
      consumeError(names.takeError());
      continue;
    }
    for (auto [number, symbol] : enumerate(*symbols)) {
      Expected<StringRef> name = symbol.getName(*names);
      if (!name)
        consumeError(name.takeError());
      else if (*name == entry && symbol.getType() == ELF::STT_FUNC)
        return number;
    }
  }
  return 0;
}

CubinFacts commsir::jit::readCubin(StringRef cubin, StringRef entry) {
  CubinFacts facts;
  // The reader of ELF wants its structures aligned.
  auto copy = MemoryBuffer::getMemBufferCopy(cubin);
  auto file = Elf::create(copy->getBuffer());
  if (!file)
    return consumeError(file.takeError()), facts;
  auto sections = file->sections();
  if (!sections)
    return consumeError(sections.takeError()), facts;
  uint32_t symbol = findSymbol(*file, entry);
  for (const auto &section : *sections) {
    Expected<StringRef> name = file->getSectionName(section);
    if (!name) {
      consumeError(name.takeError());
      continue;
    }
    if (*name == (".nv.shared." + entry).str())
      facts.sharedBytes = section.sh_size;
    if (*name != ".nv.info" || !symbol)
      continue;
    if (auto contents = file->getSectionContents(section))
      readInfo(*contents, symbol, facts);
    else
      consumeError(contents.takeError());
  }
  return facts;
}

//===----------------------------------------------------------------------===//
// Where the linkers are
//===----------------------------------------------------------------------===//

static const CudaLibrary kNvJitLink = {
    "libnvJitLink.so",
    {"libnvJitLink.so.13", "libnvJitLink.so.12"},
    "nvjitlink",
    "COMMSIR_NVJITLINK_LIBRARY"};

/// The path of ptxas; empty: there is none.
static std::string findPtxas() {
  if (StringRef own = getEnvironment("COMMSIR_PTXAS"); !own.empty())
    return own.str();
  if (auto found = sys::findProgramByName("ptxas"))
    return *found;
  for (const std::string &folder : listCudaFolders("/bin"))
    if (fs::can_execute(folder + "/ptxas"))
      return folder + "/ptxas";
  return {};
}

//===----------------------------------------------------------------------===//
// nvJitLink
//===----------------------------------------------------------------------===//

namespace {
/// The functions of nvJitLink that we call. Handles are opaque; 0 is success.
struct NvJitLink {
  using Handle = void *;
  int (*create)(Handle *, uint32_t, const char **) = nullptr;
  int (*destroy)(Handle *) = nullptr;
  int (*addData)(Handle, int, const void *, size_t, const char *) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubinSize)(Handle, size_t *) = nullptr;
  int (*cubin)(Handle, void *) = nullptr;
  int (*errorSize)(Handle, size_t *) = nullptr;
  int (*error)(Handle, char *) = nullptr;
  int (*version)(unsigned *, unsigned *) = nullptr;
  std::string path;

  static constexpr int kPtx = 2;

  bool load(const std::string &library, std::string &why);
  std::string errorLog(Handle handle) const;
  std::string describe() const;
};
} // namespace

bool NvJitLink::load(const std::string &library, std::string &why) {
  // Never closed: it holds no resources, and opening it takes 8 ms.
  void *opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    const char *error = ::dlerror();
    why = error ? error : "it cannot be opened";
    return false;
  }
  auto find = [&](const char *name, auto &function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        ::dlsym(opened, name));
    if (!function && why.empty())
      why = std::string("it has no ") + name;
  };
  find("nvJitLinkCreate", create);
  find("nvJitLinkDestroy", destroy);
  find("nvJitLinkAddData", addData);
  find("nvJitLinkComplete", complete);
  find("nvJitLinkGetLinkedCubinSize", cubinSize);
  find("nvJitLinkGetLinkedCubin", cubin);
  find("nvJitLinkGetErrorLogSize", errorSize);
  find("nvJitLinkGetErrorLog", error);
  if (!why.empty())
    return false;
  find("nvJitLinkVersion", version);
  why.clear();
  Dl_info info;
  path = ::dladdr(reinterpret_cast<void *>(create), &info) && info.dli_fname
             ? info.dli_fname
             : library;
  return true;
}

std::string NvJitLink::errorLog(Handle handle) const {
  size_t size = 0;
  if (errorSize(handle, &size) != 0 || size == 0)
    return {};
  std::string text(size, '\0');
  if (error(handle, text.data()) != 0)
    return {};
  return StringRef(text.c_str()).rtrim().str();
}

std::string NvJitLink::describe() const {
  unsigned major = 0, minor = 0;
  std::string text = "nvJitLink";
  if (version && version(&major, &minor) == 0)
    text += (" " + Twine(major) + "." + Twine(minor)).str();
  return text + " (" + path + ")";
}

/// The library, loaded once a process for each value of the environment. Null,
/// with the reason: there is none.
static const NvJitLink *getNvJitLink(std::string &why, bool &chosen) {
  static std::mutex mutex;
  static auto *loaded = new std::map<std::string, NvJitLink>();
  std::lock_guard<std::mutex> guard(mutex);
  for (const std::string &library : listCudaLibraries(kNvJitLink, chosen)) {
    if (auto found = loaded->find(library); found != loaded->end())
      return &found->second;
    NvJitLink functions;
    why.clear();
    if (functions.load(library, why))
      return &(*loaded)[library].operator=(std::move(functions));
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Writes the PTX where a person can look at it.
static std::string keepPtx(StringRef ptx) {
  SmallString<128> path;
  int fd;
  if (std::error_code error =
          fs::createTemporaryFile("commsir-kernel", "ptx", fd, path))
    return "it could not be kept: " + error.message();
  raw_fd_ostream stream(fd, /*shouldClose=*/true);
  stream << ptx;
  stream.close();
  if (stream.has_error()) {
    std::string why = stream.error().message();
    stream.clear_error();
    return "it could not be kept: " + why;
  }
  return "it is kept as '" + path.str().str() + "'";
}

static Error refused(const Twine &linker, StringRef ptx, StringRef log) {
  return createStringError(linker + " refuses the PTX (" + keepPtx(ptx) +
                           "): " + (log.empty() ? "it does not say why" : log));
}

/// Whether the linker is too old for the chip or the PTX, and not the PTX
/// wrong.
static bool isTooOld(StringRef log) {
  return log.contains("nsupported .version") ||
         log.contains("UNSUPPORTED_ARCH") ||
         log.contains("UNRECOGNIZED_ARCH") ||
         log.contains("is not defined for option 'gpu-name'");
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

namespace {
struct Request {
  StringRef ptx, entry, chip;
  unsigned optLevel;
  /// PTX of functions that are called; empty: none.
  StringRef library;
};
/// Linked code; nothing: the next linker may do better, see `why`.
using Outcome = Expected<std::optional<LinkedCode>>;
} // namespace

/// Returns the linkers' name of the chip, with an `a` if the code uses
/// instructions that only this chip has.
static std::string getArchitecture(const Request &request) {
  std::string own = (request.chip + "a").str();
  bool usesOwn = request.ptx.contains((".target " + own));
  return "-arch=" + (usesOwn ? own : request.chip.str());
}

static Outcome linkByNvJitLink(const Request &request, std::string &why) {
  bool chosen = false;
  std::string problem;
  const NvJitLink *linker = getNvJitLink(problem, chosen);
  if (!linker && chosen)
    return createStringError(
        "COMMSIR_NVJITLINK_LIBRARY='" +
        getEnvironment("COMMSIR_NVJITLINK_LIBRARY") + "' cannot be loaded: " +
        problem + "; name a libnvJitLink.so.12 or .13, or unset the variable");
  if (!linker) {
    why = "nvJitLink: " + problem;
    return std::nullopt;
  }
  std::string arch = getArchitecture(request);
  // It knows no levels between.
  std::string level = request.optLevel ? "-O3" : "-O0";
  const char *options[] = {arch.c_str(), level.c_str()};
  NvJitLink::Handle handle = nullptr;
  if (int status = linker->create(&handle, std::size(options), options)) {
    why = (linker->describe() + " does not know " + request.chip + " (status " +
           Twine(status) + ")")
              .str();
    return std::nullopt;
  }
  llvm::scope_exit done([&] { linker->destroy(&handle); });
  std::string text = request.ptx.str();
  std::string name = request.entry.str();
  std::string library = request.library.str();
  auto add = [&](const std::string &text, const char *name) {
    return linker->addData(handle, NvJitLink::kPtx, text.c_str(),
                           text.size() + 1, name) == 0;
  };
  LinkedCode linked;
  size_t size = 0;
  if (!add(text, name.c_str()) ||
      (!library.empty() && !add(library, "library")) ||
      linker->complete(handle) != 0 || linker->cubinSize(handle, &size) != 0 ||
      size == 0) {
    std::string log = linker->errorLog(handle);
    if (!isTooOld(log))
      return refused(linker->describe(), request.ptx, log);
    why = linker->describe() + ": " + log;
    return std::nullopt;
  }
  linked.code.resize(size);
  if (linker->cubin(handle, linked.code.data()) != 0)
    return refused(linker->describe(), request.ptx, linker->errorLog(handle));
  linked.linker = linker->describe();
  return linked;
}

namespace {
/// Files for another program, in a folder that nobody else writes to, which is
/// removed.
struct TemporaryFiles {
  std::string folder = makeTemporaryFolder("commsir");
  std::string pathOf(StringRef name) const { return folder + "/" + name.str(); }
  ~TemporaryFiles() {
    if (!folder.empty())
      fs::remove_directories(folder);
  }
};
} // namespace

static std::string readText(StringRef path) {
  auto file = MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().rtrim().str() : std::string();
}

static Outcome linkByPtxas(const Request &request, std::string &why) {
  if (!request.library.empty()) {
    why += why.empty() ? "" : "; ";
    why += "ptxas links no library with a kernel";
    return std::nullopt;
  }
  std::string program = findPtxas();
  if (program.empty()) {
    why = "ptxas was not found in PATH, CUDA_HOME or /usr/local/cuda";
    return std::nullopt;
  }
  TemporaryFiles files;
  std::error_code error;
  if (files.folder.empty())
    error = std::error_code(errno, std::generic_category());
  const std::string input = files.pathOf("kernel.ptx"),
                    output = files.pathOf("kernel.cubin"),
                    log = files.pathOf("log");
  if (!error) {
    raw_fd_ostream stream(input, error);
    stream << request.ptx;
    stream.close();
    if (stream.has_error()) {
      error = stream.error();
      stream.clear_error();
    }
  }
  if (error)
    return createStringError(
        "no temporary file for ptxas can be written: " + error.message() +
        "; TMPDIR chooses another folder");
  std::string arch = getArchitecture(request);
  std::string level = "-O" + utostr(request.optLevel);
  StringRef arguments[] = {program, arch, level, input, "-o", output};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log),
                                          StringRef(log)};
  std::string problem;
  int status = sys::ExecuteAndWait(program, arguments, std::nullopt, redirects,
                                   kPtxasSeconds, /*MemoryLimit=*/0, &problem);
  if (status < 0)
    return createStringError("'" + program + "' cannot be run: " + problem +
                             "; COMMSIR_PTXAS names another ptxas");
  if (status != 0) {
    std::string text = readText(log);
    if (!isTooOld(text))
      return refused("'" + program + "'", request.ptx, text);
    why = program + ": " + text;
    return std::nullopt;
  }
  auto cubin = MemoryBuffer::getFile(output, /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false);
  if (!cubin || (*cubin)->getBufferSize() == 0)
    return refused("'" + program + "'", request.ptx, "it wrote nothing");
  LinkedCode linked;
  linked.code = (*cubin)->getBuffer().str();
  linked.linker = "ptxas (" + program + ")";
  return linked;
}

static Outcome leaveToDriver(const Request &request, std::string &why) {
  if (!request.library.empty()) {
    why += why.empty() ? "" : "; ";
    why += "the driver links no library with a kernel. Install nvJitLink (pip "
           "install nvidia-nvjitlink)";
    return std::nullopt;
  }
  LinkedCode linked;
  linked.code = request.ptx.str();
  linked.code.push_back('\0');
  linked.isPtx = true;
  linked.linker = "driver";
  return linked;
}

namespace {
struct Linker {
  StringRef name;
  Outcome (*link)(const Request &, std::string &why);
};
} // namespace

static constexpr Linker kLinkers[] = {{"nvjitlink", linkByNvJitLink},
                                      {"ptxas", linkByPtxas},
                                      {"driver", leaveToDriver}};

static StringRef choose(StringRef which) {
  return which.empty() ? getEnvironment("COMMSIR_LINKER") : which;
}

Expected<LinkedCode> commsir::jit::linkPtx(StringRef ptx, StringRef entry,
                                           StringRef chip, unsigned optLevel,
                                           StringRef which, StringRef library) {
  TimeTraceScope scope("commsir: linker");
  which = choose(which);
  Request request{ptx, entry, chip, std::min(optLevel, 3u), library};
  bool known = false;
  std::string why;
  for (const Linker &linker : kLinkers) {
    if (!which.empty() && which != linker.name)
      continue;
    known = true;
    Outcome outcome = linker.link(request, why);
    if (!outcome)
      return outcome.takeError();
    if (!*outcome)
      continue;
    if (!(*outcome)->isPtx)
      (*outcome)->facts = readCubin((*outcome)->code, entry);
    return std::move(**outcome);
  }
  if (!known)
    return createStringError("there is no linker '" + which +
                             "'; there are nvjitlink, ptxas and driver");
  return createStringError(which.empty() ? "no linker can be used: " + why
                                         : "the linker '" + which.str() +
                                               "' cannot be used: " + why);
}

void commsir::jit::preloadLinker(StringRef which) {
  which = choose(which);
  if (!which.empty() && which != "nvjitlink")
    return;
  std::string why;
  bool chosen = false;
  getNvJitLink(why, chosen);
}

/// Empty: there is no nvJitLink.
static std::string identifyNvJitLink() {
  bool chosen = false;
  std::string first = listCudaLibraries(kNvJitLink, chosen).front();
  if (chosen || first.find('/') != std::string::npos)
    return "nvjitlink:" + identifyFile(first);
  // Only the system knows where it would look.
  std::string why;
  const NvJitLink *linker = getNvJitLink(why, chosen);
  return linker ? "nvjitlink:" + identifyFile(linker->path) : std::string();
}

std::string commsir::jit::identifyLinker(StringRef which) {
  TimeTraceScope scope("commsir: linker's identity");
  which = choose(which);
  if (which.empty() || which == "nvjitlink")
    if (std::string identity = identifyNvJitLink(); !identity.empty())
      return identity;
  if (which.empty() || which == "ptxas")
    if (std::string program = findPtxas(); !program.empty())
      return "ptxas:" + identifyFile(program);
  return which.empty() ? "driver" : which.str();
}
