//===- CallQueue.cpp - Whose call of a group it is ------------------------===//
//
// Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/group/CallQueue.h"

#include "runtime/group/Group.h"
#include "runtime/group/Waiting.h"
#include "runtime/support/GroupError.h"

using namespace commsir::group;
using Kind = GroupError::Kind;

static llvm::Error closedError(const char *what) {
  return makeError(Kind::Aborted,
                   llvm::Twine(what) +
                       ": another thread has closed the group. Close a group "
                       "after its last call has ended");
}

CallQueue::~CallQueue() {
  if (forks != countForks())
    forgetWaiters(changed);
}

llvm::Error CallQueue::begin(const char *what) {
  std::unique_lock<std::mutex> lock(mutex);
  if (isClosed)
    return closedError(what);
  if (current && owner == std::this_thread::get_id())
    return makeError(
        Kind::Usage,
        llvm::Twine(what) +
            ": this thread is in a call of the group already (" + current +
            "), which would wait for this one. Do not call a group in a "
            "handler of signals or in a function that the group calls");
  if (current) {
    Waiting own;
    auto place = queue.insert(queue.end(), &own);
    llvm::Error error = await(lock, own, what);
    if (error) {
      // Its turn may have come since.
      if (!own.isNext)
        queue.erase(place);
      lock.unlock();
      if (own.isNext)
        end();
      return error;
    }
  }
  current = what;
  owner = std::this_thread::get_id();
  return llvm::Error::success();
}

llvm::Error CallQueue::await(std::unique_lock<std::mutex> &lock, Waiting &own,
                             const char *what) {
  while (!own.isNext) {
    if (isClosed)
      return closedError(what);
    if (changed.wait_for(lock, kPeriod) == std::cv_status::no_timeout)
      continue;
    // The hooks may call what they like, this group as well.
    lock.unlock();
    bool stops = isInterrupted();
    lock.lock();
    if (stops)
      return makeError(Kind::Aborted,
                       llvm::Twine(what) +
                           ": interrupted while it waited for another "
                           "thread's call of the group (" +
                           (current ? current : "") + ")");
  }
  return llvm::Error::success();
}

bool CallQueue::tryBegin(const char *what) {
  std::lock_guard<std::mutex> lock(mutex);
  if (current || isClosed)
    return false;
  current = what;
  owner = std::this_thread::get_id();
  return true;
}

void CallQueue::end() {
  std::lock_guard<std::mutex> lock(mutex);
  if (queue.empty()) {
    current = nullptr;
    owner = std::thread::id();
    return;
  }
  // It stays taken: who comes now queues behind.
  owner = std::thread::id();
  queue.front()->isNext = true;
  queue.pop_front();
  changed.notify_all();
}

void CallQueue::close() {
  std::lock_guard<std::mutex> lock(mutex);
  isClosed = true;
  changed.notify_all();
}
