//===- Mesh.cpp - Connections between the ranks of one host ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Mesh.h"

#include "runtime/support/ForeignText.h"
#include "runtime/support/GroupError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace commsir::cuda;
using commsir::group::GroupError;
using commsir::group::makeError;

namespace {

constexpr size_t kMaxMessage = 48 << 10;
constexpr size_t kMaxWhat = 512;
constexpr size_t kMaxText = 32 << 10;

/// Start of a message; `what` and the text follow.
struct Header {
  uint32_t magic, sequence, whatBytes, textBytes;
};
constexpr uint32_t kMagic = 0x43495231;
/// In place of the first: a rank gives up, for the reason in `text`.
constexpr uint32_t kGivesUp = 0x43495258;

/// What a rank sends when it connects.
struct Hello {
  uint32_t magic;
  int32_t rank, ranks;
};

using Kind = GroupError::Kind;

llvm::Error fail(const llvm::Twine &text, Kind kind = Kind::Peer) {
  return makeError(kind, text);
}

llvm::Error failSystem(const llvm::Twine &what) {
  return fail(what + ": " + std::strerror(errno), Kind::Usage);
}

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string readText(const char *path) {
  char text[256];
  int file = ::open(path, O_RDONLY | O_CLOEXEC);
  ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof(text));
  if (file >= 0)
    close(file);
  return llvm::StringRef(text, size_t(std::max<ssize_t>(bytes, 0)))
      .trim()
      .str();
}

/// Differs between ranks that no Unix socket can join.
std::string getHost() {
  char space[128];
  ssize_t bytes = readlink("/proc/self/ns/net", space, sizeof(space));
  std::string name = readText("/proc/sys/kernel/hostname");
  return name + " " + readText("/proc/sys/kernel/random/boot_id") + " " +
         std::string(space, size_t(std::max<ssize_t>(bytes, 0)));
}

/// An abstract name: no file, gone with the socket.
sockaddr_un makeAddress(llvm::StringRef name, socklen_t &bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

/// It does not wait: a listener whose queue is full would be waited for without
/// a limit.
int makeSocket() {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/// Messages are waited for.
bool makeBlocking(const File &socket) {
  int flags = fcntl(socket.get(), F_GETFL);
  return flags >= 0 && fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/// The process at the other end: whoever listens there, or has connected. None:
/// it is not known, or of another user.
std::optional<int> getOwnPeer(const File &socket) {
  ucred credentials{};
  socklen_t bytes = sizeof(credentials);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) !=
          0 ||
      credentials.uid != geteuid())
    return std::nullopt;
  return credentials.pid;
}

} // namespace

//===----------------------------------------------------------------------===//
// File
//===----------------------------------------------------------------------===//

File::File(File &&other) noexcept
    : descriptor(std::exchange(other.descriptor, -1)) {}

File &File::operator=(File &&other) noexcept {
  if (this != &other) {
    if (descriptor >= 0)
      close(descriptor);
    descriptor = std::exchange(other.descriptor, -1);
  }
  return *this;
}

File::~File() {
  if (descriptor >= 0)
    close(descriptor);
}

//===----------------------------------------------------------------------===//
// Connecting
//===----------------------------------------------------------------------===//

Mesh::Mesh(int rank, int ranks) : rank(rank), peers(ranks) {}

Mesh::~Mesh() = default;

llvm::Expected<std::unique_ptr<Mesh>> Mesh::connect(group::Store &store,
                                                    llvm::StringRef name,
                                                    int rank, int ranks,
                                                    double timeout) {
  std::unique_ptr<Mesh> mesh(new Mesh(rank, ranks));
  if (auto error = mesh->open(store, name, timeout))
    return mesh->lose(std::move(error));
  return mesh;
}

