//===- Groups.cpp - The groups that torch ops run in ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/ops/Groups.h"

#include <array>
#include <stdexcept>

using namespace commsir::torch_ops;

/// On the CPU ranks may differ now and then. On GPUs they differ before the
/// first launch or never.
static constexpr unsigned kDisagreements = 3;

std::string_view commsir::torch_ops::operationOf(std::string_view site) {
  size_t begin = site.find('\t');
  if (begin == std::string_view::npos)
    return {};
  std::string_view call = site.substr(begin + 1);
  return call.substr(0, call.find('\t'));
}

void LockedGroup::agree(const std::string &site) {
  std::lock_guard<std::mutex> lock(mutex);
  agreed[site] = 0;
  agreedOperations.emplace(operationOf(site));
}

void LockedGroup::note(std::string_view site, bool isSame) {
  std::lock_guard<std::mutex> lock(mutex);
  if (isSame && !hasDisagreed)
    return;
  hasDisagreed = true;
  auto found = agreed.find(site);
  if (found == agreed.end())
    return;
  found->second = isSame ? 0 : found->second + 1;
  if (found->second >= (device < 0 ? kDisagreements : 1))
    agreed.erase(found);
}

void LockedGroup::revoke(std::string_view site) {
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = agreed.find(site); found != agreed.end())
    agreed.erase(found);
}

/// Never destroyed: calls may come until the process ends.
Groups &Groups::get() {
  static Groups *groups = new Groups;
  return *groups;
}

const Callbacks &Groups::required() const {
  if (!callbacks.resolve)
    throw std::runtime_error("torch.ops.commsir was loaded without its Python "
                             "part: import commsir.torch.ops");
  return callbacks;
}

namespace {
/// The groups that a thread has used last, one place for each hash.
struct RecentGroups {
  static constexpr size_t kPlaces = 8;
  uint64_t age = 0;
  std::array<LockedGroup *, kPlaces> used = {};
};
} // namespace

LockedGroup *Groups::findMade(const std::string &name, int32_t device) {
  static thread_local RecentGroups recent;
  uint64_t now = age.load(std::memory_order_acquire);
  if (recent.age != now)
    recent = {now, {}};
  // Names of process groups differ in their ends: "0", "1", ….
  size_t hash = name.size() * 5 + (name.empty() ? 0 : name.back()) + device;
  LockedGroup *&place = recent.used[hash % RecentGroups::kPlaces];
  if (place && place->device == device && place->name == name)
    return place;
  std::lock_guard<std::mutex> lock(mutex);
  auto it = groups.find({name, device});
  return it == groups.end() ? nullptr : place = it->second.get();
}

LockedGroup &Groups::find(const std::string &name, int32_t device) {
  LockedGroup *made = findMade(name, device);
  return made ? *made : make(name, device);
}

LockedGroup &Groups::make(const std::string &name, int32_t device) {
  // Without the lock: making a group waits for the other ranks, and for the
  // interpreter, which another op may hold.
  const Callbacks &python = required();
  auto made = std::make_unique<LockedGroup>();
  made->name = name;
  made->device = device;
  made->ranks = python.size(name.c_str());
  made->rank = made->ranks > 0 ? python.rank(name.c_str()) : 0;
  made->group =
      made->ranks > 0 ? python.resolve(name.c_str(), device) : nullptr;
  if (!made->group)
    throw std::runtime_error(python.error());
  std::lock_guard<std::mutex> lock(mutex);
  auto &place = groups[{name, device}];
  if (!place)
    place = std::move(made);
  return *place;
}

void Groups::adopt(LockedGroup &used, void *data, uint64_t bytes) {
  if (used.adopted.count(data))
    return;
  if (!commsir_window_contains(used.group, data, bytes) &&
      required().adopt(used.name.c_str(), used.device, data, bytes) < 0)
    throw std::runtime_error(required().error());
  used.adopted.insert(data);
}

void Groups::forget(const std::string &name) {
  std::lock_guard<std::mutex> lock(mutex);
  age.fetch_add(1, std::memory_order_release);
  for (auto it = groups.begin(); it != groups.end();)
    it = it->first.first == name ? groups.erase(it) : std::next(it);
}

//===----------------------------------------------------------------------===//
// What commsir/torch/op_groups.py calls
//===----------------------------------------------------------------------===//

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): names of a C interface.
COMMSIR_API void commsir_torch_set_callbacks(const Callbacks *callbacks) {
  Groups::get().setCallbacks(*callbacks);
}
COMMSIR_API void commsir_torch_forget(const char *name) {
  Groups::get().forget(name);
}
/// The group has been made before, by `resolve`. 0: done.
COMMSIR_API int commsir_torch_agree(const char *name, int32_t device,
                                    const char *site) {
  try {
    LockedGroup &used = Groups::get().find(name, device);
    used.agree(site);
    return 0;
  } catch (const std::exception &) {
    return 1;
  }
}
// NOLINTEND(readability-identifier-naming)
}
