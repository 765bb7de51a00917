//===- StoreAdapter.cpp - torch's store as CommsIR's ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/StoreAdapter.h"

#include <cstdlib>
#include <cstring>
#include <thread>

using namespace commsir::torch_c10d;

std::string commsir::torch_c10d::textOf(const std::exception &error) {
  auto *ofTorch = dynamic_cast<const c10::Error *>(&error);
  return ofTorch ? ofTorch->what_without_backtrace() : error.what();
}

std::optional<std::string> commsir::torch_c10d::look(const Settings &settings,
                                                     c10d::Store &store,
                                                     const std::string &key,
                                                     double seconds,
                                                     std::string *why) {
  auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  auto pause = std::chrono::microseconds(200);
  try {
    while (!store.check({key})) {
      if (std::chrono::steady_clock::now() >= end)
        return std::nullopt;
      if (settings.hasStopped()) {
        if (why)
          *why = settings.shared->aborted ? settings.shared->abortReason()
                                          : "it was interrupted";
        return std::nullopt;
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::microseconds(10000));
    }
    return store.get_to_str(key);
  } catch (const std::exception &error) {
    if (why)
      *why = textOf(error);
    return std::nullopt;
  }
}

bool StoreAdapter::set(const std::string &key, const void *data, size_t bytes) {
  why.clear();
  try {
    auto *begin = static_cast<const uint8_t *>(data);
    store->set(key, std::vector<uint8_t>(begin, begin + bytes));
    return true;
  } catch (const std::exception &error) {
    why = textOf(error);
    return false;
  }
}

std::optional<std::string> StoreAdapter::get(const std::string &key,
                                             double seconds) {
  why.clear();
  return look(settings, *store, key, seconds, &why);
}

static int setKey(void *self, const char *key, const void *data, size_t bytes) {
  return static_cast<StoreAdapter *>(self)->set(key, data, bytes) ? 0 : 1;
}

static int getKey(void *self, const char *key, double timeout, void **data,
                  size_t *bytes) {
  auto value = static_cast<StoreAdapter *>(self)->get(key, timeout);
  if (!value)
    return 1;
  *data = std::malloc(value->size() + 1);
  if (!*data)
    return 1;
  std::memcpy(*data, value->data(), value->size());
  *bytes = value->size();
  return 0;
}

commsir_store StoreAdapter::asStore() {
  return {sizeof(commsir_store), this, setKey, getKey};
}
