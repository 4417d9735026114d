// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/window_style.h"

#include <QPainter>
#include <QProxyStyle>
#include <QStyleOption>

#include "views/theme.h"

namespace sinkscope {
namespace {

class WindowStyle : public QProxyStyle {
 public:
  WindowStyle() : QProxyStyle(QStringLiteral("fusion")) {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    const bool is_box = element == PE_IndicatorCheckBox || element == PE_IndicatorItemViewItemCheck;
    if (!is_box || theme_of(option->palette) != Theme::dark) return;
    painter->save();
    painter->setPen(muted_color(option->palette));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
    painter->restore();
  }
};

}  // namespace

QStyle* window_style() { return new WindowStyle; }

}  // namespace sinkscope
