// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>
#include <QWidget>
#include <optional>

#include "core/draw/pyramid.h"
#include "core/draw/value_range.h"

class QComboBox;
class QLabel;
class QToolButton;

namespace sinkscope {

class ColorStrip;

// What the color bar says about the pictures that share it.
struct ColorBarScale {
  RangeRequest request;
  ValueRange range;
  std::string colormap = "viridis";
  RangeSummary summary;
  std::string quantity;  // "attention probability"
};

// A padlock, closed or open, as no font of every system has one.
QIcon lock_icon(bool closed, const QColor& color);

// The color strip with its choices below it: range mode, scale, what a pixel of many cells shows,
// one range for all that is compared (the lock), and the counts in words. Emits what is chosen and
// is told the result.
class ColorBar : public QWidget {
  Q_OBJECT

 public:
  explicit ColorBar(QWidget* parent = nullptr);

  void setScale(const ColorBarScale& scale);
  // What the pictures' pixels show; nullopt hides the choice.
  void setReduction(std::optional<Reduction> reduction);
  void setMarkedValue(double value);
  // Only compared pictures have a lock. `differ`: they are drawn with unequal ranges, which is said
  // in red.
  enum class Lock { hidden, shared, each };
  void setLock(Lock lock, bool differ = false);

  // The next or previous range mode of `[` and `]`: min–max, percentile, mean ± 3 sd, each linear,
  // then percentile on the log and symlog scale.
  static RangeRequest cycled(const RangeRequest& request, int step);

  ColorStrip* strip() const { return strip_; }
  QString countsText() const;

 signals:
  void rangeRequested(const sinkscope::RangeRequest& request);
  void reductionRequested(sinkscope::Reduction reduction);
  void lockRequested(bool shared);

 private:
  void request(const RangeRequest& request);

  ColorStrip* strip_;
  QComboBox *mode_, *scale_, *reduction_;
  QToolButton* lock_;
  QLabel *quantity_, *counts_, *differ_;
  RangeRequest request_;
};

}  // namespace sinkscope
