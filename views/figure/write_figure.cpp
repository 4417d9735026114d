// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/write_figure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <QBuffer>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <ctime>

#include "core/error.h"
#include "views/figure/paint_map.h"

namespace sinkscope {
namespace {

// One unit of every device is a point.
constexpr int kPointsPerInch = 72;
constexpr double kInch = 0.0254;

// The same date in the same number of characters, so that the file's cross references stay right.
void set_creation_date(QByteArray& pdf, std::int64_t seconds) {
  static const QByteArray key = "/CreationDate (";
  const auto time = static_cast<std::time_t>(seconds);
  const std::string date = fmt::format("D:{:%Y%m%d%H%M%S}+00'00'", fmt::gmtime(time));
  const auto at = pdf.indexOf(key);
  const auto end = at < 0 ? -1 : pdf.indexOf(')', at);
  if (end < 0) throw Error(ErrorKind::io, "PDF: expected a /CreationDate, found none");
  const auto room = end - at - key.size();
  QByteArray text = QByteArray::fromStdString(date).left(room);
  text.append(room - text.size(), ' ');
  pdf.replace(at + key.size(), room, text);
}

// Viewers smooth what they enlarge unless told not to; the blanks keep the cross references right.
void forbid_interpolation(QByteArray& pdf) {
  static const QByteArray wish = "/Interpolate true";
  for (auto at = pdf.indexOf(wish); at >= 0; at = pdf.indexOf(wish, at))
    pdf.replace(at, wish.size(), QByteArray(wish.size(), ' '));
}

// Says so where cells share a pixel.
Figure with_pooling_note(Figure figure, double pixels_per_point) {
  const FigureLayout layout = lay_out(figure);
  for (std::size_t i = 0; i < figure.panels.size(); ++i)
    for (const FigureMap& map : figure.panels[i].maps)
      if (is_pooled(map, layout.panels[i].plot, pixels_per_point)) {
        figure.notes.push_back(
            {map.is_about_one ? "Cells that share a dot show the gain farthest from 1 by ratio."
                              : "Cells that share a pixel show the largest |x|.",
             false});
        return figure;
      }
  return figure;
}

std::string as_pdf(const Figure& figure, const FigureLayout& layout, const WriteOptions& options) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&buffer);
    writer.setResolution(kPointsPerInch);
    writer.setCreator(QStringLiteral("sinkscope"));
    writer.setTitle(QString::fromStdString(figure.title));
    writer.setPageSize(QPageSize(layout.size, QPageSize::Point, QString(), QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF());
    QPainter painter(&writer);
    PaintOptions paint;
    paint.cells = options.cells;
    paint_figure(figure, layout, paint, painter);
  }
  set_creation_date(bytes, options.creation_time);
  forbid_interpolation(bytes);
  return bytes.toStdString();
}

std::string as_svg(const Figure& figure, const FigureLayout& layout, const WriteOptions& options) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setResolution(kPointsPerInch);
    generator.setSize(layout.size.toSize());
    generator.setViewBox(QRectF(QPointF(0, 0), layout.size));
    generator.setTitle(QString::fromStdString(figure.title));
    QPainter painter(&generator);
    PaintOptions paint;
    paint.text = options.svg_text;
    paint.cells = options.cells;
    paint_figure(figure, layout, paint, painter);
  }
  bytes.replace("<image ", "<image style=\"image-rendering:pixelated\" ");
  return bytes.toStdString();
}

}  // namespace

QImage figure_image(const Figure& plain, const WriteOptions& options) {
  const double scale = static_cast<double>(options.dpi) / kPointsPerInch;
  const Figure figure = with_pooling_note(plain, scale);
  const FigureLayout layout = lay_out(figure);
  QImage image((layout.size * scale).toSize(), QImage::Format_RGB32);
  if (image.isNull())
    throw Error(ErrorKind::out_of_memory,
                fmt::format("--dpi {}: a picture of {:g} × {:g} points does not fit in memory",
                            options.dpi, layout.size.width(), layout.size.height()));
  image.fill(Qt::white);
  image.setDotsPerMeterX(qRound(kPointsPerInch / kInch));
  image.setDotsPerMeterY(qRound(kPointsPerInch / kInch));
  {
    QPainter painter(&image);
    painter.scale(scale, scale);
    PaintOptions paint;
    paint.cells = options.cells;
    paint.pixels_per_point = scale;
    paint_figure(figure, layout, paint, painter);
  }
  image.setDotsPerMeterX(qRound(options.dpi / kInch));
  image.setDotsPerMeterY(qRound(options.dpi / kInch));
  return image;
}

std::string figure_file(const Figure& plain, FigureFormat format, const WriteOptions& options) {
  const Figure figure = format == FigureFormat::png ? plain : with_pooling_note(plain, 0);
  if (format == FigureFormat::pdf) return as_pdf(figure, lay_out(figure), options);
  if (format == FigureFormat::svg) return as_svg(figure, lay_out(figure), options);
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (!figure_image(figure, options).save(&buffer, "PNG"))
    throw Error(ErrorKind::io, "PNG: cannot be encoded");
  return bytes.toStdString();
}

}  // namespace sinkscope
