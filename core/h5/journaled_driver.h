// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/h5/handle.h"

namespace sinkscope::h5 {

// An HDF5 file driver for adding data to a file whose structure is complete. Raw data, to
// which nothing in the file points yet, are written at once; metadata are held until the end of a
// flush and then brought in all or nothing (flush_journal.h). The file is one that HDF5's default
// driver reads.
//
// Makes files opened with the access list use it. Under a Call; Error{io}.
void use_journaled_driver(const Handle& access_list);

}  // namespace sinkscope::h5
