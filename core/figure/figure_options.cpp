// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

#include "core/draw/colormap.h"
#include "core/error.h"
#include "core/figure/figure_kinds.h"
#include "core/figure/figure_request.h"

namespace sinkscope {
namespace {

using Text = std::optional<std::string>;

constexpr double kColumnMm = 85, kTextMm = 170;

double number_in(const char* flag, const std::string& text, double low, double high) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !(value >= low) ||
      !(value <= high))
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}: expected a number from {:g} to {:g}, found '{}'", flag, low, high, text));
  return value;
}

int integer_in(const char* flag, const std::string& text, int low, int high) {
  const double value = number_in(flag, text, low, high);
  if (value != std::floor(value))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected a whole number, found '{}'", flag, text));
  return static_cast<int>(value);
}

const std::string& one_of(const char* flag, const std::string& text,
                          std::initializer_list<const char*> choices) {
  std::string list;
  for (const char* choice : choices) {
    if (text == choice) return text;
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: expected one of {}, found '{}'", flag, list, text));
}

Text text_unless(bool is_default, const std::string& text) {
  return is_default ? Text() : Text(text);
}

Text integer_text(const std::optional<int>& value) {
  return value ? Text(std::to_string(*value)) : Text();
}

void set_width(FigureRequest& request, const std::string& value) {
  if (value == "column") {
    request.width_mm = kColumnMm;
  } else if (value == "text") {
    request.width_mm = kTextMm;
  } else if (value.ends_with("mm")) {
    request.width_mm = number_in("--width", value.substr(0, value.size() - 2), 20, 2000);
  } else {
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("--width: expected column, text or a width like 120mm, found '{}'", value));
  }
}

Text width_text(const FigureRequest& request) {
  if (!request.width_mm) return {};
  if (*request.width_mm == kTextMm) return "text";
  return *request.width_mm == kColumnMm ? "column" : fmt::format("{}mm", *request.width_mm);
}

// "each", "percentile" or "percentile,each".
void set_range(FigureRequest& request, const std::string& value) {
  request.range_each = value == "each" || value.ends_with(",each");
  request.range.reset();
  if (value == "each") return;
  const std::string range = request.range_each ? value.substr(0, value.size() - 5) : value;
  request.range = parse_range_request(range);
}

Text range_words(const FigureRequest& request) {
  if (!request.range) return text_unless(!request.range_each, "each");
  return range_text(*request.range) + (request.range_each ? ",each" : "");
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == ',') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

// "3,-1": one a compared input; −1 is all.
std::vector<int> numbers_of(const char* flag, const std::string& text) {
  std::vector<int> numbers;
  for (const std::string& word : split_names(text))
    numbers.push_back(integer_in(flag, word, -1, 1000000));
  return numbers;
}

Text numbers_text(const std::vector<int>& numbers) {
  return text_unless(numbers.empty(), fmt::format("{}", fmt::join(numbers, ",")));
}

// "10:40,0:64"
void set_view(FigureRequest& request, const std::string& value) {
  std::vector<int> edges;
  for (const std::string& axis : split_names(value)) {
    const std::size_t colon = axis.find(':');
    if (colon == std::string::npos) break;
    for (const std::string& edge : {axis.substr(0, colon), axis.substr(colon + 1)})
      edges.push_back(integer_in("--view", edge, 0, 1 << 24));
  }
  if (edges.size() != 4 || edges[0] >= edges[1] || edges[2] >= edges[3])
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("--view: expected rows and columns like 10:40,0:64, found '{}'", value));
  request.view = FigureView{edges[0], edges[1], edges[2], edges[3]};
}

Text view_text(const FigureRequest& request) {
  if (!request.view) return {};
  const FigureView& view = *request.view;
  return fmt::format("{}:{},{}:{}", view.top, view.bottom, view.left, view.right);
}

void set_colormap(FigureRequest& request, const std::string& value) {
  request.colormap = colormap(value).name;
}

}  // namespace

