// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/absorb_dialog.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

#include "views/widgets/help_button.h"

namespace sinkscope {

AbsorbDialog::AbsorbDialog(const QString& folder, QWidget* parent)
    : QDialog(parent),
      dims_(new QLineEdit(QStringLiteral("auto"), this)),
      factor_(new QLineEdit(QStringLiteral("auto"), this)),
      folder_(new QLineEdit(folder, this)) {
  setWindowTitle(tr("Absorb outlier dimensions"));
  auto* text = new QLabel(
      tr("Divides a dimension by k wherever the residual stream is written, and multiplies it by k "
         "in front of every norm that reads it: the same function, a smaller stream. The new model "
         "is compared with the old one on this run's tokens; it is kept only if no logit differs "
         "by more than 1e-4 of the largest one."),
      this);
  text->setWordWrap(true);
  constexpr int kWidth = 460, kMargins = 40;
  text->setMinimumHeight(text->heightForWidth(kWidth - kMargins));  // a form asks for less
  dims_->setToolTip(tr("auto: the massive dimensions and the residual sinks; or 507,247"));
  factor_->setToolTip(tr("auto: the dimension's size over the typical one, a power of two"));
  auto* browse = new QPushButton(tr("Browse…"), this);
  connect(browse, &QPushButton::clicked, this, &AbsorbDialog::browse);
  auto* place = new QHBoxLayout;
  place->addWidget(folder_, 1);
  place->addWidget(browse);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  auto* ok = buttons->addButton(tr("Absorb"), QDialogButtonBox::AcceptRole);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(folder_, &QLineEdit::textChanged, ok,
          [ok](const QString& path) { ok->setEnabled(!path.trimmed().isEmpty()); });
  auto* form = new QFormLayout(this);
  form->addRow(text);
  form->addRow(tr("Dimensions"), dims_);
  auto* factor = new QHBoxLayout;
  factor->addWidget(factor_, 1);
  factor->addWidget(new HelpButton("absorption", this));
  form->addRow(tr("Factor k"), factor);
  form->addRow(tr("New folder"), place);
  form->addRow(buttons);
  setMinimumWidth(kWidth);
}

QString AbsorbDialog::dims() const { return dims_->text().trimmed(); }
QString AbsorbDialog::factor() const { return factor_->text().trimmed(); }
QString AbsorbDialog::folder() const { return folder_->text().trimmed(); }

void AbsorbDialog::browse() {
  const QString path = QFileDialog::getSaveFileName(this, tr("New model folder"), folder_->text(),
                                                    QString(), nullptr, QFileDialog::ShowDirsOnly);
  if (!path.isEmpty()) folder_->setText(path);
}

}  // namespace sinkscope
