//===- DeviceState.cpp - State per device type ----------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/DeviceState.h"

#include "runtime/torch/c10d/Interrupt.h"
#include "runtime/torch/c10d/Messages.h"
#include "runtime/torch/c10d/StoreAdapter.h"

#include <map>
#include <sstream>
#include <thread>

using namespace commsir::torch_c10d;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Least time that ranks which have met get to make their group.
static constexpr milliseconds kAfterMeeting{5000};
/// How long a failed rank waits for the others' reports of their calls.
static constexpr milliseconds gossip{3000};

StorePtr DeviceState::place(const StorePtr &store, const std::string &epoch,
                            const std::string &what) const {
  return c10::make_intrusive<c10d::PrefixStore>(
      c10::str("commsir/", device.is_cpu() ? "cpu/" : "cuda/", epoch, "/",
               what),
      store);
}

bool Settings::hasStopped() const { return shared->aborted || isInterrupted(); }

StorePtr Settings::connect() const {
  try {
    return store->clone();
  } catch (const std::exception &error) {
    C10_THROW_ERROR(DistStoreError,
                    c10::str("commsir: process group ", name,
                             " gets no connection of its own to the store: ",
                             textOf(error)));
  }
}

StorePtr Settings::ownStore() {
  std::lock_guard<std::mutex> lock(shared->connecting);
  if (!cloned)
    cloned = connect();
  return cloned;
}

