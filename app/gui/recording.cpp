// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/recording.h"

#include <filesystem>
#include <utility>

#include "app/cli/size_table.h"
#include "app/record_capture.h"

namespace sinkscope {
namespace {

constexpr int kPollMilliseconds = 100;

}  // namespace

Recording::Recording(QObject* parent) : QObject(parent), worker_(std::make_unique<Worker>(*this)) {
  timer_.setInterval(kPollMilliseconds);
  connect(&timer_, &QTimer::timeout, this, &Recording::poll);
}

Recording::~Recording() { worker_.reset(); }

void Recording::start(std::shared_ptr<const ModelFiles> model, const CapturePlan& plan,
                      const std::string& path, CaptureWriter::Existing existing) {
  path_ = path;
  is_running_ = true;
  n_layers_ = model->spec().n_layers;
  progress_ = std::make_shared<Progress>();
  begin_ = std::chrono::steady_clock::now();
  timer_.start();
  worker_->submit(
      "record",
      [this, model = std::move(model), plan, path, existing,
       progress = progress_](std::stop_token stop) -> Worker::Deliver {
        if (stop.stop_requested()) {  // before it began: no file is made
          return [this] {
            end();
            emit canceled(QString());
          };
        }
        require_free_space(path, plan.file_bytes);
        bool is_whole = false;
        try {
          is_whole = record_capture(*model, plan.request, plan.layout, path, existing,
                                    JobContext{std::move(stop), *progress})
                         .has_value();
        } catch (const Error& error) {
          throw with_kept_layers(error, path);
        }
        return [this, is_whole] {
          end();
          const QString file = QString::fromStdString(path_);
          std::error_code ignored;
          if (is_whole)
            emit finished(file);
          else
            emit canceled(std::filesystem::exists(path_ + ".part", ignored)
                              ? file + QStringLiteral(".part")
                              : QString());
        };
      },
      [this](const std::string& message) {
        end();
        emit failed(QString::fromStdString(message));
      });
}

void Recording::cancel() { worker_->stop("record"); }

void Recording::end() {
  is_running_ = false;
  timer_.stop();
}

void Recording::poll() {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  emit progressed({progress_->stage, progress_->layer, n_layers_, progress_->done, progress_->total,
                   seconds.count()});
}

}  // namespace sinkscope
