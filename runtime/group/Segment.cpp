//===- Segment.cpp - Memory that processes share --------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/Segment.h"

#include "runtime/group/Error.h"

#include <cerrno>
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

class Segment::Unsealed {
public:
  static Unsealed &get() {
    static auto *made = new Unsealed; // Never destroyed: threads may use it.
    return *made;
  }
  void add(int file, const std::shared_ptr<Mapping> &mapping) {
    std::lock_guard lock(mutex);
    made[{::getpid(), file}] = mapping;
  }
  void remove(int file) {
    std::lock_guard lock(mutex);
    made.erase({::getpid(), file});
  }
  std::shared_ptr<Mapping> find(const SegmentName &name) {
    std::lock_guard lock(mutex);
    auto it = made.find({name.process, name.file});
    auto mapping = it == made.end() ? nullptr : it->second.lock();
    return mapping && mapping->bytes == name.bytes ? mapping : nullptr;
  }

private:
  std::mutex mutex;
  /// By process, for children of fork have other files, and by file.
  std::map<std::pair<int64_t, int64_t>, std::weak_ptr<Mapping>> made;
};

Segment::~Segment() { seal(); }

void Segment::seal() {
  if (file < 0)
    return;
  // In a child of fork the lock may be one of the parent's threads'.
  if (process == ::getpid())
    Unsealed::get().remove(file);
  ::close(file);
  file = -1;
}

SegmentName Segment::name() const { return {::getpid(), file, size()}; }

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

llvm::Expected<Segment> Segment::create(uint64_t bytes) {
  int file = ::memfd_create("commsir", MFD_CLOEXEC);
  if (file < 0)
    return failSystem("cannot make shared memory");
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
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
  Unsealed::get().add(file, segment->mapping);
  return segment;
}

llvm::Expected<Segment> Segment::open(const SegmentName &name) {
  if (name.process == ::getpid())
    if (auto mapping = Unsealed::get().find(name)) {
      Segment segment;
      segment.mapping = std::move(mapping);
      return std::move(segment);
    }
  std::string path = "/proc/" + std::to_string(name.process) + "/fd/" +
                     std::to_string(name.file);
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return failSystem(
        "cannot open the shared memory of process " +
        llvm::Twine(name.process) + " (" + path +
        "; the ranks of a group have to run on one host, as one user and with "
        "one view of its processes)");
  struct stat status = {};
  if (::fstat(file, &status) != 0 || status.st_size < 0 ||
      uint64_t(status.st_size) != name.bytes) {
    ::close(file);
    return makeError(GroupError::Kind::Usage,
                     path + " is not the memory that was announced: do the "
                            "ranks run on one host and in one container?");
  }
  llvm::Expected<Segment> segment = map(file, name.bytes);
  ::close(file);
  return segment;
}
