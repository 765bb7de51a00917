//===- Options.cpp - The command line of comms-run ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table holds every option: what it is called, what it takes, what --help
// says of it, and how it is read. A table and not llvm::cl, because the program
// links LLVM whole and would list hundreds of options that are none of its own.
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <functional>

using namespace commsir::driver;

static llvm::Error usage(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Reads a whole number in [low, high].
static llvm::Error readInt(llvm::StringRef option, llvm::StringRef text,
                           int64_t low, int64_t high, int64_t &out) {
  bool fits = !text.getAsInteger(10, out);
  llvm::APInt any;
  if (!fits && text.ltrim('-').getAsInteger(10, any))
    return usage(option + ": '" + text + "' is not a whole number");
  if (fits && out >= low && out <= high)
    return llvm::Error::success();
  bool isBounded = high != std::numeric_limits<int64_t>::max();
  std::string limits =
      isBounded || !fits
          ? llvm::formatv("lie between {0} and {1}", low, high).str()
          : llvm::formatv("be {0} or more", low).str();
  return usage(option + ": " + text + " is out of range; it must " + limits);
}

static llvm::Error readDouble(llvm::StringRef option, llvm::StringRef text,
                              double &out) {
  if (text.getAsDouble(out) || !std::isfinite(out) || out < 0)
    return usage(option + ": '" + text + "' is not a number of 0 or more");
  return llvm::Error::success();
}

/// Reads a time that is more than none.
static llvm::Error readSeconds(llvm::StringRef option, llvm::StringRef text,
                               double &out) {
  if (text.getAsDouble(out) || !std::isfinite(out) || out <= 0)
    return usage(option + ": '" + text +
                 "' is not a number of seconds above 0");
  return llvm::Error::success();
}

/// Reads a size: bytes, or with a suffix K, M, G, T (powers of 1024).
static llvm::Error readBytes(llvm::StringRef option, llvm::StringRef text,
                             uint64_t &out) {
  llvm::StringRef digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    size_t place = llvm::StringRef("KMGT").find(llvm::toUpper(digits.back()));
    if (place != llvm::StringRef::npos) {
      shift = 10 * (place + 1);
      digits = digits.drop_back();
    }
  }
  if (digits.getAsInteger(10, out) || out == 0 ||
      (out << shift) >> shift != out)
    return usage(option + ": '" + text +
                 "' is not a size; write bytes, or 512M, 8G");
  out <<= shift;
  return llvm::Error::success();
}

static llvm::Error readBinding(llvm::StringRef option, llvm::StringRef text,
                               std::vector<Binding> &out) {
  auto [name, value] = text.split('=');
  if (name.empty() || value.empty())
    return usage(option + ": '" + text + "' is not NAME=VALUE; for example " +
                 option + (option == "--shape" ? " x=8x64" : " x=x-%r.npy"));
  for (const Binding &earlier : out)
    if (earlier.name == name)
      return usage(option + ": '" + name + "' is given twice, as '" +
                   earlier.value + "' and as '" + value + "'");
  out.push_back({name.str(), value.str()});
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
  llvm::Error (*read)(Options &, llvm::StringRef option, llvm::StringRef text);
};

struct Group {
  llvm::StringLiteral title;
  llvm::ArrayRef<Option> options;
};

} // namespace

#define READ                                                                   \
  [](Options & o, llvm::StringRef option, llvm::StringRef text)->llvm::Error
#define FLAG(field)                                                            \
  READ {                                                                       \
    o.field = true;                                                            \
    return llvm::Error::success();                                             \
  }
#define TEXT(field)                                                            \
  READ {                                                                       \
    if (text.empty())                                                          \
      return usage(option + ": the value is empty");                           \
    o.field = text.str();                                                      \
    return llvm::Error::success();                                             \
  }

static constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();
static constexpr int64_t kMaxRanks = 1 << 20;
static constexpr int64_t kMaxBlocks = 1 << 16;
/// Times the programs that fit memory, still below 2^63.
static constexpr int64_t kMaxLaunches = int64_t(1) << 40;

static const Option kWhat[] = {
    {"--kernel", "NAME", "kernel to run, when the file has several",
     TEXT(kernel)},
    {"--ranks", "N",
     "number of ranks; may be left out when the kernel fixes it",
     READ{o.ranks = 0;
return readInt(option, text, 1, kMaxRanks, *o.ranks);
}
}
, {"--blocks", "B",
   "blocks of each rank [the kernel's own, else 1; on GPUs chosen]",
   READ{return readInt(option, text, 1, kMaxBlocks, o.blocks);
}
}
, {"--launches", "K",
   "launch the kernel K times; signals and channels live on between [1]",
   READ{return readInt(option, text, 1, kMaxLaunches, o.launches);
}
}
, {"--first-launch", "K",
   "number of the first launch, for what wraps; signals and counters begin at "
   "0 all the same [1]",
   READ{
       return readInt(option, text, 1, INT64_MAX - kMaxLaunches, o.firstLaunch);
}
}
,
}
;

