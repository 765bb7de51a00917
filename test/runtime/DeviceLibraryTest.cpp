//===- DeviceLibraryTest.cpp - Device code for other releases of NCCL -----===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifdef COMMSIR_CUDA

#include "runtime/jit/cuda/DeviceLibrary.h"
#include "runtime/jit/cuda/Link.h"
#include "runtime/jit/cuda/NcclDevice.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <set>

using namespace commsir;
using namespace commsir::jit;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

namespace {

/// A release that nobody has, whose headers could be those at hand.
constexpr int kOther = 22899;

/// Sets a variable of the environment for a while.
struct Setting {
  Setting(const char *name, StringRef value) : name(name) {
    if (const char *old = std::getenv(name))
      before = old;
    ::setenv(name, value.str().c_str(), 1);
  }
  ~Setting() {
    if (before)
      ::setenv(name, before->c_str(), 1);
    else
      ::unsetenv(name);
  }
  const char *name;
  std::optional<std::string> before;
};

struct DeviceLibrary : testing::Test {
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("commsir-nccl", folder));
    CacheSettings settings;
    settings.folder = (folder + "/cache").str();
    cache = std::make_unique<Cache>(settings);
    // What `make setup` has brought is found after what the user names.
    StringRef path =
        ::getenv("LD_LIBRARY_PATH") ? ::getenv("LD_LIBRARY_PATH") : "";
    if (!path.contains(COMMSIR_CUDA_LIBRARIES))
      ::setenv("LD_LIBRARY_PATH",
               (path + ":" COMMSIR_CUDA_LIBRARIES).str().c_str(), 1);
    llvm::Expected<std::string> nvrtc = describeNvrtc();
    hasNvrtc = bool(nvrtc);
    if (!nvrtc)
      llvm::consumeError(nvrtc.takeError());
  }
  void TearDown() override { fs::remove_directories(folder); }

  /// Lays an NCCL out as a wheel does, its headers those at hand under another
  /// release; the library is an empty file.
  NcclInstallation makeNccl(StringRef name, int version) {
    std::string root = (folder + "/" + name).str();
    EXPECT_FALSE(fs::create_directories(root + "/lib"));
    copyHeaders(COMMSIR_NCCL_HEADERS, root + "/include", version);
    std::string library = root + "/lib/libnccl.so.2";
    write(library, "");
    return {version, library};
  }

  void copyHeaders(const std::string &from, const std::string &to,
                   int version) {
    std::error_code error;
    for (fs::recursive_directory_iterator file(from, error), end;
         file != end && !error; file.increment(error)) {
      StringRef path = file->path();
      // The folder may be one of the system, with links and others' headers.
      if (fs::is_directory(path) ||
          !path.drop_front(from.size() + 1).starts_with("nccl"))
        continue;
      std::string target = to + path.drop_front(from.size()).str();
      auto text = llvm::MemoryBuffer::getFile(path);
      ASSERT_TRUE(bool(text)) << path.str();
      std::string content = (*text)->getBuffer().str();
      if (path.ends_with("/nccl.h"))
        content =
            llvm::Regex("NCCL_VERSION_CODE [0-9]+")
                .sub("NCCL_VERSION_CODE " + std::to_string(version), content);
      write(target, content);
    }
    ASSERT_FALSE(error) << error.message();
  }

  void write(const std::string &path, StringRef text) {
    ASSERT_FALSE(fs::create_directories(llvm::sys::path::parent_path(path)));
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error);
    ASSERT_FALSE(error) << path;
    stream << text;
  }

  /// PTX of NcclLayouts.cu by NVRTC, for those who compare it with another
  /// compiler's: COMMSIR_TEST_LAYOUTS.
  void writeLayouts(const NcclInstallation &nccl) {
    const char *path = std::getenv("COMMSIR_TEST_LAYOUTS");
    if (!path)
      return;
    auto headers = findNcclHeaders(nccl);
    ASSERT_TRUE(bool(headers)) << llvm::toString(headers.takeError());
    auto text = llvm::MemoryBuffer::getFile(COMMSIR_NCCL_LAYOUTS);
    ASSERT_TRUE(bool(text)) << COMMSIR_NCCL_LAYOUTS;
    auto ptx = compileByNvrtc(
        (cuda::getNcclDeviceSource() + (*text)->getBuffer()).str(),
        "NcclLayouts.cu", headers->headers,
        {"-arch=sm_90", "-std=c++17", "-default-device", "-w", "-rdc=true"});
    ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
    write(path, *ptx);
  }

  std::string failure(const NcclInstallation &nccl) {
    auto code = getDeviceCode(nccl, DevicePart::Kernels, "sm_90", *cache);
    return code ? "it worked" : llvm::toString(code.takeError());
  }

  llvm::SmallString<128> folder;
  std::unique_ptr<Cache> cache;
  bool hasNvrtc = false;
};

