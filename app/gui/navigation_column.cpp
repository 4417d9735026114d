// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/navigation_column.h"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/site_name.h"
#include "views/theme.h"
#include "views/widgets/head_squares.h"
#include "views/widgets/help_button.h"
#include "views/widgets/layer_slider.h"
#include "views/widgets/token_strip.h"

namespace sinkscope {
namespace {

constexpr int kPathRole = Qt::UserRole, kRunRole = Qt::UserRole + 1;

QHBoxLayout* titled(QLabel* label, const char* term, QWidget* parent) {
  auto* line = new QHBoxLayout;
  line->addWidget(label, 1);
  line->addWidget(new HelpButton(term, parent));
  return line;
}

QTreeWidgetItem* child_named(QTreeWidget& tree, QTreeWidgetItem* parent, const QString& name) {
  auto* item = parent == nullptr ? new QTreeWidgetItem(&tree) : new QTreeWidgetItem(parent);
  item->setText(0, name);
  item->setToolTip(0, name);
  item->setExpanded(true);
  return item;
}

}  // namespace

NavigationColumn::NavigationColumn(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      find_(new QLineEdit(this)),
      tree_(new QTreeWidget(this)),
      layer_label_(new QLabel(this)),
      head_label_(new QLabel(this)),
      token_label_(new QLabel(this)),
      layers_(new LayerSlider(this)),
      heads_(new HeadSquares(this)),
      tokens_(new TokenStrip(this)) {
  build();
  connect(&session_, &Session::opened, this, &NavigationColumn::showOpened);
  connect(&session_, &Session::selectionChanged, this, &NavigationColumn::showSelection);
  connect(&session_, &Session::snapshotChanged, this, [this](Picture picture) {
    if (picture == Picture::overview) showOverview();
    if (picture == Picture::attention) showKeyMass();
  });
  connect(find_, &QLineEdit::returnPressed, this, &NavigationColumn::find);
  connect(tree_, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) {
    const std::string run = item->data(0, kRunRole).toString().toStdString();
    const std::string path = item->data(0, kPathRole).toString().toStdString();
    if (!run.empty())
      session_.selectRun(path, run);
    else if (!path.empty())
      session_.selectModel(path);
  });
  connect(layers_, &LayerSlider::layerPicked, this, [this](int layer) {
    CellRef cell;
    cell.layer = layer;
    session_.select(cell);
  });
  connect(heads_, &HeadSquares::headPicked, this, [this](int head) {
    CellRef cell;
    cell.head = head;
    session_.select(cell);
  });
  connect(tokens_, &TokenStrip::tokenPicked, this, [this](int token) {
    CellRef cell;
    cell.token = cell.key = token;
    session_.select(cell);
  });
  showOpened();
  showSelection();
}

void NavigationColumn::build() {
  find_->setPlaceholderText(tr("Find: token, dimension, L12H3"));
  find_->setClearButtonEnabled(true);
  tree_->setHeaderHidden(true);
  tree_->setFrameShape(QFrame::NoFrame);
  tree_->setIndentation(12);
  tree_->setRootIsDecorated(false);
  tree_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  tree_->setAccessibleName(tr("What is open"));
  token_label_->setFont(caption_font(font()));
  token_label_->setText(tr("Tokens by the attention they get"));
  token_label_->setForegroundRole(QPalette::PlaceholderText);
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::Base);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(find_);
  layout->addWidget(tree_);
  layout->addLayout(titled(layer_label_, "max |x|", this));
  layout->addWidget(layers_);
  layout->addLayout(titled(head_label_, "sink score", this));
  layout->addWidget(heads_);
  layout->addLayout(titled(token_label_, "key mass", this));
  layout->addWidget(tokens_, 1);
  setMinimumWidth(200);
}

void NavigationColumn::focusFind() {
  find_->setFocus();
  find_->selectAll();
}

