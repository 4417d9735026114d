// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_dialog.h"

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QFormLayout>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPixmap>
#include <QPushButton>
#include <QScrollArea>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "core/draw/colormap.h"
#include "core/error.h"
#include "core/figure/figure_kinds.h"

namespace sinkscope {
namespace {

constexpr int kPauseMs = 200, kFormWidth = 330;

QString text_of(const std::string& text) { return QString::fromStdString(text); }

// The choices that a placeholder lists; none for a free value.
QStringList choices_of(const FigureOption& option) {
  if (std::string(option.flag) == "--colormap") {
    QStringList names;
    for (const std::string& name : colormap_names()) names << text_of(name);
    return names;
  }
  const QStringList words = QString::fromUtf8(option.placeholder).split('|');
  return words.size() > 1 ? words : QStringList();
}

// "--font-pt" as a label: "font pt".
QString label_of(const FigureOption& option) {
  const QString name = QString::fromUtf8(option.flag).mid(2).replace('-', ' ');
  return name == QStringLiteral("of") ? QStringLiteral("compare") : name;
}

// Kind and preset have a field of their own, runs are among the inputs.
bool has_field(const FigureOption& option) {
  const std::string flag = option.flag;
  return flag != "--preset" && flag != "--run";
}

}  // namespace

FigureDialog::FigureDialog(const FigureRequest& start, const std::vector<std::string>& inputs,
                           std::vector<MadeFile> made, ModelArchs models, QWidget* parent)
    : QDialog(parent), made_(std::move(made)), models_(std::move(models)) {
  setWindowTitle(tr("Export figure"));
  resize(980, 640);
  pause_ = new QTimer(this);
  pause_->setSingleShot(true);
  pause_->setInterval(kPauseMs);
  connect(pause_, &QTimer::timeout, this, &FigureDialog::ask);

  auto* const form = new QScrollArea;
  form->setWidget(makeForm(start, inputs));
  form->setWidgetResizable(true);
  form->setFixedWidth(kFormWidth);
  picture_ = new QLabel;
  picture_->setAlignment(Qt::AlignCenter);
  picture_->setMinimumSize(320, 240);
  picture_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
  message_ = new QLabel;
  message_->setWordWrap(true);
  message_->setTextFormat(Qt::PlainText);

  auto* const right = new QVBoxLayout;
  right->addWidget(picture_, 1);
  right->addWidget(message_);
  right->addWidget(makeButtons());
  auto* const whole = new QHBoxLayout(this);
  whole->addWidget(form);
  whole->addLayout(right, 1);
  changed();
}

QWidget* FigureDialog::makeForm(const FigureRequest& start,
                                const std::vector<std::string>& inputs) {
  auto* const page = new QWidget;
  auto* const form = new QFormLayout(page);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  kind_ = new QComboBox;
  kind_->setObjectName("kind");
  for (const FigureKind& kind : figure_kinds()) {
    kind_->addItem(kind.name);
    kind_->setItemData(kind_->count() - 1, QString::fromUtf8(kind.shows), Qt::ToolTipRole);
  }
  for (const FigurePreset& preset : figure_presets()) {
    kind_->addItem(preset.name);
    kind_->setItemData(kind_->count() - 1, QString::fromUtf8(preset.shows), Qt::ToolTipRole);
  }
  kind_->setCurrentText(text_of(start.preset.empty() ? start.kind : start.preset));
  connect(kind_, &QComboBox::currentTextChanged, this, &FigureDialog::changed);
  form->addRow(tr("figure"), kind_);

  inputs_ = new QListWidget;
  inputs_->setObjectName("inputs");
  inputs_->setMaximumHeight(92);
  // What is drawn comes first, in its order and as often: a comparison may have one run twice.
  const auto add_input = [this](const std::string& input, Qt::CheckState state) {
    auto* const item = new QListWidgetItem(text_of(input), inputs_);
    item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsUserCheckable);
    item->setCheckState(state);
  };
  for (const std::string& input : start.inputs) add_input(input, Qt::Checked);
  for (const std::string& input : inputs)
    if (std::find(start.inputs.begin(), start.inputs.end(), input) == start.inputs.end())
      add_input(input, Qt::Unchecked);
  connect(inputs_, &QListWidget::itemChanged, this, &FigureDialog::changed);
  form->addRow(tr("of"), inputs_);
  for (const FigureOption& option : figure_options())
    if (has_field(option)) form->addRow(label_of(option), makeField(option, start));
  return page;
}

