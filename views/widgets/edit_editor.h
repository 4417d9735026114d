// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>
#include <optional>
#include <string>
#include <vector>

#include "core/what_if/edit_form.h"

class QFormLayout;
class QLabel;
class QLineEdit;

namespace sinkscope {

// Where a value lies on a slider of kSliderSteps steps, and back.
inline constexpr int kSliderSteps = 1000;
int slider_step(const EditField& field, double value);
double slider_value(const EditField& field, int step);

// The fields of one edit: sliders with their number beside them, choices, switches, texts.
class EditEditor : public QWidget {
  Q_OBJECT

 public:
  explicit EditEditor(QWidget* parent = nullptr);

  void setEdit(const std::optional<Edit>& edit);
  const std::optional<Edit>& edit() const { return edit_; }
  // The widget that holds a field: a slider, combo box, check box or line edit; null without one.
  QWidget* widgetOf(const std::string& key) const;

 signals:
  void moved(const sinkscope::Edit& edit);    // while a slider is dragged
  void changed(const sinkscope::Edit& edit);  // when a change is done
  void refused(const QString& message);       // what was typed makes no sense

 private:
  struct Row {
    EditField field;
    QWidget* widget = nullptr;
    QLineEdit* number = nullptr;  // beside a slider
  };

  void build();
  Row makeRow(const EditField& field);
  QWidget* makeSlider(Row& row);
  void showValue(const Row& row);
  // The edit with the field set; nullopt when that is refused, which is said.
  std::optional<Edit> tried(const std::string& key, const EditValue& value);
  void set(const std::string& key, const EditValue& value);

  std::optional<Edit> edit_;
  std::vector<Row> rows_;
  QFormLayout* form_;
  QLabel* nothing_;
  bool is_showing_ = false;  // values are being written: nobody changed them
};

}  // namespace sinkscope
