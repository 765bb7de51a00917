//===- CudaCompileTest.cpp - GPU kernels, linked and kept -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifdef COMMSIR_CUDA

#include "Compiled.h"

#include "runtime/choose/cuda/Fitting.h"
#include "runtime/jit/cuda/CudaCompile.h"
#include "runtime/jit/cuda/NcclDevice.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdlib>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

using namespace commsir;
using namespace commsir::jit;
using namespace commsir::test;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

namespace {

const char kModule[] = R"(
comms.kernel @copy(%w: !comms.window<64xf32>) attributes {ranks = 2 : i64} {
  comms.return
}
comms.kernel @other(%w: !comms.window<8xf32>) attributes {ranks = 2 : i64} {
  comms.return
})";

/// A kernel that uses 400 bytes of shared memory and 12 registers or so.
std::string makePtxText(StringRef chip, StringRef more = "") {
  return (".version 8.3\n.target " + chip + R"(
.address_size 64
.visible .entry copy(.param .align 8 .b8 p[40]) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 buffer[400];
  ld.param.u64 %rd1, [p+24];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd2, %rd2, %rd3;
  ld.global.u32 %r2, [%rd2];
  st.shared.u32 [buffer], %r2;
  bar.sync 0;
  ld.shared.u32 %r3, [buffer];
  st.global.u32 [%rd2+256], %r3;
)" + more +
          "  ret;\n}\n")
      .str();
}

/// Stands in for the lowering: the cache and the linkers care for nothing else.
struct StandIn {
  int made = 0;
  std::string more;
  unsigned pause = 0;
  llvm::Expected<PtxKernel> operator()(mlir::ModuleOp, StringRef name,
                                       const CudaOptions &options) {
    ++made;
    if (pause)
      ::usleep(pause);
    PtxKernel kernel;
    kernel.ptx = makePtxText(options.chip, more);
    kernel.entry = "copy";
    ArgInfo argument;
    argument.name = "w";
    argument.kind = ArgKind::Window;
    argument.elementType = "f32";
    argument.elementBytes = 4;
    argument.shape = {64};
    kernel.description.args = {argument};
    kernel.description.choices = {{"all_reduce", "one_shot", "ll", 256, -1}};
    kernel.description.sites = {{"comms.barrier", "a.mlir:1:2", ""}};
    kernel.description.ranks = kernel.description.lsaSize = 2;
    kernel.description.blocks = 3;
    kernel.description.proof.verdict = "proven";
    kernel.shape = {options.blocks ? options.blocks : 3, 64, 1, 0, true};
    kernel.paramBytes = 40;
    if (options.impl == "nccl")
      kernel.nccl = NcclRequirements{3, 0, 1, 4, 2, true};
    return kernel;
  }
};

struct CudaCompile : testing::Test {
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("commsir-cache", folder));
    settings.folder = folder.str();
    settings.warn = [this](const std::string &text) { warnings += text; };
  }
  void TearDown() override {
    fs::remove_directories(folder);
    for (const char *name :
         {"COMMSIR_LINKER", "COMMSIR_PTXAS", "COMMSIR_NVJITLINK_LIBRARY"})
      ::unsetenv(name);
  }
  llvm::Expected<std::unique_ptr<CudaKernel>>
  compile(Cache &cache, StringRef text = kModule, StringRef name = "copy") {
    return compileCudaWith(source.parse(text), name, options, cache, maker);
  }
  /// As `compile`; null, with a test failure.
  std::unique_ptr<CudaKernel> expect(Cache &cache, StringRef text = kModule) {
    auto kernel = compile(cache, text);
    if (kernel)
      return std::move(*kernel);
    ADD_FAILURE() << toString(kernel.takeError());
    return nullptr;
  }
  /// As groups do; `parsing` is called where the cache does not have it.
  std::unique_ptr<CudaKernel>
  compileSource(Cache &cache, StringRef variant,
                llvm::function_ref<void()> parsing) {
    SourceEntry entry(kModule, variant, "copy", options, cache);
    if (auto kernel = entry.find())
      return kernel;
    parsing();
    auto kernel = expect(cache);
    if (kernel)
      entry.keep(*kernel);
    return kernel;
  }
  std::string expectError(Cache &cache) {
    auto kernel = compile(cache);
    if (!kernel)
      return toString(kernel.takeError());
    ADD_FAILURE() << "compiled";
    return "";
  }

  Source source;
  llvm::SmallString<128> folder;
  CacheSettings settings;
  CudaOptions options;
  StandIn maker;
  std::string warnings;
};

