/* core/whole_file.c: whole files in and out.
 * A file's size is looked at before memory is asked for; a file that shrinks or grows meanwhile is an error. */
#define _GNU_SOURCE /* realpath */
#include "core/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "plugins/common/cachefile.h"

heddle_status heddle__check_bytes(const char *name, uint64_t bytes, uint64_t max_bytes, heddle_error *err) {
  if (bytes <= max_bytes) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_ELIMIT, "%s: %llu bytes, and the limit is %llu; it is an option of the reader", name,
                      (unsigned long long)bytes, (unsigned long long)max_bytes);
}

static heddle_status read_all(int fd, const char *path, char *data, size_t bytes, heddle_error *err) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = read(fd, data + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return heddle__fail(err, HEDDLE_EIO, "%s: could not be read: %s", path,
                          n < 0 ? strerror(errno) : "it became shorter while it was read");
    done += (size_t)n;
  }
  return HEDDLE_OK;
}

heddle_status heddle__file_read(const char *path, uint64_t max_bytes, void **out, size_t *bytes, heddle_error *err) {
  struct stat info;
  heddle_status s = HEDDLE_OK;
  char *data = NULL;
  *out = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  if (fstat(fd, &info) != 0) s = heddle__fail(err, HEDDLE_EIO, "%s: %s", path, strerror(errno));
  else if (!S_ISREG(info.st_mode)) s = heddle__fail(err, HEDDLE_EIO, "%s: not a regular file", path);
  else s = heddle__check_bytes(path, (uint64_t)info.st_size, max_bytes, err);
  if (s == HEDDLE_OK) {
    *bytes = (size_t)info.st_size;
    data = heddle__alloc_aligned(*bytes, 64);
    s = data != NULL ? read_all(fd, path, data, *bytes, err) : heddle__no_memory(err, "the bytes of a file");
  }
  close(fd);
  if (s != HEDDLE_OK) heddle__free(data);
  else *out = data;
  return s;
}

/* ---- out */

static heddle_status failed(const char *path, int problem, heddle_error *err) {
  return heddle__fail(err, HEDDLE_EIO, "%s: could not be written: %s", path, strerror(problem));
}

/* A file's folder is synchronised too, so that the name is there after the power went. One that cannot be opened is no
 * error: the file is whole. */
static void sync_folder(const char *path) {
  char folder[4096] = ".";
  const char *slash = strrchr(path, '/');
  if (slash != NULL && (size_t)(slash - path) < sizeof folder - 1)
    snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

heddle_status heddle__aside_begin(heddle__aside *a, const char *path, bool runs, heddle_error *err) {
  static atomic_uint number;
  struct stat info;
  *a = (heddle__aside){.file = -1};
  char *real = realpath(path, NULL); /* a link stays, and what it leads to is written */
  if (real != NULL) path = real;
  size_t room = strlen(path) + 60;
  a->path = heddle__strndup(path, strlen(path));
  a->aside = heddle__alloc(room, 1);
  heddle_status s = a->path != NULL && a->aside != NULL ? HEDDLE_OK : heddle__no_memory(err, "a file that is written");
  if (s == HEDDLE_OK) {
    a->in_place = stat(path, &info) == 0 && !S_ISREG(info.st_mode); /* a pipe, a terminal: nothing to be kept whole */
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    snprintf(a->aside, room, "%s.%ld-%u.part", path, (long)getpid(), atomic_fetch_add(&number, 1));
    a->file = a->in_place ? open(path, O_WRONLY | O_CLOEXEC) : open(a->aside, flags, runs ? 0777 : 0666);
    if (a->file < 0) s = failed(path, errno, err);
  }
  free(real);
  if (s != HEDDLE_OK) heddle__aside_drop(a);
  return s;
}

heddle_status heddle__aside_put(heddle__aside *a, const void *data, size_t bytes, heddle_error *err) {
  return cachefile_write_all(a->file, data, bytes) ? HEDDLE_OK : failed(a->path, errno, err);
}

heddle_status heddle__aside_keep(heddle__aside *a, heddle_error *err) {
  int problem = 0;
  if (!a->in_place && fsync(a->file) != 0) problem = errno;
  if (close(a->file) != 0 && problem == 0) problem = errno;
  a->file = -1;
  if (problem == 0 && !a->in_place && rename(a->aside, a->path) != 0) problem = errno;
  heddle_status s = problem == 0 ? HEDDLE_OK : failed(a->path, problem, err);
  if (s == HEDDLE_OK && !a->in_place) {
    a->in_place = true; /* it has its name: nothing is left to be removed */
    sync_folder(a->path);
  }
  heddle__aside_drop(a);
  return s;
}

void heddle__aside_drop(heddle__aside *a) {
  if (a->file >= 0) close(a->file);
  if (a->aside != NULL && a->path != NULL && !a->in_place) unlink(a->aside);
  heddle__free(a->path);
  heddle__free(a->aside);
  *a = (heddle__aside){.file = -1};
}

heddle_status heddle__file_write(const char *path, const void *data, size_t bytes, heddle_error *err) {
  heddle__aside a;
  heddle_status s = heddle__aside_begin(&a, path, false, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__aside_put(&a, data, bytes, err);
  if (s == HEDDLE_OK) return heddle__aside_keep(&a, err);
  heddle__aside_drop(&a);
  return s;
}
