//===- Noise.h - Made-up samples --------------------------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_TUNE_NOISE_H
#define COMMSIR_TEST_TUNE_NOISE_H

#include "runtime/bench/Statistics.h"

#include <random>

/// Noise with a fixed seed.
class Noise {
public:
  explicit Noise(unsigned seed) : engine(seed) {}

  /// Times around `time`: each repetition has an offset of its own, and each
  /// replay another, both of relative size `spread`.
  commsir::tune::Samples samples(double time, double spread, int repetitions,
                                 int replays) {
    commsir::tune::Samples all(repetitions);
    for (std::vector<double> &repetition : all) {
      double middle = time * (1 + spread * draw());
      for (int i = 0; i < replays; ++i)
        repetition.push_back(middle * (1 + spread * draw()));
    }
    return all;
  }

private:
  /// In [-1, 1), with mean 0: the sum of uniform numbers.
  double draw() {
    double sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += double(engine()) / 4294967296.0 - 0.5;
    return sum / 2;
  }
  std::mt19937 engine;
};

#endif // COMMSIR_TEST_TUNE_NOISE_H
