// SPDX-License-Identifier: GPL-3.0-or-later
// What the Rescaling panel draws of its state.
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "core/rescale/theory.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/rescaling_panel.h"
#include "views/widgets/bar_list.h"
#include "views/widgets/line_plot.h"
#include "views/widgets/scatter_plot.h"

namespace sinkscope {
namespace {

constexpr int kCurvePoints = 100;

ScatterSeries dots(const QString& name, int color, const std::vector<RescalingPoint>& points) {
  ScatterSeries series{name, ScatterSeries::Style::dots, color, {}, {}};
  for (const RescalingPoint& point : points) {
    series.x.push_back(point.x);
    series.y.push_back(point.y);
  }
  return series;
}

ScatterSeries bound_curve(const QString& name, ScatterSeries::Style style, int color,
                          double ratio) {
  ScatterSeries series{name, style, color, {}, {}};
  for (int i = 0; i <= kCurvePoints; ++i) {
    const double r = static_cast<double>(i) / kCurvePoints;
    series.x.push_back(r);
    series.y.push_back(upper_bound_1(r * r, 1, ratio));
  }
  return series;
}

PlotLine over_layers(const QString& name, const std::vector<int>& layers,
                     const std::vector<double>& values, int n_layers) {
  PlotLine line{name, {}, values};
  for (const int layer : layers) line.x.push_back(layer < 0 ? n_layers : layer);
  return line;
}

QString number(double value) { return QString::fromStdString(readable(value)); }

}  // namespace

const NormCloud* RescalingPanel::cloud() const {
  const int index = kind_->currentIndex();
  if (!state_.snapshot || index < 0 || index >= static_cast<int>(state_.snapshot->norms.size()))
    return nullptr;
  return &state_.snapshot->norms[static_cast<std::size_t>(index)];
}

void RescalingPanel::setKind(int index) { kind_->setCurrentIndex(index); }

void RescalingPanel::showEvidence() {
  const NormCloud* shown = cloud();
  if (shown == nullptr) {
    bound_->setSeries(tr("Bound"), {}, {}, {});
    shares_->setSeries(tr("Shares"), {}, {}, {});
    factors_->setLines(tr("Factors"), {}, {});
    return showHistogram();
  }
  bound_->setSeries(
      tr("Norm output under its bound"), tr("r = |h_d| / ‖h‖"), QStringLiteral("‖y‖_rms / max|λ|"),
      {dots(tr("others"), 0, shown->bound_rest), dots(tr("first token"), 1, shown->bound_first),
       bound_curve(tr("bound, |λ_d| ≤ %1 max").arg(number(shown->gain_ratio)),
                   ScatterSeries::Style::line, 2, shown->gain_ratio),
       bound_curve(tr("λ_d = 0"), ScatterSeries::Style::dashed, -1, 0)});
  shares_->setSeries(
      tr("Share before and after"), tr("share before"), tr("share after"),
      {dots(tr("tokens"), 0, shown->shares),
       dots(tr("heads, key %1").arg(state_.snapshot->request.key), 1, state_.snapshot->head_shares),
       {tr("unchanged"), ScatterSeries::Style::dashed, -1, {0, 1}, {0, 1}}});
  const int n_layers = state_.snapshot->facts.model.n_layers;
  factors_->setLines(tr("Rescale factors: α = √(1 − r²) and 1 − p"), tr("layer"),
                     {over_layers(tr("α first token"), shown->layers, shown->alpha_first, n_layers),
                      over_layers(tr("α others"), shown->layers, shown->alpha_rest, n_layers),
                      over_layers(tr("1 − p, strongest head"), state_.snapshot->attention_layers,
                                  state_.snapshot->factor, n_layers)});
  showHistogram();
}

void RescalingPanel::showHistogram() {
  const NormCloud* shown = cloud();
  if (shown == nullptr) {
    histogram_->setScene(nullptr);
    emit colorScaleChanged();
    return;
  }
  auto scene = std::make_shared<HeatmapScene>();
  scene->pyramid = Pyramid(shown->alpha_counts);
  scene->range = find_range(shown->alpha_counts, request_);
  scene->title = tr("Share of tokens by α").toStdString();
  scene->rows.title = "layer";
  scene->rows.indices = shown->layers;
  scene->cols.title = "α from";
  for (int bin = 0; bin < shown->alpha_counts.cols(); ++bin)
    scene->cols.labels.push_back(
        QString::number(static_cast<double>(bin) / shown->alpha_counts.cols(), 'f', 2)
            .toStdString());
  histogram_->setScene(std::move(scene));
  emit colorScaleChanged();
}

// A row for each reader: its bars at the other positions and at the first token, then its verdicts.
void RescalingPanel::showProbes() {
  for (QWidget* row : rows_) delete row;
  rows_.clear();
  bars_.clear();
  if (!state_.probes) return;
  double low = 0, high = 0;
  for (const ProbeBars& group : state_.probes->groups)
    for (const double value : group.delta_loss) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  std::string reader;
  QHBoxLayout* line = nullptr;
  QVBoxLayout* column = nullptr;
  for (const ProbeBars& group : state_.probes->groups) {
    if (line == nullptr || group.reader != reader) {
      reader = group.reader;
      auto* row = new QWidget(bars_area_);
      column = new QVBoxLayout(row);
      column->setContentsMargins(0, 0, 0, 4);
      line = new QHBoxLayout;
      column->addLayout(line);
      groups_->insertWidget(groups_->count() - 1, row);
      rows_.push_back(row);
    }
    auto* bars = new BarList(rows_.back());
    QStringList modes;
    for (const std::string& mode : group.modes) modes << QString::fromStdString(mode);
    bars->setBars(tr("%1, positions %2")
                      .arg(QString::fromStdString(group.reader), QString::fromStdString(group.at)),
                  modes, group.delta_loss, low, high);
    line->addWidget(bars, 1);
    bars_.push_back(bars);
    if (group.sentence.empty()) continue;
    auto* verdict = new QLabel(
        tr("positions %1: %2")
            .arg(QString::fromStdString(group.at), QString::fromStdString(group.sentence)),
        rows_.back());
    verdict->setWordWrap(true);
    column->addWidget(verdict);
  }
}

}  // namespace sinkscope