static const Option kData[] = {
    {"--input", "NAME=FILE",
     "fill an argument: a .npy file (%r is the rank; without %r all ranks get "
     "the same), a number (inf and nan too), zeros, random:SEED (floats in "
     "[-1, 1), integers in [-100, 100]) or iota (numbers the elements of all "
     "ranks, rank after rank). Memory without --input is zero",
     READ{return readBinding(option, text, o.inputs);
}
}
, {"--output", "NAME=FILE", "write an argument after the run; %r is the rank",
   READ{return readBinding(option, text, o.outputs);
}
}
, {"--expect", "NAME=FILE",
   "compare an argument after the run with a .npy file of any number type; a "
   "difference makes the exit status 1",
   READ{return readBinding(option, text, o.expects);
}
}
, {"--shape", "NAME=AxB", "size of a '?' dimension that no file fixes",
   READ{return readBinding(option, text, o.shapes);
}
}
, {"--rtol", "X",
   "allowed difference, relative to the expected value [by element type: "
   "f32 1e-5, f16 2e-3, bf16 1.6e-2, f8 0.13, integers 0]",
   READ{o.rtol = 0;
return readDouble(option, text, *o.rtol);
}
}
, {"--atol", "X",
   "allowed difference on top of that, and of integers [as --rtol; 0 when "
   "only --rtol is given]",
   READ{o.atol = 0;
return readDouble(option, text, *o.atol);
}
}
, {"--bitwise", "", "expected and computed bits must agree", FLAG(bitwise)},
}
;

static const Option kCompile[] = {
    {"--algorithm", "NAME", "algorithm of every collective [the cheapest]",
     TEXT(algorithm)},
    {"--protocol", "NAME", "protocol of every channel [the cheapest]",
     TEXT(protocol)},
    {"--no-check", "", "do not prove the kernel free of deadlock first",
     READ{o.check = false;
return llvm::Error::success();
}
}
, {"--check-events", "N", "how many events the checker may follow",
   READ{return readInt(option, text, 1, kMaxInt, o.checkEvents);
}
}
,
    {"--instrument", "", "record every window access and synchronisation",
     FLAG(instrument)},
    {"--dump-ir", "", "print the IR after all passes on standard output",
     FLAG(dumpIr)},
    {"--dump-object", "FILE", "write the compiled object file",
     TEXT(dumpObject)},
}
;

static const Option kRun[] = {
    {"--seed", "S", "run in the shuffled order that S fixes [round robin]",
     READ{o.seeded = true;
int64_t seed = 0;
llvm::Error error = readInt(option, text, 0, kMaxInt, seed);
o.seed = seed;
return error;
}
}
, {"--fuzz-schedules", "K",
   "run K orders (seeds S, S+1, …), several at a time, and compare their "
   "results bit for bit",
   READ{return readInt(option, text, 2, kMaxInt, o.fuzzSchedules);
}
}
, {"--fast", "", "several workers, no fixed order", FLAG(fast)},
    {"--workers", "W", "threads of --fast and --fuzz-schedules [all cores]",
     READ{int64_t workers = 0;
llvm::Error error = readInt(option, text, 1, 4096, workers);
o.workers = static_cast<unsigned>(workers);
return error;
}
}
, {"--max-steps", "N", "give up after N steps of the scheduler",
   READ{int64_t steps = 0;
llvm::Error error = readInt(option, text, 1, kMaxInt, steps);
o.maxSteps = steps;
return error;
}
}
, {"--time-limit", "SECONDS",
   "give up after that time; with --fuzz-schedules, on each order",
   READ{return readSeconds(option, text, o.timeLimit);
}
}
, {"--memory-limit", "BYTES",
   "refuse to start above this (512M, 8G) [3/4 of the machine's]",
   READ{return readBytes(option, text, o.memoryLimit);
}
}
,
    {"--trace", "FILE", "write the run as a Perfetto trace (ui.perfetto.dev)",
     TEXT(trace)},
}
;

static llvm::Error readTarget(Options &o, llvm::StringRef option,
                              llvm::StringRef text) {
  if (text != "cpu" && text != "cuda")
    return usage(option + ": '" + text +
                 "' is not a target; write cpu or cuda");
  o.target = text.str();
  return llvm::Error::success();
}

