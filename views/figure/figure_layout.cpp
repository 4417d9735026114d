// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/draw/ticks.h"
#include "core/error.h"
#include "views/figure/text_ruler.h"

namespace sinkscope {
namespace {

constexpr double kPanelGap = 8, kSmallestPlot = 24;

QString text_of(const std::string& text) { return QString::fromStdString(text); }

// Room around a plot, before the plot's own size is known.
struct Gutter {
  double left = 0, right = 0, top = 0, bottom = 0;
};

double widest(const TextRuler& ruler, const std::vector<FigureTick>& ticks) {
  double width = 0;
  for (const FigureTick& tick : ticks) width = std::max(width, ruler.width(text_of(tick.text)));
  return width;
}

double label_height(const TextRuler& ruler, const std::string& label) {
  return label.empty() ? 0 : TextRuler::line_height(ruler.font_pt());
}

double side_left(const TextRuler& ruler, const FigurePanel& panel) {
  const double ticks = widest(ruler, panel.y.ticks);
  return label_height(ruler, panel.y.label) + (panel.y.label.empty() ? 0 : 2) + ticks +
         (ticks > 0 ? kTickLength + 3 : 0);
}

const FigureColors* bar_colors(const Figure& figure, const FigurePanel& panel) {
  if (!panel.has_color_bar || panel.maps.empty()) return nullptr;
  return &figure.colors[static_cast<std::size_t>(panel.maps.front().colors)];
}

std::vector<FigureTick> bar_ticks(const FigureColors& colors) {
  std::vector<FigureTick> ticks;
  for (const Tick& tick : value_ticks(colors.range, 6))
    ticks.push_back({tick.position, tick.label, false});
  return ticks;
}

double side_right(const TextRuler& ruler, const Figure& figure, const FigurePanel& panel) {
  // Half of the last tick's label may stand out over the plot's end.
  const double overhang = panel.x.is_sideways || panel.x.ticks.empty()
                              ? 0
                              : ruler.width(text_of(panel.x.ticks.back().text)) / 2;
  const FigureColors* colors = bar_colors(figure, panel);
  if (colors == nullptr) return overhang;
  return std::max(overhang, kBarGap + kBarWidth + kTickLength + 2 +
                                widest(ruler, bar_ticks(*colors)) +
                                label_height(ruler, colors->label));
}

double side_bottom(const TextRuler& ruler, const FigurePanel& panel) {
  double height = label_height(ruler, panel.x.label);
  if (panel.x.ticks.empty()) return height;
  return height + kTickLength + 2 +
         (panel.x.is_sideways ? widest(ruler, panel.x.ticks)
                              : TextRuler::line_height(ruler.font_pt()));
}

std::vector<std::vector<int>> legend_rows(const TextRuler& ruler, const FigurePanel& panel,
                                          double room) {
  std::vector<std::vector<int>> rows;
  double used = room + 1;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    if (panel.series[i].name.empty()) continue;
    const double width = kLegendMark + ruler.width(text_of(panel.series[i].name)) + kLegendGap;
    if (used + width - kLegendGap > room && (rows.empty() || !rows.back().empty())) {
      rows.emplace_back();
      used = 0;
    }
    rows.back().push_back(static_cast<int>(i));
    used += width;
  }
  return rows;
}

std::vector<FigureTick> fitting(const TextRuler& ruler, const FigureAxis& axis, double from,
                                double to, bool along_text) {
  std::vector<double> centers, lengths;
  std::vector<bool> starred;
  std::vector<FigureTick> inside;
  for (const FigureTick& tick : axis.ticks) {
    const double place = place_on(axis, tick.at, from, to);
    if (!(place >= std::min(from, to) - 0.01 && place <= std::max(from, to) + 0.01)) continue;
    inside.push_back(tick);
    centers.push_back(place);
    lengths.push_back(along_text ? ruler.width(text_of(tick.text)) : ruler.font_pt() * 1.05);
    starred.push_back(tick.starred);
  }
  std::vector<FigureTick> kept;
  for (const int i : ticks_that_fit(centers, lengths, starred, along_text ? 2.5 : 0.5))
    kept.push_back(inside[static_cast<std::size_t>(i)]);
  return kept;
}

void place_panel(const TextRuler& ruler, const Figure& figure, const FigurePanel& panel,
                 const Gutter& gutter, PanelPlace& place) {
  const QRectF& plot = place.plot;
  place.x_ticks = fitting(ruler, panel.x, plot.left(), plot.right(), !panel.x.is_sideways);
  place.y_ticks = fitting(ruler, panel.y, plot.bottom(), plot.top(), false);
  const double line = TextRuler::line_height(ruler.title_pt());
  place.legend_top =
      plot.top() - 2 -
      static_cast<double>(place.legend.size()) * TextRuler::line_height(ruler.font_pt());
  place.title =
      QPointF(plot.left(), place.legend_top - 1 -
                               line * (static_cast<double>(place.title_lines.size()) - 1) -
                               0.25 * ruler.title_pt());
  place.x_label_top =
      plot.bottom() + side_bottom(ruler, panel) - label_height(ruler, panel.x.label);
  place.y_label_left = plot.left() - gutter.left;
  if (const FigureColors* colors = bar_colors(figure, panel)) {
    place.bar = QRectF(plot.right() + kBarGap, plot.top(), kBarWidth, plot.height());
    FigureAxis axis;
    axis.ticks = bar_ticks(*colors);
    place.bar_ticks = fitting(ruler, axis, place.bar.bottom(), place.bar.top(), false);
  }
}

}  // namespace

double place_on(const FigureAxis& axis, double at, double from, double to) {
  const auto scaled = [&](double v) { return axis.is_log ? std::log(v) : v; };
  const double low = scaled(axis.low), high = scaled(axis.high);
  if (low == high) return (from + to) / 2;
  return from + (scaled(at) - low) / (high - low) * (to - from);
}

