//===- Request.cpp - The JSON that callers ask with -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/Request.h"

#include "dialect/Spelling.h"
#include "runtime/driver/OptionValues.h"
#include "runtime/support/Json.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace commsir;
using namespace commsir::capi;
using llvm::json::Value;

static llvm::Error bad(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

namespace {

/// Reads one value; says what was wanted instead where it is no such value.
using Reader = std::function<llvm::Error(const Value &)>;

struct Key {
  llvm::StringRef name;
  Reader read;
};

} // namespace

static Reader text(std::string &into) {
  return [&into](const Value &value) -> llvm::Error {
    auto string = value.getAsString();
    if (!string)
      return bad("expected a string");
    into = string->str();
    return llvm::Error::success();
  };
}

/// One of a few words.
static Reader word(std::string &into, std::vector<llvm::StringRef> words) {
  return [&into, words](const Value &value) -> llvm::Error {
    auto string = value.getAsString();
    if (!string || !llvm::is_contained(words, *string))
      return bad("expected one of " + llvm::join(words, ", ") +
                 (string ? didYouMean(*string, words) : ""));
    into = string->str();
    return llvm::Error::success();
  };
}

template <typename Integer>
static Reader number(Integer &into, int64_t least = 0,
                     int64_t most = std::numeric_limits<int64_t>::max()) {
  return [&into, least, most](const Value &value) -> llvm::Error {
    auto integer = value.getAsInteger();
    if (!integer || *integer < least || *integer > most)
      return bad("a whole number of at least " + llvm::Twine(least) +
                 (most == std::numeric_limits<int64_t>::max()
                      ? ""
                      : " and at most " + std::to_string(most)) +
                 " is wanted");
    into = static_cast<Integer>(*integer);
    return llvm::Error::success();
  };
}

static Reader seconds(double &into) {
  return [&into](const Value &value) -> llvm::Error {
    auto real = value.getAsNumber();
    if (!real || !(*real >= 0) || std::isinf(*real))
      return bad("expected a number of seconds");
    into = *real;
    return llvm::Error::success();
  };
}

static Reader flag(bool &into) {
  return [&into](const Value &value) -> llvm::Error {
    auto boolean = value.getAsBoolean();
    if (!boolean)
      return bad("expected true or false");
    into = *boolean;
    return llvm::Error::success();
  };
}

/// A whole number so that nothing of it is lost, another with all its digits.
static std::optional<std::string> renderNumber(const Value &value) {
  auto real = value.getAsNumber();
  bool isMinusZero = real && *real == 0 && std::signbit(*real);
  if (auto integer = value.getAsInteger(); integer && !isMinusZero)
    return std::to_string(*integer);
  if (real)
    return llvm::formatv("{0:e17}", *real).str();
  if (auto boolean = value.getAsBoolean())
    return *boolean ? "1" : "0";
  // JSON has no word for these.
  if (auto name = value.getAsString())
    if (*name == "inf" || *name == "-inf" || *name == "nan")
      return name->str();
  return std::nullopt;
}

/// An object whose values `read` takes, each with its name.
static Reader
object(std::function<llvm::Error(llvm::StringRef, const Value &)> read) {
  return [read](const Value &value) -> llvm::Error {
    const llvm::json::Object *fields = value.getAsObject();
    if (!fields)
      return bad("expected an object {name: value}");
    for (const auto &field : *fields)
      if (llvm::Error error = read(field.first, field.second))
        return bad("'" + llvm::StringRef(field.first) +
                   "': " + llvm::toString(std::move(error)));
    return llvm::Error::success();
  };
}

static Reader shapes(driver::HostData &host) {
  return object(
      [&host](llvm::StringRef name, const Value &value) -> llvm::Error {
        llvm::SmallVector<int64_t> shape;
        const llvm::json::Array *dims = value.getAsArray();
        for (size_t i = 0; dims && i < dims->size(); ++i)
          shape.push_back((*dims)[i].getAsInteger().value_or(-1));
        if (!dims || llvm::any_of(shape, [](int64_t dim) { return dim < 0; }))
          return bad("expected a shape, as in [8, 64]");
        host.shapes[name] = std::move(shape);
        return llvm::Error::success();
      });
}

static Reader types(driver::HostData &host) {
  return object(
      [&host](llvm::StringRef name, const Value &value) -> llvm::Error {
        auto type = value.getAsString();
        if (!type)
          return bad("expected an element type, as in \"bf16\"");
        host.types[name] = type->str();
        return llvm::Error::success();
      });
}

static Reader scalars(driver::HostData &host) {
  return object(
      [&host](llvm::StringRef name, const Value &value) -> llvm::Error {
        std::vector<std::string> values;
        const llvm::json::Array *many = value.getAsArray();
        for (const Value &one : many ? llvm::ArrayRef<Value>(*many)
                                     : llvm::ArrayRef<Value>(value)) {
          auto number = renderNumber(one);
          if (!number)
            return bad("expected a number, or one for each rank");
          values.push_back(std::move(*number));
        }
        host.scalars[name] = std::move(values);
        return llvm::Error::success();
      });
}

/// Generators and files, as comms-run takes them.
static Reader bindings(std::vector<driver::Binding> &into) {
  return object(
      [&into](llvm::StringRef name, const Value &value) -> llvm::Error {
        auto text = value.getAsString();
        if (!text)
          return bad("expected a string, as in \"random:1\"");
        into.push_back({name.str(), text->str()});
        return llvm::Error::success();
      });
}

static Reader devices(std::vector<int> &into) {
  return [&into](const Value &value) -> llvm::Error {
    const llvm::json::Array *list = value.getAsArray();
    if (!list)
      return bad("expected a list of GPUs, as in [0, 1]");
    for (const Value &one : *list) {
      auto device = one.getAsInteger();
      if (!device || *device < 0 || *device > 1023)
        return bad("expected a list of GPUs, as in [0, 1]");
      into.push_back(int(*device));
    }
    return llvm::Error::success();
  };
}

/// One name or a list of names.
static Reader names(std::function<llvm::Error(llvm::StringRef name)> take) {
  return [take = std::move(take)](const Value &value) -> llvm::Error {
    if (auto one = value.getAsString())
      return take(*one);
    const llvm::json::Array *list = value.getAsArray();
    if (!list)
      return bad("expected a name or a list of names");
    for (const Value &one : *list) {
      auto name = one.getAsString();
      if (!name)
        return bad("expected a name or a list of names");
      if (llvm::Error error = take(*name))
        return error;
    }
    return llvm::Error::success();
  };
}

static std::vector<Key> listKeys(Request &request, int64_t &ranks,
                                 std::optional<uint64_t> &seed) {
  driver::Options &options = request.options;
  return {
      {"source", text(request.source)},
      {"file", text(options.file)},
      {"kernel", text(options.kernel)},
      {"ranks", number(ranks)},
      {"blocks", number(options.blocks)},
      {"algorithm", text(options.algorithm)},
      {"protocol", text(options.protocol)},
      {"check", flag(options.check)},
      {"check_events", number(options.checkEvents)},
      {"check_launches", number(request.checkLaunches)},
      {"order", text(request.order)},
      {"target", word(options.target, {"cpu", "cuda"})},
      {"threads", number(options.threads, 0, 1024)},
      {"cluster", number(options.cluster, 0, 16)},
      {"impl", word(options.impl, {"", "nccl"})},
      {"shapes", shapes(request.host)},
      {"produce", word(request.produce,
                       {"ir", "lowered", "llvm", "ptx", "explain", "check"})},
      {"chip", text(request.chip)},
      {"tile_size", number(request.tileSize)},
      {"locations", flag(request.locations)},
      {"types", types(request.host)},
      {"scalars", scalars(request.host)},
      {"inputs", bindings(options.inputs)},
      {"launches", number(options.launches, 1, driver::maxLaunches)},
      {"seed",
       [&seed](const Value &value) -> llvm::Error {
         seed.emplace();
         return number(*seed)(value);
       }},
      {"shuffle", flag(options.seeded)},
      {"fuzz", number(options.fuzzSchedules)},
      {"fast", flag(options.fast)},
      {"memory",
       [&options](const Value &value) -> llvm::Error {
         std::string name;
         if (llvm::Error error = word(name, {"plain", "weak"})(value))
           return error;
         options.weak = name == "weak";
         return llvm::Error::success();
       }},
      {"races",
       [&options](const Value &value) -> llvm::Error {
         std::string name;
         if (llvm::Error error = word(name, {"stop", "ignore"})(value))
           return error;
         options.ignoreRaces = name == "ignore";
         return llvm::Error::success();
       }},
      {"breaks", names([&options](llvm::StringRef name) {
         return driver::readBroken("breaks", name, options.broken);
       })},
      {"same", names([&options](llvm::StringRef name) {
         options.sameOnRanks.push_back(name.str());
         return llvm::Error::success();
       })},
      {"vary", names([&options](llvm::StringRef name) {
         options.varied.push_back(name.str());
         return llvm::Error::success();
       })},
      {"workers", number(options.workers, 0, 4096)},
      {"max_steps", number(options.maxSteps)},
      {"time_limit", seconds(options.timeLimit)},
      {"total_time", seconds(options.totalTime)},
      {"timeout",
       [&options](const Value &value) {
         return seconds(options.timeout.emplace())(value);
       }},
      {"memory_limit", number(options.memoryLimit)},
      {"trace", text(options.trace)},
      {"graph", flag(options.graph)},
      {"windows", word(options.windows, {"auto", "nccl", "plain"})},
      {"devices", devices(options.devices)},
  };
}

/// Rejects combinations of options that comms-run rejects, too.
static llvm::Error checkTogether(const driver::Options &options) {
  if (options.fuzzSchedules == 1)
    return bad("fuzz=1 compares nothing; take at least 2 schedules");
  if (options.fuzzSchedules && options.fast)
    return bad("fuzz and fast exclude each other: schedules that are compared "
               "are drawn from seeds");
  if (options.fuzzSchedules && !options.trace.empty())
    return bad("fuzz and trace exclude each other: trace one schedule by its "
               "seed");
  if (options.fast && options.seeded)
    return bad("fast and seed exclude each other: a seed gives one schedule "
               "only where one worker runs it");
  if (options.weak && (options.fast || options.target != "cpu"))
    return bad("memory='weak' is drawn from a seed on the CPU: leave out fast "
               "and target");
  if (!options.weak && (options.ignoreRaces || options.broken))
    return bad("races and breaks are of a run with memory='weak'");
  if (options.timeout && options.target == "cpu")
    return bad(
        "timeout limits waits on GPUs (target 'cuda'): on the CPU "
        "time_limit ends a run after so many seconds, and a block that waits "
        "forever is reported at once");
  return llvm::Error::success();
}

llvm::Error capi::parseRequest(llvm::StringRef json, Request &request) {
  auto parsed = readJson(json);
  if (!parsed)
    return bad("the request is not JSON: " +
               llvm::toString(parsed.takeError()));
  const llvm::json::Object *fields = parsed->getAsObject();
  if (!fields)
    return bad("the request is not a JSON object");
  request.options.file = "kernel.mlir";
  int64_t ranks = 0;
  std::optional<uint64_t> seed;
  std::vector<Key> keys = listKeys(request, ranks, seed);
  for (const auto &field : *fields) {
    llvm::StringRef name = field.first;
    if (field.second.getAsNull()) // As if it were not there.
      continue;
    auto key =
        llvm::find_if(keys, [&](const Key &key) { return key.name == name; });
    if (key == keys.end()) {
      llvm::SmallVector<llvm::StringRef> names;
      for (const Key &known : keys)
        names.push_back(known.name);
      return bad("there is no option '" + name + "'" + didYouMean(name, names));
    }
    if (llvm::Error error = key->read(field.second))
      return bad("option '" + name + "': " + llvm::toString(std::move(error)));
  }
  if (ranks)
    request.options.ranks = ranks;
  if (seed) {
    request.options.seed = *seed;
    request.options.seeded = true;
  }
  request.host.source = request.source;
  return checkTogether(request.options);
}
