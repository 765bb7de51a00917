//===- Scenarios.h - The scenarios of gpu-processes -------------*- C++ -*-===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank runs each scenario, which ends the process after a failure and
// otherwise returns its report.
//
//===----------------------------------------------------------------------===//

#ifndef COMMSIR_TEST_GPU_PROCESSES_SCENARIOS_H
#define COMMSIR_TEST_GPU_PROCESSES_SCENARIOS_H

#include "test/gpu/processes/Rank.h"

namespace commsir::processes {

// Launches.cpp
std::string runSizes(Rank &me);
std::string runOverhead(Rank &me);
std::string runMany(Rank &me);
std::string runOrder(Rank &me);
std::string runAdopted(Rank &me);
std::string runDeviceLibrary(Rank &me);

// Checked.cpp
std::string runChecked(Rank &me);
std::string runVariety(Rank &me);

// Stragglers.cpp
std::string runStragglers(Rank &me);
std::string runPauses(Rank &me);

// Faults.cpp; `graph`: in replays.
std::string runKill(Rank &me, bool graph);
std::string runMismatch(Rank &me, bool graph);
std::string runAbort(Rank &me, bool graph);
std::string runBusy(Rank &me);
std::string runLimit(Rank &me);

} // namespace commsir::processes

#endif // COMMSIR_TEST_GPU_PROCESSES_SCENARIOS_H
