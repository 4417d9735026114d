// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/draw/pyramid.h"
#include "core/snapshot/attention_snapshot.h"
#include "core/snapshot/compare_snapshot.h"
#include "core/snapshot/norms_snapshot.h"
#include "core/snapshot/overview_snapshot.h"
#include "core/snapshot/residual_snapshot.h"
#include "core/snapshot/thumbnail_snapshot.h"

namespace sinkscope {

// A snapshot with the pyramid of its map, both made off the window's thread.
template <class Snapshot>
struct Shown {
  std::shared_ptr<const Snapshot> snapshot;  // null = nothing to show
  Pyramid pyramid;                           // of snapshot->map, where there is one large map
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

// The one map of a snapshot that is large enough to need a pyramid.
template <class Snapshot>
Pyramid pyramid_of(const Snapshot& /*snapshot*/) {
  return Pyramid();
}
inline Pyramid pyramid_of(const AttentionSnapshot& snapshot) { return Pyramid(snapshot.map); }
inline Pyramid pyramid_of(const ResidualSnapshot& snapshot) { return Pyramid(snapshot.map); }

}  // namespace sinkscope
