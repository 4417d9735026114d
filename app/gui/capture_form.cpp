// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/capture_form.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "app/cli/format_text.h"
#include "app/cli/print_plan.h"
#include "app/cli/prompts.h"
#include "views/theme.h"
#include "views/widgets/token_strip.h"

namespace sinkscope {
namespace {

constexpr int kTypingMilliseconds = 250;

}  // namespace

CaptureForm::CaptureForm(QWidget* parent)
    : QWidget(parent),
      text_(new QPlainTextEdit(this)),
      record_(new QComboBox(this)),
      device_(new QComboBox(this)),
      layers_(new QLineEdit(this)),
      path_(new QLineEdit(this)),
      title_(new QLabel(this)),
      tokens_label_(new QLabel(this)),
      summary_(new QLabel(this)),
      tokens_(new TokenStrip(this)),
      button_(new QPushButton(tr("Record"), this)),
      worker_(std::make_unique<Worker>(*this)) {
  build();
  delay_.setSingleShot(true);
  delay_.setInterval(kTypingMilliseconds);
  connect(&delay_, &QTimer::timeout, this, &CaptureForm::replan);
  const auto later = [this] {
    plan_.reset();
    button_->setEnabled(false);
    delay_.start();
  };
  connect(text_, &QPlainTextEdit::textChanged, this, later);
  connect(layers_, &QLineEdit::textChanged, this, later);
  for (QComboBox* box : {record_, device_})
    connect(box, &QComboBox::currentIndexChanged, this, later);
  connect(button_, &QPushButton::clicked, this, &CaptureForm::ask);
}

CaptureForm::~CaptureForm() { worker_.reset(); }

void CaptureForm::build() {
  record_->addItem(tr("statistics only"), "stats");
  record_->addItem(tr("+ residual stream"), "stream");
  record_->addItem(tr("+ attention maps"), "maps");
  record_->addItem(tr("everything (norm outputs, q, k, v, z)"), "all");
  record_->setCurrentIndex(2);
  device_->addItem(tr("automatic"), "auto");
  device_->addItem(tr("CPU"), "cpu");
  device_->addItem(tr("CUDA"), "cuda");
  layers_->setText(QStringLiteral("all"));
  layers_->setToolTip(tr("Blocks whose arrays are recorded: all, or 0-3,7"));
  QFont large = title_->font();
  large.setPointSizeF(large.pointSizeF() * 1.25);
  title_->setFont(large);
  tokens_label_->setForegroundRole(QPalette::PlaceholderText);
  summary_->setWordWrap(true);
  auto* browse = new QPushButton(tr("Browse…"), this);
  connect(browse, &QPushButton::clicked, this, &CaptureForm::choosePath);
  auto* file = new QHBoxLayout;
  file->addWidget(path_, 1);
  file->addWidget(browse);
  auto* form = new QFormLayout;
  form->addRow(tr("Record"), record_);
  form->addRow(tr("Layers"), layers_);
  form->addRow(tr("Device"), device_);
  form->addRow(tr("File"), file);
  auto* buttons = new QHBoxLayout;
  auto* back = new QPushButton(tr("Close"), this);
  connect(back, &QPushButton::clicked, this, &CaptureForm::closed);
  buttons->addWidget(summary_, 1);
  buttons->addWidget(back);
  buttons->addWidget(button_);
  button_->setDefault(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(18, 14, 18, 14);
  layout->addWidget(title_);
  layout->addWidget(new QLabel(tr("Prompt"), this));
  layout->addWidget(text_, 2);
  layout->addWidget(tokens_label_);
  layout->addWidget(tokens_, 2);
  layout->addLayout(form);
  layout->addLayout(buttons);
}

void CaptureForm::setModel(std::shared_ptr<const ModelFiles> model, const QString& folder) {
  model_ = std::move(model);
  const std::string& name = model_->spec().name;
  title_->setText(tr("Record %1").arg(QString::fromStdString(name)));
  path_->setText(QString::fromStdString(free_capture_path(folder.toStdString(), name)));
  const QSignalBlocker blocker(text_);
  if (text_->toPlainText().isEmpty()) text_->setPlainText(QString::fromStdString(built_in_text()));
  replan();
}

CaptureChoice CaptureForm::choice() const {
  return {text_->toPlainText().toStdString(), record_->currentData().toString().toStdString(),
          layers_->text().trimmed().toStdString(), device_->currentData().toString().toStdString()};
}

void CaptureForm::replan() {
  if (model_ == nullptr) return;
  plan_.reset();
  const CaptureChoice wanted = choice();
  // What arrives when another model or another text is there already is for nobody.
  worker_->submit(
      "plan",
      [this, model = model_, wanted](const std::stop_token&) {
        CapturePlan plan = plan_recording(*model, wanted);
        return [this, model, plan = std::move(plan)] {
          if (model != model_ || plan.choice != choice()) return;
          plan_ = plan;
          failure_.clear();
          showPlan();
        };
      },
      [this, model = model_, wanted](const std::string& message) {
        if (model != model_ || wanted != choice()) return;
        plan_.reset();
        failure_ = QString::fromStdString(message);
        asks_when_planned_ = false;
        showPlan();
      });
}

QString CaptureForm::summary() const {
  if (!plan_) return failure_;
  QString text =
      tr("%1 tokens · file %2 · memory about %3 · %4")
          .arg(plan_->request.runs.front().seq_len())
          .arg(QString::fromStdString(format_bytes(plan_->file_bytes)),
               QString::fromStdString(format_bytes(plan_->memory_bytes)),
               plan_->choice.device == "cuda"
                   ? tr("on a CPU about %1")
                         .arg(QString::fromStdString(format_about(plan_->seconds)))
                   : tr("about %1").arg(QString::fromStdString(format_about(plan_->seconds))));
  for (const std::string& warning : plan_->warnings)
    text += QLatin1Char('\n') + QString::fromStdString(warning);
  return text;
}

void CaptureForm::showPlan() {
  button_->setEnabled(plan_.has_value());
  QPalette colors = palette();
  if (!plan_) colors.setColor(QPalette::WindowText, warning_color(palette()));
  summary_->setPalette(colors);
  summary_->setText(summary());
  if (plan_) {
    const RunInput& input = plan_->request.runs.front();
    tokens_->setTokens(input.token_text, input.token_ids);
    tokens_label_->setText(input.bos_positions.empty()
                               ? tr("%1 tokens as they are fed, no BOS").arg(input.seq_len())
                               : tr("%1 tokens as they are fed, BOS at %2")
                                     .arg(input.seq_len())
                                     .arg(input.bos_positions.front()));
  }
  emit planned();
  if (plan_ && asks_when_planned_) ask();
}

void CaptureForm::ask() {
  asks_when_planned_ = false;
  if (plan_) emit recordAsked(*plan_, path_->text());
}

void CaptureForm::recordExample() {
  const QSignalBlocker text(text_), record(record_), layers(layers_);
  text_->setPlainText(QString::fromStdString(built_in_text()));
  record_->setCurrentIndex(record_->findData("maps"));
  layers_->setText(QStringLiteral("all"));
  asks_when_planned_ = true;
  replan();
}

void CaptureForm::choosePath() {
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Capture file"), path_->text(), tr("Captures (*.h5)"));
  if (!path.isEmpty()) path_->setText(path);
}

}  // namespace sinkscope
