/* probe/file.c: reads small files whole, and writes them aside and renames them. */
#define _GNU_SOURCE /* mkostemp, sigtimedwait */
#include "probe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/error.h"

/* Where a pipe lies under the name, opening it must not wait for who writes to it. */
enum { HOW = O_RDONLY | O_CLOEXEC | O_NONBLOCK };

heddle_status heddle__probe_file_read(const char *path, bool ours, size_t limit, char **text, size_t *bytes,
                                      heddle_error *err) {
  struct stat info;
  int fd = open(path, ours ? HOW | O_NOFOLLOW : HOW);
  if (fd < 0)
    return heddle__fail(err, errno == ENOENT ? HEDDLE_ENOTFOUND : HEDDLE_EIO, "it could not be opened (errno %d)",
                        errno);
  heddle_status s = HEDDLE_OK;
  char *data = NULL;
  size_t used = 0;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) s = heddle__fail(err, HEDDLE_EIO, "it is no file");
  else if (ours && (info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0))
    s = heddle__fail(err, HEDDLE_EIO, "others may write to it");
  else if (info.st_size < 0 || (uint64_t)info.st_size > limit)
    s = heddle__fail(err, HEDDLE_ELIMIT, "it is over %zu bytes", limit);
  else if ((data = malloc((size_t)info.st_size + 1)) == NULL) s = heddle__no_memory(err, "a file");
  while (s == HEDDLE_OK && used < (size_t)info.st_size) {
    ssize_t got = read(fd, data + used, (size_t)info.st_size - used);
    if (got == 0) break; /* it was cut meanwhile: what reads it says what is missing */
    if (got > 0) used += (size_t)got;
    else if (errno != EINTR) s = heddle__fail(err, HEDDLE_EIO, "it could not be read (errno %d)", errno);
  }
  close(fd);
  if (s != HEDDLE_OK) {
    free(data);
    return s;
  }
  data[used] = '\0';
  *text = data;
  *bytes = used;
  return HEDDLE_OK;
}

static bool put_all(int fd, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t put = write(fd, data, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data += put;
    bytes -= (size_t)put;
  }
  return true;
}

bool heddle__file_put(int fd, const char *data, size_t bytes) {
  const struct timespec now = {0, 0};
  sigset_t size, before;
  sigemptyset(&size);
  sigaddset(&size, SIGXFSZ);
  if (pthread_sigmask(SIG_BLOCK, &size, &before) != 0) return false;
  bool good = put_all(fd, data, bytes);
  int code = errno;
  if (!good && code == EFBIG && sigismember(&before, SIGXFSZ) == 0)
    while (sigtimedwait(&size, NULL, &now) < 0 && errno == EINTR) continue;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = code;
  return good;
}

heddle_status heddle__probe_file_write(const char *folder, const char *name, const char *text, heddle_error *err) {
  char aside[PATH_MAX], path[PATH_MAX];
  int code = heddle__cache_folder_make(folder);
  if (code != 0) return heddle__fail(err, HEDDLE_EIO, "folder %s could not be made (errno %d)", folder, code);
  if (!heddle__cache_folder_is_ours(folder))
    return heddle__fail(err, HEDDLE_EIO, "folder %s is another user's, or everybody may write to it", folder);
  int n = snprintf(aside, sizeof aside, "%s/%s.XXXXXX", folder, name);
  if (n < 0 || (size_t)n >= sizeof aside || snprintf(path, sizeof path, "%s/%s", folder, name) < 0)
    return heddle__fail(err, HEDDLE_ELIMIT, "folder %s has too long a path", folder);
  int fd = mkostemp(aside, O_CLOEXEC); /* mode 0600 */
  if (fd < 0) return heddle__fail(err, HEDDLE_EIO, "no file can be made in %s (errno %d)", folder, errno);
  bool good = heddle__file_put(fd, text, strlen(text));
  code = errno;
  if (close(fd) != 0 && good) {
    good = false;
    code = errno;
  }
  if (good && rename(aside, path) == 0) return HEDDLE_OK;
  if (good) code = errno;
  (void)unlink(aside);
  return heddle__fail(err, HEDDLE_EIO, "%s could not be written (errno %d)", path, code);
}
