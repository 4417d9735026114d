// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "capture/checkpoint/model_files.h"
#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

// A hub cache in a scratch folder, found through HF_HUB_CACHE.
class HubCache : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = scratch_folder();
    setenv("HF_HUB_CACHE", root_.c_str(), 1);
    repo_ = root_ + "/models--tiny--llama";
  }
  void TearDown() override { unsetenv("HF_HUB_CACHE"); }

  // Every file of a snapshot is a link into blobs, as the hub's client lays it out.
  void add_snapshot(const std::string& commit) {
    const std::string whole = tiny_folder().write(scratch_folder());
    const std::string snapshot = repo_ + "/snapshots/" + commit;
    fs::create_directories(snapshot);
    fs::create_directories(repo_ + "/blobs");
    for (const char* name : {"config.json", "model.safetensors"}) {
      const std::string blob = commit + "." + name;
      fs::copy(whole + "/" + name, repo_ + "/blobs/" + blob);
      fs::create_symlink("../../blobs/" + blob, snapshot + "/" + name);
    }
  }
  void set_main(const std::string& text) {
    fs::create_directories(repo_ + "/refs");
    write_bytes(repo_ + "/refs/main", text);
  }

  std::string root_, repo_;
};

TEST_F(HubCache, NamesLeadToTheSnapshotOfMain) {
  add_snapshot("aaa");
  add_snapshot("bbb");
  set_main("bbb\n");
  const auto model = open_model("tiny/llama");
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_EQ(model->path(), repo_ + "/snapshots/bbb");
  EXPECT_EQ(model->spec().name, "tiny/llama");
  EXPECT_EQ(open_model(repo_)->path(), repo_ + "/snapshots/bbb");
  EXPECT_EQ(open_model(repo_ + "/snapshots/aaa")->spec().name, "tiny/llama");
}

TEST_F(HubCache, AFileOfARepositoryIsNamedBehindIt) {
  const auto tiny = open_model(tiny_folder().write(scratch_folder()));
  const std::string snapshot = repo_ + "/snapshots/aaa";
  fs::create_directories(snapshot);
  write_gguf(*tiny, snapshot + "/m.Q4_0.gguf");
  write_gguf(*tiny, snapshot + "/m.Q8_0.gguf");
  EXPECT_THAT(failure_of([] { open_model("tiny/llama"); }).second,
              HasSubstr("name one: m.Q4_0.gguf, m.Q8_0.gguf"));
  EXPECT_EQ(open_model("tiny/llama/m.Q8_0.gguf")->path(), snapshot + "/m.Q8_0.gguf");
  EXPECT_EQ(failure_of([] { open_model("tiny/llama/m.Q5_0.gguf"); }).first, ErrorKind::not_found);
}

TEST_F(HubCache, WithoutMainOneSnapshotIsTakenSeveralAreNamed) {
  add_snapshot("aaa");
  EXPECT_EQ(open_model("tiny/llama")->path(), repo_ + "/snapshots/aaa");
  add_snapshot("bbb");
  const auto [kind, message] = failure_of([] { open_model("tiny/llama"); });
  EXPECT_EQ(kind, ErrorKind::not_found);
  EXPECT_THAT(message, AllOf(HasSubstr("2 snapshots"), HasSubstr("aaa, bbb")));
  set_main("ccc");
  EXPECT_THAT(failure_of([] { open_model("tiny/llama"); }).second,
              HasSubstr("refs/main names snapshot ccc, the cache holds aaa, bbb"));
}

TEST_F(HubCache, ABrokenLinkIsAnIncompleteDownload) {
  add_snapshot("aaa");
  fs::remove(repo_ + "/blobs/aaa.model.safetensors");
  const auto [kind, message] = failure_of([] { open_model("tiny/llama"); });
  EXPECT_EQ(kind, ErrorKind::not_found);
  EXPECT_THAT(message, HasSubstr("incomplete download?"));
}

TEST_F(HubCache, WhatIsNowhereSaysWhereItWasLookedFor) {
  for (const char* name : {"tiny/other", "../models--tiny--llama", "a/b/c", "/absent"}) {
    const auto [kind, message] = failure_of([&] { open_model(name); });
    EXPECT_EQ(kind, ErrorKind::not_found) << name;
    EXPECT_THAT(message, AllOf(HasSubstr(name), HasSubstr(root_)));
  }
}

TEST_F(HubCache, TheCacheIsFoundByTheUsualVariables) {
  EXPECT_EQ(hub_cache_folder(), root_);
  unsetenv("HF_HUB_CACHE");
  setenv("HUGGINGFACE_HUB_CACHE", "/an/old/name", 1);
  EXPECT_EQ(hub_cache_folder(), "/an/old/name");
  unsetenv("HUGGINGFACE_HUB_CACHE");
  setenv("HF_HOME", "/some/home", 1);
  EXPECT_EQ(hub_cache_folder(), "/some/home/hub");
  unsetenv("HF_HOME");
  setenv("XDG_CACHE_HOME", "/some/cache", 1);
  EXPECT_EQ(hub_cache_folder(), "/some/cache/huggingface/hub");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(hub_cache_folder(), "/home/someone/.cache/huggingface/hub");
}

}  // namespace
}  // namespace sinkscope
