// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui_module.h"

#include "core/error.h"
#ifdef SINKSCOPE_WITH_GUI
#include "core/load_module.h"
#endif

namespace sinkscope {

#ifdef SINKSCOPE_WITH_GUI

bool has_gui() { return true; }

Gui& load_gui() {
  using Entry = Gui* (*)();
  static void* const entry =
      module_entry("libsinkscope_gui.so", SINKSCOPE_GUI_FILE, "sinkscope_gui");
  return *reinterpret_cast<Entry>(entry)();
}

#else

bool has_gui() { return false; }

Gui& load_gui() { throw Error(ErrorKind::unsupported, "this program was built without Qt"); }

#endif

}  // namespace sinkscope
