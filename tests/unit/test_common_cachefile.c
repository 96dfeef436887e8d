/* Files of caches: which folders and files are used, what a writer does under limits, beside others and after dead ones. */
#define _GNU_SOURCE /* unshare */
#include "cases.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/common/cachefile.c"

static char base[] = "/tmp/heddle-cachefile-XXXXXX", folder[64], why[CACHEFILE_WHY];

static cachefile_place place_of(uint64_t limit) {
  return (cachefile_place){folder, "kind-", ".bin", limit};
}

static void remove_all(void) {
  char line[128];
  snprintf(line, sizeof line, "rm -rf %s", base);
  if (system(line) != 0) fprintf(stderr, "%s stays\n", base);
}

static void start(void) {
  assert_non_null(mkdtemp(base));
  atexit(remove_all);
  snprintf(folder, sizeof folder, "%s/cache", base);
}

static const char *in_folder(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static bool writes(uint64_t limit, const char *name, uint64_t bytes) {
  const cachefile_place place = place_of(limit);
  char *data = calloc(1, (size_t)bytes + 1);
  assert_non_null(data);
  memset(data, 'x', (size_t)bytes);
  const bool good = cachefile_write(&place, name, data, bytes, why);
  free(data);
  return good;
}

static bool opens(const char *name, uint64_t most) {
  const cachefile_place place = place_of(UINT64_MAX);
  uint64_t bytes = 0;
  const int file = cachefile_open(&place, name, most, &bytes, why);
  if (file >= 0) close(file);
  return file >= 0;
}

/* How many files of any name; bytes of all. */
static uint32_t count(uint64_t *bytes) {
  uint32_t n = 0;
  struct stat at;
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  *bytes = 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    n++;
    *bytes += (uint64_t)at.st_size;
  }
  closedir(dir);
  return n;
}

static void what_was_written_is_read(void **state) {
  (void)state;
  const cachefile_place place = {folder, "kind-", ".bin", 1 << 20};
  char text[8] = "";
  uint64_t bytes = 0;
  struct stat at;
  start();
  assert_true(cachefile_open(&place, "kind-1.bin", 100, &bytes, why) < 0 && why[0] == '\0'); /* neither */
  assert_true(cachefile_write(&place, "kind-1.bin", "old", 3, why));
  assert_true(cachefile_write(&place, "kind-1.bin", "newer", 5, why));
  const int file = cachefile_open(&place, "kind-1.bin", 5, &bytes, why);
  assert_true(file >= 0 && bytes == 5 && cachefile_read(file, text, 5) && strcmp(text, "newer") == 0);
  assert_false(cachefile_read(file, text, 1));
  close(file);
  assert_true(stat(folder, &at) == 0 && (at.st_mode & 0777) == 0700);
  assert_true(stat(in_folder("kind-1.bin"), &at) == 0 && (at.st_mode & 0777) == 0600);
  assert_int_equal(count(&bytes), 1);
  assert_true(!opens("kind-1.bin", 4) && strstr(why, "over 4 bytes") != NULL);
  assert_false(cachefile_write(&place, "other.bin", "x", 1, why)); /* what the folder's limit would not find */
}

static void folders_of_others_are_refused(void **state) {
  (void)state;
  start();
  assert_true(writes(1 << 20, "kind-1.bin", 10));
  assert_int_equal(chmod(folder, 0777), 0);
  assert_true(!opens("kind-1.bin", 100) && strstr(why, "may write to it") != NULL);
  assert_true(!writes(1 << 20, "kind-2.bin", 10) && strstr(why, "may write to it") != NULL);
  assert_int_equal(chmod(folder, 0700), 0);
  assert_int_equal(chmod(base, 0777), 0); /* who may rename the folder */
  assert_true(!opens("kind-1.bin", 100) && strstr(why, "above it can be written to") != NULL);
  assert_int_equal(chmod(base, 01777), 0); /* as /tmp is */
  assert_true(opens("kind-1.bin", 100));
  assert_int_equal(chmod(base, 0700), 0);
  assert_int_equal(chmod(folder, 0770), 0); /* this user's own group, or root's */
  struct stat at;
  assert_true(stat(folder, &at) == 0);
  assert_int_equal(opens("kind-1.bin", 100), at.st_gid == 0 || at.st_gid == at.st_uid);
  if (geteuid() != 0) SKIP("only root gives folders to groups and users");
  assert_int_equal(chown(folder, 0, 12345), 0);
  assert_true(!opens("kind-1.bin", 100) && strstr(why, "may write to it") != NULL);
  assert_true(!writes(1 << 20, "kind-2.bin", 10));
  assert_int_equal(chown(folder, 12345, 12345), 0);
  assert_true(!opens("kind-1.bin", 100) && strstr(why, "another user") != NULL);
  assert_int_equal(chown(folder, 0, 0), 0);
  assert_int_equal(chown(in_folder("kind-1.bin"), 12345, 0), 0);
  assert_true(!opens("kind-1.bin", 100) && strstr(why, "another user") != NULL);
}

