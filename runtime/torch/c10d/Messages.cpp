//===- Messages.cpp - Sends and receives on the CPU, by CommsIR -----------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/torch/c10d/Messages.h"

#include "runtime/torch/c10d/Interrupt.h"

using namespace commsir::torch_c10d;
using std::chrono::milliseconds;

namespace commsir::torch_c10d {
/// Work whose wait Ctrl-C ends.
class MessageWork : public InterruptibleWork {
public:
  MessageWork(std::shared_ptr<Messages> owner, commsir_transfer *transfer,
              at::Tensor tensor, milliseconds timeout,
              std::function<void(const std::string &)> fail)
      : owner(std::move(owner)), transfer(transfer), tensor(std::move(tensor)),
        timeout(timeout), fail(std::move(fail)) {}
  ~MessageWork() override { owner->keep(transfer, std::move(tensor)); }

  bool isCompleted() override {
    return library().commsir_transfer_is_over(transfer);
  }
  bool isSuccess() const override {
    return library().commsir_transfer_is_over(transfer) &&
           library().commsir_transfer_wait(transfer, 0) == COMMSIR_OK;
  }
  int sourceRank() const override {
    return static_cast<int>(library().commsir_transfer_source(transfer));
  }
  void abort() override { fail("its work was aborted"); }

  bool wait(milliseconds given) override {
    owner->confirm();
    Interruptible scope;
    milliseconds limit = given.count() > 0 ? given : timeout;
    commsir_status status = library().commsir_transfer_wait(
        transfer, static_cast<double>(limit.count()) / 1000);
    if (status == COMMSIR_OK)
      return true;
    std::string why = "commsir: " + library().lastError();
    if (isInterrupted()) {
      fail("it was interrupted while it waited");
      throwInterrupt();
    }
    if (status == COMMSIR_DISAGREE)
      fail(why);
    C10_THROW_ERROR(DistBackendError, why);
  }

private:
  const Library &library() const { return *owner->library; }
  std::shared_ptr<Messages> owner;
  commsir_transfer *transfer;
  at::Tensor tensor;
  milliseconds timeout;
  std::function<void(const std::string &)> fail;
};
} // namespace commsir::torch_c10d

Messages::Messages(const Settings &settings)
    : connection(std::make_unique<StoreConnection>(settings)) {
  // It is Python's, and may stay until after that has ended.
  connection->settings.delegate = nullptr;
}

std::shared_ptr<Messages> Messages::announce(const Settings &settings) {
  std::shared_ptr<Messages> made(new Messages(settings));
  if (settings.size == 1) {
    made->missing = "the group has one rank";
    return made;
  }
  std::string prefix = "commsir/" + settings.name + "/sends/here/";
  made->library = Library::open(settings.library, made->missing);
  StoreAdapter &answers = made->connection->answers;
  answers.store = settings.store;
  commsir_store cStore = answers.asStore();
  if (!made->library) {
    // No host is called so: all others are told.
    std::string nowhere = "0 1 0 none";
    answers.set(prefix + std::to_string(settings.rank), nowhere.data(),
                nowhere.size());
  } else if (made->library->commsir_p2p_create(settings.name.c_str(),
                                               settings.rank, settings.size,
                                               &cStore, &made->messages)) {
    made->missing = answers.explain(made->library->lastError());
  }
  answers.store = nullptr;
  return made;
}

Messages::~Messages() {
  if (!messages)
    return;
  for (auto &[transfer, tensor] : left)
    library->commsir_transfer_free(transfer);
  if (library->commsir_p2p_destroy(messages) == COMMSIR_OK)
    return;
  // Whoever asks is in it until the process ends.
  (void)connection.release();
  (void)new decltype(left)(std::move(left));
}

bool Messages::knows(int peer) {
  std::lock_guard<std::mutex> lock(mutex);
  return !messages || known.count(peer);
}

std::string Messages::unsupportedReason(int peer, milliseconds timeout) {
  bool isConnected = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!messages)
      return missing;
    if (auto found = known.find(peer); found != known.end())
      return found->second;
    isConnected = static_cast<bool>(connection->answers.store);
  }
  if (!isConnected) {
    // Without the lock, for which Work waits that Python drops: this may take
    // long, and a store in Python needs the GIL.
    StorePtr made = connection->settings.connect();
    std::lock_guard<std::mutex> lock(mutex);
    if (!connection->answers.store)
      connection->answers.store = std::move(made);
  }
  int reached = 0;
  commsir_status status = library->commsir_p2p_reaches(
      messages, peer, static_cast<double>(timeout.count()) / 1000, &reached);
  if (status != COMMSIR_OK)
    C10_THROW_ERROR(
        DistBackendError,
        c10::str(
            "commsir: ",
            status == COMMSIR_DEADLOCK
                ? c10::str("Timed out waiting ", timeout.count(), "ms for ")
                : "",
            "the other side of a transfer: ",
            connection->answers.explain(library->lastError())));
  std::lock_guard<std::mutex> lock(mutex);
  return known[peer] = reached ? "" : "ranks do not share memory";
}

/// Tells the library that ranks that are gone are this group's.
void Messages::confirm() {
  if (messages && connection->settings.shared->met && !confirmed.exchange(true))
    library->commsir_p2p_confirm(messages);
}

WorkPtr Messages::begin(const Transfer &side, const at::Tensor &tensor,
                        milliseconds timeout,
                        std::function<void(const std::string &)> fail) {
  commsir_message message = {sizeof message,  side.peer,
                             side.tag,        tensor.data_ptr(),
                             tensor.nbytes(), side.what.c_str()};
  commsir_transfer *transfer = nullptr;
  auto begun =
      side.sends ? library->commsir_p2p_send : library->commsir_p2p_receive;
  TORCH_CHECK_WITH(DistBackendError,
                   begun(messages, &message, &transfer) == COMMSIR_OK,
                   "commsir: ", library->lastError());
  return c10::make_intrusive<MessageWork>(shared_from_this(), transfer, tensor,
                                          timeout, std::move(fail));
}

/// Nobody holds the Work any more. The tensor stays until the transfer is over.
void Messages::keep(commsir_transfer *transfer, at::Tensor tensor) {
  // Tensors are let go of without the lock: they may be Python's.
  std::vector<std::pair<commsir_transfer *, at::Tensor>> over;
  {
    std::lock_guard<std::mutex> lock(mutex);
    left.emplace_back(transfer, std::move(tensor));
    if (!messages)
      return;
    auto isOpen = [&](const auto &one) {
      return !library->commsir_transfer_is_over(one.first);
    };
    auto firstOver = std::partition(left.begin(), left.end(), isOpen);
    over.assign(std::make_move_iterator(firstOver),
                std::make_move_iterator(left.end()));
    left.erase(firstOver, left.end());
  }
  for (auto &[one, tensorOf] : over)
    library->commsir_transfer_free(one);
}

void Messages::abort(const std::string &reason) {
  if (messages)
    library->commsir_p2p_abort(messages, reason.c_str());
}

bool Messages::leave(std::chrono::steady_clock::time_point deadline) {
  confirm();
  std::chrono::duration<double> left =
      deadline - std::chrono::steady_clock::now();
  return !messages || library->commsir_p2p_leave(
                          messages, std::max(left.count(), 0.0)) == COMMSIR_OK;
}
