// SPDX-License-Identifier: GPL-3.0-or-later
// What the What-if desk reads while its panel is seen: the maps of a result, and previews.
#include <utility>

#include "app/gui/what_if_desk.h"

namespace sinkscope {

void WhatIfDesk::look() {
  if (is_looked_at_) return;
  is_looked_at_ = true;
  readMaps();
  startPreview();
}

void WhatIfDesk::readMaps() {
  state_.maps_failure.clear();
  if (state_.result == nullptr) return publish();
  const auto result = state_.result;
  const BeforeAfterRequest request = state_.maps_request;
  const auto is_current = [this, result, request] {
    return state_.result == result && state_.maps_request == request;
  };
  worker_->submit(
      "maps",
      [this, files = files_, result, request, is_current](const std::stop_token& stop) {
        auto maps = std::make_shared<const CompareSnapshot>(
            read_before_after(files->reader(result->path), *result, request, stop));
        return [this, maps, prepared = prepare(*maps), is_current] {
          if (!is_current()) return;
          state_.maps = maps;
          state_.prepared_maps = prepared;
          publish();
        };
      },
      [this, is_current](const std::string& message) {
        if (!is_current()) return;
        state_.maps = nullptr;
        state_.maps_failure = message;
        publish();
      });
  publish();
}

void WhatIfDesk::preview(const EditList& edits, int selected) {
  preview_edits_ = edits;
  preview_selected_ = selected;
  startPreview();
}

// One at a time: a slider that moves faster than previews are made would replace each of them.
void WhatIfDesk::startPreview() {
  preview_waits_ = preview_runs_;
  if (!hasPreview()) return showPreview(nullptr, {});
  if (run_->input.edit_of >= 0) return showPreview(nullptr, kTwin);
  if (preview_runs_) return;
  preview_runs_ = true;
  const PreviewPlace place =
      preview_place(preview_edits_[static_cast<std::size_t>(preview_selected_)].edit, run_->run,
                    state_.maps_request.layer, state_.maps_request.head);
  worker_->submit(
      "preview",
      [this, files = files_, run = run_, place, what_if = switched_on(preview_edits_),
       input = preview_input_](const std::stop_token&) mutable {
        if (input == nullptr || input->place != place)
          input = std::make_shared<const PreviewInput>(
              read_preview_input(files->reader(run->path), place));
        auto shown = std::make_shared<const PreviewSnapshot>(sinkscope::preview(*input, what_if));
        return [this, run, input, shown] {
          if (run_ == run) preview_input_ = input;
          if (run_ == run && hasPreview()) showPreview(shown, {});
          endPreview();
        };
      },
      [this, run = run_](const std::string& message) {
        if (run_ == run && hasPreview()) showPreview(nullptr, message);
        endPreview();
      });
}

void WhatIfDesk::endPreview() {
  preview_runs_ = false;
  if (preview_waits_) startPreview();
}

bool WhatIfDesk::hasPreview() const {
  return run_ != nullptr && preview_selected_ >= 0 &&
         preview_selected_ < static_cast<int>(preview_edits_.size());
}

void WhatIfDesk::showPreview(std::shared_ptr<const PreviewSnapshot> shown,
                             const std::string& failure) {
  state_.preview = std::move(shown);
  state_.preview_failure = failure;
  publish();
}

}  // namespace sinkscope
