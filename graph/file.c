/* graph/file.c: whole files in and out, and the limits of the readers.
 * A file's size is looked at before memory is asked for; a file that shrinks or grows meanwhile is an error. */
#include "graph/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"

void heddle__read_limits(const heddle_read_limits *given, uint64_t max_bytes, uint32_t max_nodes, uint32_t max_depth,
                         heddle_read_limits *out) {
  *out = (heddle_read_limits){.struct_size = sizeof *out};
  if (given != NULL) memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
  if (out->max_bytes == 0) out->max_bytes = max_bytes;
  if (out->max_nodes == 0) out->max_nodes = max_nodes;
  if (out->max_depth == 0) out->max_depth = max_depth;
  out->struct_size = sizeof *out;
}

void heddle__graph_limits(const heddle_read_limits *given, heddle_read_limits *out) {
  heddle__read_limits(given, UINT64_C(1) << 30, 4000000, 64, out);
}

void heddle__params_limits(const heddle_read_limits *given, heddle_read_limits *out) {
  heddle__read_limits(given, UINT64_C(16) << 30, 0, 0, out);
}

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

heddle_status heddle__file_write(const char *path, const void *data, size_t bytes, heddle_error *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), problem = fd < 0 ? errno : 0;
  for (size_t done = 0; done < bytes && problem == 0;) {
    ssize_t n = write(fd, (const char *)data + done, bytes - done);
    if (n >= 0) done += (size_t)n;
    else if (errno != EINTR) problem = errno;
  }
  if (fd >= 0 && close(fd) != 0 && problem == 0) problem = errno;
  if (problem == 0) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EIO, "%s: could not be written: %s", path, strerror(problem));
}
