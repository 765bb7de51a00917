//===- CacheTest.cpp - The cache under faults -----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/jit/Cache.h"
#include "runtime/support/Size.h"
#include "runtime/support/Version.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace commsir;
using namespace commsir;
using namespace commsir::jit;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

namespace {

bool any(StringRef) { return true; }

CacheKey keyOf(StringRef name) {
  return CacheKeyBuilder().add("test", name).finish();
}

/// Bytes that no other entry has.
std::string payloadOf(StringRef name, size_t bytes = 500) {
  std::string payload;
  while (payload.size() < bytes)
    payload += name.str() + "|";
  return payload;
}

struct CacheTest : testing::Test {
  void SetUp() override {
    // In memory where there is such a folder: some file systems wait for the
    // disk when a file takes the place of another.
    std::string place =
        fs::can_write("/dev/shm") ? "/dev/shm/cache-tests" : "cache-tests";
    ASSERT_FALSE(fs::createUniqueDirectory(place, folder));
    ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
    settings.folder = folder.str();
    settings.warn = [this](const std::string &text) {
      std::lock_guard<std::mutex> guard(mutex);
      warnings.push_back(text);
    };
  }
  void TearDown() override {
    ::chmod(folder.c_str(), 0700);
    fs::remove_directories(folder);
  }
  std::string pathOf(StringRef name, StringRef extension = ".kernel") const {
    return (folder + "/" + toHex(keyOf(name)) + extension).str();
  }
  std::string read(StringRef name) const {
    auto file = llvm::MemoryBuffer::getFile(pathOf(name), false, false);
    return file ? (*file)->getBuffer().str() : std::string();
  }
  void write(StringRef name, StringRef bytes) const {
    std::error_code error;
    llvm::raw_fd_ostream stream(pathOf(name), error);
    ASSERT_FALSE(error);
    stream << bytes;
  }
  /// Gets `name`, building it if need be; counts what is built.
  std::string get(Cache &cache, StringRef name, size_t bytes = 500) {
    auto entry =
        cache.get(keyOf(name), name, any, [&]() -> llvm::Expected<std::string> {
          ++built;
          return payloadOf(name, bytes);
        });
    if (entry)
      return **entry;
    return "error: " + toString(entry.takeError());
  }
  std::vector<std::string> listFiles() const {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; at != end && !error;
         at.increment(error))
      files.push_back(at->path());
    return files;
  }

  llvm::SmallString<128> folder;
  CacheSettings settings;
  std::mutex mutex;
  std::vector<std::string> warnings;
  std::atomic<int> built{0};
};

//===----------------------------------------------------------------------===//
// Keys and settings
//===----------------------------------------------------------------------===//

TEST(CacheKey, EachVersionHasItsOwn) {
  auto keyOfVersion = [](StringRef version) {
    return CacheKeyBuilder(version).add("x", 1).finish();
  };
  EXPECT_EQ(CacheKeyBuilder().add("x", 1).finish(), keyOfVersion(getVersion()));
  EXPECT_EQ(keyOfVersion("0.1.0"), keyOfVersion("0.1.0"));
  EXPECT_NE(keyOfVersion("0.1.0"), keyOfVersion("0.1.1"));
  EXPECT_NE(keyOfVersion("0.1.0 (LLVM 22.1.8)"),
            keyOfVersion("0.1.0 (LLVM 22.1.7)"));
}

TEST(CacheKey, PartsDoNotRunTogether) {
  auto make = [](StringRef a, StringRef b) {
    return CacheKeyBuilder().add("x", a).add("y", b).finish();
  };
  EXPECT_EQ(make("ab", "c"), make("ab", "c"));
  EXPECT_NE(make("ab", "c"), make("a", "bc"));
  EXPECT_NE(make("", "c"), make("c", ""));
  EXPECT_NE(CacheKeyBuilder().add("x", 1).finish(),
            CacheKeyBuilder().add("y", 1).finish());
  EXPECT_EQ(toHex(make("a", "b")).size(), 64u);
}

