//===- Plan.cpp - The plan of a comms-bench run ---------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/bench/Plan.h"

#include "dialect/Spelling.h"
#include "lowering/channels/Protocol.h"
#include "lowering/collectives/Algorithm.h"
#include "lowering/collectives/CollectiveInfo.h"
#include "lowering/nvvm/PtxEmission.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <set>

using namespace commsir;
using namespace commsir::tune;
using driver::Element;

static llvm::Error usage(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

std::vector<BenchCase> Plan::problems() const {
  std::vector<BenchCase> all;
  for (Operation operation : operations)
    for (Element type : types) {
      if (!isOnRows(operation))
        for (int64_t bytes : sizes)
          all.push_back({operation, type, ranks, bytes});
      else
        for (int64_t columns : hidden)
          for (int64_t count : rows)
            all.push_back(
                {operation, type, ranks,
                 count * columns * int64_t(driver::elementBytes(type)),
                 columns});
    }
  return all;
}

/// All combinations of attributes.
static std::vector<KernelNumbers> combineNumbers(const Plan &plan) {
  std::vector<KernelNumbers> all = {{}};
  for (const auto &[name, values] : plan.numbers) {
    std::vector<KernelNumbers> longer;
    for (const KernelNumbers &some : all)
      for (std::optional<int64_t> value : values) {
        longer.push_back(some);
        if (value)
          longer.back().push_back({name, *value});
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<KernelChoice> Plan::choices() const {
  std::vector<KernelChoice> all;
  if (!ours)
    return all;
  std::vector<KernelNumbers> attributes = combineNumbers(*this);
  for (const std::string &algorithm : algorithms)
    for (const std::string &protocol : protocols)
      for (int64_t block : blocks)
        for (int64_t thread : threads)
          for (int64_t cluster : clusters)
            for (const KernelNumbers &numbers : attributes)
              all.push_back(
                  {algorithm, protocol, block, thread, cluster, numbers});
  return all;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static constexpr int64_t kMaxSize = int64_t(1) << 40;

/// Reads bytes with an optional suffix K, M, G, a part of the list `whole`.
static llvm::Expected<int64_t>
readSize(llvm::StringRef option, llvm::StringRef text, llvm::StringRef whole) {
  llvm::StringRef digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    size_t place = llvm::StringRef("KMG").find(llvm::toUpper(digits.back()));
    if (place != llvm::StringRef::npos) {
      shift = 10 * (place + 1);
      digits = digits.drop_back();
    }
  }
  int64_t value;
  if (digits.getAsInteger(10, value) || value <= 0 ||
      value > (kMaxSize >> shift))
    return usage(
        option + ": '" + whole + "': " +
        (text.empty()
             ? "a size is missing"
             : "'" + text + "' is not a size between 1 byte and 1024G") +
        "; write bytes, or 1K, 64M");
  return value << shift;
}

static llvm::Error readRange(llvm::StringRef text, std::vector<int64_t> &out) {
  auto [first, rest] = text.split("..");
  llvm::Expected<int64_t> low = readSize("--sizes", first.trim(), text);
  if (!low)
    return low.takeError();
  if (!text.contains("..")) {
    out.push_back(*low);
    return llvm::Error::success();
  }
  auto [last, step] = rest.split('*');
  llvm::Expected<int64_t> high = readSize("--sizes", last.trim(), text);
  if (!high)
    return high.takeError();
  int64_t factor = 2;
  if (rest.contains('*') &&
      (step.trim().getAsInteger(10, factor) || factor < 2 || factor > 1024))
    return usage("--sizes: '" + text + "': '" + step +
                 "' is not a factor between 2 and 1024; write 1K..64M*4");
  if (*low > *high)
    return usage("--sizes: '" + text +
                 "' runs from a larger to a smaller size");
  for (int64_t size = *low; size <= *high; size *= factor)
    out.push_back(size);
  return llvm::Error::success();
}

llvm::Expected<std::vector<int64_t>>
commsir::tune::parseSizes(llvm::StringRef text) {
  std::vector<int64_t> sizes;
  for (llvm::StringRef part : llvm::split(text, ','))
    if (llvm::Error error = readRange(part.trim(), sizes))
      return error;
  // One measured twice would be its own baseline.
  std::set<int64_t> seen;
  llvm::erase_if(sizes,
                 [&](int64_t size) { return !seen.insert(size).second; });
  return sizes;
}

static llvm::Error readInt(llvm::StringRef option, llvm::StringRef text,
                           int64_t low, int64_t high, int64_t &out) {
  if (text.getAsInteger(10, out) || out < low || out > high)
    return usage(option + ": '" + text + "' is not a whole number from " +
                 llvm::Twine(low) + " to " + llvm::Twine(high));
  return llvm::Error::success();
}

static llvm::Error readInts(llvm::StringRef option, llvm::StringRef text,
                            int64_t low, int64_t high,
                            std::vector<int64_t> &out) {
  out.clear();
  for (llvm::StringRef part : llvm::split(text, ',')) {
    int64_t value;
    if (llvm::Error error = readInt(option, part.trim(), low, high, value))
      return error;
    if (!llvm::is_contained(out, value))
      out.push_back(value);
  }
  return llvm::Error::success();
}

static llvm::Error readOperations(Plan &plan, llvm::StringRef text) {
  plan.operations.clear();
  auto add = [&](Operation operation) {
    if (!llvm::is_contained(plan.operations, operation))
      plan.operations.push_back(operation);
  };
  if (text == "all") {
    llvm::for_each(allOperations(), add);
    return llvm::Error::success();
  }
  for (llvm::StringRef part : llvm::split(text, ',')) {
    if (part.trim() == "rows") {
      llvm::for_each(rowOperations(), add);
      continue;
    }
    llvm::Expected<Operation> operation = parseOperation(part.trim());
    if (!operation)
      return usage("--op: " + llvm::toString(operation.takeError()));
    add(*operation);
  }
  return llvm::Error::success();
}

/// Types that are measured, as --types names them.
static constexpr llvm::StringLiteral kTypes =
    "bf16, f16, f32, f8E4M3FN, f8E5M2, i32, i8";

static llvm::Error readTypes(Plan &plan, llvm::StringRef text) {
  plan.types.clear();
  llvm::SmallVector<llvm::StringRef> known;
  kTypes.split(known, ", ");
  for (llvm::StringRef part : llvm::split(text, ',')) {
    std::optional<Element> type = driver::parseElement(part.trim());
    if (!type || !llvm::is_contained(known, driver::elementName(*type)))
      return usage("--types: there is no type " +
                   describeUnknown(part.trim(), known));
    if (!llvm::is_contained(plan.types, *type))
      plan.types.push_back(*type);
  }
  return llvm::Error::success();
}

/// Reads "auto", "all" or names out of `known` into `out`.
static llvm::Error readNames(llvm::StringRef option, llvm::StringRef text,
                             llvm::ArrayRef<llvm::StringRef> known,
                             std::vector<std::string> &out) {
  out.clear();
  auto add = [&](llvm::StringRef name) {
    if (!llvm::is_contained(out, name))
      out.push_back(name.str());
  };
  for (llvm::StringRef part : llvm::split(text, ',')) {
    part = part.trim();
    if (part == "all")
      llvm::for_each(known, add);
    else if (part == "auto")
      add("");
    else if (llvm::is_contained(known, part))
      add(part);
    else
      return usage(option + ": there is no '" + part + "'; write " +
                   llvm::join(known, ", ") + ", all, or auto" +
                   didYouMean(part, known));
  }
  return llvm::Error::success();
}

static llvm::SmallVector<llvm::StringRef> algorithmNames() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const mlir::comms::Algorithm *algorithm : mlir::comms::getAlgorithms())
    names.push_back(algorithm->name);
  return names;
}

static llvm::SmallVector<llvm::StringRef> protocolNames() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const mlir::comms::Protocol *protocol : mlir::comms::getProtocols())
    names.push_back(protocol->name);
  return names;
}

