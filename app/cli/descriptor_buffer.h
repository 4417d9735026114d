// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <streambuf>

namespace sinkscope {

// An output buffer over a file descriptor for which a closed pipe is no error: `sinkscope … | head`
// ends quietly. Once the reader is gone everything written is dropped; any other failure (a full
// disk) fails the stream. The process must ignore SIGPIPE.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor);
  ~DescriptorBuffer() override;

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  bool write_out();

  int descriptor_;
  bool reader_is_gone_ = false;
  std::array<char, 1 << 16> bytes_;
};

}  // namespace sinkscope
