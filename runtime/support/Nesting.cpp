//===- Nesting.cpp - Text that is nested too deeply -----------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Nesting.h"

#include "runtime/support/InputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

using namespace commsir::driver;

llvm::StringRef commsir::driver::describe(Nesting nesting) {
  static_assert(maxNesting == 256, "as the messages say");
  switch (nesting) {
  case Nesting::Brackets:
    return "brackets are nested more than 256 deep";
  case Nesting::Operators:
    return "an expression has more than 256 operators";
  case Nesting::Aliases:
    return "aliases of types or attributes name each other more than 256 deep, "
           "or are more than 65536 words when they are written out";
  case Nesting::Controls:
    return "a control character stands here: texts hold none but tabs and line "
           "feeds, nor the escapes of others in strings";
  case Nesting::Digits:
    return "a number has more than 1024 characters";
  }
  llvm_unreachable("a nesting that is not listed");
}

/// Splits a file for comms-opt --split-input-file and the language server.
static constexpr llvm::StringLiteral kSplitMark = "// -----";

/// Whether a terminal may take `byte`, behind `before`, for a command. UTF-8
/// has the control characters U+0080 to U+009F in two bytes. A terminal ignores
/// zeros, with which strings of lowered code end.
static bool isControl(unsigned char before, unsigned char byte) {
  return (byte && byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7F ||
         (before == 0xC2 && byte >= 0x80 && byte < 0xA0);
}

/// The first control character of `text`, apart from carriage returns at the
/// ends of lines. `inString`: also those that are written as escapes, `\1B`.
static std::optional<size_t> findControl(llvm::StringRef text, bool inString) {
  unsigned char before = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    size_t begin = at;
    unsigned char byte = text[at];
    llvm::StringRef next = text.substr(at + 1, 2);
    if (inString && byte == '\\' && next.size() == 2 &&
        llvm::isHexDigit(next[0]) && llvm::isHexDigit(next[1])) {
      byte = llvm::hexFromNibbles(next[0], next[1]);
      at += 2;
    } else if (inString && byte == '\\') {
      ++at; // Also a backslash, which begins no escape.
    }
    bool endsLine = byte == '\r' && next.starts_with("\n");
    if (isControl(before, byte) && !endsLine)
      return begin;
    before = byte;
  }
  return std::nullopt;
}

namespace {

/// Looks at a text once, from its begin to its end.
class Scanner {
public:
  explicit Scanner(llvm::StringRef text) : text(text) {}

  std::optional<DeepNesting> run() {
    while (at < text.size() && !found)
      step();
    return found;
  }

private:
  /// The value of an alias.
  struct Alias {
    unsigned depth = 0;
    uint64_t words = 0;
  };

  void step() {
    llvm::StringRef rest = text.substr(at);
    char c = rest.front();
    if (llvm::isSpace(c))
      ++at;
    else if (c == '"' || rest.starts_with("//"))
      skip(c == '"');
    else if (rest.starts_with("->") || rest.starts_with(">=") ||
             rest.starts_with("<="))
      pass(2);
    else if (llvm::StringRef("([{<").contains(c))
      open(c);
    else if (llvm::StringRef(")]}>").contains(c))
      close();
    else if (llvm::StringRef("+-*").contains(c))
      addSign(c);
    else if (c == '!' || c == '#')
      addAlias();
    else if (llvm::isAlnum(c) || c == '_')
      addWord();
    else
      addPunctuation(c);
  }

  /// Moves on by a token of `length`.
  void pass(size_t length) {
    last = text[at + length - 1];
    at += length;
    if (!defined.empty())
      addToDefinition(depth(), 1);
  }

  /// A string or a comment. A mark that splits files ends either, for those who
  /// split look for it before they know what is a string.
  void skip(bool isString) {
    if (!isString) {
      size_t end = std::min(text.find('\n', at), text.size());
      size_t mark = findMark(end);
      at = mark < end ? mark + kSplitMark.size() : end;
      return;
    }
    endDefinition();
    size_t end = at + 1;
    for (; end < text.size() && text[end] != '"' && text[end] != '\n'; ++end)
      end += text[end] == '\\';
    if (std::optional<size_t> control =
            findControl(text.slice(at, end), /*inString=*/true))
      found = DeepNesting{at + *control, Nesting::Controls};
    size_t mark = findMark(end);
    if (mark < end)
      return pass(mark + kSplitMark.size() - at);
    pass(std::min(end + 1, text.size()) - at);
  }

  /// The first mark that begins before `end`. Nothing behind it is looked at:
  /// else the time would grow with the square of the number of comments.
  size_t findMark(size_t end) const {
    size_t mark = text.slice(at, end + kSplitMark.size() - 1).find(kSplitMark);
    return mark == llvm::StringRef::npos ? mark : at + mark;
  }

  void open(char c) {
    if (c == '{')
      endDefinition();
    groups.push_back({c == '{', operators});
    if (c == '{' || groups.size() == 1 || groups[groups.size() - 2].isRegion)
      operators = 0;
    if (depth() > maxNesting)
      found = DeepNesting{at, Nesting::Brackets};
    pass(1);
  }

