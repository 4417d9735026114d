// SPDX-License-Identifier: GPL-3.0-or-later
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::uint64_t kEdge = 4096;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw Error(ErrorKind::unsupported, "this OpenSSL cannot compute SHA-256");
  }
  void add(const void* data, std::size_t n) { EVP_DigestUpdate(context_.get(), data, n); }
  std::string hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &n);
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < n; ++i) {
      text += kDigits[digest[i] >> 4];
      text += kDigits[digest[i] & 15];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string fingerprint(const Checkpoint& checkpoint) {
  const std::vector<TensorInfo>& tensors = checkpoint.tensors();
  std::vector<int> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return tensors[static_cast<std::size_t>(a)].name < tensors[static_cast<std::size_t>(b)].name;
  });
  Sha256 hash;
  std::vector<char> edge(kEdge);
  for (const int index : order) {
    const TensorInfo& tensor = tensors[static_cast<std::size_t>(index)];
    std::string header = tensor.name + '\0' + tensor.dtype + '\0';
    for (const std::int64_t dim : tensor.shape) header += std::to_string(dim) + ',';
    header += '\0';
    hash.add(header.data(), header.size());
    const std::uint64_t n = std::min(kEdge, tensor.n_bytes);
    for (const std::uint64_t offset : {std::uint64_t{0}, tensor.n_bytes - n}) {
      checkpoint.read_raw(index, offset, n, edge.data());
      hash.add(edge.data(), n);
    }
  }
  return hash.hex();
}

}  // namespace sinkscope