Settings Settings::part(const StorePtr &store, int rank, int size) const {
  Settings made = *this;
  made.store = store;
  made.rank = rank;
  made.size = size;
  made.cloned = nullptr;
  made.shared = std::make_shared<Shared>();
  made.shared->timeout = shared->timeout.load();
  return made;
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

commsir::group::RendezvousResult Settings::rendezvousAs(
    int rank, int size, const std::string &prefix, milliseconds timeout,
    const std::string &says,
    std::function<std::string(const std::vector<int64_t> &)> complain) {
  StoreAdapter store{c10::make_intrusive<c10d::PrefixStore>(prefix, ownStore()),
                     *this, ""};
  commsir::group::RendezvousStore keys = {
      [&](const std::string &key, const std::string &value) {
        return store.set(key, value.data(), value.size());
      },
      [&](const std::string &key, double time) { return store.get(key, time); },
      [&] { return hasStopped(); }, std::move(complain)};
  double seconds = static_cast<double>(timeout.count()) / 1000;
  commsir::group::RendezvousResult met =
      commsir::group::Rendezvous(std::move(keys), rank, size, seconds)
          .hold(says);
  if (met.epoch.empty() && !met.stopped)
    met.failure = store.explain(met.failure);
  return met;
}

std::string DeviceState::epochOf(const commsir::group::RendezvousResult &met,
                                 milliseconds timeout,
                                 const std::string &what) const {
  if (!met.epoch.empty())
    return met.epoch;
  C10_THROW_ERROR(
      DistBackendError,
      c10::str("commsir: rank ", settings.rank, ": ",
               met.stopped ? "" : "Timed out waiting ",
               met.stopped ? "" : c10::str(timeout.count(), "ms for "), what,
               " of process group ", settings.name, ": ",
               met.stopped && settings.shared->aborted
                   ? settings.shared->abortReason()
                   : met.failure));
}

/// Takes the implementation off what each rank has said ("C++ WHY"). Where the
/// ranks have different ones, says which; empty: they are of one.
static std::string differing(std::vector<std::string> &said) {
  std::map<std::string, std::vector<std::string>> ranks;
  for (size_t rank = 0; rank < said.size(); ++rank) {
    size_t space = said[rank].find(' ');
    std::string implementation = said[rank].substr(0, space);
    if (implementation != "C++")
      implementation = "of another version";
    ranks[implementation].push_back(std::to_string(rank));
    said[rank].erase(0, space == std::string::npos ? space : space + 1);
  }
  if (ranks.size() <= 1)
    return "";
  std::vector<std::string> texts;
  for (const auto &[implementation, those] : ranks)
    texts.push_back(c10::str(implementation, " on rank",
                             those.size() > 1 ? "s " : " ",
                             c10::Join(", ", those)));
  return c10::str("the backend is ", c10::Join(", ", texts),
                  ", and these do not work together: install one version of "
                  "CommsIR and torch on all ranks");
}

/// Lists the ranks that are missing because they have no C++ backend, as
/// backend.py reports it; empty if there are none.
static std::string otherBackends(Settings &settings) {
  try {
    auto said = look(settings, *settings.ownStore(), "commsir/others", 0);
    return said ? "; " + commsir::showForeign(*said) : "";
  } catch (const std::exception &) {
    return ""; // The store does not answer, which the failure tells.
  }
}

/// Ranks agree on an epoch, that their backends are of one implementation, and
/// on whether all have the library: one that has not says so before the others
/// wait for it.
void DeviceState::meet(milliseconds timeout) {
  if (!epoch.empty())
    return;
  std::string why;
  library = Library::open(settings.library, why);
  commsir::group::RendezvousResult met = settings.meet(
      device.is_cpu() ? "commsir/cpu/meeting" : "commsir/cuda/meeting", timeout,
      "C++ " + why);
  failed = met.epoch.empty();
  if (failed && !met.stopped)
    met.failure += otherBackends(settings);
  std::string agreed = epochOf(met, timeout, "the first meeting");
  settings.shared->met = true;
  if (std::string apart = differing(met.said); !apart.empty()) {
    failed = true;
    C10_THROW_ERROR(DistBackendError,
                    c10::str("commsir: rank ", settings.rank,
                             ": process group ", settings.name, ": ", apart));
  }
  epoch = agreed;
  for (int rank = 0; rank < settings.size && withoutLibrary.empty(); ++rank)
    if (!met.said[rank].empty())
      withoutLibrary =
          c10::str(commsir::showForeign(met.said[rank]), " (rank ", rank, ")");
}

/// Tells the other ranks `own`, and hands what each rank has said to `hear`
/// until that returns true.
void DeviceState::ask(
    const char *what, const std::string &own, milliseconds timeout,
    const std::function<bool(int, const std::string &)> &hear) {
  StorePtr store = place(what);
  store->set(c10::str(settings.rank), own);
  auto end = std::chrono::steady_clock::now() + timeout;
  for (int rank = 0; rank < settings.size; ++rank) {
    std::chrono::duration<double> left = end - std::chrono::steady_clock::now();
    std::string missing;
    auto said = look(settings, *store, c10::str(rank),
                     std::max(left.count(), 0.0), &missing);
    TORCH_CHECK_WITH(DistBackendError, said, "rank ", rank,
                     " has not arrived within ", timeout.count(), "ms",
                     missing.empty() ? "" : " (" + missing + ")");
    if (hear(rank, *said))
      return;
  }
}

/// The first rank's reason, if any has one: all take the same path.
std::string DeviceState::agree(const std::string &why, milliseconds timeout) {
  std::string agreed;
  ask("agree", why.empty() ? "yes" : "no " + why, timeout,
      [&](int rank, const std::string &said) {
        if (said == "yes")
          return false;
        TORCH_CHECK_WITH(DistBackendError, said.rfind("no ", 0) == 0,
                         commsir::describeForeign(said, rank));
        agreed = c10::str(commsir::showForeign(said.substr(3)), " (rank ", rank,
                          ")");
        return true;
      });
  return agreed;
}

/// Tells the others whether this rank has a group. One that has none makes sure
/// that nobody has: the other backend would wait for that rank in vain, and not
/// name it. One that has a group finds those that are missing by itself.
void DeviceState::confirm(const std::string &why, milliseconds timeout) {
  if (why.empty()) {
    place("outcome")->set(c10::str(settings.rank), "group");
    return;
  }
  ask("outcome", "none", timeout, [&](int rank, const std::string &said) {
    TORCH_CHECK_WITH(DistBackendError, said != "group", "rank ", rank,
                     " has a group, and rank ", settings.rank,
                     " has none: ", why);
    TORCH_CHECK_WITH(DistBackendError, said == "none",
                     commsir::describeForeign(said, rank));
    return false;
  });
}

//===----------------------------------------------------------------------===//
// The group
//===----------------------------------------------------------------------===//

/// Returns the rest of `timeout`, and a little more for ranks that have met
/// late.
static milliseconds leftOf(milliseconds timeout, Clock::time_point begun) {
  auto passed = std::chrono::duration_cast<milliseconds>(Clock::now() - begun);
  return std::max(timeout - passed, std::min(timeout, kAfterMeeting));
}

/// Makes the group of this rank, or says in `why` why not.
commsir_group *DeviceState::createGroup(milliseconds timeout,
                                        std::string &why) {
  StoreAdapter store{place("group"), settings, ""};
  std::string name = settings.name + (device.is_cpu() ? ".cpu" : ".cuda");
  commsir_group_options options = {};
  options.size = sizeof options;
  options.name = name.c_str();
  options.rank = settings.rank;
  options.ranks = settings.size;
  options.device = device.is_cpu() ? -1 : device.index();
  options.timeout = static_cast<double>(timeout.count()) / 1000;
  options.ctas = -1; // Training runs them concurrently with its arithmetic.
  commsir_store cStore = store.asStore();
  commsir_group *own = nullptr;
  commsir_status status =
      library->commsir_group_create(&options, &cStore, &own);
  if (status != COMMSIR_OK)
    why = store.explain("no group: " + library->lastError());
  return own;
}

/// Why this rank has no group; empty: it has.
std::string DeviceState::makeGroup(milliseconds timeout) {
  auto begun = Clock::now();
  meet(timeout);
  std::string why = withoutLibrary;
  // An abort may come at any time, and touches none that is not agreed on.
  commsir_group *own = nullptr;
  if (why.empty())
    own = createGroup(leftOf(timeout, begun), why);
  if (own)
    library->commsir_group_set_timeout(
        own, static_cast<double>(timeout.count()) / 1000);
  try {
    if (withoutLibrary.empty())
      why = agree(why, leftOf(timeout, begun));
    confirm(why, leftOf(timeout, begun));
  } catch (const std::exception &error) {
    // Others may have agreed, and go on: there is no second time.
    failed = true;
    if (own)
      library->commsir_group_drop(own);
    C10_THROW_ERROR(DistBackendError,
                    c10::str("commsir: rank ", settings.rank,
                             ": process group ", settings.name,
                             ": ranks do not agree on whether they have a "
                             "group: ",
                             textOf(error)));
  }
  if (!why.empty() && own) {
    library->commsir_group_destroy(own);
    own = nullptr;
  }
  // Of CPU tensors, ranks on several hosts have none as a matter of course.
  if (!why.empty() && !device.is_cpu() && settings.rank == 0)
    TORCH_WARN("commsir: process group ", settings.name,
               " has no group on GPUs, so NCCL carries its calls: ", why);
  std::lock_guard<std::mutex> lock(endMutex);
  group = own;
  if (group && settings.shared->aborted)
    library->commsir_group_abort(group, settings.shared->abortReason().c_str());
  made = true;
  return why;
}

commsir_group *DeviceState::use() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!made)
    missing = makeGroup(settings.timeout());
  TORCH_CHECK(group, "commsir: process group ", settings.name, ": ", missing);
  return group;
}

