// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/descriptor_buffer.h"

#include <unistd.h>

#include <cerrno>

namespace sinkscope {

DescriptorBuffer::DescriptorBuffer(int descriptor) : descriptor_(descriptor) {
  setp(bytes_.data(), bytes_.data() + bytes_.size());
}

DescriptorBuffer::~DescriptorBuffer() { write_out(); }

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type c) {
  if (!write_out()) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

int DescriptorBuffer::sync() { return write_out() ? 0 : -1; }

bool DescriptorBuffer::write_out() {
  const char* at = pbase();
  bool ok = true;
  while (at < pptr() && ok && !reader_is_gone_) {
    const ssize_t written = ::write(descriptor_, at, static_cast<std::size_t>(pptr() - at));
    if (written >= 0) {
      at += written;
    } else if (errno == EPIPE) {
      reader_is_gone_ = true;
    } else if (errno != EINTR) {
      ok = false;
    }
  }
  setp(bytes_.data(), bytes_.data() + bytes_.size());
  return ok;
}

}  // namespace sinkscope
