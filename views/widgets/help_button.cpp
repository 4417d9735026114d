// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/help_button.h"

#include <QFrame>
#include <QLabel>
#include <QScreen>
#include <QVBoxLayout>
#include <cassert>

#include "core/help_texts.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

QString escaped(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())).toHtmlEscaped();
}

}  // namespace

QString help_html(std::string_view term) {
  const HelpText* help = find_help(term);
  if (help == nullptr) return {};
  QString html =
      QStringLiteral("<p><b>%1</b></p><p>%2</p>").arg(escaped(help->term), escaped(help->sentence));
  if (!help->formula.empty())
    html += QStringLiteral("<p><i>%1</i></p>").arg(escaped(help->formula));
  html += QStringLiteral("<p>%1</p><p><code>%2</code></p>")
              .arg(escaped(help->source), escaped(help->command));
  return html;
}

HelpButton::HelpButton(std::string_view term, QWidget* parent)
    : QToolButton(parent),
      term_(QString::fromUtf8(term.data(), static_cast<qsizetype>(term.size()))) {
  assert(find_help(term) != nullptr);
  setText(QStringLiteral("?"));
  setAutoRaise(true);
  setFont(caption_font(font()));
  setToolTip(tr("What is “%1”?").arg(term_));
  setAccessibleName(toolTip());
  connect(this, &QToolButton::clicked, this, &HelpButton::showPopup);
}

void HelpButton::showPopup() {
  auto* popup = new QFrame(this, Qt::Popup);
  popup->setAttribute(Qt::WA_DeleteOnClose);
  popup->setObjectName(QStringLiteral("helpPopup"));
  popup->setFrameShape(QFrame::StyledPanel);
  auto* layout = new QVBoxLayout(popup);
  auto* label = new QLabel(help_html(term_.toStdString()), popup);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setFixedWidth(24 * fontMetrics().averageCharWidth() * 2);
  layout->addWidget(label);
  popup->adjustSize();
  QPoint place = mapToGlobal(QPoint(0, height()));
  if (screen() != nullptr) {
    const QRect bounds = screen()->availableGeometry();
    place.setX(std::max(bounds.left(), std::min(place.x(), bounds.right() - popup->width())));
    if (place.y() + popup->height() > bounds.bottom())
      place.setY(mapToGlobal(QPoint(0, 0)).y() - popup->height());
  }
  popup->move(place);
  popup->show();
}

}  // namespace sinkscope
