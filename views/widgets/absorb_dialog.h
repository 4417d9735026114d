// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QLineEdit;
class QPushButton;

namespace sinkscope {

// Asks what is to be absorbed, and into which folder.
class AbsorbDialog : public QDialog {
  Q_OBJECT

 public:
  // `folder`: a path that is free.
  explicit AbsorbDialog(const QString& folder, QWidget* parent = nullptr);

  QString dims() const;    // "auto", or "507,247"
  QString factor() const;  // "auto", or a number
  QString folder() const;

 private:
  void browse();

  QLineEdit *dims_, *factor_, *folder_;
};

}  // namespace sinkscope
