//===- GroupHandle.cpp - Groups of processes, for C -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/GroupHandle.h"
#include "runtime/capi/Sized.h"
#include "runtime/support/GroupError.h"
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

using namespace commsir;
using capi::fail;
using capi::failNull;
using capi::failOther;
using capi::GroupBody;
using capi::guard;
using capi::inTurn;
using capi::makeCall;
using capi::OpenGroup;
using capi::readSized;
using capi::reportGroup;
using capi::runConcurrently;
using capi::textOf;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static commsir_status statusOf(const group::GroupError &error) {
  switch (error.getKind()) {
  case group::GroupError::Kind::Usage:
    return COMMSIR_USAGE;
  case group::GroupError::Kind::Peer:
    return COMMSIR_DEADLOCK;
  case group::GroupError::Kind::Disagree:
    return COMMSIR_DISAGREE;
  case group::GroupError::Kind::Aborted:
    return COMMSIR_ABORTED;
  case group::GroupError::Kind::Bounds:
    return COMMSIR_BOUNDS;
  case group::GroupError::Kind::Limit:
    return COMMSIR_LIMIT;
  case group::GroupError::Kind::Compile:
    return COMMSIR_COMPILE;
  case group::GroupError::Kind::Checker:
    return COMMSIR_CHECKER;
  }
  return COMMSIR_USAGE;
}

/// Renders what this rank's blocks wait for as JSON.
static llvm::json::Array renderWaiting(const group::GroupError &error) {
  llvm::json::Array waiting;
  for (const cpu::Waiting &one : error.getWaiting())
    waiting.push_back(llvm::json::Object{{"rank", one.rank},
                                         {"block", one.block},
                                         {"op", one.op},
                                         {"location", one.location},
                                         {"what", one.what}});
  return waiting;
}

commsir_status capi::reportGroup(llvm::Error error) {
  if (!error)
    return COMMSIR_OK;
  commsir_status status = COMMSIR_USAGE;
  llvm::json::Object details;
  llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &info) {
    if (!info.isA<group::GroupError>())
      return;
    const auto &one = static_cast<const group::GroupError &>(info);
    status = statusOf(one);
    if (llvm::json::Array waiting = renderWaiting(one); !waiting.empty())
      details["waiting"] = std::move(waiting);
  });
  return fail(status, std::move(error), std::move(details));
}

commsir_status capi::failNull(const char *what) {
  return fail(COMMSIR_USAGE, llvm::Twine(what) + " is a null pointer");
}

commsir_status capi::failOther(const char *what) {
  return fail(COMMSIR_USAGE,
              llvm::Twine(what) +
                  " is not valid: it points to something else, or "
                  "to a freed object");
}

std::string capi::textOf(const char *text) { return text ? text : ""; }

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// Time that calls in progress have to end when another thread closes their
/// group, and again after the group is aborted.
static constexpr std::chrono::seconds kGrace(5);

commsir_status capi::makeCall(commsir_group *group, bool evenClosed,
                              GroupBody body) {
  return guard([&] {
    if (!group)
      return failNull("group");
    if (!capi::isWhole(group))
      return failOther("a group");
    capi::Handle::Call call(*group, evenClosed);
    if (!call)
      return fail(COMMSIR_ABORTED, "the group is closed; make a new one");
    return body(*group->open);
  });
}

commsir_status capi::runConcurrently(commsir_group *group, GroupBody body) {
  return makeCall(group, /*evenClosed=*/false, body);
}

commsir_status capi::inTurn(commsir_group *group, const char *what,
                            GroupBody body) {
  return runConcurrently(group, [&](OpenGroup &open) {
    // In a child of fork the turn may be one of the parent's threads'; there
    // all calls fail.
    if (open.isForked())
      return body(open);
    if (llvm::Error error = open.callQueue.begin(what))
      return reportGroup(std::move(error));
    struct Scope {
      group::CallQueue &callQueue;
      ~Scope() { callQueue.end(); }
    } scope{open.callQueue};
    return body(open);
  });
}

