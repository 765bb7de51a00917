//===- WindowTable.h - Windows that several threads use ---------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread of a rank may release a window while others put to it or wait for
// a cell in it. A thread that looks up a window holds a reference, which keeps
// its record alive. A thread that accesses the memory also holds a WindowUse; a
// release waits for it. A waiting thread holds no WindowUse: it checks
// `isReleased` each time it wakes up.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_GROUP_WINDOWTABLE_H
#define COMMSIR_RUNTIME_GROUP_WINDOWTABLE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace commsir::group {

/// Symmetric memory of all ranks.
struct WindowRecord {
  WindowRecord(void *own, size_t bytes)
      : own(static_cast<char *>(own)), bytes(bytes) {}
  virtual ~WindowRecord() = default;
  /// Address at which this rank reaches the peer's copy of `data`; null: out of
  /// reach.
  virtual void *reach(const void *data, int64_t peer) const = 0;
  size_t offsetOf(const void *data) const {
    return reinterpret_cast<uintptr_t>(data) - reinterpret_cast<uintptr_t>(own);
  }
  bool holds(const void *data, size_t size) const {
    size_t offset = offsetOf(data);
    return offset <= bytes && size <= bytes - offset;
  }

  /// This rank's part.
  char *const own;
  const size_t bytes;
  /// Locked shared while a thread accesses the memory.
  std::shared_mutex users;
  /// The memory is freed or about to be. Set with `users` locked.
  std::atomic<bool> isReleased{false};
};

/// Keeps a window's memory alive while a thread accesses it.
class WindowUse {
public:
  explicit WindowUse(std::shared_ptr<WindowRecord> used)
      : window(std::move(used)), lock(window->users) {}
  /// False: the window was released in the meantime.
  explicit operator bool() const { return !window->isReleased; }

private:
  std::shared_ptr<WindowRecord> window;
  std::shared_lock<std::shared_mutex> lock;
};

/// The windows of a group, by base address of this rank's part. Thread-safe.
template <typename Window>
class WindowTable {
public:
  using Pointer = std::shared_ptr<Window>;

  /// Returns the window that contains the whole range, or null.
  Pointer find(const void *data, size_t bytes) const {
    std::lock_guard<std::mutex> guard(lock);
    auto it = windows.upper_bound(reinterpret_cast<uintptr_t>(data));
    if (it == windows.begin() || !std::prev(it)->second->holds(data, bytes))
      return nullptr;
    return std::prev(it)->second;
  }
  /// Returns the window that begins at `own`, or null.
  Pointer at(const void *own) const {
    std::lock_guard<std::mutex> guard(lock);
    auto it = windows.find(reinterpret_cast<uintptr_t>(own));
    return it == windows.end() ? nullptr : it->second;
  }
  /// Whether a range of memory overlaps any window.
  bool overlaps(const void *data, size_t bytes) const {
    auto from = reinterpret_cast<uintptr_t>(data);
    std::lock_guard<std::mutex> guard(lock);
    auto after = windows.lower_bound(from);
    if (after != windows.end() && after->first < from + bytes)
      return true;
    return after != windows.begin() &&
           std::prev(after)->first + std::prev(after)->second->bytes > from;
  }
  /// Adds a window, replacing one with the same base.
  void add(Pointer window) {
    Pointer before;
    std::lock_guard<std::mutex> guard(lock);
    auto &place = windows[reinterpret_cast<uintptr_t>(window->own)];
    before = std::exchange(place, std::move(window));
    ++version;
  }
  /// Removes the window from the table, then waits for threads that access its
  /// memory.
  void retire(const Pointer &window) {
    {
      std::lock_guard<std::mutex> guard(lock);
      auto it = windows.find(reinterpret_cast<uintptr_t>(window->own));
      if (it != windows.end() && it->second == window)
        windows.erase(it);
      ++version;
    }
    std::unique_lock<std::shared_mutex> users(window->users);
    window->isReleased = true;
  }
  std::vector<Pointer> list() const {
    std::lock_guard<std::mutex> guard(lock);
    std::vector<Pointer> all;
    for (auto &[own, window] : windows)
      all.push_back(window);
    return all;
  }
  void clear() {
    std::map<uintptr_t, Pointer> gone;
    std::lock_guard<std::mutex> guard(lock);
    gone.swap(windows);
  }
  /// Changes whenever the set of windows does.
  uint64_t getVersion() const { return version; }

private:
  mutable std::mutex lock;
  std::map<uintptr_t, Pointer> windows;
  std::atomic<uint64_t> version{1};
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_GROUP_WINDOWTABLE_H
