//===- Mesh.h - Connections between the ranks of one host -------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Unix socket between any two ranks, kept for as long as their group lives.
// Over it ranks agree (what they are about to do, what came of it) and hand
// each other files; when a process ends, however it ends, its peers see that at
// once. Ranks may be processes or threads of one.
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

/// An open file, closed at the end.
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

/// What ranks are about that end their group.
constexpr llvm::StringLiteral kEnding = "ending the group";

/// One rank's connections. Belongs to one thread, but for `giveUp`,
/// `lossReason`, `absenceReason` and `silenceReason`.
class Mesh {
public:
  /// Finds the peers through `store`, below keys that begin with `name`.
  /// Collective; fails after `timeout` seconds with the rank that has not come.
  static llvm::Expected<std::unique_ptr<Mesh>> connect(group::Store &store,
                                                       llvm::StringRef name,
                                                       int rank, int ranks,
                                                       double timeout);
  ~Mesh();

  int getRank() const { return rank; }
  int getRanks() const { return int(peers.size()); }

  /// Gives `mine` and returns every rank's, in order of ranks. Collective.
  /// `what` says what this rank is about; ranks that are about different things
  /// get an error that names both. At most 32 KiB.
  llvm::Expected<std::vector<std::string>>
  all(llvm::StringRef what, llvm::StringRef mine, double timeout);

  /// Collective: this rank's error, else that of the lowest rank that has one,
  /// or success.
  llvm::Error agree(llvm::StringRef what, llvm::Error mine, double timeout);

  /// Gives every peer `file` and returns theirs; none for this rank.
  llvm::Expected<std::vector<File>> exchange(llvm::StringRef what,
                                             const File &file, double timeout);

  /// Ends the waits of this rank, in flight and to come, and of its peers for
  /// it, who are told `reason` (the first counts).
  void giveUp(llvm::StringRef reason);

  /// Why ranks can exchange nothing any more; "": they can.
  std::string lossReason() const;

  /// "" while `peer` is there; else "its process (pid 7) has ended" or the
  /// like.
  std::string absenceReason(int peer) const;
  /// The same, and "has given up: …" where it did so and has said nothing else
  /// since it was last heard; unless it `mayEnd` its group, also where that is
  /// what it waits for.
  std::string silenceReason(int peer, bool mayEnd = false) const;

private:
  struct Peer {
    File socket;
    int pid = 0;
  };
  Mesh(int rank, int ranks);
  llvm::Error open(group::Store &store, llvm::StringRef name, double timeout);
  llvm::Error send(int peer, llvm::StringRef what, llvm::StringRef text,
                   int descriptor);
  /// Text and file.
  using Message = std::pair<std::string, File>;
  /// The next message of `peer`, which is there.
  llvm::Expected<Message> receive(int peer, llvm::StringRef what);
  /// Those of all peers, by rank, in the order in which they come: what one has
  /// to say is heard while another is late.
  llvm::Expected<std::vector<Message>> receiveAll(llvm::StringRef what,
                                                  double until);
  /// Waits until one of `files` is readable.
  llvm::Error waitFor(llvm::SmallVectorImpl<pollfd> &files, double until,
                      const llvm::Twine &whom);
  llvm::Error absent(int peer, llvm::StringRef what) const;
  llvm::Error checkLost() const;
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
