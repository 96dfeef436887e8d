/* core/probe/file.c: reads small files whole, and writes to pipes. */
#include "core/probe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "plugins/common/cachefile.h"

/* Where a pipe lies under the name, opening it must not wait for who writes to it. */
static heddle_status open_any(const char *path, size_t limit, int *out, uint64_t *bytes, heddle_error *err) {
  struct stat info;
  heddle_status s = HEDDLE_OK;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return heddle__fail(err, errno == ENOENT ? HEDDLE_ENOTFOUND : HEDDLE_EIO, "it could not be opened (errno %d)",
                        errno);
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) s = heddle__fail(err, HEDDLE_EIO, "it is no file");
  else if (info.st_size < 0 || (uint64_t)info.st_size > limit)
    s = heddle__fail(err, HEDDLE_ELIMIT, "it is over %zu bytes", limit);
  *bytes = s == HEDDLE_OK ? (uint64_t)info.st_size : 0;
  *out = fd;
  if (s != HEDDLE_OK) close(fd);
  return s;
}

static heddle_status open_ours(const char *path, size_t limit, int *out, uint64_t *bytes, heddle_error *err) {
  char folder[PATH_MAX], why[CACHEFILE_WHY];
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash == path || (size_t)(slash - path) >= sizeof folder)
    return heddle__fail(err, HEDDLE_EIO, "it has no absolute path, or too long a one");
  memcpy(folder, path, (size_t)(slash - path));
  folder[slash - path] = '\0';
  const cachefile_place place = {.folder = folder};
  *out = cachefile_open(&place, slash + 1, limit, bytes, why);
  if (*out >= 0) return HEDDLE_OK;
  return why[0] == '\0' ? heddle__fail(err, HEDDLE_ENOTFOUND, "it is not there")
                        : heddle__fail(err, HEDDLE_EIO, "%s", why);
}

heddle_status heddle__probe_file_read(const char *path, bool ours, size_t limit, char **text, size_t *bytes,
                                      heddle_error *err) {
  uint64_t size = 0;
  int fd = -1;
  heddle_status s = ours ? open_ours(path, limit, &fd, &size, err) : open_any(path, limit, &fd, &size, err);
  if (s != HEDDLE_OK) return s;
  char *data = malloc((size_t)size + 1);
  if (data == NULL) s = heddle__no_memory(err, "a file");
  else if (!cachefile_read(fd, data, (size_t)size))
    s = heddle__fail(err, HEDDLE_EIO, "it could not be read to its end (errno %d)", errno);
  close(fd);
  if (s != HEDDLE_OK) {
    free(data);
    return s;
  }
  data[size] = '\0';
  *text = data;
  *bytes = (size_t)size;
  return HEDDLE_OK;
}

bool heddle__file_put(int fd, const char *data, size_t bytes) {
  const struct timespec now = {0, 0};
  sigset_t size, before;
  sigemptyset(&size);
  sigaddset(&size, SIGXFSZ);
  if (pthread_sigmask(SIG_BLOCK, &size, &before) != 0) return false;
  bool good = cachefile_write_all(fd, data, bytes);
  int code = errno;
  if (!good && code == EFBIG && sigismember(&before, SIGXFSZ) == 0)
    while (sigtimedwait(&size, NULL, &now) < 0 && errno == EINTR) continue;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = code;
  return good;
}

heddle_status heddle__probe_file_write(const char *folder, const char *name, uint64_t limit, const char *text,
                                       heddle_error *err) {
  char why[CACHEFILE_WHY];
  const cachefile_place place = {folder, "probe-", ".json", limit};
  if (cachefile_write(&place, name, text, strlen(text), why)) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EIO, "%s: %s", folder, why);
}
