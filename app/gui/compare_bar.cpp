// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare_bar.h"

#include <QComboBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QMenu>
#include <QToolButton>
#include <algorithm>

namespace sinkscope {
namespace {

constexpr std::size_t kMostSides = 6;  // more do not fit beside each other

QString name_of(const CompareItem& item) {
  const QString file = QFileInfo(QString::fromStdString(item.path)).completeBaseName();
  const QString place = item.kind == MapKind::attention
                            ? QStringLiteral("L%1H%2").arg(item.layer).arg(item.head)
                            : QStringLiteral("L%1 residual").arg(item.layer);
  return QStringLiteral("%1 · %2 · %3").arg(file, QString::fromStdString(item.run), place);
}

}  // namespace

CompareBar::CompareBar(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), kind_(new QComboBox(this)), chips_(new QHBoxLayout) {
  kind_->addItem(tr("Attention"), static_cast<int>(MapKind::attention));
  kind_->addItem(tr("Residual"), static_cast<int>(MapKind::residual));
  kind_->setToolTip(tr("What is compared; sides of the other kind are taken away"));
  auto* menu = new QMenu(this);
  menu->addAction(tr("The selected layer and head"), this, &CompareBar::addCurrent);
  menu->addAction(tr("The same in the next layer"), this, &CompareBar::addNextLayer);
  menu->addAction(tr("The same in every open run"), this, &CompareBar::addRuns);
  auto* button = new QToolButton(this);
  button->setText(tr("Add"));
  button->setMenu(menu);
  button->setPopupMode(QToolButton::InstantPopup);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(kind_);
  layout->addWidget(button);
  layout->addLayout(chips_);
  layout->addStretch(1);
  connect(kind_, &QComboBox::currentIndexChanged, this, [this] {
    if (!session_.compareItems().empty()) session_.setCompareItems({});
  });
  connect(&session_, &Session::selectionChanged, this, &CompareBar::rebuild);
  rebuild();
}

CompareItem CompareBar::current() const {
  const Selection& selection = session_.selection();
  return {selection.path, selection.run, static_cast<MapKind>(kind_->currentData().toInt()),
          selection.cell.layer, selection.cell.head};
}

void CompareBar::add(const std::vector<CompareItem>& more) {
  std::vector<CompareItem> items = session_.compareItems();
  for (const CompareItem& item : more) {
    const bool is_there = std::find(items.begin(), items.end(), item) != items.end();
    if (!is_there && items.size() < kMostSides) items.push_back(item);
  }
  session_.setCompareItems(std::move(items));
}

void CompareBar::addCurrent() {
  if (session_.run() != nullptr) add({current()});
}

void CompareBar::addNextLayer() {
  const auto facts = session_.run();
  if (facts == nullptr) return;
  CompareItem next = current();
  next.layer = std::min(next.layer + 1, facts->model.n_layers - 1);
  add({current(), next});
}

void CompareBar::addRuns() {
  std::vector<CompareItem> items;
  for (const auto& facts : session_.runs()) {
    CompareItem item = current();
    item.path = facts->path;
    item.run = facts->run;
    if (item.layer < facts->model.n_layers && item.head < facts->model.n_heads)
      items.push_back(item);
  }
  add(items);
}

void CompareBar::rebuild() {
  while (QLayoutItem* item = chips_->takeAt(0)) {
    item->widget()->deleteLater();
    delete item;
  }
  const std::vector<CompareItem>& items = session_.compareItems();
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto* chip = new QToolButton(this);
    chip->setText(name_of(items[i]) + QStringLiteral("  ✕"));
    chip->setToolTip(tr("Take %1 away").arg(name_of(items[i])));
    connect(chip, &QToolButton::clicked, this, [this, i] {
      std::vector<CompareItem> fewer = session_.compareItems();
      if (i < fewer.size()) fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      session_.setCompareItems(std::move(fewer));
    });
    chips_->addWidget(chip);
  }
}

}  // namespace sinkscope
