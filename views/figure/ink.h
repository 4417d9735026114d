// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QPointF>
#include <QString>

#include "views/figure/paint_figure.h"
#include "views/figure/text_ruler.h"

class QPainter;

namespace sinkscope {

// Draws the text of a figure in the way its options ask for.
class Ink {
 public:
  Ink(QPainter& painter, const PaintOptions& options, double font_pt)
      : painter_(painter), options_(options), ruler_(font_pt) {}

  QPainter& painter() const { return painter_; }
  const PaintOptions& options() const { return options_; }
  const TextRuler& ruler() const { return ruler_; }

  enum class Align { left, center, right };
  // `at` is on the baseline.
  void text(QPointF at, const QString& text, Align align, double pt, const QColor& color) const;
  void text(QPointF at, const QString& text, Align align) const;
  // Reads upward; `at` is on the baseline, which runs along y.
  void upward_text(QPointF at, const QString& text, Align align) const;
  // From the baseline to the middle of digits and capitals.
  double half_height() const { return ruler_.font_pt() * 0.365; }

 private:
  QPainter& painter_;
  const PaintOptions& options_;
  TextRuler ruler_;
};

}  // namespace sinkscope
