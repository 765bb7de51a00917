//===- EarlyCode.cpp - Code that is compiled during calls -----------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/cuda/EarlyCode.h"

#include "runtime/support/FatalErrors.h"
#include "runtime/support/StartThread.h"

using namespace commsir;
using namespace commsir::cuda;

EarlyCode::~EarlyCode() {
  bool isForked = getpid() != process;
  for (auto &entry : jobs)
    if (isForked)
      static_cast<void>(entry.second.release());
    else if (entry.second->thread.joinable())
      entry.second->thread.join();
}

bool EarlyCode::isOver(llvm::StringRef key, Compile compile) {
  std::unique_ptr<Job> &job = jobs[key];
  if (job)
    return job->isOver.load(std::memory_order_acquire);
  job = std::make_unique<Job>();
  job->thread = startThread([made = job.get(), compile] {
    // Who takes nothing compiles it again, and learns of the failure then.
    (void)catchFailure([&] {
      if (auto kernel = compile())
        made->kernel = std::move(*kernel);
      else
        llvm::consumeError(kernel.takeError());
    });
    made->isOver.store(true, std::memory_order_release);
  });
  // Without a thread the call that needs the kernel compiles it.
  if (!job->thread.joinable())
    job->isOver.store(true, std::memory_order_release);
  return job->isOver.load(std::memory_order_acquire);
}

std::unique_ptr<jit::CudaKernel> EarlyCode::take(llvm::StringRef key) {
  auto it = jobs.find(key);
  if (it == jobs.end())
    return nullptr;
  std::unique_ptr<Job> job = std::move(it->second);
  jobs.erase(it);
  if (job->thread.joinable())
    job->thread.join();
  return std::move(job->kernel);
}
