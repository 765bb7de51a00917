//===- ErrorTest.cpp - Every failure reaches callers of the C API ---------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/Error.h"

#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <thread>

using namespace commsir;

TEST(CapiError, FatalErrorOfLLVM) {
  commsir_status status = capi::guard([]() -> commsir_status {
    llvm::report_fatal_error("cannot select: nonsense");
  });
  EXPECT_EQ(status, COMMSIR_COMPILE);
  EXPECT_NE(std::string(commsir_error_message()).find("cannot select"),
            std::string::npos);
  // And again: the handler stays.
  status = capi::guard([]() -> commsir_status {
    llvm::report_fatal_error(llvm::Twine("again"));
  });
  EXPECT_EQ(status, COMMSIR_COMPILE);
}

TEST(CapiError, Exceptions) {
  EXPECT_EQ(
      capi::guard([]() -> commsir_status { throw std::runtime_error("oh"); }),
      COMMSIR_USAGE);
  EXPECT_STREQ(commsir_error_message(), "oh");
  EXPECT_EQ(capi::guard([]() -> commsir_status { throw std::bad_alloc(); }),
            COMMSIR_USAGE);
  EXPECT_NE(std::string(commsir_error_message()).find("memory"),
            std::string::npos);
  EXPECT_EQ(capi::guard([]() -> commsir_status { throw 3; }), COMMSIR_USAGE);
  EXPECT_EQ(capi::guard([]() -> commsir_status {
              llvm::report_bad_alloc_error("no more");
            }),
            COMMSIR_USAGE);
}

TEST(CapiError, JsonHoldsAnyText) {
  capi::fail(COMMSIR_BOUNDS, "bytes \xff and \"quotes\"",
             llvm::json::Object{{"seed", 7}});
  auto parsed = llvm::json::parse(commsir_error_json());
  ASSERT_TRUE(bool(parsed));
  const llvm::json::Object &fields = *parsed->getAsObject();
  EXPECT_EQ(fields.getString("kind"), "bounds");
  EXPECT_EQ(fields.getInteger("seed"), 7);
  EXPECT_TRUE(fields.getString("message")->ends_with("\"quotes\""));
}

TEST(CapiError, ThreadsHaveErrorsOfTheirOwn) {
  capi::fail(COMMSIR_USAGE, "mine");
  std::thread([] { capi::fail(COMMSIR_USAGE, "other"); }).join();
  EXPECT_STREQ(commsir_error_message(), "mine");
}

TEST(CapiError, NullPointersAreRefused) {
  char *result = nullptr;
  EXPECT_EQ(commsir_compile(nullptr, &result), COMMSIR_USAGE);
  EXPECT_EQ(commsir_compile("{}", nullptr), COMMSIR_USAGE);
  EXPECT_EQ(commsir_simulate(nullptr, nullptr, 0, &result), COMMSIR_USAGE);
  EXPECT_EQ(commsir_simulate("{}", nullptr, 3, &result), COMMSIR_USAGE);
  commsir_host_array array = {nullptr, 0, nullptr, 8};
  EXPECT_EQ(commsir_simulate("{}", &array, 1, &result), COMMSIR_USAGE);
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(commsir_tool(0, nullptr), int(COMMSIR_USAGE));
  EXPECT_EQ(commsir_group_finish(nullptr, nullptr), COMMSIR_USAGE);
  commsir_free(nullptr);
}

TEST(CapiError, RequestsThatAreNone) {
  char *result = nullptr;
  for (const char *request :
       {"", "{", "[]", "3", "null", "\"x\"", "{\"source\": 3}",
        "{\"source\": \"\", \"sauce\": 1}", "{\"ranks\": 1e99}",
        "{\"shapes\": {\"x\": [1.5]}}"}) {
    EXPECT_EQ(commsir_compile(request, &result), COMMSIR_USAGE) << request;
    EXPECT_NE(std::string(commsir_error_message()), "") << request;
  }
  EXPECT_EQ(commsir_compile("{}", &result), COMMSIR_OK); // An empty module.
  commsir_free(result);
}

TEST(CapiError, MessagesNameThePlaceInTheSource) {
  char *result = nullptr;
  EXPECT_EQ(
      commsir_compile(
          R"({"file": "sum.mlir", "source": "comms.kernel @k() {\n  comms.wait %s\n}"})",
          &result),
      COMMSIR_COMPILE);
  std::string message = commsir_error_message();
  EXPECT_NE(message.find("\n  sum.mlir:2:"), std::string::npos) << message;
  EXPECT_NE(message.find(": error: "), std::string::npos) << message;
  // In JSON each has its own field.
  auto fields = llvm::json::parse(commsir_error_json());
  ASSERT_TRUE(bool(fields)) << llvm::toString(fields.takeError());
  EXPECT_EQ(fields->getAsObject()->getString("message")->find("sum.mlir:2:"),
            llvm::StringRef::npos);
}