TEST(CacheSettings, Sizes) {
  uint64_t bytes = 7;
  EXPECT_TRUE(parseSize("0", bytes));
  EXPECT_EQ(bytes, 0u);
  EXPECT_TRUE(parseSize("65536", bytes));
  EXPECT_EQ(bytes, 65536u);
  EXPECT_TRUE(parseSize("3k", bytes));
  EXPECT_EQ(bytes, 3072u);
  EXPECT_TRUE(parseSize(" 2G ", bytes));
  EXPECT_EQ(bytes, uint64_t(2) << 30);
  for (StringRef bad : {"", "G", "-1", "1.5G", "12Q", "1 G B",
                        "99999999999999999999", "99999999999999T"})
    EXPECT_FALSE(parseSize(bad, bytes)) << bad.str();
  EXPECT_EQ(bytes, uint64_t(2) << 30);
}

TEST(CacheSettings, Environment) {
  ::setenv("COMMSIR_CACHE_DIR", "here/there", 1);
  ::setenv("COMMSIR_CACHE_SIZE", "5M", 1);
  ::setenv("COMMSIR_COMPILER", "off", 1);
  CacheSettings settings = CacheSettings::fromEnvironment();
  EXPECT_TRUE(llvm::sys::path::is_absolute(settings.folder));
  EXPECT_TRUE(StringRef(settings.folder).ends_with("/here/there"));
  EXPECT_EQ(settings.diskLimit, uint64_t(5) << 20);
  EXPECT_FALSE(settings.build);
  ::unsetenv("COMMSIR_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  ::setenv("COMMSIR_CACHE_SIZE", "much", 1);
  ::setenv("COMMSIR_COMPILER", "of", 1);
  testing::internal::CaptureStderr();
  settings = CacheSettings::fromEnvironment();
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(settings.folder, "/xdg/commsir");
  EXPECT_EQ(settings.diskLimit, uint64_t(1) << 30);
  EXPECT_TRUE(settings.build);
  EXPECT_NE(text.find("COMMSIR_CACHE_SIZE='much'"), std::string::npos);
  EXPECT_NE(text.find("COMMSIR_COMPILER='of'"), std::string::npos);
  for (const char *name :
       {"XDG_CACHE_HOME", "COMMSIR_CACHE_SIZE", "COMMSIR_COMPILER"})
    ::unsetenv(name);
}

/// A home that is missing or relative is none: what is relative would be
/// another folder wherever the process is started.
TEST(CacheSettings, HomesThatAreNone) {
  ::unsetenv("COMMSIR_CACHE_DIR");
  const char *had = std::getenv("HOME");
  std::string home = had ? had : "/";
  auto choose = [](const char *caches, const char *home) {
    ::setenv("XDG_CACHE_HOME", caches, 1);
    ::setenv("HOME", home, 1);
    testing::internal::CaptureStderr();
    std::string folder = CacheSettings::fromEnvironment().folder;
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(StringRef(text).contains("there is no home folder"),
              folder.empty());
    return folder;
  };
  EXPECT_EQ(choose("/xdg", ""), "/xdg/commsir");
  EXPECT_EQ(choose("", "/home/me"), "/home/me/.cache/commsir");
  EXPECT_EQ(choose("some/folder", "/home/me"), "/home/me/.cache/commsir");
  EXPECT_EQ(choose("", ""), "");
  EXPECT_EQ(choose("some/folder", "other/folder"), "");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", home.c_str(), 1);
}

/// Of a job, one process says what is wrong with what all of them read.
TEST(CacheSettings, OneRankOfAJobWarns) {
  ::setenv("COMMSIR_COMPILER", "of", 1);
  auto warns = [](const char *name, const char *rank) {
    ::setenv(name, rank, 1);
    testing::internal::CaptureStderr();
    CacheSettings::fromEnvironment();
    std::string text = testing::internal::GetCapturedStderr();
    ::unsetenv(name);
    return text.find("COMMSIR_COMPILER='of'") != std::string::npos;
  };
  for (const char *name :
       {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    EXPECT_TRUE(warns(name, "0")) << name;
    EXPECT_FALSE(warns(name, "1")) << name;
  }
  ::unsetenv("COMMSIR_COMPILER");
}

//===----------------------------------------------------------------------===//
// Keeping
//===----------------------------------------------------------------------===//

TEST_F(CacheTest, RoundTrip) {
  Cache cache(settings);
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  EXPECT_EQ(cache.counts().fromMemory, 1u);
  cache.forget();
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  Cache other(settings);
  EXPECT_EQ(get(other, "a"), payloadOf("a"));
  EXPECT_EQ(other.counts().fromDisk, 1u);
  EXPECT_EQ(built, 1);
  EXPECT_TRUE(warnings.empty());
  // Neither a lock nor a temporary file stays.
  EXPECT_EQ(listFiles().size(), 1u);
}

TEST_F(CacheTest, FailureIsNotKept) {
  Cache cache(settings);
  auto entry =
      cache.get(keyOf("a"), "a", any, []() -> llvm::Expected<std::string> {
        return llvm::createStringError("no luck");
      });
  ASSERT_FALSE(entry);
  EXPECT_EQ(toString(entry.takeError()), "no luck");
  EXPECT_TRUE(listFiles().empty());
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
}

TEST_F(CacheTest, RefusedContentsAreBuiltAgain) {
  Cache cache(settings);
  get(cache, "a");
  cache.forget();
  auto entry = cache.get(
      keyOf("a"), "a", [](StringRef) { return false; },
      []() -> llvm::Expected<std::string> { return "new"; });
  ASSERT_TRUE(bool(entry));
  EXPECT_EQ(**entry, "new");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("are invalid"), std::string::npos);
}

TEST_F(CacheTest, MemoryKeepsTheLastUsed) {
  settings.memoryLimit = 1600;
  settings.folder.clear();
  Cache cache(settings);
  for (StringRef name : {"a", "b", "c"})
    get(cache, name);
  EXPECT_EQ(built, 3);
  get(cache, "a");
  EXPECT_EQ(built, 3);
  get(cache, "d");
  get(cache, "a");
  EXPECT_EQ(built, 4);
  get(cache, "b");
  EXPECT_EQ(built, 5);
  EXPECT_EQ(get(cache, "huge", 5000), payloadOf("huge", 5000));
  EXPECT_EQ(get(cache, "huge", 5000), payloadOf("huge", 5000));
  EXPECT_EQ(built, 7);
}

TEST_F(CacheTest, DiskKeepsTheLastUsed) {
  settings.diskLimit = 4 * (88 + 500);
  auto age = [&](StringRef name, int seconds) {
    timespec times[2];
    ::clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    ASSERT_EQ(::utimensat(AT_FDCWD, pathOf(name).c_str(), times, 0), 0);
  };
  Cache cache(settings);
  for (StringRef name : {"a", "b", "c", "d"})
    get(cache, name);
  for (auto [name, seconds] : {std::pair("a", 400), std::pair("b", 300),
                               std::pair("c", 200), std::pair("d", 100)})
    age(name, seconds);
  // The oldest is used again, so that "b" is now the oldest.
  Cache(settings).find(keyOf("a"), any);
  get(cache, "e");
  EXPECT_TRUE(fs::exists(pathOf("a")));
  EXPECT_FALSE(fs::exists(pathOf("b")));
  EXPECT_TRUE(fs::exists(pathOf("c")));
  EXPECT_EQ(cache.counts().evicted, 1u);
  // What does not fit at all throws nothing out.
  get(cache, "huge", 5000);
  EXPECT_FALSE(fs::exists(pathOf("huge")));
  EXPECT_EQ(listFiles().size(), 4u);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(CacheTest, OtherFilesStay) {
  settings.diskLimit = 600;
  std::string foreign = (folder + "/notes.kernel").str();
  std::error_code error;
  {
    llvm::raw_fd_ostream(foreign, error) << std::string(5000, 'x');
  }
  Cache cache(settings);
  get(cache, "a");
  get(cache, "b");
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_FALSE(fs::exists(pathOf("a")));
}

TEST_F(CacheTest, LeftoversOfTheDeadGoAway) {
  auto leave = [&](StringRef extension, int seconds) {
    std::error_code error;
    {
      llvm::raw_fd_ostream(pathOf("dead", extension), error) << "x";
    }
    timespec times[2] = {};
    times[0].tv_sec = times[1].tv_sec = ::time(nullptr) - seconds;
    ::utimensat(AT_FDCWD, pathOf("dead", extension).c_str(), times, 0);
  };
  leave(".lock", 100000);
  leave(".kernel.1-0.tmp", 100000);
  leave(".kernel.1-1.tmp", 1);
  Cache cache(settings);
  get(cache, "a");
  EXPECT_FALSE(fs::exists(pathOf("dead", ".lock")));
  EXPECT_FALSE(fs::exists(pathOf("dead", ".kernel.1-0.tmp")));
  EXPECT_TRUE(fs::exists(pathOf("dead", ".kernel.1-1.tmp")));
}

TEST_F(CacheTest, NoDisk) {
  settings.diskLimit = 0;
  Cache cache(settings);
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  EXPECT_EQ(built, 1);
  EXPECT_TRUE(listFiles().empty());
  EXPECT_TRUE(warnings.empty());
}

//===----------------------------------------------------------------------===//
// Corruption
//===----------------------------------------------------------------------===//

/// One of many ways to spoil a file; never gives back what it was given.
std::string spoil(std::string bytes, const std::string &other,
                  std::mt19937 &random) {
  auto below = [&](size_t limit) { return random() % limit; };
  std::string good = bytes;
  switch (below(8)) {
  case 0: // One bit.
  case 1:
    bytes[below(bytes.size())] ^= char(1 << below(8));
    break;
  case 2: // One bit of the header.
    bytes[below(88)] ^= char(1 << below(8));
    break;
  case 3:
    bytes.resize(below(bytes.size()));
    break;
  case 4: // Longer.
    bytes.append(1 + below(100), char(below(256)));
    break;
  case 5: { // A run of other bytes.
    size_t at = below(bytes.size());
    for (size_t i = at; i < std::min(bytes.size(), at + 1 + below(64)); ++i)
      bytes[i] = char(random());
    break;
  }
  case 6: // Garbage.
    for (char &byte : bytes)
      byte = char(random());
    bytes.resize(below(bytes.size()));
    break;
  case 7: // Another entry, sound in itself; or a bit of it.
    bytes = other;
    if (below(2))
      bytes = good.substr(0, below(good.size())) +
              other.substr(below(other.size()));
    break;
  }
  if (bytes == good)
    bytes.push_back('x');
  return bytes;
}

TEST_F(CacheTest, TenThousandCorruptions) {
  Cache cache(settings);
  get(cache, "a");
  get(cache, "b");
  std::string good = read("a"), other = read("b");
  ASSERT_EQ(good.size(), 88 + payloadOf("a").size());
  std::mt19937 random(20250101);
  for (int i = 0; i < 10000; ++i) {
    write("a", spoil(good, other, random));
    cache.forget();
    ASSERT_EQ(get(cache, "a"), payloadOf("a")) << "corruption " << i;
    ASSERT_EQ(read("a"), good) << "corruption " << i;
  }
  EXPECT_EQ(built, 10002);
  EXPECT_EQ(cache.counts().rejected, 10000u);
  EXPECT_EQ(warnings.size(), 10000u);
  EXPECT_EQ(listFiles().size(), 2u);
}

TEST_F(CacheTest, IrregularFiles) {
  std::vector<std::function<void(const char *)>> makers = {
      [](const char *path) { ASSERT_EQ(::mkdir(path, 0700), 0); },
      [](const char *path) { ASSERT_EQ(::mkfifo(path, 0600), 0); },
      [](const char *path) { ASSERT_EQ(::symlink("/dev/zero", path), 0); },
      [](const char *path) { ASSERT_EQ(::symlink(path, path), 0); },
      [](const char *path) { ASSERT_EQ(::symlink("/nowhere", path), 0); }};
  for (const auto &make : makers) {
    make(pathOf("a").c_str());
    Cache cache(settings);
    EXPECT_EQ(get(cache, "a"), payloadOf("a"));
    cache.forget();
    EXPECT_EQ(get(cache, "a"), payloadOf("a"));
    EXPECT_EQ(cache.counts().built, 1u);
    fs::remove(pathOf("a"));
  }
}

/// Machine code is loaded from files that only this user can have written.
TEST_F(CacheTest, FilesOfOthers) {
  auto modeOf = [](const std::string &path) {
    struct stat status = {};
    ::stat(path.c_str(), &status);
    return status.st_mode & 07777;
  };
  auto isBuilt = [&](StringRef why) {
    warnings.clear();
    Cache cache(settings);
    get(cache, "a");
    EXPECT_EQ(warnings.size(), why.empty() ? 0u : 1u);
    EXPECT_TRUE(warnings.empty() || StringRef(warnings[0]).contains(why))
        << warnings[0];
    return cache.counts().built == 1;
  };
  EXPECT_TRUE(isBuilt(""));
  EXPECT_FALSE(isBuilt(""));
  EXPECT_EQ(modeOf(pathOf("a")), 0600u);
  for (unsigned mode : {0620u, 0602u, 0666u}) {
    ::chmod(pathOf("a").c_str(), mode);
    EXPECT_TRUE(isBuilt("users other than its owner"));
    EXPECT_EQ(modeOf(pathOf("a")), 0600u);
  }
  // A link to an entry that is right.
  ASSERT_FALSE(fs::rename(pathOf("a"), pathOf("b")));
  ASSERT_EQ(::symlink(pathOf("b").c_str(), pathOf("a").c_str()), 0);
  EXPECT_TRUE(isBuilt("it is a link"));
  // A file of this user that was put there under the name of an entry.
  ASSERT_FALSE(fs::rename(pathOf("a"), pathOf("b")));
  ASSERT_EQ(::link(pathOf("b").c_str(), pathOf("a").c_str()), 0);
  std::string before = read("b");
  EXPECT_TRUE(isBuilt("it has other names too"));
  EXPECT_EQ(read("b"), before);
  EXPECT_FALSE(isBuilt(""));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(pathOf("a").c_str(), 12345, 0), 0);
    EXPECT_TRUE(isBuilt("it belongs to user 12345"));
  }
}

