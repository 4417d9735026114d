// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/render_figure.h"

#include <fmt/format.h>

#include <cstdlib>

#include "app/cli/parse_text.h"
#include "app/gui_module.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kYear2000 = 946684800;

std::int64_t creation_time() {
  constexpr double kYear9999 = 253402300799;
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr || *epoch == '\0') return kYear2000;
  return static_cast<std::int64_t>(parse_number("SOURCE_DATE_EPOCH", epoch, 0, kYear9999));
}

}  // namespace

void require_format(const std::string& format) {
  if (format != "csv" && !has_gui())
    throw Error(ErrorKind::unsupported,
                fmt::format("figure: {} is not there, built without Qt; csv is", format));
}

std::string render_figure(const FigureRequest& request, const Figure& figure,
                          const std::string& format) {
  require_format(format);
  return load_gui().render_figure(request, figure, format, creation_time());
}

}  // namespace sinkscope