/// `request` is refused, with `what` in the message.
static void refuses(const std::string &request,
                    llvm::MutableArrayRef<commsir_host_array> arrays,
                    llvm::StringRef what) {
  char *result = nullptr;
  EXPECT_EQ(
      commsir_simulate(request.c_str(), arrays.data(), arrays.size(), &result),
      COMMSIR_USAGE)
      << request;
  EXPECT_NE(llvm::StringRef(commsir_error_message()).find(what),
            llvm::StringRef::npos)
      << commsir_error_message();
  EXPECT_EQ(result, nullptr);
}

TEST(CapiError, SimulationsThatMakeNoSense) {
  const std::string request =
      R"({"ranks": 2, "source": "comms.kernel @k(%x: memref<2xf32>) { comms.return }")";
  refuses(request + R"(, "launches": 4611686018427387904})", {}, "launches");
  refuses(request + R"(, "tile_size": 64})", {}, "tile_size");
  refuses(request + R"(, "check_launches": 8})", {}, "check_launches");
  float one[2] = {1, 2}, other[2] = {3, 4};
  commsir_host_array arrays[] = {{"x", 1, one, sizeof(one)},
                                 {"x", 1, other, sizeof(other)}};
  refuses(request + "}", arrays, "two arrays were given for rank 1");
  refuses(request + R"(, "inputs": {"x": "random:1"}})",
          llvm::MutableArrayRef(arrays).take_front(), "both arrays and");
  refuses(request + R"(, "types": {"X": "f32"}})", {}, "no argument 'X'");
  refuses(request + R"(, "shapes": {"inp": [2]}})", {}, "do not fit 'k'");
  EXPECT_EQ(one[0], 1);
  char *result = nullptr;
  EXPECT_EQ(commsir_simulate((request + "}").c_str(), arrays, 1, &result),
            COMMSIR_OK)
      << commsir_error_message();
  commsir_free(result);
}

/// A pointer to another kind of object, or to one that has ended, is refused.
TEST(CapiError, WrongHandlesAreRefused) {
  commsir_store store = {
      sizeof store, nullptr,
      [](void *, const char *, const void *, size_t) { return 0; },
      [](void *, const char *, double, void **, size_t *) { return 1; }};
  commsir_p2p *p2p = nullptr;
  ASSERT_EQ(commsir_p2p_create("wrong", 0, 2, &store, &p2p), COMMSIR_OK);
  char data[4] = {};
  commsir_message message = {sizeof message, 1, 0, data, sizeof data, "4"};
  commsir_transfer *transfer = nullptr;
  ASSERT_EQ(commsir_p2p_receive(p2p, &message, &transfer), COMMSIR_OK);

  auto *group = reinterpret_cast<commsir_group *>(p2p);
  EXPECT_EQ(commsir_group_poll(group), COMMSIR_USAGE);
  commsir_group_close(group);
  commsir_group_destroy(group);
  commsir_group_drop(group);
  auto *kernel = reinterpret_cast<commsir_kernel *>(transfer);
  EXPECT_EQ(commsir_kernel_launch(kernel, nullptr, 0, nullptr), COMMSIR_USAGE);
  EXPECT_EQ(commsir_kernel_describe(kernel), nullptr);
  EXPECT_EQ(commsir_p2p_confirm(reinterpret_cast<commsir_p2p *>(transfer)),
            COMMSIR_USAGE);
  EXPECT_EQ(
      commsir_transfer_wait(reinterpret_cast<commsir_transfer *>(p2p), 0.01),
      COMMSIR_USAGE);

  EXPECT_EQ(commsir_p2p_destroy(p2p), COMMSIR_OK);
  EXPECT_EQ(commsir_p2p_destroy(p2p), COMMSIR_OK);
  EXPECT_EQ(commsir_p2p_confirm(p2p), COMMSIR_ABORTED);
  commsir_transfer_free(transfer);
  commsir_transfer_free(transfer);
  EXPECT_EQ(commsir_transfer_wait(transfer, 0.01), COMMSIR_USAGE);
  EXPECT_EQ(commsir_transfer_source(transfer), -1);
}
