// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/rescaling_panel.h"

#include <QComboBox>
#include <QEvent>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QTabWidget>
#include <algorithm>

#include "core/number_text.h"
#include "core/site_name.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

QString number(double value) { return QString::fromStdString(readable(value)); }

}  // namespace

void RescalingPanel::setState(const RescalingState& state) {
  const bool new_snapshot = state.snapshot != state_.snapshot;
  const bool new_probes = state.probes != state_.probes;
  state_ = state;
  if (new_snapshot) {
    const QSignalBlocker blocker(kind_);
    const int index = std::max(0, kind_->currentIndex());
    kind_->clear();
    if (state_.snapshot)
      for (const NormCloud& one : state_.snapshot->norms) {
        const QString name = QString::fromStdString(one.name);
        kind_->addItem(name.at(0).toUpper() + name.mid(1));
      }
    kind_->setCurrentIndex(std::min(index, kind_->count() - 1));
    if (state_.snapshot) key_->setMaximum(std::max(0, state_.snapshot->facts.seq_len() - 1));
  }
  kind_->setEnabled(kind_->count() > 0);
  weights_->setEnabled(state_.snapshot != nullptr && state_.obstacle.empty() && !state_.is_running);
  weights_->setToolTip(
      state_.obstacle.empty()
          ? tr("Contributions into the next linear layers and through W_o; reads all of the "
               "model's weights")
          : tr("not computed: %1").arg(QString::fromStdString(state_.obstacle)));
  run_->setEnabled(state_.obstacle.empty() && !state_.is_running);
  run_->setToolTip(QString::fromStdString(state_.obstacle));
  for (QWidget* widget : {static_cast<QWidget*>(progress_), static_cast<QWidget*>(cancel_),
                          static_cast<QWidget*>(progress_text_)})
    widget->setVisible(state_.is_running);
  if (!state_.is_running) setProgress(-1, {});
  showTexts();
  if (new_snapshot) showEvidence();
  if (new_probes) showProbes();
}

void RescalingPanel::setProgress(double share, const QString& text) {
  progress_->setRange(0, share < 0 ? 0 : 1000);
  progress_->setValue(share < 0 ? 0 : static_cast<int>(share * 1000));
  progress_text_->setText(text);
}

void RescalingPanel::showTexts() {
  QStringList head;
  if (!state_.failure.empty()) head << QString::fromStdString(state_.failure);
  if (state_.snapshot) {
    head << QString::fromStdString(state_.snapshot->bound_text)
         << QString::fromStdString(state_.snapshot->suggestion);
    if (!state_.snapshot->contribution.empty())
      head << QString::fromStdString(state_.snapshot->contribution);
    for (const std::string& what : state_.snapshot->not_computed) {
      QString line = QString::fromStdString(what);
      // With the model open they only wait to be asked for: all weights have to be read.
      if (state_.obstacle.empty())
        line.replace(QStringLiteral("no model"), tr("ask for it with “%1”").arg(weights_->text()));
      head << line;
    }
  }
  head_->setText(head.join(QLatin1Char('\n')));
  QStringList role;
  if (state_.probes)
    for (const ProbeBars& bars : state_.probes->groups) {
      const QString sentence = QString::fromStdString(bars.sentence);
      // Every norm alone has its own row below; here are the kinds.
      if (bars.reader == "all norms" || bars.reader.starts_with("blocks.") || sentence.isEmpty())
        continue;
      role << (bars.at == "first" ? tr("Probes, first token: %1") : tr("Probes: %1")).arg(sentence);
    }
  if (role.isEmpty())
    role << tr(
        "Rescaler, flag or constant bias channel: only the causal probes decide, and they "
        "have not been run.");
  role_->setText(role.join(QLatin1Char('\n')));
  QPalette colors = palette();
  const bool is_failure = !state_.probes_failure.empty();
  colors.setColor(QPalette::WindowText,
                  is_failure ? warning_color(palette()) : muted_color(palette()));
  probes_text_->setPalette(colors);
  probes_text_->setText(
      is_failure ? QString::fromStdString(state_.probes_failure)
      : !state_.obstacle.empty()
          ? tr("Cannot run: %1").arg(QString::fromStdString(state_.obstacle))
          : tr("What a norm sees is changed, the stream is not: how much the loss rises, in nats a "
               "token. zero = out of the norm; denominator = out of its root mean square alone; "
               "direct = its output alone."));
}

