// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

class QObject;

namespace sinkscope {

// One background thread beside the window's: the only place where threads meet. Jobs run one after
// the other, in the order in which their tags were first submitted.
class Worker {
 public:
  // What a job returns runs on the receiver's thread, from its event loop; may be empty.
  using Deliver = std::function<void()>;
  using Job = std::function<Deliver(std::stop_token)>;
  // Runs on the receiver's thread with the message of what was thrown.
  using Failed = std::function<void(const std::string& message)>;

  // Results go to `receiver`, which must outlive the worker.
  explicit Worker(QObject& receiver);
  ~Worker();  // asks the running job to stop, drops the others, joins
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Replaces the queued job with the same tag, and asks the running one to stop; neither's result
  // is delivered. To be called on the receiver's thread.
  void submit(const std::string& tag, Job job, Failed failed);

  // Asks the job of this tag to stop, also while it is queued: it then runs with its stop already
  // requested. What it returns is delivered: it is its answer to being stopped.
  void stop(const std::string& tag);

 private:
  struct Entry {
    std::string tag;
    Job job;
    Failed failed;
    std::stop_source stop;      // what the job sees
    std::stop_source replaced;  // its result is not wanted any more
  };
  void loop(const std::stop_token& quit);
  void runEntry(Entry& entry);
  void post(const Entry& entry, Deliver deliver);
  void dropRunning();  // with the mutex held

  QObject& receiver_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Entry> queue_;
  std::string running_tag_;  // guarded like the queue, as the next two
  std::stop_source running_stop_, running_replaced_;
  std::jthread thread_;
};

}  // namespace sinkscope
