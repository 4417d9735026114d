// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QWidget;

namespace sinkscope {

class Panel;
class Session;

// The What-if panel with a desk of its own, which is its child (findChild<WhatIfDesk*>()).
Panel* make_what_if(Session& session, QWidget* parent);

}  // namespace sinkscope
