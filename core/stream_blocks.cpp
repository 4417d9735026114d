// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stream_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <future>

#include "core/error.h"
#include "core/state_rows.h"

namespace sinkscope {
namespace {

constexpr const char* kStream = "residual/stream";
constexpr std::int64_t kBlockBytes = 16 << 20;
// Less is visited sooner than a thread has begun.
constexpr std::int64_t kLeastForAThread = 1 << 16;

// The stream of one run, read a block of a site at a time.
class Stream {
 public:
  Stream(const CaptureReader& reader, const std::string& run)
      : reader_(reader),
        run_(run),
        dims_(reader.dims(run, kStream)),
        seq_len_(reader.dims(run, "input/token_ids").at(0)) {}

  std::int64_t seq_len() const { return seq_len_; }

  // Throws Error{corrupt} unless the site is there with as many values a token as expected.
  void require(const StreamSite& site) const {
    const bool is_stream = dims_.size() == 3 || dims_.size() == 4;  // [S,T,D] or [S,T,N_r,D]
    if (is_stream && site.index >= 0 && site.index < dims_[0] && dims_[1] == seq_len_ &&
        site.width == (dims_.size() == 4 ? dims_[2] * dims_[3] : dims_[2]))
      return;
    throw Error(ErrorKind::corrupt, fmt::format("{}::{}/{}: expected [S > {}, {}, {}], found [{}]",
                                                reader_.path(), run_, kStream, site.index, seq_len_,
                                                site.width, fmt::join(dims_, ", ")));
  }
  void read(int site, std::int64_t begin, std::int64_t n, std::vector<float>& into) const {
    const StateBox box = state_box(dims_, site, begin, n);
    reader_.read_f32_into(run_, kStream, box.start, box.count, into);
  }

 private:
  const CaptureReader& reader_;
  std::string run_;
  std::vector<std::int64_t> dims_;
  std::int64_t seq_len_;
};

// Calls `visit` with the rows [begin, begin + n) of each block.
void for_each_range(std::int64_t seq_len, int width,
                    const std::function<void(std::int64_t begin, std::int64_t n)>& visit) {
  const std::int64_t step =
      std::max<std::int64_t>(1, kBlockBytes / (4 * std::max<std::int64_t>(1, width)));
  for (std::int64_t t = 0; t < seq_len; t += step) visit(t, std::min(step, seq_len - t));
}

}  // namespace

void for_each_stream_block(const CaptureReader& reader, const std::string& run, int site, int width,
                           const std::function<void(int, const ConstMapF&)>& visit) {
  const Stream stream(reader, run);
  stream.require({site, width});
  std::vector<float> block;
  for_each_range(stream.seq_len(), width, [&](std::int64_t t, std::int64_t n) {
    stream.read(site, t, n, block);
    visit(static_cast<int>(t), ConstMapF(block.data(), n, width));
  });
}

void for_each_stream_block(const CaptureReader& reader, const std::string& run,
                           const std::vector<StreamSite>& sites,
                           const std::function<void(std::size_t, int, const ConstMapF&)>& visit) {
  const Stream stream(reader, run);
  std::array<std::vector<float>, 2> blocks;  // one is visited while the other one is filled
  std::size_t turn = 0;
  std::future<void> visiting;  // after the blocks: gone before they are
  for (std::size_t slot = 0; slot < sites.size(); ++slot) {
    const int width = sites[slot].width;
    stream.require(sites[slot]);
    for_each_range(stream.seq_len(), width, [&](std::int64_t t, std::int64_t n) {
      std::vector<float>& block = blocks[turn];
      turn = 1 - turn;
      stream.read(sites[slot].index, t, n, block);
      if (visiting.valid()) visiting.get();
      visiting =
          std::async(n * width < kLeastForAThread ? std::launch::deferred : std::launch::async,
                     [&visit, &block, slot, t, n, width] {
                       visit(slot, static_cast<int>(t), ConstMapF(block.data(), n, width));
                     });
    });
  }
  if (visiting.valid()) visiting.get();
}

}  // namespace sinkscope
