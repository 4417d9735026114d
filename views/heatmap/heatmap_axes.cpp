// SPDX-License-Identifier: GPL-3.0-or-later
#include <qcustomplot.h>

#include <QFontMetricsF>
#include <QLabel>
#include <algorithm>
#include <cmath>

#include "views/heatmap/heatmap.h"
#include "views/heatmap/heatmap_parts.h"
#include "views/heatmap/token_text.h"

namespace sinkscope {

namespace {

constexpr double kTokenAngle = 60;  // degrees, of token labels below the map
constexpr int kLabelCharacters = 14;
constexpr int kTickLength = 4, kPadding = 4;

int places(const HeatmapAxis& axis, int n) {
  return axis.labels.empty() ? n : std::min(n, static_cast<int>(axis.labels.size()));
}

QString label_of(const HeatmapAxis& axis, int place, bool starred) {
  QString text;
  if (!axis.labels.empty())
    text = token_text(axis.labels[place], kLabelCharacters);
  else if (axis.indices.empty())
    text = QString::number(place);
  else
    text = axis.indices[place] < 0 ? QStringLiteral("final") : QString::number(axis.indices[place]);
  return starred ? QChar(0x2605) + text : text;
}

// Of the widest label. Among tokens only the longest are measured.
double widest_label(const HeatmapAxis& axis, int n, const QFontMetricsF& metrics) {
  std::vector<int> candidates(places(axis, n));
  for (int i = 0; i < static_cast<int>(candidates.size()); ++i) candidates[i] = i;
  const auto size = [&](int place) {
    if (!axis.labels.empty()) return static_cast<int>(axis.labels[place].size());
    return axis.indices.empty() ? place : axis.indices[place];
  };
  const auto measured = std::min<std::size_t>(candidates.size(), 24);
  std::partial_sort(candidates.begin(), candidates.begin() + measured, candidates.end(),
                    [&](int a, int b) { return size(a) > size(b); });
  double width = 0;
  for (std::size_t i = 0; i < measured; ++i)
    width = std::max(
        width, metrics.horizontalAdvance(label_of(axis, candidates[i], !axis.starred.empty())));
  return width;
}

std::vector<Tick> axis_ticks(const HeatmapAxis& axis, int n, double from, double to, double pixels,
                             double label_pixels) {
  const double step = label_pixels * (to - from) / std::max(pixels, 1.0);
  const int first = std::max(0, static_cast<int>(std::ceil(from - 0.5)));
  const int last = std::min(places(axis, n) - 1, static_cast<int>(std::floor(to - 0.5)));
  std::vector<int> stars;
  for (const int star : axis.starred)
    if (std::all_of(stars.begin(), stars.end(),
                    [&](int other) { return std::abs(other - star) >= step; }))
      stars.push_back(star);
  std::vector<Tick> ticks;
  for (const int place : tick_cells(first, last, step, stars)) {
    const bool starred = std::find(stars.begin(), stars.end(), place) != stars.end();
    ticks.push_back({place + 0.5, label_of(axis, place, starred).toStdString(), starred});
  }
  return ticks;
}

void show_ticks(QCPAxis* axis, const std::vector<Tick>& ticks) {
  auto ticker = axis->ticker().dynamicCast<QCPAxisTickerText>();
  ticker->clear();
  for (const Tick& tick : ticks) ticker->addTick(tick.position, QString::fromStdString(tick.label));
}

}  // namespace

std::string cell_name(const HeatmapAxis& axis, int place) {
  if (place >= 0 && place < static_cast<int>(axis.labels.size())) return axis.labels[place];
  if (place >= 0 && place < static_cast<int>(axis.indices.size()))
    return axis.indices[place] < 0 ? "final" : std::to_string(axis.indices[place]);
  return std::to_string(place);
}

void Heatmap::applyMargins() {
  if (!scene_ || scene_->grid().empty()) return;
  const QFontMetricsF ticks(plot_->xAxis->tickLabelFont()), labels(plot_->xAxis->labelFont());
  const Grid& grid = scene_->grid();
  parts_->row_label_width = widest_label(scene_->rows, grid.rows(), ticks);
  parts_->col_label_width = widest_label(scene_->cols, grid.cols(), ticks);
  const bool tokens_below = !scene_->cols.labels.empty();
  plot_->xAxis->setTickLabelRotation(tokens_below ? -kTokenAngle : 0);
  plot_->xAxis->setLabel(QString::fromStdString(scene_->cols.title));
  plot_->yAxis->setLabel(QString::fromStdString(scene_->rows.title));
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
    axis->setTickLabelPadding(kPadding);
    axis->setLabelPadding(kPadding);
  }
  const double angle = tokens_below ? kTokenAngle * M_PI / 180 : 0;
  const double title_x = scene_->cols.title.empty() ? 0 : labels.height() + kPadding;
  const double title_y = scene_->rows.title.empty() ? 0 : labels.height() + kPadding;
  const double below = ticks.height() + parts_->col_label_width * std::sin(angle);
  // Half of the first label hangs over to the left, half of the last one to the right.
  const double overhang = parts_->col_label_width / 2 + 2;
  double left = parts_->row_label_width + kTickLength + 2 * kPadding + title_y;
  left = std::max(left, tokens_below ? parts_->col_label_width * std::cos(angle) : overhang);
  double right = tokens_below ? 6 : overhang;
  parts_->needed_left = left;
  parts_->needed_right = right;
  left = std::max(left, parts_->least_left);
  right = std::max(right, parts_->least_right);
  double bottom = below + kTickLength + 2 * kPadding + title_x;
  const double top = ticks.height() / 2 + 4;  // a label at the edge needs room
  if (scene_->square_cells) {
    const double width = plot_->width() - left - right, height = plot_->height() - top - bottom;
    const double cell = std::max(1e-6, std::min(width / grid.cols(), height / grid.rows()));
    right += std::max(0.0, width - cell * grid.cols());
    bottom += std::max(0.0, height - cell * grid.rows());
  }
  parts_->rect->setMargins(QMargins(qRound(left), qRound(top), qRound(right), qRound(bottom)));
  plot_->plotLayout()->setOuterRect(plot_->viewport());
  plot_->plotLayout()->setMargins(QMargins());
  plot_->setViewport(plot_->rect());
  plot_->plotLayout()->update(QCPLayoutElement::upPreparation);
  plot_->plotLayout()->update(QCPLayoutElement::upMargins);
  plot_->plotLayout()->update(QCPLayoutElement::upLayout);
}

