/* Functions of libc's with a state that the whole process shares, and those that write to the program's standard error
 * output, before those of libc (see interpose.c): a call from the plugin's file is noted. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "conformance/interpose.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

static const char *_Atomic shared, *_Atomic printed;

const char *interpose_shared(void) {
  return atomic_load(&shared);
}

const char *interpose_printed(void) {
  return atomic_load(&printed);
}

#if !INTERPOSE_SANITIZED

static void note(const char *_Atomic *to, const char *name, const void *caller) {
  const char *none = NULL;
  if (interpose_by_plugin(caller)) atomic_compare_exchange_strong(to, &none, name);
}

/* libc's own function of this name. */
#define REAL(name) \
  static _Atomic(name##_fn) real; \
  name##_fn next = atomic_load(&real); \
  if (next == NULL) { \
    void *symbol = dlsym(RTLD_NEXT, #name); \
    memcpy(&next, &symbol, sizeof next); \
    atomic_store(&real, next); \
  }

/* ---- a state that all share */

/* F(result, name, parameters, arguments, where it counts). */
#define FUNCTIONS(F) \
  F(int, rand, (void), (), 1) \
  F(long, random, (void), (), 1) \
  F(double, drand48, (void), (), 1) \
  F(long, lrand48, (void), (), 1) \
  F(char *, strtok, (char *text, const char *ends), (text, ends), 1) \
  F(struct tm *, localtime, (const time_t *when), (when), 1) \
  F(struct tm *, gmtime, (const time_t *when), (when), 1) \
  F(char *, asctime, (const struct tm *when), (when), 1) \
  F(char *, ctime, (const time_t *when), (when), 1) \
  F(unsigned, alarm, (unsigned seconds), (seconds), 1) \
  F(int, nice, (int by), (by), 1) \
  F(int, chdir, (const char *path), (path), 1) \
  F(int, fchdir, (int fd), (fd), 1) \
  F(unsigned, umask, (unsigned mode), (mode), 1) \
  F(char *, setlocale, (int category, const char *locale), (category, locale), locale != NULL) \
  F(int, wait, (int *status), (status), 1) \
  F(int, waitpid, (int pid, int *status, int options), (pid, status, options), pid == -1 || pid == 0) \
  F(int, on_exit, (void (*at_end)(int, void *), void *arg), (at_end, arg), 1) \
  F(int, __register_atfork, (void (*a)(void), void (*b)(void), void (*c)(void), void *file), (a, b, c, file), 1)

/* to: where a call that counts is noted. */
#define DEFINE(to, result, name, parameters, arguments, counts) \
  result name parameters; \
  typedef result(*name##_fn) parameters; \
  EXPORT result name parameters { \
    REAL(name) \
    if (counts) note(to, #name, CALLER); \
    return next arguments; \
  }
#define DEFINE_VOID(name, parameters, arguments) \
  void name parameters; \
  typedef void(*name##_fn) parameters; \
  EXPORT void name parameters { \
    REAL(name) \
    note(&shared, #name, CALLER); \
    next arguments; \
  }

#define DEFINE_SHARED(...) DEFINE(&shared, __VA_ARGS__)
FUNCTIONS(DEFINE_SHARED)
DEFINE_VOID(srand, (unsigned seed), (seed))
DEFINE_VOID(srandom, (unsigned seed), (seed))
DEFINE_VOID(srand48, (long seed), (seed))
DEFINE_VOID(tzset, (void), ())

/* atexit calls this with arg NULL; for a destructor of C++ it is the object. */
int __cxa_atexit(void (*at_end)(void *), void *arg, void *file);
typedef int (*__cxa_atexit_fn)(void (*at_end)(void *), void *arg, void *file);
EXPORT int __cxa_atexit(void (*at_end)(void *), void *arg, void *file) {
  REAL(__cxa_atexit)
  if (arg == NULL) note(&shared, "atexit", CALLER);
  return next(at_end, arg, file);
}

/* ---- the standard outputs */

static int is_program(const FILE *file) {
  return file == stderr || file == stdout;
}

typedef int (*vfprintf_fn)(FILE *file, const char *format, va_list args);
EXPORT int vfprintf(FILE *file, const char *format, va_list args) {
  REAL(vfprintf)
  if (is_program(file)) note(&printed, "vfprintf", CALLER);
  return next(file, format, args);
}

#define FORWARD(to) \
  va_list args; \
  va_start(args, format); \
  int n = to; \
  va_end(args); \
  return n

static int print(FILE *file, const char *format, va_list args) {
  REAL(vfprintf)
  return next(file, format, args);
}

EXPORT int fprintf(FILE *file, const char *format, ...) {
  if (is_program(file)) note(&printed, "fprintf", CALLER);
  FORWARD(print(file, format, args));
}

EXPORT int printf(const char *format, ...) {
  note(&printed, "printf", CALLER);
  FORWARD(print(stdout, format, args));
}

int __fprintf_chk(FILE *file, int flag, const char *format, ...);
EXPORT int __fprintf_chk(FILE *file, int flag, const char *format, ...) {
  (void)flag;
  if (is_program(file)) note(&printed, "fprintf", CALLER);
  FORWARD(print(file, format, args));
}

int __printf_chk(int flag, const char *format, ...);
EXPORT int __printf_chk(int flag, const char *format, ...) {
  (void)flag;
  note(&printed, "printf", CALLER);
  FORWARD(print(stdout, format, args));
}

typedef int (*vdprintf_fn)(int fd, const char *format, va_list args);
static int print_fd(int fd, const char *format, va_list args) {
  REAL(vdprintf)
  return next(fd, format, args);
}

EXPORT int dprintf(int fd, const char *format, ...) {
  if (fd == STDOUT_FILENO || fd == STDERR_FILENO) note(&printed, "dprintf", CALLER);
  FORWARD(print_fd(fd, format, args));
}

/* F(result, name, parameters, arguments, where it counts). */
#define WRITERS(F) \
  F(int, puts, (const char *text), (text), 1) \
  F(int, putchar, (int c), (c), 1) \
  F(int, fputs, (const char *text, FILE *file), (text, file), is_program(file)) \
  F(int, fputc, (int c, FILE *file), (c, file), is_program(file)) \
  F(size_t, fwrite, (const void *from, size_t bytes, size_t n, FILE *file), (from, bytes, n, file), is_program(file)) \
  F(ssize_t, write, (int fd, const void *from, size_t bytes), (fd, from, bytes), \
    fd == STDOUT_FILENO || fd == STDERR_FILENO)
#define DEFINE_WRITER(...) DEFINE(&printed, __VA_ARGS__)
WRITERS(DEFINE_WRITER)

typedef void (*perror_fn)(const char *text);
EXPORT void perror(const char *text) {
  REAL(perror)
  note(&printed, "perror", CALLER);
  next(text);
}

#endif
