/* The calls of cachefile.h. */
#define _GNU_SOURCE /* realpath, S_ISVTX */
#include "plugins/common/cachefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 100, MOST_REMOVED = 10000 };

/* Gives false. code is errno's number or 0. */
static bool because(char *why, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool because(char *why, int code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(why, CACHEFILE_WHY, format, args);
  va_end(args);
  if (code != 0 && n >= 0 && n < CACHEFILE_WHY)
    snprintf(why + n, CACHEFILE_WHY - (size_t)n, ": %s (errno %d)", strerror(code), code);
  return false;
}

/* ---------------------------------------------------------------- the folder */

static int make_folders(char *path) {
  for (char *p = path + 1;; p++) {
    if (*p != '/' && *p != '\0') continue;
    const char end = *p;
    *p = '\0';
    const int code = mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : errno;
    if (code != 0 && access(path, F_OK) != 0) return code;
    *p = end;
    if (end == '\0') return 0;
  }
}

static bool others_may_write(const struct stat *at) {
  return (at->st_mode & S_IWOTH) != 0 || cachefile_group_may_write(at);
}

/* Of a real path: no folder above it is one in which others may rename. Cuts the path. */
static bool above_is_good(char *real, char *why) {
  for (char *slash; (slash = strrchr(real, '/')) != NULL && real[1] != '\0';) {
    struct stat at;
    slash[slash == real ? 1 : 0] = '\0';
    if (stat(real, &at) != 0) return because(why, errno, "%s above it cannot be looked at", real);
    if ((at.st_mode & S_ISVTX) == 0 && others_may_write(&at))
      return because(why, 0, "%s above it can be written to by others (mode %04o, group %u)", real,
                     (unsigned)at.st_mode & 07777, (unsigned)at.st_gid);
  }
  return true;
}

/* What is at path is this descriptor's folder, which is real's. */
static bool folder_is_good(const char *path, char *real, int folder, char *why) {
  struct stat named, at;
  if (lstat(path, &named) != 0) return because(why, errno, "it cannot be looked at");
  if (S_ISLNK(named.st_mode)) return because(why, 0, "it is a symbolic link; only the folder itself is used");
  if (!S_ISDIR(named.st_mode) || fstat(folder, &at) != 0 || at.st_ino != named.st_ino || at.st_dev != named.st_dev)
    return because(why, 0, "it is no folder");
  if (at.st_uid != geteuid()) return because(why, 0, "it belongs to another user, %u", (unsigned)at.st_uid);
  if (others_may_write(&at))
    return because(why, 0, "%s may write to it (mode %04o, group %u): 'chmod go-w' it",
                   (at.st_mode & S_IWOTH) != 0 ? "everybody" : "its group", (unsigned)at.st_mode & 07777,
                   (unsigned)at.st_gid);
  return above_is_good(real, why);
}

int cachefile_folder(const char *path, bool make, char *why) {
  char copy[PATH_MAX], real[PATH_MAX];
  size_t n = strlen(path);
  why[0] = '\0';
  while (n > 1 && path[n - 1] == '/') n--; /* behind a slash, a link would be followed */
  if (path[0] != '/' || n >= sizeof copy) return because(why, 0, "it has no absolute path, or too long a one"), -1;
  memcpy(copy, path, n);
  copy[n] = '\0';
  const int made = make ? make_folders(copy) : 0;
  if (made != 0) return because(why, made, "it could not be made"), -1;
  if (realpath(copy, real) == NULL) {
    if (errno != ENOENT || make) because(why, errno, "it cannot be looked at");
    return -1;
  }
  const int folder = open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (folder < 0) return because(why, errno, errno == ENOTDIR ? "it is no folder" : "it cannot be opened"), -1;
  if (folder_is_good(copy, real, folder, why)) return folder;
  close(folder);
  return -1;
}

/* ---------------------------------------------------------------- reading */

static bool file_is_good(int file, uint64_t most, uint64_t *bytes, char *why) {
  struct stat at;
  if (fstat(file, &at) != 0 || !S_ISREG(at.st_mode)) return because(why, 0, "it is no regular file");
  if (at.st_uid != geteuid()) return because(why, 0, "it belongs to another user, %u", (unsigned)at.st_uid);
  if ((at.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return because(why, 0, "others may write to it (mode %04o)", (unsigned)at.st_mode & 07777);
  *bytes = at.st_size > 0 ? (uint64_t)at.st_size : 0;
  return *bytes <= most || because(why, 0, "it is over %llu bytes", (unsigned long long)most);
}

int cachefile_open(const cachefile_place *place, const char *name, uint64_t most, uint64_t *bytes, char *why) {
  const int folder = cachefile_folder(place->folder, false, why);
  if (folder < 0) return -1;
  const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  const int code = errno;
  close(folder);
  if (file < 0) {
    if (code == ELOOP) because(why, 0, "%s is a symbolic link", name);
    else if (code != ENOENT) because(why, code, "%s cannot be opened", name);
    return -1;
  }
  char reason[CACHEFILE_WHY];
  if (!file_is_good(file, most, bytes, reason)) {
    because(why, 0, "%s: %.300s", name, reason);
    close(file);
    return -1;
  }
  const struct timespec used[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
  (void)futimens(file, used); /* file systems need not keep it by themselves */
  return file;
}

bool cachefile_read(int file, void *to, size_t bytes) {
  for (char *at = to; bytes > 0;) {
    const ssize_t got = read(file, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= (size_t)got;
  }
  return true;
}

/* ---------------------------------------------------------------- room in the folder */

/* Of this kind: a file that has its name, or one in the making, whose name goes on behind the suffix. */
typedef enum kind { OTHER, KEPT, IN_MAKING } kind;

static kind kind_of(const cachefile_place *place, const char *name) {
  if (name[0] == '.') name++;
  if (strncmp(name, place->prefix, strlen(place->prefix)) != 0) return OTHER;
  const char *end = strstr(name + strlen(place->prefix), place->suffix);
  if (end == NULL) return OTHER;
  end += strlen(place->suffix);
  return *end == '\0' ? KEPT : *end == '.' ? IN_MAKING : OTHER;
}

/* Where the lock of its maker is not held. */
static void remove_abandoned(int folder, const char *name) {
  const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  if (flock(file, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(folder, name, 0);
  close(file);
}

static bool is_older(const struct stat *a, const struct stat *b) {
  if (a->st_atim.tv_sec != b->st_atim.tv_sec) return a->st_atim.tv_sec < b->st_atim.tv_sec;
  return a->st_atim.tv_nsec < b->st_atim.tv_nsec;
}

/* The bytes of the files but for the one of that name; oldest is the name of the one that was used longest ago, or empty. */
static uint64_t look_through(const cachefile *f, DIR *dir, char oldest[NAME_MAX + 1]) {
  struct stat at, old = {.st_size = 0};
  uint64_t total = 0;
  oldest[0] = '\0';
  for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
    const kind is = kind_of(f->place, e->d_name);
    if (is == OTHER || fstatat(dirfd(dir), e->d_name, &at, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(at.st_mode)) continue;
    if (is == IN_MAKING) remove_abandoned(dirfd(dir), e->d_name);
    if (is == IN_MAKING || strcmp(e->d_name, f->name) == 0) continue;
    total += (uint64_t)at.st_size;
    if (oldest[0] != '\0' && !is_older(&at, &old)) continue;
    old = at;
    strcpy(oldest, e->d_name);
  }
  return total;
}

/* Removes what dead processes left, and the oldest files until there is room for this one. */
static void make_room(cachefile *f) {
  char oldest[NAME_MAX + 1];
  for (int turn = 0; turn < MOST_REMOVED; turn++) {
    const int again = openat(f->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    if (dir == NULL) {
      if (again >= 0) close(again);
      return;
    }
    const uint64_t total = look_through(f, dir, oldest);
    const bool over = total > f->place->limit - f->bytes && oldest[0] != '\0';
    const bool removed = over && unlinkat(dirfd(dir), oldest, 0) == 0;
    closedir(dir);
    if (!removed) return;
    f->removed++;
  }
}

/* ---------------------------------------------------------------- writing */

bool cachefile_fits(uint64_t bytes, char *why) {
  struct rlimit most;
  if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY || bytes <= most.rlim_cur) return true;
  return because(why, 0, "the process may write files of %llu bytes at most (RLIMIT_FSIZE), and it needs one of %llu",
                 (unsigned long long)most.rlim_cur, (unsigned long long)bytes);
}

/* Its maker holds a lock on it. Before it has it, another process may take the file for an abandoned one and remove it: then
 * it is made again. */
static bool make_aside(cachefile *f, char *why) {
  struct stat at;
  for (int turn = 0; turn < TRIES; turn++) {
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(f->aside, sizeof f->aside, "%s.%ld-%llx", f->name, (long)getpid(),
             (unsigned long long)now.tv_sec * 1000000000U + (unsigned long long)now.tv_nsec + (unsigned)turn);
    f->file = openat(f->folder, f->aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->file < 0 && errno == EEXIST) continue; /* of another thread */
    if (f->file < 0) break;
    while (flock(f->file, LOCK_EX) != 0 && errno == EINTR) continue; /* without locks it is not removed either */
    if (fstat(f->file, &at) == 0 && at.st_nlink > 0) return true;
    close(f->file);
    f->file = -1;
    errno = EBUSY;
  }
  return because(why, errno, "no file can be made there");
}

bool cachefile_begin(cachefile *f, const cachefile_place *place, const char *name, uint64_t bytes, char *why) {
  *f = (cachefile){.place = place, .folder = -1, .file = -1, .bytes = bytes};
  why[0] = '\0';
  if (strlen(name) >= sizeof f->name || kind_of(place, name) != KEPT) return because(why, 0, "%s is no name", name);
  strcpy(f->name, name);
  if (bytes > place->limit)
    return because(why, 0, "a file of %llu bytes is beyond the limit of the folder, %llu bytes",
                   (unsigned long long)bytes, (unsigned long long)place->limit);
  if (!cachefile_fits(bytes, why)) return false;
  f->folder = cachefile_folder(place->folder, true, why);
  if (f->folder < 0) return false;
  make_room(f);
  if (make_aside(f, why)) return true;
  cachefile_drop(f);
  return false;
}

bool cachefile_write_all(int file, const void *data, size_t bytes) {
  for (const char *at = data; bytes > 0;) {
    const ssize_t put = write(file, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;
    if (put <= 0) return false;
    at += put;
    bytes -= (size_t)put;
  }
  return true;
}

bool cachefile_put(cachefile *f, const void *data, size_t bytes, char *why) {
  if (bytes > f->bytes - f->put) return because(why, 0, "it would be larger than it was begun");
  if (!cachefile_fits(f->put + bytes, why)) return false;
  if (!cachefile_write_all(f->file, data, bytes)) return because(why, errno, "a file there could not be written");
  f->put += bytes;
  return true;
}

bool cachefile_keep(cachefile *f, bool sync, char *why) {
  bool good = true;
  if (sync && fdatasync(f->file) != 0 && errno != EINVAL && errno != EROFS) /* where it cannot be synchronised */
    good = because(why, errno, "a file there could not be synchronised");
  if (good && renameat(f->folder, f->aside, f->folder, f->name) != 0)
    good = because(why, errno, "a file there could not be given its name");
  if (good) f->aside[0] = '\0';
  if (good) make_room(f); /* others may have written meanwhile */
  cachefile_drop(f);
  return good;
}

void cachefile_drop(cachefile *f) {
  if (f->file >= 0 && f->aside[0] != '\0') (void)unlinkat(f->folder, f->aside, 0);
  if (f->file >= 0) close(f->file);
  if (f->folder >= 0) close(f->folder);
  f->file = f->folder = -1;
}

bool cachefile_write(const cachefile_place *place, const char *name, const void *data, uint64_t bytes, char *why) {
  cachefile f;
  if (!cachefile_begin(&f, place, name, bytes, why)) return false;
  if (cachefile_put(&f, data, (size_t)bytes, why)) return cachefile_keep(&f, true, why);
  cachefile_drop(&f);
  return false;
}
