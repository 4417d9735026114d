// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/font.h"

#include <QFontDatabase>
#include <QString>
#include <QStringList>
#include <mutex>

#include "core/error.h"

namespace sinkscope {
namespace {

// Fonts are forgotten with the application that they were loaded for.
QString load_family() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static int id = -1;
  QStringList families = QFontDatabase::applicationFontFamilies(id);
  if (families.isEmpty()) {
    const QString path = QStringLiteral("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf");
    id = QFontDatabase::addApplicationFont(path);
    families = QFontDatabase::applicationFontFamilies(id);
    if (families.isEmpty())
      throw Error(ErrorKind::not_found, "the font of figures is not there: expected " +
                                            path.toStdString() + " (package fonts-dejavu-core)");
  }
  return families.front();
}

}  // namespace

QFont figure_font(double point_size) {
  QFont font(load_family());
  font.setPointSizeF(point_size);
  font.setHintingPreference(QFont::PreferNoHinting);
  // Leaves the spacing as it is and turns ligatures off: "fi" in a PDF is found by its letters.
  font.setLetterSpacing(QFont::PercentageSpacing, 100);
  return font;
}

}  // namespace sinkscope
