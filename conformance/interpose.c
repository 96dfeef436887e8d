/* conformance/interpose.c: functions of libc's before those of libc, which the plugin and all libraries find here, since
 * the program comes first in the search for symbols. Each goes on to libc's, and notes the call where its caller lies in
 * the plugin's file. The declarations are written out: the headers of libc may have macros or inline functions instead. */
#define _GNU_SOURCE /* dladdr, RTLD_NEXT */
#include "conformance/interpose.h"

#include <asm/fcntl.h> /* O_CREAT and O_TMPFILE without prototypes */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST_FDS = 4096, MOST_THREADS = 256 };

static char watched[4096]; /* the plugin's path; "": nothing is kept yet */
static char variable_read[96];
static atomic_bool has_variable;
static atomic_bool of_plugin[MOST_FDS];
static _Atomic int32_t threads[MOST_THREADS];
static atomic_uint n_threads;

void interpose_watch(const char *plugin) {
  if (realpath(plugin, watched) == NULL) watched[0] = '\0';
}

const char *interpose_variable(void) {
  return atomic_load(&has_variable) ? variable_read : NULL;
}

bool interpose_opened(int fd) {
  return fd >= 0 && fd < MOST_FDS && atomic_load(&of_plugin[fd]);
}

uint32_t interpose_threads(int32_t *out, uint32_t most) {
  uint32_t n = atomic_load(&n_threads);
  if (n > MOST_THREADS) n = MOST_THREADS;
  if (n > most) n = most;
  for (uint32_t i = 0; i < n; i++) out[i] = atomic_load(&threads[i]);
  return n;
}

/* The file in which an address lies, NULL where it is unknown. */
static const char *file_of(const void *address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fname : NULL;
}

static bool is_plugin(const char *file) {
  char real[sizeof watched];
  if (file == NULL || watched[0] == '\0') return false;
  const char *mine = strrchr(watched, '/'), *name = strrchr(file, '/');
  if (strcmp(name != NULL ? name : file, mine != NULL && name != NULL ? mine : watched) != 0) return false;
  return realpath(file, real) != NULL && strcmp(real, watched) == 0;
}

bool interpose_by_plugin(const void *caller) {
  return watched[0] != '\0' && is_plugin(file_of(caller));
}

