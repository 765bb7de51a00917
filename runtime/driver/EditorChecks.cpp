//===- EditorChecks.cpp - The checker and op docs in an editor ------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/EditorChecks.h"

#include "dialect/Comms.h"
#include "lowering/Pipelines.h"
#include "lowering/analysis/Attributes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace commsir::driver;
namespace json = llvm::json;
namespace comms = mlir::comms;

/// How long a document must stay unchanged before it is checked.
static constexpr std::chrono::milliseconds kQuiet(300);
/// Ranks of kernels that do not say how many they have.
static constexpr int64_t kRanks = 4;
/// Time limit of a check.
static constexpr std::chrono::seconds kMostTime(20);
static constexpr rlim_t kMostMemory = rlim_t(4) << 30;

//===----------------------------------------------------------------------===//
// The checker
//===----------------------------------------------------------------------===//

namespace {
/// Severities of the Language Server Protocol.
enum Severity : int64_t { Error = 1, Warning = 2, Information = 3, Hint = 4 };
} // namespace

/// The line of `location` as a range; the first line if it has none.
static json::Object rangeOf(mlir::Location location) {
  auto place = location->findInstanceOf<mlir::FileLineColLoc>();
  int64_t line = place ? std::max<int64_t>(place.getLine(), 1) - 1 : 0;
  int64_t column = place ? std::max<int64_t>(place.getColumn(), 1) - 1 : 0;
  return json::Object{
      {"start", json::Object{{"line", line}, {"character", column}}},
      {"end", json::Object{{"line", line}, {"character", column + 1}}}};
}

static json::Object makeDiagnostic(mlir::Location location, Severity severity,
                                   std::string message) {
  return json::Object{{"range", rangeOf(location)},
                      {"severity", static_cast<int64_t>(severity)},
                      {"source", "comms-check-sync"},
                      {"message", std::move(message)}};
}

/// A diagnostic of the checker with its notes, each with its line.
static json::Object describe(mlir::Diagnostic &diagnostic) {
  bool isError = diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
  std::string message = (isError ? "refuted: " : "") + diagnostic.str();
  for (const mlir::Diagnostic &note : diagnostic.getNotes()) {
    auto place = note.getLocation()->findInstanceOf<mlir::FileLineColLoc>();
    message += place ? llvm::formatv("\nline {0}: ", place.getLine()).str()
                     : std::string("\n");
    message += note.str();
  }
  return makeDiagnostic(diagnostic.getLocation(), isError ? Error : Warning,
                        std::move(message));
}

/// The verdict that the checker left on a kernel.
static std::optional<json::Object> describeVerdict(comms::KernelOp kernel) {
  auto proof =
      kernel->getAttrOfType<mlir::DictionaryAttr>(comms::target::kProofAttr);
  auto verdict =
      proof ? proof.getAs<mlir::StringAttr>("verdict") : mlir::StringAttr();
  if (!verdict)
    return std::nullopt;
  auto number = [&](llvm::StringRef name) {
    auto value = proof.getAs<mlir::IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  if (verdict.getValue() == "proven")
    return makeDiagnostic(
        kernel.getLoc(), Hint,
        llvm::formatv("proven for {0} ranks (blocks per rank: {1}): no "
                      "deadlock and no data race",
                      number("ranks"), number("blocks")));
  std::string message = "not decided";
  if (auto reasons = proof.getAs<mlir::ArrayAttr>("reasons"))
    for (auto [at, reason] :
         llvm::enumerate(reasons.getAsRange<mlir::StringAttr>()))
      message += (at ? "; " : ": ") + reason.getValue().str();
  return makeDiagnostic(kernel.getLoc(), Warning, std::move(message));
}

json::Array
commsir::driver::checkDocument(llvm::StringRef text,
                               const mlir::DialectRegistry &registry) {
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // The editor shows the line.
  json::Array found;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        // The verdict repeats what remarks say.
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Remark)
          found.push_back(describe(diagnostic));
        return mlir::success();
      });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return {};
  module->walk([](comms::KernelOp kernel) {
    if (!kernel.getRanks())
      kernel.setRanks(kRanks);
  });
  mlir::PassManager passes(&context);
  comms::NVVMPipelineOptions options;
  comms::buildCommsToChannels(passes, options);
  comms::buildProof(passes, options);
  if (mlir::failed(passes.run(*module)))
    return found;
  if (!found.empty()) // Warnings, which say why a kernel is not decided.
    return found;
  module->walk([&](comms::KernelOp kernel) {
    if (std::optional<json::Object> verdict = describeVerdict(kernel))
      found.push_back(std::move(*verdict));
  });
  return found;
}

//===----------------------------------------------------------------------===//
// The checker's process
//===----------------------------------------------------------------------===//

int commsir::driver::checkStandardInput(const mlir::DialectRegistry &registry) {
  rlimit memory{kMostMemory, kMostMemory}, core{0, 0};
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &core);
  auto text = llvm::MemoryBuffer::getSTDIN();
  if (!text)
    return EXIT_FAILURE;
  llvm::outs() << json::Value(checkDocument((*text)->getBuffer(), registry));
  llvm::outs().flush();
  return EXIT_SUCCESS;
}

