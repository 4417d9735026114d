// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/flush_journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/error.h"
#include "core/side_file.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Pieces that touch, overlap, contain each other: the same as in a plain array.
TEST(HeldWrites, AreWhatAPlainArrayWouldHold) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    h5::HeldWrites held;
    std::vector<int> expected(97, -1);  // −1 = not written
    for (int i = 0; i < 1 + round % 12; ++i) {
      const int at = static_cast<int>(random() % 90);
      const int n = 1 + static_cast<int>(random() % static_cast<unsigned>(std::min(40, 97 - at)));
      std::vector<unsigned char> bytes(static_cast<std::size_t>(n));
      for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
      held.put(at, bytes.data(), bytes.size());
      std::copy(bytes.begin(), bytes.end(), expected.begin() + at);
    }
    std::vector<int> found(97, -1);
    std::int64_t end = -1;
    for (const auto& [at, bytes] : held.pieces()) {
      ASSERT_GT(at, end) << "pieces that touch are one";
      end = at + static_cast<std::int64_t>(bytes.size());
      for (std::size_t i = 0; i < bytes.size(); ++i)
        found[static_cast<std::size_t>(at) + i] = std::to_integer<int>(bytes[i]);
    }
    ASSERT_EQ(found, expected);
    ASSERT_EQ(held.end(), end);
    const int from = static_cast<int>(random() % 60), n = 1 + static_cast<int>(random() % 37);
    std::vector<unsigned char> read(static_cast<std::size_t>(n), 7);
    held.overlay(from, read.data(), read.size());
    for (int i = 0; i < n; ++i) {
      const int value = expected[static_cast<std::size_t>(from + i)];
      ASSERT_EQ(read[static_cast<std::size_t>(i)], value < 0 ? 7 : value);
    }
  }
}

TEST(HeldWrites, OnePieceWithinAPageNeedsNoJournal) {
  const std::string bytes(100, 'x');
  h5::HeldWrites held;
  held.put(4096 - 100, bytes.data(), bytes.size());
  EXPECT_TRUE(held.is_atomic());
  held.put(4096, bytes.data(), 1);
  EXPECT_FALSE(held.is_atomic());
  h5::HeldWrites two;
  two.put(0, bytes.data(), 10);
  two.put(50, bytes.data(), 10);
  EXPECT_FALSE(two.is_atomic());
}

class FlushJournal : public testing::Test {
 protected:
  // A file of 9,000 letters a and the journal of a flush that puts B's and C's into it, as a
  // process leaves them that is killed before it has changed the file.
  FlushJournal() {
    write_bytes(path_, std::string(9000, 'a'));
    held_.put(10, "BBB", 3);
    held_.put(5000, "CCCC", 4);
    const Descriptor unwritable(path_, O_RDONLY);
    EXPECT_THROW(h5::write_journaled(path_, unwritable.fd(), held_), Error);
  }
  std::string expected() const {
    std::string bytes(9000, 'a');
    return bytes.replace(10, 3, "BBB").replace(5000, 4, "CCCC");
  }
  std::string path_ = test::scratch_folder() + "/f.h5", journal_ = path_ + ".redo";
  h5::HeldWrites held_;
};

TEST_F(FlushJournal, FinishesAFlushThatWasBrokenOff) {
  ASSERT_TRUE(fs::exists(journal_));
  h5::finish_flush(path_);
  EXPECT_EQ(bytes_of(path_), expected());
  EXPECT_FALSE(fs::exists(journal_));
  h5::finish_flush(path_);  // nothing is left to do
  EXPECT_EQ(bytes_of(path_), expected());
}

TEST_F(FlushJournal, LeavesAFileAloneThatIsBeingWritten) {
  const Descriptor writer(path_, O_RDWR);
  ASSERT_EQ(::flock(writer.fd(), LOCK_EX | LOCK_NB), 0);
  h5::finish_flush(path_);
  EXPECT_EQ(bytes_of(path_), std::string(9000, 'a'));
  EXPECT_TRUE(fs::exists(journal_));
}

TEST_F(FlushJournal, ADamagedJournalIsSaidAndChangesNothing) {
  const std::string whole = bytes_of(journal_);
  ASSERT_GT(whole.size(), 7U);
  const auto expect_refusal = [&](const std::string& bytes, std::size_t at) {
    write_bytes(journal_, bytes);
    try {
      h5::finish_flush(path_);
      ADD_FAILURE() << "taken with byte " << at << " changed";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_THAT(error.what(), HasSubstr("f.h5.redo: expected the journal of a flush"));
    }
    EXPECT_EQ(bytes_of(path_), std::string(9000, 'a'));
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    expect_refusal(bytes, at);
    expect_refusal(whole.substr(0, at), at);
  }
  expect_refusal(whole + "x", whole.size());
}

// A journal may not make a file longer.
TEST_F(FlushJournal, APieceBeyondTheEndIsRefused) {
  fs::resize_file(path_, 5003);
  EXPECT_THROW(h5::finish_flush(path_), Error);
  EXPECT_EQ(bytes_of(path_), std::string(5003, 'a'));
}

TEST_F(FlushJournal, ALinkInItsPlaceIsNotFollowed) {
  fs::rename(journal_, path_ + ".elsewhere");
  fs::create_symlink(path_ + ".elsewhere", journal_);
  EXPECT_THROW(h5::finish_flush(path_), Error);
  EXPECT_EQ(bytes_of(path_), std::string(9000, 'a'));
}

}  // namespace
}  // namespace sinkscope
