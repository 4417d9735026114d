// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/text_ruler.h"

#include <QFontMetricsF>
#include <QImage>
#include <QStringList>

#include "views/figure/font.h"

namespace sinkscope {
namespace {

// 2835 dots a meter are 72 an inch: one unit is a point.
QImage make_reference_device() {
  QImage device(1, 1, QImage::Format_RGB32);
  device.setDotsPerMeterX(2835);
  device.setDotsPerMeterY(2835);
  return device;
}

}  // namespace

double TextRuler::width(const QString& text, double pt) const {
  QImage device = make_reference_device();
  return QFontMetricsF(figure_font(pt), &device).horizontalAdvance(text);
}

std::vector<QString> TextRuler::wrapped(const QString& text, double pt, double room) const {
  std::vector<QString> lines;
  if (text.isEmpty()) return lines;
  for (const QString& paragraph : text.split('\n')) {
    QString line;
    for (const QString& word : paragraph.split(' ')) {
      const QString longer = line.isEmpty() ? word : line + ' ' + word;
      if (!line.isEmpty() && width(longer, pt) > room) {
        lines.push_back(line);
        line = word;
      } else {
        line = longer;
      }
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace sinkscope
