//===- GroupHandle.cpp - Groups of processes, for C -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/GroupHandle.h"
#include "dialect/Spelling.h"
#include "runtime/capi/HandlePool.h"
#include "runtime/capi/Sized.h"
#include "runtime/jit/Sharing.h"
#include "runtime/support/GroupError.h"
#include "runtime/support/Nesting.h"

#include "runtime/support/Json.h"
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

using namespace commsir;
using capi::fail;
using capi::GroupBody;
using capi::guard;
using capi::inTurn;
using capi::OpenGroup;
using capi::readSized;
using capi::runConcurrently;

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

static commsir_status report(llvm::Error error) {
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

commsir_status capi::reportGroup(llvm::Error error) {
  return report(std::move(error));
}

static commsir_status isNull(const char *what) {
  return fail(COMMSIR_USAGE, llvm::Twine(what) + " is a null pointer");
}

static commsir_status isOther(const char *what) {
  return fail(COMMSIR_USAGE,
              llvm::Twine(what) +
                  " is not valid: it points to something else, or "
                  "to a freed object");
}

static std::string textOf(const char *text) { return text ? text : ""; }

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// Time that calls in progress have to end when another thread closes their
/// group, and again after the group is aborted.
static constexpr std::chrono::seconds kGrace(5);

static commsir_status makeCall(commsir_group *group, bool evenClosed,
                               GroupBody body) {
  return guard([&] {
    if (!group)
      return isNull("group");
    if (!capi::isWhole(group))
      return isOther("a group");
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
      return report(std::move(error));
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
  return known.set && known.get ? COMMSIR_OK : isNull("a function of a store");
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
    return report(made.takeError());
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
      return isNull("an argument of commsir_group_create");
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
      return isNull("an argument of commsir_group_create_in_folder");
    auto store = group::createFileStore(folder);
    if (!store)
      return report(store.takeError());
    return create(options, **store, group);
  });
}

void commsir_group_close(commsir_group *group) {
  guard([&] {
    if (group && !capi::isWhole(group))
      return isOther("a group");
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
      return isOther("a group");
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
      return isOther("a group");
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
      return report(open.group->setTimeout(seconds));
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
      return isNull("an argument of commsir_group_shrink");
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
      return capi::markEarlier(report(open.group->pollBeside()));
    llvm::Error error = open.group->poll();
    open.callQueue.end();
    return capi::markEarlier(report(std::move(error)));
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
    return capi::markEarlier(report(open.group->finish(stream)));
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

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

commsir_status commsir_window_allocate(commsir_group *group, size_t bytes,
                                       void **base) {
  return commsir_window_allocate_for(group, bytes, nullptr, base);
}

commsir_status commsir_window_allocate_for(commsir_group *group, size_t bytes,
                                           const char *purpose, void **base) {
  return inTurn(group, "making a window", [&](OpenGroup &open) {
    if (!base)
      return isNull("an argument of commsir_window_allocate");
    auto made = open.group->allocate(bytes, textOf(purpose));
    if (!made)
      return report(made.takeError());
    *base = *made;
    return COMMSIR_OK;
  });
}

commsir_status commsir_window_release(commsir_group *group, void *base) {
  return inTurn(group, "releasing a window", [&](OpenGroup &open) {
    return report(open.group->release(base));
  });
}

commsir_status commsir_window_adopt(commsir_group *group, void *own,
                                    size_t bytes, const uint64_t *parts) {
  return inTurn(group, "adopting a window", [&](OpenGroup &open) {
    if (!parts)
      return isNull("an argument of commsir_window_adopt");
    auto count = static_cast<size_t>(open.group->options().ranks);
    return report(open.group->adopt(own, bytes, {parts, count}));
  });
}

commsir_status commsir_window_share(commsir_group *group, void *own,
                                    size_t bytes) {
  return inTurn(group, "sharing a window", [&](OpenGroup &open) {
    return report(open.group->share(own, bytes));
  });
}

void commsir_window_forget(commsir_group *group, void *own) {
  inTurn(group, "forgetting a window", [&](OpenGroup &open) {
    open.group->forget(own);
    return COMMSIR_OK;
  });
}

void commsir_window_keep(commsir_group *group, void *own) {
  makeCall(group, /*evenClosed=*/true, [&](OpenGroup &open) {
    open.group->keepView(own);
    return COMMSIR_OK;
  });
}

void commsir_window_drop(commsir_group *group, void *own) {
  makeCall(group, /*evenClosed=*/true, [&](OpenGroup &open) {
    open.group->dropView(own);
    return COMMSIR_OK;
  });
}

int commsir_window_contains(commsir_group *group, const void *data,
                            size_t bytes) {
  bool contains = false;
  runConcurrently(group, [&](OpenGroup &open) {
    contains = open.group->isSymmetric(data, bytes);
    return COMMSIR_OK;
  });
  return contains;
}

void *commsir_window_peer(commsir_group *group, const void *data,
                          int64_t peer) {
  void *address = nullptr;
  runConcurrently(group, [&](OpenGroup &open) {
    address = open.group->peerAddress(data, peer);
    return COMMSIR_OK;
  });
  return address;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static group::CollectiveCall callOf(const commsir_collective &call,
                                    int64_t ranks) {
  group::CollectiveCall made;
  // For each call of a program: no string is made on the way.
  auto set = [](std::string &to, const char *text) {
    if (text)
      to = text;
  };
  set(made.op, call.op);
  set(made.reduction, call.reduction);
  set(made.elementType, call.type);
  set(made.typeName, call.type_name);
  set(made.algorithm, call.algorithm);
  set(made.protocol, call.protocol);
  made.root = call.root;
  made.peer = call.peer;
  made.input = {const_cast<void *>(call.input), call.input_elements};
  made.output = {call.output, call.output_elements};
  if (made.op == "all_to_all_v" && call.send_counts && call.recv_counts) {
    made.sendCounts.assign(call.send_counts, call.send_counts + ranks);
    made.recvCounts.assign(call.recv_counts, call.recv_counts + ranks);
  }
  return made;
}

static std::vector<group::Array> listOf(const commsir_part *parts,
                                        size_t count) {
  std::vector<group::Array> made;
  for (size_t i = 0; parts && i < count; ++i)
    made.push_back({parts[i].data, parts[i].elements});
  return made;
}

static group::CollectiveTexts textsOf(const commsir_collective &call) {
  return {call.op,
          call.reduction,
          call.type,
          call.type_name,
          call.algorithm,
          call.protocol,
          call.root,
          call.peer,
          {const_cast<void *>(call.input), call.input_elements},
          {call.output, call.output_elements}};
}

commsir_status commsir_group_collective(commsir_group *group,
                                        const commsir_collective *given,
                                        void *stream) {
  return inTurn(group, "a collective", [&](OpenGroup &open) {
    if (!given)
      return isNull("an argument of commsir_group_collective");
    commsir_collective call;
    if (auto bad = readSized("commsir_collective", given, call))
      return bad;
    group::CollectiveTexts texts = textsOf(call);
    if (!call.send_counts)
      if (auto done = open.collectives.repeat(texts, stream))
        return report(std::move(*done));
    group::CollectiveCall made = callOf(call, open.group->options().ranks);
    llvm::Error error = open.collectives.run(made, stream);
    if (!error && !call.send_counts)
      open.collectives.remember(texts, made);
    return report(std::move(error));
  });
}

//===----------------------------------------------------------------------===//
// Prepared collectives
//===----------------------------------------------------------------------===//

using PreparedCalls = capi::HandlePool<commsir_prepared>;

/// Reads the options of a prepared call, or their defaults if `given` is null.
static commsir_status readPrepareOptions(const commsir_prepare_options *given,
                                         commsir_prepare_options &options) {
  options = {};
  if (!given)
    return COMMSIR_OK;
  if (auto bad = readSized("commsir_prepare_options", given, options))
    return bad;
  // A NaN fails this test, too.
  if (options.timeout >= 0)
    return COMMSIR_OK;
  return fail(COMMSIR_USAGE, "commsir_prepare_options: the timeout must be "
                             "more than 0 seconds, or 0 for the group's");
}

commsir_status commsir_prepare(commsir_group *group,
                               const commsir_collective *given,
                               const commsir_prepare_options *givenOptions,
                               commsir_prepared **prepared) {
  return runConcurrently(group, [&](OpenGroup &open) {
    if (!given || !prepared)
      return isNull("an argument of commsir_prepare");
    commsir_collective call;
    if (auto bad = readSized("commsir_collective", given, call))
      return bad;
    commsir_prepare_options options;
    if (auto bad = readPrepareOptions(givenOptions, options))
      return bad;
    if (!call.op)
      return isNull("`op` of a collective");
    group::CollectiveCall made = callOf(call, open.group->options().ranks);
    if (made.op == "all_to_all_v")
      return fail(COMMSIR_USAGE,
                  "commsir_prepare: the sizes of all_to_all_v may differ by "
                  "call; call commsir_group_collective");
    if (llvm::Error error = open.collectives.check(made))
      return report(std::move(error));
    *prepared = PreparedCalls::get().make(
        {group, options.timeout,
         std::make_unique<group::PreparedCollective>(std::move(made)),
         nullptr});
    return COMMSIR_OK;
  });
}

/// Reports what has failed since, and sets the timeout of waits to come. On the
/// CPU launches have reported it themselves, and a group whose ranks disagreed
/// recovers in the launch.
static commsir_status beforeLaunch(OpenGroup &open, double timeout,
                                   void *stream) {
  if (stream && !open.group->onGpu())
    return fail(COMMSIR_USAGE, "a group on the CPU has no streams; give a null "
                               "pointer for `stream`");
  if (open.group->onGpu())
    if (llvm::Error error = open.group->poll())
      return capi::markEarlier(report(std::move(error)));
  if (timeout > 0)
    return report(open.group->setTimeout(timeout));
  return COMMSIR_OK;
}

commsir_status commsir_launch(commsir_prepared *prepared, const void *input,
                              void *output, void *stream) {
  if (!prepared || !capi::isWhole(prepared))
    return guard([&] {
      return prepared ? isOther("a prepared call") : isNull("prepared");
    });
  const commsir_prepared::Content &content = prepared->content;
  return inTurn(content.group, "a prepared collective", [&](OpenGroup &open) {
    if (!content.call)
      return fail(COMMSIR_USAGE,
                  "commsir_launch: the call was prepared by "
                  "commsir_prepare_fused; launch it by commsir_launch_fused");
    if (commsir_status status = beforeLaunch(open, content.timeout, stream))
      return status;
    return report(open.collectives.launch(
        *content.call, const_cast<void *>(input), output, stream));
  });
}

void commsir_prepared_release(commsir_prepared *prepared) {
  if (prepared)
    PreparedCalls::get().release(prepared);
}

//===----------------------------------------------------------------------===//
// Collectives on parts, and with arithmetic
//===----------------------------------------------------------------------===//

commsir_status commsir_group_collective_parts(commsir_group *group,
                                              const commsir_collective *given,
                                              const commsir_parts *givenParts,
                                              void *stream) {
  return inTurn(group, "a collective", [&](OpenGroup &open) {
    if (!given || !givenParts)
      return isNull("an argument of commsir_group_collective_parts");
    commsir_collective call;
    if (auto bad = readSized("commsir_collective", given, call))
      return bad;
    commsir_parts parts;
    if (auto bad = readSized("commsir_parts", givenParts, parts))
      return bad;
    group::CollectiveCall made = callOf(call, open.group->options().ranks);
    made.inputParts = listOf(parts.inputs, parts.input_count);
    made.outputParts = listOf(parts.outputs, parts.output_count);
    made.partElements = parts.elements;
    return report(open.collectives.run(made, stream));
  });
}

char *commsir_group_why_not(commsir_group *group,
                            const commsir_collective *given) {
  char *text = nullptr;
  commsir_status status = runConcurrently(group, [&](OpenGroup &open) {
    if (!given)
      return isNull("an argument of commsir_group_why_not");
    commsir_collective call;
    if (auto bad = readSized("commsir_collective", given, call))
      return bad;
    if (auto why = open.collectives.unsupportedReason(
            callOf(call, open.group->options().ranks)))
      text = capi::copyText(*why);
    return COMMSIR_OK;
  });
  return status == COMMSIR_OK ? text : capi::copyText(commsir_error_message());
}

static llvm::SmallVector<group::FusedCall::Operand, 4>
operandsOf(const commsir_operand *operands, size_t count) {
  llvm::SmallVector<group::FusedCall::Operand, 4> made;
  for (const commsir_operand &one : llvm::ArrayRef(operands, count))
    made.push_back({{one.data, one.elements},
                    textOf(one.type),
                    one.per_row != 0,
                    one.columns});
  return made;
}

/// Reads a fused call; its arrays of operands must exist.
static commsir_status readFused(const commsir_fused *given,
                                commsir_fused &call) {
  if (auto bad = readSized("commsir_fused", given, call))
    return bad;
  bool hasOperands = (!call.source_count || call.sources) &&
                     (!call.argument_count || call.arguments) &&
                     (!call.output_count || call.outputs);
  return hasOperands ? COMMSIR_OK : isNull("an array of operands");
}

static group::FusedCall fusedOf(const commsir_fused &call) {
  group::FusedCall made;
  made.op = textOf(call.op);
  made.reduction = textOf(call.reduction);
  made.elementType = textOf(call.type);
  made.rows = call.rows;
  made.columns = call.columns;
  // What does not fit is refused by its rows and columns.
  int64_t elements = 0;
  if (__builtin_mul_overflow(call.rows, call.columns, &elements))
    elements = -1;
  made.input = {const_cast<void *>(call.input), elements};
  made.sources = operandsOf(call.sources, call.source_count);
  made.arguments = operandsOf(call.arguments, call.argument_count);
  made.outputs = operandsOf(call.outputs, call.output_count);
  made.produce = llvm::StringRef(call.produce ? call.produce : "");
  made.consume = llvm::StringRef(call.consume ? call.consume : "");
  return made;
}

commsir_status commsir_group_fused(commsir_group *group,
                                   const commsir_fused *given, void *stream) {
  return inTurn(group, "a fused collective", [&](OpenGroup &open) {
    if (!given)
      return isNull("an argument of commsir_group_fused");
    commsir_fused call;
    if (auto bad = readFused(given, call))
      return bad;
    return report(open.collectives.run(fusedOf(call), stream));
  });
}

commsir_status
commsir_prepare_fused(commsir_group *group, const commsir_fused *given,
                      const commsir_prepare_options *givenOptions,
                      commsir_prepared **prepared) {
  return runConcurrently(group, [&](OpenGroup &open) {
    if (!given || !prepared)
      return isNull("an argument of commsir_prepare_fused");
    commsir_fused call;
    if (auto bad = readFused(given, call))
      return bad;
    commsir_prepare_options options;
    if (auto bad = readPrepareOptions(givenOptions, options))
      return bad;
    group::FusedCall made = fusedOf(call);
    if (llvm::Error error = open.collectives.check(made))
      return report(std::move(error));
    *prepared = PreparedCalls::get().make(
        {group, options.timeout, nullptr,
         std::make_unique<group::PreparedFused>(made)});
    return COMMSIR_OK;
  });
}

commsir_status commsir_launch_fused(commsir_prepared *prepared,
                                    void *const *arrays, size_t count,
                                    void *stream) {
  if (!prepared || !capi::isWhole(prepared))
    return guard([&] {
      return prepared ? isOther("a prepared call") : isNull("prepared");
    });
  const commsir_prepared::Content &content = prepared->content;
  return inTurn(
      content.group, "a prepared fused collective", [&](OpenGroup &open) {
        if (!content.fused)
          return fail(COMMSIR_USAGE,
                      "commsir_launch_fused: the call was prepared by "
                      "commsir_prepare; launch it by commsir_launch");
        if (!arrays)
          return isNull("arrays");
        if (size_t wanted = content.fused->countArrays(); count != wanted)
          return fail(COMMSIR_USAGE,
                      "commsir_launch_fused: there are " +
                          std::to_string(count) +
                          " arrays; the call was prepared with " +
                          std::to_string(wanted) +
                          ": the input, sources, arguments and outputs");
        if (commsir_status status = beforeLaunch(open, content.timeout, stream))
          return status;
        return report(open.collectives.launch(
            *content.fused, llvm::ArrayRef(arrays, count), stream));
      });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Reads the options of a kernel; false, with `bad` set, when they are wrong.
static bool readOptions(llvm::StringRef text, group::KernelRequest &request,
                        std::string &bad) {
  auto value = readJson(text);
  if (!value) {
    bad = llvm::toString(value.takeError());
    return false;
  }
  const llvm::json::Object *object = value->getAsObject();
  if (!object) {
    bad = "they are not an object";
    return false;
  }
  for (const auto &[name, entry] : *object) {
    llvm::StringRef key = name;
    auto number = entry.getAsInteger();
    auto string = entry.getAsString();
    if (key == "algorithm" && string)
      request.algorithm = string->str();
    else if (key == "impl" && string)
      request.impl = string->str();
    else if (key == "protocol" && string)
      request.protocol = string->str();
    else if (key == "blocks" && number)
      request.blocks = *number;
    else if (key == "threads" && number)
      request.threads = *number;
    else if (key == "cluster" && number)
      request.cluster = *number;
    else if (key == "check" && entry.getAsBoolean())
      request.check = *entry.getAsBoolean();
    else if (key == "concurrent" && entry.getAsBoolean())
      request.concurrent = *entry.getAsBoolean();
    else {
      bad = "'" + key.str() +
            "' is unknown or of the wrong type; there are algorithm, protocol, "
            "impl (texts), blocks, threads, cluster (numbers), check and "
            "concurrent (true or false)" +
            commsir::didYouMean(key, {"algorithm", "protocol", "impl", "blocks",
                                      "threads", "cluster", "concurrent"});
      return false;
    }
  }
  return true;
}

/// A kernel that was asked for before has its handle.
static commsir_kernel *handleOf(commsir_group &group,
                                group::GroupKernel &kernel) {
  for (const auto &known : group.kernels)
    if (&known->kernel == &kernel)
      return known.get();
  group.kernels.emplace_back(new commsir_kernel(group, kernel));
  return group.kernels.back().get();
}

commsir_status commsir_group_kernel(commsir_group *group, const char *source,
                                    const char *name, const char *options,
                                    commsir_kernel **kernel) {
  return inTurn(group, "making a kernel", [&](OpenGroup &open) {
    if (!source || !kernel)
      return isNull("an argument of commsir_group_kernel");
    if (driver::isBytecode(source))
      return fail(COMMSIR_USAGE, "the source of the kernel is MLIR bytecode: "
                                 "give the text that comms-opt makes of it");
    group::KernelRequest request;
    request.source = source;
    request.name = textOf(name);
    std::string bad;
    if (options && *options && !readOptions(options, request, bad))
      return fail(COMMSIR_USAGE, "options of the kernel: " + bad);
    auto made = open.group->prepare(request);
    if (!made)
      return report(made.takeError());
    *kernel = handleOf(*group, **made);
    return COMMSIR_OK;
  });
}

/// Whether no two arguments share memory that the kernel writes.
static llvm::Error checkSharing(const group::GroupKernel &kernel,
                                llvm::ArrayRef<group::Argument> arguments) {
  llvm::SmallVector<jit::GivenMemory, 8> given;
  for (auto [info, argument] : llvm::zip(kernel.args(), arguments)) {
    bool isMemory =
        info.kind == jit::ArgKind::Memory || info.kind == jit::ArgKind::Window;
    given.push_back({argument.data, isMemory ? info.bytes() : 0, info.written});
  }
  auto found = jit::findSharing(given);
  if (!found)
    return llvm::Error::success();
  return group::makeError(
      group::GroupError::Kind::Usage,
      "arguments '" + kernel.args()[found->first].name + "' and '" +
          kernel.args()[found->second].name + "' of kernel '" + kernel.name() +
          "' share memory, and the kernel writes the latter: give each memory "
          "of its own");
}

commsir_status commsir_kernel_launch(commsir_kernel *kernel,
                                     const commsir_argument *arguments,
                                     size_t count, void *stream) {
  if (!kernel || !capi::isWhole(kernel))
    return guard(
        [&] { return kernel ? isOther("a kernel") : isNull("kernel"); });
  return inTurn(&kernel->group, "a kernel launch", [&](OpenGroup &open) {
    if (count && !arguments)
      return isNull("an argument of commsir_kernel_launch");
    llvm::SmallVector<group::Argument, 8> given;
    for (const commsir_argument &one : llvm::ArrayRef(arguments, count))
      given.push_back({one.data, one.bytes});
    if (llvm::Error error = checkSharing(kernel->kernel, given))
      return report(std::move(error));
    return report(open.group->launch(kernel->kernel, given, stream));
  });
}

char *commsir_kernel_describe(commsir_kernel *kernel) {
  char *text = nullptr;
  if (kernel && !capi::isWhole(kernel)) {
    isOther("a kernel");
    return nullptr;
  }
  runConcurrently(kernel ? &kernel->group : nullptr, [&](OpenGroup &) {
    llvm::json::Array arguments, choices;
    for (const jit::ArgInfo &info : kernel->kernel.args()) {
      llvm::json::Array shape;
      for (int64_t dim : info.shape)
        shape.push_back(dim);
      arguments.push_back(
          llvm::json::Object{{"name", info.name},
                             {"kind", jit::stringifyArgKind(info.kind)},
                             {"type", info.elementType},
                             {"shape", std::move(shape)}});
    }
    for (const jit::Choice &choice : kernel->kernel.choices())
      choices.push_back(llvm::json::Object{{"op", choice.op},
                                           {"algorithm", choice.algorithm},
                                           {"protocol", choice.protocol},
                                           {"tile", choice.tileSize},
                                           {"tiles", choice.tiles}});
    text = capi::copyText(capi::render(
        llvm::json::Object{{"name", kernel->kernel.name()},
                           {"arguments", std::move(arguments)},
                           {"choices", std::move(choices)},
                           {"proof", jit::toJson(kernel->kernel.proof())}}));
    return COMMSIR_OK;
  });
  return text;
}
