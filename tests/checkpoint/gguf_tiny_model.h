// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/checkpoint/gguf_config.h"
#include "tests/checkpoint/gguf_test_files.h"

namespace sinkscope::test {

// An opened file and what it says; `tensor` gives the name behind a role.
struct Described {
  std::unique_ptr<GgufFile> file;
  GgufModel model;
  const std::string& tensor(Role role, int layer) const {
    return file->tensors().at(static_cast<std::size_t>(model.roles.find(role, layer)->tensor)).name;
  }
};

inline Described described(const std::string& path) {
  auto file = GgufFile::open(path);
  GgufModel model = describe_gguf(*file, path);
  return {std::move(file), std::move(model)};
}

// A Llama-family file whose sizes all differ: 2 layers, 6 heads of 4 over 2 kv heads, width 10
// (q width 24), MLP 14, vocabulary 7. Change a key, leave out or reshape a tensor, then build.
struct TinyModel {
  std::string architecture = "llama";
  GgufBytes bytes;
  std::set<std::string> changed_keys, without;
  std::map<std::string, std::vector<std::int64_t>> shape;

  template <class T>
  TinyModel& key(const std::string& name, const T& value) {
    changed_keys.insert(name);
    bytes.key(architecture + "." + name, value);
    return *this;
  }
  template <class T>
  TinyModel& list(const std::string& name, const std::vector<T>& values) {
    changed_keys.insert(name);
    bytes.list(architecture + "." + name, values);
    return *this;
  }
  TinyModel& no_key(const std::string& name) {
    changed_keys.insert(name);
    return *this;
  }
  TinyModel& tensor(const std::string& name, const std::vector<std::int64_t>& dims) {
    shape[name] = dims;
    return *this;
  }

  Described describe() {
    bytes.key("general.architecture", architecture.c_str());
    const auto standard = [this](const std::string& name, auto value) {
      if (changed_keys.count(name) == 0) bytes.key(architecture + "." + name, value);
    };
    standard("block_count", std::uint32_t{2});
    standard("embedding_length", std::uint32_t{10});
    standard("feed_forward_length", std::uint32_t{14});
    standard("context_length", std::uint32_t{64});
    standard("attention.head_count", std::uint32_t{6});
    standard("attention.head_count_kv", std::uint32_t{2});
    standard("attention.key_length", std::uint32_t{4});
    standard("attention.value_length", std::uint32_t{4});
    standard("attention.layer_norm_rms_epsilon", 1e-6f);
    std::map<std::string, std::vector<std::int64_t>> all = {
        {"token_embd.weight", {7, 10}}, {"output_norm.weight", {10}}, {"output.weight", {7, 10}}};
    for (const std::string block : {"blk.0.", "blk.1."}) {
      all.insert({{block + "attn_norm.weight", {10}},
                  {block + "attn_q.weight", {24, 10}},
                  {block + "attn_k.weight", {8, 10}},
                  {block + "attn_v.weight", {8, 10}},
                  {block + "attn_output.weight", {10, 24}},
                  {block + "ffn_norm.weight", {10}},
                  {block + "ffn_gate.weight", {14, 10}},
                  {block + "ffn_up.weight", {14, 10}},
                  {block + "ffn_down.weight", {10, 14}}});
    }
    for (const auto& [name, dims] : shape) all[name] = dims;
    for (const auto& [name, dims] : all) {
      std::int64_t n = 1;
      for (const std::int64_t dim : dims) n *= dim;
      if (without.count(name) == 0) {
        bytes.floats(name, dims, std::vector<float>(static_cast<std::size_t>(n), 0.5f));
      }
    }
    return described(written(bytes));
  }
};

}  // namespace sinkscope::test
