// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/capture_mutator.h"

#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "core/capture_writer.h"
#include "tests/support/sample_capture.h"

namespace sinkscope::fuzz {
namespace {

constexpr std::size_t kChangeBytes = 10;
constexpr int kKinds = 12, kHeapKind = 11;
constexpr int kMostChanges = 6;

// One change, as bytes say it.
struct Change {
  std::uint8_t what;
  std::uint16_t object, other;
  std::uint8_t type, rank, dims, value, storage;
};

Change change_at(std::span<const std::uint8_t> bytes) {
  const auto word = [&](std::size_t i) {
    return static_cast<std::uint16_t>(bytes[i] | (bytes[i + 1] << 8));
  };
  return {bytes[0], word(1), word(3), bytes[5], bytes[6], bytes[7], bytes[8], bytes[9]};
}

constexpr std::array<hsize_t, 16> kSizes = {0,
                                            1,
                                            2,
                                            3,
                                            4,
                                            5,
                                            6,
                                            7,
                                            8,
                                            64,
                                            1000,
                                            65537,
                                            1u << 31,
                                            hsize_t{1} << 40,
                                            hsize_t{1} << 60,
                                            hsize_t{0x7FFFFFFFFFFFFFFF}};
constexpr std::array<double, 16> kNumbers = {
    0,   1,    2,     3,          7,     -1,  0.5, 1e9,
    3e9, 1e19, -1e19, 2147483647, 1e300, 255, 32,  std::numeric_limits<double>::quiet_NaN()};
constexpr std::array<const char*, 20> kAttributes = {
    "format",     "format_version", "layers_done", "runs_done",  "runs_begun",
    "complete",   "default",        "name",        "n_layers",   "n_heads",
    "n_kv_heads", "head_dim",       "d_model",     "vocab_size", "kind",
    "eps",        "offset",         "tokenizer",   "signal",     "fingerprint"};

// A datatype by number; whoever asks closes it.
hid_t type_of(std::uint8_t number) {
  switch (number % 14) {
    case 0:
      return H5Tcopy(H5T_IEEE_F32LE);
    case 1:
      return H5Tcopy(H5T_IEEE_F64LE);
    case 2:
      return H5Tcopy(H5T_STD_I32LE);
    case 3:
      return H5Tcopy(H5T_STD_I64LE);
    case 4:
      return H5Tcopy(H5T_STD_U8LE);
    case 5:
      return H5Tcopy(H5T_IEEE_F32BE);
    case 6:
      return H5Tcopy(H5T_STD_B16LE);
    case 7:
    case 8: {
      const hid_t text = H5Tcopy(H5T_C_S1);
      H5Tset_size(text, number % 14 == 7 ? H5T_VARIABLE : 5);
      return text;
    }
    case 9:
      return H5Tcreate(H5T_OPAQUE, 16);
    case 10: {
      const hid_t compound = H5Tcreate(H5T_COMPOUND, 12);
      H5Tinsert(compound, "a", 0, H5T_IEEE_F64LE);
      H5Tinsert(compound, "b", 8, H5T_STD_I32LE);
      return compound;
    }
    case 11:
      return H5Tvlen_create(H5T_STD_I32LE);
    case 12: {
      const hsize_t three = 3;
      return H5Tarray_create2(H5T_IEEE_F32LE, 1, &three);
    }
    default:
      return H5Tcopy(H5T_STD_REF_OBJ);
  }
}

hid_t space_of(const Change& change) {
  if (change.rank % 8 == 6) return H5Screate(H5S_NULL);
  if (change.rank % 8 == 7) return H5Screate(H5S_SCALAR);
  std::array<hsize_t, 6> dims{};
  const int rank = change.rank % 6;
  for (int i = 0; i < rank; ++i)
    dims[static_cast<std::size_t>(i)] =
        kSizes[static_cast<std::size_t>(change.dims + i * (change.storage >> 4)) % kSizes.size()];
  return rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dims.data(), nullptr);
}

void set_storage(hid_t creation, const Change& change) {
  const int rank = change.rank % 8 < 6 ? change.rank % 6 : 0;
  switch (change.storage % 5) {
    case 1: {
      std::array<hsize_t, 6> chunk{};
      chunk.fill(2);
      if (rank > 0) H5Pset_chunk(creation, rank, chunk.data());
      if (rank > 0 && change.value % 2 == 1) H5Pset_deflate(creation, 1);
      break;
    }
    case 2:
      H5Pset_layout(creation, H5D_COMPACT);
      break;
    case 3:
      H5Pset_external(creation, "/etc/hostname", 0, H5F_UNLIMITED);
      break;
    default:
      break;
  }
}

// At most kMostPoints + 1; HDF5's own product overflows.
constexpr hsize_t kMostPoints = 4096;
hsize_t n_points(hid_t space) {
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  const int rank = H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  hsize_t n = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : 1;
  for (int i = 0; i < rank; ++i) {
    const hsize_t dim = dims[static_cast<std::size_t>(i)];
    if (dim == 0) return 0;
    n = dim > kMostPoints ? kMostPoints + 1 : std::min(n * dim, kMostPoints + 1);
  }
  return n;
}

// Every element that fits in memory becomes the number; texts become a few bytes.
void fill(hid_t data, std::uint8_t value) {
  const hid_t space = H5Dget_space(data), type = H5Dget_type(data);
  const hsize_t n = n_points(space);
  const H5T_class_t kind = H5Tget_class(type);
  if (n > 0 && n <= kMostPoints && (kind == H5T_FLOAT || kind == H5T_INTEGER)) {
    const std::vector<double> values(static_cast<std::size_t>(n),
                                     kNumbers[value % kNumbers.size()]);
    H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  } else if (n > 0 && n <= kMostPoints && kind == H5T_STRING && H5Tis_variable_str(type) > 0) {
    static const std::array<const char*, 4> texts = {"", "hook_resid_pre", "\xFF\xFE",
                                                     "blocks.9.x"};
    const std::vector<const char*> values(static_cast<std::size_t>(n), texts[value % texts.size()]);
    const hid_t memory = H5Tcopy(H5T_C_S1);
    H5Tset_size(memory, H5T_VARIABLE);
    H5Tset_cset(memory, H5Tget_cset(type));
    H5Dwrite(data, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Tclose(memory);
  }
  H5Tclose(type);
  H5Sclose(space);
}

class Program {
 public:
  Program(hid_t file, const std::vector<std::string>& objects) : file_(file), objects_(objects) {}

  CaptureMutator::Changed run(const Change& change) {
    const std::string& path = objects_[change.object % objects_.size()];
    const std::string& other = objects_[change.other % objects_.size()];
    switch (change.what % kKinds) {
      case 0:
        drop(path);
        break;
      case 1:
      case 2:
        drop(path);
        dataset(path, change);
        break;
      case 3:
        drop(path);
        close(H5Gcreate2(file_, path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        break;
      case 4:
        drop(path);
        link(path, other, change.type);
        break;
      case 5:
      case 6:
        attribute(path, change);
        return {path, attribute_name(change)};
      case 7:
        H5Adelete_by_name(file_, path.c_str(), attribute_name(change), H5P_DEFAULT);
        return {path, attribute_name(change)};
      case 8:
      case 9:
        values(path, change.value);
        break;
      case kHeapKind:
        break;  // done to the bytes, see change_heap
      default:
        drop(path);
        H5Ocopy(file_, other.c_str(), file_, path.c_str(), H5P_DEFAULT, H5P_DEFAULT);
        break;
    }
    return {path, ""};
  }

 private:
  static const char* attribute_name(const Change& change) {
    return kAttributes[change.other % kAttributes.size()];
  }
  static void close(hid_t object) {
    if (object >= 0) H5Oclose(object);
  }
  void drop(const std::string& path) { H5Ldelete(file_, path.c_str(), H5P_DEFAULT); }

  void dataset(const std::string& path, const Change& change) {
    const hid_t type = type_of(change.type), space = space_of(change);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_LATE);
    set_storage(creation, change);
    const hid_t data =
        H5Dcreate2(file_, path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (data >= 0) {
      if (change.storage % 5 != 3) fill(data, change.value);
      H5Dclose(data);
    }
    H5Pclose(creation);
    H5Sclose(space);
    H5Tclose(type);
  }

  void link(const std::string& path, const std::string& other, std::uint8_t kind) {
    if (kind % 3 == 0)
      H5Lcreate_soft(("/" + other).c_str(), file_, path.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    else if (kind % 3 == 1)
      H5Lcreate_external("/etc/hostname", "/", file_, path.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    else  // also to a group above itself: a circle
      H5Lcreate_hard(file_, other.c_str(), file_, path.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }

  void attribute(const std::string& path, const Change& change) {
    const char* name = attribute_name(change);
    H5Adelete_by_name(file_, path.c_str(), name, H5P_DEFAULT);
    const bool is_plain = change.storage % 2 == 0;  // a scalar number, as readers want it
    const hid_t type = is_plain ? H5Tcopy(H5T_IEEE_F64LE) : type_of(change.type);
    const hid_t space = is_plain ? H5Screate(H5S_SCALAR) : space_of(change);
    if (is_plain || H5Sget_simple_extent_npoints(space) <= 1000) {
      const hid_t made = H5Acreate_by_name(file_, path.c_str(), name, type, space, H5P_DEFAULT,
                                           H5P_DEFAULT, H5P_DEFAULT);
      if (made >= 0) {
        const double value = kNumbers[change.value % kNumbers.size()];
        if (is_plain) H5Awrite(made, H5T_NATIVE_DOUBLE, &value);
        H5Aclose(made);
      }
    }
    H5Sclose(space);
    H5Tclose(type);
  }

  void values(const std::string& path, std::uint8_t value) {
    const hid_t object = H5Oopen(file_, path.c_str(), H5P_DEFAULT);
    if (object < 0) return;
    if (H5Iget_type(object) == H5I_DATASET) fill(object, value);
    H5Oclose(object);
  }

  hid_t file_;
  const std::vector<std::string>& objects_;
};

hid_t open_image(const std::string& image, unsigned flags) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1 << 16, 0);
  H5Pset_file_image(access, const_cast<char*>(image.data()), image.size());
  const hid_t file = H5Fopen("fuzz", flags, access);
  H5Pclose(access);
  if (file < 0) throw std::runtime_error("the capture in memory cannot be opened");
  return file;
}

herr_t collect(hid_t, const char* name, const H5O_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

// Texts lie in global heap collections, which our reader walks itself: their bytes may say
// anything.
void change_heap(std::string& image, const Change& change) {
  std::vector<std::size_t> heaps;
  for (std::size_t at = 0; (at = image.find("GCOL", at)) != std::string::npos; at += 4)
    heaps.push_back(at);
  if (heaps.empty()) return;
  // Sizes and headers are at multiples of eight.
  const std::size_t at = heaps[change.object % heaps.size()] + 8 + change.other % 4096 / 8 * 8 +
                         (change.storage % 4 == 0 ? change.rank % 8u : 0u);
  if (at < image.size()) image[at] = static_cast<char>(change.value);
}

// The sample's numbers say where they stand; as indices they must be small.
void make_indices_small(const std::string& path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  std::vector<std::string> objects;
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, collect, &objects, H5O_INFO_BASIC);
  for (const std::string& object : objects) {
    const std::string name = object.substr(object.rfind('/') + 1);
    if (name != "max_token" && name != "max_dim" && name != "argmax_count" && name != "n_nan" &&
        name != "n_inf" && name != "top_ids" && name != "count")
      continue;
    const hid_t data = H5Dopen2(file, object.c_str(), H5P_DEFAULT);
    const hid_t space = H5Dget_space(data);
    std::vector<int> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = name == "count" ? 4 : name[0] == 'n' ? 0 : static_cast<int>(i % 5);
    H5Dwrite(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(data);
  }
  H5Fclose(file);
}

}  // namespace

std::string base_capture() {
  std::string folder = (std::filesystem::temp_directory_path() / "sinkscope-fuzz-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder for the base capture");
  const std::string path = folder + "/base.h5";
  CaptureLayout layout = test::sample_layout();
  layout.runs.resize(1);  // every change hits what is read
  layout.sites.push_back({"hook_resid_pre", {0}, 6, false, true});
  layout.sites.push_back({"hook_resid_mid", {0, 1, 2}, 6, false, true});
  layout.sites.push_back({"ln1.hook_out", {0, 1, 2}, 6, true, false});
  // What the mechanisms of live models leave, which readers take apart by their own rules.
  layout.sites.push_back({"attn.hook_gate", {0, 2}, 12, false, false});
  layout.taps.push_back({"linear.hook_state_norm", {1}, {3, kSeqLen}});
  layout.taps.push_back({"depth_attn.hook_weights", {1}, {3, kSeqLen, 4}});
  const int n_runs = static_cast<int>(layout.runs.size()), n_blocks = layout.model.n_layers;
  {
    const auto writer = CaptureWriter::create(path, layout, CaptureWriter::Existing::overwrite);
    for (int block = 0; block < n_blocks; ++block) {
      for (int run = 0; run < n_runs; ++run) test::write_sample_block(*writer, run, block);
      writer->layer_done(block + 1, block + 1 == n_blocks ? n_runs : 0);
    }
    writer->finish();
  }
  make_indices_small(path);
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  unlink(path.c_str());
  rmdir(folder.c_str());
  return bytes.str();
}

CaptureMutator::CaptureMutator(std::string image) : image_(std::move(image)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const hid_t file = open_image(image_, H5F_ACC_RDONLY);
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, collect, &objects_, H5O_INFO_BASIC);
  H5Fclose(file);
}

CaptureMutator::Mutated CaptureMutator::mutate(std::span<const std::uint8_t> bytes) const {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Mutated made;
  const hid_t file = open_image(image_, H5F_ACC_RDWR);
  Program program(file, objects_);
  std::vector<Change> to_heaps;
  for (int i = 0; i < kMostChanges && bytes.size() >= kChangeBytes; ++i) {
    const Change change = change_at(bytes);
    made.changed.push_back(program.run(change));
    if (change.what % kKinds == kHeapKind) to_heaps.push_back(change);
    bytes = bytes.subspan(kChangeBytes);
  }
  H5Fflush(file, H5F_SCOPE_LOCAL);
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  made.image.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  H5Fget_file_image(file, made.image.data(), made.image.size());
  H5Fclose(file);
  for (const Change& change : to_heaps) change_heap(made.image, change);
  return made;
}

}  // namespace sinkscope::fuzz
