//===- fuzz-capi.cpp - Random sequences of calls of the C API -------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input is a program: each byte selects a call or an argument. Handles are
// null, alive, ended, or of another kind; numbers have extreme values. Groups
// have one rank, and waits end soon. Buffers are as large as the calls say,
// because C cannot check that; but windows may have been released.
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/commsir.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr const char kKernel[] =
    "comms.kernel @k(%x: memref<4xf32>) attributes {blocks = 1} {\n"
    "  comms.return\n}\n";

/// A store of one process.
class MapStore {
public:
  commsir_store face() { return {sizeof(commsir_store), this, set, get}; }

private:
  static int set(void *self, const char *key, const void *data, size_t bytes) {
    static_cast<MapStore *>(self)->values[key].assign(
        static_cast<const char *>(data), bytes);
    return 0;
  }
  static int get(void *self, const char *key, double, void **data,
                 size_t *bytes) {
    auto &values = static_cast<MapStore *>(self)->values;
    auto it = values.find(key);
    if (it == values.end())
      return 1;
    *bytes = it->second.size();
    *data = std::malloc(*bytes + 1);
    std::memcpy(*data, it->second.data(), *bytes);
    return 0;
  }
  std::map<std::string, std::string> values;
};

class Player {
public:
  Player(const uint8_t *data, size_t size) : at(data), end(data + size) {}
  ~Player() {
    for (void *group : groups)
      commsir_group_destroy(static_cast<commsir_group *>(group));
    for (void *p2p : mails)
      commsir_p2p_destroy(static_cast<commsir_p2p *>(p2p));
  }

  void play() {
    for (int calls = 0; at != end && calls < 100; ++calls) {
      if (byte() % 4 == 0)
        make();
      else if (byte() % 2)
        callGroup();
      else
        callOther();
      if (!commsir_error_message())
        std::abort();
    }
  }

private:
  uint8_t byte() { return at == end ? 0 : *at++; }

  /// Null, one of `own`, or one of any kind, be it over or not.
  template <typename T>
  T *pick(const std::vector<void *> &own) {
    uint8_t which = byte();
    const std::vector<void *> &from = which % 8 == 1 ? all : own;
    if (which % 16 == 0 || from.empty())
      return nullptr;
    return static_cast<T *>(from[which / 8 % from.size()]);
  }
  int64_t number() {
    static constexpr int64_t kNumbers[] = {
        0,  1,   0,         2,         -1,        3,         4,       7,
        64, 256, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 1 << 20, -1000};
    return kNumbers[byte() % std::size(kNumbers)];
  }
  /// The size of a struct, sometimes a smaller one or a number that is no size.
  size_t structSize(size_t whole) {
    static constexpr size_t kBad[] = {0, 7, 4104, SIZE_MAX};
    uint8_t which = byte();
    if (which % 8)
      return whole;
    return which % 16 ? kBad[which / 16 % 4] : which / 16 * 8 % (whole + 8);
  }
  double seconds() {
    static constexpr double kSeconds[] = {0.001, 0.002, 0.005, -1, 1e-300};
    return kSeconds[byte() % std::size(kSeconds)];
  }
  const char *text() {
    static const char *const kTexts[] = {
        "",           nullptr, "all_reduce", "sum",  "f32",          "bf16",
        "one_shot",   "{}",    "broadcast",  "ll",   "{\"blocks\":", "\xff\xfe",
        "all_gather", "[]",    "nonsense",   "index"};
    return kTexts[byte() % std::size(kTexts)];
  }
  /// Memory of 256 bytes, or of a window, or none.
  void *memory() {
    uint8_t which = byte();
    if (which % 8 == 0)
      return nullptr;
    if (which % 2 && !windows.empty())
      return windows[which / 8 % windows.size()];
    return plain.data();
  }
  void keep(std::vector<void *> &own, void *made) {
    if (!made)
      return;
    own.push_back(made);
    all.push_back(made);
  }

