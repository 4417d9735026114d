// SPDX-License-Identifier: GPL-3.0-or-later
// core/h5, and what a capture from a stranger may try.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "core/capture_reader.h"
#include "core/error.h"
#include "core/h5/box.h"
#include "core/h5/dataset.h"
#include "core/h5/file.h"
#include "core/h5/object.h"
#include "core/h5/raw_values.h"
#include "tests/support/h5_reference.h"
#include "tests/support/sample_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using testing::HasSubstr;
using Dims = std::vector<std::int64_t>;

template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "expected an Error";
  return {ErrorKind::io, "none"};
}

TEST(H5Box, SizesThatDoNotFitAreRefused) {
  EXPECT_EQ(h5::n_elements({}, "x"), 1);
  EXPECT_EQ(h5::n_elements({3, 0, 5}, "x"), 0);
  EXPECT_EQ(h5::n_elements({1 << 28, 1 << 28}, "x"), std::int64_t{1} << 56);
  EXPECT_EQ(error_of([] {
              h5::n_elements({1 << 28, 1 << 28, 2}, "x");
            }).kind(),
            ErrorKind::corrupt);
  EXPECT_EQ(error_of([] { h5::n_elements({-1}, "x"); }).kind(), ErrorKind::corrupt);
}

TEST(H5Box, ABoxMustLieInside) {
  h5::check_box({4, 5}, {1, 2}, {3, 3}, "x");
  h5::check_box({4, 5}, {4, 5}, {0, 0}, "x");
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (const auto& [start, count] : std::vector<std::pair<Dims, Dims>>{{{1, 2}, {4, 3}},
                                                                       {{-1, 0}, {1, 1}},
                                                                       {{0, 0}, {1, -1}},
                                                                       {{0}, {1}},
                                                                       {{3, kHuge}, {1, kHuge}}}) {
    EXPECT_THAT(error_of([&] {
                  h5::check_box({4, 5}, start, count, "x");
                }).what(),
                HasSubstr("x: box"));
  }
}

TEST(H5RawValues, BoxesLandWhereHdf5ReadsThem) {
  const std::string path = test::scratch_folder() + "/raw.h5";
  h5::File file = h5::File::create(path);
  const Dims dims{3, 4, 5};
  std::int64_t offset = 0;
  {
    const auto dataset =
        h5::Dataset::create(file.root(), "x", {ElementType::f64, dims, {}, h5::Fill::absent}, "x");
    offset = dataset.offset();
  }
  ASSERT_GT(offset, 0);
  file.flush();
  const h5::RawPlace place{file.descriptor(), offset, ElementType::f64};
  const double box[2 * 2 * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const float row[5] = {20, 21, 22, 23, 24.5F};
  h5::write_raw(place, dims, {1, 2, 1}, {2, 2, 3}, ElementType::f64, box, "x");
  h5::write_raw(place, dims, {0, 3, 0}, {1, 1, 5}, ElementType::f32, row, "x");
  file.close();
  const auto values = test::H5Reference(path).doubles("/x");
  const auto at = [&](int i, int j, int k) {
    return values[static_cast<std::size_t>((i * 4 + j) * 5 + k)];
  };
  EXPECT_EQ(at(1, 2, 1), 1);
  EXPECT_EQ(at(1, 3, 3), 6);
  EXPECT_EQ(at(2, 2, 1), 7);
  EXPECT_EQ(at(2, 3, 3), 12);
  EXPECT_EQ(at(0, 3, 4), 24.5);
  EXPECT_TRUE(std::isnan(at(1, 2, 0)) && std::isnan(at(1, 2, 4)) && std::isnan(at(0, 2, 4)));
}

TEST(H5RawValues, AFailedWriteSaysWhy) {
  const double x = 1;
  const Error error = error_of([&] {
    h5::write_raw({-1, 0, ElementType::f64}, {1}, {0}, {1}, ElementType::f64, &x, "F");
  });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_STREQ(error.what(), "cannot write F: Bad file descriptor");
}

// The sample capture after `change` had its way with it; no mercy for HDF5's return codes.
std::string tampered(const std::function<void(hid_t)>& change) {
  const std::string path = test::scratch_folder() + "/run.h5";
  test::write_sample_capture(path);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  EXPECT_GE(file, 0);
  change(file);
  H5Fclose(file);
  return path;
}

// Puts a dataset of that shape in the place of another.
void replace(hid_t file, const char* path, hid_t type, std::vector<hsize_t> dims,
             hid_t creation = H5P_DEFAULT) {
  EXPECT_GE(H5Ldelete(file, path, H5P_DEFAULT), 0);
  const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  EXPECT_GE(dataset, 0);
  H5Dclose(dataset);
  H5Sclose(space);
}

std::string refusal(const std::string& path, ErrorKind kind, const char* dataset) {
  const Error error = error_of([&] { CaptureReader::open(path)->read_f32("run0", dataset); });
  EXPECT_EQ(error.kind(), kind) << error.what();
  return error.what();
}

TEST(HostileCapture, ShapesMustBeThoseOfTheFormat) {
  const std::string path = tampered([](hid_t file) {
    replace(file, "/run0/attention/key_mass", H5T_IEEE_F32LE, {2, 4, 6});
    replace(file, "/run0/attention/lse", H5T_IEEE_F32LE, {2, 28});
    replace(file, "/run0/stats/hook_resid_post/dim_rest/mean", H5T_IEEE_F64LE, {3, 5});
    replace(file, "/run0/stats/hook_resid_post/token/rms", H5T_IEEE_F64LE, {2, 7});
    replace(file, "/run0/norm/ln1/gain_raw", H5T_IEEE_F32LE, {3, 7});
    replace(file, "/run0/taps/attn.hook_v/values", H5T_IEEE_F32LE, {3, 2, 7, 3});
    replace(file, "/run0/residual/stream", H5T_IEEE_F32LE, {8, 7, 6});
    replace(file, "/run0/logits/top_logprob", H5T_IEEE_F32LE, {7, 4});
  });
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "attention/key_mass"),
              HasSubstr("run0/attention/key_mass: expected the shape [A=2, H=4, T=7], found "
                        "[2, 4, 6]"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "attention/lse"), HasSubstr("found [2, 28]"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "stats/hook_resid_post/dim_rest/mean"),
              HasSubstr("[N=3, D_s=6], found [3, 5]"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "stats/hook_resid_post/token/rms"),
              HasSubstr("[N=3, T=7], found [2, 7]"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "norm/ln1/gain_raw"),
              HasSubstr("[N=3, C=6], found [3, 7]"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "taps/attn.hook_v/values"),
              HasSubstr("[N=2, …], found [3, 2, 7, 3]"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "residual/stream"), HasSubstr("[S=7, T=7, D=6]"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "logits/top_logprob"), HasSubstr("[T=7, k=3]"));
}

