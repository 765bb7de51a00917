//===- NpyTest.cpp - Reading and writing .npy files -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Npy.h"

#include "gtest/gtest.h"

using namespace commsir::driver;

namespace {

/// A version 1 file with the given header text and data.
std::string file(llvm::StringRef header, llvm::StringRef data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += char(header.size() & 0xff);
  text += char(header.size() >> 8);
  return (text + header + data).str();
}

std::string dict(llvm::StringRef descr, llvm::StringRef shape,
                 llvm::StringRef fortran = "False") {
  return ("{'descr': " + descr + ", 'fortran_order': " + fortran +
          ", 'shape': " + shape + ", }\n")
      .str();
}

llvm::Expected<Npy> parse(const std::string &text) {
  return Npy::parse(llvm::MemoryBuffer::getMemBufferCopy(text), "x.npy");
}

std::string errorOf(const std::string &text) {
  llvm::Expected<Npy> npy = parse(text);
  return npy ? "no error" : llvm::toString(npy.takeError());
}

bool contains(const std::string &text, llvm::StringRef part) {
  return llvm::StringRef(text).contains(part);
}

} // namespace

#define EXPECT_ERROR(text, part)                                               \
  EXPECT_TRUE(contains(errorOf(text), part)) << errorOf(text)

TEST(Npy, ReadsItsOwnFiles) {
  for (Element element :
       {Element::F32, Element::BF16, Element::F8E4M3FN, Element::I64,
        Element::F16, Element::I8, Element::I1, Element::F64}) {
    for (llvm::SmallVector<int64_t> shape :
         {llvm::SmallVector<int64_t>{}, {5}, {2, 3}, {0, 7}}) {
      int64_t count = 1;
      for (int64_t dim : shape)
        count *= dim;
      std::string data(count * elementBytes(element), '\x3c');
      std::string header = npyHeader(element, shape);
      EXPECT_EQ(header.size() % 64, 0u);
      llvm::Expected<Npy> npy = parse(header + data);
      ASSERT_TRUE(bool(npy)) << llvm::toString(npy.takeError());
      EXPECT_EQ(npy->element(), element);
      EXPECT_EQ(npy->shape(), llvm::ArrayRef<int64_t>(shape));
      EXPECT_EQ(npy->data(), data);
    }
  }
}

TEST(Npy, ReadsVersions2And3AndNames) {
  std::string header = dict("'bfloat16'", "(1,)");
  std::string text("\x93NUMPY\x02\x00", 8);
  text += char(header.size());
  text += std::string(3, '\0');
  llvm::Expected<Npy> npy = parse(text + header + "ab");
  ASSERT_TRUE(bool(npy)) << llvm::toString(npy.takeError());
  EXPECT_EQ(npy->element(), Element::BF16);
}

TEST(Npy, RefusesOtherFormats) {
  EXPECT_ERROR("", "is empty");
  EXPECT_ERROR("garbage that is long enough", "is not a .npy file");
  EXPECT_ERROR(std::string("\x93NUMPY\x01\x00", 8), "truncated");
  EXPECT_ERROR(std::string("\x93NUMPY\x09\x00\x10\x00", 10), "version 9");
  EXPECT_ERROR(std::string("\x93NUMPY\x01\x00\xff\xff{", 11), "truncated");
  EXPECT_ERROR(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14),
               "header of 4294967295 bytes");
}

TEST(Npy, RefusesBadHeaders) {
  EXPECT_ERROR(file("", ""), "its header");
  EXPECT_ERROR(file("{'descr': '<f4'", ""), "its header");
  EXPECT_ERROR(file("{'descr': '<f4'}", ""), "lacks one of");
  EXPECT_ERROR(file("{'shape': (1", ""), "without end");
  EXPECT_ERROR(file("{'color': 3}", ""), "unknown key 'color'");
  EXPECT_ERROR(file(dict("'<f4'", "(-1,)"), ""), "negative");
  EXPECT_ERROR(file(dict("'<f4'", "(99999999999999999999,)"), ""), "64-bit");
  EXPECT_ERROR(file(dict("'<f4'", "(1,)", "Maybe"), "abcd"), "neither True");
  EXPECT_ERROR(file(dict("'<f4'", "(1,)") + "x", "abcd"), "goes on");
}

TEST(Npy, RefusesShapesThatDoNotFit) {
  EXPECT_ERROR(file(dict("'<f4'", "(4294967296, 4294967296)"), ""),
               "does not fit 64 bits");
  EXPECT_ERROR(file(dict("'<f8'", "(2305843009213693952,)"), ""),
               "does not fit 64 bits");
  EXPECT_ERROR(file(dict("'<f4'", "(1000000000,)"), "abcd"), "is truncated");
  EXPECT_ERROR(file(dict("'<f4'", "(1,)"), "abcde"), "is too long");
}

TEST(Npy, RefusesTypesThatNoKernelHas) {
  EXPECT_ERROR(file(dict("'|O'", "(1,)"), "abcd"), "pickled");
  EXPECT_ERROR(file(dict("'>f4'", "(1,)"), "abcd"), "big-endian");
  EXPECT_ERROR(file(dict("'<U3'", "(1,)"), "abcd"), "element type '<U3'");
  EXPECT_ERROR(file(dict("[('a', '<f4')]", "(1,)"), "abcd"), "structured");
  EXPECT_ERROR(file(dict("[", "(1,)"), "abcd"), "without end");
  EXPECT_ERROR(file(dict("'<f4'", "(2, 2)", "True"), std::string(16, 'a')),
               "Fortran order");
}

/// NumPy writes ml_dtypes' float8_e5m2 so, and its other types as raw bytes.
TEST(Npy, ReadsE5M2AsMlDtypesHasItWritten) {
  auto npy = parse(file(dict("'<f1'", "(2,)"), "ab"));
  ASSERT_TRUE(bool(npy)) << llvm::toString(npy.takeError());
  EXPECT_EQ(npy->element(), Element::F8E5M2);
  EXPECT_FALSE(npy->isRaw());
}

TEST(Npy, OneDimensionHasNoOrder) {
  EXPECT_EQ(errorOf(file(dict("'<f4'", "(1,)", "True"), "abcd")), "no error");
  EXPECT_EQ(errorOf(file(dict("'>i1'", "(1,)"), "a")), "no error");
}

TEST(Npy, RefusesIrregularFiles) {
  for (const char *path : {"/dev/zero", "/nonexistent/x.npy", "/"}) {
    llvm::Expected<Npy> npy = Npy::open(path);
    ASSERT_FALSE(bool(npy));
    EXPECT_TRUE(contains(llvm::toString(npy.takeError()), path));
  }
}
