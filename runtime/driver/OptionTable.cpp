//===- OptionTable.cpp - Every option of comms-run ------------------------===//
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

#include "runtime/driver/OptionTable.h"

#include "runtime/driver/OptionValues.h"

#include <limits>

using namespace commsir;
using namespace commsir::driver;

static constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();
static constexpr int64_t kMaxRanks = 1 << 20;
static constexpr int64_t kMaxBlocks = 1 << 16;

//===----------------------------------------------------------------------===//
// How a field is read
//===----------------------------------------------------------------------===//

template <auto field, bool value = true>
static llvm::Error setFlag(Options &o, llvm::StringRef, llvm::StringRef) {
  o.*field = value;
  return llvm::Error::success();
}

template <auto field>
static llvm::Error readText(Options &o, llvm::StringRef option,
                            llvm::StringRef text) {
  if (text.empty())
    return usageError(option + ": the value is empty");
  o.*field = text.str();
  return llvm::Error::success();
}

/// A whole number for a field of any integer type.
template <auto field, int64_t low, int64_t high>
static llvm::Error readWhole(Options &o, llvm::StringRef option,
                             llvm::StringRef text) {
  int64_t value = 0;
  if (llvm::Error error = readInt(option, text, low, high, value))
    return error;
  o.*field = value;
  return llvm::Error::success();
}

template <auto field, int64_t low, int64_t high>
static llvm::Error readPowerOfTwo(Options &o, llvm::StringRef option,
                                  llvm::StringRef text) {
  return readPower(option, text, low, high, o.*field);
}

template <auto field>
static llvm::Error addBinding(Options &o, llvm::StringRef option,
                              llvm::StringRef text) {
  return readBinding(option, text, o.*field);
}

template <auto field>
static llvm::Error readTolerance(Options &o, llvm::StringRef option,
                                 llvm::StringRef text) {
  return readDouble(option, text, (o.*field).emplace());
}

static llvm::Error readSeed(Options &o, llvm::StringRef option,
                            llvm::StringRef text) {
  o.seeded = true;
  return readWhole<&Options::seed, 0, kMaxInt>(o, option, text);
}

static llvm::Error readTimeLimit(Options &o, llvm::StringRef option,
                                 llvm::StringRef text) {
  return readSeconds(option, text, o.timeLimit);
}

static llvm::Error readMemoryLimit(Options &o, llvm::StringRef option,
                                   llvm::StringRef text) {
  return readBytes(option, text, o.memoryLimit);
}

static llvm::Error readTarget(Options &o, llvm::StringRef option,
                              llvm::StringRef text) {
  o.target = text.str();
  return checkWord(option, text, {"cpu", "cuda"});
}

static llvm::Error readMemory(Options &o, llvm::StringRef option,
                              llvm::StringRef text) {
  o.weak = text == "weak";
  return checkWord(option, text, {"plain", "weak"});
}

static llvm::Error readRaces(Options &o, llvm::StringRef option,
                             llvm::StringRef text) {
  o.ignoreRaces = text == "ignore";
  return checkWord(option, text, {"stop", "ignore"});
}

static llvm::Error addBroken(Options &o, llvm::StringRef option,
                             llvm::StringRef text) {
  return readBroken(option, text, o.broken);
}

static llvm::Error addSame(Options &o, llvm::StringRef option,
                           llvm::StringRef text) {
  if (text.empty())
    return usageError(option + ": the value is empty");
  o.sameOnRanks.push_back(text.str());
  return llvm::Error::success();
}

static llvm::Error addVaried(Options &o, llvm::StringRef option,
                             llvm::StringRef text) {
  if (text.empty())
    return usageError(option + ": the value is empty");
  o.varied.push_back(text.str());
  return llvm::Error::success();
}

static llvm::Error readTimeout(Options &o, llvm::StringRef option,
                               llvm::StringRef text) {
  if (llvm::Error error = readSeconds(option, text, o.timeout.emplace()))
    return error;
  if (*o.timeout > 3600)
    return usageError(option + ": " + text +
                      " is out of range; it must be at most 3600 seconds");
  return llvm::Error::success();
}

static llvm::Error readWindows(Options &o, llvm::StringRef option,
                               llvm::StringRef text) {
  o.windows = text.str();
  return checkWord(option, text, {"auto", "nccl", "plain"});
}

