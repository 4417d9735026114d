// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/figure/figure.h"
#include "views/figure/paint_figure.h"

class QImage;

namespace sinkscope {

enum class FigureFormat { pdf, svg, png };

struct WriteOptions {
  FigureText svg_text = FigureText::as_paths;  // PDF always keeps text as text
  FigureCells cells = FigureCells::as_image;
  int dpi = 300;  // PNG
  // Seconds since 1970 for PDF's /CreationDate; the caller takes it from SOURCE_DATE_EPOCH.
  // Default: 2000-01-01.
  std::int64_t creation_time = 946684800;
};

// The whole file as bytes. Where cells of a map share a pixel, a note below says what is shown. The
// same figure and options give the same bytes. Needs a QGuiApplication; any thread. Throws Error:
// those of lay_out and paint_figure; io when Qt cannot encode.
std::string figure_file(const Figure& figure, FigureFormat format, const WriteOptions& options);

// What the PNG holds; also the preview.
QImage figure_image(const Figure& figure, const WriteOptions& options);

}  // namespace sinkscope
