// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/draw/value_range.h"

namespace sinkscope {

enum class FigureText { as_paths, as_text };         // in SVG; PDF always keeps text
enum class FigureCells { as_image, as_rectangles };  // of maps

struct FigureView {
  int top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const FigureView&) const = default;
};

// What figure is wanted, and how: a value that the command line, the window and a copied command
// share. Which fields a kind uses stands in the help of the options.
struct FigureRequest {
  std::string kind;                 // a name of figure_kinds(); "" with a preset
  std::string preset;               // "2601.22966/fig1"; "" = our own layout
  std::vector<std::string> inputs;  // RUN.h5, RUN.h5::run1 or MODEL, as written
  std::string run;                  // --run, for inputs without ::; "" = the first
  // The files that describe models among the inputs (--arch): one for all of them, or one for each
  // input in its order, "" = none; empty = none. Captures do not look at them.
  std::vector<std::string> archs;

  // What is drawn.
  std::optional<int> layer, head;
  std::vector<int> layers, heads;     // compare: of each input, −1 = all; empty = layer, head
  bool takes_maximum = false;         // over heads and layers, instead of the mean
  bool removes_sink = false;          // without the first key, renormalized
  std::string order = "sorted";       // sorted, sorted-without-first, natural, first-input
  std::vector<int> dim_list;          // these dimensions, in this order; empty = order
  int key = 0;                        // the sink of bound and shares whose attention is looked at
  std::optional<int> n_dims;          // columns of residual-sorted
  bool keeps_sign = false;            // of one block state, around zero, instead of |x|
  std::optional<int> n_tokens;        // only the first tokens
  std::string of = "attention-mean";  // what `compare` compares
  std::string score = "gu";           // of sink-heads: gu, with-row0, without-row0, a map
  std::string role = "ln1";           // of its norm gains; "ln1/pre_gain": in front of the norm
  std::string source = "automatic";   // of attention maps: automatic, pattern, window, thumbnail
  // Only this part of each map, in cells: rows [top, bottom) and columns [left, right).
  std::optional<FigureView> view;
  bool labels_tokens = false;      // token texts at the axes instead of positions
  bool divides_by_median = false;  // gains over the median of their layer

  // How.
  std::string colormap;               // "" = the kind's own
  std::optional<Scale> scale;         // nullopt = the kind's own
  std::optional<RangeRequest> range;  // mode and bounds; nullopt = the kind's own
  bool range_each = false;            // every panel its own range
  std::optional<int> n_columns;       // panels side by side
  std::optional<double> width_mm;     // nullopt = 85, 170 for panels side by side
  double font_pt = 7;
  int dpi = 300;
  std::optional<std::string> title;
  std::vector<std::string> names;  // what inputs are called; empty = by model, file or run
  std::string panel_labels;        // "a", "A" or ""
  FigureText text = FigureText::as_paths;
  FigureCells cells = FigureCells::as_image;

  bool operator==(const FigureRequest&) const = default;
};

// One option of the command line, which is also one field of the dialog.
struct FigureOption {
  const char* flag;         // "--width"
  const char* placeholder;  // "column|text|NNmm"; "" = a switch without a value
  const char* help;
  // Throws Error{invalid_argument} naming flag, expected and found.
  void (*set)(FigureRequest& request, const std::string& value);
  // What has to follow the flag to get this request; nullopt = nothing, it is the default.
  std::optional<std::string> (*text)(const FigureRequest& request);
};

const std::vector<FigureOption>& figure_options();

// "sinkscope figure attention-mean run.h5 --width text -o figure.pdf", quoted for a shell.
std::string figure_command(const FigureRequest& request, const std::string& output);

// The inverse of figure_command for words after "figure": KIND INPUT… and options; -o and --force
// are not among them. Throws Error{invalid_argument}.
FigureRequest parse_figure_words(const std::vector<std::string>& words);

// KIND INPUT…, or INPUT… alone once a preset is set. Throws Error{invalid_argument}.
void set_figure_words(FigureRequest& request, const std::vector<std::string>& positional);

// What --arch says once the inputs are known: as many files as inputs between commas, or one.
void set_archs(FigureRequest& request, const std::string& text);
// The file that describes an input; "" = none.
std::string arch_of(const FigureRequest& request, std::size_t input);

// Models by their paths, and the file that describes each; "" = the model itself does.
using ModelArchs = std::map<std::string, std::string>;
// FigureRequest::archs of these inputs, in its shortest form.
std::vector<std::string> archs_for(const std::vector<std::string>& inputs,
                                   const ModelArchs& models);

// Kind and preset agree with each other and exist, there are inputs, and as many names;
// of files that describe them as many, one, or none.
// Throws Error{invalid_argument} or Error{unsupported}.
void check_request(const FigureRequest& request);

}  // namespace sinkscope
