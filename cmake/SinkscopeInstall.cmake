# SPDX-License-Identifier: GPL-3.0-or-later
# `cmake --install BUILD --prefix P`: bin/sinkscope, its modules in lib/sinkscope, where
# core/load_module.cpp looks for them, and what a desktop shows. The engine keeps finding the LibTorch
# that it was built with by its RPATH.
include(GNUInstallDirs)
install(TARGETS sinkscope RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(SINKSCOPE_WITH_TORCH)
  install(TARGETS sinkscope_engine LIBRARY DESTINATION lib/sinkscope)
endif()
if(SINKSCOPE_WITH_GUI)
  install(TARGETS sinkscope_gui_module LIBRARY DESTINATION lib/sinkscope)
  install(FILES resources/sinkscope.desktop DESTINATION "${CMAKE_INSTALL_DATADIR}/applications")
  install(FILES resources/sinkscope.svg
    DESTINATION "${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps")
endif()
install(FILES README.md core/FORMAT.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
