/* executor/weights/file.c: files of packed weights on the disk. The head has the key, the sizes, a hash of what follows,
 * and what the file's time of change was set to: one that was changed since, or that is from before the machine was last
 * started (its pages may never have reached the disk), is read through and compared with that hash before it is used. */

#include "executor/weights/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"

#define MAGIC "HDLWGT1\n"
#define PREFIX "weights-"
#define SUFFIX ".bin"

enum { HEAD_BYTES = 4096 };

typedef struct head {
  char magic[8];
  heddle__digest key;
  uint64_t bytes;
  heddle__digest content, boot;
  int64_t seconds, nanoseconds; /* the time of change that the file was given */
  heddle__digest self;          /* of what stands before it */
} head;

void heddle__weights_say(const heddle__weights_file *f, int32_t level, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vlogf(f->log, level, "weights", format, args);
  va_end(args);
}

/* Tells one running of the machine from another; zero where the system does not. */
static heddle__digest boot_of(void) {
  heddle__digest d = {{0, 0}};
  char text[64];
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
  if (fd >= 0) close(fd);
  if (n > 0) heddle__digest_add(&d, text, (uint64_t)n);
  return d;
}

static void seal(head *h) {
  h->self = (heddle__digest){{0, 0}};
  heddle__digest_add(&h->self, h, offsetof(head, self));
}

/* ---- the folder */

/* Says why nothing is kept. */
static bool refuse(const heddle__weights_file *f, const char *what, int code) {
  heddle__weights_say(
      f, f->folder_given ? HEDDLE_LOG_WARN : HEDDLE_LOG_INFO,
      "packed weights are not kept: %s: %s%s%s; weights.cache_dir can name a folder of yours, or be off", f->folder,
      what, code != 0 ? ": " : "", code != 0 ? strerror(code) : "");
  return false;
}

/* ---- finding */

/* Checks what the head says; mapped at h. */
static bool is_good(const heddle__weights_file *f, int fd, const struct stat *info, const head *h) {
  head now = *h;
  heddle__digest boot = boot_of(), content = {{0, 0}};
  seal(&now);
  if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 || !heddle__digest_same(&h->self, &now.self) ||
      !heddle__digest_same(&h->key, &f->key) || h->bytes != f->bytes)
    return false;
  bool as_it_was = heddle__digest_same(&h->boot, &boot) && (boot.word[0] | boot.word[1]) != 0 &&
                   info->st_mtim.tv_sec == h->seconds && info->st_mtim.tv_nsec == h->nanoseconds;
  if (as_it_was) return true;
  heddle__digest_add(&content, f->data, f->bytes);
  if (!heddle__digest_same(&content, &h->content)) return false;
  now.boot = boot; /* next time it need not be read through */
  seal(&now);
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = h->seconds, .tv_nsec = h->nanoseconds}};
  int again = open(f->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat its;
  if (again >= 0 && fstat(again, &its) == 0 && its.st_ino == info->st_ino && its.st_dev == info->st_dev &&
      pwrite(again, &now, sizeof now, 0) == (ssize_t)sizeof now)
    (void)futimens(again, times);
  if (again >= 0) close(again);
  (void)fd;
  return true;
}

bool heddle__weights_file_find(heddle__weights_file *f) {
  f->fd = -1;
  f->path = heddle__format("%s/" PREFIX "%016llx%016llx" SUFFIX, f->folder, (unsigned long long)f->key.word[0],
                           (unsigned long long)f->key.word[1]);
  if (f->path == NULL || !heddle__cache_folder_is_ours(f->folder)) return false;
  int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  struct stat info;
  const uint64_t whole = f->bytes + HEAD_BYTES;
  bool good =
      fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && (uint64_t)info.st_size == whole;
  if (good) {
    f->map = mmap(NULL, (size_t)whole, PROT_READ, MAP_SHARED, fd, 0);
    good = f->map != MAP_FAILED;
    if (!good) f->map = NULL;
  }
  if (good) {
    f->data = (char *)f->map + HEAD_BYTES;
    good = is_good(f, fd, &info, f->map);
  }
  if (good) {
    const struct timespec used[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    (void)futimens(fd, used);
  } else {
    if (f->map != NULL) munmap(f->map, (size_t)whole);
    f->map = f->data = NULL;
    heddle__weights_say(f, HEDDLE_LOG_WARN, "%s is damaged, and is made anew", f->path);
  }
  close(fd);
  return good;
}

/* ---- making */

/* Who makes a file holds a lock on it, which goes with the process. Before it has it, somebody else's tidying may take the
 * file for an abandoned one and remove it: then it is made again. -1 with errno. */
static int make_aside(const char *path) {
  struct stat info;
  int fd = -1;
  for (int turn = 0; turn < 100; turn++) {
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) break;
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR) continue; /* without locks nobody removes it either */
    if (fstat(fd, &info) == 0 && info.st_nlink > 0) break;
    close(fd);
    fd = -1;
    errno = EBUSY;
  }
  return fd;
}

