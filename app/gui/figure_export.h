// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <string>
#include <vector>

#include "app/gui/worker.h"
#include "core/figure/figure_request.h"
#include "views/figure/figure_dialog.h"

namespace sinkscope {

// The export dialog at work: reads and draws on a thread of its own, previews, and writes the same
// file as `sinkscope figure`. Deletes itself with its dialog.
class FigureExport : public QObject {
  Q_OBJECT

 public:
  // `inputs`: what is open, as a command would name it (RUN.h5::run1, MODEL). `made`: those of them
  // that go with the window. `models`: the models among them, and what describes them.
  FigureExport(const FigureRequest& start, const std::vector<std::string>& inputs,
               std::vector<MadeFile> made, ModelArchs models, QWidget* parent);

  FigureDialog& dialog() { return dialog_; }
  // Writes the file, replacing what is there; saved() or the dialog's message tell how it went.
  void save(const FigureRequest& request, const QString& path);

 signals:
  void saved(const QString& path);

 private:
  void preview(const FigureRequest& request);
  void askWhere(const FigureRequest& request);

  FigureDialog& dialog_;  // a child of `parent`
  Worker worker_;
};

}  // namespace sinkscope
