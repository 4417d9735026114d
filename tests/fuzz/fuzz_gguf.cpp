// SPDX-License-Identifier: GPL-3.0-or-later
// Any bytes as a GGUF file: header, description, tokenizer, or one Error each.
#include <cstdlib>

#include "capture/checkpoint/gguf_config.h"
#include "capture/checkpoint/gguf_header.h"
#include "capture/tokenizer/tokenizer.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// The header as a file without values.
class HeaderFile : public GgufFile {
 public:
  explicit HeaderFile(GgufHeader header) : header_(std::move(header)) {
    for (GgufTensor& tensor : header_.tensors) infos_.push_back(tensor.info);
  }
  const GgufValue* find_key(const std::string& key) const override { return header_.find_key(key); }
  const std::vector<std::string>& keys() const override { return header_.keys; }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  void read_rows(int, std::int64_t, std::int64_t, float*) const override {}
  void read_raw(int, std::uint64_t, std::uint64_t, void*) const override {}

 private:
  GgufHeader header_;
  std::vector<TensorInfo> infos_;
};

void read(const std::string& bytes) {
  const FileReader reader("fuzz.gguf", bytes);
  GgufHeader header = read_gguf_header(reader);
  for (const GgufTensor& tensor : header.tensors)
    if (tensor.offset > bytes.size() || tensor.info.n_bytes > bytes.size() - tensor.offset)
      if (tensor.info.n_bytes > 0) std::abort();
  const HeaderFile file(std::move(header));
  describe_gguf(file, "fuzz.gguf");
  const auto tokenizer = open_gguf_tokenizer(file);
  const Encoding encoding = tokenizer->encode("Ab <s> 12 \u00e9");
  for (const int id : encoding.ids)
    if (id < 0 || id >= tokenizer->vocab_size()) std::abort();
  tokenizer->labels(encoding.ids);
}

}  // namespace
}  // namespace sinkscope

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    sinkscope::read(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const sinkscope::Error&) {
  }
  return 0;
}
