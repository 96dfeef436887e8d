/* executor/weights/file.c: files of packed weights on the disk. The head has the key, the sizes, a hash of what follows,
 * and what the file's time of change was set to: one that was changed since, or that is from before the machine was last
 * started (its pages may never have reached the disk), is read through and compared with that hash before it is used. */

#include "executor/weights/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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

/* Identifies the current boot of the machine; zero where the system does not. */
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
      "packed weights are not kept: %s: %s%s%s; weights.cache_dir can name a folder of yours, or be off",
      f->place.folder, what, code != 0 ? ": " : "", code != 0 ? strerror(code) : "");
  return false;
}

/* ---- finding */

/* Checks what the head says; mapped at h. */
static bool is_good(const heddle__weights_file *f, const struct stat *info, const head *h) {
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
  char why[CACHEFILE_WHY];
  struct stat its;
  const int folder = cachefile_fits(sizeof now, why) ? cachefile_folder(f->place.folder, false, why) : -1;
  const int again = folder >= 0 ? openat(folder, f->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
  if (again >= 0 && fstat(again, &its) == 0 && its.st_ino == info->st_ino && its.st_dev == info->st_dev &&
      pwrite(again, &now, sizeof now, 0) == (ssize_t)sizeof now)
    (void)futimens(again, times);
  if (again >= 0) close(again);
  if (folder >= 0) close(folder);
  return true;
}

void heddle__weights_file_name(heddle__weights_file *f) {
  snprintf(f->name, sizeof f->name, PREFIX "%016llx%016llx" SUFFIX, (unsigned long long)f->key.word[0],
           (unsigned long long)f->key.word[1]);
}

bool heddle__weights_file_take(heddle__weights_file *f, const void *whole, uint64_t bytes) {
  head h;
  if (bytes != f->bytes + HEAD_BYTES) return false;
  memcpy(&h, whole, sizeof h);
  head now = h;
  seal(&now);
  if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0 || !heddle__digest_same(&h.self, &now.self) ||
      !heddle__digest_same(&h.key, &f->key) || h.bytes != f->bytes)
    return false; /* who gave it has compared its bytes with their digest */
  f->data = (char *)(uintptr_t)whole + HEAD_BYTES;
  return true;
}

bool heddle__weights_file_find(heddle__weights_file *f) {
  const uint64_t whole = f->bytes + HEAD_BYTES;
  uint64_t bytes = 0;
  char why[CACHEFILE_WHY];
  struct stat info;
  heddle__weights_file_name(f);
  f->place.prefix = PREFIX;
  f->place.suffix = SUFFIX;
  const int fd = cachefile_open(&f->place, f->name, UINT64_MAX, &bytes, why);
  if (fd < 0) return false; /* what hinders is reported where one is made */
  bool good = bytes == whole && fstat(fd, &info) == 0;
  if (good) {
    f->map = mmap(NULL, (size_t)whole, PROT_READ, MAP_SHARED, fd, 0);
    good = f->map != MAP_FAILED;
    if (!good) f->map = NULL;
  }
  if (good) {
    f->data = (char *)f->map + HEAD_BYTES;
    good = is_good(f, &info, f->map);
  }
  if (!good) {
    if (f->map != NULL) munmap(f->map, (size_t)whole);
    f->map = f->data = NULL;
    heddle__weights_say(f, HEDDLE_LOG_WARN, "%s/%s is damaged, and is made anew", f->place.folder, f->name);
  }
  close(fd);
  return good;
}

/* ---- making */

bool heddle__weights_file_make(heddle__weights_file *f) {
  const uint64_t whole = f->bytes + HEAD_BYTES;
  char why[CACHEFILE_WHY];
  if (whole > f->place.limit || whole > SIZE_MAX / 2) return false;
  f->making = cachefile_begin(&f->file, &f->place, f->name, whole, why);
  if (!f->making) return refuse(f, why, 0);
  int code = EINTR; /* so that no page is missing when it is written to */
  for (int turn = 0; turn < 100 && code == EINTR; turn++) code = posix_fallocate(f->file.file, 0, (off_t)whole);
  if (code != 0) return refuse(f, "there is no room for it", code);
  f->map = mmap(NULL, (size_t)whole, PROT_READ | PROT_WRITE, MAP_SHARED, f->file.file, 0);
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
  char why[CACHEFILE_WHY] = "a file there could not be finished";
  bool good = mprotect(f->map, (size_t)(f->bytes + HEAD_BYTES), PROT_READ) == 0 && futimens(f->file.file, times) == 0;
  const int code = good ? 0 : errno;
  if (good) {
    good = cachefile_keep(&f->file, false, why); /* who maps it reads it through where the machine was started since */
    f->making = false;
  }
  if (!good) {
    refuse(f, why, code);
    return;
  }
  heddle__weights_say(f, HEDDLE_LOG_INFO, "%llu bytes of packed weights are kept in %s/%s",
                      (unsigned long long)f->bytes, f->place.folder, f->name);
  if (f->file.removed > 0)
    heddle__weights_say(f, HEDDLE_LOG_INFO, "%s: %u older files were removed: the limit is %llu bytes", f->place.folder,
                        (unsigned)f->file.removed, (unsigned long long)f->place.limit);
}

void heddle__weights_file_end(heddle__weights_file *f) {
  if (f->making) cachefile_drop(&f->file);
  f->making = false;
}

void heddle__weights_file_unmap(void *map, uint64_t bytes) {
  munmap(map, (size_t)(bytes + HEAD_BYTES));
}
