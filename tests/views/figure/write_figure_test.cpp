// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/write_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QFile>
#include <QImage>
#include <QPainter>
#include <QProcess>
#include <QSvgRenderer>
#include <cmath>
#include <limits>

#include "core/draw/colormap.h"
#include "core/error.h"
#include "tests/support/shared_files.h"
#include "tests/views/figure/hand_made.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string scratch_file(const std::string& name, const std::string& bytes) {
  const std::string path = test::scratch_folder() + "/" + name;
  QFile file(QString::fromStdString(path));
  EXPECT_TRUE(file.open(QIODevice::WriteOnly));
  file.write(bytes.data(), static_cast<qint64>(bytes.size()));
  return path;
}

// Standard output of a program that has to be there (poppler-utils is among the packages of ./dev).
std::string output_of(const QString& program, const QStringList& arguments) {
  QProcess process;
  process.start(program, arguments);
  EXPECT_TRUE(process.waitForFinished(30000)) << program.toStdString();
  EXPECT_EQ(process.exitCode(), 0) << process.readAllStandardError().toStdString();
  return process.readAllStandardOutput().toStdString();
}

std::string text_of_pdf(const std::string& pdf) {
  return output_of("pdftotext",
                   {"-layout", QString::fromStdString(scratch_file("f.pdf", pdf)), "-"});
}

// The first image of a PDF, as it is stored.
QImage image_of_pdf(const std::string& pdf) {
  const QString path = QString::fromStdString(scratch_file("f.pdf", pdf));
  const QString stem = QString::fromStdString(test::scratch_folder()) + "/image";
  output_of("pdfimages", {"-png", path, stem});
  return QImage(stem + "-000.png");
}

void expect_cells(const QImage& image, const FigureMap& map, const FigureColors& colors) {
  ASSERT_EQ(image.width(), map.grid.cols());
  ASSERT_EQ(image.height(), map.grid.rows());
  for (int row = 0; row < map.grid.rows(); ++row)
    for (int col = 0; col < map.grid.cols(); ++col)
      ASSERT_EQ(image.pixel(col, row) | 0xFF000000U,
                color_of(map.grid.at(row, col), colors.range, colors.map))
          << row << ", " << col;
}

TEST(FieldCases, FC82_ThePdfHoldsExactlyTheColorOfEachCell) {
  for (const Figure& figure : {test::plain_map(64, 48), test::map_figure()}) {
    const QImage image = image_of_pdf(figure_file(figure, FigureFormat::pdf, {}));
    expect_cells(image, figure.panels[0].maps[0], figure.colors[0]);
  }
}

TEST(FieldCases, FC81_TheSameFigureTwiceIsTheSameBytes) {
  for (const FigureFormat format : {FigureFormat::pdf, FigureFormat::svg, FigureFormat::png}) {
    const Figure figure = test::map_figure();
    const std::string bytes = figure_file(figure, format, {});
    EXPECT_GT(bytes.size(), 1000u);
    EXPECT_EQ(bytes, figure_file(figure, format, {}));
    Figure other = figure;
    other.panels[0].title = "Another";
    EXPECT_NE(bytes, figure_file(other, format, {}));
  }
}

TEST(FieldCases, FC81_TheDateIsTheOneAskedFor) {
  WriteOptions options;
  EXPECT_THAT(figure_file(test::map_figure(), FigureFormat::pdf, options),
              HasSubstr("/CreationDate (D:20000101000000"));
  options.creation_time = 86400;
  const std::string pdf = figure_file(test::map_figure(), FigureFormat::pdf, options);
  EXPECT_THAT(pdf, HasSubstr("/CreationDate (D:19700102000000"));
  EXPECT_THAT(text_of_pdf(pdf), HasSubstr("Seven by five"));  // still a whole file
}

TEST(FieldCases, FC81_SizesAreThoseOfThePage) {
  const std::string pdf = figure_file(test::map_figure(), FigureFormat::pdf, {});
  const std::string facts =
      output_of("pdfinfo", {QString::fromStdString(scratch_file("f.pdf", pdf))});
  EXPECT_THAT(facts, HasSubstr("Pages:           1"));
  EXPECT_THAT(facts, HasSubstr("Page size:       241 x "));
  WriteOptions options;
  options.dpi = 144;
  const QImage image = figure_image(test::map_figure(), options);
  EXPECT_EQ(image.width(), 482);
  EXPECT_NEAR(image.dotsPerMeterX(), 144 / 0.0254, 1);
}

