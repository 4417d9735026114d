// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

namespace sinkscope {

// Where squares of `side` pixels lie when n of them fill rows of a given width.
struct SquareLayout {
  int side = 18, gap = 4, columns = 1, rows = 1;
  int height() const { return rows * (side + gap) - gap; }
  int left(int index) const { return index % columns * (side + gap); }
  int top(int index) const { return index / columns * (side + gap); }
  // The square at a point, −1 between or beyond them; n squares.
  int at(double x, double y, int n) const;
};
// Smaller squares when there are many: 18 pixels, at most 6 rows, never below 8 pixels.
SquareLayout square_layout(int width, int n);

// Chooses a query head: one square each, colored by its score from 0 to 1.
class HeadSquares : public QWidget {
  Q_OBJECT

 public:
  explicit HeadSquares(QWidget* parent = nullptr);

  void setScores(std::vector<double> scores);  // [H], NaN = no such score
  void setHead(int head);
  const std::vector<double>& scores() const { return scores_; }
  int head() const { return head_; }

  QSize sizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 signals:
  void headPicked(int head);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  int n() const { return static_cast<int>(scores_.size()); }

  std::vector<double> scores_;
  int head_ = -1;
};

}  // namespace sinkscope