// Readers take the first and the last token without asking.
TEST(HostileCapture, RunsHaveTokens) {
  const std::string path = tampered([](hid_t file) {
    replace(file, "/run0/input/token_ids", H5T_STD_I32LE, {0});
    replace(file, "/run0/attention/value_norm", H5T_IEEE_F32LE, {2, 2, 0});
  });
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "attention/value_norm"),
              HasSubstr("run0/input/token_ids: expected a list of token ids"));
}

TEST(HostileCapture, TypesMustBeKnown) {
  const std::string path = tampered([](hid_t file) {
    replace(file, "/run0/attention/key_mass", H5T_STD_U16LE, {2, 4, 7});
    const hid_t pair = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(pair, "a", 0, H5T_IEEE_F64LE);
    replace(file, "/run0/attention/lse", pair, {2, 4, 7});
    H5Tclose(pair);
  });
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "attention/key_mass"),
              HasSubstr("attention/key_mass: expected f32"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "attention/lse"), HasSubstr("of 8 bytes"));
}

TEST(HostileCapture, LinksThatLeadAwayAreNotFollowed) {
  const std::string path = tampered([](hid_t file) {
    for (const char* name : {"/run0/attention/key_mass", "/run0/attention/lse", "/run1"}) {
      H5Ldelete(file, name, H5P_DEFAULT);
    }
    H5Lcreate_external("/etc/passwd", "/x", file, "/run0/attention/key_mass", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_soft("/run0/attention/entropy", file, "/run0/attention/lse", H5P_DEFAULT,
                   H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/", file, "/run1", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "attention/key_mass"),
              HasSubstr("key_mass is a link to somewhere else"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "attention/lse"), HasSubstr("lse is a link"));
  EXPECT_THAT(error_of([&] { CaptureReader::open(path)->input("run1"); }).what(),
              HasSubstr("run1 is a link to somewhere else"));
}

TEST(HostileCapture, ValuesInOtherFilesAreRefused) {
  const std::string path = tampered([](hid_t file) {
    const hid_t outside = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(outside, "/etc/passwd", 0, 224);
    replace(file, "/run0/attention/key_mass", H5T_IEEE_F32LE, {2, 4, 7}, outside);
    H5Pclose(outside);
    const hid_t mapped = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t dims[3] = {2, 4, 7};
    const hid_t space = H5Screate_simple(3, dims, nullptr);
    H5Pset_virtual(mapped, space, "other.h5", "/x", space);
    replace(file, "/run0/attention/lse", H5T_IEEE_F32LE, {2, 4, 7}, mapped);
    H5Sclose(space);
    H5Pclose(mapped);
  });
  EXPECT_THAT(refusal(path, ErrorKind::unsupported, "attention/key_mass"),
              HasSubstr("lie in another file"));
  EXPECT_THAT(refusal(path, ErrorKind::unsupported, "attention/lse"), HasSubstr("virtual dataset"));
}

TEST(HostileCapture, MemoryIsTakenForWhatIsStoredOnly) {
  // 200 GB that cost nothing: absent chunks of an array that no rule describes, and a late
  // contiguous one.
  const std::string path = tampered([](hid_t file) {
    const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[2] = {1, 1 << 20};
    H5Pset_chunk(chunked, 2, chunk);
    replace(file, "/run0/taps/attn.hook_v/values", H5T_IEEE_F32LE, {2, 25'000'000'000}, chunked);
    H5Pclose(chunked);
    const hsize_t dims[2] = {50'000, 1'000'000};
    const hid_t space = H5Screate_simple(2, dims, nullptr);
    H5Dclose(H5Dcreate2(file, "/run0/late", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT));
    H5Sclose(space);
  });
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "taps/attn.hook_v/values"),
              HasSubstr("asks for 200000000000 bytes with 0 stored"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "late"), HasSubstr("asks for 200000000000 bytes"));
  // A part of it may be looked at.
  EXPECT_EQ(CaptureReader::open(path)
                ->read_f32("run0", "taps/attn.hook_v/values", {1, 24'999'999'998}, {1, 2})
                .size(),
            2U);
}

TEST(HostileCapture, UnknownFiltersAreNotLoaded) {
  const std::string path = tampered([](hid_t file) {
    const hid_t filtered = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[3] = {2, 4, 7};
    H5Pset_chunk(filtered, 3, chunk);
    H5Pset_filter(filtered, H5Z_FILTER_SCALEOFFSET, H5Z_FLAG_OPTIONAL, 0, nullptr);
    replace(file, "/run0/attention/key_mass", H5T_STD_I32LE, {2, 4, 7}, filtered);
    H5Pclose(filtered);
  });
  EXPECT_THAT(refusal(path, ErrorKind::unsupported, "attention/key_mass"),
              HasSubstr("expected deflate, shuffle or fletcher32, found filter 6"));
}

TEST(HostileCapture, TextsMustLieInTheirHeap) {
  // A stored text is its length, the heap's address and its index there; each in turn is a lie.
  struct Lie {
    int offset;
    std::uint32_t value;
    const char* says;
  };
  for (const Lie& lie :
       {Lie{0, 25, "a text of 25 bytes is not in the heap"}, Lie{12, 60'000, "is not in the heap"},
        Lie{4, 0x7ffffff0, "expected 16 bytes at 2147483632"},
        Lie{4, 96, "expected a heap of texts at 96"}}) {
    std::int64_t offset = 0;
    const std::string path = tampered([&](hid_t file) {
      const hid_t sites = H5Dopen2(file, "/run0/residual/sites", H5P_DEFAULT);
      offset = static_cast<std::int64_t>(H5Dget_offset(sites));
      H5Dclose(sites);
    });
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset + 16 + lie.offset);
    file.write(reinterpret_cast<const char*>(&lie.value), 4);
    file.close();
    const Error error =
        error_of([&] { CaptureReader::open(path)->read_texts("run0", "residual/sites"); });
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), HasSubstr("run0/residual/sites: "));
    EXPECT_THAT(error.what(), HasSubstr(lie.says));
  }
}

TEST(HostileCapture, TextsMayLieInAnyOrderInTheirHeap) {
  const std::string path = test::scratch_folder() + "/run.h5";
  test::write_sample_capture(path);
  const auto texts = [&] {
    return CaptureReader::open(path)->read_texts("run0", "residual/sites");
  };
  const auto before = texts();
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // An object of the heap is its index, its length (16 bytes together) and its text, padded to 24
  // bytes here; these two are neighbours.
  int n_swapped = 0;
  for (std::size_t at = 0; (at = bytes.find("blocks.0.hook_resid_mid", at + 1)) < bytes.size();) {
    ASSERT_EQ(bytes.find("blocks.0.hook_resid_pre", at), at + 40);
    std::swap_ranges(&bytes[at - 16], &bytes[at + 24], &bytes[at + 24]);
    at += 40;
    ++n_swapped;
  }
  EXPECT_EQ(n_swapped, 2);  // one for each run
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(texts(), before);
}

// Reads everything below a group; errors are fine, crashes are not.
void read_all(const CaptureReader& reader, const std::string& run, const std::string& group,
              int depth) {
  if (depth > 5) return;
  try {
    for (const std::string& name : reader.children(run, group)) {
      const std::string path = group.empty() ? name : group + "/" + name;
      try {
        if (!reader.is_dataset(run, path)) {
          read_all(reader, run, path, depth + 1);
        } else if (reader.type(run, path) == ElementType::text) {
          reader.read_texts(run, path);
        } else {
          reader.read_f64(run, path);
        }
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

TEST(HostileCapture, DamagedBytesAreErrorsAtWorst) {
  const std::string folder = test::scratch_folder();
  test::write_sample_capture(folder + "/good.h5");
  std::ifstream in(folder + "/good.h5", std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  int n_opened = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::string bad = good;
    for (unsigned n = 1 + random() % 8; n > 0; --n) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    const std::string path = folder + "/bad" + std::to_string(seed) + ".h5";
    std::ofstream(path, std::ios::binary) << bad;
    try {
      const auto reader = CaptureReader::open(path);
      ++n_opened;
      for (const std::string& run : reader->runs()) read_all(*reader, run, "", 0);
    } catch (const Error&) {
    }
  }
  EXPECT_GT(n_opened, 20);
}

TEST(HostileCapture, HeadersMustMakeSense) {
  const auto opened = [](const std::function<void(hid_t)>& change) {
    return error_of([&] { CaptureReader::open(tampered(change)); });
  };
  const auto set = [](hid_t file, const char* name, std::int32_t value) {
    const hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT32, &value);
    H5Aclose(attribute);
  };
  const Error newer = opened([&](hid_t file) { set(file, "format_version", 2); });
  EXPECT_EQ(newer.kind(), ErrorKind::unsupported);
  EXPECT_THAT(newer.what(), HasSubstr("expected format version 1, found 2"));
  EXPECT_EQ(opened([](hid_t file) { H5Adelete(file, "format"); }).kind(), ErrorKind::unsupported);
  EXPECT_EQ(opened([&](hid_t file) { set(file, "layers_done", -4); }).kind(), ErrorKind::corrupt);
  EXPECT_EQ(opened([](hid_t file) {
              H5Ldelete(file, "/run0", H5P_DEFAULT);
              H5Ldelete(file, "/run1", H5P_DEFAULT);
            }).kind(),
            ErrorKind::corrupt);
  const auto of_model = [&](const char* name, std::int32_t value) {
    return tampered([&](hid_t file) {
      const hid_t model = H5Gopen2(file, "/run0/model", H5P_DEFAULT);
      set(model, name, value);
      H5Gclose(model);
    });
  };
  EXPECT_THAT(refusal(of_model("n_heads", -2), ErrorKind::corrupt, "attention/key_mass"),
              HasSubstr("run0/model: attribute n_heads: expected a count, found -2"));
  // A list of that many heads would be 8 GB.
  EXPECT_THAT(refusal(of_model("n_heads", 2'147'483'647), ErrorKind::corrupt, "attention/key_mass"),
              HasSubstr("run0/model: n_heads: expected 0 to 16384, found 2147483647"));
  EXPECT_THAT(refusal(of_model("n_kv_heads", 16'385), ErrorKind::corrupt, "attention/key_mass"),
              HasSubstr("run0/model: n_kv_heads: expected 0 to 16384, found 16385"));
}

TEST(HostileCapture, MissingListsAreNotGuessed) {
  const std::string path = tampered([](hid_t file) {
    H5Ldelete(file, "/run0/attention/layers", H5P_DEFAULT);
    H5Ldelete(file, "/run0/stats/hook_resid_post/layers", H5P_DEFAULT);
  });
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "attention/key_mass"), HasSubstr("A=-1"));
  EXPECT_THAT(refusal(path, ErrorKind::corrupt, "stats/hook_resid_post/token/rms"),
              HasSubstr("N=-1"));
}

}  // namespace
}  // namespace sinkscope