TEST(FieldCases, FC83_FontsAreEmbeddedAndNoneIsType3) {
  Figure figure = test::map_figure();
  figure.panels[0].title = "Attention of 注意力 and ★507";
  const std::string pdf = figure_file(figure, FigureFormat::pdf, {});
  const std::string fonts =
      output_of("pdffonts", {QString::fromStdString(scratch_file("f.pdf", pdf))});
  EXPECT_THAT(fonts, HasSubstr("DejaVuSans"));
  EXPECT_THAT(fonts, HasSubstr("CID TrueType"));
  EXPECT_THAT(fonts, Not(HasSubstr("Type 3")));
  EXPECT_THAT(fonts, Not(HasSubstr(" no  no ")));  // columns emb and sub
  EXPECT_THAT(fonts, HasSubstr(" yes "));
  EXPECT_THAT(text_of_pdf(pdf), HasSubstr("★507"));
}

TEST(FieldCases, FC83_TitleAxesTicksAndNotesAreSearchableText) {
  const std::string text = text_of_pdf(figure_file(test::map_figure(), FigureFormat::pdf, {}));
  for (const char* word : {"Seven by five", "Key tokens", "100", "102", "106", "Score 0.25",
                           "The convention in words.", "30"})
    EXPECT_THAT(text, HasSubstr(word));
  const std::string lines = text_of_pdf(figure_file(test::line_figure(), FigureFormat::pdf, {}));
  for (const char* word : {"Lines", "Bars", "first", "gap", "layer", "10,000", "0.5"})
    EXPECT_THAT(lines, HasSubstr(word));
}

TEST(FieldCases, FC83_SvgTextAsPathsOrAsText) {
  WriteOptions options;
  const std::string paths = figure_file(test::map_figure(), FigureFormat::svg, options);
  EXPECT_THAT(paths, Not(HasSubstr("<text")));
  options.svg_text = FigureText::as_text;
  const std::string text = figure_file(test::map_figure(), FigureFormat::svg, options);
  EXPECT_THAT(text, HasSubstr("<text"));
  EXPECT_THAT(text, HasSubstr("Seven by five"));
  EXPECT_THAT(text, HasSubstr("DejaVu Sans"));
}

TEST(FieldCases, FC84_LargeMapsAreImagesAndSmallFiles) {
  const std::string pdf = figure_file(test::plain_map(256, 256), FigureFormat::pdf, {});
  EXPECT_LT(pdf.size(), 150000u);  // as rectangles 0.6 MB
  WriteOptions options;
  options.cells = FigureCells::as_rectangles;
  EXPECT_THROW(figure_file(test::plain_map(50, 50), FigureFormat::pdf, options), Error);
  const std::string rectangles = figure_file(test::plain_map(20, 30), FigureFormat::svg, options);
  EXPECT_THAT(rectangles, Not(HasSubstr("<image")));
}

// Where a cell's center lies in a picture of `dots` pixels a point.
QRgb at_cell(const QImage& image, const Figure& figure, int row, int col, double dots) {
  const QRectF plot = lay_out(figure).panels[0].plot;
  const Grid& grid = figure.panels[0].maps[0].grid;
  const double x = plot.left() + (col + 0.5) * plot.width() / grid.cols();
  const double y = plot.top() + (row + 0.5) * plot.height() / grid.rows();
  return image.pixel(static_cast<int>(x * dots), static_cast<int>(y * dots)) | 0xFF000000U;
}

TEST(WriteFigure, PngCellsHaveTheirColors) {
  Figure figure = test::map_figure();
  figure.panels[0].boxes.clear();
  WriteOptions options;
  options.dpi = 216;
  const QImage image = figure_image(figure, options);
  for (int row = 0; row < 5; ++row)
    for (int col = 0; col < 7; ++col)
      EXPECT_EQ(at_cell(image, figure, row, col, 3),
                color_of(row * 7 + col, figure.colors[0].range, figure.colors[0].map));
}

