// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>
#include <QWidget>
#include <vector>

namespace sinkscope {

// Named values as horizontal bars, one below the other, each with its number behind it.
class BarList : public QWidget {
  Q_OBJECT

 public:
  explicit BarList(QWidget* parent = nullptr);

  // `low` ≤ 0 ≤ `high`: where the bars may end, shared by lists that are to be compared.
  void setBars(const QString& title, const QStringList& names, std::vector<double> values,
               double low, double high);

  // The bar of a row, in pixels of this widget; empty for a value that is no number.
  QRectF barRect(int row) const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {170, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  double lineHeight() const;
  double nameWidth() const;

  QString title_;
  QStringList names_;
  std::vector<double> values_;
  double low_ = 0, high_ = 1;
};

}  // namespace sinkscope