static commsir_collective asked(const Step &step) {
  commsir_collective request = {};
  request.size = sizeof request;
  request.op = step.op;
  request.reduction = step.reduction;
  request.type = step.type;
  request.root = step.root;
  request.input = step.input;
  request.input_elements = step.inputElements;
  request.output = step.output;
  request.output_elements = step.outputElements;
  request.algorithm = request.protocol = "";
  request.type_name = step.named;
  return request;
}

std::string DeviceState::unsupportedReason(const Call &call) {
  if (!call.notOwn.empty())
    return call.notOwn;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!made)
      missing = makeGroup(call.timeout);
  }
  if (!group)
    return missing;
  for (const Step &step : call.steps) {
    std::array<const char *, 3> kind = {step.op, step.reduction, step.type};
    if (had.count(kind))
      continue;
    commsir_collective request = asked(step);
    if (char *reason = library->commsir_group_why_not(group, &request)) {
      std::string why = reason;
      library->commsir_free(reason);
      return why;
    }
    had.insert(kind);
  }
  return "";
}

static double secondsOf(milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

void DeviceState::launch(const Call &call, const Step &step, void *stream) {
  commsir_collective request = asked(step);
  library->commsir_group_set_timeout(group, secondsOf(call.timeout));
  commsir_status status = COMMSIR_OK;
  if (const Parts *parts = step.parts.get()) {
    commsir_parts list = {sizeof list,           parts->inputs.data(),
                          parts->inputs.size(),  parts->outputs.data(),
                          parts->outputs.size(), parts->elements};
    status =
        library->commsir_group_collective_parts(group, &request, &list, stream);
  } else {
    status = library->commsir_group_collective(group, &request, stream);
  }
  if (status != COMMSIR_OK)
    fail(call.record(), status);
}

/// Whether a call prepared for `one` carries out `other`.
static bool isSameCall(const Step &one, const Step &other) {
  return one.inputElements == other.inputElements &&
         one.outputElements == other.outputElements && one.op == other.op &&
         one.type == other.type && one.reduction == other.reduction &&
         one.root == other.root && one.named == other.named;
}

static size_t hashOf(const Step &step) {
  auto mixed = uint64_t(step.inputElements) * 31 +
               uint64_t(step.outputElements) * 7 + uint64_t(step.root);
  for (const char *text : {step.op, step.reduction, step.type})
    mixed = mixed * 31 + (reinterpret_cast<uintptr_t>(text) >> 2);
  return (mixed * 0x9E3779B97F4A7C15u) >> 58;
}

std::shared_ptr<commsir_prepared> DeviceState::prepare(const Step &step,
                                                       milliseconds timeout) {
  static_assert(kPreparedSteps == size_t(1) << (64 - 58));
  std::lock_guard<std::mutex> lock(preparedMutex);
  PreparedStep &known = preparedSteps[hashOf(step)];
  if (known.prepared && known.timeout == timeout &&
      isSameCall(known.step, step))
    return known.prepared;
  commsir_collective request = asked(step);
  commsir_prepare_options options = {sizeof options, secondsOf(timeout)};
  commsir_prepared *made = nullptr;
  if (library->commsir_prepare(group, &request, &options, &made) != COMMSIR_OK)
    return nullptr;
  known = {step, timeout, {made, library->commsir_prepared_release}};
  return known.prepared;
}

void DeviceState::poll() {
  std::lock_guard<std::mutex> polling(pollMutex);
  if (group && library->commsir_group_poll(group) != COMMSIR_OK)
    failEarlier();
}

/// Throws the last error of the library, which is of an earlier launch.
void DeviceState::failEarlier() {
  std::string what = library->lastError();
  if (char *over = library->commsir_group_ended(group)) {
    std::lock_guard<std::mutex> lock(endMutex);
    if (ended.empty())
      ended = over;
    library->commsir_free(over);
  }
  C10_THROW_ERROR(DistBackendError, "commsir: " + what);
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

/// Advice for a late rank, and for one that has ended.
static const char *adviceFor(const std::string &what, bool isLate) {
  if (isLate)
    return "\nSee what the late rank does (commsir.torch.recent_calls() lists "
           "its calls). If it is only slow, give calls more time: "
           "init_process_group(…, timeout=…).";
  if (what.find("died") == std::string::npos &&
      what.find("is not there") == std::string::npos &&
      what.find("has given up") == std::string::npos &&
      what.find("has left") == std::string::npos)
    return "";
  return "\nGo on with the ranks that are left by "
         "torch.distributed.shrink_group, or start the job again.";
}

void DeviceState::fail(const CallRecord &call, commsir_status status) {
  if (library->commsir_error_is_earlier())
    failEarlier();
  std::string what = library->lastError(), before = endReason();
  char *over = library->commsir_group_ended(group);
  if (over && before.empty()) {
    std::lock_guard<std::mutex> lock(endMutex);
    ended = c10::str("call number ", call.sequence, ", ", call.describe(),
                     ", has failed: ", over);
  }
  // What another rank tells is its own story.
  bool isLate = status == COMMSIR_DEADLOCK &&
                what.find("has given up") == std::string::npos &&
                (what.find("has waited") != std::string::npos ||
                 what.find("gave up waiting") != std::string::npos);
  std::string text =
      c10::str("commsir: rank ", settings.rank, ": ", call.describe(),
               " failed: ", isLate ? "Timed out waiting: " : "", what);
  if (status == COMMSIR_DEADLOCK)
    text += adviceFor(what, isLate);
  // Ranks fail together, once.
  if (status == COMMSIR_DISAGREE && before.empty())
    text += disagreement(call);
  if (status == COMMSIR_DISAGREE && !over)
    text += "\nThe process group can still be used.";
  library->commsir_free(over);
  C10_THROW_ERROR(DistBackendError, text);
}

std::string DeviceState::endReason() {
  std::lock_guard<std::mutex> lock(endMutex);
  return ended;
}

/// Describes what each rank was calling, if they differ. Ranks that fail tell
/// each other through the store; one that has not failed says nothing.
std::string DeviceState::disagreement(const CallRecord &call) {
  std::ostringstream text;
  std::string own = call.describe();
  auto end = std::chrono::steady_clock::now() + gossip;
  try {
    StorePtr store = place("failed");
    store->set(c10::str(call.sequence, "/", settings.rank), own);
    for (int rank = 0; rank < settings.size; ++rank) {
      std::chrono::duration<double> left =
          end - std::chrono::steady_clock::now();
      auto theirs = look(settings, *store, c10::str(call.sequence, "/", rank),
                         std::max(left.count(), 0.0));
      if (theirs && *theirs != own)
        text << "\n  rank " << rank << " called "
             << commsir::showForeign(*theirs);
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

/// Ignores its errors, which would hide the reason for the end.
static void end(c10d::Backend &other) {
  try {
    other.abort();
  } catch (const std::exception &) {
  }
}

c10d::Backend &DeviceState::delegate(milliseconds timeout) {
  std::lock_guard<std::mutex> lock(mutex);
  if (other)
    return *other;
  TORCH_CHECK(!dropped, "commsir: process group ", settings.name,
              " delegates no more calls: its program is ending");
  meet(timeout);
  BackendPtr one = settings.delegate(
      place("delegate"), device.is_cpu() ? "cpu" : "cuda", settings.rank,
      settings.size, settings.globalRanks, settings.name);
  one->setTimeout(settings.timeout());
  {
    std::lock_guard<std::mutex> registering(delegatesMutex);
    other = one;
  }
  delegated = true;
  // From now on an abort reaches it. One that came before does not.
  if (settings.shared->aborted)
    end(*one);
  return *one;
}

c10d::Backend &DeviceState::pairWith(int peer, milliseconds timeout) {
  auto at = [&]() -> Pair & {
    std::lock_guard<std::mutex> lock(delegatesMutex);
    return pairs[peer];
  };
  auto set = [&](Pair &pair, BackendPtr one) {
    std::lock_guard<std::mutex> lock(delegatesMutex);
    pair.made = std::move(one);
  };
  Pair &pair = at();
  std::unique_lock<std::timed_mutex> lock(pair.making, std::defer_lock);
  while (!lock.try_lock_for(kAsk))
    TORCH_CHECK_WITH(DistBackendError, !settings.hasStopped(), "commsir: rank ",
                     settings.rank, ": process group ", settings.name, ": ",
                     settings.shared->abortReason());
  if (pair.made)
    return *pair.made;
  int low = std::min(settings.rank, peer), high = std::max(settings.rank, peer);
  std::string name = c10::str("pair/", low, "-", high);
  std::vector<uint64_t> ranks{settings.globalRank(low)};
  if (high != low)
    ranks.push_back(settings.globalRank(high));
  int rank = settings.rank == low ? 0 : 1,
      size = static_cast<int>(ranks.size());
  // They meet by themselves: NCCL would take the keys of an earlier group over
  // the same store for those of its peer.
  commsir::group::RendezvousResult met = settings.rendezvousAs(
      rank, size, "commsir/cuda/" + name + "/meeting", timeout);
  std::string between =
      c10::str("the first send or receive between ranks ", low, " and ", high);
  // NCCL waits in the store.
  StorePtr store =
      place(settings.connect(), epochOf(met, timeout, between), name);
  BackendPtr made = settings.delegate(store, "cuda", rank, size, ranks,
                                      c10::str(settings.name, "/", name));
  made->setTimeout(settings.timeout());
  // From now on an abort reaches it. One that came before does not.
  set(pair, made);
  try {
    TORCH_CHECK(!settings.shared->aborted, "commsir: ", between,
                " of process group ", settings.name, ": ",
                settings.shared->abortReason());
    // One communicator for batches and for what is sent alone.
    made->eagerConnectSingleDevice(device);
  } catch (...) {
    // The next call meets again.
    set(pair, nullptr);
    end(*made);
    throw;
  }
  return *made;
}

std::vector<BackendPtr> DeviceState::delegates() {
  std::lock_guard<std::mutex> lock(delegatesMutex);
  std::vector<BackendPtr> result;
  if (other)
    result.push_back(other);
  for (auto &[peer, pair] : pairs)
    if (pair.made)
      result.push_back(pair.made);
  return result;
}

void DeviceState::drainDelegate() {
  for (const BackendPtr &one : delegates())
    one->shutdown();
}

void DeviceState::dropGloo(bool leave) {
  if (!device.is_cpu())
    return;
  BackendPtr gloo;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::lock_guard<std::mutex> registering(delegatesMutex);
    gloo = std::move(other);
    dropped = true;
    delegated = false;
  }
  if (leave)
    (void)gloo.release();
}

void DeviceState::setTimeout(milliseconds timeout) {
  for (const BackendPtr &one : delegates())
    one->setTimeout(timeout);
}

void DeviceState::abort(const std::string &reason) {
  {
    std::lock_guard<std::mutex> lock(endMutex);
    if (group)
      library->commsir_group_abort(group, reason.c_str());
  }
  for (const BackendPtr &one : delegates())
    end(*one);
}

std::string DeviceState::counts() {
  std::lock_guard<std::mutex> lock(endMutex);
  if (!group)
    return lastCounts;
  char *text = library->commsir_group_stats(group);
  if (!text)
    return "";
  std::string result = text;
  library->commsir_free(text);
  return result;
}

void DeviceState::endGroup() {
  if (!group)
    return;
  std::string last = counts();
  commsir_group *ended;
  {
    std::lock_guard<std::mutex> polling(pollMutex);
    std::lock_guard<std::mutex> lock(endMutex);
    lastCounts = std::move(last);
    ended = std::exchange(group, nullptr);
  }
  library->commsir_group_destroy(ended);
}

void DeviceState::leak() {
  group = nullptr;
  other.release();
  for (auto &[peer, pair] : pairs)
    (void)pair.made.release();
}

DeviceState::~DeviceState() {
  if (group)
    library->commsir_group_drop(group);
}