/// Names of the functions that PTX defines for others.
std::set<std::string> listPtxFunctions(StringRef ptx) {
  std::set<std::string> names;
  llvm::Regex function("^\\.visible \\.func.*[ )](commsir_[a-z_]+)\\(");
  llvm::SmallVector<StringRef> match;
  for (StringRef line : llvm::split(ptx, '\n'))
    if (function.match(line, &match))
      names.insert(match[1].str());
  return names;
}

std::set<std::string> listBitcodeFunctions(StringRef bitcode) {
  llvm::LLVMContext context;
  auto module = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(bitcode, "NcclDevice.bc"), context);
  std::set<std::string> names;
  if (!module) {
    ADD_FAILURE() << llvm::toString(module.takeError());
    return names;
  }
  for (const llvm::Function &function : **module)
    if (!function.isDeclaration() && function.hasExternalLinkage() &&
        function.getCallingConv() != llvm::CallingConv::PTX_Kernel &&
        function.getName().starts_with("commsir_"))
      names.insert(function.getName().str());
  return names;
}

/// A kernel that calls two functions of the library.
const char kCaller[] = R"(
.version 8.3
.target sm_90
.address_size 64
.extern .func (.param .b64 r) commsir_nccl_lsa_pointer(
  .param .b64 a, .param .b64 b, .param .b32 c);
.extern .func commsir_nccl_gin_put(.param .b64 a, .param .b32 b, .param .b32 c,
  .param .b64 d, .param .b64 e, .param .b64 f, .param .b64 g, .param .b64 h);
.visible .entry caller(.param .u64 window, .param .u64 out, .param .u64 comm) {
  .reg .b64 %rd<9>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [window];
  ld.param.u64 %rd2, [out];
  ld.param.u64 %rd3, [comm];
  mov.b64 %rd4, 64;
  mov.b32 %r1, 1;
  { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 r;
    st.param.b64 [a], %rd1; st.param.b64 [b], %rd4; st.param.b32 [c], %r1;
    call.uni (r), commsir_nccl_lsa_pointer, (a, b, c);
    ld.param.b64 %rd5, [r]; }
  st.global.u64 [%rd2], %rd5;
  { .param .b64 a; .param .b32 b; .param .b32 c; .param .b64 d; .param .b64 e;
    .param .b64 f; .param .b64 g; .param .b64 h;
    st.param.b64 [a], %rd3; st.param.b32 [b], %r1; st.param.b32 [c], %r1;
    st.param.b64 [d], %rd1; st.param.b64 [e], %rd4; st.param.b64 [f], %rd1;
    st.param.b64 [g], %rd4; st.param.b64 [h], %rd4;
    call.uni commsir_nccl_gin_put, (a, b, c, d, e, f, g, h); }
  ret;
}
)";

} // namespace

TEST_F(DeviceLibrary, TheSameReleaseIsEmbedded) {
  NcclInstallation nccl{cuda::getNcclDeviceVersion(), "/nowhere/libnccl.so.2"};
  EXPECT_FALSE(checkDeviceCode(nccl));
  auto kernels = getDeviceCode(nccl, DevicePart::Kernels, "sm_90", *cache);
  ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
  EXPECT_EQ(kernels->origin, "embedded");
  EXPECT_TRUE(StringRef(kernels->code).contains("commsir_resolve_window"));
  EXPECT_EQ(kernels->code.back(), '\0');
  auto functions = getDeviceCode(nccl, DevicePart::Functions, "sm_90", *cache);
  ASSERT_TRUE(bool(functions));
  EXPECT_TRUE(functions->isBitcode);
}

