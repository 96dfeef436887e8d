/* heddle-probe: loads one plugin through libheddle in a process that may die of it, and says how far it came.
 *
 * Standard input has the settings: keys and values, each with a zero behind it. What it finds goes to standard output, a
 * line each: "step WORDS" before each call into the plugin, "file PATH" for each library that came with it, "driver TEXT"
 * of each device, "failed WORDS" where the fault is not the plugin's, and "done" before the process ends. */
#define _GNU_SOURCE /* sigaltstack */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "heddle/device.h"

enum { MOST_SETTINGS = 512, MOST_BYTES = 1 << 22, MOST_FILES = 512, LONGEST_SECONDS = 3700 };

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
    if (put <= 0) _exit(70); /* nobody listens any more */
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
  if (heddle_context_create(settings, n_settings, take_line, NULL, &ctx, &err) != HEDDLE_OK ||
      heddle_context_plugin(ctx, 0, &plugin, &err) != HEDDLE_OK) {
    say("failed", err.text, strlen(err.text));
    heddle_context_release(ctx);
    return 0;
  }
  if (!is_asked(&plugin)) {
    say("failed", "it found another plugin", strlen("it found another plugin"));
    heddle_context_release(ctx);
    return 0;
  }
  for (size_t i = 0; i < heddle_context_device_count(ctx); i++) {
    heddle_device_info d = {.struct_size = sizeof d};
    if (heddle_device_get_info(heddle_context_device(ctx, i), &d, NULL) == HEDDLE_OK)
      say("driver", d.driver, strlen(d.driver));
  }
  say_files();
  heddle_context_release(ctx);
  say("done", "", 0);
  return 0;
}

int main(void) {
  answer = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (answer < 0 || !read_settings()) {
    fprintf(stderr, "heddle-probe tries a plugin for libheddle, which starts it and hands it the settings.\n");
    return 2;
  }
  settle();
  say_files();
  watch();
  started = 1;
  return try_plugin();
}
