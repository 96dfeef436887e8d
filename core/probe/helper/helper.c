/* heddle-probe: loads one plugin through libheddle in a process that may die of it, and says how far it came.
 *
 * Standard input has the settings: keys and values, each with a zero behind it. What it finds goes to standard output, a
 * line each: "step WORDS" before each call into the plugin, "file PATH" for each library that came with it, "driver TEXT"
 * of each device, "short WHAT" for a resource that was used up when the process ended or crashed, "failed WORDS" where the
 * fault is not the plugin's, and "done" before the process ends.
 *
 * It is linked to nothing but the C library and opens libheddle by its path: a process that a privileged one starts is
 * privileged too, and there the system's loader ignores $ORIGIN in a run path. */
#define _GNU_SOURCE /* sigaltstack, memfd_create */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heddle/device.h"

enum { MOST_SETTINGS = 512, MOST_BYTES = 1 << 22, MOST_FILES = 512, LONGEST_SECONDS = 3700, SPARE_BYTES = 1 << 26 };

/* What is said goes to where standard output was, past what a plugin or a driver prints. */
static int answer = -1;

static void say(const char *word, const char *text, size_t length) {
  char line[4200];
  int n = snprintf(line, sizeof line, "%s%s%.*s\n", word, length > 0 ? " " : "", (int)(length < 4096 ? length : 4096),
                   text);
  for (int i = 0; i + 1 < n; i++)
    if (line[i] == '\n') line[i] = ' ';
  for (char *at = line; n > 0;) {
    ssize_t put = write(answer, at, (size_t)n);
    if (put <= 0) _exit(70); /* the reader is gone */
    at += put;
    n -= (int)put;
  }
}

/* ---- which libraries came with the plugin */

static char *files[MOST_FILES];
static size_t n_files;
static int started;

/* Code that is mapped from files, each said once; silently what was there before the plugin. */
static void say_files(void) {
  char line[4600];
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    char *path = strchr(line, '/'), *rights = strchr(line, ' '), *end = strchr(line, '\n');
    if (path == NULL || rights == NULL || end == NULL || rights > path || rights[3] != 'x') continue;
    *end = '\0';
    size_t i = 0;
    while (i < n_files && strcmp(files[i], path) != 0) i++;
    if (i < n_files || n_files == MOST_FILES || (files[i] = strdup(path)) == NULL) continue;
    n_files++;
    if (started) say("file", path, strlen(path));
  }
  if (maps != NULL) fclose(maps);
}

/* ---- what is used up: only with what a signal's handler may call */

static void say_short(const char *what, size_t length) {
  if (write(answer, "short ", 6) == 6 && write(answer, what, length) == (ssize_t)length) (void)!write(answer, "\n", 1);
}

/* Tries to get a little more of each resource: what cannot be had is perhaps why the plugin failed. */
static void say_what_is_short(void) {
  void *more = mmap(NULL, SPARE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (more == MAP_FAILED) say_short("memory", 6);
  else munmap(more, SPARE_BYTES);
  int fd = dup(answer);
  if (fd < 0 && errno == EMFILE) say_short("file descriptors", 16);
  if (fd >= 0) close(fd);
  long child = syscall(SYS_clone, 0, 0, 0, 0, 0); /* as fork, but without its handlers and without SIGCHLD */
  if (child == 0) syscall(SYS_exit_group, 0);
  if (child < 0 && errno == EAGAIN) say_short("processes and threads", 21);
}

/* The same where the plugin has crashed, since a driver may have come within the call: with nothing but what a signal's
 * handler may call. */
static void say_files_and_die(int number) {
  static char text[1 << 18];
  size_t used = 0;
  int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  for (ssize_t n = 1; maps >= 0 && n > 0 && used + 1 < sizeof text; used += n > 0 ? (size_t)n : 0)
    n = read(maps, text + used, sizeof text - 1 - used);
  text[used] = '\0';
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    char *path = strchr(line, '/'), *rights = strchr(line, ' ');
    if (path == NULL || rights == NULL || rights > path || rights[3] != 'x') continue;
    size_t i = 0;
    while (i < n_files && strcmp(files[i], path) != 0) i++;
    if (i < n_files || write(answer, "file ", 5) != 5) continue;
    *end = '\n';
    if (write(answer, path, (size_t)(end + 1 - path)) < 0) break;
  }
  say_what_is_short();
  raise(number); /* as it was before: it ends the process */
}

