// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/trial_reading.h"

#include <fmt/format.h>

#include <QProcess>
#include <QStringList>

#include "core/error.h"

namespace sinkscope {

void read_in_another_process(const QString& program, const std::string& path) {
  constexpr int kMostMilliseconds = 20'000;
  QProcess process;
  process.setStandardOutputFile(QProcess::nullDevice());
  process.setStandardErrorFile(QProcess::nullDevice());
  process.start(program,
                {QStringLiteral("repair"), QString::fromStdString(path), QStringLiteral("--check"),
                 QStringLiteral("first"), QStringLiteral("--json")});
  const bool has_ended = process.waitForFinished(kMostMilliseconds);
  if (process.error() == QProcess::FailedToStart) return;  // no program, no trial
  if (!has_ended) {
    process.kill();
    process.waitForFinished();
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: another process was still reading it after {} s; not opened", path,
                            kMostMilliseconds / 1000));
  }
  if (process.exitStatus() == QProcess::CrashExit)
    throw Error(
        ErrorKind::corrupt,
        fmt::format("{}: the HDF5 library crashed when another process read it; not opened", path));
}

}  // namespace sinkscope