/// Reads a power of two in [low, high].
static llvm::Error readPower(llvm::StringRef option, llvm::StringRef text,
                             int64_t low, int64_t high, int64_t &out) {
  if (llvm::Error error = readInt(option, text, low, high, out))
    return error;
  if (!llvm::isPowerOf2_64(out))
    return usage(option + ": " + text +
                 " is not a power of two; write one from " + llvm::Twine(low) +
                 " to " + llvm::Twine(high));
  return llvm::Error::success();
}

static llvm::Error readThreads(Options &o, llvm::StringRef option,
                               llvm::StringRef text) {
  return readPower(option, text, 32, 1024, o.threads);
}

static llvm::Error readCluster(Options &o, llvm::StringRef option,
                               llvm::StringRef text) {
  return readPower(option, text, 1, 16, o.cluster);
}

static llvm::Error readTimeout(Options &o, llvm::StringRef option,
                               llvm::StringRef text) {
  if (llvm::Error error = readSeconds(option, text, o.timeout))
    return error;
  if (o.timeout > 3600)
    return usage(option + ": " + text +
                 " is out of range; it must be at most 3600 seconds");
  return llvm::Error::success();
}

static llvm::Error readWindows(Options &o, llvm::StringRef option,
                               llvm::StringRef text) {
  if (text != "auto" && text != "nccl" && text != "plain")
    return usage(option + ": '" + text + "' is none of auto, nccl and plain");
  o.windows = text.str();
  return llvm::Error::success();
}

static llvm::Error readImpl(Options &o, llvm::StringRef option,
                            llvm::StringRef text) {
  if (text != "nccl" && text != "generated")
    return usage(option + ": '" + text + "' is neither generated nor nccl");
  o.impl = text == "nccl" ? "nccl" : "";
  return llvm::Error::success();
}

static llvm::Error readDevices(Options &o, llvm::StringRef option,
                               llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  o.devices.clear();
  for (llvm::StringRef part : parts) {
    int64_t device = 0;
    if (llvm::Error error = readInt(option, part, 0, 1023, device))
      return error;
    o.devices.push_back(int(device));
  }
  return llvm::Error::success();
}

static const Option kTarget[] = {
    {"--target", "cpu|cuda",
     "run on the CPU world, or each rank on a GPU of this machine [cpu]",
     readTarget},
    {"--threads", "T", "threads of a CTA, a power of two [chosen]",
     readThreads},
    {"--cluster", "C", "CTAs of a block [chosen]", readCluster},
    {"--impl", "KIND",
     "nccl: windows and barriers are calls of NCCL's device library; "
     "generated: they are the compiler's own [generated]",
     readImpl},
    {"--devices", "A,B,...", "GPU of each rank [0,1,...]", readDevices},
    {"--one-process", "",
     "ranks on GPUs are threads of this process, and not a process each [the "
     "lines of --batch are run so]",
     FLAG(oneProcess)},
    {"--rendezvous", "FOLDER",
     "be one rank of a job that others have started (torchrun, mpirun, srun): "
     "RANK, WORLD_SIZE and LOCAL_RANK say which; ranks meet in FOLDER, which "
     "all see. Files with %r are this rank's alone",
     TEXT(rendezvous)},
    {"--windows", "KIND",
     "nccl: NCCL's symmetric windows; plain: CUDA's memory by peer access; "
     "auto: nccl where it is to be had [auto]",
     readWindows},
    {"--timeout", "SECONDS",
     "how long a wait on a GPU may take before the run ends with a report [10]",
     readTimeout},
    {"--graph", "", "capture the launches in a CUDA graph", FLAG(graph)},
};

static const Option kReport[] = {
    {"--batch", "FILE",
     "run the command lines of FILE (- is standard input), one after the other "
     "in this process, and print one JSON object a line; the exit status is "
     "the first that is not 0",
     TEXT(batch)},
    {"--json", "", "one JSON object on standard output instead of the table",
     FLAG(json)},
    {"--quiet", "", "print errors only", FLAG(quiet)},
    {"--verbose", "", "print the compiler's remarks: what was chosen, and why",
     FLAG(verbose)},
    {"--explain", "",
     "print on standard error which ways of each collective were weighed, and "
     "by what",
     FLAG(explain)},
    {"--version", "", "print the version and stop", FLAG(version)},
    {"--help", "", "print this and stop", FLAG(help)},
};

static const Group kGroups[] = {
    {"What to run", kWhat}, {"Data", kData},     {"Compiling", kCompile},
    {"Running", kRun},      {"Target", kTarget}, {"Report", kReport},
};

