// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/rescaling_panel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>

#include "core/draw/colormap.h"
#include "core/rescale/theory.h"
#include "tests/support/test_application.h"
#include "views/heatmap/heatmap.h"
#include "views/theme.h"
#include "views/widgets/bar_list.h"
#include "views/widgets/line_plot.h"
#include "views/widgets/scatter_plot.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two norms of three layers' worth of numbers, five tokens; the FFN norm silences its outlier.
std::shared_ptr<const RescalingSnapshot> snapshot() {
  RescalingSnapshot made;
  made.facts.model.n_layers = 3;
  made.facts.path = "run.h5";
  made.facts.run = "run0";
  NormCloud ln2;
  ln2.role = "ln2";
  ln2.name = "FFN norms";
  ln2.gain_ratio = 0.1;
  ln2.bound_first = {{1, 0, 507, -1, 0.96, 0.25}};
  ln2.bound_rest = {{1, 1, 4, -1, 0.3, 0.8}, {2, 3, 4, -1, 0.5, 0.55}};
  ln2.shares = {{1, 0, 507, -1, 0.92, 0.01}, {1, 1, 4, -1, 0.09, 0.2}};
  ln2.layers = {0, 1, 2};
  ln2.alpha_first = {0.9, 0.28, 0.3};
  ln2.alpha_rest = {0.95, 0.94, 0.9};
  std::vector<float> counts(60, 0);
  counts[20 + 5] = 0.2F;
  counts[20 + 18] = 0.8F;
  ln2.alpha_counts = Grid(3, 20, counts);
  ln2.n_points = 15;
  NormCloud final_norm = ln2;
  final_norm.role = "ln_final";
  final_norm.name = "final norm";
  final_norm.layers = {-1};
  final_norm.alpha_first = {0.4};
  final_norm.alpha_rest = {0.9};
  final_norm.alpha_counts = Grid(1, 20, std::vector<float>(20, 0.05F));
  made.norms = {ln2, final_norm};
  made.attention_layers = {0, 1, 2};
  made.factor = {0.7, 0.1, 0.2};
  made.head_shares = {{1, -1, -1, 2, 0.8, 0.1}};
  made.bound_text = "All 20 points lie below their bounds (1) and (5).";
  made.suggestion = "FFN norms: silenced after.";
  made.not_computed = {"Not computed: no model: share through W_o"};
  return std::make_shared<const RescalingSnapshot>(std::move(made));
}

std::shared_ptr<const ProbesSnapshot> probes() {
  ProbeTable table;
  table.model = "small";
  table.dims = {507};
  table.tau = 3;
  table.loss = 2;
  table.rows = planned_probes(probe_readers(3, false), {PositionFilter::parse("rest")},
                              {ProbeMode::zero, ProbeMode::direct, ProbeMode::denominator});
  for (ProbeRow& row : table.rows) {
    if (row.reader.name == "FFN norms") row.delta_loss = row.mode == ProbeMode::direct ? 0.01 : 0.4;
    if (row.reader.name == "attention norms")
      row.delta_loss = row.mode == ProbeMode::denominator ? -0.01 : 0.2;
  }
  return std::make_shared<const ProbesSnapshot>(probes_snapshot(std::move(table)));
}

class RescalingPanelTest : public ::testing::Test {
 protected:
  RescalingPanelTest() {
    test_application();
    panel_ = std::make_unique<RescalingPanel>();
    panel_->setPalette(theme_palette(Theme::light));
    panel_->resize(765, 690);
    panel_->show();
    settle();
  }
  void show(RescalingState state) {
    panel_->setState(state);
    settle();
  }
  QPushButton* button(const QString& text) {
    for (QPushButton* one : panel_->findChildren<QPushButton*>())
      if (one->text() == text) return one;
    return nullptr;
  }
  std::unique_ptr<RescalingPanel> panel_;
};

