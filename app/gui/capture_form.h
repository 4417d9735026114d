// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <QWidget>
#include <memory>
#include <optional>

#include "app/gui/capture_plan.h"
#include "app/gui/worker.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;

namespace sinkscope {

class TokenStrip;

// The capture form: a prompt with its tokens as they would be fed, what to record, and how large
// that gets. The plan is made off the window's thread while the user types.
class CaptureForm : public QWidget {
  Q_OBJECT

 public:
  explicit CaptureForm(QWidget* parent = nullptr);
  ~CaptureForm() override;

  // `folder`: where captures go unless another path is chosen.
  void setModel(std::shared_ptr<const ModelFiles> model, const QString& folder);
  CaptureChoice choice() const;
  const std::optional<CapturePlan>& plan() const { return plan_; }
  QString summary()
      const;  // "64 tokens · file 44.7 MiB · memory about 213.0 MiB · about 2.4 s", or what is wrong

  // Asks to record the built-in text with maps as soon as it is planned.
  void recordExample();

 signals:
  void planned();  // or failed to
  void recordAsked(const sinkscope::CapturePlan& plan, const QString& path);
  void closed();

 private:
  void build();
  void replan();
  void showPlan();
  void ask();
  void choosePath();

  std::shared_ptr<const ModelFiles> model_;
  std::optional<CapturePlan> plan_;
  QString failure_;
  bool asks_when_planned_ = false;
  QTimer delay_;
  QPlainTextEdit* text_;
  QComboBox *record_, *device_;
  QLineEdit *layers_, *path_;
  QLabel *title_, *tokens_label_, *summary_;
  TokenStrip* tokens_;
  QPushButton* button_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace sinkscope