void commsir_group::end(bool isLate) {
  capi::OpenGroup *last = std::exchange(open, nullptr);
  auto end = [last] { delete last; };
  // What graphs launch outlives the group, whoever ends it.
  if (isLate || isDropped || last->group->isKept())
    group::drop(*last->group, end);
  else
    end();
}

/// Lets no call begin, and ends those that wait.
static void endWaits(commsir_group &group) {
  group.close();
  capi::Handle::Call call(group, /*evenClosed=*/true);
  if (!call || group.open->isForked())
    return;
  group.open->group->endWaits();
  group.open->callQueue.close();
}

/// The same, and waits for the calls of other threads.
static void endCalls(commsir_group &group) {
  endWaits(group);
  capi::Handle::Call call(group, /*evenClosed=*/true);
  if (!call || group.open->isForked() || group.awaitCalls(kGrace))
    return;
  group.open->group->abort("a thread has closed it while another was in a "
                           "call of it; close a group after its last call has "
                           "ended");
  group.awaitCalls(kGrace);
}

void commsir_set_interrupt(int (*check)(void)) { group::setInterrupt(check); }

//===----------------------------------------------------------------------===//
// Making groups
//===----------------------------------------------------------------------===//

commsir_status capi::readStore(const commsir_store *given,
                               commsir_store &known) {
  if (auto bad = readSized("commsir_store", given, known))
    return bad;
  return known.set && known.get ? COMMSIR_OK
                                : failNull("a function of a store");
}

llvm::Error capi::CallerStore::set(llvm::StringRef key, llvm::StringRef value) {
  if (store.set(store.self, key.str().c_str(), value.data(), value.size()))
    return group::makeError(group::GroupError::Kind::Usage,
                            "the store did not take key '" + key + "'");
  return llvm::Error::success();
}

llvm::Expected<std::string> capi::CallerStore::get(llvm::StringRef key,
                                                   double timeout) {
  void *data = nullptr;
  size_t bytes = 0;
  if (store.get(store.self, key.str().c_str(), timeout, &data, &bytes))
    return group::makeError(group::GroupError::Kind::Peer,
                            "the store did not give key '" + key +
                                "': is every rank running?");
  std::unique_ptr<void, decltype(&std::free)> held(data, std::free);
  if (bytes > group::kMostStoreBytes || (bytes && !data))
    return group::makeError(group::GroupError::Kind::Usage,
                            "the store holds " + llvm::Twine(bytes) +
                                " bytes of key '" + key +
                                "', which is more than a rank writes");
  return bytes ? std::string(static_cast<const char *>(data), bytes)
               : std::string();
}

static commsir_status
storeResult(llvm::Expected<std::unique_ptr<group::Group>> made,
            commsir_group **out) {
  if (!made)
    return reportGroup(made.takeError());
  *out = new commsir_group(std::move(*made));
  return COMMSIR_OK;
}

static commsir_status create(const commsir_group_options *given,
                             group::Store &store, commsir_group **out) {
  commsir_group_options options;
  if (auto bad = readSized("commsir_group_options", given, options))
    return bad;
  // A NaN fails this test, too.
  if (!(options.timeout >= 0))
    return fail(
        COMMSIR_USAGE,
        "the timeout must be more than 0 seconds, or 0 for the default");
  group::GroupOptions settings;
  if (options.name)
    settings.name = options.name;
  settings.rank = options.rank;
  settings.ranks = options.ranks;
  settings.device = options.device;
  if (options.timeout > 0)
    settings.timeout = options.timeout;
  settings.ncclComm = options.nccl_comm;
  settings.ctas = options.ctas;
  return storeResult(group::createGroup(settings, store), out);
}

commsir_status commsir_group_create(const commsir_group_options *options,
                                    const commsir_store *store,
                                    commsir_group **group) {
  return guard([&] {
    if (!options || !store || !group)
      return failNull("an argument of commsir_group_create");
    commsir_store functions;
    if (auto bad = capi::readStore(store, functions))
      return bad;
    capi::CallerStore adapter(functions);
    return create(options, adapter, group);
  });
}