namespace {
/// A file in memory that ends with this object.
struct MemoryFile {
  MemoryFile() : file(memfd_create("commsir-editor", MFD_CLOEXEC)) {}
  ~MemoryFile() { close(file); }

  bool write(llvm::StringRef text) const {
    llvm::raw_fd_ostream stream(file, /*shouldClose=*/false);
    stream << text;
    stream.flush();
    bool failed = stream.has_error();
    stream.clear_error();
    return !failed && lseek(file, 0, SEEK_SET) == 0;
  }
  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getOpenFile(
        llvm::sys::fs::convertFDToNativeFile(file), "", /*FileSize=*/-1);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

  int file;
};
} // namespace

/// Starts this program once more, to check what is in `input`. Returns its
/// process; -1: there is none.
static pid_t startCheck(const MemoryFile &input, const MemoryFile &output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.file, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.file, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                   O_WRONLY, 0);
  std::string name = "comms-lsp-server", argument = kCheckArgument.str();
  char *arguments[] = {name.data(), argument.data(), nullptr};
  pid_t process;
  int error = posix_spawn(&process, "/proc/self/exe", &actions, nullptr,
                          arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error ? -1 : process;
}

/// Waits for a process, and ends it when its time is up or `isOutdated` says
/// so. Returns what is wrong with how it ended; empty: nothing.
static std::string waitFor(pid_t process,
                           llvm::function_ref<bool()> isOutdated) {
  auto deadline = std::chrono::steady_clock::now() + kMostTime;
  int status = 0;
  bool late = false;
  while (waitpid(process, &status, WNOHANG) == 0) {
    late = std::chrono::steady_clock::now() > deadline;
    if (!late && !isOutdated()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    break;
  }
  if (late)
    return llvm::formatv("it takes more than {0} s", kMostTime.count());
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
    return "";
  return llvm::formatv("it ended early, or needs more than {0} GiB of memory",
                       kMostMemory >> 30);
}

/// checkDocument in a process of its own.
static json::Array checkApart(llvm::StringRef text,
                              llvm::function_ref<bool()> isOutdated) {
  MemoryFile input, output;
  pid_t process = input.write(text) ? startCheck(input, output) : -1;
  std::string wrong =
      process < 0 ? "its process does not start" : waitFor(process, isOutdated);
  if (wrong.empty()) {
    llvm::Expected<json::Value> found = json::parse(output.read());
    if (json::Array *array = found ? found->getAsArray() : nullptr)
      return std::move(*array);
    llvm::consumeError(found.takeError());
    wrong = "its answer cannot be read";
  }
  json::Object start{{"line", 0}, {"character", 0}};
  json::Object end{{"line", 0}, {"character", 1}};
  json::Array found;
  found.push_back(
      json::Object{{"range", json::Object{{"start", std::move(start)},
                                          {"end", std::move(end)}}},
                   {"severity", static_cast<int64_t>(Warning)},
                   {"source", "comms-check-sync"},
                   {"message", "not checked while you type: " + wrong +
                                   "; comms-run checks without these limits"}});
  return found;
}

/// Whether a check of this version is of no use any more.
bool EditorChecks::isOutdated(const std::string &uri, int64_t version) {
  std::lock_guard lock(mutex);
  auto noted = documents.find(uri);
  return stopped || noted == documents.end() ||
         noted->second.version != version;
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

/// The section of each op in a page of mlir-tblgen, up to its tables.
static llvm::StringMap<std::string> readDescriptions(llvm::StringRef page) {
  llvm::StringMap<std::string> found;
  llvm::SmallVector<llvm::StringRef> sections;
  page.split(sections, "\n### `");
  for (llvm::StringRef section : llvm::ArrayRef(sections).drop_front()) {
    auto [name, rest] = section.split('`');
    llvm::StringRef body = rest.split('\n').second.split("\n#### ").first;
    for (llvm::StringRef end : {"\nTraits: ", "\nInterfaces: ", "\nEffects: "})
      body = body.split(end).first;
    found[name] = body.trim().str();
  }
  return found;
}

/// The op's name that stands at a place of a text; empty: none.
static llvm::StringRef nameAt(llvm::StringRef text, int64_t line,
                              int64_t character) {
  for (; line > 0 && !text.empty(); --line)
    text = text.split('\n').second;
  text = text.split('\n').first;
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
  size_t begin = std::min<size_t>(std::max<int64_t>(character, 0), text.size());
  size_t end = begin;
  while (begin > 0 && isPart(text[begin - 1]))
    --begin;
  while (end < text.size() && isPart(text[end]))
    ++end;
  return text.slice(begin, end);
}

/// The id of a request, a number or a string, as a key.
static std::string keyOf(const json::Value &id) {
  return llvm::formatv("{0}", id);
}

void EditorChecks::completeHover(json::Object &answer) {
  const json::Value *id = answer.get("id");
  auto asked = id ? hovers.find(keyOf(*id)) : hovers.end();
  if (asked == hovers.end())
    return;
  std::string text = std::move(asked->second);
  hovers.erase(asked);
  json::Object *result = answer.getObject("result");
  json::Object *contents = result ? result->getObject("contents") : nullptr;
  if (contents) {
    if (auto value = contents->getString("value"))
      text += "\n\n---\n\n" + value->str();
    (*contents)["value"] = text;
    return;
  }
  answer["result"] = json::Object{
      {"contents", json::Object{{"kind", "markdown"}, {"value", text}}}};
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

EditorChecks::EditorChecks(llvm::StringRef opDocs,
                           std::function<void(llvm::StringRef)> send,
                           bool checks)
    : descriptions(readDescriptions(opDocs)), send(std::move(send)) {
  if (checks)
    worker = std::thread([this] { run(); });
}

void EditorChecks::stop() {
  {
    std::lock_guard lock(mutex);
    stopped = true;
  }
  changed.notify_all();
  if (worker.joinable())
    worker.join();
}

void EditorChecks::noteRequest(llvm::StringRef message) {
  llvm::Expected<json::Value> parsed = json::parse(message);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return;
  }
  const json::Object *all = parsed->getAsObject();
  const json::Object *params = all ? all->getObject("params") : nullptr;
  const json::Object *document =
      params ? params->getObject("textDocument") : nullptr;
  auto method = all ? all->getString("method") : std::nullopt;
  auto uri = document ? document->getString("uri") : std::nullopt;
  if (!method || !uri)
    return;
  std::lock_guard lock(mutex);
  if (*method == "textDocument/didClose") {
    documents.erase(uri->str());
  } else if (*method == "textDocument/didOpen" ||
             *method == "textDocument/didChange") {
    // The server asks for whole texts.
    auto text = document->getString("text");
    if (const json::Array *edits = params->getArray("contentChanges");
        edits && !edits->empty())
      if (const json::Object *edit = edits->back().getAsObject())
        text = edit->getString("text");
    Document &noted = documents[uri->str()];
    noted.text = text.value_or("").str();
    noted.version = document->getInteger("version").value_or(0);
    ++changes;
    changed.notify_all();
  } else if (*method == "textDocument/hover") {
    const json::Object *place = params->getObject("position");
    const json::Value *id = all->get("id");
    if (!place || !id)
      return;
    auto found = descriptions.find(nameAt(
        documents[uri->str()].text, place->getInteger("line").value_or(0),
        place->getInteger("character").value_or(0)));
    if (found != descriptions.end())
      hovers[keyOf(*id)] = found->second;
  }
}

/// Has a document checked in which the server found no error.
void EditorChecks::noteDiagnostics(const json::Object &params) {
  auto uri = params.getString("uri");
  auto found = uri ? documents.find(uri->str()) : documents.end();
  const json::Array *diagnostics = params.getArray("diagnostics");
  if (found == documents.end() || !diagnostics)
    return;
  found->second.diagnostics = *diagnostics;
  bool isWrong = llvm::any_of(*diagnostics, [](const json::Value &one) {
    const json::Object *object = one.getAsObject();
    return object && object->getInteger("severity").value_or(Error) == Error;
  });
  if (isWrong && next == found->first)
    next.clear();
  if (isWrong)
    return;
  next = found->first;
  changed.notify_all();
}

void EditorChecks::forwardAnswer(llvm::StringRef message) {
  llvm::Expected<json::Value> parsed = json::parse(message);
  json::Object *all = parsed ? parsed->getAsObject() : nullptr;
  if (!parsed)
    llvm::consumeError(parsed.takeError());
  // Sends under the lock, so that no older verdict overtakes this message.
  std::lock_guard lock(mutex);
  if (!all) {
    send(message);
    return;
  }
  completeHover(*all);
  if (all->getString("method") == "textDocument/publishDiagnostics")
    if (const json::Object *params = all->getObject("params"))
      noteDiagnostics(*params);
  send(llvm::formatv("{0}", *parsed).str());
}

void EditorChecks::run() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopped || !next.empty(); });
    uint64_t seen;
    do {
      seen = changes;
      changed.wait_for(lock, kQuiet,
                       [&] { return stopped || changes != seen; });
    } while (!stopped && changes != seen);
    if (stopped)
      return;
    auto noted = documents.find(next);
    next.clear();
    if (noted == documents.end())
      continue;
    std::string uri = noted->first, text = noted->second.text;
    int64_t version = noted->second.version;
    lock.unlock();
    json::Array found =
        checkApart(text, [&] { return isOutdated(uri, version); });
    lock.lock();
    if (stopped)
      return;
    noted = documents.find(uri);
    if (noted == documents.end() || noted->second.version != version)
      continue; // It changed meanwhile: the server's answer asks again.
    json::Array diagnostics = noted->second.diagnostics;
    for (json::Value &one : found)
      diagnostics.push_back(std::move(one));
    json::Object params{{"uri", uri},
                        {"version", version},
                        {"diagnostics", std::move(diagnostics)}};
    send(llvm::formatv("{0}", json::Value(json::Object{
                                  {"jsonrpc", "2.0"},
                                  {"method", "textDocument/publishDiagnostics"},
                                  {"params", std::move(params)}}))
             .str());
  }
}
