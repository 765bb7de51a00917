//===- Side.cpp - What a process group has for one kind of device ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Side.h"

#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace commsir::torch_c10d;
using std::chrono::milliseconds;

/// How long a rank that has failed waits for what the others were calling.
static constexpr milliseconds gossip{3000};

//===----------------------------------------------------------------------===//
// torch's store as CommsIR's
//===----------------------------------------------------------------------===//

static int setKey(void *self, const char *key, const void *data, size_t bytes) {
  try {
    auto *begin = static_cast<const uint8_t *>(data);
    static_cast<c10d::Store *>(self)->set(
        key, std::vector<uint8_t>(begin, begin + bytes));
    return 0;
  } catch (const std::exception &) {
    return 1;
  }
}

static int getKey(void *self, const char *key, double timeout, void **data,
                  size_t *bytes) {
  try {
    auto *store = static_cast<c10d::Store *>(self);
    store->wait({key}, milliseconds(static_cast<int64_t>(timeout * 1000)));
    std::vector<uint8_t> value = store->get(key);
    *data = std::malloc(value.size() ? value.size() : 1);
    if (!*data)
      return 1;
    std::memcpy(*data, value.data(), value.size());
    *bytes = value.size();
    return 0;
  } catch (const std::exception &) {
    return 1;
  }
}

StorePtr Side::place(const char *what) {
  return c10::make_intrusive<c10d::PrefixStore>(
      c10::str("commsir/", device.is_cpu() ? "cpu/" : "cuda/", what),
      settings.ownStore());
}

StorePtr Settings::ownStore() {
  // Of all groups: making one is rare.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (!cloned)
    cloned = store->clone();
  return cloned;
}

//===----------------------------------------------------------------------===//
// The group
//===----------------------------------------------------------------------===//

/// Why this rank has no group; empty: it has.
std::string Side::makeGroup() {
  std::string why;
  library = Library::open(settings.library, why);
  // A rank without the library says so before the others wait for it.
  if (why = agree(why); !why.empty())
    return why;
  StorePtr store = place("group");
  std::string name = settings.name + (device.is_cpu() ? ".cpu" : ".cuda");
  commsir_group_options options = {};
  options.name = name.c_str();
  options.rank = settings.rank;
  options.ranks = settings.size;
  options.device = device.is_cpu() ? -1 : device.index();
  options.timeout = static_cast<double>(settings.timeout.count()) / 1000;
  commsir_store face = {store.get(), setKey, getKey};
  commsir_status status =
      library->commsir_group_create(&options, &face, &group);
  if (status != COMMSIR_OK)
    why = "no group: " + library->lastError();
  why = agree(why);
  if (!why.empty() && group) {
    library->commsir_group_destroy(group);
    group = nullptr;
  }
  return why;
}

/// The first rank's reason, if any has one: all take the same path.
std::string Side::agree(const std::string &why) {
  StorePtr store = place("agree");
  const char *turn = made ? "group" : "library";
  made = true;
  store->set(c10::str(turn, settings.rank), why.empty() ? "yes" : "no " + why);
  for (int rank = 0; rank < settings.size; ++rank) {
    std::string key = c10::str(turn, rank);
    store->wait({key}, settings.timeout);
    std::string said = store->get_to_str(key);
    if (said != "yes")
      return c10::str(said.substr(3), " (rank ", rank, ")");
  }
  return "";
}

std::string Side::whyNot(const Call &call) {
  if (!call.notOwn.empty())
    return call.notOwn;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!made) {
      missing = "its group could not be made";
      missing = makeGroup();
    }
  }
  if (!group)
    return missing;
  for (const Step &step : call.steps) {
    commsir_collective asked = {};
    asked.op = step.op;
    asked.reduction = step.reduction;
    asked.type = step.type;
    asked.root = step.root;
    asked.input = step.input;
    asked.input_elements = step.inputElements;
    asked.output = step.output;
    asked.output_elements = step.outputElements;
    asked.algorithm = asked.protocol = "";
    if (char *reason = library->commsir_group_why_not(group, &asked)) {
      std::string why = reason;
      library->commsir_free(reason);
      return why;
    }
  }
  return "";
}

void Side::launch(const Call &call, const Step &step, void *stream) {
  commsir_collective request = {};
  request.op = step.op;
  request.reduction = step.reduction;
  request.type = step.type;
  request.root = step.root;
  request.input = step.input;
  request.input_elements = step.inputElements;
  request.output = step.output;
  request.output_elements = step.outputElements;
  request.algorithm = request.protocol = "";
  commsir_status status =
      library->commsir_group_collective(group, &request, stream);
  if (status != COMMSIR_OK)
    fail(call, status);
}

void Side::poll() {
  if (!group || library->commsir_group_poll(group) == COMMSIR_OK)
    return;
  C10_THROW_ERROR(DistBackendError, "commsir: " + library->lastError());
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void Side::fail(const Call &call, commsir_status status) {
  std::string what =
      c10::str("commsir: rank ", settings.rank, ": ", call.describe(),
               " failed: ", library->lastError());
  if (status == COMMSIR_DISAGREE || status == COMMSIR_DEADLOCK)
    what += disagreement(call);
  C10_THROW_ERROR(DistBackendError, what);
}

/// What each rank was calling, where it was not the same: ranks that fail tell
/// each other through the store.
std::string Side::disagreement(const Call &call) {
  std::ostringstream text;
  std::string own = call.describe();
  try {
    StorePtr store = place("failed");
    store->set(c10::str(call.sequence, "/", settings.rank), own);
    for (int rank = 0; rank < settings.size; ++rank) {
      if (rank == settings.rank)
        continue;
      std::string key = c10::str(call.sequence, "/", rank), theirs;
      try {
        store->wait({key}, gossip);
        theirs = store->get_to_str(key);
      } catch (const std::exception &) {
        theirs = "nothing";
      }
      if (theirs != own)
        text << "\n  rank " << rank << " called " << theirs;
    }
  } catch (const std::exception &error) {
    return c10::str("\n  (the store no longer answers: ", error.what(), ")");
  }
  std::string others = text.str();
  if (others.empty())
    return "";
  return c10::str("\ncall number ", call.sequence,
                  " differs between ranks:", "\n  rank ", settings.rank,
                  " called ", own, others,
                  "\nMake all ranks of the group call the same collectives "
                  "in the same order, on tensors of one type and size.");
}

//===----------------------------------------------------------------------===//
// The other backend
//===----------------------------------------------------------------------===//

c10d::Backend &Side::delegate() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!other)
    other =
        settings.delegate(place("delegate"), device.is_cpu() ? "cpu" : "cuda");
  return *other;
}

void Side::drainDelegate() {
  if (other)
    other->shutdown();
}

void Side::setTimeout(milliseconds timeout) {
  if (other)
    other->setTimeout(timeout);
}

void Side::abort(const std::string &reason) {
  if (group)
    library->commsir_group_abort(group, reason.c_str());
  if (other)
    other->abort();
}

std::string Side::counts() {
  if (!group)
    return "";
  char *text = library->commsir_group_stats(group);
  if (!text)
    return "";
  std::string result = text;
  library->commsir_free(text);
  return result;
}

void Side::leak() {
  group = nullptr;
  other.release();
}

Side::~Side() {
  if (group)
    library->commsir_group_destroy(group);
}
