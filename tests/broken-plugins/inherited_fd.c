/* A file is open while an instance is, and programs that the host starts inherit it.
 * caught by: process/inherited
 * says: close-on-exec */
#include "base.h"

#include <fcntl.h>
#include <unistd.h>

static _Atomic int file = -1;

static heddle_status open_instance(const heddle_host *host, heddle_pinstance **out, heddle_error *err) {
  int fd = open("/dev/zero", O_RDONLY), old = atomic_exchange(&file, fd);
  if (old >= 0) close(old);
  return base_open_instance(host, out, err);
}

static void close_instance(heddle_pinstance *self) {
  int old = atomic_exchange(&file, -1);
  if (old >= 0) close(old);
  base_close_instance(self);
}

#define base_open_instance open_instance
#define base_close_instance close_instance
#include "tables.h"
