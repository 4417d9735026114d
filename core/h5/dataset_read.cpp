// SPDX-License-Identifier: GPL-3.0-or-later
// The reading half of Dataset: the file is a stranger's, nothing it claims is believed.
#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <utility>

#include "core/h5/chunks.h"
#include "core/h5/dataset.h"
#include "core/h5/text_heap.h"

namespace sinkscope::h5 {
namespace {

// Reads up to this size are allowed whatever the storage looks like.
constexpr std::int64_t kFreeBytes = std::int64_t{64} << 20;
// Beyond it: bytes read for each byte stored in chunks. A windowed map stores 1 chunk in 50.
constexpr std::int64_t kMaxExpansion = 256;

[[noreturn]] void corrupt(const std::string& where, const std::string& expected_found) {
  throw Error(ErrorKind::corrupt, where + ": " + expected_found);
}

ElementType element_type_of(RawId dataset, const std::string& where) {
  const Handle type = own(H5Dget_type(dataset), ErrorKind::corrupt, where);
  const auto size = static_cast<std::int64_t>(H5Tget_size(type.id()));
  const H5T_class_t type_class = H5Tget_class(type.id());
  if (type_class == H5T_STRING && H5Tis_variable_str(type.id()) > 0) return ElementType::text;
  if (type_class == H5T_FLOAT && size == 4) return ElementType::f32;
  if (type_class == H5T_FLOAT && size == 8) return ElementType::f64;
  if (type_class == H5T_INTEGER && H5Tget_sign(type.id()) == H5T_SGN_2) {
    if (size == 4) return ElementType::i32;
    if (size == 8) return ElementType::i64;
  }
  const std::string found =
      type_class == H5T_FLOAT ? fmt::format("{}-bit floats", 8 * size)
      : type_class == H5T_INTEGER
          ? fmt::format("{}-bit integers of another kind", 8 * size)
          : fmt::format("HDF5 type class {} of {} bytes", static_cast<int>(type_class), size);
  corrupt(where,
          fmt::format("expected f32, f64, i32, i64 or variable-length text, found {}", found));
}

Dims dims_of(RawId dataset, const std::string& where) {
  const Handle space = own(H5Dget_space(dataset), ErrorKind::corrupt, where);
  if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) {
    corrupt(where, "expected an array or a scalar, found an empty dataspace");
  }
  const int rank = H5Sget_simple_extent_ndims(space.id());
  check(rank, ErrorKind::corrupt, where);
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr), ErrorKind::corrupt, where);
  Dims dims;
  for (const hsize_t size : sizes) {
    dims.push_back(static_cast<std::int64_t>(std::min(size, hsize_t{1} << 62)));
  }
  n_elements(dims, where);
  return dims;
}

std::int64_t file_size(RawId object, const std::string& where) {
  const Handle file = own(H5Iget_file_id(object), ErrorKind::corrupt, where);
  hsize_t size = 0;
  check(H5Fget_filesize(file.id(), &size), ErrorKind::corrupt, where);
  return static_cast<std::int64_t>(size);
}

RawId memory_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return H5T_NATIVE_FLOAT;
    case ElementType::f64:
      return H5T_NATIVE_DOUBLE;
    case ElementType::i32:
      return H5T_NATIVE_INT32;
    case ElementType::i64:
    case ElementType::text:
      break;
  }
  return H5T_NATIVE_INT64;
}

}  // namespace

Dataset Dataset::open_for_reading(Handle opened, std::string where) {
  const Call call;
  Dataset dataset;
  dataset.handle_ = std::move(opened);
  dataset.where_ = std::move(where);
  dataset.type_ = element_type_of(dataset.handle_.id(), dataset.where_);
  dataset.dims_ = dims_of(dataset.handle_.id(), dataset.where_);
  dataset.check_storage();
  return dataset;
}

void Dataset::check_storage() const {
  const Handle creation = own(H5Dget_create_plist(handle_.id()), ErrorKind::corrupt, where_);
  if (H5Pget_external_count(creation.id()) != 0) {
    throw Error(ErrorKind::unsupported, where_ + ": its values lie in another file; refused");
  }
  const H5D_layout_t layout = H5Pget_layout(creation.id());
  if (type_ == ElementType::text && layout != H5D_CONTIGUOUS) {
    throw Error(ErrorKind::unsupported,
                where_ + ": expected contiguous text, found another layout");
  }
  if (layout == H5D_CHUNKED) return check_chunks(creation.id());
  if (layout == H5D_VIRTUAL) {
    throw Error(ErrorKind::unsupported, where_ + ": a virtual dataset of other files; refused");
  }
  if (layout != H5D_CONTIGUOUS) return;  // compact: inside the object header
  const std::int64_t size = type_ == ElementType::text ? 16 : element_size(type_);
  const std::int64_t expected = n_elements(dims_, where_) * size;
  const auto stored = static_cast<std::int64_t>(H5Dget_storage_size(handle_.id()));
  // Not allocated = all fill value; what such an array may cost is bounded at the read.
  const std::int64_t begin = offset();
  if (stored == 0 && begin < 0 && type_ != ElementType::text) return;
  const std::int64_t end = file_size(handle_.id(), where_);
  if (stored != expected || stored > end || begin > end - stored) {
    corrupt(where_, fmt::format("expected {} bytes inside the file of {} bytes, found {} at {}",
                                expected, end, stored, begin));
  }
}

