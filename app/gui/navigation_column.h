// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/session.h"

class QLabel;
class QLineEdit;
class QTreeWidget;

namespace sinkscope {

class HeadSquares;
class LayerSlider;
class TokenStrip;

// The left column: what is open, and the ways to go to a layer, a head, a token.
class NavigationColumn : public QWidget {
  Q_OBJECT

 public:
  NavigationColumn(Session& session, QWidget* parent);

  void focusFind();

  const TokenStrip& tokens() const { return *tokens_; }
  const HeadSquares& heads() const { return *heads_; }
  const LayerSlider& layers() const { return *layers_; }

 private:
  void build();
  void showOpened();
  void showSelection();
  void showOverview();
  void showKeyMass();
  void find();

  Session& session_;
  QLineEdit* find_;
  QTreeWidget* tree_;
  QLabel *layer_label_, *head_label_, *token_label_;
  LayerSlider* layers_;
  HeadSquares* heads_;
  TokenStrip* tokens_;
  std::shared_ptr<const RunFacts> shown_run_;
};

}  // namespace sinkscope