static llvm::Error readImpl(Options &o, llvm::StringRef option,
                            llvm::StringRef text) {
  o.impl = text == "nccl" ? "nccl" : "";
  return checkWord(option, text, {"generated", "nccl"});
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

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static const Option kWhat[] = {
    {"--kernel", "NAME", "kernel to run, when the file has several",
     readText<&Options::kernel>},
    {"--ranks", "N",
     "number of ranks; may be left out where the kernel fixes it, and with "
     "--rendezvous",
     readWhole<&Options::ranks, 1, kMaxRanks>},
    {"--blocks", "B",
     "blocks of each rank [the kernel's own, else 1; on GPUs chosen]",
     readWhole<&Options::blocks, 1, kMaxBlocks>},
    {"--launches", "K",
     "launch the kernel K times; signals and channels live on between [1]",
     readWhole<&Options::launches, 1, maxLaunches>},
    {"--first-launch", "K",
     "number of the first launch, for what wraps; signals and counters begin "
     "at 0 all the same [1]",
     readWhole<&Options::firstLaunch, 1, kMaxInt - maxLaunches>},
};

static const Option kData[] = {
    {"--input", "NAME=FILE",
     "fill an argument: a .npy file (%r is the rank; without %r all ranks get "
     "the same), a number (inf and nan too), zeros, random:SEED (floats in "
     "[-1, 1), integers in [-100, 100]) or iota (numbers the elements of all "
     "ranks, rank after rank). Memory without --input is zero",
     addBinding<&Options::inputs>},
    {"--output", "NAME=FILE", "write an argument after the run; %r is the rank",
     addBinding<&Options::outputs>},
    {"--expect", "NAME=FILE",
     "compare an argument after the run with a .npy file of any number type; a "
     "difference makes the exit status 1",
     addBinding<&Options::expects>},
    {"--shape", "NAME=AxB", "size of a '?' dimension that no file fixes",
     addBinding<&Options::shapes>},
    {"--rtol", "X",
     "allowed difference, relative to the expected value [by element type: "
     "f32 1e-5, f16 2e-3, bf16 1.6e-2, f8 0.13, integers 0]",
     readTolerance<&Options::rtol>},
    {"--atol", "X",
     "allowed difference on top of that, and of integers [as --rtol; 0 when "
     "only --rtol is given]",
     readTolerance<&Options::atol>},
    {"--bitwise", "", "expected and computed bits must agree",
     setFlag<&Options::bitwise>},
};

static const Option kCompile[] = {
    {"--algorithm", "NAME", "algorithm of every collective [the cheapest]",
     readText<&Options::algorithm>},
    {"--protocol", "NAME", "protocol of every channel [the cheapest]",
     readText<&Options::protocol>},
    {"--no-check", "", "do not prove the kernel free of deadlock first",
     setFlag<&Options::check, false>},
    {"--require-proof", "",
     "refuse a kernel that is not proven, as COMMSIR_REQUIRE_PROOF=1 does",
     setFlag<&Options::requireProof>},
    {"--certificate", "FILE",
     "write the checker's verdict as JSON, with its scope, assumptions and the "
     "SHA-256 of the kernel",
     readText<&Options::certificate>},
    {"--check-order", "LIST",
     "check launches of several kernels that share memory of one name, and run "
     "nothing: 'a, read x, b(x=inbox)', again and again, or 'any of a, b'",
     readText<&Options::checkOrder>},
    {"--check-events", "N", "how many events the checker may follow",
     readWhole<&Options::checkEvents, 1, kMaxInt>},
    {"--instrument", "", "record every window access and synchronization",
     setFlag<&Options::instrument>},
    {"--dump-ir", "", "print the IR after all passes on standard output",
     setFlag<&Options::dumpIr>},
    {"--dump-object", "FILE", "write the compiled object file",
     readText<&Options::dumpObject>},
};

static const Option kRun[] = {
    {"--seed", "S", "run in the shuffled order that S fixes [round robin]",
     readSeed},
    {"--fuzz-schedules", "K",
     "run K orders (seeds S, S+1, …), several at a time, and compare their "
     "results bit for bit",
     readWhole<&Options::fuzzSchedules, 2, kMaxInt>},
    {"--memory", "plain|weak",
     "weak: stores, signals and copies are as late, and loads as old, as the "
     "memory model allows, by the seed; a data race ends the run [plain]",
     readMemory},
    {"--races", "stop|ignore",
     "of --memory weak: end at the first data race, or continue, so that you "
     "see the result [stop]",
     readRaces},
    {"--break", "NAME",
     "of --memory weak, may be repeated: simulate hardware that violates the "
     "assumption NAME: store8_whole, store16_whole, store128_whole, "
     "launch_is_fence, packets_cumulative",
     addBroken},
    {"--same", "NAME",
     "may be repeated: argument NAME must have the same bits on all ranks "
     "after "
     "the run; a difference makes the exit status 1",
     addSame},
    {"--vary", "NAME",
     "may be repeated: before each later launch the elements of argument NAME "
     "move on by one place, so that every launch has other data",
     addVaried},
    {"--fast", "", "several workers, no fixed order", setFlag<&Options::fast>},
    {"--workers", "W", "threads of --fast and --fuzz-schedules [all cores]",
     readWhole<&Options::workers, 1, 4096>},
    {"--max-steps", "N", "give up after N steps of the scheduler",
     readWhole<&Options::maxSteps, 1, kMaxInt>},
    {"--time-limit", "SECONDS",
     "give up after that time; with --fuzz-schedules, on each order",
     readTimeLimit},
    {"--memory-limit", "BYTES",
     "refuse to start above this (512M, 8G) [3/4 of the machine's]",
     readMemoryLimit},
    {"--trace", "FILE", "write the run as a Perfetto trace (ui.perfetto.dev)",
     readText<&Options::trace>},
};

static const Option kTarget[] = {
    {"--target", "cpu|cuda",
     "run on the CPU world, or each rank on a GPU of this machine [cpu]",
     readTarget},
    {"--threads", "T", "threads of a CTA, a power of two [chosen]",
     readPowerOfTwo<&Options::threads, 32, 1024>},
    {"--cluster", "C", "CTAs of a block [chosen]",
     readPowerOfTwo<&Options::cluster, 1, 16>},
    {"--impl", "KIND",
     "nccl: windows and barriers are calls of NCCL's device library; "
     "generated: they are the compiler's own [generated]",
     readImpl},
    {"--devices", "A,B,...", "GPU of each rank [0,1,...]", readDevices},
    {"--one-process", "",
     "ranks on GPUs are threads of this process, and not a process each [the "
     "lines of --batch are run so, except with COMMSIR_SHARE_GPU]",
     setFlag<&Options::oneProcess>},
    {"--rendezvous", "FOLDER",
     "be one rank of a job that others have started (torchrun, mpirun, srun): "
     "RANK, WORLD_SIZE and LOCAL_RANK say which, and how many; ranks "
     "rendezvous in FOLDER, which all can access. Files with %r belong to this "
     "rank",
     readText<&Options::rendezvous>},
    {"--windows", "KIND",
     "nccl: NCCL's symmetric windows; plain: CUDA's memory by peer access; "
     "auto: nccl if available [auto]",
     readWindows},
    {"--timeout", "SECONDS",
     "how long a wait on a GPU may take before the run ends with a report [10]",
     readTimeout},
    {"--graph", "", "capture the launches in a CUDA graph",
     setFlag<&Options::graph>},
};

static const Option kReport[] = {
    {"--batch", "FILE",
     "run the command lines of FILE (- is standard input), one after the other "
     "in this process, and print one JSON object a line; the exit status is "
     "the first that is not 0",
     readText<&Options::batch>},
    {"--json", "", "one JSON object on standard output instead of the table",
     setFlag<&Options::json>},
    {"--quiet", "", "print errors only", setFlag<&Options::quiet>},
    {"--verbose", "", "print the compiler's remarks: what was chosen, and why",
     setFlag<&Options::verbose>},
    {"--explain", "",
     "print on standard error which configs of each collective were "
     "considered, and what decided",
     setFlag<&Options::explain>},
    {"--version", "", "print the version and stop", setFlag<&Options::version>},
    {"--help", "", "print this and stop", setFlag<&Options::help>},
};

static const OptionGroup kGroups[] = {
    {"What to run", kWhat}, {"Data", kData},     {"Compiling", kCompile},
    {"Running", kRun},      {"Target", kTarget}, {"Report", kReport},
};

llvm::ArrayRef<OptionGroup> commsir::driver::getOptionGroups() {
  return kGroups;
}