const std::vector<FigureOption>& figure_options() {
  using R = FigureRequest;
  using S = const std::string&;
  static const std::vector<FigureOption> options = {
      {"--preset", "2601.22966/fig1", "the layout of a published figure; --list names them",
       [](R& r, S v) { r.preset = figure_preset(v).name; },
       [](const R& r) { return text_unless(r.preset.empty(), r.preset); }},
      {"--run", "NAME", "the run of captures given without ::NAME (default: the first)",
       [](R& r, S v) { r.run = v; }, [](const R& r) { return text_unless(r.run.empty(), r.run); }},
      {"--layer", "N", "the block; attention-mean, residual-sorted: only this one",
       [](R& r, S v) { r.layer = integer_in("--layer", v, 0, 1000000); },
       [](const R& r) { return integer_text(r.layer); }},
      {"--head", "N", "the query head; attention-mean: only this one of every layer",
       [](R& r, S v) { r.head = integer_in("--head", v, 0, 1000000); },
       [](const R& r) { return integer_text(r.head); }},
      {"--layers", "N,M", "compare: the block of each input; -1 = all",
       [](R& r, S v) { r.layers = numbers_of("--layers", v); },
       [](const R& r) { return numbers_text(r.layers); }},
      {"--heads", "N,M", "compare: the query head of each input; -1 = all",
       [](R& r, S v) { r.heads = numbers_of("--heads", v); },
       [](const R& r) { return numbers_text(r.heads); }},
      {"--combine", "mean|max", "over layers and heads of attention-mean",
       [](R& r, S v) {
         r.takes_maximum = one_of("--combine", v, {"mean", "max"}) == "max";
       },
       [](const R& r) { return text_unless(!r.takes_maximum, "max"); }},
      {"--without-sink", "", "attention maps without key 0, rows renormalized",
       [](R& r, S) { r.removes_sink = true; },
       [](const R& r) { return text_unless(!r.removes_sink, ""); }},
      {"--source", "automatic|pattern|window|thumbnail",
       "attention maps: as recorded, the first 64 tokens, or the largest of each cell of 64 x 64",
       [](R& r, S v) {
         r.source = one_of("--source", v, {"automatic", "pattern", "window", "thumbnail"});
       },
       [](const R& r) { return text_unless(r.source == "automatic", r.source); }},
      {"--order", "sorted|sorted-without-first|natural|first-input",
       "dimensions of residual-sorted; first-input: all in the order of the first input",
       [](R& r, S v) {
         r.order =
             one_of("--order", v, {"sorted", "sorted-without-first", "natural", "first-input"});
       },
       [](const R& r) { return text_unless(r.order == "sorted", r.order); }},
      {"--dim-list", "D,E,F",
       "residual-sorted: these dimensions in this order; bound, shares: these together",
       [](R& r, S v) { r.dim_list = numbers_of("--dim-list", v); },
       [](const R& r) { return numbers_text(r.dim_list); }},
      {"--key", "K", "shares: the sink whose attention is looked at (default 0)",
       [](R& r, S v) { r.key = integer_in("--key", v, 0, 1 << 24); },
       [](const R& r) { return text_unless(r.key == 0, std::to_string(r.key)); }},
      {"--signed", "", "residual-sorted of one --layer: x around zero instead of |x|",
       [](R& r, S) { r.keeps_sign = true; },
       [](const R& r) { return text_unless(!r.keeps_sign, ""); }},
      {"--dims", "32", "columns of residual-sorted; 0 = all",
       [](R& r, S v) { r.n_dims = integer_in("--dims", v, 0, 1 << 24); },
       [](const R& r) { return integer_text(r.n_dims); }},
      {"--tokens", "N", "only the first N tokens",
       [](R& r, S v) { r.n_tokens = integer_in("--tokens", v, 1, 1 << 24); },
       [](const R& r) { return integer_text(r.n_tokens); }},
      {"--of", "attention-mean|residual-sorted|sink-heads|norm-gains", "what compare compares",
       [](R& r, S v) {
         r.of =
             one_of("--of", v, {"attention-mean", "residual-sorted", "sink-heads", "norm-gains"});
       },
       [](const R& r) { return text_unless(r.of == "attention-mean", r.of); }},
      {"--score", "gu|with-row0|without-row0|NAME",
       "sink-heads: which score of the first key, or another map of the overview by its name",
       [](R& r, S v) { r.score = v; },
       [](const R& r) { return text_unless(r.score == "gu", r.score); }},
      {"--role", "ln1", "compare --of norm-gains: which norm; ln1/pre_gain: the gain before it",
       [](R& r, S v) { r.role = v; },
       [](const R& r) { return text_unless(r.role == "ln1", r.role); }},
      {"--view", "R:R,C:C", "only these rows and columns of each map; the range stays the map's",
       set_view, view_text},
      {"--token-labels", "", "token texts at the axes instead of positions",
       [](R& r, S) { r.labels_tokens = true; },
       [](const R& r) { return text_unless(!r.labels_tokens, ""); }},
      {"--over-median", "", "gains divided by the median of their layer",
       [](R& r, S) { r.divides_by_median = true; },
       [](const R& r) { return text_unless(!r.divides_by_median, ""); }},
      {"--range", "minmax|percentile|meansd|LO,HI|each",
       "color range or value axis; shared by all panels unless each (also percentile,each)",
       set_range, range_words},
      {"--scale", "linear|log|symlog", "of colors and value axes",
       [](R& r, S v) { r.scale = parse_scale(v); },
       [](const R& r) { return r.scale ? Text(std::string(scale_text(*r.scale))) : Text(); }},
      {"--colormap", "NAME", "viridis, cividis, gray, Blues, blue-orange, blue-red", set_colormap,
       [](const R& r) { return text_unless(r.colormap.empty(), r.colormap); }},
      {"--width", "column|text|NNmm",
       "column is 85 mm, text 170 mm (default: column; text for panels side by side)", set_width,
       width_text},
      {"--columns", "N", "panels side by side",
       [](R& r, S v) { r.n_columns = integer_in("--columns", v, 1, 100); },
       [](const R& r) { return integer_text(r.n_columns); }},
      {"--font-pt", "7", "size of the text in points",
       [](R& r, S v) { r.font_pt = number_in("--font-pt", v, 3, 72); },
       [](const R& r) { return text_unless(r.font_pt == 7, fmt::format("{}", r.font_pt)); }},
      {"--dpi", "300", "dots per inch of a PNG",
       [](R& r, S v) { r.dpi = integer_in("--dpi", v, 20, 2400); },
       [](const R& r) { return text_unless(r.dpi == 300, std::to_string(r.dpi)); }},
      {"--title", "S", "above everything", [](R& r, S v) { r.title = v; },
       [](const R& r) { return r.title; }},
      {"--names", "A,B", "what the inputs are called (default: by model, file or run)",
       [](R& r, S v) { r.names = split_names(v); },
       [](const R& r) {
         return text_unless(r.names.empty(), fmt::format("{}", fmt::join(r.names, ",")));
       }},
      {"--panel-labels", "a|A", "letters at the panels",
       [](R& r, S v) {
         r.panel_labels = one_of("--panel-labels", v, {"a", "A"});
       },
       [](const R& r) { return text_unless(r.panel_labels.empty(), r.panel_labels); }},
      {"--text", "paths|text", "of an SVG: paths look the same everywhere, text can be searched",
       [](R& r, S v) {
         r.text = one_of("--text", v, {"paths", "text"}) == "text" ? FigureText::as_text
                                                                   : FigureText::as_paths;
       },
       [](const R& r) { return text_unless(r.text == FigureText::as_paths, "text"); }},
      {"--cells", "image|rectangles", "of maps; rectangles only below 2,500 cells",
       [](R& r, S v) {
         r.cells = one_of("--cells", v, {"image", "rectangles"}) == "rectangles"
                       ? FigureCells::as_rectangles
                       : FigureCells::as_image;
       },
       [](const R& r) { return text_unless(r.cells == FigureCells::as_image, "rectangles"); }},
  };
  return options;
}

}  // namespace sinkscope
