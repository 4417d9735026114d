// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <QRectF>
#include <string>
#include <vector>

namespace sinkscope {

// The prompt as readable text, every token shaded by the attention it receives. Any length: only
// what is visible is painted.
class TokenStrip : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit TokenStrip(QWidget* parent = nullptr);

  // labels [T] as a capture holds them ("·keeper", "⟨E6 88⟩", "↵"; ids where they are empty);
  // shades [T] from 0 to 1, or empty for none.
  void setTokens(const std::vector<std::string>& labels, const std::vector<int>& ids);
  void setShades(std::vector<double> shades);
  void setToken(int token);  // the chosen one, scrolled to; −1 = none
  int token() const { return token_; }
  int count() const { return static_cast<int>(texts_.size()); }

  // Where a token lies, in viewport coordinates.
  QRectF tokenRect(int token) const;
  int tokenAt(const QPointF& position) const;  // −1 = none
  // The text shown for a token: without the mark of its leading space.
  QString tokenText(int token) const { return texts_[static_cast<std::size_t>(token)]; }

  QSize sizeHint() const override { return {230, 240}; }

 signals:
  void tokenPicked(int token);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void layOut();

  std::vector<QString> texts_;
  std::vector<bool> has_space_, breaks_line_;
  std::vector<QRectF> places_;  // in document coordinates
  std::vector<double> shades_;
  double line_height_ = 0;
  int token_ = -1;
};

}  // namespace sinkscope
