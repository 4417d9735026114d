// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/font.h"

#include <QFontDatabase>
#include <QString>
#include <QStringList>

#include "core/error.h"

namespace sinkscope {
namespace {

QString load_family() {
  const QString path = QStringLiteral("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf");
  const int id = QFontDatabase::addApplicationFont(path);
  const QStringList families = id < 0 ? QStringList() : QFontDatabase::applicationFontFamilies(id);
  if (families.isEmpty())
    throw Error(ErrorKind::not_found, "the font of figures is not there: expected " +
                                          path.toStdString() + " (package fonts-dejavu-core)");
  return families.front();
}

}  // namespace

QFont figure_font(double point_size) {
  static const QString family = load_family();
  QFont font(family);
  font.setPointSizeF(point_size);
  font.setHintingPreference(QFont::PreferNoHinting);
  // Leaves the spacing as it is and turns ligatures off: "fi" in a PDF is found by its letters.
  font.setLetterSpacing(QFont::PercentageSpacing, 100);
  return font;
}

}  // namespace sinkscope
