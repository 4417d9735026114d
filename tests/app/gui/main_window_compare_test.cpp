// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QTest>
#include <filesystem>

#include "app/gui/compare_bar.h"
#include "app/gui/figure_of_panel.h"
#include "app/gui/reading_column.h"
#include "capture/engine.h"
#include "tests/app/gui/main_window_fixture.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/attention_panel.h"
#include "views/panels/norms_panel.h"
#include "views/panels/overview_panel.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

TEST_F(MainWindowTest, CompareShowsUnequalRunsAndSaysSo) {
  open_capture();
  session().setCompareItems(
      {{path_, "run0", MapKind::attention, 2, 3}, {path_, "run1", MapKind::attention, 2, 3}});
  window_->showPanel("compare");
  ASSERT_TRUE(QTest::qWaitFor([&] { return session().compared().snapshot != nullptr; }, 10000));
  const auto compared = session().compared().snapshot;
  EXPECT_EQ(compared->sides.size(), 2U);
  EXPECT_EQ(compared->sides[1].title, "run1 · L2H3");
  ASSERT_FALSE(compared->notes.empty());
  const auto request = figure_of_panel("compare", session(), {});
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->inputs, (std::vector<std::string>{path_, path_ + "::run1"}));
  EXPECT_EQ(request->layer, 2);
  EXPECT_TRUE(request->layers.empty());
}

// The bar above the maps: what is compared, and of what.
TEST_F(MainWindowTest, CompareTakesLayersHeadsMeansResidualsScoresAndGains) {
  open_capture();
  session().select({2, 1});
  window_->showPanel("compare");
  auto* bar = window_->panel()->findChild<CompareBar*>();
  ASSERT_NE(bar, nullptr);
  const auto shown = [&](std::size_t n) {
    return QTest::qWaitFor(
        [&] {
          const auto compared = session().compared().snapshot;
          return compared != nullptr && compared->sides.size() == n;
        },
        10000);
  };
  bar->addNextHead();
  ASSERT_TRUE(shown(2));
  // Recorded: 1000·layer + 100·head + 10·row + key, so heads 1 and 2 are 100 apart.
  EXPECT_EQ(session().compared().snapshot->differences[0].map.at(4, 1), 100);
  EXPECT_EQ(session().compared().snapshot->sides[1].title, "L2H2");
  session().select({0, 1});
  bar->addCurrent();
  ASSERT_TRUE(shown(3));
  EXPECT_EQ(session().compared().snapshot->differences[1].map.at(4, 1), -2000);
  const auto heads = figure_of_panel("compare", session(), {});
  ASSERT_TRUE(heads.has_value());
  EXPECT_EQ(heads->layers, (std::vector<int>{2, 2, 0}));
  EXPECT_EQ(heads->heads, (std::vector<int>{1, 2, 1}));

  // The sides stay, as maps of another kind; equal ones become one.
  bar->setWhat(CompareBar::What::residual);
  ASSERT_TRUE(shown(2));
  EXPECT_EQ(session().compared().snapshot->sides[0].kind, MapKind::residual);
  EXPECT_EQ(session().compareItems()[1].layer, 0);
  bar->setWhat(CompareBar::What::scores);
  EXPECT_EQ(session().compareItems().size(), 1U) << "one run has one map of scores";
  bar->addEverything();
  ASSERT_TRUE(shown(2));
  EXPECT_EQ(session().compared().snapshot->sides[1].map.rows(), test::kHeads);
  bar->setWhat(CompareBar::What::norms);
  bar->setRole("ln2");
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const auto compared = session().compared().snapshot;
        return compared != nullptr && compared->sides[0].kind == MapKind::norms;
      },
      10000));
  EXPECT_EQ(session().compared().snapshot->sides[1].title, "run1 · FFN pre-norm");
}