static void links_are_not_followed(void **state) {
  (void)state;
  char real[64], aim[64];
  start();
  assert_true(writes(1 << 20, "kind-1.bin", 10));
  snprintf(aim, sizeof aim, "%s/aim", base);
  FILE *f = fopen(aim, "w");
  assert_true(f != NULL && fputs("precious", f) >= 0 && fclose(f) == 0);
  assert_int_equal(symlink(aim, in_folder("kind-2.bin")), 0);
  assert_true(!opens("kind-2.bin", 100) && strstr(why, "symbolic link") != NULL);
  assert_true(writes(1 << 20, "kind-2.bin", 20)); /* in place of the link */
  struct stat at;
  assert_true(lstat(in_folder("kind-2.bin"), &at) == 0 && S_ISREG(at.st_mode) && at.st_size == 20);
  assert_true(stat(aim, &at) == 0 && at.st_size == 8);
  assert_int_equal(mkfifo(in_folder("kind-3.bin"), 0600), 0); /* nor waited for */
  assert_true(!opens("kind-3.bin", 100) && strstr(why, "no regular file") != NULL);
  assert_int_equal(chmod(in_folder("kind-1.bin"), 0620), 0);
  assert_true(!opens("kind-1.bin", 100) && strstr(why, "others may write") != NULL);
  snprintf(real, sizeof real, "%s/elsewhere", base);
  assert_true(rename(folder, real) == 0 && symlink(real, folder) == 0);
  assert_true(!opens("kind-2.bin", 100) && strstr(why, "symbolic link") != NULL);
  strcat(folder, "/"); /* behind which the system would follow it */
  assert_true(!writes(1 << 20, "kind-4.bin", 20) && strstr(why, "symbolic link") != NULL);
}

static void the_limit_of_file_sizes_ends_no_process(void **state) {
  (void)state;
  const struct rlimit most = {1000, RLIM_INFINITY};
  uint64_t bytes;
  cachefile f;
  const cachefile_place place = {folder, "kind-", ".bin", 1 << 20};
  char data[2000] = "";
  start();
  assert_true(cachefile_begin(&f, &place, "kind-0.bin", sizeof data, why)); /* before it is lowered */
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &most), 0);
  assert_true(!cachefile_put(&f, data, sizeof data, why) && strstr(why, "RLIMIT_FSIZE") != NULL);
  cachefile_drop(&f);
  assert_true(!writes(1 << 20, "kind-1.bin", 1001) && strstr(why, "1000 bytes at most (RLIMIT_FSIZE)") != NULL);
  assert_true(writes(1 << 20, "kind-1.bin", 1000));
  assert_int_equal(count(&bytes), 1);
  struct sigaction now; /* and what the process does about the signal is its own affair */
  assert_true(sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
}

static void a_full_disk_leaves_nothing(void **state) {
  (void)state;
  uint64_t bytes;
  start();
  assert_int_equal(mkdir(folder, 0700), 0);
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("none", folder, "tmpfs", 0, "size=64k,mode=0700") != 0)
    SKIP("no file system can be mounted here");
  assert_true(writes(1 << 20, "kind-1.bin", 40000));
  assert_true(!writes(1 << 20, "kind-2.bin", 40000) && strstr(why, "No space") != NULL);
  assert_int_equal(count(&bytes), 1);
  assert_true(opens("kind-1.bin", 40000));
  assert_int_equal(mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
  assert_true(opens("kind-1.bin", 40000));
  assert_true(!writes(1 << 20, "kind-2.bin", 10) && strstr(why, "no file can be made") != NULL);
  assert_int_equal(umount2(folder, MNT_DETACH), 0);
}