QWidget* FigureDialog::makeField(const FigureOption& option, const FigureRequest& start) {
  const std::optional<std::string> text = option.text(start);
  QWidget* widget = nullptr;
  if (*option.placeholder == '\0') {
    auto* const box = new QCheckBox;
    box->setChecked(text.has_value());
    connect(box, &QCheckBox::toggled, this, &FigureDialog::changed);
    widget = box;
  } else if (choices_of(option).isEmpty()) {
    auto* const line = new QLineEdit(text_of(text.value_or("")));
    line->setPlaceholderText(QString::fromUtf8(option.placeholder));
    connect(line, &QLineEdit::textChanged, this, &FigureDialog::changed);
    widget = line;
  } else {
    auto* const box = new QComboBox;
    box->setEditable(true);
    box->addItem(QString());
    box->addItems(choices_of(option));
    box->setCurrentText(text_of(text.value_or("")));
    box->lineEdit()->setPlaceholderText(QString::fromUtf8(option.placeholder));
    connect(box, &QComboBox::currentTextChanged, this, &FigureDialog::changed);
    widget = box;
  }
  widget->setObjectName(QString::fromUtf8(option.flag).mid(2));
  widget->setToolTip(QString::fromUtf8(option.help));
  fields_.push_back({&option, widget});
  return widget;
}

QWidget* FigureDialog::makeButtons() {
  auto* const row = new QWidget;
  auto* const layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  const auto add = [&](const QString& text, const char* name, auto action) {
    auto* const button = new QPushButton(text);
    button->setObjectName(name);
    button->setAutoDefault(false);
    connect(button, &QPushButton::clicked, this, action);
    layout->addWidget(button);
    return button;
  };
  actions_.push_back(add(tr("Copy as command"), "copy-command",
                         [this] { copy(lasting_command(request(), "figure.pdf", made_)); }));
  actions_.push_back(
      add(tr("Copy as Python"), "copy-python", [this] { copy(lasting_python(request(), made_)); }));
  layout->addStretch(1);
  add(tr("Close"), "close", [this] { reject(); });
  actions_.push_back(add(tr("Save…"), "save", [this] { emit saveWanted(request()); }));
  actions_.back()->setDefault(true);
  return row;
}

FigureRequest FigureDialog::request() const {
  FigureRequest request;
  const std::string kind = kind_->currentText().toStdString();
  (kind.find('/') == std::string::npos ? request.kind : request.preset) = kind;
  for (int i = 0; i < inputs_->count(); ++i)
    if (inputs_->item(i)->checkState() == Qt::Checked)
      request.inputs.push_back(inputs_->item(i)->text().toStdString());
  request.archs = archs_for(request.inputs, models_);
  for (const auto& [option, widget] : fields_) {
    if (const auto* box = qobject_cast<const QCheckBox*>(widget)) {
      if (box->isChecked()) option->set(request, "");
      continue;
    }
    const auto* const combo = qobject_cast<const QComboBox*>(widget);
    const auto* const line = qobject_cast<const QLineEdit*>(widget);
    const QString text = combo != nullptr ? combo->currentText() : line->text();
    if (!text.isEmpty()) option->set(request, text.toStdString());
  }
  check_request(request);
  return request;
}

void FigureDialog::changed() {
  if (actions_.empty()) return;  // while it is being built
  pause_->start();
  bool makes_sense = true;
  try {
    request();
    message_->clear();
  } catch (const Error& error) {
    makes_sense = false;
    setMessage(QString::fromUtf8(error.what()));
  }
  for (QPushButton* button : actions_) button->setEnabled(makes_sense);
}

void FigureDialog::ask() {
  try {
    emit previewWanted(request());
  } catch (const Error& error) {
    setMessage(QString::fromUtf8(error.what()));
  }
}

void FigureDialog::copy(const std::string& text) {
  QGuiApplication::clipboard()->setText(text_of(text));
  setMessage(tr("copied"));
}

namespace {

bool is_current(const FigureDialog& dialog, const FigureRequest& request) {
  try {
    return dialog.request() == request;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void FigureDialog::setPreview(const FigureRequest& request, const QImage& image,
                              const QString& size) {
  if (!is_current(*this, request)) return;
  preview_ = image;
  setMessage(size);
  showPicture();
}

void FigureDialog::setFailure(const FigureRequest& request, const QString& message) {
  if (!is_current(*this, request)) return;
  preview_ = QImage();
  setMessage(message);
  showPicture();
}

void FigureDialog::setMessage(const QString& message) { message_->setText(message); }

void FigureDialog::showPicture() {
  if (preview_.isNull()) return picture_->clear();
  const qreal ratio = devicePixelRatioF();
  QPixmap pixmap = QPixmap::fromImage(
      preview_.scaled(picture_->size() * ratio, Qt::KeepAspectRatio, Qt::SmoothTransformation));
  pixmap.setDevicePixelRatio(ratio);
  picture_->setPixmap(pixmap);
}

void FigureDialog::resizeEvent(QResizeEvent* event) {
  QDialog::resizeEvent(event);
  showPicture();
}

}  // namespace sinkscope