static llvm::Error readPowers(llvm::StringRef option, llvm::StringRef text,
                              int64_t low, int64_t high,
                              std::vector<int64_t> &out) {
  if (llvm::Error error = readInts(option, text, low, high, out))
    return error;
  for (int64_t number : out)
    if (number & (number - 1))
      return usage(option + ": " + llvm::Twine(number) +
                   " is not a power of two; write one from " +
                   llvm::Twine(low) + " to " + llvm::Twine(high));
  return llvm::Error::success();
}

/// Reads "step_bytes=auto,8M": an attribute of kernels and what it is to be.
static llvm::Error readNumber(Plan &plan, llvm::StringRef text) {
  auto [name, list] = text.split('=');
  llvm::SmallVector<llvm::StringRef> names;
  const mlir::comms::KernelNumber *found = nullptr;
  for (const mlir::comms::KernelNumber &number :
       mlir::comms::getKernelNumbers()) {
    names.push_back(number.name);
    if (number.name == name.trim())
      found = &number;
  }
  if (!found || list.empty())
    return usage("--set: '" + text + "' is not NAME=LIST with a name of " +
                 llvm::join(names, ", ") + "; write step_bytes=auto,8M" +
                 didYouMean(name.trim(), names));
  std::vector<std::optional<int64_t>> values;
  for (llvm::StringRef part : llvm::split(list, ',')) {
    part = part.trim();
    if (part == "auto" || (part == "0" && found->least == 0)) {
      values.push_back(part == "0" ? std::optional<int64_t>(0) : std::nullopt);
      continue;
    }
    llvm::Expected<int64_t> value = readSize("--set", part, text);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  // Given again, as of other options, the last one counts.
  llvm::erase_if(plan.numbers,
                 [&](const auto &one) { return one.first == found->name; });
  plan.numbers.push_back({found->name.str(), std::move(values)});
  return llvm::Error::success();
}

static llvm::Error readMemory(Plan &plan, llvm::StringRef text) {
  plan.windows = plan.plain = false;
  for (llvm::StringRef part : llvm::split(text, ',')) {
    if (part.trim() != "windows" && part.trim() != "plain")
      return usage("--memory: '" + part.trim() +
                   "' is neither windows nor plain" +
                   didYouMean(part.trim(), {"windows", "plain"}));
    (part.trim() == "plain" ? plan.plain : plan.windows) = true;
  }
  return llvm::Error::success();
}

static llvm::Error readPositive(llvm::StringRef option, llvm::StringRef text,
                                double most, double &out) {
  if (text.getAsDouble(out) || !(out > 0) || out > most)
    return usage(option + ": '" + text + "' is not a number above 0, up to " +
                 llvm::Twine(int64_t(most)));
  return llvm::Error::success();
}

static llvm::Error readThreshold(Plan &plan, llvm::StringRef text) {
  if (text.getAsDouble(plan.threshold) || !std::isfinite(plan.threshold) ||
      plan.threshold < 0 || plan.threshold >= 100)
    return usage("--threshold: '" + text +
                 "' is not a number of per cent from 0 to 100");
  plan.threshold /= 100;
  return llvm::Error::success();
}

static llvm::Error readText(llvm::StringRef option, llvm::StringRef text,
                            std::string &out) {
  if (text.empty())
    return usage(option + ": the value is empty");
  out = text.str();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {
struct Option {
  llvm::StringLiteral name;
  /// Name of the value in --help; empty: a flag.
  llvm::StringLiteral value;
  llvm::StringLiteral help;
  llvm::Error (*read)(Plan &, llvm::StringRef text);
};
} // namespace

template <bool Plan::*field, bool value>
static llvm::Error setFlag(Plan &plan, llvm::StringRef) {
  plan.*field = value;
  return llvm::Error::success();
}

static constexpr int64_t kMany = int64_t(1) << 30;

static const Option kOptions[] = {
    {"--op", "LIST",
     "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, or all of "
     "these; all_reduce_rmsnorm, all_reduce_rmsnorm_fp8 (with the residual "
     "added), or rows: both [all_reduce]",
     readOperations},
    {"--sizes", "LIST",
     "bytes of one rank's input: 4K, or 1K..64M (doubling), or 1K..64M*4 "
     "[1K..64M*4]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       llvm::Expected<std::vector<int64_t>> sizes = parseSizes(text);
       if (!sizes)
         return sizes.takeError();
       plan.sizes = std::move(*sizes);
       return llvm::Error::success();
     }},
    {"--rows", "LIST",
     "rows of the operations on rows [1,8,64,512; --tune: 1,2,8,32,64,128,512]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readInts("--rows", text, 1, 1 << 24, plan.rows);
     }},
    {"--hidden", "LIST",
     "elements of a row [8192; --tune: 4096 to 8192 by 1024]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readInts("--hidden", text, 1, 1 << 16, plan.hidden);
     }},
    {"--types", "LIST", "bf16, f16, f32, f8E4M3FN, f8E5M2, i32, i8 [bf16]",
     readTypes},
    {"--target", "NAME", "cuda: one GPU per rank; cpu: this processor [cuda]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       if (text != "cuda" && text != "cpu")
         return usage("--target: '" + text + "' is neither cuda nor cpu" +
                      didYouMean(text, {"cuda", "cpu"}));
       plan.target = text.str();
       return llvm::Error::success();
     }},
    {"--ranks", "N", "number of ranks [cuda: every GPU; cpu: 4]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readInt("--ranks", text, 1, 1024, plan.ranks);
     }},
    {"--algorithm", "LIST", "names, all, or auto: the compiler's choice [auto]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readNames("--algorithm", text, algorithmNames(), plan.algorithms);
     }},
    {"--protocol", "LIST", "names, all, or auto [auto]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readNames("--protocol", text, protocolNames(), plan.protocols);
     }},
    {"--blocks", "LIST",
     "blocks of a rank; 0: chosen (see --explain); on the processor one [0]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readInts("--blocks", text, 0, 1 << 16, plan.blocks);
     }},
    {"--threads", "LIST",
     "threads of a CTA, powers of two from 32 to 1024 [chosen]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readPowers("--threads", text, 32, 1024, plan.threads);
     }},
    {"--cluster", "LIST", "CTAs of a block, powers of two up to 16 [chosen]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readPowers("--cluster", text, 1, 16, plan.clusters);
     }},
    {"--set", "NAME=LIST",
     "an attribute comms.NAME of our kernels (round_bytes, step_bytes, "
     "step_fence, late_copies, held_tiles, batch_loads: see comms.kernel in "
     "docs/Spec.md) and its values, auto: without it; repeat it for other "
     "names",
     readNumber},
    {"--graph", "", "calls are captured in a CUDA graph and replayed [so]",
     setFlag<&Plan::graph, true>},
    {"--eager", "",
     "calls are launched one after the other; with --graph: both, side by side",
     setFlag<&Plan::eager, true>},
    {"--memory", "LIST",
     "where our arrays are: windows, plain [windows]; NCCL's are in both",
     readMemory},
    {"--calls", "C", "calls in a replay, fewer where arrays are large [60]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readInt("--calls", text, 1, 100000, plan.calls);
     }},
    {"--replays", "P", "timed replays in a repetition [9]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readInt("--replays", text, 1, 100000, plan.replays);
     }},
    {"--repetitions", "R",
     "repetitions of every contender; fewer than 5 give little confidence [5]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readInt("--repetitions", text, 1, 100000, plan.repetitions);
     }},
    {"--timeout", "S",
     "seconds that a kernel of ours waits for a peer [10; --tune: 2]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readPositive("--timeout", text, 3600, plan.timeout);
     }},
    {"--least", "RATIO",
     "the best of ours must be this fast against the best baseline, with the "
     "lower end of the interval; else the exit status is 1",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readPositive("--least", text, 100, plan.least);
     }},
    {"--acceptance", "",
     "the measurements of a release: every power of two from 16 B to 1 GiB, "
     "--graph --eager --memory windows,plain --least 0.98",
     [](Plan &plan, llvm::StringRef) -> llvm::Error {
       plan.sizes = llvm::cantFail(parseSizes("16..1G"));
       plan.graph = plan.eager = plan.windows = plan.plain = true;
       plan.least = 0.98;
       return llvm::Error::success();
     }},
    {"--tune", "FILE",
     "autotune: find the fastest configs and write them as a table (see "
     "COMMSIR_TABLES in docs/Benchmarking.md); a stopped run resumes where it "
     "was",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readText("--tune", text, plan.tune);
     }},
    {"--budget", "S", "seconds that --tune may take [600]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readInt("--budget", text, 1, 1 << 20, plan.budget);
     }},
    {"--explain", "", "measure nothing; print what would be chosen, and why",
     setFlag<&Plan::explain, true>},
    {"--chip", "NAME", "--explain: of the GPU [sm_90]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       int64_t number;
       llvm::StringRef digits = text.rtrim("af");
       if (!digits.consume_front("sm_") || digits.getAsInteger(10, number))
         return usage("--chip: '" + text + "' is not a chip; write sm_90");
       if (std::string mistake = mlir::comms::findChipMistake(text);
           !mistake.empty())
         return usage("--chip: " + mistake);
       return readText("--chip", text, plan.chip);
     }},
    {"--device", "NAME", "--explain: of the GPU [any]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readText("--device", text, plan.device);
     }},
    {"--seed", "S", "of the random inputs [1]",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       int64_t seed = 1;
       llvm::Error error = readInt("--seed", text, 0, kMany, seed);
       plan.seed = seed;
       return error;
     }},
    {"--no-baselines", "", "measure only CommsIR",
     setFlag<&Plan::baselines, false>},
    {"--only-baselines", "", "measure everything but CommsIR",
     setFlag<&Plan::ours, false>},
    {"--no-check", "", "do not prove each kernel free of deadlock first",
     setFlag<&Plan::check, false>},
    {"--full", "", "show every contender, not only the best of ours",
     setFlag<&Plan::full, true>},
    {"--json", "FILE", "write the report with every sample",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readText("--json", text, plan.json);
     }},
    {"--svg", "FILE", "draw time against size",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readText("--svg", text, plan.svg);
     }},
    {"--quiet", "", "no progress on standard error",
     setFlag<&Plan::quiet, true>},
    {"--show", "FILE",
     "measure nothing; show this report (repeat it to see several as one, for "
     "example with that of bench_torch.py)",
     [](Plan &plan, llvm::StringRef text) -> llvm::Error {
       return readText("--show", text, plan.show.emplace_back());
     }},
    {"--threshold", "PERCENT", "--compare: smaller changes do not count [1]",
     readThreshold},
    {"--help", "", "print this", setFlag<&Plan::help, true>},
    {"--version", "", "print the version", setFlag<&Plan::version, true>},
};