commsir_status
commsir_group_create_in_folder(const commsir_group_options *options,
                               const char *folder, commsir_group **group) {
  return guard([&] {
    if (!options || !folder || !group)
      return failNull("an argument of commsir_group_create_in_folder");
    auto store = group::createFileStore(folder);
    if (!store)
      return reportGroup(store.takeError());
    return create(options, **store, group);
  });
}

void commsir_group_close(commsir_group *group) {
  guard([&] {
    if (group && !capi::isWhole(group))
      return failOther("a group");
    if (group)
      endCalls(*group);
    return COMMSIR_OK;
  });
}

void commsir_group_destroy(commsir_group *group) {
  guard([&] {
    if (!group)
      return COMMSIR_OK;
    if (!capi::isWhole(group))
      return failOther("a group");
    endCalls(*group);
    group->finish();
    return COMMSIR_OK;
  });
}

void commsir_group_drop(commsir_group *group) {
  guard([&] {
    if (!group)
      return COMMSIR_OK;
    if (!capi::isWhole(group))
      return failOther("a group");
    endWaits(*group);
    group->isDropped = true;
    group->finish();
    return COMMSIR_OK;
  });
}

commsir_status commsir_group_abort(commsir_group *group, const char *reason) {
  return makeCall(group, /*evenClosed=*/true, [&](OpenGroup &open) {
    open.group->abort(textOf(reason));
    return COMMSIR_OK;
  });
}

commsir_status commsir_group_set_timeout(commsir_group *group, double seconds) {
  return runConcurrently(group, [&](OpenGroup &open) {
    if (!(seconds > 0))
      return fail(COMMSIR_USAGE, "the timeout must be more than 0 seconds");
    auto set = [&](OpenGroup &open) {
      return reportGroup(open.group->setTimeout(seconds));
    };
    return open.group->onGpu() ? inTurn(group, "setting the timeout", set)
                               : set(open);
  });
}

commsir_status commsir_group_shrink(commsir_group *group,
                                    const int64_t *survivors, size_t count,
                                    const commsir_store *store,
                                    commsir_group **out) {
  return runConcurrently(group, [&](OpenGroup &open) {
    if (!survivors || !store || !out)
      return failNull("an argument of commsir_group_shrink");
    commsir_store functions;
    if (auto bad = capi::readStore(store, functions))
      return bad;
    capi::CallerStore adapter(functions);
    return storeResult(open.group->shrink({survivors, count}, adapter), out);
  });
}

commsir_status commsir_group_poll(commsir_group *group) {
  return runConcurrently(group, [&](OpenGroup &open) {
    // Else whose turn it is looks for failures.
    if (open.isForked() || !open.callQueue.tryBegin("a poll"))
      return capi::markEarlier(reportGroup(open.group->pollBeside()));
    llvm::Error error = open.group->poll();
    open.callQueue.end();
    return capi::markEarlier(reportGroup(std::move(error)));
  });
}

char *commsir_group_ended(commsir_group *group) {
  char *text = nullptr;
  makeCall(group, /*evenClosed=*/true, [&](OpenGroup &open) {
    if (auto why = open.group->ended())
      text = capi::copyText(*why);
    return COMMSIR_OK;
  });
  return text;
}

commsir_status commsir_group_finish(commsir_group *group, void *stream) {
  return runConcurrently(group, [&](OpenGroup &open) {
    return capi::markEarlier(reportGroup(open.group->finish(stream)));
  });
}

char *commsir_group_stats(commsir_group *group) {
  char *text = nullptr;
  runConcurrently(group, [&](OpenGroup &open) {
    group::GroupCounts counts = open.group->counts();
    group::StagingCounts staging = open.collectives.counts();
    auto whole = [](uint64_t value) { return static_cast<int64_t>(value); };
    text = capi::copyText(capi::render(
        llvm::json::Object{{"launches", whole(counts.launches)},
                           {"compiled", whole(counts.compiled)},
                           {"from_cache", whole(counts.fromCache)},
                           {"window_bytes", whole(counts.windowBytes)},
                           {"channel_bytes", whole(counts.channelBytes)},
                           {"in_place", whole(staging.inPlace)},
                           {"staged", whole(staging.staged)}}));
    return COMMSIR_OK;
  });
  return text;
}
