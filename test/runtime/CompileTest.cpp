//===- CompileTest.cpp - Machine code and its description -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"

#include "runtime/jit/Optimize.h"
#include "runtime/jit/Shapes.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdlib>
#include <set>

using namespace commsir;
using namespace commsir::test;

TEST(Compile, DescribesArguments) {
  Source source;
  auto kernel = source.compile(R"(
comms.kernel @args(%w: !comms.window<2x3xbf16>, %m: memref<4xf8E4M3FN>, %s: !comms.signal<7>,
                   %c: !comms.counter<2>, %n: index, %f: f16, %b: i1)
    attributes {ranks = 8 : i64, lsa_size = 4 : i64, blocks = 3 : i64} {
  comms.return
})");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->name(), "args");
  EXPECT_EQ(kernel->ranks(), 8);
  EXPECT_EQ(kernel->lsaSize(), 4);
  EXPECT_EQ(kernel->blocks(), 3);
  ASSERT_EQ(kernel->args().size(), 7u);
  using jit::ArgKind;
  const ArgKind kinds[] = {ArgKind::Window,  ArgKind::Memory, ArgKind::Signal,
                           ArgKind::Counter, ArgKind::Scalar, ArgKind::Scalar,
                           ArgKind::Scalar};
  const char *elements[] = {"bf16",  "f8E4M3FN", "i64", "i64",
                            "index", "f16",      "i1"};
  const size_t bytes[] = {12, 4, 56, 16, 8, 2, 1};
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(kernel->args()[i].kind, kinds[i]) << i;
    EXPECT_EQ(kernel->args()[i].elementType, elements[i]) << i;
    EXPECT_EQ(kernel->args()[i].bytes(), bytes[i]) << i;
  }
  EXPECT_EQ(kernel->findArg("c"), 3);
  EXPECT_EQ(kernel->findArg("nothing"), -1);
}

TEST(Compile, ScalarsAndScratch) {
  Source source;
  auto kernel = source.compile(R"(
comms.kernel @scalars(%n: index, %f: f32, %i: i16, %b: i1, %y: memref<3xf32>)
    attributes {ranks = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %tmp = comms.scratch : memref<64xf32, #comms.space<scratch>>
  %wide = arith.sitofp %i : i16 to f32
  memref.store %wide, %tmp[%n] : memref<64xf32, #comms.space<scratch>>
  %back = memref.load %tmp[%n] : memref<64xf32, #comms.space<scratch>>
  %sum = arith.addf %back, %f : f32
  %zero = arith.constant 0.0 : f32
  %chosen = arith.select %b, %sum, %zero : f32
  memref.store %chosen, %y[%c0] : memref<3xf32>
  comms.return
})");
  ASSERT_TRUE(kernel);
  EXPECT_GE(kernel->arenaBytes(), 256u);
  auto world = makeWorld(*kernel, {});
  auto set = [&](unsigned arg, int64_t rank, auto value) {
    world->setScalar(arg, rank,
                     {reinterpret_cast<const char *>(&value), sizeof value});
  };
  for (int64_t rank : {0, 1}) {
    set(0, rank, int64_t(63));
    set(1, rank, 0.5f);
    set(2, rank, int16_t(-7));
    set(3, rank, uint8_t(rank));
  }
  EXPECT_EQ(runReport(*world), "");
  EXPECT_EQ(part<float>(*world, *kernel, "y", 0)[0], 0.0f);
  EXPECT_EQ(part<float>(*world, *kernel, "y", 1)[0], -6.5f);
}

TEST(Compile, NamesTheStageThatFailed) {
  Source source;
  auto error = [&](const char *text, llvm::StringRef name,
                   jit::CompileOptions options = {}) {
    auto kernel = jit::compile(source.parse(text), name, options);
    return kernel ? std::string() : toString(kernel.takeError());
  };
  const char *two =
      "comms.kernel @a() attributes {ranks = 2 : i64} { comms.return }\n"
      "comms.kernel @b() { comms.return }";
  EXPECT_EQ(error("", ""), "the module has no comms.kernel");
  EXPECT_EQ(error(two, ""),
            "the module has several kernels: name one of @a, @b");
  EXPECT_EQ(error(two, "c"), "the module has no kernel @c; it has @a, @b");
  EXPECT_NE(error(two, "b").find("does not specify a number of ranks"),
            std::string::npos);
  jit::CompileOptions options;
  options.ranks = 3;
  EXPECT_EQ(error(two, "a", options),
            "kernel @a is written for 2 ranks, not for 3");
  EXPECT_EQ(error(two, "b", options), "");
}