bool haveNvJitLink() {
  return StringRef(identifyLinker("")).starts_with("nvjitlink");
}
bool havePtxas() {
  return StringRef(identifyLinker("ptxas")).starts_with("ptxas:");
}

void expectSame(const CudaKernel &a, const CudaKernel &b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.entry(), b.entry());
  EXPECT_EQ(a.chip(), b.chip());
  EXPECT_EQ(a.linker(), b.linker());
  EXPECT_EQ(a.isPtx(), b.isPtx());
  EXPECT_TRUE(a.code() == b.code());
  ASSERT_EQ(a.args().size(), b.args().size());
  for (auto [x, y] : llvm::zip(a.args(), b.args())) {
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.elementType, y.elementType);
    EXPECT_EQ(x.elementBytes, y.elementBytes);
    EXPECT_EQ(x.shape, y.shape);
    EXPECT_EQ(x.hidden, y.hidden);
    EXPECT_EQ(x.poisoned, y.poisoned);
    EXPECT_EQ(x.multimem, y.multimem);
  }
  ASSERT_EQ(a.choices().size(), b.choices().size());
  for (auto [x, y] : llvm::zip(a.choices(), b.choices())) {
    EXPECT_EQ(x.op + x.algorithm + x.protocol, y.op + y.algorithm + y.protocol);
    EXPECT_EQ(x.tileSize, y.tileSize);
    EXPECT_EQ(x.tiles, y.tiles);
  }
  ASSERT_EQ(a.sites().size(), b.sites().size());
  for (auto [x, y] : llvm::zip(a.sites(), b.sites()))
    EXPECT_EQ(x.op + x.location + x.detail, y.op + y.location + y.detail);
  EXPECT_EQ(a.ranks(), b.ranks());
  EXPECT_EQ(a.lsaSize(), b.lsaSize());
  EXPECT_EQ(a.shape().blocks, b.shape().blocks);
  EXPECT_EQ(a.shape().threads, b.shape().threads);
  EXPECT_EQ(a.shape().cluster, b.shape().cluster);
  EXPECT_EQ(a.shape().dynamicShared, b.shape().dynamicShared);
  EXPECT_EQ(a.shape().overlap, b.shape().overlap);
  EXPECT_EQ(a.paramBytes(), b.paramBytes());
  ASSERT_EQ(a.nccl().has_value(), b.nccl().has_value());
  if (a.nccl()) {
    EXPECT_EQ(a.nccl()->lsaBarriers, b.nccl()->lsaBarriers);
    EXPECT_EQ(a.nccl()->railBarriers, b.nccl()->railBarriers);
    EXPECT_EQ(a.nccl()->contexts, b.nccl()->contexts);
    EXPECT_EQ(a.nccl()->signals, b.nccl()->signals);
    EXPECT_EQ(a.nccl()->counters, b.nccl()->counters);
    EXPECT_EQ(a.nccl()->reach, b.nccl()->reach);
    EXPECT_EQ(a.nccl()->multimem, b.nccl()->multimem);
  }
  EXPECT_EQ(a.registers(), b.registers());
  EXPECT_EQ(a.sharedBytes(), b.sharedBytes());
  EXPECT_EQ(a.stackBytes(), b.stackBytes());
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

