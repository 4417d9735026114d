// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/dataset.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <bit>
#include <limits>

#include "core/h5/object.h"

namespace sinkscope::h5 {

static_assert(std::endian::native == std::endian::little);

namespace {

using HSizes = std::vector<hsize_t>;

HSizes to_hsize(const Dims& dims) { return {dims.begin(), dims.end()}; }

RawId type_id(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return H5T_IEEE_F32LE;
    case ElementType::f64:
      return H5T_IEEE_F64LE;
    case ElementType::i32:
      return H5T_STD_I32LE;
    case ElementType::i64:
      return H5T_STD_I64LE;
    case ElementType::text:
      break;
  }
  return text_type();
}

void set_fill(RawId list, ElementType type, Fill fill) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double zero = 0;
  const std::int32_t minus_one = -1;
  const bool is_float = type == ElementType::f32 || type == ElementType::f64;
  if (fill == Fill::zero) {
    H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &zero);
  } else if (fill == Fill::none) {
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
  } else if (is_float) {
    H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &nan);
  } else {
    H5Pset_fill_value(list, H5T_NATIVE_INT32, &minus_one);
  }
}

// Property lists of contiguous datasets, made once: a capture of many runs has 60,000 datasets.
class ContiguousLists {
 public:
  ContiguousLists() {
    for (int type = 0; type < kTypes; ++type) {
      for (int fill = 0; fill < kFills; ++fill) {
        lists_[type][fill] = make(static_cast<ElementType>(type), static_cast<Fill>(fill));
      }
    }
  }
  RawId get(ElementType type, Fill fill) const {
    return lists_[static_cast<int>(type)][static_cast<int>(fill)];
  }

 private:
  static constexpr int kTypes = 5, kFills = 3;
  static RawId make(ElementType type, Fill fill) {
    const RawId list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(list, false);
    if (type == ElementType::text) return list;
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    set_fill(list, type, fill);
    return list;
  }
  RawId lists_[kTypes][kFills] = {};
};

RawId contiguous_list(ElementType type, Fill fill) {
  static const ContiguousLists lists;
  return lists.get(type, fill);
}

Handle chunked_list(const DatasetShape& shape) {
  Handle list = own(H5Pcreate(H5P_DATASET_CREATE), ErrorKind::io, "HDF5 property list");
  H5Pset_obj_track_times(list.id(), false);
  H5Pset_alloc_time(list.id(), H5D_ALLOC_TIME_INCR);
  set_fill(list.id(), shape.type, shape.fill);
  const HSizes chunk = to_hsize(shape.chunk);
  check(H5Pset_chunk(list.id(), static_cast<int>(chunk.size()), chunk.data()), ErrorKind::io,
        "chunk shape");
  return list;
}

Handle space_of(const Dims& dims, const std::string& where) {
  if (dims.empty()) return own(H5Screate(H5S_SCALAR), ErrorKind::io, where);
  const HSizes sizes = to_hsize(dims);
  return own(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), ErrorKind::io,
             where);
}

struct Selection {
  Handle file, memory;
};

Selection select(const Handle& dataset, const Dims& start, const Dims& count,
                 const std::string& where) {
  Selection out;
  out.file = own(H5Dget_space(dataset.id()), ErrorKind::corrupt, where);
  if (!start.empty()) {
    const HSizes from = to_hsize(start), size = to_hsize(count);
    check(H5Sselect_hyperslab(out.file.id(), H5S_SELECT_SET, from.data(), nullptr, size.data(),
                              nullptr),
          ErrorKind::invalid_argument, where);
  }
  out.memory = space_of({n_elements(count, where)}, where);
  return out;
}

}  // namespace

Dataset Dataset::create(const Handle& parent, const std::string& name, const DatasetShape& shape,
                        std::string where) {
  const Call call;
  const std::string what = "cannot create " + where;
  const Handle space = space_of(shape.dims, what);
  // A dataset without elements cannot be chunked.
  const bool is_chunked = !shape.chunk.empty() && n_elements(shape.dims, where) > 0;
  const Handle own_list = is_chunked ? chunked_list(shape) : Handle();
  const RawId list = is_chunked ? own_list.id() : contiguous_list(shape.type, shape.fill);
  Dataset dataset;
  dataset.handle_ = own(H5Dcreate2(parent.id(), name.c_str(), type_id(shape.type), space.id(),
                                   H5P_DEFAULT, list, H5P_DEFAULT),
                        ErrorKind::io, what);
  dataset.where_ = std::move(where);
  dataset.dims_ = shape.dims;
  dataset.type_ = shape.type;
  return dataset;
}

Dataset Dataset::open_for_writing(const Handle& parent, const std::string& path,
                                  std::string where) {
  const Call call;
  static const RawId uncached = [] {
    const RawId list = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(list, 0, 0, 1.0);
    return list;
  }();
  Dataset dataset;
  dataset.handle_ =
      own(H5Dopen2(parent.id(), path.c_str(), uncached), ErrorKind::io, "cannot open " + where);
  dataset.where_ = std::move(where);
  const Handle space = own(H5Dget_space(dataset.handle_.id()), ErrorKind::io, dataset.where_);
  HSizes sizes(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.id())));
  H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr);
  dataset.dims_.assign(sizes.begin(), sizes.end());
  return dataset;
}

std::int64_t Dataset::offset() const {
  const Call call;
  const haddr_t address = H5Dget_offset(handle_.id());
  H5Eclear2(H5E_DEFAULT);
  return address == HADDR_UNDEF ? -1 : static_cast<std::int64_t>(address);
}

void Dataset::write(const Dims& start, const Dims& count, ElementType type, const void* values) {
  check_box(dims_, start, count, where_);
  const Call call;
  if (n_elements(count, where_) == 0) return;
  const Selection box = select(handle_, start, count, where_);
  check(H5Dwrite(handle_.id(), type_id(type), box.memory.id(), box.file.id(), H5P_DEFAULT, values),
        ErrorKind::io, "cannot write " + where_);
}

void Dataset::write_texts(std::span<const std::string> texts) {
  if (static_cast<std::int64_t>(texts.size()) != n_elements(dims_, where_)) {
    throw Error(ErrorKind::invalid_argument, fmt::format("{}: expected {} texts, found {}", where_,
                                                         n_elements(dims_, where_), texts.size()));
  }
  if (texts.empty()) return;
  const Call call;
  std::vector<std::string> stored;
  std::vector<const char*> values;
  stored.reserve(texts.size());
  for (const auto& text : texts) values.push_back(stored.emplace_back(storable_text(text)).c_str());
  check(H5Dwrite(handle_.id(), text_type(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
        ErrorKind::io, "cannot write " + where_);
}

void Dataset::write_chunk(const Dims& start, const void* values, std::int64_t n_bytes) {
  const Call call;
  const HSizes from = to_hsize(start);
  check(H5Dwrite_chunk(handle_.id(), H5P_DEFAULT, 0, from.data(), static_cast<std::size_t>(n_bytes),
                       values),
        ErrorKind::io, "cannot write " + where_);
}

}  // namespace sinkscope::h5