TEST(Compile, FormsNoFusedMultiplyAdd) {
  Source source;
  auto kernel = source.compile(R"(
comms.kernel @unfused(%a: memref<16xf32>, %c: memref<16xf32>, %y: memref<16xf32>) attributes {ranks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %x = vector.load %a[%c0] : memref<16xf32>, vector<16xf32>
  %z = vector.load %c[%c0] : memref<16xf32>, vector<16xf32>
  %p = arith.mulf %x, %x : vector<16xf32>
  %s = arith.addf %p, %z : vector<16xf32>
  vector.store %s, %y[%c0] : memref<16xf32>, vector<16xf32>
  comms.return
})");
  ASSERT_TRUE(kernel);
  auto world = makeWorld(*kernel, {});
  // The square is 1 + 2^-11 + 2^-24: its last part is rounded away, unless the
  // addition comes in one rounding with it.
  llvm::fill(part<float>(*world, *kernel, "a", 0), 1.0f + 0x1p-12f);
  llvm::fill(part<float>(*world, *kernel, "c", 0), -(1.0f + 0x1p-11f));
  EXPECT_EQ(runReport(*world), "");
  for (float y : part<float>(*world, *kernel, "y", 0))
    EXPECT_EQ(y, 0.0f);
}

TEST(Compile, GivesTheObject) {
  std::string object;
  Source source;
  jit::CompileOptions options;
  options.object = &object;
  ASSERT_TRUE(source.compile(
      "comms.kernel @a() attributes {ranks = 2 : i64} { comms.return }",
      options));
  EXPECT_EQ(llvm::identify_magic(object), llvm::file_magic::elf_relocatable);
}

//===----------------------------------------------------------------------===//
// Processors
//===----------------------------------------------------------------------===//

/// Functions that the object file calls and does not have.
static std::set<std::string> undefinedSymbols(llvm::StringRef object) {
  auto file = llvm::cantFail(llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(object, "object")));
  std::set<std::string> names;
  for (const llvm::object::SymbolRef &symbol : file->symbols())
    if (llvm::cantFail(symbol.getFlags()) &
        llvm::object::BasicSymbolRef::SF_Undefined)
      names.insert(llvm::cantFail(symbol.getName()).str());
  return names;
}

/// Converts to f16 and back, rounds, and multiplies and adds.
static constexpr const char *kNarrowKernel = R"(
comms.kernel @narrow(%x: memref<8xf16>, %y: memref<8xf32>)
    attributes {ranks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %h = memref.load %x[%c0] : memref<8xf16>
  %w = arith.extf %h : f16 to f32
  %f = math.floor %w : f32
  %m = math.fma %f, %w, %w : f32
  memref.store %m, %y[%c0] : memref<8xf32>
  %n = arith.truncf %m : f32 to f16
  memref.store %n, %x[%c0] : memref<8xf16>
  comms.return
})";

#if defined(__x86_64__)
TEST(Compile, AProcessorWithoutConversionsCallsFunctions) {
  setenv("COMMSIR_PROCESSOR", "x86-64", 1);
  for (unsigned level : {0u, 2u, 3u}) {
    std::string object;
    Source source;
    jit::CompileOptions options;
    options.object = &object;
    options.optLevel = level;
    // That it loads says that each function is known.
    EXPECT_TRUE(source.compile(kNarrowKernel, options));
    std::set<std::string> names = undefinedSymbols(object);
    for (const char *name : {"__extendhfsf2", "__truncsfhf2", "floorf", "fmaf"})
      EXPECT_TRUE(names.count(name)) << name << " at level " << level;
  }
  EXPECT_EQ(jit::describeProcessor(), "x86-64");
  unsetenv("COMMSIR_PROCESSOR");
  EXPECT_NE(jit::describeProcessor(), "x86-64");
}
#endif

//===----------------------------------------------------------------------===//
// Narrow masked stores
//===----------------------------------------------------------------------===//

/// Machine code is linked with the runtime's functions and the few that code
/// generation calls, not with all that the process has.
TEST(Compile, FindsNoFunctionOfTheProcess) {
  auto loads = [](llvm::StringRef name) {
    Source source;
    auto lowered = source.parse(("llvm.func @" + name + R"(() -> i32
llvm.func @calls(%context: !llvm.ptr) attributes {comms.args = []} {
  %0 = llvm.call @)" + name + R"(() : () -> i32
  llvm.return
})")
                                    .str());
    auto kernel = jit::load(std::move(lowered), "calls", {});
    bool loaded = bool(kernel);
    if (!loaded)
      consumeError(kernel.takeError());
    return loaded;
  };
  EXPECT_TRUE(loads("memset"));
  EXPECT_FALSE(loads("getpid"));
  EXPECT_FALSE(loads("system"));
}

