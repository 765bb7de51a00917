//===- Rendezvous.h - Ranks find each other in a store ----------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A store may outlive a job and hold entries of another job or of a failed
// attempt. Ranks therefore first agree on an epoch, a number that nobody has
// used before, and store everything else under it.
//
// Each rank draws a number. Rank 0 greets the numbers that it finds, and
// continues when all ranks have answered: a stale number never answers, and is
// replaced when its rank arrives. The keys are
//
//   here/RANK          the rank's number
//   hello/NUMBER       rank 0's number, for the rank that drew NUMBER
//   ack/EPOCH/RANK     "NUMBER TEXT": the rank's answer and its text
//   go/EPOCH           the texts of all ranks, or the reason of a failure
//
// where EPOCH is rank 0's number. Keys under new numbers are waited for; a
// store whose `get` has no time limit suffices if nothing stale was left.
//
// This header uses only the standard library and ForeignText.h, because
// runtime/torch/c10d includes it without the rest of CommsIR.
// frontend/commsir/torch/rendezvous.py implements the same protocol on the same
// keys.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_RUNTIME_SUPPORT_RENDEZVOUS_H
#define COMMSIR_RUNTIME_SUPPORT_RENDEZVOUS_H

#include "runtime/support/ForeignText.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace commsir::group {

/// The store functions that a rendezvous needs.
struct RendezvousStore {
  /// Returns false if the store rejects the value.
  std::function<bool(const std::string &key, const std::string &value)> set;
  /// Waits up to the given seconds for a key. Returns none if it is missing or
  /// the store does not answer.
  std::function<std::optional<std::string>(const std::string &key, double)> get;
  /// Whether to give up, as after Ctrl-C. Called a few times a second.
  std::function<bool()> stopped;
  /// Rank 0: formats the message to the ranks that have not arrived. Null: a
  /// default text.
  std::function<std::string(const std::vector<int64_t> &)> complain;
};

/// Outcome of a rendezvous.
struct RendezvousResult {
  /// `epoch` is empty if ranks have not met; `failure` then holds the reason.
  std::string epoch, failure;
  /// Text of each rank.
  std::vector<std::string> said;
  /// Rank 0: the ranks that have not arrived.
  std::vector<int64_t> missing;
  bool stopped = false;
};

class Rendezvous {
public:
  Rendezvous(RendezvousStore store, int64_t rank, int64_t ranks, double timeout)
      : store(std::move(store)), rank(rank), ranks(ranks), timeout(timeout),
        begun(Clock::now()), number(draw()) {}

  /// Draws a number that nobody has used before.
  static std::string draw() {
    static const char digits[] = "0123456789abcdef";
    std::random_device random;
    std::string text;
    for (int word = 0; word < 2; ++word)
      for (uint32_t bits = random(), i = 0; i < 8; ++i, bits >>= 4)
        text += digits[bits & 15];
    return text;
  }

  /// Runs the rendezvous. Collective. All ranks can read `says`.
  RendezvousResult hold(const std::string &says) {
    if (ranks == 1)
      return {number, "", {says}, {}, false};
    return rank == 0 ? lead(says) : follow(says);
  }

private:
  using Clock = std::chrono::steady_clock;
  using Text = std::optional<std::string>;
  /// A rank's state as seen by rank 0.
  struct RankEntry {
    std::string greeted, number, says;
    bool here = false;
    /// A foreign text in the store in place of the rank's number or answer.
    Text foreign;
  };

  /// Whether a text of the store can be a number that a rank has drawn. It
  /// becomes part of keys: a store may hold anything.
  static bool isNumber(const std::string &text) {
    return !text.empty() && text.size() <= 64 &&
           // This header may use the standard library only.
           // NOLINTNEXTLINE(llvm-use-ranges)
           std::all_of(text.begin(), text.end(), [](char c) {
             return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
           });
  }

  /// The most bytes that a rank says of itself. A store may hold anything, and
  /// rank 0 hands it on to all ranks.
  static constexpr size_t kMostSaid = 1 << 16;
  /// The most ranks of a list.
  static constexpr size_t kMostRanks = 1 << 16;

  static std::string textOf(int64_t value) { return std::to_string(value); }