static const Option *findOption(llvm::StringRef name) {
  for (const Option &option : kOptions)
    if (option.name == name)
      return &option;
  return nullptr;
}

static llvm::Error unknownOption(llvm::StringRef name) {
  if (!name.starts_with("-"))
    return usage("'" + name +
                 "' is not an option, and files are only taken by options: the "
                 "collectives that are measured are named by --op, and reports "
                 "shown by --show (comms-run runs kernels)");
  llvm::SmallVector<llvm::StringRef> names = {"--compare"};
  for (const Option &option : kOptions)
    names.push_back(option.name);
  return usage("unknown argument '" + name + "'" +
               didYouMean(name, names, "; --help lists all"));
}

//===----------------------------------------------------------------------===//
// Command line
//===----------------------------------------------------------------------===//

static llvm::Error
readArguments(Plan &plan, llvm::ArrayRef<const char *> arguments,
              llvm::SmallVectorImpl<llvm::StringRef> &given) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto [name, value] = llvm::StringRef(arguments[i]).split('=');
    bool hasValue = llvm::StringRef(arguments[i]).contains('=');
    if (name == "--compare") {
      if (hasValue || i + 2 >= arguments.size())
        return usage("--compare: two files are needed: --compare OLD.json "
                     "NEW.json");
      plan.compareOld = arguments[++i];
      plan.compareNew = arguments[++i];
      continue;
    }
    const Option *option = findOption(name);
    if (!option)
      return unknownOption(name);
    if (option->value.empty() && hasValue)
      return usage(name + " takes no value");
    if (!option->value.empty() && !hasValue) {
      if (i + 1 >= arguments.size())
        return usage(name + ": a value is missing: " + name + " " +
                     option->value);
      value = arguments[++i];
    }
    if (llvm::Error error = option->read(plan, value))
      return error;
    given.push_back(option->name);
  }
  return llvm::Error::success();
}

