// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <string>

namespace sinkscope {

// A token as a label: UTF-8 as it is, bytes that are no UTF-8 as ⟨E4 B8⟩, line breaks and tabs as
// ⏎ and ⇥, other control characters as ⟨07⟩. Cut to `at_most` characters with an ellipsis.
QString token_text(const std::string& token, int at_most = 16);

}  // namespace sinkscope