  /// "0.5 s".
  std::string ofTimeout() const {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g s", timeout);
    return text;
  }

  double left() const {
    return timeout + grace -
           std::chrono::duration<double>(Clock::now() - begun).count();
  }

  /// Next waiting time: it grows, and never exceeds the deadline.
  double slice() {
    double now = pause;
    pause = std::min(2 * pause, 0.25);
    return std::max(0.001, std::min(now, left()));
  }

  /// Reason not to continue, or "".
  std::string over(const std::string &why) {
    if (result.stopped = store.stopped && store.stopped(); result.stopped)
      return "it was interrupted while it waited in the store";
    if (broken)
      return "the store does not answer";
    return left() > 0 ? "" : why;
  }

  /// Reads a key. A failure before the time is over means that the store is
  /// unavailable.
  Text ask(const std::string &key, double seconds) {
    auto before = Clock::now();
    Text text = store.get(key, seconds);
    double took = std::chrono::duration<double>(Clock::now() - before).count();
    broken = broken || (!text && took < 0.5 * seconds - 0.01);
    return text;
  }

  void tell(const std::string &key, const std::string &value) {
    if (!store.set(key, value))
      broken = true;
  }

  RendezvousResult fail(std::string why) {
    result.failure = std::move(why);
    return std::move(result);
  }

  /// Concatenates number, length and text of each rank.
  static std::string pack(const std::vector<RankEntry> &rankEntries) {
    std::string text;
    for (const RankEntry &guest : rankEntries)
      text += guest.number + " " + textOf(guest.says.size()) + " " + guest.says;
    return text;
  }

