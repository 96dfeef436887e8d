/* A library that shows that it was opened: it makes the file PATH.opened beside itself. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((constructor)) static void show(void) {
  static const char here = 0;
  Dl_info own;
  char path[4096];
  if (dladdr(&here, &own) == 0 || own.dli_fname == NULL) return;
  snprintf(path, sizeof path, "%s.opened", own.dli_fname);
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) close(fd);
}
