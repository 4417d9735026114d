// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "core/draw/prepared_map.h"
#include "core/snapshot/attention_snapshot.h"
#include "core/snapshot/norms_snapshot.h"
#include "core/snapshot/overview_snapshot.h"
#include "core/snapshot/prepared_comparison.h"
#include "core/snapshot/residual_snapshot.h"
#include "core/snapshot/thumbnail_snapshot.h"

namespace sinkscope {

// What is made of a snapshot before it is handed to the window's thread: whatever takes a pass over
// many cells. Nothing for most.
template <class Snapshot>
struct Preparation {
  using Type = std::monostate;
  static Type of(const Snapshot& /*snapshot*/) { return {}; }
};
template <>
struct Preparation<AttentionSnapshot> {
  using Type = PreparedMap;
  static Type of(const AttentionSnapshot& snapshot) { return prepare(snapshot.map); }
};
template <>
struct Preparation<ResidualSnapshot> {
  using Type = PreparedMap;
  static Type of(const ResidualSnapshot& snapshot) { return prepare(snapshot.map); }
};
template <>
struct Preparation<ThumbnailSnapshot> {
  using Type = RangeFinder;
  static Type of(const ThumbnailSnapshot& snapshot) { return RangeFinder({snapshot.all}); }
};
template <>
struct Preparation<CompareSnapshot> {
  using Type = PreparedComparison;
  static Type of(const CompareSnapshot& snapshot) { return prepare(snapshot); }
};

// A snapshot and what was prepared of it, both made off the window's thread.
template <class Snapshot>
struct Shown {
  std::shared_ptr<const Snapshot> snapshot;  // null = nothing to show
  typename Preparation<Snapshot>::Type prepared;
};

// One kind of picture in a session: what was asked for last, and what is shown.
template <class Snapshot, class Request>
struct Slot {
  bool wanted = false;
  std::string path;                // of the capture the request is for
  std::optional<Request> request;  // asked for last; nullopt = nothing
  Shown<Snapshot> shown;
  std::string failure;
};

}  // namespace sinkscope
