// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/panel_table.h"

#include <QBoxLayout>
#include <QCoreApplication>

#include "app/gui/compare_bar.h"
#include "app/gui/rescaling_wiring.h"
#include "app/gui/what_if_wiring.h"
#include "views/panels/attention_panel.h"
#include "views/panels/compare_panel.h"
#include "views/panels/norms_panel.h"
#include "views/panels/overview_panel.h"
#include "views/panels/residual_panel.h"

namespace sinkscope {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("panel_table", text); }

// Tells a panel what is selected, now and later.
template <class PanelType>
PanelType* following(Session& session, PanelType* panel) {
  const auto mark = [&session, panel] {
    std::vector<CellRef> pins;
    for (const PinnedCell& pin : session.pinnedCells()) pins.push_back(pin.cell);
    panel->setSelection(session.selection().cell);
    panel->setPins(pins);
  };
  QObject::connect(&session, &Session::selectionChanged, panel, mark);
  mark();
  return panel;
}

// Calls `show` now and whenever this picture changes.
template <class Show>
void follow(Session& session, QObject* panel, Picture picture, Show show) {
  QObject::connect(&session, &Session::snapshotChanged, panel, [picture, show](Picture which) {
    if (which == picture) show();
  });
  show();
}

Panel* make_overview(Session& session, QWidget* parent) {
  auto* panel = following(session, new OverviewPanel(parent));
  follow(session, panel, Picture::overview,
         [&session, panel] { panel->setSnapshot(session.overview().snapshot); });
  QObject::connect(panel, &OverviewPanel::scoreKindChanged, &session, [&session](ScoreKind kind) {
    ViewOptions options = session.options();
    options.score = kind;
    session.setOptions(options);
  });
  return panel;
}

Panel* make_attention(Session& session, QWidget* parent) {
  auto* panel = following(session, new AttentionPanel(parent));
  follow(session, panel, Picture::attention, [&session, panel] {
    const Shown<AttentionSnapshot>& shown = session.attention();
    panel->setSnapshot(shown.snapshot, shown.prepared, session.failureOf(Picture::attention));
  });
  follow(session, panel, Picture::thumbnails, [&session, panel] {
    panel->setThumbnails(session.thumbnails().snapshot, session.thumbnails().prepared);
  });
  QObject::connect(panel, &AttentionPanel::choiceChanged, &session,
                   [&session](const AttentionChoice& choice) {
                     ViewOptions options = session.options();
                     options.combine = choice.combine;
                     options.all_layers = choice.all_layers;
                     options.one_head = choice.one_head;
                     options.attention_view = choice.view;
                     options.attention_source = choice.source;
                     options.all_heads = choice.is_grid;
                     session.setOptions(options);
                   });
  return panel;
}

Panel* make_residual(Session& session, QWidget* parent) {
  auto* panel = following(session, new ResidualPanel(parent));
  follow(session, panel, Picture::residual, [&session, panel] {
    const Shown<ResidualSnapshot>& shown = session.residual();
    panel->setSnapshot(shown.snapshot, shown.prepared, session.failureOf(Picture::residual));
  });
  QObject::connect(panel, &ResidualPanel::choiceChanged, &session,
                   [&session](const ResidualChoice& choice) {
                     ViewOptions options = session.options();
                     options.averaged_residual = choice.averaged;
                     options.order = choice.order;
                     options.given_order = choice.given_order;
                     options.is_corner = choice.is_corner;
                     session.setOptions(options);
                   });
  return panel;
}

Panel* make_norms(Session& session, QWidget* parent) {
  auto* panel = following(session, new NormsPanel(parent));
  follow(session, panel, Picture::norms, [&session, panel] {
    panel->setSnapshot(session.norms().snapshot, session.failureOf(Picture::norms));
  });
  QObject::connect(panel, &NormsPanel::viewAsked, &session, [&session](GainView view) {
    ViewOptions options = session.options();
    options.gain_view = view;
    session.setOptions(options);
  });
  return panel;
}

Panel* make_compare(Session& session, QWidget* parent) {
  auto* panel = following(session, new ComparePanel(parent));
  follow(session, panel, Picture::compare, [&session, panel] {
    const Shown<CompareSnapshot>& shown = session.compared();
    panel->setSnapshot(shown.snapshot, session.failureOf(Picture::compare), shown.prepared);
  });
  // The choice of sides belongs to the session and stands above what it leads to.
  if (auto* column = qobject_cast<QBoxLayout*>(panel->layout()))
    column->insertWidget(0, new CompareBar(session, panel));
  return panel;
}

QString needs_capture(const Session& session) {
  return session.run() == nullptr ? tr("needs a capture: record the model, or open one")
                                  : QString();
}

QString needs_attention(const Session& session) {
  if (session.run() == nullptr) return needs_capture(session);
  return session.run()->has_attention ? QString() : tr("the capture has no softmax attention");
}

QString needs_residual(const Session& session) {
  if (session.run() == nullptr) return needs_capture(session);
  return session.run()->has_residual ? QString() : tr("the capture has no residual stream");
}

QString needs_anything(const Session& session) {
  const bool is_empty = session.run() == nullptr && session.model() == nullptr;
  return is_empty ? tr("needs a model or a capture") : QString();
}

QString needs_norms(const Session& session) {
  if (session.run() == nullptr && session.model() == nullptr)
    return tr("needs a model or a capture");
  const bool has_norms =
      session.run() != nullptr ? session.run()->has_norms : !session.model()->norms.empty();
  return has_norms ? QString() : tr("there are no norms that can be read");
}

}  // namespace

const std::vector<PanelEntry>& panel_table() {
  static const std::vector<PanelEntry> table = {
      {"overview", "Overview", {Picture::overview}, make_overview, needs_capture},
      {"attention", "Attention", {Picture::thumbnails}, make_attention, needs_attention},
      {"residual", "Residual", {Picture::residual}, make_residual, needs_residual},
      {"norms", "Norms", {Picture::norms}, make_norms, needs_norms},
      {"rescaling", "Rescaling", {}, make_rescaling, needs_capture},
      {"whatif", "What-if", {}, make_what_if, needs_capture},
      {"compare", "Compare", {Picture::compare}, make_compare, needs_anything},
  };
  return table;
}

}  // namespace sinkscope
