// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "app/window_request.h"
#include "core/figure/figure.h"
#include "core/figure/figure_request.h"

namespace sinkscope {

// The plain C++ face of everything that needs Qt, the module libsinkscope_gui.so: verbs that draw
// nothing never load it. No Qt type appears here.
class Gui {
 public:
  virtual ~Gui() = default;

  // Runs the window until it is closed; the exit code.
  virtual int run_window(int argc, char** argv, const WindowRequest& request) = 0;

  // The bytes of a picture ("pdf", "svg" or "png") of the figure, drawn without a display. The date
  // inside a PDF is `creation_time`, seconds since 1970. Errors: those of
  // views/figure/write_figure.h.
  virtual std::string render_figure(const FigureRequest& request, const Figure& figure,
                                    const std::string& format, std::int64_t creation_time) = 0;
};

// Whether the program was built with it.
bool has_gui();

// Loads the module (once a process). Error{unsupported} when the program was built without Qt or
// the module cannot be loaded, with the loader's reason.
Gui& load_gui();

}  // namespace sinkscope
