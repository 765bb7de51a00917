//===- Progress.cpp - Signs of life on standard error ---------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Progress.h"

#include "runtime/support/StartThread.h"

#include <cstdio>
#include <unistd.h>

using namespace commsir::driver;
using namespace std::chrono_literals;

Progress::Progress(bool enabled)
    : enabled(enabled), terminal(::isatty(STDERR_FILENO)) {
  if (enabled)
    watcher = startThread([this] { watch(); });
}

Progress::~Progress() {
  if (!enabled)
    return;
  end();
  {
    std::lock_guard lock(mutex);
    stop = true;
  }
  wake.notify_all();
  if (watcher.joinable())
    watcher.join();
}

void Progress::begin(std::string what) {
  std::lock_guard lock(mutex);
  clearLine();
  step = std::move(what);
  fraction = 0;
  started = Clock::now();
  printed = {};
}

void Progress::update(double value) {
  std::lock_guard lock(mutex);
  fraction = value;
}

void Progress::end() {
  std::lock_guard lock(mutex);
  clearLine();
  step.clear();
}

void Progress::clearLine() {
  if (lineShown)
    std::fputs("\r\x1b[K", stderr);
  lineShown = false;
}

void Progress::print(Clock::time_point now) {
  using Seconds = std::chrono::duration<double>;
  double elapsed = Seconds(now - started).count();
  char text[160];
  if (fraction > 0 && fraction <= 1)
    std::snprintf(text, sizeof(text), "%s: %.0f %%, %.0f s, about %.0f s left",
                  step.c_str(), 100 * fraction, elapsed,
                  elapsed / fraction - elapsed);
  else
    std::snprintf(text, sizeof(text), "%s: %.0f s", step.c_str(), elapsed);
  std::fprintf(stderr, terminal ? "\r%s\x1b[K" : "%s\n", text);
  std::fflush(stderr);
  lineShown = terminal;
  printed = now;
}

void Progress::watch() {
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, 500ms, [this] { return stop; })) {
    Clock::time_point now = Clock::now();
    if (step.empty() || now - started < 2s)
      continue;
    if (!terminal && printed != Clock::time_point() && now - printed < 10s)
      continue;
    print(now);
  }
}