TEST_F(DeviceLibrary, NvrtcMakesTheKernelsOnce) {
  if (!hasNvrtc)
    GTEST_SKIP() << "there is no NVRTC here";
  NcclInstallation nccl = makeNccl("other", kOther);
  EXPECT_FALSE(checkDeviceCode(nccl));
  auto first = getDeviceCode(nccl, DevicePart::Kernels, "sm_90", *cache);
  ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
  EXPECT_FALSE(first->cached);
  EXPECT_EQ(first->version, kOther);
  EXPECT_TRUE(StringRef(first->origin).contains("other/include"));
  // The release is compiled in: the runtime compares it with the library's.
  EXPECT_NE(readCubin(first->code, "commsir_resolve_window").registers, 0u);
  auto again = getDeviceCode(nccl, DevicePart::Kernels, "sm_90", *cache);
  ASSERT_TRUE(bool(again));
  EXPECT_TRUE(again->cached);
  EXPECT_EQ(again->code, first->code);
  // Also by another process.
  Cache other(cache->getSettings());
  auto fromDisk = getDeviceCode(nccl, DevicePart::Kernels, "sm_90", other);
  ASSERT_TRUE(bool(fromDisk));
  EXPECT_TRUE(fromDisk->cached);
  auto chip = getDeviceCode(nccl, DevicePart::Kernels, "sm_100", *cache);
  ASSERT_TRUE(bool(chip));
  EXPECT_FALSE(chip->cached);
}

TEST_F(DeviceLibrary, AnUnknownSettingIsAnError) {
  NcclInstallation nccl = makeNccl("same", cuda::getNcclDeviceVersion());
  for (const char *value : {"nvrct", "1", "NVRTC", "embedded ", "\x1b[31m"}) {
    Setting device("COMMSIR_NCCL_DEVICE", value);
    for (const std::string &said :
         {llvm::toString(checkDeviceCode(nccl)),
          llvm::toString(identifyDeviceCode(nccl).takeError()),
          llvm::toString(
              getDeviceCode(nccl, DevicePart::Kernels, "sm_90", *cache)
                  .takeError())})
      EXPECT_EQ(said, "COMMSIR_NCCL_DEVICE='" + std::string(value) +
                          "' is neither embedded nor nvrtc: write one of "
                          "them, or unset it");
  }
  for (const char *value : {"", "embedded"}) {
    Setting device("COMMSIR_NCCL_DEVICE", value);
    EXPECT_EQ(llvm::toString(checkDeviceCode(nccl)), "");
  }
}

/// What `COMMSIR_NCCL_DEVICE=nvrtc` stands for: a build without the bitcode.
TEST_F(DeviceLibrary, WithoutTheBitcodeNvrtcMakesTheSame) {
  if (!hasNvrtc)
    GTEST_SKIP() << "there is no NVRTC here";
  Setting device("COMMSIR_NCCL_DEVICE", "nvrtc");
  NcclInstallation nccl = makeNccl("same", cuda::getNcclDeviceVersion());
  Setting headers("COMMSIR_NCCL_INCLUDE", (folder + "/same/include").str());
  nccl.path = "libnccl.so.2";
  auto code = getDeviceCode(nccl, DevicePart::Functions, "sm_90", *cache);
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  EXPECT_FALSE(code->isBitcode);
  std::set<std::string> names = listPtxFunctions(code->code);
  EXPECT_GE(names.size(), 20u);
  EXPECT_EQ(names, listBitcodeFunctions(cuda::getNcclDeviceBitcode()));
  auto alone = linkPtx(kCaller, "caller", "sm_90", 3, "nvjitlink");
  ASSERT_FALSE(bool(alone)) << "the calls are of nothing";
  std::string text = llvm::toString(alone.takeError());
  EXPECT_TRUE(StringRef(text).contains("commsir_nccl_gin_put")) << text;
  auto linked = linkPtx(kCaller, "caller", "sm_90", 3, "nvjitlink", code->code);
  ASSERT_TRUE(bool(linked)) << llvm::toString(linked.takeError());
  EXPECT_NE(linked->facts.registers, 0u);
}

TEST_F(DeviceLibrary, OnlyNvJitLinkLinksALibrary) {
  auto linked = linkPtx(kCaller, "caller", "sm_90", 3, "ptxas", kCaller);
  ASSERT_FALSE(bool(linked));
  std::string text = llvm::toString(linked.takeError());
  EXPECT_TRUE(StringRef(text).contains("ptxas links no library")) << text;
}

