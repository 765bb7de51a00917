//===- OwnCommandTest.cpp - Restarts this program -------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/OwnCommand.h"

#include <gtest/gtest.h>

using namespace commsir;
using Words = std::vector<std::string>;

static Words cut(llvm::StringRef line, std::vector<const char *> arguments) {
  auto words = splitOwnCommand(line, arguments);
  if (words)
    return *words;
  return {llvm::toString(words.takeError())};
}

TEST(OwnCommand, IsTheProgramOrTheInterpreterWithItsScript) {
  llvm::StringRef program("comms-run\0a.mlir\0--ranks\0", 25);
  EXPECT_EQ(cut(program, {"a.mlir", "--ranks"}), Words{"comms-run"});
  EXPECT_EQ(cut(program, {}), (Words{"comms-run", "a.mlir", "--ranks"}));
  llvm::StringRef script("/venv/python\0/venv/comms-run\0a.mlir\0", 36);
  EXPECT_EQ(cut(script, {"a.mlir"}),
            (Words{"/venv/python", "/venv/comms-run"}));
  // Empty words are words.
  llvm::StringRef empty("comms-run\0\0a\0\0", 14);
  EXPECT_EQ(cut(empty, {"", "a", ""}), Words{"comms-run"});
}

TEST(OwnCommand, OtherArgumentsAreRefused) {
  llvm::StringRef line("python\0-c\0main()\0", 17);
  for (std::vector<const char *> arguments :
       {std::vector<const char *>{"a.mlir"},
        std::vector<const char *>{"python", "-c", "main()"},
        std::vector<const char *>{"x", "python", "-c", "main()"}})
    EXPECT_NE(cut(line, arguments).front().find("start it by its name"),
              std::string::npos);
}

TEST(OwnCommand, IsReadOfThisProcess) {
  auto words = getOwnCommand({});
  ASSERT_TRUE(bool(words));
  EXPECT_NE(words->front().find("driver-tests"), std::string::npos);
}