TEST(WriteFigure, SvgRendersToTheSameCellsInBothTextModes) {
  Figure figure = test::map_figure();
  figure.panels[0].boxes.clear();
  for (const FigureText mode : {FigureText::as_paths, FigureText::as_text}) {
    WriteOptions options;
    options.svg_text = mode;
    const std::string svg = figure_file(figure, FigureFormat::svg, options);
    QSvgRenderer renderer(QByteArray::fromStdString(svg));
    ASSERT_TRUE(renderer.isValid());
    const FigureLayout layout = lay_out(figure);
    QImage image((layout.size * 4).toSize(), QImage::Format_RGB32);
    QPainter painter(&image);
    renderer.render(&painter, QRectF(QPointF(0, 0), image.size()));
    painter.end();
    // Qt's own SVG renderer smooths a little, whatever the file says.
    const Colormap& map = figure.colors[0].map;
    EXPECT_LT(color_distance(at_cell(image, figure, 4, 6, 4), color_at(1, map)), 0.02);
    EXPECT_LT(color_distance(at_cell(image, figure, 0, 0, 4), color_at(0, map)), 0.02);
    EXPECT_GT(color_distance(color_at(0, map), color_at(1, map)), 0.5);
  }
}

TEST(FieldCases, FC74_PoolingIsWrittenOnTheFigure) {
  WriteOptions options;
  options.dpi = 72;
  const int plain = figure_image(test::plain_map(100, 100), options).height();
  // 800 cells on about 230 pixels: one more line of text below the same plot.
  EXPECT_GT(figure_image(test::plain_map(800, 800), options).height(), plain + 6);
  EXPECT_THAT(text_of_pdf(figure_file(test::plain_map(800, 800), FigureFormat::pdf, {})),
              Not(HasSubstr("share")));
}

TEST(WriteFigure, OneHotCellSurvivesInASmallPicture) {
  Figure figure = test::plain_map(1500, 1500);
  std::vector<float> values(1500 * 1500, 0.0F);
  values[777 * 1500 + 333] = 250;
  figure.panels[0].maps = {{Grid(1500, 1500, values), 0, false, false}};
  WriteOptions options;
  options.dpi = 72;
  const QImage image = figure_image(figure, options);
  const QRgb hot = colormap("viridis").colors[255];
  bool is_there = false;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      is_there = is_there || (image.pixel(x, y) | 0xFF000000U) == hot;
  EXPECT_TRUE(is_there);
}

TEST(WriteFigure, MaskedCellsArePaper) {
  Figure figure = test::plain_map(6, 6);
  figure.panels[0].maps[0].grid = figure.panels[0].maps[0].grid.with_spans(causal_spans(6, 6));
  const QImage image = image_of_pdf(figure_file(figure, FigureFormat::pdf, {}));
  EXPECT_EQ(image.pixel(5, 0), 0xFFFFFFFFU);
  EXPECT_NE(image.pixel(0, 5), 0xFFFFFFFFU);
}

TEST(FieldCases, FC75_NanAndInfinitiesAreMarkedApart) {
  const float inf = std::numeric_limits<float>::infinity();
  Figure figure = test::plain_map(2, 2);
  figure.panels[0].maps[0].grid = Grid(2, 2, std::vector<float>{std::nanf(""), inf, -inf, 100});
  WriteOptions options;
  options.dpi = 144;
  const QImage image = figure_image(figure, options);
  const QRectF plot = lay_out(figure).panels[0].plot;
  const auto pixel = [&](double x, double y) {
    return image.pixel(static_cast<int>((plot.left() + x * plot.width()) * 2),
                       static_cast<int>((plot.top() + y * plot.height()) * 2)) |
           0xFF000000U;
  };
  const Colormap& map = figure.colors[0].map;
  EXPECT_EQ(pixel(0.05, 0.05), map.nan);
  EXPECT_EQ(pixel(0.55, 0.05), map.plus_inf);
  EXPECT_EQ(pixel(0.05, 0.95), map.minus_inf);
  EXPECT_LT(qGray(pixel(0.25, 0.25)), 60);    // the cross
  EXPECT_EQ(pixel(0.75, 0.27), 0xFFFFFFFFU);  // a white triangle, tip up
  EXPECT_EQ(pixel(0.75, 0.75), color_of(100, figure.colors[0].range, map));  // no mark
}

