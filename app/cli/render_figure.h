// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/figure/figure.h"
#include "core/figure/figure_request.h"

namespace sinkscope {

// Throws Error{unsupported} for a picture ("pdf", "svg", "png") in a program built without Qt.
void require_format(const std::string& format);

// The bytes of a picture of the figure, drawn without a display. The date inside a PDF comes from
// SOURCE_DATE_EPOCH where that is set. Errors: those of views/figure/write_figure.h.
std::string render_figure(const FigureRequest& request, const Figure& figure,
                          const std::string& format);

}  // namespace sinkscope