static const Option *findOption(llvm::StringRef name) {
  for (const Group &group : kGroups)
    for (const Option &option : group.options)
      if (option.name == name)
        return &option;
  return nullptr;
}

static llvm::Error unknownOption(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Group &group : kGroups)
    for (const Option &option : group.options)
      names.push_back(option.name);
  llvm::StringRef near = closest(name, names);
  return usage("unknown option '" + name + "'" +
               (near.empty() ? llvm::Twine("; --help lists them")
                             : "; did you mean '" + near + "'?"));
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

llvm::StringRef
commsir::driver::closest(llvm::StringRef name,
                         llvm::ArrayRef<llvm::StringRef> candidates) {
  llvm::StringRef best;
  unsigned bestDistance = std::max<size_t>(2, name.size() / 3) + 1;
  for (llvm::StringRef candidate : candidates) {
    unsigned distance = name.edit_distance(candidate, true, bestDistance);
    if (distance < bestDistance && distance < candidate.size()) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/// Options that belong to the other target.
static llvm::Error judgeTarget(const Options &options) {
  struct Only {
    bool given;
    llvm::StringLiteral option;
  };
  const Only cpuOnly[] = {{options.seeded, "--seed"},
                          {options.fuzzSchedules != 0, "--fuzz-schedules"},
                          {options.fast, "--fast"},
                          {options.workers != 0, "--workers"},
                          {options.maxSteps != 0, "--max-steps"},
                          {!options.trace.empty(), "--trace"},
                          {options.instrument, "--instrument"},
                          {options.dumpIr, "--dump-ir"}};
  const Only cudaOnly[] = {{options.threads != 0, "--threads"},
                           {options.cluster != 0, "--cluster"},
                           {!options.impl.empty(), "--impl"},
                           {!options.devices.empty(), "--devices"},
                           {options.windows != "auto", "--windows"},
                           {options.oneProcess, "--one-process"},
                           {!options.rendezvous.empty(), "--rendezvous"},
                           {options.graph, "--graph"}};
  bool cpu = options.target == "cpu";
  for (const Only &only :
       cpu ? llvm::ArrayRef<Only>(cudaOnly) : llvm::ArrayRef<Only>(cpuOnly))
    if (only.given)
      return usage(only.option + " belongs to --target " +
                   (cpu ? "cuda" : "cpu") + ", the run is for " +
                   options.target);
  return llvm::Error::success();
}

/// Options that would be read and forgotten.
static llvm::Error judgeIdle(const Options &options) {
  bool isTolerant = options.rtol || options.atol;
  if (options.expects.empty() && (isTolerant || options.bitwise))
    return usage(llvm::Twine(options.bitwise ? "--bitwise"
                             : options.rtol  ? "--rtol"
                                             : "--atol") +
                 " is of a comparison, and there is none: give --expect "
                 "NAME=FILE");
  if (options.workers && !options.fast && !options.fuzzSchedules)
    return usage("--workers is of --fast and --fuzz-schedules: give one of "
                 "them, or leave it out");
  if (options.checkEvents && !options.check)
    return usage("--check-events is of the checker, which --no-check leaves "
                 "out: choose one");
  return llvm::Error::success();
}

/// What a batch is given beside it; its lines say all else.
static llvm::Error judgeBatch(const Options &options,
                              llvm::ArrayRef<llvm::StringRef> given) {
  if (!options.file.empty())
    return usage("--batch takes its kernel files from its lines: leave out '" +
                 options.file + "'");
  for (llvm::StringRef name : given)
    if (name != "--batch")
      return usage("--batch takes its options from its lines: write " + name +
                   " into them");
  return llvm::Error::success();
}

/// Options that cannot stand together, and output patterns.
static llvm::Error judge(const Options &options,
                         llvm::ArrayRef<llvm::StringRef> given) {
  if (!options.batch.empty())
    return judgeBatch(options, given);
  if (options.file.empty())
    return usage("no kernel file given; usage: comms-run FILE.mlir --ranks N "
                 "(--help shows examples)");
  if (llvm::Error error = judgeTarget(options))
    return error;
  if (llvm::Error error = judgeIdle(options))
    return error;
  if (options.impl == "nccl" && options.windows == "plain")
    return usage("--impl nccl calls NCCL's device library, which works on "
                 "NCCL's windows alone: leave out --windows plain");
  if (options.fast && (options.seeded || options.fuzzSchedules))
    return usage("--fast has no fixed order: it cannot be combined with --seed "
                 "or --fuzz-schedules");
  if (options.fast && !options.trace.empty())
    return usage("--trace needs a fixed order: leave out --fast");
  if (options.fuzzSchedules && !options.trace.empty())
    return usage("--trace follows one order: give --seed instead of "
                 "--fuzz-schedules");
  if (options.bitwise && (options.rtol || options.atol))
    return usage("--bitwise allows no difference: leave out --rtol and --atol");
  if (options.oneProcess && !options.rendezvous.empty())
    return usage("--one-process holds all ranks and --rendezvous one of them: "
                 "choose one");
  if (options.json && options.dumpIr)
    return usage("--json and --dump-ir both want standard output: choose one");
  return llvm::Error::success();
}

llvm::Expected<Options>
commsir::driver::parseOptions(llvm::ArrayRef<const char *> arguments) {
  Options options;
  bool onlyFiles = false;
  llvm::SmallVector<llvm::StringRef> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    if (argument == "-h")
      argument = "--help";
    if (!onlyFiles && argument == "--") {
      onlyFiles = true;
      continue;
    }
    if (onlyFiles || !argument.starts_with("-") || argument == "-") {
      if (!options.file.empty())
        return usage("two kernel files given, '" + options.file + "' and '" +
                     argument + "'; one is run at a time");
      options.file = argument.str();
      continue;
    }
    auto [name, value] = argument.split('=');
    const Option *option = findOption(name);
    if (!option)
      return unknownOption(name);
    bool hasValue = name.size() != argument.size();
    if (option->value.empty() && hasValue)
      return usage(name + " takes no value, got '" + value + "'");
    if (!option->value.empty() && !hasValue) {
      if (i + 1 == arguments.size())
        return usage(name + " needs a value: " + name + " " + option->value);
      value = arguments[++i];
    }
    if (llvm::Error error = option->read(options, name, value))
      return error;
    given.push_back(option->name);
  }
  if (options.help || options.version)
    return options;
  if (llvm::Error error = judge(options, given))
    return error;
  return options;
}

//===----------------------------------------------------------------------===//
// --help
//===----------------------------------------------------------------------===//

/// Appends `text`, broken into lines of 78 columns that start at `indent`; the
/// first continues a line that is `column` wide.
static void appendWrapped(std::string &out, llvm::StringRef text, size_t column,
                          size_t indent) {
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  out.append(column < indent ? indent - column : 0, ' ');
  column = std::max(column, indent);
  bool first = true;
  for (llvm::StringRef word : words) {
    if (!first && column + 1 + word.size() > 78) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  out += '\n';
}

static constexpr llvm::StringLiteral kIntroduction =
    R"(comms-run: run a collective kernel with N ranks on this machine

Usage: comms-run FILE.mlir --ranks N [options]

The kernel is compiled once and run by every block of every rank. Before it
starts it is checked: every wait must have its signal, every barrier all its
ranks. If all blocks wait all the same, the run ends with a report that names
each waiting rank, its source line and what it waits for.

Examples
  8 ranks, each with its own input; write each rank's result:
    comms-run allreduce.mlir --ranks 8 \
      --input x=x-%r.npy --output y=y-%r.npy

  the same input made here, the result compared with a reference that NumPy
  computed in float64 (one file, as every rank gets the same result):
    comms-run allreduce.mlir --ranks 8 --input x=random:1 \
      --expect y=reference.npy --rtol 1e-5

  one algorithm and protocol, under 100 orders of execution, bits compared:
    comms-run allreduce.mlir --ranks 4 --blocks 2 --launches 3 \
      --input x=random:1 --algorithm two_shot --protocol ll --fuzz-schedules 100

  what each block did when, to be opened in ui.perfetto.dev:
    comms-run allreduce.mlir --ranks 4 --input x=iota --trace run.json

)";

static constexpr llvm::StringLiteral kExitCodes =
    R"(Exit status
  0  the run ended, and agrees with every --expect
  1  a result differs from --expect, or between schedules
  2  the command line or a file is wrong
  3  the kernel does not compile
  4  the checker refused the kernel (--no-check runs it all the same)
  5  deadlock
  6  --max-steps or --time-limit reached
  7  an access outside a window
No output file is left behind unless the run ended (status 0 or 1).
)";

std::string commsir::driver::helpText() {
  std::string text = kIntroduction.str();
  for (const Group &group : kGroups) {
    text += (group.title + "\n").str();
    for (const Option &option : group.options) {
      std::string left = ("  " + option.name).str();
      if (!option.value.empty())
        left += (" " + option.value).str();
      text += left;
      if (left.size() > 24) {
        text += '\n';
        left.clear();
      }
      appendWrapped(text, option.help, left.size(), 26);
    }
    text += '\n';
  }
  return text + kExitCodes.str();
}