void NavigationColumn::showOpened() {
  tree_->clear();
  for (const auto& model : session_.models()) {
    auto* item = child_named(*tree_, nullptr, QString::fromStdString(model->card.spec.name));
    item->setToolTip(0, QString::fromStdString(model->card.path));
    item->setData(0, kPathRole, QString::fromStdString(model->card.path));
  }
  QTreeWidgetItem* file = nullptr;
  std::string path;
  for (const auto& facts : session_.runs()) {
    if (file == nullptr || path != facts->path) {
      path = facts->path;
      file =
          child_named(*tree_, nullptr,
                      QFileInfo(QString::fromStdString(path)).fileName() +
                          QStringLiteral(" · %1").arg(QString::fromStdString(facts->model.name)));
      file->setToolTip(0, QString::fromStdString(path));
    }
    auto* item = child_named(
        *tree_, file,
        tr("%1 · %2 tokens").arg(QString::fromStdString(run_label(*facts))).arg(facts->seq_len()));
    item->setData(0, kPathRole, QString::fromStdString(facts->path));
    item->setData(0, kRunRole, QString::fromStdString(facts->run));
  }
  // As tall as it needs to be, up to a limit: the tokens get the rest.
  const int rows = 1 + static_cast<int>(session_.runs().size()) + tree_->topLevelItemCount();
  tree_->setFixedHeight(std::min(150, rows * (fontMetrics().height() + 3) + 4));
  showSelection();
}

void NavigationColumn::showSelection() {
  const auto facts = session_.run();
  const CellRef& cell = session_.selection().cell;
  for (QWidget* widget : std::initializer_list<QWidget*>{layer_label_, head_label_, token_label_,
                                                         layers_, heads_, tokens_})
    widget->setEnabled(facts != nullptr);
  if (facts != shown_run_) {
    shown_run_ = facts;
    layers_->setLayers(facts == nullptr ? 0 : facts->model.n_layers);
    if (facts == nullptr)
      tokens_->setTokens({}, {});
    else
      tokens_->setTokens(facts->input.token_text, facts->input.token_ids);
  }
  layer_label_->setText(facts == nullptr ? tr("Layer")
                                         : tr("Layer  %1")
                                               .arg(QString::fromStdString(layer_label(
                                                   cell.layer, facts->model.n_layers))));
  head_label_->setText(facts == nullptr ? tr("Head") : tr("Head  %1").arg(cell.head));
  layers_->setLayer(cell.layer);
  heads_->setHead(cell.head);
  tokens_->setToken(cell.token);
  showOverview();
  for (QTreeWidgetItemIterator it(tree_); *it != nullptr; ++it) {
    const bool is_it = facts != nullptr &&
                       (*it)->data(0, kRunRole).toString().toStdString() == facts->run &&
                       (*it)->data(0, kPathRole).toString().toStdString() == facts->path;
    if (is_it) tree_->setCurrentItem(*it);
  }
}

// The line over depth and the scores of this layer's heads.
void NavigationColumn::showOverview() {
  const auto snapshot = session_.overview().snapshot;
  if (snapshot == nullptr) {
    layers_->setLine({}, {});
    heads_->setScores({});
    return;
  }
  std::vector<double> behind = snapshot->max_abs.values;  // state i+1 is behind block i
  if (!behind.empty()) behind.erase(behind.begin());
  layers_->setLine(std::move(behind), tr("max |x| over depth"));
  const auto& layers = snapshot->layers;
  const auto at = std::find(layers.begin(), layers.end(), session_.selection().cell.layer);
  std::vector<double> scores(static_cast<std::size_t>(snapshot->n_heads), std::nan(""));
  if (at != layers.end())
    for (int head = 0; head < snapshot->gu.rows(); ++head)
      scores[static_cast<std::size_t>(head)] =
          snapshot->gu.at(head, static_cast<int>(at - layers.begin()));
  heads_->setScores(std::move(scores));
}

void NavigationColumn::showKeyMass() {
  const auto snapshot = session_.attention().snapshot;
  if (snapshot == nullptr) {
    tokens_->setShades({});
    return;
  }
  const double top = *std::max_element(snapshot->key_mass.begin(), snapshot->key_mass.end());
  std::vector<double> shades = snapshot->key_mass;
  for (double& shade : shades) shade = top > 0 ? shade / top : 0;
  tokens_->setShades(std::move(shades));
}

void NavigationColumn::find() {
  const auto place =
      find_place(find_->text().toStdString(), session_.findSpace(), session_.selection().cell);
  QPalette colors = palette();
  if (!place) colors.setColor(QPalette::Text, warning_color(palette()));
  find_->setPalette(colors);
  find_->setToolTip(place ? QString() : tr("nothing is found"));
  if (place) session_.select(*place);
}

}  // namespace sinkscope