TEST_F(MainWindowTest, CompareShowsTheGainsOfTwoModelsAndSaysThatTheyAreTwo) {
  const std::string planted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
  const std::string twin = folder_ + "/twin";
  std::filesystem::copy(planted, twin, std::filesystem::copy_options::recursive);
  for (const std::string& path : {planted, twin}) {
    window_->open(QString::fromStdString(path));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return session().model() && session().model()->card.path == path; }, 10000));
  }
  EXPECT_EQ(session().models().size(), 2U);
  window_->showPanel("compare");
  auto* bar = window_->panel()->findChild<CompareBar*>();
  ASSERT_NE(bar, nullptr);
  EXPECT_EQ(bar->what(), CompareBar::What::norms) << "models have gains only";
  bar->addEverything();
  ASSERT_TRUE(QTest::qWaitFor([&] { return session().compared().snapshot != nullptr; }, 10000))
      << session().failureOf(Picture::compare).toStdString();
  const auto compared = session().compared().snapshot;
  ASSERT_EQ(compared->sides.size(), 2U);
  EXPECT_EQ(compared->differences[0].map.at(0, 0), 0);
  EXPECT_NE(compared->sides[0].title, compared->sides[1].title);
  const auto request = figure_of_panel("compare", session(), {});
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->of, "norm-gains");
  EXPECT_EQ(request->inputs, (std::vector<std::string>{planted, twin}));
  EXPECT_FALSE(engine_is_loaded());
}

TEST_F(MainWindowTest, APinFollowsItsCellThroughRunsAndPanels) {
  open_capture();
  auto* overview = dynamic_cast<OverviewPanel*>(window_->panel());
  ASSERT_NE(overview, nullptr);
  emit overview->heatmap().cellPicked(3, 2);
  auto* attention = dynamic_cast<AttentionPanel*>(window_->panel());
  ASSERT_NE(attention, nullptr);
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const auto map = session().attention().snapshot;
        return map != nullptr && map->request.heads == std::vector<int>{3};
      },
      10000));
  emit attention->heatmap().cellHovered(4, 1);
  QTest::keyClick(window_.get(), Qt::Key_P);
  window_->showPanel("norms");
  auto* norms = dynamic_cast<NormsPanel*>(window_->panel());
  ASSERT_NE(norms, nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !norms->strips().empty(); }, 10000));
  emit norms->strips()[1]->cellHovered(2, 3);
  QTest::keyClick(window_.get(), Qt::Key_P);
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const auto pins = session().pins().snapshot;
        return pins != nullptr && pins->values.size() == 2;
      },
      10000));
  // Recorded: 1000·layer + 100·head + 10·row + key in both runs; gains are 1 there.
  EXPECT_EQ(window_->reading().pinsAsText().toStdString(),
            "cell\trun0\tlong\nL2H3 · q4 k1\t2,341.0\t2,341.0\nln2 · L2 d3\t1\t1\n");
  EXPECT_EQ(norms->strips()[0]->pinnedCells(), (std::vector<CellAt>{{2, 3}}));
  window_->showPanel("attention");
  EXPECT_EQ(attention->heatmap().pinnedCells(), (std::vector<CellAt>{{4, 1}}));
  session().selectRun(path_, "run1");
  ASSERT_TRUE(QTest::qWaitFor([&] { return session().attention().snapshot != nullptr; }, 10000));
  EXPECT_EQ(attention->heatmap().pinnedCells(), (std::vector<CellAt>{{4, 1}}))
      << "in the next run as well";
}

TEST_F(MainWindowTest, APinnedGainHasItsValueInModelsThatWereNotRun) {
  const std::string model = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
  const std::string copy = folder_ + "/another";
  std::filesystem::copy(model, copy);
  const auto open_model = [&](const std::string& path, std::size_t n) {
    window_->open(QString::fromStdString(path));
    ASSERT_TRUE(QTest::qWaitFor([&] { return session().models().size() == n; }, 10000));
  };
  open_model(model, 1);
  EXPECT_EQ(window_->panelId(), "norms");
  auto* norms = dynamic_cast<NormsPanel*>(window_->panel());
  ASSERT_NE(norms, nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !norms->strips().empty(); }, 10000));
  const Grid gains = session().norms().snapshot->strips[1].map;
  emit norms->strips()[1]->cellHovered(1, 3);
  QTest::keyClick(window_.get(), Qt::Key_P);
  open_model(copy, 2);
  open_capture();
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const auto pins = session().pins().snapshot;
        return pins != nullptr && pins->request.runs.size() == 4;
      },
      10000));
  // Two runs of another model, whose gains are 1, and two models of one name.
  const auto values = session().pins().snapshot->values.at(0);
  EXPECT_EQ(values, (std::vector<std::optional<double>>{1, 1, gains.at(1, 3), gains.at(1, 3)}));
  const PinsRequest& request = session().pins().snapshot->request;
  EXPECT_EQ(request.runs[2].path, model);
  EXPECT_EQ(request.runs[3].path, copy);
  EXPECT_NE(request.runs[2].title, request.runs[3].title);
}

}  // namespace
}  // namespace sinkscope
