// SPDX-License-Identifier: GPL-3.0-or-later
// Preloaded: a file system without locks, as some network and cluster file systems are.
#include <errno.h>
#include <stdlib.h>

int flock(int descriptor, int operation);
int flock(int descriptor, int operation) {
  (void)descriptor;
  (void)operation;
  const char* set = getenv("NO_FLOCK_ERRNO");
  errno = set == NULL ? ENOLCK : atoi(set);
  return -1;
}
