// SPDX-License-Identifier: GPL-3.0-or-later
// How fast tensor types become float32, in bytes of float32 a second, out of a buffer in memory.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "capture/checkpoint/gguf_types.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kElements = std::int64_t{1} << 20;

void dequantize(benchmark::State& state, std::uint32_t type_id) {
  const GgufType& type = *find_gguf_type(type_id);
  const std::int64_t n_blocks = kElements / type.block_elements;
  // Any bytes will do: the decoders branch on none of them.
  std::vector<std::uint8_t> blocks(static_cast<std::size_t>(n_blocks * type.block_bytes));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = static_cast<std::uint8_t>(i * 37 % 59);
  std::vector<float> out(kElements);
  for (auto _ : state) {
    type.decode(blocks.data(), n_blocks, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetLabel(type.name);
  state.SetBytesProcessed(state.iterations() * kElements * 4);
}

// Ids of GGUF: F16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K, IQ4_XS, BF16.
BENCHMARK_CAPTURE(dequantize, f16, 1);
BENCHMARK_CAPTURE(dequantize, q4_0, 2);
BENCHMARK_CAPTURE(dequantize, q4_1, 3);
BENCHMARK_CAPTURE(dequantize, q8_0, 8);
BENCHMARK_CAPTURE(dequantize, q4_k, 12);
BENCHMARK_CAPTURE(dequantize, q6_k, 14);
BENCHMARK_CAPTURE(dequantize, iq4_xs, 23);
BENCHMARK_CAPTURE(dequantize, bf16, 30);

}  // namespace
}  // namespace sinkscope
