// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/background_job.h"

#include <utility>

namespace sinkscope {
namespace {

constexpr int kPollMilliseconds = 100;

}  // namespace

BackgroundJob::BackgroundJob(QObject* parent)
    : QObject(parent), worker_(std::make_unique<Worker>(*this)) {
  timer_.setInterval(kPollMilliseconds);
  connect(&timer_, &QTimer::timeout, this, &BackgroundJob::poll);
}

BackgroundJob::~BackgroundJob() { worker_.reset(); }

void BackgroundJob::start(int n_layers, Work work) {
  is_running_ = true;
  n_layers_ = n_layers;
  progress_ = std::make_shared<Progress>();
  begin_ = std::chrono::steady_clock::now();
  timer_.start();
  worker_->submit(
      "job",
      [this, work = std::move(work),
       progress = progress_](std::stop_token stop) -> Worker::Deliver {
        std::optional<Worker::Deliver> deliver;
        if (!stop.stop_requested()) deliver = work(JobContext{std::move(stop), *progress});
        return [this, deliver = std::move(deliver)] {
          end();
          if (!deliver) {
            emit canceled();
            return;
          }
          (*deliver)();
          emit finished();
        };
      },
      [this](const std::string& message) {
        end();
        emit failed(QString::fromStdString(message));
      });
}

void BackgroundJob::cancel() { worker_->stop("job"); }

void BackgroundJob::end() {
  is_running_ = false;
  timer_.stop();
}

void BackgroundJob::poll() {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  emit progressed({progress_->stage, progress_->layer, n_layers_, progress_->done, progress_->total,
                   seconds.count()});
}

double job_share(const ProgressView& view) {
  return view.total > 0 ? static_cast<double>(view.done) / static_cast<double>(view.total) : -1;
}

QString job_text(const ProgressView& view) {
  const bool in_layers = view.stage == Stage::running || view.stage == Stage::reading;
  return in_layers ? QStringLiteral("L%1").arg(view.layer) : QString();
}

}  // namespace sinkscope
