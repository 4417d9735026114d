// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QString>
#include <vector>

namespace sinkscope {

// Sizes of text in the figure's font, in points. Figures are laid out with these alone, never with
// those of the device they are painted on, so that every format has the same layout.
// Needs a QGuiApplication.
class TextRuler {
 public:
  explicit TextRuler(double font_pt) : font_pt_(font_pt) {}

  double font_pt() const { return font_pt_; }
  double title_pt() const { return font_pt_ * 1.1; }
  double note_pt() const { return font_pt_ * 0.9; }
  static double line_height(double pt) { return pt * 1.28; }

  double width(const QString& text, double pt) const;
  double width(const QString& text) const { return width(text, font_pt_); }
  // Cut at spaces into lines of at most `room`; a single word that is longer keeps its line.
  std::vector<QString> wrapped(const QString& text, double pt, double room) const;

 private:
  double font_pt_;
};

}  // namespace sinkscope
