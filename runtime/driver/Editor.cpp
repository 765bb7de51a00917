//===- Editor.cpp - Between an editor and a language server ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Editor.h"

#include "runtime/support/Json.h"
#include "runtime/support/Nesting.h"
#include "runtime/support/StandardError.h"

#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <thread>
#include <unistd.h>

using namespace commsir::driver;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Documents
//===----------------------------------------------------------------------===//

namespace {

/// Ops that stand for a text that is nested too deep.
constexpr std::pair<Nesting, llvm::StringLiteral> kMarks[] = {
    {Nesting::Brackets, "nesting.brackets"},
    {Nesting::Operators, "nesting.operators"},
    {Nesting::Aliases, "nesting.aliases"},
    {Nesting::Controls, "nesting.controls"},
    {Nesting::Digits, "nesting.digits"}};

/// Parses none of these ops, and says why.
template <Nesting what>
mlir::ParseResult parseMark(mlir::OpAsmParser &parser, mlir::OperationState &) {
  // By the parser it would begin with the name of this op.
  return mlir::emitError(parser.getEncodedSourceLoc(parser.getNameLoc()))
         << describe(what) << ": nothing else of the file is checked";
}

/// Has ops that cannot be parsed: the error is all of them.
class NestingDialect : public mlir::Dialect {
public:
  explicit NestingDialect(mlir::MLIRContext *context)
      : Dialect(getDialectNamespace(), context,
                mlir::TypeID::get<NestingDialect>()) {}

  static constexpr llvm::StringLiteral getDialectNamespace() {
    return "nesting";
  }

  /// The hooks are functions, for a hook refers to what is called.
  std::optional<ParseOpHook>
  getParseOperationHook(llvm::StringRef name) const override {
    if (name == kMarks[0].second)
      return ParseOpHook(parseMark<kMarks[0].first>);
    if (name == kMarks[1].second)
      return ParseOpHook(parseMark<kMarks[1].first>);
    if (name == kMarks[2].second)
      return ParseOpHook(parseMark<kMarks[2].first>);
    if (name == kMarks[3].second)
      return ParseOpHook(parseMark<kMarks[3].first>);
    if (name == kMarks[4].second)
      return ParseOpHook(parseMark<kMarks[4].first>);
    return std::nullopt;
  }

  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NestingDialect)
};

} // namespace

/// Returns `text` with all lines blank except for the op at `deep`.
static std::string blankAllButError(llvm::StringRef text,
                                    const DeepNesting &deep) {
  std::string blank;
  for (size_t at = 0; at < text.size(); ++at) {
    if (at == deep.at)
      blank += llvm::find_if(kMarks, [&](const auto &one) {
                 return one.first == deep.what;
               })->second;
    if (text[at] == '\n')
      blank += '\n';
    else if ((text[at] & 0xC0) != 0x80) // One for all bytes of a character.
      blank += ' ';
  }
  return blank;
}

/// Replaces the member `text` of an object; says whether. Where a diagnostic
/// lies behind a carriage return, as in lines that end with two characters,
/// MLIR's server finds no place in its text, and ends: a space takes as much
/// space.
static bool replaceText(json::Object *object) {
  auto found = object ? object->getString("text") : std::nullopt;
  if (!found)
    return false;
  std::string text = found->str();
  llvm::replace(text, '\r', ' ');
  if (std::optional<DeepNesting> deep = findDeepNesting(text))
    text = blankAllButError(text, *deep);
  if (text == *found)
    return false;
  (*object)["text"] = text;
  return true;
}