/// Refuses what the CPU has not, and fills in what was left open.
static llvm::Error complete(Plan &plan, llvm::ArrayRef<llvm::StringRef> given) {
  if (!plan.ours && !plan.baselines)
    return usage("--no-baselines and --only-baselines leave nothing to "
                 "measure; drop one");
  bool acceptance = llvm::is_contained(given, "--acceptance");
  // --eager alone is eager alone.
  plan.graph =
      !plan.eager || acceptance || llvm::is_contained(given, "--graph");
  if (plan.target == "cpu") {
    for (llvm::StringRef name :
         {"--threads", "--cluster", "--graph", "--acceptance", "--memory",
          "--chip", "--timeout"})
      if (llvm::is_contained(given, name))
        return usage(name + ": the target cpu has none; drop it, or use "
                            "--target cuda");
    plan.graph = false;
    plan.eager = true;
    if (!plan.ranks)
      plan.ranks = 4;
    if (!llvm::is_contained(given, "--calls"))
      plan.calls = 4;
  }
  if (plan.operations.empty() && !plan.tune.empty()) {
    llvm::append_range(plan.operations, allOperations());
    plan.operations.push_back(Operation::AllReduceRmsNorm);
  }
  if (plan.operations.empty())
    plan.operations = {Operation::AllReduce};
  if (plan.rows.empty())
    plan.rows = plan.tune.empty()
                    ? std::vector<int64_t>{1, 8, 64, 512}
                    : std::vector<int64_t>{1, 2, 8, 32, 64, 128, 512};
  if (plan.hidden.empty())
    plan.hidden = plan.tune.empty()
                      ? std::vector<int64_t>{8192}
                      : std::vector<int64_t>{4096, 5120, 6144, 7168, 8192};
  if (!plan.tune.empty()) {
    plan.baselines = false;
    plan.check = false;
    if (!llvm::is_contained(given, "--timeout"))
      plan.timeout = 2;
    if (!plan.budget)
      plan.budget = 600;
    plan.graph = plan.target == "cuda" && plan.graph;
    plan.eager = !plan.graph;
  }
  if (plan.types.empty())
    plan.types = {Element::BF16};
  if (plan.sizes.empty())
    plan.sizes = llvm::cantFail(parseSizes("1K..64M*4"));
  for (auto *names : {&plan.algorithms, &plan.protocols})
    if (names->empty())
      names->push_back("");
  for (auto *numbers : {&plan.blocks, &plan.threads, &plan.clusters})
    if (numbers->empty())
      numbers->push_back(0);
  return llvm::Error::success();
}