std::vector<int> ticks_that_fit(const std::vector<double>& centers,
                                const std::vector<double>& lengths,
                                const std::vector<bool>& starred, double gap) {
  const int n = static_cast<int>(centers.size());
  const auto touch = [&](int a, int b) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    return std::abs(centers[i] - centers[j]) < (lengths[i] + lengths[j]) / 2 + gap;
  };
  std::vector<int> kept;
  const auto is_free = [&](int i) {
    return std::none_of(kept.begin(), kept.end(), [&](int other) { return touch(i, other); });
  };
  std::vector<int> plain;
  for (int i = 0; i < n; ++i) {
    if (!starred[static_cast<std::size_t>(i)]) {
      plain.push_back(i);
    } else if (is_free(i)) {
      kept.push_back(i);
    }
  }
  const int n_plain = static_cast<int>(plain.size());
  int stride = 1;
  for (bool fits = false; !fits && stride < n_plain;) {
    fits = true;
    for (int i = stride; i < n_plain && fits; i += stride)
      fits =
          !touch(plain[static_cast<std::size_t>(i - stride)], plain[static_cast<std::size_t>(i)]);
    if (!fits) ++stride;
  }
  for (int i = 0; i < n_plain; i += std::max(1, stride))
    if (is_free(plain[static_cast<std::size_t>(i)]))
      kept.push_back(plain[static_cast<std::size_t>(i)]);
  std::sort(kept.begin(), kept.end());
  return kept;
}

FigureLayout lay_out(const Figure& figure) {
  const TextRuler ruler(figure.font_pt);
  FigureLayout layout;
  const double width = std::round(figure.width_mm / 25.4 * 72);
  const int n_panels = static_cast<int>(figure.panels.size());
  const int n_columns = std::clamp(figure.n_columns, 1, std::max(1, n_panels));
  const auto n = static_cast<std::size_t>(n_columns);
  std::vector<double> left(n, 0), right(n, 0);
  for (int i = 0; i < n_panels; ++i) {
    const FigurePanel& panel = figure.panels[static_cast<std::size_t>(i)];
    const auto column = static_cast<std::size_t>(i % n_columns);
    left[column] = std::max(left[column], side_left(ruler, panel));
    right[column] = std::max(right[column], side_right(ruler, figure, panel));
  }
  double taken = 2 * kMargin + kPanelGap * (n_columns - 1);
  for (std::size_t column = 0; column < n; ++column) taken += left[column] + right[column];
  const double plot_width = (width - taken) / n_columns;
  if (plot_width < kSmallestPlot)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("figure: {} panels side by side have no room in {:g} mm; a larger "
                            "--width or a smaller --font-pt gives it",
                            n_columns, figure.width_mm));

  layout.title_lines = ruler.wrapped(text_of(figure.title), ruler.title_pt(), width - 2 * kMargin);
  double top = kMargin + static_cast<double>(layout.title_lines.size()) *
                             TextRuler::line_height(ruler.title_pt());
  for (int first = 0; first < n_panels; first += n_columns) {
    const int last = std::min(first + n_columns, n_panels);
    double above = 0, height = 0, below = 0;
    for (int i = first; i < last; ++i) {
      const FigurePanel& panel = figure.panels[static_cast<std::size_t>(i)];
      const auto column = static_cast<std::size_t>(i % n_columns);
      PanelPlace place;
      const FigureColors* colors = bar_colors(figure, panel);
      const bool is_narrow =
          colors != nullptr && (colors->summary.above > 0 || !colors->above_text.empty());
      place.title_lines = ruler.wrapped(text_of(panel.title), ruler.title_pt(),
                                        plot_width + (is_narrow ? 0 : right[column]));
      place.legend = legend_rows(ruler, panel, plot_width + right[column]);
      const std::size_t n_titles = std::max<std::size_t>(
          place.title_lines.size(), is_narrow || !figure.panel_labels.empty() ? 1 : 0);
      above =
          std::max(above, static_cast<double>(n_titles) * TextRuler::line_height(ruler.title_pt()) +
                              static_cast<double>(place.legend.size()) *
                                  TextRuler::line_height(ruler.font_pt()) +
                              4);
      height = std::max(height, panel.height_ratio * plot_width);
      below = std::max(below, side_bottom(ruler, panel));
      layout.panels.push_back(place);
    }
    double x = kMargin;
    for (int i = first; i < last; ++i) {
      const auto column = static_cast<std::size_t>(i % n_columns);
      const FigurePanel& panel = figure.panels[static_cast<std::size_t>(i)];
      PanelPlace& place = layout.panels[static_cast<std::size_t>(i)];
      place.plot =
          QRectF(x + left[column], top + above, plot_width, panel.height_ratio * plot_width);
      place_panel(ruler, figure, panel, {left[column], right[column], above, below}, place);
      x += left[column] + plot_width + right[column] + kPanelGap;
    }
    // A last y tick's label stands half of its height above or below the plot.
    top += above + height + std::max(below, ruler.font_pt() / 2) + (last < n_panels ? 3 : 0);
  }
  for (const FigureNote& note : figure.notes)
    for (const QString& line :
         ruler.wrapped(text_of(note.text), ruler.note_pt(), width - 2 * kMargin))
      layout.note_lines.push_back({line, note.is_warning});
  layout.notes_top = top + 2;
  if (!layout.note_lines.empty())
    top = layout.notes_top +
          static_cast<double>(layout.note_lines.size()) * TextRuler::line_height(ruler.note_pt());
  layout.size = QSizeF(width, std::ceil(top + kMargin));
  return layout;
}

}  // namespace sinkscope
