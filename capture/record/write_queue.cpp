// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/write_queue.h"

#include <chrono>
#include <utility>

#include "capture/record/background.h"

namespace sinkscope {

WriteQueue::WriteQueue(CaptureWriter& writer, std::int64_t max_bytes)
    : writer_(writer), max_bytes_(max_bytes), thread_([this] { run(); }) {}

WriteQueue::~WriteQueue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

void WriteQueue::push(std::int64_t n_bytes, Job job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || queued_bytes_ <= max_bytes_; });
  throw_if_failed();
  queued_bytes_ += n_bytes;
  jobs_.emplace_back(n_bytes, std::move(job));
  lock.unlock();
  changed_.notify_all();
}

void WriteQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || (jobs_.empty() && !busy_); });
  throw_if_failed();
}

double WriteQueue::seconds() const {
  const std::lock_guard lock(mutex_);
  return seconds_;
}

void WriteQueue::throw_if_failed() {
  if (failure_) std::rethrow_exception(failure_);
}

void WriteQueue::run() {
  run_in_background();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    auto [n_bytes, job] = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    std::exception_ptr failure;
    try {
      if (!failure_) job(writer_);
    } catch (...) {
      failure = std::current_exception();
    }
    job = nullptr;  // frees what it holds before the next push is let through
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    seconds_ += took.count();
    queued_bytes_ -= n_bytes;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace sinkscope
