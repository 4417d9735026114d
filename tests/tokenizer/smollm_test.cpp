// SPDX-License-Identifier: GPL-3.0-or-later
// The demo model's tokenizer: SINKSCOPE_DEMO_MODEL, else the GGUF file in the project's demo
// folder.
#include <gmock/gmock.h>

#include <cstdlib>
#include <sstream>

#include "capture/checkpoint/gguf_file.h"
#include "capture/tokenizer/tokenizer.h"
#include "tests/support/demo_model.h"
#include "tests/support/shared_files.h"
#include "tests/tokenizer/golden.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SmolLm2 : public ::testing::Test {
 protected:
  void SetUp() override {
    SINKSCOPE_REQUIRE_DEMO_MODEL(path);
    tokenizer_ = open_gguf_tokenizer(*GgufFile::open(path));
  }
  std::vector<int> ids(const std::string& text) const { return tokenizer_->encode(text).ids; }

  std::unique_ptr<Tokenizer> tokenizer_;
};

// Ids of transformers 5.23.0 / tokenizers 0.23.3 on the same vocabulary, with the Digits and
// ByteLevel pre-tokenizers of the model's own tokenizer.json.
TEST_F(SmolLm2, TextsGiveTheKnownIds) {
  EXPECT_EQ(tokenizer_->name(), "gguf:gpt2/smollm");
  EXPECT_THAT(ids("Hello world"), ElementsAre(19556, 905));
  EXPECT_THAT(ids("It's 2024, isn't it?"),
              ElementsAre(1589, 506, 216, 34, 32, 34, 36, 28, 3247, 982, 357, 47));
  EXPECT_THAT(ids("Café naïve — Zürich"),
              ElementsAre(51, 1939, 2756, 15486, 46494, 1841, 1777, 7170, 5130));
  EXPECT_THAT(ids("我说 Seán\n 😊"),
              ElementsAre(19805, 235, 16313, 129, 1268, 17864, 198, 40303, 228));
  EXPECT_THAT(ids("a 12345 b"), ElementsAre(81, 216, 33, 34, 35, 36, 37, 278));
  EXPECT_THAT(ids("  two  spaces\t\ttabs\r\n"),
              ElementsAre(216, 827, 216, 5600, 197, 197, 100, 7366, 2738));
  EXPECT_THAT(ids("x² ½ ٣"), ElementsAre(104, 19133, 216, 16738, 216, 164, 113));
}

TEST_F(SmolLm2, ControlTokensInTheTextAreMatchedAndNoBosIsAdded) {
  const Encoding encoding = tokenizer_->encode("<|im_start|>user\nHi<|im_end|>");
  EXPECT_THAT(encoding.ids, ElementsAre(1, 4093, 198, 26843, 2));
  EXPECT_EQ(tokenizer_->bos_id(), 1);
  EXPECT_THAT(encoding.bos_positions, ElementsAre(0));
  EXPECT_THAT(encoding.warnings, IsEmpty());
  EXPECT_EQ(tokenizer_->vocab_size(), 49152);
}

TEST_F(SmolLm2, TheOraclesTextGivesTheOraclesIds) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/smollm2/ids512.txt");
  const std::string text = test::read_text_file("/usr/share/common-licenses/GPL-3");
  if (text.empty()) GTEST_SKIP() << "needs Debian's copy of the GPL-3";
  std::istringstream words(test::read_text_file(path));
  std::vector<int> expected;
  for (std::string word; std::getline(words, word, ',');) expected.push_back(std::stoi(word));
  ASSERT_EQ(expected.size(), 512u);
  std::vector<int> found = ids(text);
  ASSERT_GT(found.size(), 512u);
  found.resize(512);
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace sinkscope
