// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/figure_export.h"

#include <fmt/format.h>

#include <QFileDialog>
#include <sstream>
#include <utility>

#include "app/cli/draw_figure.h"
#include "app/cli/figure_inputs.h"
#include "core/figure/make_figure.h"
#include "views/figure/write_figure.h"

namespace sinkscope {
namespace {

// Dots an inch of the preview: sharp at a dialog's size, quick to paint.
constexpr int kPreviewDpi = 200;

// A console nobody reads: the dialog shows what fails, and warnings were shown at opening.
struct SilentConsole {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err, Verbosity::quiet};
};

}  // namespace

FigureExport::FigureExport(const FigureRequest& start, const std::vector<std::string>& inputs,
                           std::vector<MadeFile> made, ModelArchs models, QWidget* parent)
    : dialog_(*new FigureDialog(start, inputs, std::move(made), std::move(models), parent)),
      worker_(*this) {
  setParent(&dialog_);
  dialog_.setAttribute(Qt::WA_DeleteOnClose);
  connect(&dialog_, &FigureDialog::previewWanted, this, &FigureExport::preview);
  connect(&dialog_, &FigureDialog::saveWanted, this, &FigureExport::askWhere);
}

void FigureExport::preview(const FigureRequest& request) {
  const auto job = [this, request](const std::stop_token&) -> Worker::Deliver {
    SilentConsole silent;
    const OpenedInputs inputs = open_figure_inputs(request, silent.console);
    const Figure figure = make_figure(request, inputs.inputs);
    WriteOptions options;
    options.cells = request.cells;
    options.dpi = kPreviewDpi;
    const QImage image = figure_image(figure, options);
    const double mm = 25.4 / kPreviewDpi;
    const QString size = QString::fromStdString(
        fmt::format("{:.0f} × {:.0f} mm", image.width() * mm, image.height() * mm));
    return [this, request, image, size] { dialog_.setPreview(request, image, size); };
  };
  worker_.submit("preview", job, [this, request](const std::string& message) {
    dialog_.setFailure(request, QString::fromStdString(message));
  });
}

void FigureExport::askWhere(const FigureRequest& request) {
  const QString path =
      QFileDialog::getSaveFileName(&dialog_, tr("Save figure"), QStringLiteral("figure.pdf"),
                                   tr("PDF (*.pdf);;SVG (*.svg);;PNG (*.png);;Data (*.csv)"));
  if (!path.isEmpty()) save(request, path);
}

void FigureExport::save(const FigureRequest& request, const QString& path) {
  const auto job = [this, request, path](const std::stop_token&) -> Worker::Deliver {
    SilentConsole silent;
    const std::string output = path.toStdString();
    draw_figure(request, output, figure_format(output, std::nullopt), true, silent.console);
    return [this, path] {
      dialog_.setMessage(tr("saved %1").arg(path));
      emit saved(path);
    };
  };
  worker_.submit("save", job, [this](const std::string& message) {
    dialog_.setMessage(QString::fromStdString(message));
  });
}

}  // namespace sinkscope
