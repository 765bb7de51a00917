//===- Transfers.cpp - Sends and receives on the CPU ----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Transfers.h"

#include "runtime/support/ForeignText.h"

#include "runtime/torch/c10d/Queue.h"

#include <atomic>
#include <condition_variable>
#include <new>
#include <system_error>
#include <thread>

using namespace commsir::torch_c10d;
using Clock = std::chrono::steady_clock;

/// How long a side waits before it reports, and how often it checks from then
/// on.
static constexpr std::chrono::milliseconds kPatience{1000}, kPeriod{500};
/// How long a check in progress may take at the program's end.
static constexpr std::chrono::seconds kLastLook{2};

//===----------------------------------------------------------------------===//
// Tags
//===----------------------------------------------------------------------===//

Transfer::Transfer(bool sends, int rank, int peer, int tag,
                   const at::Tensor &tensor)
    : sends(sends), rank(rank), peer(peer), tag(tag),
      what(c10::str(tensor.numel(), " x ",
                    c10::getDtypeNames(tensor.scalar_type()).first)) {
  TORCH_CHECK_VALUE(tag >= 0, "commsir: Tag must be nonnegative, not ", tag);
}

/// FNV-1a, in 31 bits.
int Transfer::fitting() const {
  uint64_t hash = 0xcbf29ce484222325;
  for (char letter : c10::str(tag, " ", what))
    hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  return static_cast<int>((hash ^ (hash >> 32)) & 0x7fffffff);
}

//===----------------------------------------------------------------------===//
// Looking
//===----------------------------------------------------------------------===//

namespace {
/// A transfer that is under way.
struct ActiveTransfer {
  Transfer transfer;
  uint64_t number;
  WorkPtr work;
  c10::intrusive_ptr<c10d::Store> store;
  Clock::time_point begun = Clock::now();
  std::atomic<bool> isWaitedFor{false};
  std::mutex mutex;
  bool told = false;
  /// Why it will never be; empty: it may.
  std::string why;

  ActiveTransfer(const Transfer &transfer, uint64_t number, WorkPtr work,
                 c10::intrusive_ptr<c10d::Store> store)
      : transfer(transfer), number(number), work(std::move(work)),
        store(std::move(store)) {}

  std::string key(bool sends) const {
    int from = transfer.sends ? transfer.rank : transfer.peer;
    int to = transfer.sends ? transfer.peer : transfer.rank;
    return c10::str(from, "-", to, "/", transfer.tag, "/", number,
                    sends ? "/sends" : "/receives");
  }
  void look();
};
} // namespace

void ActiveTransfer::look() {
  std::lock_guard<std::mutex> lock(mutex);
  std::string other = key(!transfer.sends);
  if (!told) {
    store->set(key(transfer.sends), std::vector<uint8_t>(transfer.what.begin(),
                                                         transfer.what.end()));
    told = true;
  }
  if (!isWaitedFor || !store->check({other}))
    return;
  std::string theirs = store->get_to_str(other);
  if (theirs == transfer.what)
    return;
  theirs = commsir::showForeign(theirs);
  bool sends = transfer.sends;
  why = c10::str(
      "commsir: rank ", sends ? transfer.rank : transfer.peer, " sends ",
      sends ? transfer.what : theirs, " to rank ",
      sends ? transfer.peer : transfer.rank, ", which receives ",
      sends ? theirs : transfer.what, " (tag ", transfer.tag, ", message ",
      number, " between them). Send and receive tensors of one type and size");
  work->abort();
}

namespace {
/// A thread that looks for all groups. A child of fork() has none.
class Watcher {
public:
  static Watcher &get() {
    static std::atomic<Watcher *> current{nullptr};
    Watcher *watcher = current;
    if (watcher && watcher->forks == forksSoFar())
      return *watcher;
    auto *made = new Watcher;
    if (!current.compare_exchange_strong(watcher, made)) {
      delete made;
      return *watcher;
    }
    try {
      std::thread([made] { made->run(); }).detach();
    } catch (const std::system_error &) {
      // Transfers go on without one who looks.
    }
    return *made;
  }

