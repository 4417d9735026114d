// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/worker.h"

#include <QMetaObject>
#include <QObject>
#include <algorithm>
#include <exception>
#include <utility>

namespace sinkscope {

Worker::Worker(QObject& receiver)
    : receiver_(receiver), thread_([this](const std::stop_token& quit) { loop(quit); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    queue_.clear();
    dropRunning();
  }
  thread_.request_stop();
}

void Worker::dropRunning() {
  running_stop_.request_stop();
  running_replaced_.request_stop();
}

void Worker::stop(const std::string& tag) {
  const std::lock_guard lock(mutex_);
  if (running_tag_ == tag) running_stop_.request_stop();
  for (Entry& entry : queue_)
    if (entry.tag == tag) entry.stop.request_stop();
}

void Worker::submit(const std::string& tag, Job job, Failed failed) {
  const std::lock_guard lock(mutex_);
  if (running_tag_ == tag) dropRunning();
  const auto queued = std::find_if(queue_.begin(), queue_.end(),
                                   [&](const Entry& entry) { return entry.tag == tag; });
  Entry entry{tag, std::move(job), std::move(failed), {}, {}};
  if (queued != queue_.end())
    *queued = std::move(entry);
  else
    queue_.push_back(std::move(entry));
  wake_.notify_one();
}

void Worker::loop(const std::stop_token& quit) {
  for (;;) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, quit, [&] { return !queue_.empty(); })) return;
      entry = std::move(queue_.front());
      queue_.pop_front();
      running_tag_ = entry.tag;
      running_stop_ = entry.stop;
      running_replaced_ = entry.replaced;
    }
    runEntry(entry);
    const std::lock_guard lock(mutex_);
    running_tag_.clear();
  }
}

void Worker::runEntry(Entry& entry) {
  Deliver deliver;
  try {
    deliver = entry.job(entry.stop.get_token());
  } catch (const std::exception& error) {
    deliver = [failed = entry.failed, message = std::string(error.what())] { failed(message); };
  }
  entry.job = nullptr;
  if (deliver) post(entry, std::move(deliver));
}

// A job may be replaced while its result waits in the event queue: it is looked at again there.
void Worker::post(const Entry& entry, Deliver deliver) {
  QMetaObject::invokeMethod(
      &receiver_,
      [replaced = entry.replaced.get_token(), deliver = std::move(deliver)] {
        if (!replaced.stop_requested()) deliver();
      },
      Qt::QueuedConnection);
}

}  // namespace sinkscope