  void make() {
    commsir_store face = store.face();
    std::string name = "n" + std::to_string(++made);
    switch (byte() % 4) {
    case 0:
    case 1: {
      commsir_group_options options = {};
      options.size = structSize(sizeof options);
      options.name = name.c_str();
      options.ranks = byte() % 8 ? 1 : number();
      options.rank = byte() % 8 ? 0 : number();
      // Others would be waited for.
      options.ranks = options.ranks > 1 ? 1 : options.ranks;
      options.device = -1;
      options.timeout = 0.05;
      commsir_group *group = nullptr;
      if (groups.size() < 4)
        (void)commsir_group_create(&options, byte() % 16 ? &face : nullptr,
                                   &group);
      return keep(groups, group);
    }
    case 2: {
      commsir_p2p *p2p = nullptr;
      if (mails.size() < 3)
        (void)commsir_p2p_create(byte() % 8 ? name.c_str() : text(),
                                 byte() % 8 ? 0 : number(),
                                 byte() % 8 ? 2 : number() % 8, &face, &p2p);
      return keep(mails, p2p);
    }
    default: {
      commsir_kernel *kernel = nullptr;
      (void)commsir_group_kernel(
          pick<commsir_group>(groups), byte() % 8 ? kKernel : text(),
          byte() % 2 ? "k" : text(), byte() % 2 ? nullptr : text(), &kernel);
      return keep(kernels, kernel);
    }
    }
  }

  void callGroup() {
    auto *group = pick<commsir_group>(groups);
    switch (byte() % 16) {
    case 0:
      return commsir_group_close(group);
    case 1:
      windows.clear(); // Those of the group are unmapped.
      return commsir_group_destroy(group);
    case 2:
      windows.clear();
      return commsir_group_drop(group);
    case 3:
      return (void)commsir_group_abort(group, text());
    case 4:
      return (void)commsir_group_set_timeout(group, seconds());
    case 5:
      (void)commsir_group_poll(group);
      commsir_free(commsir_group_ended(group));
      return commsir_free(commsir_group_stats(group));
    case 6: {
      void *base = nullptr;
      static constexpr size_t kBytes[] = {256, 512, 4096, SIZE_MAX};
      if (commsir_window_allocate_for(group, kBytes[byte() % 4], text(),
                                      &base) == COMMSIR_OK &&
          base) {
        // It stays mapped: C may look at it when it is released.
        commsir_window_keep(group, base);
        windows.push_back(base);
      }
      return;
    }
    case 7:
      return (void)commsir_window_release(group, memory());
    case 8: {
      void *own = memory();
      std::array<uint64_t, 1> parts{reinterpret_cast<uint64_t>(own)};
      (void)commsir_window_adopt(group, own, 256,
                                 byte() % 8 ? parts.data() : nullptr);
      return;
    }
    case 9:
      return commsir_window_forget(group, memory());
    case 10:
      (void)commsir_window_contains(group, memory(), size_t(number()));
      return (void)commsir_window_peer(group, memory(), number());
    case 11:
      return (void)(byte() % 2 ? commsir_put(group, number(), memory(),
                                             memory(), byte(), nullptr)
                               : commsir_get(group, number(), memory(),
                                             memory(), byte(), nullptr));
    case 12: {
      int64_t first = 0;
      return (void)(byte() % 2 ? commsir_signals_reserve(
                                     group, number() % 100000, &first)
                               : commsir_signals_release(group, number()));
    }
    case 13:
      return callSignals(group);
    default:
      return callCollective(group);
    }
  }

  void callSignals(commsir_group *group) {
    int64_t value = 0;
    switch (byte() % 7) {
    case 5:
      return (void)commsir_signal_others(group, number(), number(), nullptr);
    case 6:
      return (void)commsir_take_from_others(group, number(), number(), nullptr);
    case 0:
      return (void)commsir_signal(group, number(), number(), byte() % 3,
                                  number(), nullptr);
    case 1:
      return (void)commsir_wait_signal(group, number(), byte() % 3, number(),
                                       number(), seconds(), nullptr);
    case 2:
      return (void)commsir_take_signal(group, number(), number(), number(),
                                       nullptr);
    case 3:
      return (void)commsir_read_signal(group, number(),
                                       byte() % 8 ? &value : nullptr);
    default:
      return (void)commsir_reset_signal(group, number(), nullptr);
    }
  }

