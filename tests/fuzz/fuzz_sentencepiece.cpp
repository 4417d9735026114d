// SPDX-License-Identifier: GPL-3.0-or-later
// Any bytes as tokenizer.model: what our own look at it lets through must not hurt the library.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "capture/tokenizer/tokenizer.h"
#include "core/error.h"

namespace {

// The place of one file, filled again and again.
struct Folder {
  Folder() {
    path = access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : "/tmp/";
    path += "sinkscope-fuzz-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Folder() {
    unlink((path + "/tokenizer.model").c_str());
    rmdir(path.c_str());
  }
  std::string path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sinkscope;
  static const Folder folder;
  const std::string path = folder.path + "/tokenizer.model";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  close(file);
  try {
    const auto tokenizer = open_sentencepiece_tokenizer(path);
    const Encoding encoding = tokenizer->encode("Ab ab  <s>1\u00e9\n\u3000x");
    for (const int id : encoding.ids)
      if (id < 0 || id >= (1 << 24)) std::abort();
    tokenizer->labels(encoding.ids);
  } catch (const Error&) {
  }
  return 0;
}