const std::vector<RescalingPoint>* RescalingPanel::boundPoints(int series) const {
  const NormCloud* shown = cloud();
  if (shown == nullptr || series < 0 || series > 1) return nullptr;
  return series == 0 ? &shown->bound_rest : &shown->bound_first;
}

const std::vector<RescalingPoint>* RescalingPanel::sharePoints(int series) const {
  const NormCloud* shown = cloud();
  if (shown == nullptr || series < 0 || series > 1) return nullptr;
  return series == 0 ? &shown->shares : &state_.snapshot->head_shares;
}

void RescalingPanel::hover(const std::vector<RescalingPoint>* points, int point, const QString& x,
                           const QString& y) {
  ReadOut out;
  if (points != nullptr && point >= 0 && point < static_cast<int>(points->size())) {
    const RescalingPoint& at = (*points)[static_cast<std::size_t>(point)];
    out.cell.layer = at.layer;
    out.cell.head = at.head;
    out.cell.token = at.token;
    out.cell.dim = at.dim;
    out.place = QString::fromStdString(short_name(out.cell));
    out.value = number(at.y);
    const QString layer =
        at.layer < 0
            ? tr("after the last block")
            : QString::fromStdString(layer_label(at.layer, state_.snapshot->facts.model.n_layers));
    const QString what = at.head >= 0 ? tr("head %1").arg(at.head)
                                      : tr("token %1, dimension %2").arg(at.token).arg(at.dim);
    out.lines = {layer, what, QStringLiteral("%1 = %2").arg(x, number(at.x)),
                 QStringLiteral("%1 = %2").arg(y, number(at.y))};
  }
  emit hovered(out);
}

QString RescalingPanel::headText() const { return head_->text(); }
QString RescalingPanel::roleText() const { return role_->text(); }

ColorScale RescalingPanel::colorScale() const {
  const NormCloud* shown = cloud();
  if (shown == nullptr || tabs_->currentIndex() != 0) return {};
  ColorScale scale;
  scale.grids = {shown->alpha_counts};
  scale.request = request_;
  scale.range = find_range(shown->alpha_counts, request_);
  scale.colormap = QStringLiteral("viridis");
  scale.quantity = tr("share of tokens by α");
  return scale;
}

void RescalingPanel::setRangeRequest(const RangeRequest& request) {
  request_ = request;
  showHistogram();
}

QString RescalingPanel::valuesAsText() const {
  if (tabs_->currentIndex() == 1)
    return state_.probes ? QString::fromStdString(probe_csv(state_.probes->table)) : QString();
  const NormCloud* shown = cloud();
  if (shown == nullptr) return {};
  QString text = QStringLiteral("layer\ttoken\tdim\tshare before\tshare after\n");
  for (const RescalingPoint& point : shown->shares)
    text += QStringLiteral("%1\t%2\t%3\t%4\t%5\n")
                .arg(point.layer)
                .arg(point.token)
                .arg(point.dim)
                .arg(QString::fromStdString(csv_number(point.x)),
                     QString::fromStdString(csv_number(point.y)));
  return text;
}

std::optional<FigureRequest> RescalingPanel::figureRequest() const {
  FigureRequest request;
  if (tabs_->currentIndex() == 1) {
    if (!state_.probes || state_.probes->path.empty()) return std::nullopt;
    request.kind = "probes";
    request.inputs = {state_.probes->path};
    return request;
  }
  if (!state_.snapshot) return std::nullopt;
  request.kind = exported_->currentData().toString().toStdString();
  request.dim_list = state_.snapshot->request.dims;
  request.key = state_.snapshot->request.key;
  request.inputs = {state_.snapshot->facts.path + "::" + state_.snapshot->facts.run};
  return request;
}

std::vector<MadeFile> RescalingPanel::madeFiles() const {
  if (!state_.probes || state_.probes->path.empty()) return {};
  return {{state_.probes->path, kProbesFile, state_.probes->command}};
}

void RescalingPanel::changeEvent(QEvent* event) {
  Panel::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showTexts();
}

}  // namespace sinkscope