TEST_F(DeviceLibrary, TwoNcclsHaveTheirOwnHeaders) {
  NcclInstallation one = makeNccl("one", 22851), two = makeNccl("two", 22852);
  auto first = findNcclHeaders(one), second = findNcclHeaders(two);
  ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  EXPECT_TRUE(StringRef(first->folder).ends_with("one/include"));
  EXPECT_TRUE(StringRef(second->folder).ends_with("two/include"));
  EXPECT_NE(first->digest, second->digest);
}

/// As Debian's packages lie: /usr/lib/x86_64-linux-gnu and /usr/include, among
/// headers that NVRTC must not see.
TEST_F(DeviceLibrary, HeadersOfASystem) {
  makeNccl("usr", kOther);
  for (StringRef name : {"stdint.h", "stddef.h", "string.h", "unistd.h",
                         "cuda_runtime.h", "cuda_fp16.h", "cuda/atomic"})
    write((folder + "/usr/include/" + name).str(), "#error foreign");
  NcclInstallation nccl{
      kOther, (folder + "/usr/lib/x86_64-linux-gnu/libnccl.so.2").str()};
  write(nccl.path, "");
  auto headers = findNcclHeaders(nccl);
  ASSERT_TRUE(bool(headers)) << llvm::toString(headers.takeError());
  EXPECT_TRUE(StringRef(headers->folder).ends_with("usr/include"));
  if (!hasNvrtc)
    return;
  for (DevicePart part : {DevicePart::Kernels, DevicePart::Functions}) {
    auto code = getDeviceCode(nccl, part, "sm_90", *cache);
    EXPECT_TRUE(bool(code)) << llvm::toString(code.takeError());
  }
}

TEST_F(DeviceLibrary, ALinkToTheLibraryIsFollowed) {
  NcclInstallation nccl = makeNccl("real", kOther);
  std::string link = (folder + "/elsewhere.so").str();
  ASSERT_FALSE(fs::create_link(nccl.path, link));
  auto headers = findNcclHeaders({kOther, link});
  ASSERT_TRUE(bool(headers)) << llvm::toString(headers.takeError());
  EXPECT_TRUE(StringRef(headers->folder).ends_with("real/include"));
}

/// The first headers that are found are not good enough.
TEST_F(DeviceLibrary, HeadersOfAnotherReleaseAreRefused) {
  NcclInstallation nccl = makeNccl("other", kOther);
  nccl.version = 22812;
  std::string text = failure(nccl);
  for (StringRef part :
       {StringRef("2.28.12"),
        StringRef("other/include has those of NCCL "
                  "2.28.99"),
        StringRef("nvidia-nccl-cu13==2.28.12"),
        StringRef("COMMSIR_NCCL_INCLUDE"), StringRef(nccl.path)})
    EXPECT_TRUE(StringRef(text).contains(part)) << part.str() << "\n" << text;
  // The release that is embedded is named too.
  EXPECT_TRUE(
      StringRef(text).contains(formatNcclVersion(cuda::getNcclDeviceVersion())))
      << text;
  llvm::Error error = checkDeviceCode(nccl);
  EXPECT_TRUE(bool(error));
  llvm::consumeError(std::move(error));
}

TEST_F(DeviceLibrary, NoHeaders) {
  std::string text = failure({kOther, (folder + "/lib/libnccl.so.2").str()});
  EXPECT_TRUE(StringRef(text).contains("has no nccl.h")) << text;
  NcclInstallation nccl = makeNccl("old", kOther);
  fs::remove((folder + "/old/include/nccl_device.h").str());
  text = failure(nccl);
  EXPECT_TRUE(StringRef(text).contains("has no nccl_device.h")) << text;
}

TEST_F(DeviceLibrary, BrokenHeadersGiveTheLog) {
  if (!hasNvrtc)
    GTEST_SKIP() << "there is no NVRTC here";
  NcclInstallation nccl = makeNccl("broken", kOther);
  write((folder + "/broken/include/nccl_device/ptr.h").str(),
        "#pragma once\nthis is no C++;\n");
  std::string text = failure(nccl);
  EXPECT_TRUE(StringRef(text).contains("nccl_device/ptr.h(2): error")) << text;
  EXPECT_TRUE(StringRef(text).contains("NVRTC")) << text;
}