/// Connects to one rank that listens. Its address may be that of an earlier
/// run: then the store is asked again.
static llvm::Expected<File> connectTo(commsir::group::Store &store,
                                      const std::string &key, int peer,
                                      const Hello &hello, double until) {
  while (true) {
    auto said = store.get(key, std::max(until - now(), 0.001));
    if (!said)
      return fail(llvm::formatv(
                      "rank {0} waits for rank {1}, which has not arrived: {2}",
                      hello.rank, peer, llvm::toString(said.takeError()))
                      .str());
    auto [host, name] = llvm::StringRef(*said).split('\n');
    if (host != getHost())
      return fail(llvm::formatv(
                      "rank {0} and rank {1} are not on one host, or in "
                      "containers that share no network: {2} and {3}. A group "
                      "of GPUs lives on one host",
                      hello.rank, peer, getHost(),
                      commsir::showForeign(host.str()))
                      .str());
    File socket(makeSocket());
    if (!socket)
      return failSystem("a Unix socket could not be made");
    socklen_t bytes;
    sockaddr_un address = makeAddress(name, bytes);
    if (::connect(socket.get(), reinterpret_cast<sockaddr *>(&address),
                  bytes) == 0) {
      // The name of a rank that has ended can be anybody's.
      if (!getOwnPeer(socket))
        return fail(llvm::formatv("rank {0} found another user's process where "
                                  "rank {1} should listen",
                                  hello.rank, peer)
                        .str());
      if (makeBlocking(socket) &&
          ::send(socket.get(), &hello, sizeof(hello), MSG_NOSIGNAL) ==
              ssize_t(sizeof(hello)))
        return socket;
    } else if (errno != ECONNREFUSED && errno != EINTR && errno != EAGAIN) {
      return failSystem("connecting to rank " + llvm::Twine(peer));
    }
    if (now() > until)
      return fail(
          llvm::formatv("rank {0} waits for rank {1}, which does not "
                        "listen at '{2}' (is the store that of an "
                        "earlier run?)",
                        hello.rank, peer,
                        commsir::showForeign(
                            name.take_front(commsir::kMostQuotedText).str()))
              .str());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

llvm::Error Mesh::open(group::Store &store, llvm::StringRef name,
                       double timeout) {
  double until = now() + timeout;
  canceled = File(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!canceled)
    return failSystem("an event could not be made");
  if (getRanks() == 1)
    return llvm::Error::success();

  unsigned char random[16];
  if (getrandom(random, sizeof(random), 0) != ssize_t(sizeof(random)))
    return failSystem("no random numbers");
  std::string own = "commsir-" + llvm::toHex(random, /*LowerCase=*/true);
  File listener(makeSocket());
  socklen_t bytes;
  sockaddr_un address = makeAddress(own, bytes);
  if (!listener ||
      bind(listener.get(), reinterpret_cast<sockaddr *>(&address), bytes) ||
      listen(listener.get(), getRanks()))
    return failSystem("a Unix socket could not be made");
  auto key = [&](int peer) {
    return (name + "/mesh/" + llvm::Twine(peer)).str();
  };
  if (auto error = store.set(key(rank), getHost() + "\n" + own))
    return error;

  Hello hello{kMagic, rank, getRanks()};
  for (int peer = 0; peer < rank; ++peer) {
    auto socket = connectTo(store, key(peer), peer, hello, until);
    if (!socket && now() > until)
      if (std::string why = findDeparture(); !why.empty()) {
        llvm::consumeError(socket.takeError());
        return fail("rank " + llvm::Twine(rank) + " waits for rank " +
                    llvm::Twine(peer) + " to listen, but " + why);
      }
    if (!socket)
      return socket.takeError();
    peers[peer].socket = std::move(*socket);
  }
  for (int left = getRanks() - 1 - rank; left > 0;) {
    int missing = rank + 1;
    while (missing < getRanks() - 1 && peers[missing].socket)
      ++missing;
    std::string whom = "rank " + std::to_string(missing) + " to come";
    llvm::SmallVector<pollfd, 2> files = {{listener.get(), POLLIN, 0}};
    if (auto error = waitFor(files, until, whom))
      return error;
    File socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket || !getOwnPeer(socket)) {
      // Nobody of ours. Others may come all the time.
      if (now() > until)
        return failLate(whom);
      continue;
    }
    files = {{socket.get(), POLLIN, 0}};
    if (auto error = waitFor(files, until, whom))
      return error;
    Hello said{};
    if (recv(socket.get(), &said, sizeof(said), 0) != ssize_t(sizeof(said)) ||
        said.magic != kMagic)
      continue;
    if (said.ranks != getRanks() || said.rank <= rank ||
        said.rank >= getRanks() || peers[said.rank].socket)
      return fail(
          llvm::formatv("rank {0} of {1} was contacted by another rank {2} of "
                        "{3}: two processes have one rank, or groups "
                        "share the name '{4}'",
                        rank, getRanks(), said.rank, said.ranks, name)
              .str());
    peers[said.rank].socket = std::move(socket);
    --left;
  }
  for (Peer &peer : peers)
    if (peer.socket)
      peer.pid = getOwnPeer(peer.socket).value_or(0);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

llvm::Error Mesh::waitFor(llvm::SmallVectorImpl<pollfd> &files, double until,
                          const llvm::Twine &whom) {
  files.push_back({canceled.get(), POLLIN, 0});
  while (true) {
    double left = until - now();
    int found = poll(files.data(), files.size(),
                     std::max(0, int(std::min(left, 1e6) * 1e3)));
    if (found < 0 && errno != EINTR)
      return failSystem("waiting for " + whom);
    if (found > 0 && files.back().revents)
      return fail("rank " + llvm::Twine(rank) + " was aborted while waiting " +
                      "for " + whom,
                  Kind::Aborted);
    if (found > 0)
      return llvm::Error::success();
    if (now() > until)
      return failLate(whom);
  }
}

llvm::Error Mesh::failLate(const llvm::Twine &whom) const {
  std::string text =
      "rank " + std::to_string(rank) + " waits for " + whom.str();
  std::string why = findDeparture();
  return fail(text + (why.empty() ? ", and the time is over" : ", but " + why));
}

std::string Mesh::departureReason(int peer) const {
  std::string text(kMaxMessage, 0);
  bool isEnding = false;
  // Twice, as in `receive`.
  for (int resets = 0; peers[peer].socket && resets < 2;) {
    ssize_t bytes =
        recv(peers[peer].socket.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (bytes == 0 || (bytes < 0 && errno != EINTR && errno != ECONNRESET))
      break;
    resets += bytes < 0 && errno == ECONNRESET;
    Header header{};
    if (bytes < ssize_t(sizeof(header)))
      continue;
    std::memcpy(&header, text.data(), sizeof(header));
    auto rest =
        llvm::StringRef(text).take_front(bytes).drop_front(sizeof(header));
    if (header.magic == kGivesUp)
      return "it has given up: " + commsir::showForeign(rest.str());
    isEnding |=
        header.magic == kMagic && rest.take_front(header.whatBytes) == kEnding;
  }
  return isEnding ? "it has left the group" : absenceReason(peer);
}

std::string Mesh::findDeparture() const {
  for (int peer = 0; peer < getRanks(); ++peer)
    if (std::string why = departureReason(peer); !why.empty())
      return "rank " + std::to_string(peer) + " is not there: " + why;
  return "";
}

llvm::Error Mesh::absent(int peer, llvm::StringRef what) const {
  std::string why = departureReason(peer);
  return fail(llvm::formatv("rank {0} is at '{1}', but rank {2} is not there: "
                            "{3}",
                            rank, what, peer,
                            why.empty() ? "it has left the group" : why)
                  .str());
}

llvm::Error Mesh::send(int peer, llvm::StringRef what, llvm::StringRef text,
                       int descriptor, double until) {
  what = what.take_front(kMaxWhat);
  if (text.size() > kMaxText)
    return fail("a message between ranks is too long");
  Header header{kMagic, sequence, uint32_t(what.size()), uint32_t(text.size())};
  iovec parts[] = {{&header, sizeof(header)},
                   {const_cast<char *>(what.data()), what.size()},
                   {const_cast<char *>(text.data()), text.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  }
  // A peer that reads nothing is waited for no longer than one that sends
  // nothing.
  while (sendmsg(peers[peer].socket.get(), &message,
                 MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EPIPE || errno == ECONNRESET)
      return absent(peer, what);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      llvm::SmallVector<pollfd, 2> files = {
          {peers[peer].socket.get(), POLLOUT, 0}};
      if (llvm::Error error =
              waitFor(files, until,
                      "rank " + llvm::Twine(peer) + " to read what it is sent"))
        return error;
    } else if (errno != EINTR) {
      return failSystem("sending to rank " + llvm::Twine(peer));
    }
  }
  return llvm::Error::success();
}

/// The files that came with a message. There may be more than one, of a peer
/// that misbehaves: each one that is not closed would stay open.
static llvm::SmallVector<File, 2> takeFiles(msghdr &message) {
  llvm::SmallVector<File, 2> files;
  for (cmsghdr *head = CMSG_FIRSTHDR(&message); head;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
      continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len;
         at += sizeof(int)) {
      int descriptor;
      std::memcpy(&descriptor, reinterpret_cast<char *>(head) + at,
                  sizeof(int));
      files.emplace_back(descriptor);
    }
  }
  return files;
}

llvm::Expected<Mesh::Message> Mesh::receive(int peer, llvm::StringRef what) {
  what = what.take_front(kMaxWhat);
  std::string buffer(kMaxMessage, 0);
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t bytes;
  // Of a peer that has closed without reading all, the first try says that
  // alone, the next one what it had sent.
  int resets = 0;
  do
    bytes = recvmsg(peers[peer].socket.get(), &message, MSG_CMSG_CLOEXEC);
  while (bytes < 0 &&
         (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
  if (bytes <= 0)
    return absent(peer, what);
  llvm::SmallVector<File, 2> files = takeFiles(message);
  Header header{};
  if (size_t(bytes) >= sizeof(header))
    std::memcpy(&header, buffer.data(), sizeof(header));
  llvm::StringRef rest = llvm::StringRef(buffer).take_front(bytes).drop_front(
      std::min(size_t(bytes), sizeof(header)));
  if (header.magic == kGivesUp)
    return fail("rank " + llvm::Twine(peer) +
                " has given up: " + commsir::showForeign(rest.str()));
  if (header.magic != kMagic ||
      rest.size() != size_t(header.whatBytes) + header.textBytes)
    return fail("rank " + llvm::Twine(peer) + " sent an invalid message");
  llvm::StringRef theirs = rest.take_front(header.whatBytes);
  if (theirs != what || header.sequence != sequence)
    return fail(llvm::formatv("ranks disagree: rank {0} is at '{1}' (step {2}) "
                              "and rank {3} at '{4}' (step {5}). All ranks "
                              "must make the same calls in the same order",
                              rank, what, sequence, peer,
                              commsir::showForeign(theirs.str()),
                              header.sequence)
                    .str(),
                Kind::Disagree);
  if (files.size() > 1)
    return fail("rank " + llvm::Twine(peer) + " sent several files at once");
  if (files.empty() && (message.msg_flags & MSG_CTRUNC))
    return fail("rank " + llvm::Twine(rank) + " cannot open the file that " +
                    "rank " + llvm::Twine(peer) + " sent: this process has " +
                    "too many open files (ulimit -n raises the limit)",
                Kind::Usage);
  return std::pair(rest.drop_front(header.whatBytes).str(),
                   files.empty() ? File() : std::move(files.front()));
}

llvm::Expected<std::vector<Mesh::Message>>
Mesh::receiveAll(llvm::StringRef what, double until) {
  std::vector<Message> result(getRanks());
  llvm::SmallVector<int, 8> missing;
  for (int peer = 0; peer < getRanks(); ++peer)
    if (peer != rank)
      missing.push_back(peer);
  while (!missing.empty()) {
    llvm::SmallVector<pollfd, 9> files;
    for (int peer : missing)
      files.push_back({peers[peer].socket.get(), POLLIN, 0});
    if (auto error =
            waitFor(files, until,
                    "rank " + llvm::Twine(missing.front()) + " to come to '" +
                        what.take_front(kMaxWhat) + "'"))
      return std::move(error);
    llvm::SmallVector<int, 8> late;
    for (auto [peer, file] : llvm::zip_first(missing, files)) {
      if (!file.revents) {
        late.push_back(peer);
        continue;
      }
      auto message = receive(peer, what);
      if (!message)
        return message.takeError();
      result[peer] = std::move(*message);
    }
    missing = std::move(late);
  }
  return result;
}

/// Messages that were not read would be taken for the next ones. Peers that
/// wait for this rank learn why, and so whose fault it is.
llvm::Error Mesh::lose(llvm::Error error) {
  std::string why = llvm::toStringWithoutConsuming(error);
  {
    std::lock_guard lock(lostMutex);
    lost = why;
  }
  giveUp(why);
  return error;
}

std::string Mesh::lossReason() const {
  std::lock_guard lock(lostMutex);
  return lost;
}

llvm::Error Mesh::checkLost() const {
  std::string why = lossReason();
  if (why.empty())
    return llvm::Error::success();
  return fail("ranks can no longer communicate: " + why);
}

llvm::Expected<std::vector<std::string>>
Mesh::all(llvm::StringRef what, llvm::StringRef mine, double timeout) {
  if (llvm::Error error = checkLost())
    return std::move(error);
  double until = now() + timeout;
  ++sequence;
  for (int peer = 0; peer < getRanks(); ++peer)
    if (peer != rank)
      if (auto error = send(peer, what, mine, -1, until))
        return lose(std::move(error));
  auto messages = receiveAll(what, until);
  if (!messages)
    return lose(messages.takeError());
  std::vector<std::string> result(getRanks());
  for (auto [text, message] : llvm::zip(result, *messages))
    text = std::move(message.first);
  result[rank] = mine.str();
  return result;
}

llvm::Error Mesh::agree(llvm::StringRef what, llvm::Error mine,
                        double timeout) {
  std::string text = group::packError(std::move(mine));
  auto texts = all(what, llvm::StringRef(text).take_front(kMaxText), timeout);
  if (texts) {
    // This rank's own error is shown whole.
    if (text.empty())
      for (std::string &theirs : *texts)
        theirs = commsir::showForeign(theirs);
    return group::unpackErrors(*texts, rank);
  }
  if (text.empty())
    return texts.takeError();
  llvm::consumeError(texts.takeError());
  return group::unpackErrors(text, 0);
}

llvm::Expected<std::vector<File>>
Mesh::exchange(llvm::StringRef what, const File &file, double timeout) {
  if (llvm::Error error = checkLost())
    return std::move(error);
  double until = now() + timeout;
  ++sequence;
  for (int peer = 0; peer < getRanks(); ++peer)
    if (peer != rank)
      if (auto error = send(peer, what, "", file.get(), until))
        return lose(std::move(error));
  auto messages = receiveAll(what, until);
  if (!messages)
    return lose(messages.takeError());
  std::vector<File> result(getRanks());
  for (int peer = 0; peer < getRanks(); ++peer) {
    result[peer] = std::move((*messages)[peer].second);
    if (peer != rank && !result[peer])
      return lose(fail("rank " + llvm::Twine(peer) + " sent no file"));
  }
  return result;
}

void Mesh::giveUp(llvm::StringRef reason) {
  uint64_t one = 1;
  ssize_t done = write(canceled.get(), &one, sizeof(one));
  (void)done; // A counter that is full is readable too.
  if (hasTold.exchange(true))
    return;
  Header header{kGivesUp, 0, 0, 0};
  std::string message(reinterpret_cast<char *>(&header), sizeof(header));
  message += reason.take_front(kMaxText);
  // Whole, whatever the thread is sending that the mesh belongs to. A peer that
  // reads nothing finds out by its time limit.
  for (const Peer &peer : peers)
    if (peer.socket)
      done = ::send(peer.socket.get(), message.data(), message.size(),
                    MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string Mesh::silenceReason(int peer, bool mayEnd) const {
  if (!peers[peer].socket)
    return "";
  char text[sizeof(Header) + kMaxWhat];
  Header header{};
  ssize_t bytes = -1;
  // Twice, as above.
  for (int tries = 0; tries < 2 && bytes < 0; ++tries)
    bytes = recv(peers[peer].socket.get(), text, sizeof(text),
                 MSG_PEEK | MSG_DONTWAIT);
  if (bytes >= ssize_t(sizeof(header)))
    std::memcpy(&header, text, sizeof(header));
  if (header.magic != kGivesUp && header.magic != kMagic)
    return absenceReason(peer);
  llvm::StringRef rest(text + sizeof(header), size_t(bytes) - sizeof(header));
  if (header.magic == kGivesUp)
    return "it has given up: " + commsir::showForeign(rest.str());
  bool isEnding = rest.take_front(header.whatBytes) == kEnding;
  return isEnding && !mayEnd ? "it has left the group" : absenceReason(peer);
}

std::string Mesh::absenceReason(int peer) const {
  const Peer &other = peers[peer];
  if (!other.socket)
    return "";
  bool gone = other.pid > 0 && kill(other.pid, 0) && errno == ESRCH;
  pollfd file{other.socket.get(), POLLRDHUP, 0};
  poll(&file, 1, 0);
  bool closed = file.revents & (POLLRDHUP | POLLHUP | POLLERR);
  if (!gone && !closed)
    return "";
  if (other.pid <= 0 || other.pid == getpid())
    return "it has left the group";
  // A process that was killed may not have been waited for yet.
  std::string state =
      readText(("/proc/" + std::to_string(other.pid) + "/stat").c_str());
  llvm::StringRef after = llvm::StringRef(state).rsplit(')').second.ltrim();
  if (gone || state.empty() || after.starts_with("Z") || after.starts_with("X"))
    return "its process (pid " + std::to_string(other.pid) + ") has ended";
  return "it has left the group (its process, pid " +
         std::to_string(other.pid) + ", is still there)";
}