TEST_F(RescalingPanelTest, DrawsTokensUnderTheBound) {
  RescalingState state;
  state.snapshot = snapshot();
  show(state);
  keep_picture(picture_of(*panel_), "rescaling");
  const auto& plot = panel_->boundPlot();
  const QImage picture = picture_of(const_cast<ScatterPlot&>(plot));
  const QPalette light = theme_palette(Theme::light);
  EXPECT_EQ(color_at(picture, plot.pixelOf(0.3, 0.8)), line_color(light, 0).rgb());
  EXPECT_EQ(color_at(picture, plot.pixelOf(0.96, 0.25)), line_color(light, 1).rgb());
  // The curve of bound (1) at r = 0.8, of the largest gain ratio.
  const QRgb curve = color_at(picture, plot.pixelOf(0.8, upper_bound_1(0.64, 1, 0.1)));
  EXPECT_LT(color_distance(curve, line_color(light, 2).rgb()), 0.2) << "smoothed";
  EXPECT_EQ(color_at(picture, plot.pixelOf(0.6, 0.1)), light.color(QPalette::Window).rgb());
  EXPECT_THAT(panel_->headText().toStdString(), HasSubstr("All 20 points lie below"));
  EXPECT_THAT(panel_->headText().toStdString(), HasSubstr("Not computed: ask for it with"));
  state.obstacle = "no model: open small";
  show(state);
  EXPECT_THAT(panel_->headText().toStdString(), HasSubstr("Not computed: no model"));
}

TEST_F(RescalingPanelTest, APointIsReadOutAndPicked) {
  RescalingState state;
  state.snapshot = snapshot();
  show(state);
  std::vector<ReadOut> read;
  QObject::connect(panel_.get(), &Panel::hovered, [&](const ReadOut& out) { read.push_back(out); });
  std::vector<CellRef> picked;
  QObject::connect(panel_.get(), &Panel::picked, [&](const CellRef& c) { picked.push_back(c); });
  auto& plot = const_cast<ScatterPlot&>(panel_->boundPlot());
  const auto dot = plot.dotAt(plot.pixelOf(0.5, 0.55) + QPointF(3, 2));
  ASSERT_TRUE(dot.has_value());
  emit plot.hovered(dot->series, dot->point);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].lines[0], "blocks.2 (3rd of 3)");
  EXPECT_EQ(read[0].lines[1], "token 3, dimension 4");
  EXPECT_EQ(read[0].lines[2], "r = 0.5");
  emit plot.picked(dot->series, dot->point);
  EXPECT_EQ(picked.at(0).dim, 4);
  EXPECT_FALSE(plot.dotAt(plot.pixelOf(0.1, 0.1)).has_value());
}

TEST_F(RescalingPanelTest, FactorsOfNormsAndAttentionStandOnOneAxis) {
  RescalingState state;
  state.snapshot = snapshot();
  show(state);
  const auto& plot = panel_->factorPlot();
  EXPECT_THAT(plot.readOutAt(plot.pixelOf(1, 0.5).x()).toStdString(),
              HasSubstr("α first token 0.28, α others 0.94, 1 − p, strongest head 0.1"));
  // The histogram: layer 1 has a fifth of its tokens between 0.25 and 0.3.
  EXPECT_FLOAT_EQ(static_cast<float>(panel_->histogram().scene()->grid().at(1, 5)), 0.2F);
  panel_->setKind(1);
  EXPECT_EQ(panel_->histogram().scene()->grid().rows(), 1);
}

TEST_F(RescalingPanelTest, WithoutProbesItSaysThatTheyDecideAndOffersThem) {
  RescalingState state;
  state.snapshot = snapshot();
  show(state);
  EXPECT_THAT(panel_->roleText().toStdString(),
              HasSubstr("Rescaler, flag or constant bias channel: only the causal probes decide"));
  std::vector<QString> asked;
  QObject::connect(panel_.get(), &RescalingPanel::probesAsked,
                   [&](const QString& dims) { asked.push_back(dims); });
  ASSERT_NE(button("Run the causal probes"), nullptr);
  button("Run the causal probes")->click();
  EXPECT_EQ(asked, (std::vector<QString>{"auto"}));
  state.obstacle = "no model: open small";
  show(state);
  EXPECT_FALSE(button("Run the causal probes")->isEnabled());
  EXPECT_FALSE(button("With the model's weights")->isEnabled());
  EXPECT_THAT(button("With the model's weights")->toolTip().toStdString(),
              HasSubstr("not computed: no model"));
}