TEST(KernelBytes, NoBytesHarm) {
  KernelContents contents;
  contents.name = contents.entry = "k";
  contents.description.args.resize(3);
  contents.description.args[1].shape = {-1, 1LL << 62};
  contents.description.sites.resize(2);
  contents.description.proof.verdict = "proven";
  contents.description.proof.assumptions = {"launch_is_fence"};
  contents.nccl.emplace();
  contents.ncclCode = "22809";
  std::string bytes = encodeKernel(contents, "code");
  KernelContents read;
  StringRef code;
  ASSERT_TRUE(decodeKernel(bytes, read, code));
  EXPECT_EQ(code, "code");
  EXPECT_EQ(read.description.args[1].shape[1], 1LL << 62);
  EXPECT_EQ(read.description.proof.verdict, "proven");
  EXPECT_EQ(read.description.proof.assumptions,
            contents.description.proof.assumptions);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decodeKernel(StringRef(bytes).take_front(size), read, code));
  EXPECT_FALSE(decodeKernel(bytes + "x", read, code));
  // Without a checksum before it: no crash, no memory without end.
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string spoilt = bytes;
    for (unsigned n = 1 + random() % 4; n; --n)
      spoilt[random() % spoilt.size()] = char(random());
    decodeKernel(spoilt, read, code);
  }
}

//===----------------------------------------------------------------------===//
// Linkers
//===----------------------------------------------------------------------===//

/// A multiprocessor has room for 32 CTAs of so few registers.
TEST_F(CudaCompile, BlocksThatDoNotFitTogetherAreCounted) {
  if (!havePtxas())
    GTEST_SKIP() << "no ptxas: registers are not known";
  Cache cache(settings);
  tune::ConfigQuery machine;
  machine.multiprocessors = 2;
  for (auto [blocks, fewer] : {std::pair(65, 64), {64, 0}, {1, 0}}) {
    options.blocks = blocks;
    auto kernel = compile(cache);
    ASSERT_TRUE(bool(kernel)) << toString(kernel.takeError());
    EXPECT_EQ(tune::countFewerBlocks(machine, **kernel), fewer) << blocks;
  }
}

/// With the blocks of a choice fewer are compiled, with those of a user not.
TEST_F(CudaCompile, BlocksThatDoNotFitTogetherAreCompiledAnew) {
  if (!havePtxas())
    GTEST_SKIP() << "no ptxas: registers are not known";
  tune::ConfigQuery machine;
  machine.multiprocessors = 2;
  options.nccl = nullptr;
  auto fit = [&](int64_t chosen, bool isOpen) {
    options.blocks = chosen;
    auto kernel = tune::compileFitting(source.parse(kModule), "copy", options,
                                       machine, isOpen);
    if (!kernel) {
      ADD_FAILURE() << toString(kernel.takeError());
      return int64_t(0);
    }
    EXPECT_EQ((*kernel)->shape().blocks, options.blocks);
    return options.blocks;
  };
  EXPECT_LE(fit(200, true), 64);
  EXPECT_EQ(fit(2, true), 2);
  EXPECT_EQ(fit(200, false), 200);
}

TEST_F(CudaCompile, EveryLinkerAndChip) {
  for (StringRef linker : {"nvjitlink", "ptxas", "driver"}) {
    if ((linker == "nvjitlink" && !haveNvJitLink()) ||
        (linker == "ptxas" && !havePtxas()))
      continue;
    for (StringRef chip : {"sm_80", "sm_90", "sm_100"}) {
      // sm_100 came with PTX 8.6.
      std::string ptx = makePtxText(chip);
      if (chip == "sm_100")
        ptx.replace(ptx.find("8.3"), 3, "8.6");
      for (unsigned level : {0, 1, 2}) {
        auto other = linkPtx(ptx, "copy", chip, level, linker);
        ASSERT_TRUE(bool(other)) << toString(other.takeError());
      }
      auto linked = linkPtx(ptx, "copy", chip, 3, linker);
      ASSERT_TRUE(bool(linked)) << toString(linked.takeError());
      EXPECT_EQ(linked->isPtx, linker == "driver");
      if (linked->isPtx) {
        EXPECT_EQ(linked->code, ptx + '\0');
        continue;
      }
      EXPECT_TRUE(StringRef(linked->code).starts_with("\177ELF"));
      EXPECT_GE(linked->facts.registers, 4u);
      EXPECT_LE(linked->facts.registers, 255u);
      EXPECT_EQ(linked->facts.sharedBytes, chip == "sm_80" ? 400u : 1424u);
      EXPECT_EQ(linked->facts.stackBytes, 0u);
    }
  }
}

