// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/edit_editor.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScopedValueRollback>
#include <QSlider>
#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace sinkscope {
namespace {

constexpr int kNumberWidth = 72;

// What a slider's number is rounded to, so that a command reads well: three digits.
double rounded(double value) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 2);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit)
                  : std::round(value / unit) * unit;
}

}  // namespace

int slider_step(const EditField& field, double value) {
  double share = 0;
  if (field.is_log)
    share = value > 0 ? std::log(value / field.low) / std::log(field.high / field.low) : 0;
  else
    share = (value - field.low) / (field.high - field.low);
  return static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * kSliderSteps));
}

double slider_value(const EditField& field, int step) {
  const double share = static_cast<double>(step) / kSliderSteps;
  if (field.is_log) return rounded(field.low * std::pow(field.high / field.low, share));
  const double value = field.low + share * (field.high - field.low);
  const double unit = (field.high - field.low) / kSliderSteps;  // a power of ten times 1, 2 or 5
  return std::abs(value) < unit / 2 ? 0 : rounded(value);
}

EditEditor::EditEditor(QWidget* parent)
    : QWidget(parent), form_(new QFormLayout(this)), nothing_(new QLabel(this)) {
  form_->setContentsMargins(8, 2, 2, 2);
  form_->setVerticalSpacing(3);
  form_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  nothing_->setForegroundRole(QPalette::PlaceholderText);
  nothing_->setWordWrap(true);
  nothing_->setText(
      tr("Add an edit, and set it here. Layers, heads, tokens, dimensions: all, or 0-3,7; tokens "
         "also first, rest, ids:5-127."));
  form_->addRow(nothing_);
}

void EditEditor::setEdit(const std::optional<Edit>& edit) {
  if (edit == edit_) return;
  const bool same_kind = edit && edit_ && edit->index() == edit_->index();
  edit_ = edit;
  const std::vector<EditField> fields = edit_ ? edit_fields(*edit_) : std::vector<EditField>();
  const auto same = [](const Row& row, const EditField& field) {
    return row.field.key == field.key && row.field.kind == field.kind;
  };
  const bool keeps_rows =
      same_kind && std::equal(rows_.begin(), rows_.end(), fields.begin(), fields.end(), same);
  if (!keeps_rows) {
    build();
    return;
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].field = fields[i];
    showValue(rows_[i]);
  }
}

void EditEditor::build() {
  // Rows may go while one of their widgets is still telling that it has changed.
  while (form_->rowCount() > 1) {
    const QFormLayout::TakeRowResult taken = form_->takeRow(1);
    for (QLayoutItem* item : {taken.labelItem, taken.fieldItem}) {
      if (item == nullptr) continue;
      if (item->widget() != nullptr) {
        item->widget()->hide();
        item->widget()->deleteLater();
      }
      delete item;
    }
  }
  rows_.clear();
  nothing_->setVisible(!edit_);
  if (!edit_) return;
  for (const EditField& field : edit_fields(*edit_)) rows_.push_back(makeRow(field));
  for (const Row& row : rows_) showValue(row);
}

EditEditor::Row EditEditor::makeRow(const EditField& field) {
  Row row{field, nullptr, nullptr};
  const QString label = QString::fromStdString(field.label);
  const std::string key = field.key;
  switch (field.kind) {
    case EditField::Kind::number:
      form_->addRow(label, makeSlider(row));
      return row;
    case EditField::Kind::choice: {
      auto* box = new QComboBox(this);
      for (const std::string& name : field.choices) box->addItem(QString::fromStdString(name));
      connect(box, &QComboBox::currentTextChanged, this,
              [this, key](const QString& text) { set(key, text.toStdString()); });
      row.widget = box;
      break;
    }
    case EditField::Kind::toggle: {
      auto* box = new QCheckBox(this);
      connect(box, &QCheckBox::toggled, this, [this, key](bool on) { set(key, on); });
      row.widget = box;
      break;
    }
    case EditField::Kind::text: {
      auto* line = new QLineEdit(this);
      connect(line, &QLineEdit::editingFinished, this,
              [this, key, line] { set(key, line->text().trimmed().toStdString()); });
      row.widget = line;
      break;
    }
  }
  form_->addRow(label, row.widget);
  return row;
}

QWidget* EditEditor::makeSlider(Row& row) {
  auto* both = new QWidget(this);
  auto* slider = new QSlider(Qt::Horizontal, both);
  auto* number = new QLineEdit(both);
  slider->setRange(0, kSliderSteps);
  slider->setPageStep(kSliderSteps / 20);
  number->setFixedWidth(kNumberWidth);
  number->setAlignment(Qt::AlignRight);
  auto* layout = new QHBoxLayout(both);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(slider, 1);
  layout->addWidget(number);
  row.widget = slider;
  row.number = number;
  const EditField field = row.field;
  connect(slider, &QSlider::valueChanged, this, [this, field, slider, number](int step) {
    if (is_showing_) return;
    const double value = slider_value(field, step);
    number->setText(QString::number(value, 'g', 12));
    if (!slider->isSliderDown()) return set(field.key, value);
    if (const auto edit = tried(field.key, value)) emit moved(*edit);
  });
  connect(slider, &QSlider::sliderReleased, this,
          [this, field, slider] { set(field.key, slider_value(field, slider->value())); });
  connect(number, &QLineEdit::editingFinished, this, [this, field, number] {
    bool is_number = false;
    const double value = number->text().trimmed().toDouble(&is_number);
    if (is_number) return set(field.key, value);
    emit refused(tr("%1: expected a number, found “%2”")
                     .arg(QString::fromStdString(field.label), number->text()));
  });
  return both;
}

void EditEditor::showValue(const Row& row) {
  const QScopedValueRollback<bool> showing(is_showing_, true);
  const EditField& field = row.field;
  if (auto* slider = qobject_cast<QSlider*>(row.widget)) {
    slider->setValue(slider_step(field, field.number));
    row.number->setText(QString::number(field.number, 'g', 12));
  } else if (auto* choice = qobject_cast<QComboBox*>(row.widget)) {
    choice->setCurrentText(QString::fromStdString(field.text));
  } else if (auto* toggle = qobject_cast<QCheckBox*>(row.widget)) {
    toggle->setChecked(field.is_on);
  } else if (auto* line = qobject_cast<QLineEdit*>(row.widget)) {
    line->setText(QString::fromStdString(field.text));
  }
}

std::optional<Edit> EditEditor::tried(const std::string& key, const EditValue& value) {
  if (!edit_ || is_showing_) return std::nullopt;
  try {
    return with_field(*edit_, key, value);
  } catch (const Error& error) {
    emit refused(QString::fromUtf8(error.what()));
    return std::nullopt;
  }
}

void EditEditor::set(const std::string& key, const EditValue& value) {
  const auto edit = tried(key, value);
  if (edit && *edit != *edit_) emit changed(*edit);
}

QWidget* EditEditor::widgetOf(const std::string& key) const {
  for (const Row& row : rows_)
    if (row.field.key == key) return row.widget;
  return nullptr;
}

}  // namespace sinkscope