void Heatmap::placeTicks() {
  const QRect area = parts_->rect->rect();
  const QFontMetricsF metrics(plot_->xAxis->tickLabelFont());
  const Grid& grid = scene_->grid();
  row_ticks_ = axis_ticks(scene_->rows, grid.rows(), view_.top, view_.bottom, area.height(),
                          metrics.height() * 1.1);
  const double below =
      scene_->cols.labels.empty() ? parts_->col_label_width + 10 : metrics.height() * 1.25;
  col_ticks_ = axis_ticks(scene_->cols, grid.cols(), view_.left, view_.right, area.width(), below);
  show_ticks(plot_->yAxis, row_ticks_);
  show_ticks(plot_->xAxis, col_ticks_);
}

void Heatmap::writeTexts() {
  const QRect area = parts_->rect->rect();
  const double ratio = plot_->bufferDevicePixelRatio();
  const bool pooled =
      view_.height() > area.height() * ratio || view_.width() > area.width() * ratio;
  const std::string_view mode = reduction_label(scene_->pyramid.reduction());
  note_ = pooled ? QString::fromUtf8(mode.data(), static_cast<qsizetype>(mode.size())) : QString();
  if (!counts_.isEmpty()) note_ += (note_.isEmpty() ? "" : QStringLiteral(" · ")) + counts_;
  const auto show = [](QLabel* label, const QString& text) {
    label->setText(label->fontMetrics().elidedText(text, Qt::ElideRight, label->width()));
    label->setToolTip(text);
  };
  show(title_label_, QString::fromStdString(scene_->title));
  show(note_label_, note_);
}

}  // namespace sinkscope
