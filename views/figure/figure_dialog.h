// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QImage>
#include <QString>
#include <string>
#include <utility>
#include <vector>

#include "core/figure/made_file.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QListWidget;
class QPushButton;
class QTimer;
class QWidget;

namespace sinkscope {

// Edits a FigureRequest beside a picture of what it gives: every option of the command line is a
// field, so that the figure and the copied command are the same thing. The dialog reads and writes
// nothing: it asks for a preview and for saving, and is told the result.
class FigureDialog : public QDialog {
  Q_OBJECT

 public:
  // `inputs`: what could be drawn, as a command would name it; those of `start` are checked.
  // `made`: those of them whose paths a copied command must not name. `models`: those that are
  // models, with the files that describe them.
  FigureDialog(const FigureRequest& start, const std::vector<std::string>& inputs,
               std::vector<MadeFile> made = {}, ModelArchs models = {}, QWidget* parent = nullptr);

  // What the fields say. Throws Error{invalid_argument} for a field that makes no sense.
  FigureRequest request() const;

  // Answers to previewWanted; one that is no longer current is dropped. `size`: "85 × 92 mm".
  void setPreview(const FigureRequest& request, const QImage& image, const QString& size);
  void setFailure(const FigureRequest& request, const QString& message);
  // Below the picture: "saved figure.pdf".
  void setMessage(const QString& message);

 signals:
  // A little after the last change, and once at the beginning.
  void previewWanted(const sinkscope::FigureRequest& request);
  void saveWanted(const sinkscope::FigureRequest& request);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Field {
    const FigureOption* option;
    QWidget* widget;  // a check box, a line edit, or an editable combo box where there are choices
  };
  QWidget* makeForm(const FigureRequest& start, const std::vector<std::string>& inputs);
  QWidget* makeField(const FigureOption& option, const FigureRequest& start);
  QWidget* makeButtons();
  void changed();
  void ask();
  void copy(const std::string& text);
  void showPicture();

  std::vector<MadeFile> made_;
  ModelArchs models_;
  QComboBox* kind_ = nullptr;
  QListWidget* inputs_ = nullptr;
  std::vector<Field> fields_;
  QLabel* picture_ = nullptr;
  QLabel* message_ = nullptr;
  std::vector<QPushButton*> actions_;  // what needs a request that makes sense
  QTimer* pause_ = nullptr;
  QImage preview_;
};

}  // namespace sinkscope