  void add(std::shared_ptr<ActiveTransfer> one) {
    std::lock_guard<std::mutex> lock(mutex);
    opened.insert(std::move(one));
    // Mostly it is between two looks, and need not be woken.
    if (std::exchange(isIdle, false))
      changed.notify_all();
  }
  void remove(const std::shared_ptr<ActiveTransfer> &one) {
    std::lock_guard<std::mutex> lock(mutex);
    opened.erase(one);
  }
  /// Returns when nobody looks any more, or who does is left to the process's
  /// end: a store whose server is gone may answer after minutes.
  void clear() {
    std::unique_lock<std::timed_mutex> looking(looks, kLastLook);
    if (!looking) {
      over = true;
      TORCH_WARN("commsir: the store of a process group does not answer at the "
                 "program's end, and sends or receives that nobody waited for "
                 "are still in flight");
    }
    std::lock_guard<std::mutex> lock(mutex);
    opened.clear();
  }

private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      isIdle = opened.empty();
      changed.wait(lock, [&] { return !opened.empty(); });
      lock.unlock();
      std::this_thread::sleep_for(kPeriod);
      try {
        pollTransfers();
      } catch (const std::bad_alloc &) {
        // The next look may have the memory.
      }
      lock.lock();
    }
  }

  void pollTransfers() {
    std::lock_guard<std::timed_mutex> looking(looks);
    std::vector<std::shared_ptr<ActiveTransfer>> late;
    {
      std::lock_guard<std::mutex> lock(mutex);
      for (const auto &one : opened)
        if (Clock::now() - one->begun >= kPatience)
          late.push_back(one);
    }
    for (const auto &one : late)
      try {
        if (!over)
          one->look();
      } catch (const std::exception &) {
        // A store that does not answer says nothing of the transfer.
      }
    // To drop the last holder of a store or a tensor could be to call Python,
    // which has ended.
    if (over)
      (void)new std::vector<std::shared_ptr<ActiveTransfer>>(std::move(late));
  }

  std::mutex mutex;
  std::timed_mutex looks;
  /// The program has ended while a look was under way.
  std::atomic<bool> over{false};
  std::condition_variable changed;
  std::set<std::shared_ptr<ActiveTransfer>> opened;
  bool isIdle = false;
  const uint64_t forks = forksSoFar();
};

/// Gloo's Work, which fails where the other side's is another.
class TransferWork : public c10d::Work {
public:
  TransferWork(std::shared_ptr<ActiveTransfer> open,
               std::function<void(const std::string &)> fail)
      : open(std::move(open)), fail(std::move(fail)) {
    Watcher::get().add(this->open);
  }
  ~TransferWork() override { Watcher::get().remove(open); }

  bool isCompleted() override { return open->work->isCompleted(); }
  bool isSuccess() const override { return open->work->isSuccess(); }
  int sourceRank() const override { return open->work->sourceRank(); }
  void abort() override { open->work->abort(); }

  bool wait(std::chrono::milliseconds timeout) override {
    open->isWaitedFor = true;
    bool done = false;
    std::exception_ptr error;
    try {
      done = open->work->wait(timeout);
    } catch (...) {
      error = std::current_exception();
    }
    Watcher::get().remove(open);
    std::lock_guard<std::mutex> lock(open->mutex);
    if (!open->why.empty()) {
      fail(open->why);
      C10_THROW_ERROR(DistBackendError, open->why);
    }
    if (error)
      std::rethrow_exception(error);
    if (open->told)
      forget();
    return done;
  }

private:
  /// Deletes the announcement of the send, which is no longer needed.
  void forget() {
    try {
      open->store->deleteKey(open->key(open->transfer.sends));
    } catch (const std::exception &) {
    }
  }

  std::shared_ptr<ActiveTransfer> open;
  std::function<void(const std::string &)> fail;
};
} // namespace

WorkPtr Transfers::watch(const Transfer &transfer, WorkPtr begun,
                         c10::intrusive_ptr<c10d::Store> store,
                         std::function<void(const std::string &)> fail) {
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (transfer.peer < 0)
      fromAny.insert(transfer.tag);
    if (!begun || (!transfer.sends && fromAny.count(transfer.tag)))
      return begun;
    number = counts[{transfer.sends, transfer.peer, transfer.tag}]++;
  }
  return c10::make_intrusive<TransferWork>(
      std::make_shared<ActiveTransfer>(transfer, number, std::move(begun),
                                       std::move(store)),
      std::move(fail));
}

void Transfers::endAll() { Watcher::get().clear(); }