/// Refuses sizes of arrays that no operation has.
static llvm::Error refuseSizes(const Plan &plan,
                               llvm::ArrayRef<llvm::StringRef> given) {
  bool rows = llvm::any_of(plan.operations, isOnRows);
  bool flat = !llvm::all_of(plan.operations, isOnRows);
  for (llvm::StringRef name : {"--rows", "--hidden"})
    if (!rows && llvm::is_contained(given, name))
      return usage(name +
                   " requires an operation on rows, and --op has none: drop "
                   "it, or add --op all_reduce_rmsnorm");
  if (!flat && llvm::is_contained(given, "--sizes"))
    return usage("--sizes requires operations on whole arrays, and --op has "
                 "only operations on rows"
                 ": give --rows and --hidden instead");
  return llvm::Error::success();
}

/// Returns which use of the program the options select; empty for a
/// measurement.
static llvm::Expected<llvm::StringRef> findUse(const Plan &plan) {
  llvm::SmallVector<llvm::StringRef> uses;
  if (!plan.compareOld.empty())
    uses.push_back("--compare");
  if (!plan.show.empty())
    uses.push_back("--show");
  if (!plan.tune.empty())
    uses.push_back("--tune");
  if (plan.explain)
    uses.push_back("--explain");
  if (uses.size() > 1)
    return usage(uses[0] + " and " + uses[1] + " exclude each other; drop one");
  return uses.empty() ? "" : uses[0];
}

