//===- Cache.cpp - Machine code that is kept ------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Cache.h"

#include "runtime/Version.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace llvm;
using namespace commsir;
using namespace commsir::jit;
namespace fs = llvm::sys::fs;
namespace endian = llvm::support::endian;

static constexpr char kMagic[] = "CommsIRK";
static constexpr uint32_t kFormat = 1;
static constexpr size_t kKeyOffset = 24, kChecksumOffset = 56, kHeader = 88;
/// No kernel is that large: a length beyond it is not believed.
static constexpr uint64_t kLargestPayload = uint64_t(1) << 30;
static constexpr char kEntryExtension[] = ".kernel";
static constexpr char kLockExtension[] = ".lock";
static constexpr char kTemporaryExtension[] = ".tmp";
/// A process that still writes a temporary file is younger than that.
static constexpr auto kStaleAge = std::chrono::minutes(10);

//===----------------------------------------------------------------------===//
// Keys
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

CacheKeyBuilder::CacheKeyBuilder() : CacheKeyBuilder(getVersion()) {}

CacheKeyBuilder::CacheKeyBuilder(StringRef version) {
  add("format", kFormat).add("version", version).add("build", getBuildName());
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

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

bool commsir::jit::parseSize(StringRef text, uint64_t &bytes) {
  unsigned shift = 0;
  text = text.trim();
  if (!text.empty()) {
    size_t unit = StringRef("KMGT").find(toUpper(text.back()));
    if (unit != StringRef::npos) {
      shift = 10 * (unit + 1);
      text = text.drop_back();
    }
  }
  uint64_t number;
  if (text.getAsInteger(10, number) || number > (UINT64_MAX >> shift))
    return false;
  bytes = number << shift;
  return true;
}

static void printWarning(const Twine &message) {
  // One write, so that lines of processes do not mix.
  std::string line = ("commsir: warning: " + message + "\n").str();
  errs() << line;
  errs().flush();
}

static std::string chooseFolder() {
  SmallString<128> folder;
  if (const char *chosen = std::getenv("COMMSIR_CACHE_DIR");
      chosen && *chosen) {
    folder = chosen;
    // The process may change its folder later.
    fs::make_absolute(folder);
    return folder.str().str();
  }
  if (!sys::path::cache_directory(folder))
    return {};
  sys::path::append(folder, "commsir");
  return folder.str().str();
}

CacheSettings CacheSettings::fromEnvironment() {
  CacheSettings settings;
  settings.folder = chooseFolder();
  if (settings.folder.empty())
    printWarning("there is no home folder: compiled kernels are not kept; "
                 "COMMSIR_CACHE_DIR says where they may be");
  if (const char *size = std::getenv("COMMSIR_CACHE_SIZE"); size && *size)
    if (!parseSize(size, settings.diskLimit))
      printWarning("COMMSIR_CACHE_SIZE='" + Twine(size) +
                   "' is no size (like 512M or 2G); the limit is 1G");
  if (const char *compiler = std::getenv("COMMSIR_COMPILER");
      compiler && *compiler) {
    StringRef text(compiler);
    settings.build = !text.equals_insensitive("off");
    if (settings.build && !text.equals_insensitive("on"))
      printWarning("COMMSIR_COMPILER='" + text +
                   "' is neither on nor off; it stays on");
  }
  return settings;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {
/// A file descriptor that is closed.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(Descriptor &&other) : fd(other.fd) { other.fd = -1; }
  Descriptor &operator=(Descriptor &&other) {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  explicit operator bool() const { return fd >= 0; }
  int get() const { return fd; }

private:
  int fd;
};
} // namespace

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
  std::string header(kHeader, '\0');
  std::memcpy(header.data(), kMagic, 8);
  endian::write32le(header.data() + 8, kFormat);
  endian::write64le(header.data() + 16, payload.size());
  std::memcpy(header.data() + kKeyOffset, key.data(), key.size());
  auto sum = checksum(header, payload);
  std::memcpy(header.data() + kChecksumOffset, sum.data(), sum.size());
  return header;
}

/// Why the file is not the entry of `key`; empty when it is.
static StringRef findFault(StringRef file, const CacheKey &key) {
  if (file.size() < kHeader)
    return "it is cut short";
  if (!file.starts_with(kMagic))
    return "it is no entry of this cache";
  if (endian::read32le(file.data() + 8) != kFormat)
    return "another version of CommsIR wrote it";
  if (endian::read64le(file.data() + 16) != file.size() - kHeader)
    return "its length is wrong";
  if (std::memcmp(file.data() + kKeyOffset, key.data(), key.size()) != 0)
    return "it is the entry of another kernel";
  auto sum = checksum(file, file.drop_front(kHeader));
  if (std::memcmp(file.data() + kChecksumOffset, sum.data(), sum.size()) != 0)
    return "its checksum is wrong";
  return {};
}

//===----------------------------------------------------------------------===//
// Locks
//===----------------------------------------------------------------------===//

namespace {
/// Holds the lock of an entry while it lives; holds nothing where locks do not
/// work, which only means that work is done twice.
class EntryLock {
public:
  EntryLock(std::string path, double patience) : path(std::move(path)) {
    wait(patience);
  }
  EntryLock(const EntryLock &) = delete;
  ~EntryLock() {
    if (!file)
      return;
    // While it is held: who waits for it then sees that it is gone.
    ::unlink(path.c_str());
    ::flock(file.get(), LOCK_UN);
  }
  /// Another process held it all the time.
  bool timedOut() const { return late; }

private:
  enum class Attempt { Held, Busy, Impossible };
  void wait(double patience);
  Attempt attempt();

  std::string path;
  Descriptor file;
  bool late = false;
};
} // namespace

EntryLock::Attempt EntryLock::attempt() {
  Descriptor opened(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!opened)
    return Attempt::Impossible;
  if (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK || errno == EINTR ? Attempt::Busy
                                                  : Attempt::Impossible;
  // The process before us may have removed the file that we opened.
  struct stat ours, there;
  if (::fstat(opened.get(), &ours) != 0 || ::stat(path.c_str(), &there) != 0 ||
      ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)
    return Attempt::Busy;
  file = std::move(opened);
  return Attempt::Held;
}

void EntryLock::wait(double patience) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::duration<double>(patience);
  auto pause = std::chrono::microseconds(200);
  while (attempt() == Attempt::Busy) {
    if (Clock::now() >= end) {
      late = true;
      return;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

Cache::Cache(CacheSettings settings) : settings(std::move(settings)) {}

Cache &Cache::shared() {
  // Never destroyed: threads may still compile while the process ends.
  static Cache *cache = new Cache(CacheSettings::fromEnvironment());
  return *cache;
}

bool Cache::usesDisk() const {
  return !settings.folder.empty() && settings.diskLimit != 0;
}

std::string Cache::pathOf(const CacheKey &key, StringRef extension) const {
  SmallString<256> path(settings.folder);
  sys::path::append(path, toHex(key) + extension);
  return path.str().str();
}

void Cache::warn(const Twine &message) {
  if (settings.warn)
    settings.warn(message.str());
  else
    printWarning(message);
}

void Cache::warnOfFolder(const Twine &message) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (std::exchange(warnedOfFolder, true))
      return;
  }
  warn(message + "; compiled kernels are not kept (COMMSIR_CACHE_DIR chooses "
                 "another folder, COMMSIR_CACHE_SIZE=0 needs none)");
}

CacheCounts Cache::counts() const {
  std::lock_guard<std::mutex> guard(mutex);
  return counted;
}

void Cache::forget() {
  std::lock_guard<std::mutex> guard(mutex);
  memory.clear();
  uses.clear();
  memoryBytes = 0;
}

/// `mutex` is held.
Cache::Entry Cache::findInMemory(const CacheKey &key) {
  auto found = memory.find(key);
  if (found == memory.end())
    return nullptr;
  uses.splice(uses.begin(), uses, found->second.use);
  ++counted.fromMemory;
  return found->second.entry;
}

Cache::Entry Cache::remember(const CacheKey &key, Entry entry) {
  std::lock_guard<std::mutex> guard(mutex);
  auto drop = [&](std::map<CacheKey, Kept>::iterator at) {
    memoryBytes -= at->second.entry->size();
    uses.erase(at->second.use);
    memory.erase(at);
  };
  if (auto before = memory.find(key); before != memory.end())
    drop(before);
  if (entry->size() > settings.memoryLimit)
    return entry;
  while (memoryBytes + entry->size() > settings.memoryLimit)
    drop(memory.find(uses.back()));
  uses.push_front(key);
  memory[key] = {entry, uses.begin()};
  memoryBytes += entry->size();
  return entry;
}

Cache::Entry Cache::findOnDisk(const CacheKey &key,
                               function_ref<bool(StringRef)> accept,
                               bool quiet) {
  if (!usesDisk())
    return nullptr;
  std::string path = pathOf(key, kEntryExtension);
  auto refuse = [&](const Twine &why) -> Entry {
    if (!quiet) {
      warn("the cached kernel '" + path + "' is not used: " + why +
           (settings.build ? "; it is built again" : ""));
      std::lock_guard<std::mutex> guard(mutex);
      ++counted.rejected;
    }
    return nullptr;
  };
  struct stat status;
  Descriptor file = openPlain(path, status);
  if (!file)
    return errno == ENOENT || errno == ENOTDIR ? nullptr : refuse(whyNot());
  if (uint64_t(status.st_size) < kHeader)
    return refuse("it is cut short");
  if (uint64_t(status.st_size) > kLargestPayload)
    return refuse("it is too large to be one");
  std::string bytes(status.st_size, '\0');
  if (!readAll(file.get(), bytes.data(), bytes.size()))
    return refuse("it cannot be read");
  if (StringRef fault = findFault(bytes, key); !fault.empty())
    return refuse(fault);
  bytes.erase(0, kHeader);
  if (!accept(bytes))
    return refuse("its contents make no sense");
  // Its last use. In a folder that is read-only nothing is ever thrown out.
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  std::lock_guard<std::mutex> guard(mutex);
  ++counted.fromDisk;
  return std::make_shared<const std::string>(std::move(bytes));
}

Cache::Entry Cache::find(const CacheKey &key,
                         function_ref<bool(StringRef)> accept) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (Entry entry = findInMemory(key))
      return entry;
  }
  Entry entry = findOnDisk(key, accept, /*quiet=*/false);
  return entry ? remember(key, std::move(entry)) : nullptr;
}

