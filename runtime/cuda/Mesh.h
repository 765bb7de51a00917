//===- Mesh.h - Connections between the ranks of one host -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Unix socket between each pair of ranks, open as long as their group lives.
// Through it ranks agree on steps and their outcomes, and exchange files. When
// a process ends, for whatever reason, its peers notice at once. Ranks may be
// processes or threads of one process.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_CUDA_MESH_H
#define COMMSIR_RUNTIME_CUDA_MESH_H

#include "runtime/support/Store.h"

#include "llvm/ADT/SmallVector.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <poll.h>
#include <string>
#include <vector>

namespace commsir::cuda {

/// An open file, closed by the destructor.
class File {
public:
  explicit File(int descriptor = -1) : descriptor(descriptor) {}
  File(File &&other) noexcept;
  File &operator=(File &&other) noexcept;
  ~File();
  int get() const { return descriptor; }
  explicit operator bool() const { return descriptor >= 0; }

private:
  int descriptor;
};

/// Description of the step in which ranks end their group.
constexpr llvm::StringLiteral kEnding = "ending the group";

/// One rank's connections. Used by one thread, except `giveUp`, `lossReason`,
/// `absenceReason` and `silenceReason`.
class Mesh {
public:
  /// Connects to the peers through `store`, under keys that begin with `name`.
  /// Collective. Fails after `timeout` seconds and names the missing rank.
  static llvm::Expected<std::unique_ptr<Mesh>> connect(group::Store &store,
                                                       llvm::StringRef name,
                                                       int rank, int ranks,
                                                       double timeout);
  ~Mesh();

  int getRank() const { return rank; }
  int getRanks() const { return int(peers.size()); }

  /// Sends `mine` (at most 32 KiB) to all ranks and returns every rank's text,
  /// in rank order. Collective. `what` describes the step; ranks in different
  /// steps get an error that names both.
  llvm::Expected<std::vector<std::string>>
  all(llvm::StringRef what, llvm::StringRef mine, double timeout);

  /// Collective. Returns this rank's error, else the error of the lowest rank
  /// that has one, or success.
  llvm::Error agree(llvm::StringRef what, llvm::Error mine, double timeout);

  /// Sends every peer `file` and returns theirs; the entry of this rank is
  /// empty. Collective.
  llvm::Expected<std::vector<File>> exchange(llvm::StringRef what,
                                             const File &file, double timeout);

  /// Ends all present and future waits of this rank, and of peers that wait for
  /// it. They are told `reason`; the first call counts.
  void giveUp(llvm::StringRef reason);

  /// Returns the reason why ranks can no longer exchange data, or "" if they
  /// can.
  std::string lossReason() const;

  /// Returns "" while `peer` is alive, else a reason such as "its process (pid
  /// 7) has ended".
  std::string absenceReason(int peer) const;
  /// Like `absenceReason`, but also returns "has given up: …" if that was the
  /// last thing heard from `peer`. Unless `mayEnd`, a peer that has begun to
  /// end its group also counts as absent.
  std::string silenceReason(int peer, bool mayEnd = false) const;

private:
  struct Peer {
    File socket;
    int pid = 0;
  };
  Mesh(int rank, int ranks);
  llvm::Error open(group::Store &store, llvm::StringRef name, double timeout);
  llvm::Error send(int peer, llvm::StringRef what, llvm::StringRef text,
                   int descriptor, double until);
  /// Text and file.
  using Message = std::pair<std::string, File>;
  /// Receives the next message of `peer`, which must be alive.
  llvm::Expected<Message> receive(int peer, llvm::StringRef what);
  /// Receives one message of each peer, by rank. Reads them as they arrive, so
  /// that an error is noticed while another peer is late.
  llvm::Expected<std::vector<Message>> receiveAll(llvm::StringRef what,
                                                  double until);
  /// Waits until one of `files` is ready.
  llvm::Error waitFor(llvm::SmallVectorImpl<pollfd> &files, double until,
                      const llvm::Twine &whom);
  /// The error of a wait for `whom` that has taken too long.
  llvm::Error failLate(const llvm::Twine &whom) const;
  llvm::Error absent(int peer, llvm::StringRef what) const;
  /// Like `silenceReason`, but reads all that `peer` has sent, for its reason
  /// may be behind messages of steps. Only for a mesh that is lost.
  std::string departureReason(int peer) const;
  /// "rank 2 is not there: …" of a peer that has departed, or "".
  std::string findDeparture() const;
  llvm::Error checkLost() const;
  /// Notes that ranks can no longer exchange data, and tells the peers why.
  llvm::Error lose(llvm::Error error);

  int rank;
  uint32_t sequence = 0;
  mutable std::mutex lostMutex;
  std::string lost;
  std::vector<Peer> peers;
  /// Readable once `giveUp` was called.
  File canceled;
  std::atomic<bool> hasTold{false};
};

} // namespace commsir::cuda

#endif // COMMSIR_RUNTIME_CUDA_MESH_H