/// Refuses options of `given` that `use` has no use for.
static llvm::Error refuseBeside(llvm::StringRef use,
                                llvm::ArrayRef<llvm::StringRef> given) {
  static const std::pair<llvm::StringLiteral, llvm::StringLiteral> belongs[] = {
      {"--threshold", "--compare"},
      {"--budget", "--tune"},
      {"--chip", "--explain"},
      {"--device", "--explain"}};
  for (auto [name, to] : belongs)
    if (use != to && llvm::is_contained(given, name))
      return usage(name + " belongs to " + to + "; drop it");
  static constexpr llvm::StringLiteral reports[] = {
      "--show", "--json", "--svg", "--full", "--quiet", "--threshold"};
  if (use == "--compare" || use == "--show")
    for (llvm::StringRef name : given)
      if (!llvm::is_contained(reports, name))
        return usage(name + " applies to measurements, and " + use +
                     " makes none; drop one");
  for (llvm::StringRef name : {"--json", "--svg"})
    if (!use.empty() && use != "--show" && llvm::is_contained(given, name))
      return usage(name + ": " + use + " writes no report; drop it");
  // Ways are tried by --tune, times taken by neither as a measurement does.
  static constexpr llvm::StringLiteral compared[] = {
      "--least", "--acceptance",   "--repetitions",
      "--full",  "--no-baselines", "--only-baselines"};
  static constexpr llvm::StringLiteral configs[] = {
      "--algorithm", "--protocol", "--blocks", "--threads",
      "--cluster",   "--memory",   "--set"};
  static constexpr llvm::StringLiteral timed[] = {
      "--calls", "--replays", "--timeout", "--seed", "--set"};
  for (llvm::StringRef name : given) {
    if (use == "--tune" && llvm::is_contained(configs, name))
      return usage(name + ": --tune tries all of them; drop it");
    bool isIdle = llvm::is_contained(compared, name) ||
                  (use == "--explain" && llvm::is_contained(timed, name));
    if ((use == "--tune" || use == "--explain") && isIdle)
      return usage(name + " is of a " +
                   (use == "--tune" ? "comparison" : "measurement") + ", and " +
                   use + " makes none; drop it");
  }
  return llvm::Error::success();
}

