// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/color_bar.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>
#include <array>

#include "views/heatmap/color_strip.h"
#include "views/theme.h"

namespace sinkscope {

namespace {

QString text_of(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

template <class T, std::size_t N, class Label>
QComboBox* choice(QWidget* parent, const std::array<T, N>& values, Label label) {
  auto* box = new QComboBox(parent);
  box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (const T value : values) box->addItem(text_of(label(value)), static_cast<int>(value));
  return box;
}

template <class T>
void choose(QComboBox* box, T value) {
  const QSignalBlocker blocker(box);
  box->setCurrentIndex(box->findData(static_cast<int>(value)));
}

constexpr std::array kModes = {RangeMode::min_max, RangeMode::percentile, RangeMode::mean_sd,
                               RangeMode::fixed};
constexpr std::array kScales = {Scale::linear, Scale::log, Scale::symlog};
constexpr std::array kReductions = {Reduction::max_abs, Reduction::min, Reduction::max,
                                    Reduction::mean, Reduction::from_one};

}  // namespace

QIcon lock_icon(bool closed, const QColor& color) {
  QPixmap pixmap(32, 32);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(color, 3));
  const double lift = closed ? 0 : -5;
  painter.drawArc(QRectF(10, 5 + lift, 12, 18), 0, 180 * 16);
  painter.drawLine(QPointF(10, 14 + lift), QPointF(10, closed ? 16 : 12));
  painter.drawLine(QPointF(22, 14 + lift), QPointF(22, 16));
  painter.fillRect(QRectF(6, 15, 20, 14), color);
  return pixmap;
}

ColorBar::ColorBar(QWidget* parent)
    : QWidget(parent),
      strip_(new ColorStrip(this)),
      mode_(choice(this, kModes, range_mode_label)),
      scale_(choice(this, kScales, scale_text)),
      reduction_(choice(this, kReductions, reduction_label)),
      lock_(new QToolButton(this)),
      quantity_(new QLabel(this)),
      counts_(new QLabel(this)),
      differ_(new QLabel(tr("The ranges differ: equal colors are not equal values."), this)) {
  mode_->setToolTip(tr("How the range of the colors is chosen"));
  scale_->setToolTip(tr("Scale of the colors"));
  reduction_->setToolTip(tr("What a pixel shows that stands for several cells"));
  lock_->setCheckable(true);
  lock_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  lock_->setToolTip(tr("One range for all pictures that are compared"));
  for (QLabel* label : {quantity_, counts_, differ_}) label->setWordWrap(true);
  counts_->setForegroundRole(QPalette::PlaceholderText);
  differ_->setStyleSheet("color: #d0342c;");

  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(quantity_);
  column->addWidget(strip_, 1);
  auto* row = new QHBoxLayout;
  for (QWidget* widget :
       {static_cast<QWidget*>(mode_), static_cast<QWidget*>(scale_), static_cast<QWidget*>(lock_)})
    row->addWidget(widget);
  row->addStretch(1);
  column->addLayout(row);
  column->addWidget(reduction_, 0, Qt::AlignLeft);
  column->addWidget(counts_);
  column->addWidget(differ_);

  connect(mode_, &QComboBox::currentIndexChanged, this, [this] {
    RangeRequest asked = request_;
    asked.mode = static_cast<RangeMode>(mode_->currentData().toInt());
    if (asked.mode == RangeMode::fixed) {
      asked.lo = strip_->range().lo;
      asked.hi = strip_->range().hi;
    }
    request(asked);
  });
  connect(scale_, &QComboBox::currentIndexChanged, this, [this] {
    RangeRequest asked = request_;
    asked.scale = static_cast<Scale>(scale_->currentData().toInt());
    request(asked);
  });
  connect(reduction_, &QComboBox::currentIndexChanged, this, [this] {
    emit reductionRequested(static_cast<Reduction>(reduction_->currentData().toInt()));
  });
  connect(lock_, &QToolButton::toggled, this, &ColorBar::lockRequested);
  const auto fixed = [this](double lo, double hi) {
    RangeRequest asked = request_;
    asked.mode = RangeMode::fixed;
    asked.lo = lo;
    asked.hi = hi;
    request(asked);
  };
  connect(strip_, &ColorStrip::rangeDragged, this, fixed);
  connect(strip_, &ColorStrip::rangeDropped, this, fixed);
  setLock(Lock::hidden);
  setReduction(std::nullopt);
  setScale({});
}

void ColorBar::request(const RangeRequest& request) {
  request_ = request;
  emit rangeRequested(request);
}

void ColorBar::setScale(const ColorBarScale& scale) {
  request_ = scale.request;
  choose(mode_, scale.request.mode);
  choose(scale_, scale.request.scale);
  strip_->setScale(scale.range, colormap(scale.colormap), scale.summary);
  quantity_->setText(QString::fromStdString(scale.quantity));
  quantity_->setVisible(!scale.quantity.empty());
  QString counts = QString::fromStdString(summary_text(scale.summary));
  // A log scale without a positive value is drawn linearly, which is said.
  if (scale.range.scale != scale.request.scale) counts += tr(" · no value for a log scale");
  counts_->setText(counts);
}

void ColorBar::setReduction(std::optional<Reduction> reduction) {
  reduction_->setVisible(reduction.has_value());
  if (reduction) choose(reduction_, *reduction);
}

void ColorBar::setMarkedValue(double value) { strip_->setMarkedValue(value); }

void ColorBar::setLock(Lock lock, bool differ) {
  const QSignalBlocker blocker(lock_);
  lock_->setVisible(lock != Lock::hidden);
  lock_->setChecked(lock == Lock::shared);
  lock_->setIcon(lock_icon(lock == Lock::shared, palette().color(QPalette::ButtonText)));
  lock_->setText(lock == Lock::shared ? tr("shared") : tr("each"));
  differ_->setVisible(lock != Lock::hidden && differ);
}

QString ColorBar::countsText() const { return counts_->text(); }

RangeRequest ColorBar::cycled(const RangeRequest& request, int step) {
  struct Stop {
    RangeMode mode;
    Scale scale;
  };
  constexpr std::array stops = {
      Stop{RangeMode::min_max, Scale::linear}, Stop{RangeMode::percentile, Scale::linear},
      Stop{RangeMode::mean_sd, Scale::linear}, Stop{RangeMode::percentile, Scale::log},
      Stop{RangeMode::percentile, Scale::symlog}};
  int at = step > 0 ? -1 : 0;
  for (int i = 0; i < static_cast<int>(stops.size()); ++i)
    if (stops[i].mode == request.mode && stops[i].scale == request.scale) at = i;
  const int n = static_cast<int>(stops.size());
  const Stop& next = stops[((at + step) % n + n) % n];
  RangeRequest cycled = request;
  cycled.mode = next.mode;
  cycled.scale = next.scale;
  return cycled;
}

}  // namespace sinkscope
