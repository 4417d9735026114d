// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QWidget;

namespace sinkscope {

class Panel;
class Session;

// The Rescaling panel with a desk of its own, which is its child (findChild<RescalingDesk*>()).
Panel* make_rescaling(Session& session, QWidget* parent);

}  // namespace sinkscope