/// Refuses options of a comparison that other options leave nothing for.
static llvm::Error refuseParts(const Plan &plan,
                               llvm::ArrayRef<llvm::StringRef> given) {
  if (!plan.baselines && llvm::is_contained(given, "--least"))
    return usage("--least: --no-baselines leaves nothing to compare with; "
                 "drop one");
  if (!plan.ours)
    for (llvm::StringRef name : {"--algorithm", "--protocol", "--blocks",
                                 "--threads", "--cluster", "--set"})
      if (llvm::is_contained(given, name))
        return usage(name + ": --only-baselines leaves out everything that it "
                            "applies to; drop one");
  if (!plan.json.empty() && plan.json == plan.svg)
    return usage("--json and --svg name one file, '" + plan.json +
                 "'; name two");
  return llvm::Error::success();
}

/// Refuses what would be read and forgotten: options that the way the program
/// is used has no use for.
static llvm::Error refuseIdle(const Plan &plan,
                              llvm::ArrayRef<llvm::StringRef> given) {
  llvm::Expected<llvm::StringRef> use = findUse(plan);
  if (!use)
    return use.takeError();
  if (llvm::Error error = refuseBeside(*use, given))
    return error;
  return refuseParts(plan, given);
}

llvm::Expected<Plan>
commsir::tune::parsePlan(llvm::ArrayRef<const char *> arguments) {
  Plan plan;
  plan.command = "comms-bench";
  for (const char *argument : arguments)
    plan.command += (" " + llvm::StringRef(argument)).str();
  llvm::SmallVector<llvm::StringRef> given;
  if (llvm::Error error = readArguments(plan, arguments, given))
    return error;
  if (plan.help || plan.version)
    return plan;
  if (llvm::Error error = refuseIdle(plan, given))
    return error;
  if (llvm::Error error = complete(plan, given))
    return error;
  if (llvm::Error error = refuseSizes(plan, given))
    return error;
  return plan;
}

std::string commsir::tune::planHelp() {
  std::string text = R"(Usage: comms-bench [OPTION]...
       comms-bench --compare OLD.json NEW.json [--threshold PERCENT]
       comms-bench --show FILE.json [--show FILE.json]... [--svg FILE]
       comms-bench --tune TABLE.json [--budget S] [--op LIST] [--ranks N]
       comms-bench --explain --ranks N [--op LIST] [--sizes LIST]

Measures collectives that CommsIR compiles against those of the libraries on
this host, side by side in one run, and checks every result.

)";
  for (const Option &option : kOptions) {
    std::string head =
        ("  " + option.name + (option.value.empty() ? "" : " ") + option.value)
            .str();
    head.resize(std::max<size_t>(head.size() + 2, 24), ' ');
    // Words fill lines of 80 columns next to the names.
    std::string line = head;
    for (llvm::StringRef word : llvm::split(option.help, ' ')) {
      if (line.size() + word.size() > 79) {
        text += llvm::StringRef(line).rtrim().str() + "\n";
        line = std::string(24, ' ');
      }
      line += word.str() + " ";
    }
    text += llvm::StringRef(line).rtrim().str() + "\n";
  }
  text += R"(
Exit status: 0; 1 a result is wrong, or --compare found something slower or
broken; 2 wrong use, or nothing to run on; 3 nothing of a problem could be run.
)";
  return text;
}
