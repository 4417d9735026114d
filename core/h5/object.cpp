// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/object.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/h5/text_heap.h"

namespace sinkscope::h5 {
namespace {

// Creation times would make two recordings of the same thing differ.
RawId untimed_group() {
  static const RawId list = [] {
    const RawId made = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(made, false);
    return made;
  }();
  return list;
}

RawId scalar_space() {
  static const RawId space = H5Screate(H5S_SCALAR);
  return space;
}

void write_attribute(const Handle& object, const std::string& name, RawId type, RawId space,
                     const void* value) {
  const std::string what = "cannot write attribute " + name;
  // In place where it exists: a counter must not move about in its object's header.
  const Handle attribute =
      own(H5Aexists(object.id(), name.c_str()) > 0
              ? H5Aopen(object.id(), name.c_str(), H5P_DEFAULT)
              : H5Acreate2(object.id(), name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
          ErrorKind::io, what);
  check(H5Awrite(attribute.id(), type, value), ErrorKind::io, what);
}

std::string attribute_text(const std::string& text) {
  std::string stored = storable_text(text);
  auto size = static_cast<std::size_t>(kMaxAttributeBytes);
  if (stored.size() <= size) return stored;
  while (size > 0 && (static_cast<unsigned char>(stored[size]) & 0xc0) == 0x80) --size;
  stored.resize(size);
  return stored;
}

// An attribute that exists and is a scalar of `type_class`; empty when there is none.
Handle scalar_attribute(const Handle& object, const std::string& name, const std::string& where) {
  if (H5Aexists(object.id(), name.c_str()) <= 0) return {};
  const std::string what = fmt::format("{}: cannot read attribute {}", where, name);
  Handle attribute = own(H5Aopen(object.id(), name.c_str(), H5P_DEFAULT), ErrorKind::corrupt, what);
  const Handle space = own(H5Aget_space(attribute.id()), ErrorKind::corrupt, what);
  if (H5Sget_simple_extent_type(space.id()) == H5S_NULL ||
      H5Sget_simple_extent_npoints(space.id()) != 1) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: attribute {}: expected one value, found a list or none", where, name));
  }
  return attribute;
}

herr_t note_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

}  // namespace

RawId text_type() {
  static const RawId type = [] {
    const RawId made = H5Tcopy(H5T_C_S1);
    H5Tset_size(made, H5T_VARIABLE);
    H5Tset_cset(made, H5T_CSET_UTF8);
    return made;
  }();
  return type;
}

std::string storable_text(const std::string& text) {
  if (text.find('\0') == std::string::npos) return text;
  std::string out;
  for (const char c : text) {
    if (c == '\0') {
      out += "\xe2\x90\x80";
    } else {
      out += c;
    }
  }
  return out;
}

Handle create_group(const Handle& parent, const std::string& name) {
  const Call call;
  return own(H5Gcreate2(parent.id(), name.c_str(), H5P_DEFAULT, untimed_group(), H5P_DEFAULT),
             ErrorKind::io, "cannot create group " + name);
}

void hard_link(const Handle& from, const std::string& from_path, const Handle& to,
               const std::string& to_path) {
  const Call call;
  check(H5Lcreate_hard(from.id(), from_path.c_str(), to.id(), to_path.c_str(), H5P_DEFAULT,
                       H5P_DEFAULT),
        ErrorKind::io, "cannot link " + to_path);
}

LinkKind link_kind(const Handle& parent, const std::string& name) {
  const Call call;
  if (H5Lexists(parent.id(), name.c_str(), H5P_DEFAULT) <= 0) return LinkKind::absent;
  H5L_info_t info;
  if (H5Lget_info(parent.id(), name.c_str(), &info, H5P_DEFAULT) < 0) return LinkKind::other;
  return info.type == H5L_TYPE_HARD ? LinkKind::hard : LinkKind::other;
}

Handle open_object(const Handle& parent, const std::string& name, const std::string& where) {
  const Call call;
  return own(H5Oopen(parent.id(), name.c_str(), H5P_DEFAULT), ErrorKind::corrupt,
             "cannot open " + where);
}

ObjectKind object_kind(const Handle& object) {
  const Call call;
  switch (H5Iget_type(object.id())) {
    case H5I_GROUP:
    case H5I_FILE:
      return ObjectKind::group;
    case H5I_DATASET:
      return ObjectKind::dataset;
    default:
      return ObjectKind::other;
  }
}

std::vector<std::string> child_names(const Handle& group, const std::string& where) {
  const Call call;
  std::vector<std::string> names;
  hsize_t position = 0;
  check(H5Literate(group.id(), H5_INDEX_NAME, H5_ITER_NATIVE, &position, note_name, &names),
        ErrorKind::corrupt, "cannot list " + where);
  std::sort(names.begin(), names.end());
  return names;
}

void set_attribute(const Handle& object, const std::string& name, const std::string& text) {
  const Call call;
  const std::string stored = attribute_text(text);
  const char* value = stored.c_str();
  write_attribute(object, name, text_type(), scalar_space(), &value);
}

void set_attribute(const Handle& object, const std::string& name, std::int32_t value) {
  const Call call;
  write_attribute(object, name, H5T_STD_I32LE, scalar_space(), &value);
}

void set_attribute(const Handle& object, const std::string& name, double value) {
  const Call call;
  write_attribute(object, name, H5T_IEEE_F64LE, scalar_space(), &value);
}

void set_attribute(const Handle& object, const std::string& name,
                   const std::vector<std::string>& texts) {
  const Call call;
  std::vector<const char*> values;
  for (const auto& text : texts) values.push_back(text.c_str());
  const hsize_t n = values.size();
  const Handle space = own(H5Screate_simple(1, &n, nullptr), ErrorKind::io, "attribute " + name);
  write_attribute(object, name, text_type(), space.id(), values.data());
}

bool has_attribute(const Handle& object, const std::string& name) {
  const Call call;
  return H5Aexists(object.id(), name.c_str()) > 0;
}

std::optional<std::string> text_attribute(const Handle& object, const std::string& name,
                                          const std::string& where) {
  const Call call;
  const Handle attribute = scalar_attribute(object, name, where);
  if (!attribute) return std::nullopt;
  const std::string what = fmt::format("{}: cannot read attribute {}", where, name);
  const Handle type = own(H5Aget_type(attribute.id()), ErrorKind::corrupt, what);
  if (H5Tget_class(type.id()) != H5T_STRING || H5Tis_variable_str(type.id()) <= 0) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: attribute {}: expected text, found another type", where, name));
  }
  TextHeap heap(object, where);
  if (const auto reference = heap.attribute(object, name)) return heap.text(*reference);
  char* text = nullptr;
  check(H5Aread(attribute.id(), type.id(), &text), ErrorKind::corrupt, what);
  const std::unique_ptr<char, herr_t (*)(void*)> owned(text, H5free_memory);
  return std::string(text == nullptr ? "" : text);
}

std::optional<double> number_attribute(const Handle& object, const std::string& name,
                                       const std::string& where) {
  const Call call;
  const Handle attribute = scalar_attribute(object, name, where);
  if (!attribute) return std::nullopt;
  const std::string what = fmt::format("{}: cannot read attribute {}", where, name);
  const Handle type = own(H5Aget_type(attribute.id()), ErrorKind::corrupt, what);
  const H5T_class_t type_class = H5Tget_class(type.id());
  if (type_class != H5T_INTEGER && type_class != H5T_FLOAT) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: attribute {}: expected a number, found another type", where, name));
  }
  double value = 0;
  check(H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value), ErrorKind::corrupt, what);
  return value;
}

}  // namespace sinkscope::h5
