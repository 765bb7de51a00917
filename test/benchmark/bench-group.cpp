//===- bench-group.cpp - Cost of a repeated call of a group ---------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures host latency: the time of a call through the C API beyond the launch
// of the same kernel, for a group of one rank on the CPU and arrays of 16
// elements.
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/commsir.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace {

void require(commsir_status status) {
  if (status == COMMSIR_OK)
    return;
  std::fprintf(stderr, "%s\n", commsir_error_message());
  std::exit(1);
}

commsir_group *group() {
  static commsir_group *made = [] {
    std::string folder = std::filesystem::temp_directory_path() /
                         ("bench-group-" + std::to_string(::getpid()));
    commsir_group_options options = {sizeof options, "bench", 0, 1, -1, 60,
                                     nullptr,        0};
    commsir_group *group = nullptr;
    require(commsir_group_create_in_folder(&options, folder.c_str(), &group));
    std::filesystem::remove_all(folder);
    return group;
  }();
  return made;
}

alignas(64) float x[16], y[16], z[16];

void launch(benchmark::State &state) {
  const char *source =
      "comms.kernel @all_reduce(%x: memref<16xf32>, %y: memref<16xf32>) {\n"
      "  %team = comms.team world\n"
      "  comms.all_reduce sum %team ins(%x : memref<16xf32>) "
      "outs(%y : memref<16xf32>)\n  comms.return\n}\n";
  commsir_kernel *kernel = nullptr;
  require(commsir_group_kernel(
      group(), source, "all_reduce",
      R"({"algorithm": "one_shot", "protocol": "pull", "blocks": 1})",
      &kernel));
  commsir_argument arguments[] = {{x, sizeof x}, {y, sizeof y}};
  for (auto _ : state)
    require(commsir_kernel_launch(kernel, arguments, 2, nullptr));
}
BENCHMARK(launch);

void collective(benchmark::State &state) {
  commsir_collective call = {};
  call.size = sizeof call;
  call.op = "all_reduce";
  call.reduction = "sum";
  call.type = "f32";
  call.input = x;
  call.input_elements = 16;
  call.output = y;
  call.output_elements = 16;
  for (auto _ : state)
    require(commsir_group_collective(group(), &call, nullptr));
}
BENCHMARK(collective);

void prepared(benchmark::State &state) {
  commsir_collective call = {};
  call.size = sizeof call;
  call.op = "all_reduce";
  call.reduction = "sum";
  call.type = "f32";
  call.input_elements = call.output_elements = 16;
  commsir_prepared *made = nullptr;
  require(commsir_prepare(group(), &call, nullptr, &made));
  for (auto _ : state)
    require(commsir_launch(made, x, y, nullptr));
  commsir_prepared_release(made);
}
BENCHMARK(prepared);

/// As commsir_group_fused writes it for the call below.
constexpr const char *kConsume =
    "(%s: tensor<8xf32>, %b: tensor<8xf32>) {\n"
    "    %r = arith.addf %s, %b : tensor<8xf32>\n"
    "    %q = arith.mulf %r, %s : tensor<8xf32>\n"
    "    comms.yield %r, %q : tensor<8xf32>, tensor<8xf32>\n";

void fusedLaunch(benchmark::State &state) {
  std::string source =
      "comms.kernel @all_reduce(%x: memref<2x8xf32>, %a0: memref<8xf32>, "
      "%y0: memref<2x8xf32>, %y1: memref<2x8xf32>) {\n"
      "  %team = comms.team world\n"
      "  comms.all_reduce sum %team ins(%x : memref<2x8xf32>) outs(%y0, %y1 : "
      "memref<2x8xf32>, memref<2x8xf32>) args(%a0 : memref<8xf32>)\n"
      "  consume " +
      std::string(kConsume) + "  }\n  comms.return\n}\n";
  commsir_kernel *kernel = nullptr;
  require(commsir_group_kernel(group(), source.c_str(), "all_reduce", nullptr,
                               &kernel));
  float row[8] = {};
  commsir_argument arguments[] = {
      {x, sizeof x}, {row, sizeof row}, {y, sizeof y}, {z, sizeof z}};
  for (auto _ : state)
    require(commsir_kernel_launch(kernel, arguments, 4, nullptr));
}
BENCHMARK(fusedLaunch);

/// Its two arrays of results and the row that it adds.
struct FusedCall {
  FusedCall() {
    call.size = sizeof call;
    call.op = "all_reduce";
    call.reduction = "sum";
    call.type = "f32";
    call.rows = 2;
    call.columns = 8;
    call.input = x;
    call.arguments = &argument;
    call.argument_count = 1;
    call.outputs = outputs;
    call.output_count = 2;
    call.consume = kConsume;
  }
  float row[8] = {};
  commsir_operand argument = {row, 8, "f32", 0, 8};
  commsir_operand outputs[2] = {{y, 16, "f32", 1, 8}, {z, 16, "f32", 1, 8}};
  commsir_fused call = {};
};

void fused(benchmark::State &state) {
  FusedCall made;
  for (auto _ : state)
    require(commsir_group_fused(group(), &made.call, nullptr));
}
BENCHMARK(fused);

void fusedPrepared(benchmark::State &state) {
  FusedCall made;
  commsir_prepared *prepared = nullptr;
  require(commsir_prepare_fused(group(), &made.call, nullptr, &prepared));
  void *arrays[] = {x, made.row, y, z};
  for (auto _ : state)
    require(commsir_launch_fused(prepared, arrays, 4, nullptr));
  commsir_prepared_release(prepared);
}
BENCHMARK(fusedPrepared);

} // namespace

BENCHMARK_MAIN();
