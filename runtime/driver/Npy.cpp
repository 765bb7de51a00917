//===- Npy.cpp - Arrays in .npy files -------------------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Npy.h"

#include "runtime/support/ForeignText.h"
#include "runtime/support/HostMemory.h"
#include "runtime/support/InputFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"

using namespace commsir::driver;

static constexpr llvm::StringLiteral kMagic("\x93NUMPY");
/// NumPy's own limit for headers that it reads without being asked to.
static constexpr size_t kMaxHeader = 1 << 16;
static constexpr size_t kMaxRank = 64;

template <typename... Parts>
static llvm::Error bad(llvm::StringRef path, const Parts &...parts) {
  std::string text = ("'" + path + "': ").str();
  (text.append(llvm::StringRef(parts).str()), ...);
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

//===----------------------------------------------------------------------===//
// The header: a Python dictionary
//===----------------------------------------------------------------------===//

namespace {

/// The header's fields before validation.
struct Header {
  std::string descr;
  bool structured = false;
  std::optional<bool> fortranOrder;
  std::optional<llvm::SmallVector<int64_t>> shape;
};

/// Reads the part of Python's literals that NumPy writes in headers.
class HeaderParser {
public:
  HeaderParser(llvm::StringRef text) : rest(text) {}

  /// Fills `header`; on failure `problem` says what was met.
  bool parse(Header &header) {
    if (!consumeIf('{'))
      return fail("does not start with '{'");
    while (!consumeIf('}')) {
      std::string key;
      if (!parseString(key) || !consumeIf(':'))
        return fail("has no \"'key':\" where one should be");
      if (!parseEntry(key, header))
        return false;
      if (!consumeIf(',') && !peek('}'))
        return fail("lacks a ',' or '}'");
    }
    if (!rest.trim().empty())
      return fail("goes on after '}'");
    return true;
  }

  std::string problem;

private:
  bool fail(const llvm::Twine &what) {
    if (problem.empty())
      problem = what.str();
    return false;
  }

  bool peek(char c) {
    rest = rest.ltrim();
    return rest.starts_with(llvm::StringRef(&c, 1));
  }

  bool consumeIf(char c) {
    if (!peek(c))
      return false;
    rest = rest.drop_front();
    return true;
  }

  bool parseString(std::string &out) {
    char quote = peek('"') ? '"' : '\'';
    if (!consumeIf(quote))
      return false;
    size_t end = rest.find(quote);
    if (end == llvm::StringRef::npos)
      return false;
    out = rest.take_front(end).str();
    rest = rest.drop_front(end + 1);
    return true;
  }

  bool parseEntry(llvm::StringRef key, Header &header) {
    if (key == "descr")
      return parseDescr(header);
    if (key == "fortran_order")
      return parseBool(header.fortranOrder);
    if (key == "shape")
      return parseShape(header);
    return fail("has an unknown key '" + commsir::showName(key.str()) + "'");
  }

  bool parseDescr(Header &header) {
    if (parseString(header.descr))
      return true;
    if (!peek('['))
      return fail("has a 'descr' that is not a string");
    header.structured = true;
    // Structured types are refused, so their extent alone matters.
    int depth = 0;
    for (size_t i = 0; i < rest.size(); ++i) {
      depth += rest[i] == '[' ? 1 : rest[i] == ']' ? -1 : 0;
      if (depth == 0) {
        rest = rest.drop_front(i + 1);
        return true;
      }
    }
    return fail("has a 'descr' without end");
  }

  bool parseBool(std::optional<bool> &out) {
    rest = rest.ltrim();
    if (rest.consume_front("True"))
      out = true;
    else if (rest.consume_front("False"))
      out = false;
    else
      return fail("has a 'fortran_order' that is neither True nor False");
    return true;
  }

  bool parseShape(Header &header) {
    header.shape.emplace();
    if (!consumeIf('('))
      return fail("has a 'shape' that is not a tuple");
    while (!consumeIf(')')) {
      int64_t dim;
      rest = rest.ltrim();
      if (rest.starts_with("-"))
        return fail("has a negative dimension");
      if (rest.consumeInteger(10, dim))
        return fail("has a dimension that is not a 64-bit integer");
      rest.consume_front("L"); // Python 2 wrote long integers so.
      if (header.shape->size() == kMaxRank)
        return fail("has more than 64 dimensions");
      header.shape->push_back(dim);
      if (!consumeIf(',') && !peek(')'))
        return fail("has a 'shape' without end");
    }
    return true;
  }

  llvm::StringRef rest;
};

} // namespace

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

namespace {
struct Descr {
  llvm::StringLiteral text; ///< without the byte order
  Element element;
  bool raw;
};
} // namespace

static constexpr Descr kDescrs[] = {
    {"b1", Element::I1, false},
    {"i1", Element::I8, false},
    {"i2", Element::I16, false},
    {"i4", Element::I32, false},
    {"i8", Element::I64, false},
    {"u1", Element::U8, false},
    {"u2", Element::U16, false},
    {"u4", Element::U32, false},
    {"u8", Element::U64, false},
    {"f2", Element::F16, false},
    {"f4", Element::F32, false},
    {"f8", Element::F64, false},
    {"V2", Element::BF16, true},
    {"V1", Element::F8E4M3FN, true},
    {"bfloat16", Element::BF16, false},
    {"float8_e4m3fn", Element::F8E4M3FN, false},
    {"float8_e5m2", Element::F8E5M2, false},
    {"f1", Element::F8E5M2, false}, // as ml_dtypes has NumPy write it
};

/// Judges `descr`; sets `type` and `raw`.
static llvm::Error validateType(llvm::StringRef path, const Header &header,
                                Element &type, bool &raw) {
  if (header.structured)
    return bad(path, "holds a structured array; save one field, as in "
                     "np.save(path, a['field'])");
  llvm::StringRef text = header.descr;
  if (text.trim("|<>=").starts_with("O"))
    return bad(path, "holds pickled Python objects, which are never read; "
                     "convert the array to a number type first");
  bool bigEndian = text.consume_front(">");
  if (!bigEndian && !text.consume_front("<") && !text.consume_front("|"))
    text.consume_front("=");
  for (const Descr &descr : kDescrs) {
    if (descr.text != text)
      continue;
    if (bigEndian && elementBytes(descr.element) > 1)
      return bad(path, "is big-endian ('", header.descr,
                 "'); save it as np.save(path, a.astype(a.dtype."
                 "newbyteorder('<')))");
    type = descr.element;
    raw = descr.raw;
    return llvm::Error::success();
  }
  return bad(path, "has element type '", header.descr,
             "', which no kernel argument has; use float16/32/64, int8 to "
             "int64, bool, or bfloat16, float8_e4m3fn and float8_e5m2 of "
             "ml_dtypes");
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Splits the file into header text and data.
static llvm::Error splitFile(llvm::StringRef path, llvm::StringRef bytes,
                             llvm::StringRef &header, llvm::StringRef &data) {
  if (!bytes.starts_with(kMagic))
    return bad(path, bytes.empty() ? "is empty"
                                   : "is not a .npy file (it does not start "
                                     "with \\x93NUMPY); write it with np.save");
  if (bytes.size() < 10)
    return bad(path, "is truncated: it ends within its header");
  unsigned version = uint8_t(bytes[6]);
  if (version < 1 || version > 3)
    return bad(path, "is of .npy version ", std::to_string(version),
               "; versions 1 to 3 are read");
  unsigned lengthBytes = version == 1 ? 2 : 4;
  size_t start = 8 + lengthBytes;
  if (bytes.size() < start)
    return bad(path, "is truncated: it ends within its header");
  size_t length = version == 1
                      ? llvm::support::endian::read16le(bytes.data() + 8)
                      : llvm::support::endian::read32le(bytes.data() + 8);
  if (length > kMaxHeader)
    return bad(path, "has a header of ", std::to_string(length),
               " bytes; at most ", std::to_string(kMaxHeader), " are read");
  if (bytes.size() - start < length)
    return bad(path, "is truncated: its header has ", std::to_string(length),
               " bytes, of which ", std::to_string(bytes.size() - start),
               " are there");
  header = bytes.substr(start, length);
  data = bytes.drop_front(start + length);
  return llvm::Error::success();
}

/// Number of elements and bytes of `shape`, or false on overflow.
static bool measure(llvm::ArrayRef<int64_t> shape, unsigned elementBytes,
                    int64_t &count, int64_t &bytes) {
  count = 1;
  // Zero first: numpy writes huge dimensions next to a zero one.
  if (llvm::is_contained(shape, 0)) {
    count = bytes = 0;
    return true;
  }
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(count, dim, &count))
      return false;
  return !__builtin_mul_overflow(count, int64_t(elementBytes), &bytes);
}

llvm::Expected<Npy> Npy::parse(std::unique_ptr<llvm::MemoryBuffer> bytes,
                               llvm::StringRef name) {
  Npy npy;
  npy.name = name.str();
  npy.buffer = std::move(bytes);
  llvm::StringRef headerText;
  if (llvm::Error error =
          splitFile(name, npy.buffer->getBuffer(), headerText, npy.content))
    return error;
  Header header;
  HeaderParser parser(headerText);
  if (!parser.parse(header))
    return bad(name, "its header ", parser.problem);
  if (!header.shape || !header.fortranOrder ||
      (header.descr.empty() && !header.structured))
    return bad(name,
               "its header lacks one of 'descr', 'fortran_order', 'shape'");
  if (llvm::Error error = validateType(name, header, npy.type, npy.raw))
    return error;
  npy.dims = *header.shape;
  if (*header.fortranOrder && npy.dims.size() > 1)
    return bad(name, "is in Fortran order; save it as np.save(path, "
                     "np.ascontiguousarray(a))");
  int64_t size;
  if (!measure(npy.dims, elementBytes(npy.type), npy.elements, size))
    return bad(name, "has shape ", renderShape(npy.dims),
               ", whose size does not fit 64 bits");
  if (uint64_t(size) != npy.content.size())
    return bad(name,
               uint64_t(size) > npy.content.size() ? "is truncated"
                                                   : "is too long",
               ": its shape ", renderShape(npy.dims), " of ",
               elementName(npy.type), " takes ", std::to_string(size),
               " bytes, the file has ", std::to_string(npy.content.size()));
  return npy;
}

llvm::Expected<Npy> Npy::open(llvm::StringRef path) {
  // A pipe or a device has no size to check a shape against, and may not end.
  auto buffer = readFile(path, memoryLimit());
  if (!buffer) {
    bool isThere = llvm::sys::fs::exists(path);
    return bad(path, "cannot be read: ",
               llvm::toString(buffer.takeError()) +
                   (isThere ? "" : kInputForms));
  }
  return parse(std::move(*buffer), path);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static std::string descrOf(Element element) {
  // Raw bytes, as ml_dtypes has its other types written: NumPy does not read
  // the '<f1' that it writes.
  if (element == Element::F8E5M2)
    return "<V1";
  for (const Descr &descr : kDescrs)
    if (descr.element == element)
      return (elementBytes(element) == 1 && !descr.raw ? "|" : "<") +
             descr.text.str();
  llvm_unreachable("every element has a descr");
}

std::string commsir::driver::npyHeader(Element element,
                                       llvm::ArrayRef<int64_t> shape) {
  std::string dims;
  for (int64_t dim : shape)
    dims += std::to_string(dim) + (shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1)
    dims.resize(dims.size() - 2);
  std::string text = "{'descr': '" + descrOf(element) +
                     "', 'fortran_order': False, 'shape': (" + dims + "), }";
  // Data start at a multiple of 64 bytes.
  size_t unpadded = 10 + text.size() + 1;
  text.append((64 - unpadded % 64) % 64, ' ');
  text += '\n';
  std::string header = kMagic.str();
  header += '\x01';
  header += '\0';
  header += char(text.size() & 0xff);
  header += char(text.size() >> 8);
  return header + text;
}

std::string commsir::driver::renderShape(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (int64_t dim : shape)
    text += (text.empty() ? "" : "x") + (dim < 0 ? "?" : std::to_string(dim));
  return text;
}
