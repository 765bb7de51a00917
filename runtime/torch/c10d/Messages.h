//===- Messages.h - Sends and receives on the CPU, by CommsIR ---*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sends and receives of a process group between ranks of one host
// (runtime/group/PointToPoint.h). All others use Gloo (Transfers.h).
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_TORCH_C10D_MESSAGES_H
#define COMMSIR_RUNTIME_TORCH_C10D_MESSAGES_H

#include "runtime/torch/c10d/StoreAdapter.h"
#include "runtime/torch/c10d/Transfers.h"

namespace commsir::torch_c10d {

class Messages : public std::enable_shared_from_this<Messages> {
public:
  /// Announces this rank to the others without waiting for them.
  static std::shared_ptr<Messages> announce(const Settings &settings);
  ~Messages();

  /// Returns the reason why a transfer with `peer` (-1: any rank) cannot be
  /// CommsIR's, equal on both sides, or "" if it can. Waits until the peer has
  /// made its process group.
  std::string unsupportedReason(int peer, std::chrono::milliseconds timeout);
  /// Whether that would not wait.
  bool knows(int peer);
  /// Begins a transfer. `fail` is called with the reason if the other side's
  /// type or size differs.
  WorkPtr begin(const Transfer &side, const at::Tensor &tensor,
                std::chrono::milliseconds timeout,
                std::function<void(const std::string &)> fail);
  void abort(const std::string &reason);
  /// Ends all transfers. Sends have until `deadline` to reach their receivers.
  /// Returns false if the store does not answer a pending query.
  bool leave(std::chrono::steady_clock::time_point deadline);
  /// Called in a forked child: objects of the parent must not be touched.
  void leak() { messages = nullptr; }

private:
  friend class MessageWork;
  explicit Messages(const Settings &settings);
  void keep(commsir_transfer *transfer, at::Tensor tensor);
  void confirm();

  /// The store, on a separate connection from the first transfer on.
  struct StoreConnection {
    explicit StoreConnection(const Settings &given) : settings(given) {}
    Settings settings;
    StoreAdapter answers{nullptr, settings, ""};
  };

  std::unique_ptr<StoreConnection> connection;
  const Library *library = nullptr;
  commsir_p2p *messages = nullptr;
  std::string missing;
  std::atomic<bool> confirmed{false};
  std::mutex mutex;
  /// By peer: the reason why it cannot be reached.
  std::map<int, std::string> known;
  /// In progress, although the program holds no Work of them.
  std::vector<std::pair<commsir_transfer *, at::Tensor>> left;
};

} // namespace commsir::torch_c10d

#endif // COMMSIR_RUNTIME_TORCH_C10D_MESSAGES_H
