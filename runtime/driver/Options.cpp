//===- Options.cpp - The command line of comms-run ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/driver/Options.h"

#include "runtime/driver/OptionRules.h"
#include "runtime/driver/OptionTable.h"
#include "runtime/driver/OptionValues.h"

using namespace commsir;
using namespace commsir::driver;

static const Option *findOption(llvm::StringRef name) {
  for (const OptionGroup &group : getOptionGroups())
    for (const Option &option : group.options)
      if (option.name == name)
        return &option;
  return nullptr;
}

static llvm::Error unknownOption(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const OptionGroup &group : getOptionGroups())
    for (const Option &option : group.options)
      names.push_back(option.name);
  return usageError("unknown option '" + name + "'" +
                    didYouMean(name, names, "; --help lists them"));
}

namespace {

/// Reads words one after the other.
class Parser {
public:
  explicit Parser(llvm::ArrayRef<const char *> words) : words(words) {}
  llvm::Expected<Options> parse();

private:
  llvm::Error readFile(llvm::StringRef word);
  llvm::Error readOption(llvm::StringRef word);

  /// Words that are not parsed yet.
  llvm::ArrayRef<const char *> words;
  Options options;
  llvm::SmallVector<llvm::StringRef> given;
};

} // namespace

llvm::Error Parser::readFile(llvm::StringRef word) {
  if (!options.file.empty())
    return usageError("two kernel files given, '" + options.file + "' and '" +
                      word + "'; one is run at a time");
  options.file = word.str();
  return llvm::Error::success();
}

llvm::Error Parser::readOption(llvm::StringRef word) {
  auto [name, value] = word.split('=');
  const Option *option = findOption(name);
  if (!option)
    return unknownOption(name);
  bool hasValue = name.size() != word.size();
  if (option->value.empty() && hasValue)
    return usageError(name + " takes no value, got '" + value + "'");
  if (!option->value.empty() && !hasValue) {
    if (words.empty())
      return usageError(name + " needs a value: " + name + " " + option->value);
    value = words.consume_front();
  }
  given.push_back(option->name);
  return option->read(options, name, value);
}

llvm::Expected<Options> Parser::parse() {
  bool onlyFiles = false;
  while (!words.empty()) {
    llvm::StringRef word = words.consume_front();
    if (!onlyFiles && word == "--") {
      onlyFiles = true;
      continue;
    }
    bool isFile = onlyFiles || !word.starts_with("-") || word == "-";
    if (llvm::Error error = isFile ? readFile(word)
                                   : readOption(word == "-h" ? "--help" : word))
      return error;
  }
  if (!options.help && !options.version)
    if (llvm::Error error = validateOptions(options, given))
      return error;
  return std::move(options);
}

llvm::Expected<Options>
commsir::driver::parseOptions(llvm::ArrayRef<const char *> arguments) {
  return Parser(arguments).parse();
}
