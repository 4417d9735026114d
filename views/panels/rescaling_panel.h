// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/snapshot/rescaling_snapshot.h"
#include "views/panels/panel.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QTabWidget;
class QVBoxLayout;

namespace sinkscope {

class BarList;
class Heatmap;
class LinePlot;
class ScatterPlot;

// What outliers do to everything else: tokens under the bound, share before and after, rescale
// factors over depth and their histograms; and the causal probes, which alone tell a rescaler from
// a flag and from a constant bias channel.
class RescalingPanel : public Panel {
  Q_OBJECT

 public:
  explicit RescalingPanel(QWidget* parent = nullptr);

  void setState(const RescalingState& state);
  // Of the probes: share 0 to 1, or negative while it is not known.
  void setProgress(double share, const QString& text);

  ColorScale colorScale() const override;
  void setRangeRequest(const RangeRequest& request) override;
  QString valuesAsText() const override;
  std::optional<FigureRequest> figureRequest() const override;
  std::vector<MadeFile> madeFiles() const override;

  QString headText() const;
  QString roleText() const;
  void setKind(int index);  // of the snapshot's norms
  const ScatterPlot& boundPlot() const { return *bound_; }
  const ScatterPlot& sharePlot() const { return *shares_; }
  const LinePlot& factorPlot() const { return *factors_; }
  const Heatmap& histogram() const { return *histogram_; }
  const std::vector<BarList*>& bars() const { return bars_; }

 signals:
  void probesAsked(const QString& dims, bool each);  // "auto", or "507"; every norm alone too
  // Other dimensions than each token's largest ("auto"), another key than the first.
  void evidenceAsked(const QString& dims, int key);
  void weightsAsked();  // what needs the model's weights
  void cancelAsked();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QWidget* makeEvidence();
  QWidget* makeProbes();
  const NormCloud* cloud() const;
  void showEvidence();
  void showHistogram();
  void showProbes();
  void showTexts();
  void hover(const std::vector<RescalingPoint>* points, int point, const QString& x,
             const QString& y);
  const std::vector<RescalingPoint>* boundPoints(int series) const;
  const std::vector<RescalingPoint>* sharePoints(int series) const;

  RescalingState state_;
  RangeRequest request_;
  QLabel *head_, *role_;
  QTabWidget* tabs_;
  QComboBox *kind_, *exported_;
  QLineEdit* evidence_dims_;
  QSpinBox* key_;
  QPushButton *weights_, *run_ = nullptr, *cancel_ = nullptr;
  QLineEdit* dims_ = nullptr;
  QCheckBox* each_ = nullptr;
  QLabel *progress_text_ = nullptr, *probes_text_ = nullptr;
  QProgressBar* progress_ = nullptr;
  ScatterPlot *bound_, *shares_;
  LinePlot* factors_;
  Heatmap* histogram_;
  QVBoxLayout* groups_ = nullptr;
  QWidget* bars_area_ = nullptr;
  std::vector<BarList*> bars_;
  std::vector<QWidget*> rows_;  // what stands in groups_
};

}  // namespace sinkscope
