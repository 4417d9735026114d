// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/findings_list.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "views/theme.h"
#include "views/widgets/help_button.h"

namespace sinkscope {
namespace {

// The terms of the three findings, in their order (core/sink_report.h).
constexpr const char* kTerms[] = {"sink score", "massive activation", "residual sink"};

CellRef place_of(const Finding& finding) {
  return {finding.layer, finding.head, -1, finding.key, finding.token, finding.dim};
}

}  // namespace

FindingsList::FindingsList(QWidget* parent) : QWidget(parent), layout_(new QVBoxLayout(this)) {
  layout_->setContentsMargins(0, 0, 0, 0);
  layout_->setSpacing(6);
}

void FindingsList::setFindings(const std::vector<Finding>& findings) {
  findings_ = findings;
  rebuild();
}

QString FindingsList::text(int index) const {
  const Finding& finding = findings_[static_cast<std::size_t>(index)];
  return QString::fromStdString(finding.sentence + " " + finding.criterion);
}

void FindingsList::rebuild() {
  labels_.clear();
  while (QLayoutItem* item = layout_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  for (std::size_t i = 0; i < findings_.size(); ++i) {
    const Finding& finding = findings_[i];
    auto* row = new QWidget(this);
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(2);
    auto* label = new QLabel(row);
    label->setWordWrap(true);
    label->setTextFormat(Qt::RichText);
    const bool leads_somewhere = !(place_of(finding) == CellRef{});
    const QString sentence = QString::fromStdString(finding.sentence).toHtmlEscaped();
    label->setText(QStringLiteral("%1<br><span style=\"color:%2; font-size:small\">%3</span>")
                       .arg(leads_somewhere
                                ? QStringLiteral("<a href=\"#\" style=\"color:%1; "
                                                 "text-decoration:none\">%2</a>")
                                      .arg(palette().color(QPalette::Text).name(), sentence)
                                : sentence,
                            muted_color(palette()).name(),
                            QString::fromStdString(finding.criterion).toHtmlEscaped()));
    label->setToolTip(leads_somewhere ? tr("Click to go there") : QString());
    connect(label, &QLabel::linkActivated, this,
            [this, cell = place_of(finding)] { emit picked(cell); });
    line->addWidget(label, 1);
    if (i < std::size(kTerms)) line->addWidget(new HelpButton(kTerms[i], row), 0, Qt::AlignTop);
    layout_->addWidget(row);
    labels_.push_back(label);
  }
}

void FindingsList::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) rebuild();
  QWidget::changeEvent(event);
}

}  // namespace sinkscope