TEST_F(RescalingPanelTest, ProbesAreBarsWithAVerdictPerReader) {
  RescalingState state;
  state.snapshot = snapshot();
  state.probes = probes();
  show(state);
  panel_->findChild<QTabWidget*>()->setCurrentIndex(1);
  settle();
  keep_picture(picture_of(*panel_), "rescaling_probes");
  const std::string role = panel_->roleText().toStdString();
  EXPECT_THAT(role, HasSubstr("FFN norms: rescaler"));
  EXPECT_THAT(role, HasSubstr("attention norms: flag"));
  EXPECT_THAT(role, Not(HasSubstr("have not been run")));
  ASSERT_EQ(panel_->bars().size(), 4U);  // one a reader
  const BarList& ffn = *panel_->bars()[2];
  const double zero = ffn.barRect(0).width(), direct = ffn.barRect(1).width();
  EXPECT_NEAR(direct / zero, 0.01 / 0.4, 0.01);
  // The same scale for all readers; negative values go to the left of the line.
  const BarList& attention = *panel_->bars()[1];
  EXPECT_NEAR(attention.barRect(0).width() / zero, 0.5, 0.01);
  EXPECT_NEAR(attention.barRect(2).right(), attention.barRect(0).left(), 1);
  const QImage picture = picture_of(const_cast<BarList&>(ffn));
  EXPECT_EQ(color_at(picture, ffn.barRect(0).center()),
            line_color(theme_palette(Theme::light), 0).rgb());
  EXPECT_THAT(panel_->valuesAsText().toStdString(), HasSubstr("FFN norms"));
}

TEST_F(RescalingPanelTest, TheFigureIsOfWhatIsSeen) {
  RescalingState state;
  auto made = std::make_shared<RescalingSnapshot>(*snapshot());
  made->request.dims = {507, 17};
  made->request.key = 3;
  state.snapshot = made;
  show(state);
  FigureRequest request = panel_->figureRequest().value();
  EXPECT_EQ(request.kind, "bound");
  EXPECT_EQ(request.dim_list, (std::vector{507, 17}));
  EXPECT_EQ(request.key, 3);
  for (QComboBox* box : panel_->findChildren<QComboBox*>())
    if (const int shares = box->findData(QStringLiteral("shares")); shares >= 0)
      box->setCurrentIndex(shares);
  request = panel_->figureRequest().value();
  EXPECT_EQ(request.kind, "shares");
  EXPECT_THAT(figure_command(request, "f.pdf"), HasSubstr("--dim-list 507,17 --key 3"));
}

TEST_F(RescalingPanelTest, EveryNormAloneIsAskedForToo) {
  show({});
  std::vector<bool> asked;
  QObject::connect(panel_.get(), &RescalingPanel::probesAsked,
                   [&](const QString&, bool each) { asked.push_back(each); });
  panel_->findChild<QCheckBox*>()->setChecked(true);
  button("Run the causal probes")->click();
  panel_->findChild<QCheckBox*>()->setChecked(false);
  button("Run the causal probes")->click();
  EXPECT_EQ(asked, (std::vector{true, false}));
}

TEST_F(RescalingPanelTest, ShowsWhyThereIsNothing) {
  RescalingState state;
  state.failure = "run.h5: no norm statistics";
  show(state);
  EXPECT_EQ(panel_->headText(), "run.h5: no norm statistics");
  EXPECT_TRUE(panel_->colorScale().grids.empty());
  EXPECT_FALSE(panel_->figureRequest().has_value());
  keep_picture(picture_of(*panel_), "rescaling_nothing");
}

}  // namespace
}  // namespace sinkscope
