// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of every panel, for people to look at: screenshots OUT CAPTURE MODEL [light|dark].
// Runs offscreen; QT_SCALE_FACTOR=2 gives the 200 % ones.
#include <QApplication>
#include <QElapsedTimer>
#include <QTabWidget>
#include <QThread>
#include <functional>
#include <iostream>

#include "app/gui/main_window.h"
#include "app/gui/navigation_column.h"
#include "app/gui/panel_table.h"
#include "app/gui/reading_column.h"
#include "app/gui/rescaling_desk.h"
#include "app/gui/what_if_desk.h"
#include "views/panels/attention_panel.h"
#include "views/panels/rescaling_panel.h"
#include "views/panels/what_if_panel.h"
#include "views/theme.h"
#include "views/widgets/absorb_dialog.h"
#include "views/window_style.h"

namespace sinkscope {
namespace {

bool wait_until(const std::function<bool()>& done) {
  QElapsedTimer timer;
  timer.start();
  while (!done() && timer.elapsed() < 30000) {
    QApplication::processEvents();
    QThread::msleep(5);
  }
  for (int i = 0; i < 20; ++i) {  // let queued replots and layouts happen
    QApplication::processEvents();
    QThread::msleep(5);
  }
  return done();
}

class Shooter {
 public:
  Shooter(MainWindow& window, QString folder) : window_(window), folder_(std::move(folder)) {}

  void shoot(const QString& name) {
    const QString path = folder_ + QLatin1Char('/') + name + QStringLiteral(".png");
    if (!window_.grab().save(path)) std::cerr << "cannot write " << path.toStdString() << '\n';
    std::cout << path.toStdString() << '\n';
  }

  void panels() {
    Session& session = window_.session();
    wait_until([&] { return session.overview().snapshot && session.attention().snapshot; });
    CellRef cell{15, 5, 24, 0, 0, 507};
    session.select(cell);
    const Selection at = session.selection();
    session.setCompareItems({{at.path, at.run, MapKind::attention, 15, 5},
                             {at.path, at.run, MapKind::attention, 18, 8}});
    for (const PanelEntry& entry : panel_table()) {
      if (!entry.obstacle(session).isEmpty()) continue;
      window_.showPanel(entry.id);
      wait_until([&] { return is_there(entry); });
      shoot(entry.id);
    }
    comparisons(at);
    rescaling();
    whatIf();
    window_.showPanel("attention");
    auto* attention = dynamic_cast<AttentionPanel*>(window_.panel());
    if (attention == nullptr) return;
    AttentionChoice choice = attention->choice();
    choice.is_grid = true;
    attention->setChoice(choice);
    session.setWanted(Picture::thumbnails, true);
    wait_until([&] { return session.thumbnails().snapshot != nullptr; });
    shoot(QStringLiteral("attention-grid"));
  }

  // Other kinds of sides, and three of them.
  void comparisons(const Selection& at) {
    Session& session = window_.session();
    const auto side = [&](MapKind kind, int layer, int head, const char* role) {
      return CompareItem{at.path, at.run, kind, layer, head, role};
    };
    const std::pair<const char*, std::vector<CompareItem>> all[] = {
        {"compare-residual",
         {side(MapKind::residual, 5, -1, ""), side(MapKind::residual, 15, -1, "")}},
        {"compare-norms",
         {side(MapKind::norms, -1, -1, "ln1"), side(MapKind::norms, -1, -1, "ln2")}},
        {"compare-three",
         {side(MapKind::attention, 15, 5, ""), side(MapKind::attention, 15, -1, ""),
          side(MapKind::attention, -1, -1, "")}}};
    for (const auto& [name, items] : all) {
      session.setCompareItems(items);
      window_.showPanel("compare");
      wait_until([&, n = items.size(), kind = items.front().kind] {
        const auto compared = session.compared().snapshot;
        return compared != nullptr && compared->sides.size() == n &&
               compared->sides.front().kind == kind;
      });
      shoot(QString::fromUtf8(name));
    }
  }

