//===- Segment.cpp - Memory that processes share --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Segment.h"

#include "runtime/support/GroupError.h"

#include "llvm/ADT/StringExtras.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::group;

static llvm::Error failSystem(const llvm::Twine &what) {
  return makeError(GroupError::Kind::Usage, what + ": " + std::strerror(errno));
}

Segment::Mapping::~Mapping() { ::munmap(base, bytes); }

class Segment::OpenSegments {
public:
  static OpenSegments &get() {
    static auto *made =
        new OpenSegments; // Never destroyed: threads may use it.
    return *made;
  }
  void add(int file, const std::string &token,
           const std::shared_ptr<Mapping> &mapping) {
    std::lock_guard lock(mutex);
    made[{::getpid(), file}] = {token, mapping};
  }
  void remove(int file) {
    std::lock_guard lock(mutex);
    made.erase({::getpid(), file});
  }
  std::shared_ptr<Mapping> find(const SegmentName &name) {
    std::lock_guard lock(mutex);
    auto it = made.find({name.process, name.file});
    if (it == made.end() || it->second.token != name.token)
      return nullptr;
    auto mapping = it->second.mapping.lock();
    return mapping && mapping->bytes == name.bytes ? mapping : nullptr;
  }

private:
  struct OpenSegment {
    std::string token;
    std::weak_ptr<Mapping> mapping;
  };
  std::mutex mutex;
  /// By process, for children of fork have other files, and by file.
  std::map<std::pair<int64_t, int64_t>, OpenSegment> made;
};

Segment::~Segment() { seal(); }

void Segment::seal() {
  if (file < 0)
    return;
  // In a child of fork the lock may be one of the parent's threads'.
  if (process == ::getpid())
    OpenSegments::get().remove(file);
  ::close(file);
  file = -1;
}

SegmentName Segment::name() const { return {::getpid(), file, size(), token}; }

llvm::Expected<Segment> Segment::map(int file, uint64_t bytes) {
  void *at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED)
    return failSystem("cannot map " + llvm::Twine(bytes) +
                      " bytes of shared memory");
  Segment segment;
  segment.mapping = std::make_shared<Mapping>(static_cast<char *>(at), bytes);
  return std::move(segment);
}

/// Nobody may make it smaller, which would end all that read it, or take a seal
/// away.
static constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// By which the system knows it.
static std::string fileName(llvm::StringRef token) {
  return ("commsir-" + token).str();
}

llvm::Expected<Segment> Segment::create(uint64_t bytes, llvm::StringRef token) {
  int file =
      ::memfd_create(fileName(token).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0)
    return failSystem("cannot make shared memory");
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file, F_ADD_SEALS, kSeals) != 0) {
    llvm::Error error = failSystem("cannot make " + llvm::Twine(bytes) +
                                   " bytes of shared memory");
    ::close(file);
    return std::move(error);
  }
  llvm::Expected<Segment> segment = map(file, bytes);
  if (!segment) {
    ::close(file);
    return segment;
  }
  segment->file = file;
  segment->process = ::getpid();
  segment->token = token.str();
  OpenSegments::get().add(file, segment->token, segment->mapping);
  return segment;
}

/// Whether a name in /proc leads to a segment with that token.
static bool leadsTo(const std::string &path, llvm::StringRef token) {
  char link[128];
  ssize_t length = ::readlink(path.c_str(), link, sizeof link);
  return length > 0 && llvm::StringRef(link, static_cast<size_t>(length)) ==
                           "/memfd:" + fileName(token) + " (deleted)";
}

/// Whether an open file is the segment that `name` says, and stays it.
static bool isSegment(int file, const SegmentName &name) {
  struct stat status = {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && status.st_size >= 0 &&
         static_cast<uint64_t>(status.st_size) == name.bytes &&
         (::fcntl(file, F_GET_SEALS) & kSeals) == kSeals &&
         leadsTo("/proc/self/fd/" + std::to_string(file), name.token);
}

static std::string pathOf(const SegmentName &name) {
  return "/proc/" + std::to_string(name.process) + "/fd/" +
         std::to_string(name.file);
}

bool Segment::isClosed(const SegmentName &name) {
  std::string path = pathOf(name);
  char link;
  if (::readlink(path.c_str(), &link, 1) < 0)
    return errno == ENOENT;
  return !leadsTo(path, name.token);
}

llvm::Expected<Segment> Segment::open(const SegmentName &name) {
  std::string path = pathOf(name);
  auto isNumber = [](int64_t value, int64_t least) {
    return value >= least && value <= INT_MAX;
  };
  auto refuse = [&] {
    return makeError(GroupError::Kind::Usage,
                     path + " is not the memory that was announced");
  };
  if (!isNumber(name.process, 1) || !isNumber(name.file, 0) || !name.bytes ||
      name.token.empty() || name.token.size() > 64 ||
      !llvm::all_of(name.token, llvm::isAlnum))
    return refuse();
  if (name.process == ::getpid())
    if (auto mapping = OpenSegments::get().find(name)) {
      Segment segment;
      segment.mapping = std::move(mapping);
      return std::move(segment);
    }
  // Looked at first: to open what is no memory may do something.
  if (::access(path.c_str(), F_OK) == 0 && !leadsTo(path, name.token))
    return refuse();
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0)
    return failSystem("cannot open the shared memory of process " +
                      llvm::Twine(name.process) + " (" + path + ")");
  llvm::Expected<Segment> segment =
      isSegment(file, name) ? map(file, name.bytes) : refuse();
  ::close(file);
  return segment;
}