static void watch(void) {
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  static char stack[1 << 16];
  const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction how = {.sa_handler = say_files_and_die, .sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_ONSTACK};
  sigemptyset(&how.sa_mask);
  if (sigaltstack(&own, NULL) != 0) return;
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) sigaction(numbers[i], &how, NULL);
}

/* "calls WHAT of PATH", which the loader says before each call. */
static void take_line(void *user, int32_t level, const char *component, const char *text) {
  (void)user;
  (void)level;
  const char *of = strncmp(text, "calls ", 6) == 0 && strcmp(component, "loader") == 0 ? strstr(text, " of ") : NULL;
  if (of == NULL) return;
  say_files();
  say("step", text + 6, (size_t)(of - text - 6));
}

/* ---- the settings */

static heddle_setting settings[MOST_SETTINGS];
static size_t n_settings;

static int read_settings(void) {
  char *text = malloc(MOST_BYTES + 2);
  size_t used = 0;
  ssize_t n = 1;
  while (text != NULL && n > 0 && used < MOST_BYTES)
    if ((n = read(STDIN_FILENO, text + used, MOST_BYTES - used)) > 0) used += (size_t)n;
  if (text == NULL || n < 0 || used == MOST_BYTES) return 0;
  text[used] = text[used + 1] = '\0';
  for (char *at = text; at < text + used;) {
    if (n_settings == MOST_SETTINGS) return 0;
    const char *key = at, *value = at + strlen(at) + 1;
    settings[n_settings++] = (heddle_setting){key, value};
    at += strlen(key) + 1;
    at += strlen(value) + 1;
  }
  return n_settings > 0;
}

/* ---- libheddle */

#define CALLS(X) \
  X(heddle_context_create) \
  X(heddle_context_release) \
  X(heddle_context_plugin) X(heddle_context_device_count) X(heddle_context_device) X(heddle_device_get_info)
#define DECLARE(name) static __typeof__(&name) call_##name;
CALLS(DECLARE)
#undef DECLARE

static int take(void *library, const char *name, void *pointer) {
  void *symbol = dlsym(library, name);
  memcpy(pointer, &symbol, sizeof symbol); /* POSIX promises that this works */
  return symbol != NULL;
}

/* The folder of this program, with '/' behind it. */
static int own_folder(char path[PATH_MAX]) {
  const char *started_as = (const char *)(uintptr_t)getauxval(AT_EXECFN);
  if (realpath("/proc/self/exe", path) == NULL && (started_as == NULL || realpath(started_as, path) == NULL)) return 0;
  strrchr(path, '/')[1] = '\0';
  return 1;
}

/* The library that was installed with this program, by its place. */
static int open_library(void) {
  static const char *const places[] = {HEDDLE_PROBE_TO_LIBRARY, "../../lib"};
  char folder[PATH_MAX], path[PATH_MAX + 256];
  void *library = NULL;
  const char *words = "its own place is not known";
  if (own_folder(folder))
    for (size_t i = 0; i < sizeof places / sizeof places[0] && library == NULL; i++) {
      snprintf(path, sizeof path, "%s%s/libheddle.so.0", folder, places[i]);
      library = dlopen(path, RTLD_NOW | RTLD_NODELETE);
      if (library == NULL) words = dlerror();
    }
  int good = library != NULL;
#define TAKE(name) good = good && take(library, #name, &call_##name);
  CALLS(TAKE)
#undef TAKE
  if (library != NULL) words = "it is of another version";
  char text[400];
  int n = snprintf(text, sizeof text, "libheddle could not be opened: %.300s", words);
  if (!good) say("failed", text, n > 0 ? (size_t)n : 0);
  return good;
}

