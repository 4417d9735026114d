// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QToolButton>
#include <string_view>

namespace sinkscope {

// The popup's text for a term of core/help_texts.h, as rich text; empty for an unknown term.
QString help_html(std::string_view term);

// A small "?" beside a term; a click shows its sentence, formula, source and command.
class HelpButton : public QToolButton {
  Q_OBJECT

 public:
  // `term` must be one of core/help_texts.h.
  HelpButton(std::string_view term, QWidget* parent);
  QString term() const { return term_; }

 private:
  void showPopup();
  QString term_;
};

}  // namespace sinkscope