TEST_F(CudaCompile, BadPtxIsKept) {
  maker.more = "  garbage;\n";
  for (StringRef linker : {"nvjitlink", "ptxas"}) {
    if (!(linker == "ptxas" ? havePtxas() : haveNvJitLink()))
      continue;
    options.linker = linker;
    Cache cache(settings);
    std::string text = expectError(cache);
    EXPECT_NE(text.find("garbage"), std::string::npos) << text;
    size_t start = text.find("kept as '");
    ASSERT_NE(start, std::string::npos) << text;
    StringRef path = StringRef(text).substr(start + 9).split('\'').first;
    auto kept = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(bool(kept));
    EXPECT_EQ((*kept)->getBuffer(), makePtxText("sm_90", maker.more));
    fs::remove(path);
  }
}

TEST_F(CudaCompile, LinkersThatAreNotThere) {
  auto text = [&](StringRef which) {
    auto linked = linkPtx(makePtxText("sm_90"), "copy", "sm_90", 3, which);
    return linked ? "" : toString(linked.takeError());
  };
  EXPECT_NE(text("gold").find("there are nvjitlink, ptxas and driver"),
            std::string::npos);
  ::setenv("COMMSIR_LINKER", "lld", 1);
  EXPECT_NE(text("").find("'lld'"), std::string::npos);
  ::unsetenv("COMMSIR_LINKER");
  ::setenv("COMMSIR_PTXAS", "/nowhere/ptxas", 1);
  EXPECT_NE(text("ptxas").find("COMMSIR_PTXAS"), std::string::npos);
  ::setenv("COMMSIR_NVJITLINK_LIBRARY", "/nowhere/lib.so", 1);
  EXPECT_NE(text("").find("COMMSIR_NVJITLINK_LIBRARY='/nowhere/lib.so'"),
            std::string::npos);
  // A library, but another one.
  ::setenv("COMMSIR_NVJITLINK_LIBRARY", "libm.so.6", 1);
  EXPECT_NE(text("nvjitlink").find("it has no nvJitLinkCreate"),
            std::string::npos);
}

TEST_F(CudaCompile, ALinkerThatIsTooOldHandsOver) {
  // A ptxas that knows no such version.
  llvm::SmallString<128> program(folder);
  program += "/old-ptxas";
  std::error_code error;
  {
    llvm::raw_fd_ostream stream(program, error);
    stream << "#!/bin/sh\necho 'ptxas a, line 1; fatal : Unsupported .version "
              "9.9; current version is 7.0'\nexit 255\n";
  }
  ASSERT_FALSE(error);
  ASSERT_FALSE(fs::setPermissions(program, fs::all_read | fs::all_exe));
  ::setenv("COMMSIR_PTXAS", program.c_str(), 1);
  auto linked = linkPtx(makePtxText("sm_90"), "copy", "sm_90", 3, "ptxas");
  ASSERT_FALSE(bool(linked));
  std::string text = toString(linked.takeError());
  EXPECT_NE(text.find("cannot be used"), std::string::npos) << text;
  EXPECT_NE(text.find("current version is 7.0"), std::string::npos) << text;
}

TEST(Cubin, NoBytesHarm) {
  std::string ptx = makePtxText("sm_90");
  auto linked = linkPtx(ptx, "copy", "sm_90", 3, "");
  ASSERT_TRUE(bool(linked)) << toString(linked.takeError());
  readCubin("", "copy");
  readCubin("\177ELF", "copy");
  EXPECT_EQ(readCubin(linked->code, "nothing").registers, 0u);
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string spoilt = linked->code;
    for (unsigned n = 1 + random() % 8; n; --n)
      spoilt[random() % spoilt.size()] = char(random());
    spoilt.resize(random() % 4 ? spoilt.size() : random() % spoilt.size());
    readCubin(spoilt, "copy");
  }
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

