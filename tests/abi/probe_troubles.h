/* What drivers do as they start, for plugins that are built with PROBE_ENTERS=one of these: to fail for want of a resource,
 * and to obey the environment. */
#ifndef HEDDLE_TESTS_PROBE_TROUBLES_H
#define HEDDLE_TESTS_PROBE_TROUBLES_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Needs 1 GiB of address space, and leaves none of it taken. */
static inline void probe_is_hungry(void) {
  void *p = mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) raise(SIGABRT);
  else munmap(p, 1 << 30);
}

/* Takes all that there is of what PROBE_TAKES names, where there is a limit on it, and crashes. */
static inline void probe_takes_all(void) {
  const char *what = getenv("PROBE_TAKES");
  if (what == NULL) return;
  if (strcmp(what, "files") == 0)
    while (open("/dev/null", O_RDONLY) >= 0) continue;
  else
    while (mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) continue;
  raise(SIGABRT);
}

static inline void probe_signals(void) {
  const char *number = getenv("PROBE_SIGNAL");
  if (number != NULL) raise(atoi(number));
}

/* Writes the file that PROBE_MARKER names, as a loader opens a library that its variables name. */
static inline void probe_obeys(void) {
  const char *path = getenv("PROBE_MARKER");
  int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
  if (fd >= 0) close(fd);
}

#endif