  void close() {
    if (!groups.empty()) {
      Group group = groups.pop_back_val();
      if (group.isRegion || groups.empty() || groups.back().isRegion)
        operators = group.operators;
    }
    pass(1);
  }

  /// An operator, unless it is the sign of a number.
  void addSign(char c) {
    bool isFirst = llvm::StringRef("([{<,:=").contains(last);
    bool isNumber = at + 1 < text.size() && llvm::isDigit(text[at + 1]);
    if (c != '-' || !isFirst || !isNumber)
      addOperator();
    pass(1);
  }

  void addOperator() {
    // In a region, numbers follow each other without a comma.
    if (!groups.empty() && !groups.back().isRegion && ++operators > maxNesting)
      found = DeepNesting{at, Nesting::Operators};
  }

  void addWord() {
    size_t end = at;
    auto isWord = [&] {
      return end < text.size() && (llvm::isAlnum(text[end]) ||
                                   llvm::StringRef("_$.").contains(text[end]));
    };
    while (isWord()) {
      ++end;
      // The sign of an exponent.
      if (llvm::isDigit(text[at]) && llvm::toLower(text[end - 1]) == 'e' &&
          end + 1 < text.size() && (text[end] == '+' || text[end] == '-') &&
          llvm::isDigit(text[end + 1]))
        ++end;
    }
    llvm::StringRef word = text.slice(at, end);
    constexpr size_t mostDigits = 1024;
    if (llvm::isDigit(word.front()) && word.size() > mostDigits)
      found = DeepNesting{at, Nesting::Digits};
    if (word == "mod" || word == "floordiv" || word == "ceildiv")
      addOperator();
    pass(end - at);
  }

  void addPunctuation(char c) {
    if (c == '@' || c == '%')
      endDefinition();
    pass(1);
  }

  /// Records the definition or use of an alias. A name with a dot belongs to a
  /// dialect.
  void addAlias() {
    size_t end = at + 1;
    // A number ends where no digit follows: `#1at#1` is two aliases.
    bool isNumber = end < text.size() && llvm::isDigit(text[end]);
    while (end < text.size() &&
           (llvm::isDigit(text[end]) ||
            (!isNumber && (llvm::isAlpha(text[end]) ||
                           llvm::StringRef("_$.-").contains(text[end])))))
      ++end;
    llvm::StringRef name = text.slice(at, end);
    llvm::StringRef behind = text.substr(end).ltrim();
    if (groups.empty() && behind.starts_with("=") &&
        !behind.starts_with("==")) {
      define();
      defined = name;
    } else if (auto it = aliases.find(name); it != aliases.end()) {
      use(it->second);
    }
    pass(end - at);
  }

  void use(const Alias &alias) {
    constexpr uint64_t mostWords = 65536;
    if (depth() + alias.depth > maxNesting || alias.words > mostWords)
      found = DeepNesting{at, Nesting::Aliases};
    if (!defined.empty())
      addToDefinition(depth() + alias.depth, alias.words);
  }

  void addToDefinition(size_t deep, uint64_t words) {
    definition.depth = std::max<unsigned>(definition.depth, deep + 1);
    definition.words = llvm::SaturatingAdd(definition.words, words);
  }

  /// Ends a definition, unless it has only begun: what comes now is no part of
  /// a type or an attribute.
  void endDefinition() {
    if (groups.empty() && last != '=')
      define();
  }

  void define() {
    if (!defined.empty())
      aliases[defined] = definition;
    defined = {};
    definition = {};
  }

  size_t depth() const { return groups.size(); }

  struct Group {
    bool isRegion;
    /// Of what is around it.
    unsigned operators;
  };

  llvm::StringRef text;
  size_t at = 0;
  llvm::SmallVector<Group, 32> groups;
  /// Operators of the current expression.
  unsigned operators = 0;
  /// The last character that is no space.
  char last = '=';
  llvm::StringMap<Alias> aliases;
  /// The alias that is being defined; empty: none is.
  llvm::StringRef defined;
  Alias definition;
  std::optional<DeepNesting> found;
};

} // namespace

std::optional<DeepNesting>
commsir::driver::findDeepNesting(llvm::StringRef text) {
  std::optional<DeepNesting> deep = Scanner(text).run();
  std::optional<size_t> control = findControl(text, /*inString=*/false);
  if (control && (!deep || *control < deep->at))
    return DeepNesting{*control, Nesting::Controls};
  return deep;
}

/// An error if diagnostics about a file `name` would show a control character.
static llvm::Error refuseName(llvm::StringRef name) {
  if (!findControl(name, /*inString=*/false))
    return llvm::Error::success();
  return llvm::createStringError("'" + name +
                                 "' has a control character: rename the file");
}