TEST_F(CudaCompile, HitsEqualTheBuiltEntry) {
  Cache cache(settings);
  auto cold = expect(cache);
  auto warm = expect(cache);
  Cache other(settings);
  auto fromDisk = expect(other);
  ASSERT_TRUE(cold && warm && fromDisk);
  EXPECT_FALSE(cold->cached());
  EXPECT_TRUE(warm->cached());
  EXPECT_TRUE(fromDisk->cached());
  EXPECT_EQ(maker.made, 1);
  expectSame(*cold, *warm);
  expectSame(*cold, *fromDisk);
  EXPECT_EQ(cold->name(), "copy");
  EXPECT_EQ(cold->findArg("w"), 0);
  EXPECT_EQ(cold->findArg("x"), -1);
  EXPECT_EQ(cold->shape().blocks, 3);
  EXPECT_TRUE(cold->shape().overlap);
  EXPECT_EQ(cold->paramBytes(), 40);
  // The certificate is kept with the code.
  EXPECT_EQ(fromDisk->proof().verdict, "proven");
  EXPECT_EQ(fromDisk->proof().digest.size(), 64u);
  EXPECT_EQ(fromDisk->proof().digest, cold->proof().digest);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(cold->code().data()) % 16, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(fromDisk->code().data()) % 16, 0u);
}

TEST_F(CudaCompile, EverythingThatCountsIsInTheKey) {
  options.linker = "driver";
  Cache cache(settings);
  int made = 0;
  auto expectNew = [&](const char *what) {
    expect(cache);
    EXPECT_EQ(maker.made, ++made) << what;
    expect(cache);
    EXPECT_EQ(maker.made, made) << what;
  };
  expectNew("nothing");
  options.ranks = 2;
  expectNew("ranks");
  options.blocks = 4;
  expectNew("blocks");
  options.threads = 128;
  expectNew("threads");
  options.cluster = 2;
  expectNew("cluster");
  options.chip = "sm_80";
  expectNew("chip");
  options.algorithm = "ring";
  expectNew("algorithm");
  options.protocol = "ring";
  expectNew("protocol");
  options.check = false;
  expectNew("check");
  options.checkEvents = 5;
  expectNew("check events");
  options.optLevel = 1;
  expectNew("level");
  options.tileSize = 64;
  expectNew("tile");
  options.assertBounds = false;
  expectNew("bounds");
  options.impl = "nccl";
  expectNew("impl");
  int release = 0;
  options.nccl = [&]() -> llvm::Expected<NcclInstallation> {
    return NcclInstallation{release, "/nowhere/libnccl.so.2"};
  };
  release = cuda::getNcclDeviceVersion();
  expectNew("NCCL");
  if (havePtxas()) {
    options.linker = "ptxas";
    expectNew("linker");
  }
  // Another kernel of the module changes nothing; another location does.
  std::string alone = kModule;
  alone.resize(alone.find("comms.kernel @other"));
  expect(cache, alone);
  EXPECT_EQ(maker.made, made);
  expect(cache, "\n" + alone);
  EXPECT_EQ(maker.made, made + 1);
}

/// A source does not say whether its kernel calls NCCL; the kernel does.
TEST_F(CudaCompile, KernelsForAnotherNcclAreNotTaken) {
  auto compileFrom = [&](Cache &cache) {
    return compileSource(cache, "", [] {});
  };
  int asked = 0;
  options.nccl = [&]() -> llvm::Expected<NcclInstallation> {
    ++asked;
    return NcclInstallation{cuda::getNcclDeviceVersion(), "/nowhere/lib/n.so"};
  };
  Cache cache(settings);
  compileFrom(cache);
  EXPECT_EQ(asked, 0); // The kernel does not call it.
  options.impl = "nccl";
  auto cold = compileFrom(cache), warm = compileFrom(cache);
  ASSERT_TRUE(cold && warm);
  expectSame(*cold, *warm);
  ASSERT_TRUE(cold->nccl());
  EXPECT_TRUE(warm->cached());
  EXPECT_EQ(maker.made, 2);
  // The same release, whose code comes from its headers.
  ::setenv("COMMSIR_NCCL_DEVICE", "nvrtc", 1);
  ::setenv("COMMSIR_NCCL_INCLUDE", COMMSIR_NCCL_HEADERS, 1);
  auto other = compileFrom(cache);
  EXPECT_EQ(maker.made, 3);
  compileFrom(cache);
  EXPECT_EQ(maker.made, 3);
  ::unsetenv("COMMSIR_NCCL_DEVICE");
  ::unsetenv("COMMSIR_NCCL_INCLUDE");
  // What was made for the first is there, but is not what the source names.
  EXPECT_TRUE(compileFrom(cache)->cached());
  EXPECT_EQ(maker.made, 3);
}