void Dataset::check_chunks(RawId creation) const {
  std::vector<hsize_t> chunk(dims_.size());
  check(H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data()), ErrorKind::corrupt,
        where_);
  const std::int64_t n_bytes =
      n_elements(Dims(chunk.begin(), chunk.end()), where_) * element_size(type_);
  if (n_bytes > std::max(kFreeBytes, file_size(handle_.id(), where_))) {
    corrupt(where_,
            fmt::format("expected chunks no larger than the file, found {} bytes", n_bytes));
  }
  const int n_filters = H5Pget_nfilters(creation);
  for (int i = 0; i < n_filters; ++i) {
    unsigned flags = 0;
    std::size_t n_values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags,
                                               &n_values, nullptr, 0, nullptr, nullptr);
    // Anything else could load a plug-in from who knows where.
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: expected deflate, shuffle or fletcher32, found filter {}",
                              where_, filter));
    }
  }
}

Dims chunk_of(const Dataset& dataset) {
  const Handle creation =
      own(H5Dget_create_plist(dataset.handle().id()), ErrorKind::corrupt, "storage of a dataset");
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED) return {};
  std::vector<hsize_t> chunk(dataset.dims().size());
  check(H5Pget_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()),
        ErrorKind::corrupt, "chunks of a dataset");
  return {chunk.begin(), chunk.end()};
}

void Dataset::check_amount(std::int64_t n_bytes) const {
  if (n_bytes <= kFreeBytes) return;
  const Handle creation = own(H5Dget_create_plist(handle_.id()), ErrorKind::corrupt, where_);
  std::int64_t stored = static_cast<std::int64_t>(H5Dget_storage_size(handle_.id()));
  if (H5Pget_layout(creation.id()) == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(dims_.size());
    H5Pget_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data());
    hsize_t n_chunks = 0;
    const Handle space = own(H5Dget_space(handle_.id()), ErrorKind::corrupt, where_);
    check(H5Dget_num_chunks(handle_.id(), space.id(), &n_chunks), ErrorKind::corrupt, where_);
    Dims all(chunk.begin(), chunk.end());
    all.push_back(static_cast<std::int64_t>(n_chunks));
    stored = n_elements(all, where_) * element_size(type_);
  }
  if (n_bytes / kMaxExpansion > stored) {
    corrupt(where_, fmt::format("asks for {} bytes with {} stored; refused", n_bytes, stored));
  }
}

std::int64_t Dataset::readable(const Dims& start, const Dims& count) const {
  const Call call;
  check_box(dims_, start, count, where_);
  if (type_ == ElementType::text) corrupt(where_, "expected numbers, found text");
  const std::int64_t n = n_elements(count, where_);
  check_amount(n * element_size(type_));
  return n;
}

void Dataset::read(const Dims& start, const Dims& count, ElementType type, void* values) const {
  const Call call;
  const std::int64_t n = readable(start, count);
  if (n == 0) return;
  const Handle file_space = own(H5Dget_space(handle_.id()), ErrorKind::corrupt, where_);
  const std::vector<hsize_t> from(start.begin(), start.end()), size(count.begin(), count.end());
  if (!start.empty()) {
    check(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, from.data(), nullptr, size.data(),
                              nullptr),
          ErrorKind::corrupt, where_);
  }
  // Of the selection's own shape: across chunks, HDF5 would go element by element into another.
  const Handle memory =
      own(start.empty() ? H5Screate(H5S_SCALAR)
                        : H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr),
          ErrorKind::corrupt, where_);
  check(H5Dread(handle_.id(), memory_type(type), memory.id(), file_space.id(), H5P_DEFAULT, values),
        ErrorKind::corrupt, "cannot read " + where_);
}

std::vector<std::string> Dataset::read_texts() const {
  const Call call;
  if (type_ != ElementType::text) corrupt(where_, "expected text, found numbers");
  const std::int64_t n = n_elements(dims_, where_);
  if (n == 0) return {};
  return TextHeap(handle_, where_).texts(offset(), n);
}

}  // namespace sinkscope::h5
