// SPDX-License-Identifier: GPL-3.0-or-later
// What the Rescaling panel is made of.
#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QTabWidget>
#include <QVBoxLayout>

#include "views/heatmap/heatmap.h"
#include "views/panels/rescaling_panel.h"
#include "views/widgets/help_button.h"
#include "views/widgets/line_plot.h"
#include "views/widgets/scatter_plot.h"

namespace sinkscope {

RescalingPanel::RescalingPanel(QWidget* parent)
    : Panel(parent),
      head_(new QLabel(this)),
      role_(new QLabel(this)),
      tabs_(new QTabWidget(this)),
      kind_(new QComboBox(this)),
      exported_(new QComboBox(this)),
      evidence_dims_(new QLineEdit(QStringLiteral("auto"), this)),
      key_(new QSpinBox(this)),
      weights_(new QPushButton(tr("With the model's weights"), this)),
      bound_(new ScatterPlot(this)),
      shares_(new ScatterPlot(this)),
      factors_(new LinePlot(this)),
      histogram_(new Heatmap(this)) {
  for (QLabel* label : {head_, role_}) {
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  tabs_->addTab(makeEvidence(), tr("Evidence"));
  tabs_->addTab(makeProbes(), tr("Causal probes"));
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(head_);
  layout->addWidget(role_);
  layout->addWidget(tabs_, 1);
  connect(kind_, &QComboBox::currentIndexChanged, this, [this] { showEvidence(); });
  for (QComboBox* box : {kind_, exported_}) box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  kind_->setMinimumContentsLength(14);
  factors_->setLogAllowed(false);
  const auto ask = [this] { emit evidenceAsked(evidence_dims_->text().trimmed(), key_->value()); };
  connect(evidence_dims_, &QLineEdit::editingFinished, this, ask);
  connect(key_, &QSpinBox::editingFinished, this, ask);
  connect(weights_, &QPushButton::clicked, this, &RescalingPanel::weightsAsked);
  connect(tabs_, &QTabWidget::currentChanged, this, &Panel::colorScaleChanged);
  connect(bound_, &ScatterPlot::hovered, this, [this](int series, int point) {
    hover(boundPoints(series), point, QStringLiteral("r"), QStringLiteral("‖y‖_rms / max|λ|"));
  });
  connect(shares_, &ScatterPlot::hovered, this, [this](int series, int point) {
    hover(sharePoints(series), point, tr("share before"), tr("share after"));
  });
  const auto pick = [this](const std::vector<RescalingPoint>* points, int point) {
    if (points == nullptr || point < 0) return;
    const RescalingPoint& at = (*points)[static_cast<std::size_t>(point)];
    CellRef cell;
    cell.layer = at.layer;
    cell.head = at.head;
    cell.token = at.token;
    cell.dim = at.dim;
    emit picked(cell);
  };
  connect(bound_, &ScatterPlot::picked, this,
          [this, pick](int series, int point) { pick(boundPoints(series), point); });
  connect(shares_, &ScatterPlot::picked, this,
          [this, pick](int series, int point) { pick(sharePoints(series), point); });
  setState({});
}

QWidget* RescalingPanel::makeEvidence() {
  auto* all = new QWidget(tabs_);
  auto* bar = new QHBoxLayout;
  evidence_dims_->setMaximumWidth(80);
  evidence_dims_->setToolTip(
      tr("auto: each token's own largest dimension; or these together, 507,247"));
  key_->setToolTip(tr("The sink whose attention is looked at"));
  bar->addWidget(kind_);
  bar->addWidget(new QLabel(tr("dimensions"), all));
  bar->addWidget(evidence_dims_);
  bar->addWidget(new QLabel(tr("key"), all));
  bar->addWidget(key_);
  for (const char* term : {"bound", "share", "rescale factor"})
    bar->addWidget(new HelpButton(term, all));
  exported_->addItem(tr("bounds"), QStringLiteral("bound"));
  exported_->addItem(tr("shares"), QStringLiteral("shares"));
  exported_->setToolTip(
      tr("What the exported figure draws, of all norms: dots under their bounds, or shares and "
         "factors"));
  bar->addStretch(1);
  bar->addWidget(new QLabel(tr("figure"), all));
  bar->addWidget(exported_);
  bar->addWidget(weights_);
  auto* grid = new QGridLayout;
  grid->addWidget(bound_, 0, 0);
  grid->addWidget(shares_, 0, 1);
  grid->addWidget(factors_, 1, 0);
  grid->addWidget(histogram_, 1, 1);
  for (int i = 0; i < 2; ++i) {
    grid->setColumnStretch(i, 1);
    grid->setRowStretch(i, 1);
  }
  auto* layout = new QVBoxLayout(all);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(bar);
  layout->addLayout(grid, 1);
  return all;
}

QWidget* RescalingPanel::makeProbes() {
  auto* all = new QWidget(tabs_);
  run_ = new QPushButton(tr("Run the causal probes"), all);
  dims_ = new QLineEdit(QStringLiteral("auto"), all);
  dims_->setMaximumWidth(90);
  dims_->setToolTip(
      tr("The probed dimensions: auto (the residual sink, else the massive one), or "
         "507, or 507,247"));
  each_ = new QCheckBox(tr("every norm alone"), all);
  each_->setToolTip(
      tr("One table more for each norm of each layer; takes as many times longer as there are "
         "norms"));
  progress_text_ = new QLabel(all);
  progress_ = new QProgressBar(all);
  progress_->setTextVisible(false);
  progress_->setFixedWidth(140);
  cancel_ = new QPushButton(tr("Cancel"), all);
  probes_text_ = new QLabel(all);
  probes_text_->setWordWrap(true);
  connect(run_, &QPushButton::clicked, this,
          [this] { emit probesAsked(dims_->text().trimmed(), each_->isChecked()); });
  connect(cancel_, &QPushButton::clicked, this, &RescalingPanel::cancelAsked);
  auto* bar = new QHBoxLayout;
  bar->addWidget(run_);
  bar->addWidget(new HelpButton("causal probe", all));
  bar->addWidget(new QLabel(tr("dimensions"), all));
  bar->addWidget(dims_);
  bar->addWidget(each_);
  bar->addWidget(progress_text_);
  bar->addWidget(progress_);
  bar->addWidget(cancel_);
  bar->addStretch(1);
  bars_area_ = new QWidget;
  groups_ = new QVBoxLayout(bars_area_);
  groups_->setContentsMargins(0, 0, 8, 0);
  groups_->addStretch(1);
  auto* scroll = new QScrollArea(all);
  scroll->setWidget(bars_area_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* layout = new QVBoxLayout(all);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(bar);
  layout->addWidget(probes_text_);
  layout->addWidget(scroll, 1);
  return all;
}

}  // namespace sinkscope