TEST_F(CudaCompile, KernelsThatCallNcclNeedOne) {
  options.impl = "nccl";
  options.nccl = []() -> llvm::Expected<NcclInstallation> {
    return llvm::createStringError("NCCL could not be loaded");
  };
  Cache cache(settings);
  std::string text = expectError(cache);
  EXPECT_TRUE(StringRef(text).contains("calls NCCL's device library: NCCL "
                                       "could not be loaded"))
      << text;
  options.impl = "mpi";
  text = expectError(cache);
  EXPECT_TRUE(StringRef(text).contains("impl is 'mpi'")) << text;
}

TEST_F(CudaCompile, SourcesNeedNoParser) {
  int parsed = 0;
  auto compileFrom = [&](Cache &cache, StringRef variant) {
    return compileSource(cache, variant, [&] { ++parsed; });
  };
  Cache cache(settings);
  auto cold = compileFrom(cache, "a.mlir");
  Cache other(settings);
  auto warm = compileFrom(other, "a.mlir");
  ASSERT_TRUE(cold && warm);
  expectSame(*cold, *warm);
  EXPECT_EQ(parsed, 1);
  EXPECT_EQ(maker.made, 1);
  // Another name of the file, the same module.
  compileFrom(other, "b.mlir");
  EXPECT_EQ(parsed, 2);
  EXPECT_EQ(maker.made, 1);
  options.threads = 64;
  compileFrom(other, "a.mlir");
  EXPECT_EQ(maker.made, 2);
  // A source whose kernel has gone.
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error)) {
    uint64_t size = 0;
    fs::file_size(at->path(), size);
    if (size > 88 + 32)
      fs::remove(at->path());
  }
  Cache third(settings);
  compileFrom(third, "a.mlir");
  EXPECT_EQ(maker.made, 3);
  EXPECT_EQ(warnings, "");
}

TEST_F(CudaCompile, CompilerOff) {
  {
    Cache cache(settings);
    expect(cache);
  }
  settings.build = false;
  Cache cache(settings);
  EXPECT_TRUE(expect(cache));
  options.threads = 256;
  std::string text = expectError(cache);
  EXPECT_NE(text.find("kernel @copy is not in the cache"), std::string::npos);
  EXPECT_EQ(maker.made, 1);
}

TEST_F(CudaCompile, WrongInputIsRefusedWithoutTheCache) {
  Cache cache(settings);
  auto message = [&](StringRef text, StringRef name) {
    auto kernel = compile(cache, text, name);
    return kernel ? "" : toString(kernel.takeError());
  };
  EXPECT_EQ(message(kModule, "missing"),
            "the module has no kernel @missing; it has @copy, @other");
  EXPECT_NE(message(kModule, "").find("several kernels"), std::string::npos);
  EXPECT_EQ(message("module {}", ""), "the module has no comms.kernel");
  options.ranks = 4;
  EXPECT_NE(message(kModule, "copy").find("for 2 ranks, not for 4"),
            std::string::npos);
  EXPECT_EQ(maker.made, 0);
}

TEST_F(CudaCompile, EightProcessesCompileOnce) {
  maker.pause = 20000;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      Cache cache(settings);
      auto kernel = compile(cache);
      if (!kernel)
        llvm::consumeError(kernel.takeError());
      // 1: built, 2: taken; 3: neither.
      ::_exit(!kernel || (*kernel)->registers() == 0 ? 3
              : (*kernel)->cached()                  ? 2
                                                     : 1);
    }
    children.push_back(child);
  }
  int counts[4] = {};
  for (pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ++counts[WEXITSTATUS(status) & 3];
  }
  EXPECT_EQ(counts[1], 1);
  EXPECT_EQ(counts[2], 7);
}