 private:
  // The model is open as well: probes and reruns are possible.
  void rescaling() {
    window_.showPanel("rescaling");
    auto* panel = dynamic_cast<RescalingPanel*>(window_.panel());
    if (panel == nullptr) return;
    auto* desk = panel->findChild<RescalingDesk*>();
    wait_until([&] { return desk->state().snapshot != nullptr; });
    for (int kind = 0; kind < 2; ++kind) {
      panel->setKind(kind);
      wait_until([] { return true; });
      shoot(QStringLiteral("rescaling-%1").arg(kind));
    }
    desk->runProbes("507");
    panel->findChild<QTabWidget*>()->setCurrentIndex(1);
    wait_until([] { return true; });
    shoot(QStringLiteral("rescaling-probing"));
    for (int tries = 0; tries < 5 && desk->job().isRunning(); ++tries)
      wait_until([&] { return !desk->job().isRunning(); });
    shoot(QStringLiteral("rescaling-probes"));
  }

  void whatIf() {
    window_.showPanel("whatif");
    auto* panel = dynamic_cast<WhatIfPanel*>(window_.panel());
    if (panel == nullptr) return;
    auto* desk = panel->findChild<WhatIfDesk*>();
    WhatIf edits;
    for (const EditTemplate& offered : edit_templates({15, 5, 507})) edits.push_back(offered.edit);
    desk->apply({{edits[0], true}, {edits[3], false}, {edits[7], true}});
    wait_until([&] { return desk->state().preview != nullptr; });
    panel->showTab(1);
    wait_until([] { return true; });
    shoot(QStringLiteral("whatif-preview"));
    wait_until([&] { return desk->state().obstacle.empty(); });
    desk->run();
    wait_until([] { return true; });
    shoot(QStringLiteral("whatif-running"));
    wait_until([&] { return desk->state().is_current && desk->state().maps != nullptr; });
    for (int tab = 0; tab < 4; ++tab) {
      panel->showTab(tab);
      wait_until([] { return true; });
      shoot(QStringLiteral("whatif-%1").arg(tab));
    }
    desk->apply(
        {{parse_what_if(R"({"edit":"residual.clip","limit":1,"layers":[99]})").front(), true}});
    desk->run();
    wait_until([&] { return !desk->job().isRunning(); });
    shoot(QStringLiteral("whatif-failed"));
    AbsorbDialog dialog(QStringLiteral("absorbed"), panel);
    dialog.show();
    wait_until([] { return true; });
    dialog.grab().save(folder_ + QStringLiteral("/whatif-absorb.png"));
  }

  bool is_there(const PanelEntry& entry) const {
    const Session& session = window_.session();
    for (const Picture picture : entry.pictures) {
      const bool there = picture == Picture::overview     ? session.overview().snapshot != nullptr
                         : picture == Picture::attention  ? session.attention().snapshot != nullptr
                         : picture == Picture::thumbnails ? session.thumbnails().snapshot != nullptr
                         : picture == Picture::residual   ? session.residual().snapshot != nullptr
                         : picture == Picture::norms      ? session.norms().snapshot != nullptr
                                                          : session.compared().snapshot != nullptr;
      if (!there && session.failureOf(picture).isEmpty()) return false;
    }
    return true;
  }

  MainWindow& window_;
  QString folder_;
};

}  // namespace
}  // namespace sinkscope

int main(int argc, char** argv) {
  using namespace sinkscope;
  if (argc < 4) {
    std::cerr << "usage: screenshots OUT CAPTURE MODEL [light|dark]\n";
    return 2;
  }
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("sinkscope-screenshots"));
  QApplication::setStyle(window_style());
  QFont font(QStringLiteral("DejaVu Sans"));
  font.setPointSizeF(9);
  QApplication::setFont(font);
  const bool dark = argc > 4 && std::string(argv[4]) == "dark";
  QApplication::setPalette(theme_palette(dark ? Theme::dark : Theme::light));
  MainWindow window;
  window.resize(1280, 800);
  window.show();
  Shooter shooter(window, QString::fromLocal8Bit(argv[1]));
  window.open(QString::fromLocal8Bit(argv[3]));
  wait_until([&] {
    return window.session().norms().snapshot != nullptr || !window.errorText().isEmpty();
  });
  shooter.shoot(QStringLiteral("model"));
  window.open(QString::fromLocal8Bit(argv[2]));
  wait_until([&] { return window.session().run() != nullptr || !window.errorText().isEmpty(); });
  shooter.panels();
  return 0;
}