Cache::Entry Cache::put(const CacheKey &key, std::string payload) {
  write(key, payload);
  return remember(key, std::make_shared<const std::string>(std::move(payload)));
}

Expected<Cache::Entry> Cache::get(const CacheKey &key, StringRef what,
                                  function_ref<bool(StringRef)> accept,
                                  function_ref<Expected<std::string>()> build) {
  {
    std::unique_lock<std::mutex> guard(mutex);
    while (true) {
      if (Entry entry = findInMemory(key))
        return entry;
      if (building.insert(key).second)
        break;
      finished.wait(guard);
    }
  }
  llvm::scope_exit done([&] {
    std::lock_guard<std::mutex> guard(mutex);
    building.erase(key);
    finished.notify_all();
  });
  if (Entry entry = findOnDisk(key, accept, /*quiet=*/false))
    return remember(key, std::move(entry));
  if (!settings.build)
    return createStringError(
        what + " is not in the cache" +
        (usesDisk() ? " '" + Twine(settings.folder) + "'" : Twine()) +
        " and COMMSIR_COMPILER=off forbids to compile it; run it once with "
        "the compiler on, on this version of CommsIR");
  std::optional<EntryLock> lock;
  if (usesDisk()) {
    fs::create_directories(settings.folder, /*IgnoreExisting=*/true,
                           fs::perms::owner_all);
    lock.emplace(pathOf(key, kLockExtension), settings.patience);
    if (lock->timedOut())
      warn("another process has been compiling " + what + " for " +
           Twine(int64_t(settings.patience)) +
           " s; this one no longer waits for it and compiles too");
    if (Entry entry = findOnDisk(key, accept, /*quiet=*/true))
      return remember(key, std::move(entry));
  }
  Expected<std::string> payload = build();
  if (!payload)
    return payload.takeError();
  {
    std::lock_guard<std::mutex> guard(mutex);
    ++counted.built;
  }
  return put(key, std::move(*payload));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

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

void Cache::write(const CacheKey &key, StringRef payload) {
  if (!usesDisk() || payload.size() + kHeader > settings.diskLimit ||
      payload.size() + kHeader > kLargestPayload)
    return;
  std::string path = pathOf(key, kEntryExtension), temporary;
  if (std::error_code error = fs::create_directories(
          settings.folder, /*IgnoreExisting=*/true, fs::perms::owner_all))
    return warnOfFolder("cannot make the folder '" + settings.folder +
                        "': " + error.message());
  Descriptor file = createBeside(path, temporary);
  if (!file)
    return warnOfFolder("cannot write to the folder '" + settings.folder +
                        "': " + whyNot());
  bool good = writeAll(file.get(), makeHeader(key, payload)) &&
              writeAll(file.get(), payload) &&
              // What is in the way is no entry: nobody else makes folders here.
              (::rename(temporary.c_str(), path.c_str()) == 0 ||
               (errno == EISDIR && ::rmdir(path.c_str()) == 0 &&
                ::rename(temporary.c_str(), path.c_str()) == 0));
  if (!good) {
    std::string why = whyNot();
    ::unlink(temporary.c_str());
    return warnOfFolder("cannot write '" + path + "': " + why);
  }
  prune();
}

namespace {
struct EntryFile {
  std::string path;
  uint64_t bytes;
  sys::TimePoint<> used;
};
} // namespace

/// Whether the file is one that this cache makes: a key and more.
static bool isOurs(StringRef name) {
  return name.size() > 64 && name[64] == '.' &&
         all_of(name.take_front(64), isHexDigit);
}

/// Removes a lock or a temporary file that a dead process left long ago.
static void removeStale(const std::string &path,
                        const fs::basic_file_status &status,
                        sys::TimePoint<> now) {
  if (now - status.getLastModificationTime() < kStaleAge)
    return;
  if (!StringRef(path).ends_with(kLockExtension)) {
    ::unlink(path.c_str());
    return;
  }
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
}

/// The entries in the folder; removes what dead processes left.
static std::vector<EntryFile> listEntries(StringRef folder) {
  std::vector<EntryFile> entries;
  sys::TimePoint<> now = std::chrono::system_clock::now();
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error)) {
    StringRef name = sys::path::filename(at->path());
    ErrorOr<fs::basic_file_status> status = at->status();
    if (!isOurs(name) || !status || !fs::is_regular_file(*status))
      continue;
    if (name.ends_with(kEntryExtension))
      entries.push_back(
          {at->path(), status->getSize(), status->getLastModificationTime()});
    else if (name.ends_with(kLockExtension) ||
             name.ends_with(kTemporaryExtension))
      removeStale(at->path(), *status, now);
  }
  return entries;
}

void Cache::prune() {
  std::vector<EntryFile> entries = listEntries(settings.folder);
  uint64_t total = 0;
  for (const EntryFile &entry : entries)
    total += entry.bytes;
  if (total <= settings.diskLimit)
    return;
  llvm::sort(entries, [](const EntryFile &a, const EntryFile &b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  uint64_t removed = 0;
  for (const EntryFile &entry : entries) {
    if (total <= settings.diskLimit)
      break;
    // Another process may have removed it; then its bytes are gone too.
    ::unlink(entry.path.c_str());
    total -= entry.bytes;
    ++removed;
  }
  std::lock_guard<std::mutex> guard(mutex);
  counted.evicted += removed;
}