  void callCollective(commsir_group *group) {
    commsir_collective call = {};
    call.size = structSize(sizeof call);
    call.op = text();
    call.reduction = text();
    call.type = text();
    call.root = number();
    call.peer = number();
    call.input = memory();
    call.output = memory();
    // As much as there is.
    call.input_elements = byte() % 8 ? byte() % 33 : -1;
    call.output_elements = byte() % 8 ? byte() % 33 : -1;
    call.algorithm = byte() % 2 ? nullptr : text();
    call.protocol = byte() % 2 ? nullptr : text();
    const commsir_collective *given = byte() % 16 ? &call : nullptr;
    commsir_free(commsir_group_why_not(group, given));
    (void)commsir_group_collective(group, given, nullptr);
    (void)commsir_group_compare(group, byte() % 8 ? text() : nullptr, nullptr);
    callPrepared(group, given);
  }

  void callPrepared(commsir_group *group, const commsir_collective *call) {
    commsir_prepare_options options = {structSize(sizeof options), seconds()};
    commsir_prepared *made = nullptr;
    if (commsir_prepare(group, call, byte() % 2 ? &options : nullptr, &made) ==
        COMMSIR_OK)
      keep(prepared, made);
    auto *one = pick<commsir_prepared>(prepared);
    // memory() holds more than the most elements that are prepared above.
    (void)commsir_launch(one, memory(), memory(), nullptr);
    if (byte() % 4 == 0)
      commsir_prepared_release(one);
  }

  void callOther() {
    switch (byte() % 10) {
    case 0: {
      commsir_argument argument = {memory(), 16};
      return (void)commsir_kernel_launch(pick<commsir_kernel>(kernels),
                                         byte() % 8 ? &argument : nullptr,
                                         byte() % 3 ? 1 : 0, nullptr);
    }
    case 1:
      return commsir_free(
          commsir_kernel_describe(pick<commsir_kernel>(kernels)));
    case 2:
    case 3: {
      // What is under way stays where it is.
      commsir_message message = {structSize(sizeof message),
                                 number(),
                                 number(),
                                 mail.data(),
                                 byte(),
                                 text()};
      commsir_transfer *transfer = nullptr;
      auto *p2p = pick<commsir_p2p>(mails);
      const commsir_message *given = byte() % 16 ? &message : nullptr;
      (void)(byte() % 2 ? commsir_p2p_send(p2p, given, &transfer)
                        : commsir_p2p_receive(p2p, given, &transfer));
      return keep(transfers, transfer);
    }
    case 4: {
      auto *transfer = pick<commsir_transfer>(transfers);
      (void)commsir_transfer_wait(transfer, seconds());
      (void)commsir_transfer_is_over(transfer);
      return (void)commsir_transfer_source(transfer);
    }
    case 5:
      return commsir_transfer_free(pick<commsir_transfer>(transfers));
    case 6: {
      auto *p2p = pick<commsir_p2p>(mails);
      int reached = 0;
      (void)commsir_p2p_confirm(p2p);
      return (void)commsir_p2p_reaches(p2p, number(), seconds(), &reached);
    }
    case 7:
      return (
          void)(byte() % 2
                    ? commsir_p2p_abort(pick<commsir_p2p>(mails), text())
                    : commsir_p2p_leave(pick<commsir_p2p>(mails), seconds()));
    case 8:
      return (void)commsir_p2p_destroy(pick<commsir_p2p>(mails));
    default: {
      char *result = nullptr;
      (void)commsir_compile(text(), byte() % 8 ? &result : nullptr);
      return commsir_free(result);
    }
    }
  }

  const uint8_t *at, *end;
  MapStore store;
  int made = 0;
  std::vector<void *> groups, kernels, mails, transfers, prepared, all, windows;
  alignas(64) std::array<char, 4096> plain{};
  alignas(64) std::array<char, 256> mail{};
};

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  // Kernels are compiled once.
  llvm::SmallString<128> cache;
  if (!llvm::sys::fs::createUniqueDirectory("fuzz-capi", cache))
    ::setenv("COMMSIR_CACHE_DIR", cache.c_str(), 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Player(data, size).play();
  return 0;
}