/* Who started this may have other rights than its caller (set-user-ID): then so has this, and the caller could send it
 * signals. It takes on the rights that it works with for good, and starts itself again, as an ordinary process without
 * variables. */
static void become_ordinary(char **words) {
  char path[] = "PATH=/usr/bin:/bin", again[] = "again", *variables[] = {path, NULL};
  char *next[] = {words[0], again, NULL};
  char program[PATH_MAX];
  const gid_t group = getegid();
  const uid_t user = geteuid();
  const char *started_as = (const char *)(uintptr_t)getauxval(AT_EXECFN);
  if (words[1] != NULL || setresgid(group, group, group) != 0 || setresuid(user, user, user) != 0) _exit(71);
  if (started_as != NULL && realpath(started_as, program) != NULL) execve(program, next, variables);
  _exit(72);
}

/* ---- the process */

static void close_others(void) {
  DIR *dir = opendir("/proc/self/fd");
  int list[1024];
  size_t n = 0;
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL && n < sizeof list / sizeof list[0];) {
    int fd = atoi(e->d_name);
    if (fd > STDERR_FILENO && fd != answer && fd != dirfd(dir)) list[n++] = fd;
  }
  if (dir != NULL) closedir(dir);
  for (size_t i = 0; i < n; i++) close(list[i]);
}

static void settle(void) {
  const struct rlimit none = {0, 0};
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* who asked is gone: so is this */
  alarm(LONGEST_SECONDS);
  setrlimit(RLIMIT_CORE, &none);
  close_others();
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) null = memfd_create("heddle-probe", MFD_CLOEXEC); /* a file system without devices */
  if (null < 0) return;
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  close(null);
}

/* Whether that is the plugin that was asked for: a good answer about another one would be worse than none. */
static int is_asked(const heddle_plugin_info *plugin) {
  const char *path = "";
  for (size_t i = 0; i < n_settings; i++)
    if (strcmp(settings[i].key, "plugins") == 0) path = settings[i].value;
  return strcmp(plugin->path, path) == 0 || strcmp(plugin->manifest, path) == 0;
}

static int try_plugin(void) {
  heddle_context *ctx = NULL;
  heddle_error err = {0, 0, ""};
  heddle_plugin_info plugin = {.struct_size = sizeof plugin};
  if (call_heddle_context_create(settings, n_settings, take_line, NULL, &ctx, &err) != HEDDLE_OK ||
      call_heddle_context_plugin(ctx, 0, &plugin, &err) != HEDDLE_OK) {
    say("failed", err.text, strlen(err.text));
    call_heddle_context_release(ctx);
    return 0;
  }
  if (!is_asked(&plugin)) {
    say("failed", "it found another plugin", strlen("it found another plugin"));
    call_heddle_context_release(ctx);
    return 0;
  }
  for (size_t i = 0; i < call_heddle_context_device_count(ctx); i++) {
    heddle_device_info d = {.struct_size = sizeof d};
    if (call_heddle_device_get_info(call_heddle_context_device(ctx, i), &d, NULL) == HEDDLE_OK)
      say("driver", d.driver, strlen(d.driver));
  }
  say_files();
  call_heddle_context_release(ctx);
  say("done", "", 0);
  return 0;
}

int main(int count, char **words) {
  (void)count;
  if (getauxval(AT_SECURE) != 0) become_ordinary(words);
  answer = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (answer < 0 || !read_settings()) {
    fprintf(stderr, "heddle-probe tries a plugin for libheddle, which starts it and hands it the settings.\n");
    return 2;
  }
  settle();
  if (!open_library()) return 0;
  say_files();
  watch();
  started = 1;
  atexit(say_what_is_short);
  return try_plugin();
}
