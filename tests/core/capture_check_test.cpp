// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>

#include "core/error.h"
#include "tests/support/sample_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string sample() {
  std::string path = test::scratch_folder() + "/sample.h5";
  test::write_sample_capture(path);
  return path;
}

// Puts an array whose numbers lie in a file that is not there where another one was.
void lose_numbers(const std::string& path, const char* dataset) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(H5Ldelete(file, dataset, H5P_DEFAULT), 0);
  const hsize_t dims[2] = {4, 7};
  const hid_t space = H5Screate_simple(2, dims, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(list, "gone.bin", 0, H5F_UNLIMITED);
  H5Dclose(H5Dcreate2(file, dataset, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
}

TEST(CaptureCheck, ListsEveryDatasetAndFindsNothingInAWholeCapture) {
  const auto reader = CaptureReader::open(sample());
  const std::vector<std::string> paths = dataset_paths(*reader, "run0");
  EXPECT_THAT(paths, AllOf(Contains("attention/pattern"), Contains("input/token_ids"),
                           Contains("provenance/command"), Contains("norm/ln1/gain_raw")));
  for (const std::string run : {"run0", "run1"})
    EXPECT_THAT(unreadable_arrays(*reader, run), IsEmpty());
}

TEST(CaptureCheck, NamesTheArrayWhoseNumbersAreGone) {
  const std::string path = sample();
  lose_numbers(path, "run1/attention/entropy");
  const auto reader = CaptureReader::open(path);
  EXPECT_THAT(unreadable_arrays(*reader, "run0"), IsEmpty());
  EXPECT_THAT(unreadable_arrays(*reader, "run1"),
              ElementsAre(AllOf(HasSubstr("sample.h5"), HasSubstr("run1/attention/entropy"))));
}

// A hard link from inside a run back to it: the run would have no end.
TEST(CaptureCheck, AGroupInsideItselfIsRefused) {
  const std::string path = sample();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(
      H5Lcreate_hard(file, "run0", file, "run0/taps/attn.hook_v/loop", H5P_DEFAULT, H5P_DEFAULT),
      0);
  H5Fclose(file);
  const auto reader = CaptureReader::open(path);
  for (const auto action : {+[](const CaptureReader& r) { dataset_paths(r, "run0"); },
                            +[](const CaptureReader& r) { unreadable_arrays(r, "run0"); }})
    try {
      action(*reader);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("sample.h5"), HasSubstr("loop"),
                                      HasSubstr("a group inside itself?")));
    }
}

}  // namespace
}  // namespace sinkscope
