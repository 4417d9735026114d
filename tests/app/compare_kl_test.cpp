// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/capture_reader.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::cli;
using test::CliRun;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kModel = SINKSCOPE_SOURCE_DIR "/sample_data/planted";

TEST(CompareKl, RefusesWhatIsNotTwoModelsOfOneVocabulary) {
  EXPECT_EQ(cli({"compare", "--kl", kModel}).code, 2);
  EXPECT_EQ(cli({"compare", "--kl", kModel, kModel, kModel}).code, 2);
  EXPECT_EQ(cli({"compare", "--kl", kModel, kModel, "--tolerance", "1"}).code, 2);
  const CliRun captures = cli({"compare", "a.h5", "b.h5", "--text", "x"});
  EXPECT_EQ(captures.code, 2);
  EXPECT_THAT(captures.err, HasSubstr("belong to --kl"));
  EXPECT_EQ(cli({"compare", "a.h5", "b.h5", "--dtype", "bfloat16"}).code, 2);
}

#ifdef SINKSCOPE_WITH_TORCH

// A copy of the planted model, with one of its files changed.
std::string changed_model(const std::string& file,
                          const std::function<void(std::string& bytes)>& change) {
  const std::string folder = test::scratch_folder() + "/m";
  fs::copy(kModel, folder);
  std::string bytes = test::read_file(folder + "/" + file);
  change(bytes);
  test::write_file(folder, file, bytes);
  return folder;
}

TEST(CompareKl, AnotherTokenBehindAnIdIsRefusedByName) {
  const std::string other = changed_model("tokenizer.json", [](std::string& text) {
    auto json = nlohmann::ordered_json::parse(text);
    auto& words = json["model"]["vocab"];
    std::swap(words["a"], words["b"]);
    text = json.dump();
  });
  const CliRun run = cli({"compare", "--kl", kModel, other, "--text", "abc"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("one vocabulary"), HasSubstr("\"a\""), HasSubstr("\"b\"")));
}

TEST(CompareKl, AnotherNumberOfTokensIsRefusedWithBoth) {
  const std::string other = test::scratch_folder() + "/m";
  fs::copy(kModel, other);
  const CliRun made = test::shell(
      "python3 - <<'EOF'\n"
      "import json, struct\n"
      "f = open('m/model.safetensors', 'rb').read()\n"
      "n = struct.unpack('<Q', f[:8])[0]\n"
      "h, d, out, data = json.loads(f[8:8 + n]), f[8 + n:], {}, b''\n"
      "for k, t in h.items():\n"
      "    if k == '__metadata__': continue\n"
      "    b = d[t['data_offsets'][0]:t['data_offsets'][1]]\n"
      "    if t['shape'][0] == 257: b = b[:len(b) // 257 * 256]; t['shape'][0] = 256\n"
      "    t['data_offsets'] = [len(data), len(data) + len(b)]; data += b; out[k] = t\n"
      "s = json.dumps(out).encode(); s += b' ' * (-len(s) % 8)\n"
      "open('m/model.safetensors', 'wb').write(struct.pack('<Q', len(s)) + s + data)\n"
      "c = json.load(open('m/config.json')); c['vocab_size'] = 256\n"
      "json.dump(c, open('m/config.json', 'w'))\n"
      "EOF\n",
      fs::path(other).parent_path().string());
  ASSERT_EQ(made.code, 0) << made.err;
  const CliRun run = cli({"compare", "--kl", kModel, other, "--tokens", "1,2,3"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("for 257 tokens"), HasSubstr("for 256")));
}

// The gain of the last norm halved: logits z become z / 2, and KL(softmax(z) || softmax(z/2)) is a
// sum over the recorded logits of the first model alone.
TEST(CompareKl, HalvedLogitsGiveTheClosedForm) {
  const std::string half = changed_model("model.safetensors", [](std::string& bytes) {
    std::uint64_t n = 0;
    std::memcpy(&n, bytes.data(), sizeof n);
    const auto header = nlohmann::json::parse(bytes.substr(8, n));
    const auto& tensor = header["model.norm.weight"];
    ASSERT_EQ(tensor["dtype"], "F32");
    for (std::size_t at = tensor["data_offsets"][0]; at < tensor["data_offsets"][1]; at += 4) {
      float gain = 0;
      std::memcpy(&gain, bytes.data() + 8 + n + at, 4);
      gain /= 2;
      std::memcpy(bytes.data() + 8 + n + at, &gain, 4);
    }
  });
  const std::string folder = test::scratch_folder(), ids = "256,12,250,7,99,31,31,64,3";
  const CliRun run =
      cli({"compare", "--kl", kModel, half, "--tokens", ids, "--threads", "1", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(cli({"capture", kModel, "--tokens", ids, "--threads", "1", "--record", "stats,logits",
                 "-o", folder + "/a.h5"})
                .code,
            0);
  const auto reader = CaptureReader::open(folder + "/a.h5");
  const std::vector<float> z = reader->read_f32("run0", "logits/full");
  const std::vector<float> loss = reader->read_f32("run0", "logits/loss");
  constexpr std::size_t kTokens = 9, kVocabulary = 257;
  const auto& found = json["runs"][0]["per_token"];
  ASSERT_EQ(found["kl"].size(), kTokens - 1);
  double sum_kl = 0;
  for (std::size_t t = 0; t + 1 < kTokens; ++t) {
    double whole = 0, halved = 0, mean = 0;  // Σ e^z, Σ e^{z/2}, Σ z e^z
    for (std::size_t v = 0; v < kVocabulary; ++v) {
      const double logit = z[t * kVocabulary + v];
      whole += std::exp(logit);
      halved += std::exp(logit / 2);
      mean += logit * std::exp(logit);
    }
    const double kl = mean / whole / 2 - std::log(whole) + std::log(halved);
    EXPECT_NEAR(found["kl"][t].get<double>(), kl, 2e-6 + 1e-5 * kl);
    EXPECT_GT(kl, 1e-4);
    EXPECT_NEAR(found["loss_a"][t].get<double>(), loss[t], 1e-6);
    sum_kl += kl;
  }
  EXPECT_NEAR(json["kl"]["mean"].get<double>(), sum_kl / (kTokens - 1), 1e-5);
  const std::string csv =
      cli({"compare", "--kl", kModel, half, "--tokens", ids, "--threads", "1", "--csv"}).out;
  EXPECT_EQ(test::n_lines(csv), static_cast<int>(kTokens));
}

TEST(CompareKl, AModelEqualsItselfAndTheHelpNamesTheKeys) {
  const CliRun run = cli({"compare", "--kl", kModel, kModel, "--text", "hello there", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["kl"]["max"], 0);
  EXPECT_EQ(json["loss"]["a"], json["loss"]["b"]);
  const std::string help = cli({"compare", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
  for (const auto& [key, value] : json["runs"][0].items()) EXPECT_THAT(help, HasSubstr(key)) << key;
  const CliRun text = cli({"compare", "--kl", kModel, kModel, "--text", "hello there"});
  EXPECT_THAT(text.out, HasSubstr("KL(A || B)  mean 0   max 0"));
}

#endif  // SINKSCOPE_WITH_TORCH

}  // namespace
}  // namespace sinkscope