TEST(NarrowStores, AreExpanded) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(R"(
declare void @llvm.masked.store.v16i16.p0(<16 x i16>, ptr, <16 x i1>)
declare void @llvm.masked.store.v16i32.p0(<16 x i32>, ptr, <16 x i1>)
define void @f(ptr %p, <16 x i16> %v, <16 x i32> %w, <16 x i1> %m) {
  call void @llvm.masked.store.v16i16.p0(<16 x i16> %v, ptr align 2 %p, <16 x i1> %m)
  call void @llvm.masked.store.v16i32.p0(<16 x i32> %w, ptr align 4 %p, <16 x i1> %m)
  ret void
})",
                                          diagnostic, context);
  ASSERT_TRUE(module) << diagnostic.getMessage().str();
  EXPECT_EQ(jit::expandNarrowMaskedStores(*module), 1u);
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  EXPECT_EQ(jit::expandNarrowMaskedStores(*module), 0u);
}

/// For every number of lanes, exactly those elements are written: of a value
/// that is truncated first, which is where LLVM 22 writes too much.
template <typename T>
static void checkTruncatingStore(const char *type) {
  std::string text = R"(
comms.kernel @narrow(%x: memref<16xi32>, %n: index, %y: memref<24xTYPE>) attributes {ranks = 1 : i64} {
  %c0 = arith.constant 0 : index
  %mask = vector.create_mask %n : vector<16xi1>
  %wide = vector.load %x[%c0] : memref<16xi32>, vector<16xi32>
  %narrow = arith.trunci %wide : vector<16xi32> to vector<16xTYPE>
  vector.maskedstore %y[%c0], %mask, %narrow : memref<24xTYPE>, vector<16xi1>, vector<16xTYPE>
  comms.return
})";
  for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
    text.replace(at, 4, type);
  Source source;
  auto kernel = source.compile(text);
  ASSERT_TRUE(kernel);
  for (int64_t lanes = 0; lanes <= 16; ++lanes) {
    auto world = makeWorld(*kernel, {});
    for (auto [i, x] : llvm::enumerate(part<int32_t>(*world, *kernel, "x", 0)))
      x = static_cast<int32_t>(0x01010101 * (i + 1));
    auto y = part<T>(*world, *kernel, "y", 0);
    llvm::fill(y, T(0x55));
    world->setScalar(1, 0, {reinterpret_cast<const char *>(&lanes), 8});
    EXPECT_EQ(runReport(*world), "");
    for (int64_t i = 0; i < 24; ++i)
      EXPECT_EQ(y[i], i < lanes ? T(0x01010101 * (i + 1)) : T(0x55))
          << lanes << " lanes, " << i;
  }
}

TEST(NarrowStores, WriteTheirLanesOnly8) {
  checkTruncatingStore<uint8_t>("i8");
}
TEST(NarrowStores, WriteTheirLanesOnly16) {
  checkTruncatingStore<uint16_t>("i16");
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

TEST(Shapes, AreClosed) {
  Source source;
  auto module = source.parse(R"(
comms.kernel @open(%x: !comms.window<?x4xf32>, %y: memref<?xf32>) attributes {ranks = 2 : i64} {
  comms.return
})");
  mlir::comms::KernelOp open = *module->getOps<mlir::comms::KernelOp>().begin();
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  shapes["x"] = {3, 4};
  EXPECT_TRUE(failed(jit::specialize(open, shapes)));
  EXPECT_NE(source.diagnostics.find("argument 'y' has shape (?)"),
            std::string::npos)
      << source.diagnostics;
  shapes["y"] = {5};
  ASSERT_TRUE(succeeded(jit::specialize(open, shapes)));
  auto kernel = jit::compile(std::move(module), "", {});
  ASSERT_TRUE(bool(kernel));
  EXPECT_EQ((*kernel)->args()[0].shape, (llvm::SmallVector<int64_t>{3, 4}));
  EXPECT_EQ((*kernel)->args()[1].shape, (llvm::SmallVector<int64_t>{5}));
}

TEST(Shapes, MustFit) {
  Source source;
  auto module = source.parse("comms.kernel @k(%x: memref<?x4xf32>) attributes "
                             "{ranks = 2 : i64} { comms.return }");
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  shapes["x"] = {3, 5};
  EXPECT_TRUE(failed(jit::specialize(
      *module->getOps<mlir::comms::KernelOp>().begin(), shapes)));
  EXPECT_NE(source.diagnostics.find(
                "has shape (?, 4) in the kernel, but its array has shape "
                "(3, 5)"),
            std::string::npos)
      << source.diagnostics;
}
