// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sha256.h"

#include <openssl/evp.h>

#include "core/error.h"

namespace sinkscope {

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> evp{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (context_->evp == nullptr ||
      EVP_DigestInit_ex(context_->evp.get(), EVP_sha256(), nullptr) != 1)
    throw Error(ErrorKind::unsupported, "this OpenSSL cannot compute SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::add(const void* data, std::size_t n) {
  EVP_DigestUpdate(context_->evp.get(), data, n);
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  EVP_DigestFinal_ex(context_->evp.get(), digest, &n);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < n; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace sinkscope