/// Gives the server a method that it does not have in place of one that could
/// end it: it answers a request with an error that has the name, and ignores a
/// notification. Returns whether it did.
static bool replaceMethod(json::Object &message) {
  auto method = message.getString("method");
  if (!method)
    return false;
  // MLIR's reader of bytecode ends the process where that is damaged.
  if (*method == "mlir/convertFromBytecode") {
    message["method"] = "mlir/convertFromBytecode (comms-opt converts bytecode "
                        "to text; the language server does not read it)";
    return true;
  }
  // What pieces add up to was not looked at, and the server asks for all.
  const json::Object *params = message.getObject("params");
  const json::Array *changes =
      params ? params->getArray("contentChanges") : nullptr;
  if (!changes || llvm::none_of(*changes, [](const json::Value &change) {
        const json::Object *object = change.getAsObject();
        return object && object->get("range");
      }))
    return false;
  message["method"] = "textDocument/didChange (with a range, where the server "
                      "asks for whole texts)";
  return true;
}

/// JSON that the server says is wrong, and that changes nothing else.
static constexpr llvm::StringLiteral kWrongJson = "{";

/// Whether the message has so many values that they would fill the memory:
/// each takes 40 bytes, and editor messages have few in addition to their
/// texts.
static bool hasTooManyValues(llvm::StringRef message) {
  constexpr size_t kMostValues = size_t(1) << 20;
  return message.count(',') > kMostValues &&
         commsir::countJsonCommas(message) > kMostValues;
}

/// Whether an answer can repeat it: a number that is no double is read as an
/// infinity, and would be written as one, which is no JSON.
static bool isId(const json::Value &id) {
  std::optional<double> number = id.getAsNumber();
  return id.getAsString() || id.getAsNull() ||
         (number && std::isfinite(*number));
}

/// Whether the server takes it for a request, a notification or an answer.
static bool isValid(const json::Object &message) {
  const json::Value *id = message.get("id");
  return message.getString("jsonrpc") == "2.0" &&
         (message.getString("method") || id) && (!id || isId(*id));
}

/// Returns the replacement for an object that is not a JSON-RPC message and
/// would end the server: a request that it answers with an error, or nothing if
/// the object has no id.
static std::string replaceInvalid(const json::Object &object) {
  const json::Value *id = object.get("id");
  if (!id || !isId(*id))
    return kWrongJson.str();
  return llvm::formatv("{0}", json::Value(json::Object{
                                  {"jsonrpc", "2.0"},
                                  {"id", *id},
                                  {"method", "(no request of JSON-RPC 2.0: its "
                                             "\"jsonrpc\" is not \"2.0\")"}}))
      .str();
}

std::string commsir::driver::guardMessage(llvm::StringRef message) {
  if (hasTooManyValues(message))
    return kWrongJson.str();
  llvm::Expected<json::Value> parsed = commsir::readJson(message);
  if (!parsed) {
    // The server gets what tells it that the message is wrong, without brackets
    // by which it would recurse.
    llvm::consumeError(parsed.takeError());
    return message.size() > maxNesting ? kWrongJson.str() : message.str();
  }
  json::Object *all = parsed->getAsObject();
  if (!all)
    return kWrongJson.str();
  if (!isValid(*all))
    return replaceInvalid(*all);
  bool replaced = replaceMethod(*all);
  if (json::Object *params = all->getObject("params")) {
    replaced |= replaceText(params->getObject("textDocument"));
    if (json::Array *changes = params->getArray("contentChanges"))
      for (json::Value &change : *changes)
        replaced |= replaceText(change.getAsObject());
  }
  return replaced ? llvm::formatv("{0}", *parsed).str() : message.str();
}

//===----------------------------------------------------------------------===//
// Standard input
//===----------------------------------------------------------------------===//

namespace {

/// Reads lines and bytes from a descriptor. (C streams have locks, which a
/// process that exits would wait for.)
class Reader {
public:
  explicit Reader(int file) : file(file) {}

  /// Up to the end of the line, or of all, or of `most` bytes or some more;
  /// empty: the end.
  std::string line(size_t most) {
    size_t end;
    while ((end = buffer.find('\n')) == std::string::npos &&
           buffer.size() < most && fill()) {
    }
    return take(end == std::string::npos ? buffer.size() : end + 1);
  }