static void remove_abandoned(int folder, const char *name) {
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(folder, name, 0);
  close(fd);
}

/* Removes what was used least lately until the folder is within its limit, and files whose makers are gone. */
static void tidy(const heddle__weights_file *f) {
  for (int turn = 0; turn < 1000; turn++) {
    struct stat info, oldest = {.st_size = 0};
    char name[256] = "";
    uint64_t total = 0;
    DIR *dir = opendir(f->folder);
    if (dir == NULL) return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
      const char *end = strstr(e->d_name, SUFFIX);
      if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) != 0 || end == NULL || strlen(e->d_name) >= sizeof name)
        continue;
      if (fstatat(dirfd(dir), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
      bool in_making = end[sizeof SUFFIX - 1] != '\0';
      if (in_making) remove_abandoned(dirfd(dir), e->d_name);
      if (in_making) continue;
      total += (uint64_t)info.st_size;
      bool is_own = strcmp(e->d_name, strrchr(f->path, '/') + 1) == 0;
      bool older = name[0] == '\0' || info.st_atim.tv_sec < oldest.st_atim.tv_sec ||
                   (info.st_atim.tv_sec == oldest.st_atim.tv_sec && info.st_atim.tv_nsec < oldest.st_atim.tv_nsec);
      if (is_own || !older) continue;
      oldest = info;
      strcpy(name, e->d_name);
    }
    bool over = total > f->limit && name[0] != '\0' && unlinkat(dirfd(dir), name, 0) == 0;
    closedir(dir);
    if (!over) return;
    heddle__weights_say(f, HEDDLE_LOG_INFO, "%s/%s was removed: the limit is %llu bytes", f->folder, name,
                        (unsigned long long)f->limit);
  }
}

bool heddle__weights_file_make(heddle__weights_file *f) {
  const uint64_t whole = f->bytes + HEAD_BYTES;
  struct rlimit most; /* beyond it a signal would end the process */
  if (f->path == NULL || whole > f->limit || whole > SIZE_MAX / 2) return false;
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && whole > most.rlim_cur) return false;
  int code = heddle__cache_folder_make(f->folder);
  if (code != 0) return refuse(f, "it could not be made", code);
  if (!heddle__cache_folder_is_ours(f->folder))
    return refuse(f, "it is no folder, another user's, or everybody may write to it", 0);
  f->aside = heddle__format("%s.%ld-%llx", f->path, (long)getpid(), (unsigned long long)heddle__now_ns());
  if (f->aside == NULL) return false;
  tidy(f);
  f->fd = make_aside(f->aside);
  if (f->fd < 0) return refuse(f, "no file can be made there", errno);
  code = EINTR; /* so that no page is missing when it is written to */
  for (int turn = 0; turn < 100 && code == EINTR; turn++) code = posix_fallocate(f->fd, 0, (off_t)whole);
  if (code != 0) return refuse(f, "there is no room for it", code);
  f->map = mmap(NULL, (size_t)whole, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
  if (f->map == MAP_FAILED) {
    f->map = NULL;
    return refuse(f, "it cannot be mapped", errno);
  }
  f->data = (char *)f->map + HEAD_BYTES;
  return true;
}

void heddle__weights_file_keep(heddle__weights_file *f) {
  head h = {.key = f->key, .bytes = f->bytes, .boot = boot_of()};
  struct timespec now;
  memcpy(h.magic, MAGIC, sizeof h.magic);
  heddle__digest_add(&h.content, f->data, f->bytes);
  clock_gettime(CLOCK_REALTIME, &now);
  h.seconds = now.tv_sec;
  h.nanoseconds = now.tv_nsec;
  seal(&h);
  memcpy(f->map, &h, sizeof h);
  const struct timespec times[2] = {now, now};
  bool good = mprotect(f->map, (size_t)(f->bytes + HEAD_BYTES), PROT_READ) == 0 && futimens(f->fd, times) == 0 &&
              rename(f->aside, f->path) == 0;
  if (!good) {
    refuse(f, "a file there could not be finished", errno);
    return;
  }
  heddle__free(f->aside);
  f->aside = NULL;
  heddle__weights_say(f, HEDDLE_LOG_INFO, "%llu bytes of packed weights are kept in %s", (unsigned long long)f->bytes,
                      f->path);
  tidy(f);
}

void heddle__weights_file_end(heddle__weights_file *f) {
  if (f->aside != NULL && f->fd >= 0) (void)unlink(f->aside);
  if (f->fd >= 0) close(f->fd);
  heddle__free(f->aside);
  heddle__free(f->path);
}

void heddle__weights_file_unmap(void *map, uint64_t bytes) {
  munmap(map, (size_t)(bytes + HEAD_BYTES));
}