//===----------------------------------------------------------------------===//
// The real pipeline
//===----------------------------------------------------------------------===//

const char kFused[] = R"(
comms.kernel @fused(%x: !comms.window<2x1024xbf16>, %y: !comms.window<2x1024xbf16>)
    attributes {ranks = 4 : i64} {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<2x1024xbf16>) outs(%y : !comms.window<2x1024xbf16>)
  consume (%sum: tensor<1024xf32>) {
    %squares = arith.mulf %sum, %sum : tensor<1024xf32>
    %total = comms.row_reduce sum %squares : tensor<1024xf32> -> tensor<1xf32>
    %factor = math.rsqrt %total : tensor<1xf32>
    %factors = comms.broadcast_row %factor : tensor<1xf32> -> tensor<1024xf32>
    %normal = arith.mulf %sum, %factors : tensor<1024xf32>
    %out = arith.truncf %normal : tensor<1024xf32> to tensor<1024xbf16>
    comms.yield %out : tensor<1024xbf16>
  }
  comms.return
})";

TEST_F(CudaCompile, FusedKernelForEveryChip) {
  if (!haveNvJitLink() && !havePtxas())
    GTEST_SKIP() << "there is no linker here";
  Cache cache(settings);
  for (StringRef chip : {"sm_80", "sm_90", "sm_100"})
    for (StringRef protocol : {"ll", "lamport", "pull"}) {
      options.chip = chip;
      options.protocol = protocol;
      options.algorithm = "one_shot";
      options.blocks = 2;
      options.threads = 128;
      auto make = [&] {
        return compileCudaWith(source.parse(kFused), "", options, cache,
                               makePtx);
      };
      auto cold = make();
      ASSERT_TRUE(bool(cold)) << toString(cold.takeError()) << "\n"
                              << source.diagnostics;
      cache.forget();
      auto warm = make();
      ASSERT_TRUE(bool(warm));
      EXPECT_TRUE((*warm)->cached());
      expectSame(**cold, **warm);
      const CudaKernel &kernel = **cold;
      EXPECT_EQ(kernel.name(), "fused");
      EXPECT_EQ(kernel.ranks(), 4);
      EXPECT_EQ(kernel.shape().blocks, 2);
      EXPECT_EQ(kernel.shape().threads, 128);
      EXPECT_GT(kernel.registers(), 0u);
      EXPECT_LE(kernel.registers(), 255u);
      EXPECT_GT(kernel.paramBytes(), 24);
      EXPECT_GE(kernel.findArg("y"), 1);
      EXPECT_GT(kernel.args().size(), 2u);
      EXPECT_TRUE(kernel.args().back().hidden);
      EXPECT_FALSE(kernel.sites().empty());
      ASSERT_EQ(kernel.choices().size(), 1u);
      EXPECT_EQ(kernel.choices()[0].protocol, protocol);
    }
}

TEST_F(CudaCompile, PipelineErrorsNameTheStage) {
  Cache cache(settings);
  auto message = [&](StringRef text) {
    auto kernel =
        compileCudaWith(source.parse(text), "", options, cache, makePtx);
    return kernel ? "" : toString(kernel.takeError());
  };
  options.chip = "sm_12345";
  EXPECT_NE(message(kFused), "");
  options.chip = "sm_90";
  options.threads = 77;
  EXPECT_NE(message(kFused).find("pass "), std::string::npos);
}

/// While the linker's library opens on another thread.
TEST_F(CudaCompile, WhatTheMakerThrowsReachesTheCaller) {
  Cache cache(settings);
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_THROW((void)compileCudaWith(
                     source.parse(kFused), "", options, cache,
                     [](mlir::ModuleOp, StringRef,
                        const CudaOptions &) -> llvm::Expected<PtxKernel> {
                       throw std::bad_alloc();
                     }),
                 std::bad_alloc);
}

} // namespace

#endif // COMMSIR_CUDA