/* libc's own function of this name. */
#define REAL(name, type) \
  static _Atomic(type) real; \
  type next = atomic_load(&real); \
  if (next == NULL) { \
    void *symbol = dlsym(RTLD_NEXT, #name); \
    memcpy(&next, &symbol, sizeof next); \
    atomic_store(&real, next); \
  }

/* ---- variables */

/* The C++ runtime asks for its own when it is linked into the plugin. */
static void note_variable(const char *name, const void *caller) {
  if (name == NULL || strncmp(name, "GLIBCXX_", 8) == 0 || !interpose_by_plugin(caller)) return;
  if (atomic_load(&has_variable)) return;
  snprintf(variable_read, sizeof variable_read, "%s", name);
  atomic_store(&has_variable, true);
}

typedef char *(*getenv_fn)(const char *name);

EXPORT char *getenv(const char *name) {
  REAL(getenv, getenv_fn)
  note_variable(name, __builtin_return_address(0));
  return next(name);
}

EXPORT char *secure_getenv(const char *name) {
  REAL(secure_getenv, getenv_fn)
  note_variable(name, __builtin_return_address(0));
  return next(name);
}

#if !INTERPOSE_SANITIZED

/* ---- descriptors */

static int note_fd(int fd, const void *caller) {
  if (fd >= 0 && fd < MOST_FDS && watched[0] != '\0') atomic_store(&of_plugin[fd], interpose_by_plugin(caller));
  return fd;
}

#define CALLER __builtin_return_address(0)

/* F(name, parameters, arguments): gives a descriptor. */
#define FUNCTIONS(F) \
  F(__open_2, (const char *path, int flags), (path, flags)) \
  F(__open64_2, (const char *path, int flags), (path, flags)) \
  F(creat, (const char *path, unsigned mode), (path, mode)) \
  F(socket, (int family, int type, int protocol), (family, type, protocol)) \
  F(accept, (int fd, void *address, void *bytes), (fd, address, bytes)) \
  F(accept4, (int fd, void *address, void *bytes, int flags), (fd, address, bytes, flags)) \
  F(eventfd, (unsigned count, int flags), (count, flags)) \
  F(epoll_create, (int size), (size)) \
  F(epoll_create1, (int flags), (flags)) \
  F(memfd_create, (const char *name, unsigned flags), (name, flags)) \
  F(timerfd_create, (int clock, int flags), (clock, flags)) \
  F(inotify_init, (void), ()) \
  F(inotify_init1, (int flags), (flags)) \
  F(signalfd, (int fd, const void *mask, int flags), (fd, mask, flags)) \
  F(shm_open, (const char *name, int flags, unsigned mode), (name, flags, mode)) \
  F(mkstemp, (char *path), (path)) \
  F(mkstemp64, (char *path), (path)) \
  F(mkostemp, (char *path, int flags), (path, flags))

#define DEFINE(name, parameters, arguments) \
  int name parameters; \
  typedef int(*name##_fn) parameters; \
  EXPORT int name parameters { \
    REAL(name, name##_fn) \
    return note_fd(next arguments, CALLER); \
  }
FUNCTIONS(DEFINE)

static bool has_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

#define DEFINE_OPEN(name) \
  int name(const char *path, int flags, ...); \
  typedef int (*name##_fn)(const char *path, int flags, ...); \
  EXPORT int name(const char *path, int flags, ...) { \
    REAL(name, name##_fn) \
    va_list rest; \
    va_start(rest, flags); \
    unsigned mode = has_mode(flags) ? va_arg(rest, unsigned) : 0; \
    va_end(rest); \
    return note_fd(next(path, flags, mode), CALLER); \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name) \
  int name(int folder, const char *path, int flags, ...); \
  typedef int (*name##_fn)(int folder, const char *path, int flags, ...); \
  EXPORT int name(int folder, const char *path, int flags, ...) { \
    REAL(name, name##_fn) \
    va_list rest; \
    va_start(rest, flags); \
    unsigned mode = has_mode(flags) ? va_arg(rest, unsigned) : 0; \
    va_end(rest); \
    return note_fd(next(folder, path, flags, mode), CALLER); \
  }
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

typedef int (*pair_fn)(int fds[2]);
typedef int (*pipe2_fn)(int fds[2], int flags);
typedef int (*socketpair_fn)(int family, int type, int protocol, int fds[2]);
typedef FILE *(*fopen_fn)(const char *path, const char *mode);

static int note_pair(int done, const int fds[2], const void *caller) {
  if (done == 0) note_fd(fds[0], caller), note_fd(fds[1], caller);
  return done;
}

EXPORT int pipe(int fds[2]) {
  REAL(pipe, pair_fn)
  return note_pair(next(fds), fds, CALLER);
}

int pipe2(int fds[2], int flags);
EXPORT int pipe2(int fds[2], int flags) {
  REAL(pipe2, pipe2_fn)
  return note_pair(next(fds, flags), fds, CALLER);
}

int socketpair(int family, int type, int protocol, int fds[2]);
EXPORT int socketpair(int family, int type, int protocol, int fds[2]) {
  REAL(socketpair, socketpair_fn)
  return note_pair(next(family, type, protocol, fds), fds, CALLER);
}

EXPORT int dup(int fd) {
  REAL(dup, epoll_create_fn)
  return note_fd(next(fd), CALLER);
}

static FILE *note_file(FILE *file, const void *caller) {
  if (file != NULL) note_fd(fileno(file), caller);
  return file;
}

EXPORT FILE *fopen(const char *path, const char *mode) {
  REAL(fopen, fopen_fn)
  return note_file(next(path, mode), CALLER);
}

EXPORT FILE *fopen64(const char *path, const char *mode) {
  REAL(fopen64, fopen_fn)
  return note_file(next(path, mode), CALLER);
}

/* ---- threads */

typedef struct started {
  void *(*run)(void *arg);
  void *arg;
} started;

/* The first caller outside the C++ runtime, by which threads are started too. */
static bool started_by_plugin(void) {
  void *frames[6];
  if (watched[0] == '\0') return false;
  int n = backtrace(frames, 6);
  for (int i = 2; i < n; i++) { /* behind this function and pthread_create */
    const char *file = file_of(frames[i]);
    const char *slash = file != NULL ? strrchr(file, '/') : NULL, *name = slash != NULL ? slash + 1 : file;
    if (name == NULL || (strncmp(name, "libstdc++", 9) != 0 && strncmp(name, "libc++", 6) != 0)) return is_plugin(file);
  }
  return false;
}

static void *begin(void *arg) {
  started s = *(started *)arg;
  free(arg);
  uint32_t i = atomic_fetch_add(&n_threads, 1);
  if (i < MOST_THREADS) atomic_store(&threads[i], gettid());
  return s.run(s.arg);
}

typedef int (*pthread_create_fn)(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
  REAL(pthread_create, pthread_create_fn)
  started *s = started_by_plugin() ? malloc(sizeof *s) : NULL;
  if (s == NULL) return next(thread, attr, run, arg);
  *s = (started){run, arg};
  int code = next(thread, attr, begin, s);
  if (code != 0) free(s);
  return code;
}

#endif
