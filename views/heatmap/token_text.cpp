// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/token_text.h"

#include <QStringDecoder>
#include <QTextBoundaryFinder>

namespace sinkscope {

namespace {

// Bytes of the UTF-8 character at `at`, or 0 when there is none.
int character_size(const std::string& text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const int size = byte < 0x80   ? 1
                   : byte < 0xC2 ? 0
                   : byte < 0xE0 ? 2
                   : byte < 0xF0 ? 3
                   : byte < 0xF5 ? 4
                                 : 0;
  if (size == 0 || at + size > text.size()) return 0;
  QStringDecoder decoder(QStringDecoder::Utf8, QStringDecoder::Flag::Stateless);
  const QString decoded = decoder(QByteArrayView(text.data() + at, size));
  return decoder.hasError() || decoded.isEmpty() ? 0 : size;
}

QString cut(const QString& text, int at_most) {
  QTextBoundaryFinder finder(QTextBoundaryFinder::Grapheme, text);
  for (int n = 0; n < at_most; ++n)
    if (finder.toNextBoundary() < 0) return text;
  if (finder.position() >= text.size()) return text;
  finder.toPreviousBoundary();
  return text.left(finder.position()) + QChar(0x2026);
}

}  // namespace

QString token_text(const std::string& token, int at_most) {
  QString text, bytes;
  const auto close_bytes = [&] {
    if (!bytes.isEmpty()) text += QChar(0x27E8) + bytes + QChar(0x27E9);
    bytes.clear();
  };
  for (std::size_t i = 0; i < token.size();) {
    const int size = character_size(token, i);
    const auto byte = static_cast<unsigned char>(token[i]);
    if (size == 1 && (byte == '\n' || byte == '\t')) {
      close_bytes();
      text += QChar(byte == '\n' ? 0x23CE : 0x21E5);
    } else if (size == 0 || byte < 0x20 || byte == 0x7F) {
      if (!bytes.isEmpty()) bytes += ' ';
      bytes += QString::number(byte, 16).rightJustified(2, '0').toUpper();
    } else {
      close_bytes();
      text += QString::fromUtf8(token.data() + i, size);
    }
    i += std::max(size, 1);
  }
  close_bytes();
  return cut(text, at_most);
}

}  // namespace sinkscope