/// What is made is for this user alone, whatever the umask allows.
TEST_F(CacheTest, NoUmask) {
  mode_t old = ::umask(0);
  settings.folder = (folder + "/made").str();
  Cache cache(settings);
  get(cache, "a");
  ::umask(old);
  struct stat status = {};
  ASSERT_EQ(::stat(settings.folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  std::string path = settings.folder + "/" + toHex(keyOf("a")) + ".kernel";
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(CacheTest, FoldersOfOthers) {
  auto isKept = [&](StringRef why) {
    warnings.clear();
    Cache cache(settings);
    get(cache, "a");
    get(cache, "b");
    EXPECT_EQ(warnings.size(), why.empty() ? 0u : 1u);
    EXPECT_TRUE(warnings.empty() || StringRef(warnings[0]).contains(why))
        << warnings[0];
    built = 0;
    Cache again(settings);
    get(again, "a");
    return built == 0;
  };
  std::string place = folder.str().str();
  for (unsigned mode : {0770u, 0707u, 01777u}) {
    ::chmod(place.c_str(), mode);
    EXPECT_FALSE(isKept("users other than its owner"));
  }
  EXPECT_TRUE(listFiles().empty());
  ::chmod(place.c_str(), 0755);
  std::string link = place + "-link";
  ASSERT_EQ(::symlink(place.c_str(), link.c_str()), 0);
  for (const char *end : {"", "/", "/."}) {
    settings.folder = link + end;
    EXPECT_FALSE(isKept("it is a link"));
  }
  fs::remove(link);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(place.c_str(), 12345, 0), 0);
    settings.folder = place;
    EXPECT_FALSE(isKept("it belongs to user 12345"));
    ASSERT_EQ(::chown(place.c_str(), 0, 0), 0);
  }
  EXPECT_TRUE(listFiles().empty());
  settings.folder = place + "/one/two";
  EXPECT_TRUE(isKept(""));
  for (const char *made : {"/one", "/one/two"}) {
    struct stat status = {};
    ASSERT_EQ(::stat((place + made).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u);
  }
}

TEST_F(CacheTest, UnwritableFolder) {
  if (::geteuid() == 0)
    settings.folder = "/proc/commsir";
  else
    ::chmod(folder.c_str(), 0500);
  Cache cache(settings);
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  EXPECT_EQ(get(cache, "b"), payloadOf("b"));
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  EXPECT_EQ(built, 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("COMMSIR_CACHE_DIR"), std::string::npos);
}

TEST_F(CacheTest, FolderIsAFile) {
  settings.folder = pathOf("file");
  write("file", "text");
  Cache cache(settings);
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(read("file"), "text");
}

TEST_F(CacheTest, FullDisk) {
  // Longer than the process may write.
  ::signal(SIGXFSZ, SIG_IGN);
  pid_t child = ::fork();
  if (child == 0) {
    rlimit limit = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Cache cache(settings);
    bool good = get(cache, "a", 100000) == payloadOf("a", 100000) &&
                get(cache, "b", 100000) == payloadOf("b", 100000) &&
                warnings.size() == 1;
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(listFiles().empty());
}

TEST_F(CacheTest, CompilerOff) {
  {
    Cache cache(settings);
    get(cache, "a");
  }
  settings.build = false;
  Cache cache(settings);
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  std::string text = get(cache, "b");
  EXPECT_NE(text.find("error: b is not in the cache"), std::string::npos);
  EXPECT_NE(text.find("COMMSIR_COMPILER=off"), std::string::npos);
  EXPECT_NE(text.find(folder.str()), std::string::npos);
  write("a", "broken");
  cache.forget();
  EXPECT_NE(get(cache, "a").find("error: a is not"), std::string::npos);
  EXPECT_EQ(built, 1);
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

TEST_F(CacheTest, EightThreadsBuildOnce) {
  for (bool disk : {true, false}) {
    if (!disk)
      settings.folder.clear();
    Cache cache(settings);
    built = 0;
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        auto entry = cache.get(keyOf("a"), "a", any,
                               [&]() -> llvm::Expected<std::string> {
                                 ++built;
                                 ::usleep(20000);
                                 return payloadOf("a");
                               });
        right += entry && **entry == payloadOf("a");
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(built, 1);
    EXPECT_EQ(right, 8);
  }
}

/// Runs `body(number)` in eight processes; true when all return true.
template <typename Body>
bool runEight(Body body) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    pid_t child = ::fork();
    if (child == 0)
      ::_exit(body(i) ? 0 : 1);
    children.push_back(child);
  }
  bool good = true;
  for (pid_t child : children) {
    int status = -1;
    good &= ::waitpid(child, &status, 0) == child && status == 0;
  }
  return good;
}

TEST_F(CacheTest, EightProcessesBuildOnce) {
  for (int round = 0; round < 20; ++round) {
    std::string name = "round" + std::to_string(round);
    std::string log = pathOf(name, ".log");
    if (round % 2) // A broken entry makes no difference.
      write(name, "broken");
    EXPECT_TRUE(runEight([&](int) {
      Cache cache(settings);
      auto entry = cache.get(
          keyOf(name), name, any, [&]() -> llvm::Expected<std::string> {
            int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
            bool wrote = ::write(fd, "x", 1) == 1;
            ::close(fd);
            ::usleep(10000);
            return wrote ? payloadOf(name) : "";
          });
      return entry && **entry == payloadOf(name);
    }));
    uint64_t size = 0;
    fs::file_size(log, size);
    EXPECT_EQ(size, 1u) << "round " << round;
    EXPECT_FALSE(fs::exists(pathOf(name, ".lock")));
  }
}

TEST_F(CacheTest, EightProcessesOnASmallDisk) {
  settings.diskLimit = 3000;
  EXPECT_TRUE(runEight([&](int number) {
    Cache cache(settings);
    std::mt19937 random(number);
    for (int i = 0; i < 200; ++i) {
      std::string name = "k" + std::to_string(random() % 12);
      if (random() % 10 == 0) {
        std::error_code error;
        llvm::raw_fd_ostream(pathOf(name), error) << "broken";
      }
      cache.forget();
      if (get(cache, name) != payloadOf(name))
        return false;
    }
    return true;
  }));
  uint64_t total = 0;
  for (const std::string &path : listFiles()) {
    uint64_t size = 0;
    fs::file_size(path, size);
    total += size;
    EXPECT_TRUE(StringRef(path).ends_with(".kernel")) << path;
  }
  EXPECT_LE(total, 3000u + 600u);
}

/// Processes read, write and evict while one removes the folder with all that
/// is in it, and another one puts a link in its place that leads to entries of
/// the same names: those are never taken.
TEST_F(CacheTest, TheFolderComesAndGoes) {
  settings.folder = (folder + "/cache").str();
  settings.diskLimit = 3000;
  std::string other = (folder + "/other").str(), away = settings.folder + "-2";
  auto nameOf = [](unsigned number) { return "k" + std::to_string(number); };
  {
    CacheSettings theirs = settings;
    theirs.folder = other;
    theirs.diskLimit = 1 << 20;
    Cache cache(theirs);
    for (unsigned number = 0; number < 12; ++number)
      cache.put(keyOf(nameOf(number)), "another's code");
  }
  // Never through the link.
  auto removeEntries = [&] {
    int opened = ::open(settings.folder.c_str(),
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (unsigned number = 0; number < 12; ++number)
      ::unlinkat(opened, (toHex(keyOf(nameOf(number))) + ".kernel").c_str(), 0);
    ::close(opened);
    ::rmdir(settings.folder.c_str());
  };
  auto disturb = [&](bool links) {
    for (int i = 0; i < 300; ++i) {
      ::usleep(1000);
      if (!links) {
        removeEntries();
      } else if (::rename(settings.folder.c_str(), away.c_str()) == 0) {
        (void)::symlink(other.c_str(), settings.folder.c_str());
        ::usleep(500);
        ::unlink(settings.folder.c_str());
        fs::remove_directories(away);
      }
    }
    return true;
  };
  EXPECT_TRUE(runEight([&](int number) {
    if (number < 2)
      return disturb(/*links=*/number == 1);
    Cache cache(settings);
    std::mt19937 random(number);
    for (int i = 0; i < 1000; ++i) {
      std::string name = nameOf(random() % 12);
      cache.forget();
      if (get(cache, name) != payloadOf(name))
        return false;
    }
    return true;
  }));
  // Nothing was written there either.
  fs::remove_directories(settings.folder);
  settings.folder = other;
  Cache cache(settings);
  for (unsigned number = 0; number < 12; ++number)
    EXPECT_EQ(get(cache, nameOf(number)), "another's code");
}

TEST_F(CacheTest, TheLockOfADeadProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    Cache cache(settings);
    auto entry =
        cache.get(keyOf("a"), "a", any, [&]() -> llvm::Expected<std::string> {
          (void)!::write(ready[1], "x", 1);
          ::sleep(100);
          return "";
        });
    ::_exit(entry ? 0 : 1);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(fs::exists(pathOf("a", ".lock")));
  // While it lives, patience ends.
  settings.patience = 0.05;
  Cache impatient(settings);
  EXPECT_EQ(get(impatient, "a"), payloadOf("a"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("another process"), std::string::npos);
  fs::remove(pathOf("a"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  settings.patience = 60;
  Cache cache(settings);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(get(cache, "a"), payloadOf("a"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(listFiles().size(), 1u);
}

} // namespace