TEST(WriteFigure, EveryShapeOfMapIsDrawn) {
  const float nan = std::nanf("");
  for (const Grid& grid :
       {Grid(0, 0, std::vector<float>()), Grid(1, 1, std::vector<float>{7}),
        Grid(3, 2, std::vector<float>(6, 5.0F)), Grid(2, 3, std::vector<float>(6, nan)),
        Grid(1, 4, std::vector<double>{1e300, -1e300, 1e-310, 0})}) {
    Figure figure = test::plain_map(2, 2);
    figure.panels[0].maps[0].grid = grid;
    figure.colors[0].range = find_range(grid, RangeRequest());
    for (const FigureFormat format : {FigureFormat::pdf, FigureFormat::svg, FigureFormat::png})
      EXPECT_GT(figure_file(figure, format, {}).size(), 500u);
    if (grid.empty()) continue;
    const QImage image = image_of_pdf(figure_file(figure, FigureFormat::pdf, {}));
    EXPECT_EQ(image.width(), grid.cols());
    EXPECT_EQ(image.pixel(0, 0) | 0xFF000000U,
              color_of(grid.at(0, 0), figure.colors[0].range, figure.colors[0].map));
  }
}

TEST(WriteFigure, ADeviatingGainSurvivesOnAPageWithFewerDots) {
  // 8,192 dimensions on 85 mm: plain reduction would drop the column.
  Figure figure = test::plain_map(2, 8192);
  figure.panels[0].height_ratio = 0.3;
  std::vector<float> gains(2 * 8192, 1.0F);
  gains[8192 + 5001] = 0.001F;
  figure.panels[0].maps = {{Grid(2, 8192, gains), 0, true, false}};
  figure.colors[0].range.lo = 0.01;
  figure.colors[0].range.hi = 100;
  figure.colors[0].range.scale = Scale::log;
  const std::string pdf = figure_file(figure, FigureFormat::pdf, {});
  EXPECT_THAT(text_of_pdf(pdf), HasSubstr("farthest from 1"));
  const QImage image = image_of_pdf(pdf);
  EXPECT_LT(image.width(), 3000);
  int n_under = 0;
  for (int x = 0; x < image.width(); ++x)
    n_under += (image.pixel(x, 1) | 0xFF000000U) == figure.colors[0].map.under ? 1 : 0;
  EXPECT_EQ(n_under, 1);
}

TEST(WriteFigure, BarsStandOnTheAxisAndLinesHaveTheirColors) {
  const Figure figure = test::line_figure();
  WriteOptions options;
  options.dpi = 288;
  const QImage image = figure_image(figure, options);
  const QRectF plot = lay_out(figure).panels[1].plot;
  const auto pixel = [&](double x, double y) {
    return image.pixel(static_cast<int>((plot.left() + x * plot.width()) * 4),
                       static_cast<int>((plot.bottom() - y * plot.height()) * 4)) &
           0xFFFFFFU;
  };
  EXPECT_EQ(pixel(0.5 / 3, 0.95), 0x009E73U);
  EXPECT_EQ(pixel(1.5 / 3, 0.45), 0x009E73U);
  EXPECT_EQ(pixel(1.5 / 3, 0.55), 0xFFFFFFU);
  EXPECT_EQ(pixel(2.5 / 3, 0.30), 0xFFFFFFU);
}

// Costs of probes are of both signs: bars stand on zero, wherever the axis begins.
TEST(WriteFigure, BarsBelowZeroHangFromIt) {
  Figure figure = test::line_figure();
  FigurePanel& bars = figure.panels[1];
  bars.y = {"loss", -1, 1, false, false, {{-1, "-1"}, {0, "0"}, {1, "1"}}, {}};
  bars.series[0].y = {0.8, -0.5, 0};
  WriteOptions options;
  options.dpi = 288;
  const QImage image = figure_image(figure, options);
  const QRectF plot = lay_out(figure).panels[1].plot;
  const auto pixel = [&](double x, double y) {
    return image.pixel(static_cast<int>((plot.left() + (x + 0.5) / 3 * plot.width()) * 4),
                       static_cast<int>((plot.bottom() - (y + 1) / 2 * plot.height()) * 4)) &
           0xFFFFFFU;
  };
  EXPECT_EQ(pixel(0, 0.7), 0x009E73U);
  EXPECT_EQ(pixel(0, -0.3), 0xFFFFFFU);
  EXPECT_EQ(pixel(1, -0.4), 0x009E73U);
  EXPECT_EQ(pixel(1, -0.6), 0xFFFFFFU);
  EXPECT_EQ(pixel(1, 0.2), 0xFFFFFFU);
  EXPECT_EQ(pixel(2, 0.1), 0xFFFFFFU);
  EXPECT_EQ(pixel(2, -0.1), 0xFFFFFFU);
}

}  // namespace
}  // namespace sinkscope
