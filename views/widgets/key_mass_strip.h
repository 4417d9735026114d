// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

namespace sinkscope {

// Bars under the columns of a map: what each key receives. It follows the map's columns.
class KeyMassStrip : public QWidget {
  Q_OBJECT

 public:
  explicit KeyMassStrip(QWidget* parent = nullptr);

  void setValues(std::vector<double> values);  // one a column of the map
  // Pixels (in this widget) between which the map shows the columns first … last, fractions
  // allowed.
  void setColumns(double left, double right, double first, double last);
  void setMark(int column);  // −1 = none
  // The bar of a column, for tests and tooltips; empty outside the view.
  QRectF barRect(int column) const;

  QSize sizeHint() const override { return {300, 64}; }
  QSize minimumSizeHint() const override { return {100, 56}; }

 signals:
  void columnPicked(int column);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  double highest() const;  // of the visible columns

  std::vector<double> values_;
  double left_ = 0, right_ = 0, first_ = 0, last_ = 0;
  int mark_ = -1;
};

}  // namespace sinkscope