static void the_folder_stays_within_its_limit(void **state) {
  (void)state;
  char name[32];
  uint64_t bytes;
  start();
  assert_true(writes(100, "kind-first.bin", 10));
  FILE *f = fopen(in_folder("not-ours.bin"), "w"); /* of another kind: neither counted nor removed */
  assert_true(f != NULL && fclose(f) == 0 && truncate(in_folder("not-ours.bin"), 5000) == 0);
  for (int i = 0; i < 20; i++) {
    snprintf(name, sizeof name, "kind-%d.bin", i);
    nanosleep(&(struct timespec){.tv_nsec = 12000000}, NULL); /* clocks of file systems are coarse */
    assert_true(opens("kind-first.bin", 100));                /* so that it is never the oldest */
    assert_true(writes(100, name, 30));
    assert_true(count(&bytes) <= 5 && bytes <= 5100);
  }
  assert_true(opens("kind-first.bin", 100) && opens("kind-19.bin", 100) && !opens("kind-0.bin", 100));
  assert_true(!writes(100, "kind-large.bin", 101) && strstr(why, "limit") != NULL);
  assert_true(opens("kind-first.bin", 100)); /* for that nothing is removed */
  assert_true(writes(100, "kind-whole.bin", 100));
  assert_true(count(&bytes) == 2 && bytes == 5100);
}

/* Begins files until it is killed. */
static void begin_for_ever(int ready) {
  static cachefile files[8];
  const cachefile_place place = place_of(1 << 20);
  for (int i = 0; i < 8; i++) {
    if (!cachefile_begin(&files[i], &place, "kind-1.bin", 1000, why) || !cachefile_put(&files[i], "half", 4, why))
      _exit(1);
  }
  if (write(ready, "x", 1) != 1) _exit(1);
  for (;;) pause();
}

static void what_dead_writers_left_is_removed(void **state) {
  (void)state;
  int ready[2], status;
  uint64_t bytes;
  char word;
  start();
  assert_true(writes(1 << 20, "kind-0.bin", 10));
  FILE *f = fopen(in_folder("kind-0.bin.77-1f"), "w"); /* of a version that took no locks */
  assert_true(f != NULL && fclose(f) == 0);
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) begin_for_ever(ready[1]);
  assert_int_equal(read(ready[0], &word, 1), 1);
  assert_true(writes(1 << 20, "kind-2.bin", 10));
  assert_int_equal(count(&bytes), 2 + 8); /* what is in the making stays */
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(writes(1 << 20, "kind-3.bin", 10));
  assert_int_equal(count(&bytes), 3);
  assert_false(opens("kind-1.bin", 1000));
}

enum { WRITERS = 4, ROUNDS = 200 };
static atomic_int bad;

/* All of one byte, or the reader saw half of two. */
static void *write_and_read(void *user) {
  const cachefile_place place = place_of(50000);
  const char letter = (char)('a' + *(int *)user);
  char data[9000], own[CACHEFILE_WHY];
  memset(data, letter, sizeof data);
  for (int i = 0; i < ROUNDS; i++) {
    char name[32];
    uint64_t bytes = 0;
    snprintf(name, sizeof name, "kind-%d.bin", i % 7);
    if (!cachefile_write(&place, name, data, sizeof data, own)) atomic_fetch_add(&bad, 1);
    const int file = cachefile_open(&place, name, sizeof data, &bytes, own);
    char got[sizeof data];
    if (file < 0) continue; /* another made room */
    if (bytes != sizeof got || !cachefile_read(file, got, sizeof got) || memchr(got, got[0], sizeof got) != got)
      atomic_fetch_add(&bad, 1);
    for (size_t k = 1; k < sizeof got; k++)
      if (got[k] != got[0]) atomic_fetch_add(&bad, 1);
    close(file);
  }
  return NULL;
}

static void writers_at_once_do_no_harm(void **state) {
  (void)state;
  pthread_t threads[WRITERS];
  int numbers[WRITERS];
  uint64_t bytes;
  start();
  for (int i = 0; i < WRITERS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, write_and_read, &numbers[i]), 0);
  }
  for (int i = 0; i < WRITERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(atomic_load(&bad), 0);
  assert_true(count(&bytes) <= 7 && bytes <= 50000);
}

CASES(CASE(what_was_written_is_read), CASE(folders_of_others_are_refused), CASE(links_are_not_followed),
      CASE(the_limit_of_file_sizes_ends_no_process), CASE(a_full_disk_leaves_nothing),
      CASE(the_folder_stays_within_its_limit), CASE(what_dead_writers_left_is_removed),
      CASE_LABELS(writers_at_once_do_no_harm, "threads"))