  /// Reads such a list. Returns none if the text is no list.
  static std::optional<std::vector<RankEntry>> unpack(const std::string &text) {
    std::vector<RankEntry> rankEntries;
    for (size_t at = 0; at < text.size();) {
      RankEntry &guest = rankEntries.emplace_back();
      size_t space = text.find(' ', at), next = text.find(' ', space + 1);
      if (space == std::string::npos || next == std::string::npos)
        return std::nullopt;
      guest.number = text.substr(at, space - at);
      size_t length = 0;
      std::string digits = text.substr(space + 1, next - space - 1);
      if (digits.empty() || digits.size() > 9 ||
          digits.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
      for (char c : digits)
        length = 10 * length + static_cast<size_t>(c - '0');
      if (!isNumber(guest.number) || rankEntries.size() > kMostRanks ||
          length > kMostSaid || length > text.size() - next - 1)
        return std::nullopt;
      guest.says = text.substr(next + 1, length);
      at = next + 1 + length;
    }
    return rankEntries;
  }

  /// Rank 0: looks for one rank.
  void greet(int64_t other, RankEntry &guest) {
    Text here = ask("here/" + textOf(other), slice());
    if (!here)
      return;
    guest.foreign = isNumber(*here) ? Text() : here;
    if (guest.foreign)
      return;
    if (*here != guest.greeted) {
      guest.greeted = *here;
      tell("hello/" + *here, number);
    }
    Text ack = ask("ack/" + number + "/" + textOf(other), slice());
    if (!ack)
      return;
    size_t space = ack->find(' ');
    if (space == std::string::npos || !isNumber(ack->substr(0, space)) ||
        ack->size() - space - 1 > kMostSaid) {
      guest.foreign = ack;
      return;
    }
    guest.number = ack->substr(0, space);
    guest.says = ack->substr(space + 1);
    guest.here = true;
    pause = kShort;
  }

  RendezvousResult lead(const std::string &says) {
    std::vector<RankEntry> rankEntries(ranks);
    rankEntries[0] = {number, number, says, true, Text()};
    while (true) {
      bool all = true;
      for (int64_t other = 1; other < ranks && !broken; ++other) {
        if (!rankEntries[other].here)
          greet(other, rankEntries[other]);
        all = all && rankEntries[other].here;
        if (!rankEntries[other].here && store.stopped && store.stopped())
          break;
      }
      if (all && !broken)
        break;
      std::string who = absent(rankEntries);
      if (store.complain)
        who = store.complain(result.missing);
      who += describeForeigners(rankEntries);
      if (std::string why = over(who); !why.empty()) {
        tell("go/" + number, "no " + why);
        return fail(why);
      }
    }
    tell("go/" + number, "yes " + pack(rankEntries));
    return finish(rankEntries);
  }

  /// Describes the ranks that rank 0 waits for.
  std::string absent(const std::vector<RankEntry> &rankEntries) {
    result.missing.clear();
    std::string text;
    bool stale = false;
    for (int64_t other = 0; other < ranks; ++other) {
      if (rankEntries[other].here)
        continue;
      text += (text.empty() ? "" : ", ") + textOf(other);
      result.missing.push_back(other);
      stale = stale || (!rankEntries[other].greeted.empty() &&
                        !rankEntries[other].foreign);
    }
    return (result.missing.size() == 1 ? "rank " : "ranks ") + text + " of " +
           textOf(ranks) + (result.missing.size() == 1 ? " has" : " have") +
           " not arrived within " + ofTimeout() +
           (stale ? " (the store holds what an earlier run left of them)" : "");
  }

  /// Describes what the store holds in place of what missing ranks have said.
  static std::string
  describeForeigners(const std::vector<RankEntry> &rankEntries) {
    std::string text;
    for (size_t other = 0; other < rankEntries.size(); ++other)
      if (const RankEntry &guest = rankEntries[other];
          !guest.here && guest.foreign)
        text += (text.empty() ? " (" : "; ") +
                describeForeign(*guest.foreign, static_cast<int64_t>(other));
    return text.empty() ? "" : text + ")";
  }

  RendezvousResult follow(const std::string &says) {
    tell("here/" + textOf(rank), number);
    std::string leader, foreign;
    while (true) {
      // Another rank 0 may have replaced the first.
      Text hello = ask("hello/" + number, slice());
      if (hello && !isNumber(*hello))
        foreign = " (" + describeForeign(*hello, 0) + ")";
      else if (hello && *hello != leader) {
        leader = *hello;
        foreign.clear();
        pause = kShort;
        tell("ack/" + leader + "/" + textOf(rank), number + " " + says);
      }
      Text go = leader.empty() ? Text() : ask("go/" + leader, slice());
      if (go)
        return hear(leader, *go);
      if (!leader.empty())
        grace = kGrace;
      std::string why =
          over("rank 0 has not " +
               std::string(leader.empty() ? "arrived" : "seen all ranks") +
               " within " + ofTimeout() + foreign);
      if (!why.empty())
        return fail(why);
    }
  }

  /// Reads the message of rank 0 to all ranks.
  RendezvousResult hear(const std::string &leader, const std::string &go) {
    if (go.rfind("no ", 0) == 0)
      return fail("rank 0 says: " + showForeign(go.substr(3)));
    auto rankEntries =
        go.rfind("yes ", 0) == 0 ? unpack(go.substr(4)) : std::nullopt;
    if (!rankEntries)
      return fail(describeForeign(go, 0));
    if (static_cast<int64_t>(rankEntries->size()) != ranks)
      return fail("ranks disagree on how many they are: rank " + textOf(rank) +
                  " is one of " + textOf(ranks) + ", and rank 0 is one of " +
                  textOf(static_cast<int64_t>(rankEntries->size())));
    if ((*rankEntries)[rank].number != number)
      return fail("rank 0 has met another process as rank " + textOf(rank) +
                  "; give each process its own rank");
    number = leader;
    return finish(*rankEntries);
  }

  RendezvousResult finish(std::vector<RankEntry> &rankEntries) {
    if (broken)
      return fail("the store does not answer");
    for (RankEntry &guest : rankEntries)
      result.said.push_back(std::move(guest.says));
    result.epoch = number;
    return std::move(result);
  }

  static constexpr double kShort = 0.02;
  /// Rank 0 answers at its deadline, which may be a little later than ours.
  static constexpr double kGrace = 3;
  RendezvousStore store;
  int64_t rank, ranks;
  double timeout;
  Clock::time_point begun;
  std::string number;
  double pause = kShort, grace = 0;
  bool broken = false;
  RendezvousResult result;
};

} // namespace commsir::group

#endif // COMMSIR_RUNTIME_SUPPORT_RENDEZVOUS_H
