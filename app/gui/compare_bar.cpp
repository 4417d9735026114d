// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/compare_bar.h"

#include <QComboBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QMenu>
#include <QSignalBlocker>
#include <QToolButton>
#include <algorithm>

namespace sinkscope {
namespace {

constexpr std::size_t kMostSides = 6;  // more do not fit beside each other
constexpr int kChipsWidth = 470;       // of all of them, in a window of 1280 pixels

MapKind kind_of(CompareBar::What what) {
  switch (what) {
    case CompareBar::What::residual:
    case CompareBar::What::residual_mean:
      return MapKind::residual;
    case CompareBar::What::norms:
      return MapKind::norms;
    case CompareBar::What::scores:
      return MapKind::scores;
    default:
      return MapKind::attention;
  }
}

bool has_layer(CompareBar::What what) {
  return what == CompareBar::What::head || what == CompareBar::What::mean_over_heads ||
         what == CompareBar::What::residual;
}

// "small · run1 · L2H3": a chip says all of it, so that it can be told what it takes away.
QString chip_text(const CompareItem& item) {
  QString text = QFileInfo(QString::fromStdString(item.path)).completeBaseName();
  if (!item.run.empty()) text += QStringLiteral(" · ") + QString::fromStdString(item.run);
  return text + QStringLiteral(" · ") + QString::fromStdString(place_of(item));
}

}  // namespace

CompareBar::CompareBar(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      what_(new QComboBox(this)),
      role_(new QComboBox(this)),
      menu_(new QMenu(this)),
      chips_(new QHBoxLayout) {
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  const std::pair<What, QString> entries[] = {
      {What::head, tr("Attention of a head")},
      {What::mean_over_heads, tr("Attention, mean of a layer")},
      {What::mean_over_all, tr("Attention, mean of all")},
      {What::residual, tr("Residual after a layer")},
      {What::residual_mean, tr("Residual, mean |x|")},
      {What::norms, tr("Norm gains")},
      {What::scores, tr("Sink scores of all heads")}};
  for (const auto& [what, text] : entries) what_->addItem(text, static_cast<int>(what));
  what_->setToolTip(tr("What is compared"));
  role_->setToolTip(tr("Which norm"));
  auto* button = new QToolButton(this);
  button->setText(tr("Add"));
  button->setMenu(menu_);
  button->setPopupMode(QToolButton::InstantPopup);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(what_);
  layout->addWidget(role_);
  layout->addWidget(button);
  layout->addLayout(chips_);
  layout->addStretch(1);
  connect(menu_, &QMenu::aboutToShow, this, &CompareBar::fillMenu);
  connect(what_, &QComboBox::currentIndexChanged, this, &CompareBar::convertItems);
  connect(role_, &QComboBox::currentIndexChanged, this, &CompareBar::convertItems);
  connect(&session_, &Session::selectionChanged, this, &CompareBar::showItems);
  connect(&session_, &Session::opened, this, &CompareBar::fillRoles);
  fillRoles();
  // Without a capture there are gains only.
  if (session_.run() == nullptr) setWhat(What::norms);
  showItems();
}

CompareBar::What CompareBar::what() const {
  return static_cast<What>(what_->currentData().toInt());
}

void CompareBar::setWhat(What what) {
  what_->setCurrentIndex(what_->findData(static_cast<int>(what)));
}

void CompareBar::setRole(const QString& role) { role_->setCurrentIndex(role_->findData(role)); }

void CompareBar::fillRoles() {
  std::vector<std::string> roles;
  const auto take = [&](const std::vector<std::string>& more) {
    for (const std::string& role : more)
      if (std::find(roles.begin(), roles.end(), role) == roles.end()) roles.push_back(role);
  };
  for (const auto& facts : session_.runs()) take(facts->norm_roles);
  for (const auto& model : session_.models()) take(norm_role_names(model->norms));
  const QSignalBlocker blocker(role_);
  const QVariant chosen = role_->currentData();
  role_->clear();
  CompareItem item;
  item.kind = MapKind::norms;
  for (const std::string& role : roles) {
    item.role = role;
    role_->addItem(QString::fromStdString(place_of(item)), QString::fromStdString(role));
  }
  role_->setCurrentIndex(std::max(0, role_->findData(chosen)));
}

CompareItem CompareBar::converted(CompareItem item) const {
  const CellRef& cell = session_.selection().cell;
  item.kind = kind_of(what());
  const bool was_there = item.layer >= 0;
  item.layer = !has_layer(what()) ? -1 : was_there ? item.layer : std::max(0, cell.layer);
  item.head = what() != What::head ? -1 : item.head >= 0 ? item.head : std::max(0, cell.head);
  item.role = what() == What::norms ? role_->currentData().toString().toStdString() : "";
  return item;
}

CompareItem CompareBar::current() const {
  const Selection& selection = session_.selection();
  CompareItem item{selection.path,       selection.run,       MapKind::attention,
                   selection.cell.layer, selection.cell.head, {}};
  if (selection.run.empty() && session_.model() != nullptr) item.path = session_.model()->card.path;
  return converted(std::move(item));
}

void CompareBar::convertItems() {
  std::vector<CompareItem> items;
  for (CompareItem item : session_.compareItems()) {
    item = converted(std::move(item));
    const bool can_be = what() == What::norms || !item.run.empty();
    const bool is_there = std::find(items.begin(), items.end(), item) != items.end();
    if (can_be && !is_there) items.push_back(std::move(item));
  }
  session_.setCompareItems(std::move(items));
  showItems();
}

void CompareBar::add(const std::vector<CompareItem>& more) {
  std::vector<CompareItem> items = session_.compareItems();
  for (const CompareItem& item : more) {
    const bool is_there = std::find(items.begin(), items.end(), item) != items.end();
    const bool can_be = what() == What::norms || !item.run.empty();
    if (!is_there && can_be && items.size() < kMostSides) items.push_back(item);
  }
  session_.setCompareItems(std::move(items));
}

void CompareBar::addCurrent() { add({current()}); }

void CompareBar::addNextLayer() {
  const auto facts = session_.run();
  if (facts == nullptr || !has_layer(what())) return;
  CompareItem next = current();
  next.layer = std::min(next.layer + 1, facts->model.n_layers - 1);
  add({current(), next});
}

void CompareBar::addNextHead() {
  const auto facts = session_.run();
  if (facts == nullptr || what() != What::head) return;
  CompareItem next = current();
  next.head = std::min(next.head + 1, facts->model.n_heads - 1);
  add({current(), next});
}

std::vector<CompareItem> CompareBar::everywhere() const {
  std::vector<CompareItem> items;
  for (const auto& facts : session_.runs()) {
    CompareItem item = current();
    item.path = facts->path;
    item.run = facts->run;
    if (item.layer < facts->model.n_layers && item.head < facts->model.n_heads)
      items.push_back(item);
  }
  if (what() != What::norms) return items;
  for (const auto& model : session_.models()) {
    CompareItem item = current();
    item.path = model->card.path;
    item.run.clear();
    items.push_back(item);
  }
  return items;
}

void CompareBar::addEverything() { add(everywhere()); }

void CompareBar::fillMenu() {
  menu_->clear();
  const bool is_head = what() == What::head;
  menu_->addAction(is_head             ? tr("The selected layer and head")
                   : has_layer(what()) ? tr("The selected layer")
                                       : tr("The selected run"),
                   this, &CompareBar::addCurrent);
  if (has_layer(what()))
    menu_->addAction(tr("The same in the next layer"), this, &CompareBar::addNextLayer);
  if (is_head) menu_->addAction(tr("The next head of the layer"), this, &CompareBar::addNextHead);
  menu_->addAction(tr("The same in everything open"), this, &CompareBar::addEverything);
  menu_->addSeparator();
  for (const CompareItem& item : everywhere())
    menu_->addAction(chip_text(item), this, [this, item] { add({item}); });
}

// A comparison that somebody else asked for says what it is of.
void CompareBar::followItems() {
  if (session_.compareItems().empty()) return;
  const CompareItem& first = session_.compareItems().front();
  const QSignalBlocker what_blocker(what_), role_blocker(role_);
  if (!first.role.empty())
    role_->setCurrentIndex(std::max(0, role_->findData(QString::fromStdString(first.role))));
  if (converted(first) == first) return;
  const int before = what_->currentIndex();
  for (int i = 0; i < what_->count(); ++i) {
    what_->setCurrentIndex(i);
    if (converted(first) == first) return;
  }
  what_->setCurrentIndex(before);
}

void CompareBar::showItems() {
  followItems();
  role_->setVisible(what() == What::norms);
  while (QLayoutItem* item = chips_->takeAt(0)) {
    item->widget()->hide();
    item->widget()->deleteLater();
    delete item;
  }
  const std::vector<CompareItem>& items = session_.compareItems();
  const int at_most = std::max(24, kChipsWidth / std::max(1, static_cast<int>(items.size())) - 40);
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto* chip = new QToolButton(this);
    const QString title = QString::fromStdString(title_of(items[i], items, session_.models()));
    chip->setText(chip->fontMetrics().elidedText(title, Qt::ElideMiddle, at_most) +
                  QStringLiteral(" ✕"));
    chip->setToolTip(tr("Take %1 away").arg(chip_text(items[i])));
    connect(chip, &QToolButton::clicked, this, [this, i] {
      std::vector<CompareItem> fewer = session_.compareItems();
      if (i < fewer.size()) fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      session_.setCompareItems(std::move(fewer));
    });
    chips_->addWidget(chip);
  }
}

}  // namespace sinkscope