  /// Fewer at the end.
  std::string bytes(size_t count) {
    while (buffer.size() < count && fill()) {
    }
    return take(std::min(count, buffer.size()));
  }

  void skip(size_t count) {
    while (buffer.size() < count) {
      count -= buffer.size();
      buffer.clear();
      if (!fill())
        return;
    }
    take(count);
  }

private:
  bool fill() {
    char piece[1 << 16];
    ssize_t size;
    while ((size = read(file, piece, sizeof(piece))) < 0 && errno == EINTR) {
    }
    buffer.append(piece, std::max<ssize_t>(size, 0));
    return size > 0;
  }

  std::string take(size_t count) {
    std::string taken = buffer.substr(0, count);
    buffer.erase(0, count);
    return taken;
  }

  int file;
  std::string buffer;
};

} // namespace

static void writeMessage(llvm::raw_ostream &stream, llvm::StringRef body) {
  stream << "Content-Length: " << body.size() << "\r\n\r\n" << body;
  stream.flush();
}

/// Calls `take` with each message of `input` until it ends, or until headers
/// are longer than any. Returns what follows the last message.
static std::string readMessages(int input, const TakeMessage &take) {
  constexpr size_t kMostBytes = size_t(1) << 26, kMostHeaders = 1 << 16;
  Reader reader(input);
  std::string headers;
  size_t length = 0;
  for (std::string line; headers.size() < kMostHeaders &&
                         !(line = reader.line(kMostHeaders)).empty();) {
    headers += line;
    llvm::StringRef header = llvm::StringRef(line).trim();
    if (header.consume_front_insensitive("Content-Length:"))
      header.trim().getAsInteger(10, length);
    if (!header.empty() || !length)
      continue;
    if (length <= kMostBytes) {
      take(reader.bytes(length));
    } else {
      commsir::printErrorLine(
          "comms-lsp-server: error: skips a message of " + llvm::Twine(length) +
          " bytes: the longest that it reads has " + llvm::Twine(kMostBytes));
      reader.skip(length);
    }
    headers.clear();
    length = 0;
  }
  return headers;
}

/// Gives the messages of `input` to `note` and then to `output`.
static void pump(int input, int output, const TakeMessage &note) {
  llvm::raw_fd_ostream passed(output, /*shouldClose=*/true);
  std::string rest = readMessages(input, [&](llvm::StringRef message) {
    std::string body = guardMessage(message);
    note(body);
    writeMessage(passed, body);
  });
  // The server refuses what is no message.
  passed << rest;
}

bool commsir::driver::guardEditorInput(mlir::DialectRegistry &registry,
                                       TakeMessage note) {
  registry.insert<NestingDialect>();
  int ends[2];
  int input = dup(STDIN_FILENO);
  if (input < 0 || pipe(ends) || dup2(ends[0], STDIN_FILENO) < 0)
    return false;
  close(ends[0]);
  // It ends with the editor's end of the file, or with the process.
  std::thread(pump, input, ends[1], std::move(note)).detach();
  return true;
}

//===----------------------------------------------------------------------===//
// Standard output
//===----------------------------------------------------------------------===//

void EditorOutput::write(llvm::StringRef message) {
  std::lock_guard lock(mutex);
  writeMessage(*editor, message);
}

bool EditorOutput::redirect(TakeMessage take) {
  int ends[2];
  int output = dup(STDOUT_FILENO);
  if (output < 0 || pipe(ends) || dup2(ends[1], STDOUT_FILENO) < 0)
    return false;
  close(ends[1]);
  editor = std::make_unique<llvm::raw_fd_ostream>(output, /*shouldClose=*/true);
  reader = std::thread([input = ends[0], take = std::move(take)] {
    readMessages(input, take);
    close(input);
  });
  return true;
}

void EditorOutput::finish() {
  llvm::outs().flush();
  close(STDOUT_FILENO); // The reader's end of the file.
  reader.join();
  // Whatever still writes to standard output finds an open descriptor.
  dup2(STDERR_FILENO, STDOUT_FILENO);
}
