// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

namespace sinkscope {

// Which of n equal cells of a strip x pixels in, clamped to the strip.
int cell_at(double x, double width, int n);

// Chooses a block by what is seen over depth: a line of one quantity, the chosen block marked.
class LayerSlider : public QWidget {
  Q_OBJECT

 public:
  explicit LayerSlider(QWidget* parent = nullptr);

  // One value a block, NaN where there is none; drawn on a log scale when all of them are positive
  // and span more than two decades. `caption` says what they are.
  void setLine(std::vector<double> values, const QString& caption);
  void setLayers(int n_layers);  // 0 = nothing to choose
  void setLayer(int layer);
  int layer() const { return layer_; }
  int layers() const { return n_layers_; }

  QSize sizeHint() const override { return {220, 62}; }
  QSize minimumSizeHint() const override { return {120, 62}; }

 signals:
  void layerPicked(int layer);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  QRectF strip() const;
  void pickAt(const QPointF& position);

  std::vector<double> values_;
  QString caption_;
  int n_layers_ = 0, layer_ = -1;
};

}  // namespace sinkscope