TEST_F(DeviceLibrary, NoNvrtc) {
  NcclInstallation nccl = makeNccl("other", kOther);
  Setting nvrtc("COMMSIR_NVRTC_LIBRARY", "/nowhere/libnvrtc.so");
  std::string text = failure(nccl);
  EXPECT_TRUE(StringRef(text).contains("/nowhere/libnvrtc.so")) << text;
  EXPECT_TRUE(StringRef(text).contains("pip install nvidia-cuda-nvrtc"))
      << text;
  llvm::Error error = checkDeviceCode(nccl);
  EXPECT_TRUE(bool(error));
  llvm::consumeError(std::move(error));
}

/// The NCCL in a folder (`include` and `lib`), whatever its release is:
/// test/integration/another-nccl.sh.
TEST_F(DeviceLibrary, AnotherReleaseIsCompiled) {
  const char *root = std::getenv("COMMSIR_TEST_NCCL");
  if (!root)
    GTEST_SKIP() << "COMMSIR_TEST_NCCL names no NCCL";
  auto text = llvm::MemoryBuffer::getFile(root + std::string("/include/nccl.h"),
                                          /*IsText=*/true);
  ASSERT_TRUE(bool(text)) << root;
  llvm::SmallVector<StringRef> match;
  NcclInstallation nccl;
  ASSERT_TRUE(llvm::Regex("define NCCL_VERSION_CODE ([0-9]+)")
                  .match((*text)->getBuffer(), &match));
  ASSERT_FALSE(match[1].getAsInteger(10, nccl.version));
  nccl.path = root + std::string("/lib/libnccl.so.2");
  Setting device("COMMSIR_NCCL_DEVICE", "nvrtc");
  auto kernels = getDeviceCode(nccl, DevicePart::Kernels, "sm_90", *cache);
  ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
  for (const char *name : {"commsir_resolve_window", "commsir_probe_window",
                           "commsir_require", "commsir_describe_comm"})
    EXPECT_NE(readCubin(kernels->code, name).registers, 0u) << name;
  auto functions = getDeviceCode(nccl, DevicePart::Functions, "sm_90", *cache);
  ASSERT_TRUE(bool(functions)) << llvm::toString(functions.takeError());
  EXPECT_EQ(listPtxFunctions(functions->code),
            listBitcodeFunctions(cuda::getNcclDeviceBitcode()));
  auto linked =
      linkPtx(kCaller, "caller", "sm_90", 3, "nvjitlink", functions->code);
  ASSERT_TRUE(bool(linked)) << llvm::toString(linked.takeError());
  EXPECT_NE(linked->facts.registers, 0u);
  writeLayouts(nccl);
}

/// Where the host's compiler puts attributes behind a structure's members,
/// NVRTC leaves them out: the layouts would differ.
TEST_F(DeviceLibrary, AttributesMoveToTheFront) {
  NcclInstallation nccl = makeNccl("attributes", kOther);
  write((folder + "/attributes/include/nccl_device.h").str(), R"(
#include <stdint.h>
typedef union {
  struct { uint8_t a; uint32_t b; } __attribute__((packed)) one;
} Both;
struct Two { struct { int c; }; } __attribute__((__packed__))
    __attribute__((__aligned__(8)));
template <typename T> struct Parts { uint64_t part[sizeof(T)/8]; };
)");
  auto headers = findNcclHeaders(nccl);
  ASSERT_TRUE(bool(headers)) << llvm::toString(headers.takeError());
  std::string text;
  for (const NvrtcHeader &header : headers->headers)
    if (header.name == "nccl_device.h")
      text = header.text;
  for (StringRef part :
       {StringRef("struct __attribute__((packed))  { uint8_t a;"),
        StringRef("struct __attribute__((__packed__))"),
        StringRef("__attribute__((__aligned__(8)))  Two {"),
        StringRef("part[sizeof(T)/8 ? sizeof(T)/8 : 1];"), StringRef("} one;")})
    EXPECT_TRUE(StringRef(text).contains(part)) << part.str() << "\n" << text;
}

#endif // COMMSIR_CUDA