/// An error that names where `text` is nested too deep, if it is. `severity`
/// stands behind the place.
static llvm::Error refuseDeepNesting(llvm::StringRef text, llvm::StringRef name,
                                     llvm::StringRef severity) {
  std::optional<DeepNesting> deep = findDeepNesting(text);
  if (!deep)
    return llvm::Error::success();
  llvm::StringRef before = text.take_front(deep->at);
  size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return llvm::createStringError(
      name + ":" + llvm::Twine(before.count('\n') + 1) + ":" +
      llvm::Twine(column) + ": " + severity + describe(deep->what));
}

bool commsir::driver::isBytecode(llvm::StringRef source) {
  return source.starts_with("ML\xefR");
}

llvm::Error commsir::driver::refuseDeepText(llvm::StringRef text,
                                            llvm::StringRef name) {
  if (isBytecode(text))
    return llvm::Error::success();
  return refuseDeepNesting(text, name, "error: ");
}

llvm::Error commsir::driver::refuseSource(llvm::StringRef text,
                                          llvm::StringRef name) {
  if (isBytecode(text))
    return llvm::createStringError("'" + name +
                                   "' is MLIR bytecode: give the text that "
                                   "comms-opt makes of it");
  if (llvm::Error error = refuseName(name))
    return error;
  // It ends a lexer early: the rest would be dropped silently.
  if (text.contains('\0'))
    return llvm::createStringError("'" + name +
                                   "' is not MLIR text: it holds a zero byte");
  return refuseDeepNesting(text, name, "");
}

/// Refuses the text that `file` gives, and has standard input give it again.
static llvm::Error moveToStandardInput(int file, llvm::StringRef name) {
  llvm::Expected<std::string> text = commsir::driver::readStream(file, name);
  if (!text)
    return llvm::createStringError("error: " +
                                   llvm::toString(text.takeError()));
  if (llvm::Error error = refuseDeepText(*text, name))
    return error;
  int copy = memfd_create("commsir-input", MFD_CLOEXEC);
  llvm::raw_fd_ostream stream(copy, /*shouldClose=*/true);
  stream << *text;
  stream.flush();
  if (copy < 0 || stream.has_error() || lseek(copy, 0, SEEK_SET) ||
      dup2(copy, STDIN_FILENO) < 0) {
    stream.clear_error();
    return llvm::createStringError("error: '" + name +
                                   "' cannot be copied to memory: give a file");
  }
  return llvm::Error::success();
}

/// Refuses a regular file that would be scanned for long: most of it may be a
/// hole.
static llvm::Error refuseLong(const llvm::sys::fs::file_status &status,
                              llvm::StringRef name) {
  using commsir::driver::kMostTextBytes;
  if (status.getSize() <= kMostTextBytes)
    return llvm::Error::success();
  return llvm::createStringError(
      "error: '" + name + "' has " + llvm::Twine(status.getSize()) +
      " bytes, more than the limit of " + llvm::Twine(kMostTextBytes));
}

/// Refuses a file that the program opens again.
static llvm::Error refuseDeepFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::Error::success();
  return refuseDeepText((*buffer)->getBuffer(),
                        (*buffer)->getBufferIdentifier());
}

/// Refuses what standard input gives.
static llvm::Error refuseDeepInput() {
  namespace fs = llvm::sys::fs;
  fs::file_t file = fs::convertFDToNativeFile(STDIN_FILENO);
  fs::file_status status;
  if (fs::status(STDIN_FILENO, status) || isatty(STDIN_FILENO))
    return llvm::Error::success();
  if (!fs::is_regular_file(status))
    return moveToStandardInput(STDIN_FILENO, "<stdin>");
  if (llvm::Error error = refuseLong(status, "<stdin>"))
    return error;
  // Read without moving on: the program reads it once more.
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      file, "<stdin>", status.getSize(), /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::Error::success();
  return refuseDeepText((*buffer)->getBuffer(),
                        (*buffer)->getBufferIdentifier());
}

llvm::Error
commsir::driver::refuseDeepFiles(llvm::MutableArrayRef<char *> arguments) {
  namespace fs = llvm::sys::fs;
  static char standardInput[] = "-";
  bool isNamed = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    if (llvm::Error error = refuseName(argument))
      return error;
    // What follows is written.
    i += argument == "-o";
    fs::file_status status;
    if (argument.starts_with("-") || fs::status(argument, status) ||
        !fs::exists(status) || fs::is_directory(status))
      continue;
    isNamed = true;
    if (fs::is_regular_file(status)) {
      if (llvm::Error error = refuseLong(status, argument))
        return error;
      if (llvm::Error error = refuseDeepFile(argument))
        return error;
      continue;
    }
    int file = -1;
    if (fs::openFileForRead(argument, file))
      continue;
    llvm::Error error = moveToStandardInput(file, argument);
    ::close(file);
    if (error)
      return error;
    arguments[i] = standardInput;
  }
  bool asks = llvm::any_of(arguments.drop_front(), [](llvm::StringRef word) {
    word = word.ltrim('-');
    return word.starts_with("help") || word == "h" || word == "version" ||
           word.starts_with("show-dialects") || word.starts_with("list-passes");
  });
  return isNamed || asks ? llvm::Error::success() : refuseDeepInput();
}
