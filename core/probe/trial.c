/* core/probe/trial.c: a plugin's try: heddle-probe is started, given the plugin and its settings, and read until it
 * ends or its time is over. It is started with posix_spawn, so that nothing of this process runs in it. */
#define _GNU_SOURCE /* memfd_create, pipe2, SOCK_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/probe/probe.h"

extern char **environ;

enum { MOST_ANSWER = 1 << 20, MOST_REQUEST = 1 << 22, MOST_LIST = 200, MOST_DYING_MS = 5000 };

typedef struct child {
  const heddle__plugin *plugin;
  pid_t pid;
  int request, answer; /* sockets and pipes: a limit on the size of files does not count for them */
  char *ask;           /* what is to be sent: request_bytes, of which sent are gone */
  size_t ask_bytes, sent;
  char *text; /* what it said; MOST_ANSWER bytes and a zero */
  size_t used;
  bool late, known; /* known: status is how it ended */
  int status;
} child;

static uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- the request: the plugin's file, then keys and values of the settings, each with its zero */

static heddle_status put(void *user, const char *key, const char *value, heddle_error *err) {
  child *c = user;
  size_t n = strlen(key) + 1, k = strlen(value) + 1;
  if (key[0] == '\0' || key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.")] != '\0') return HEDDLE_OK;
  if (n + k > MOST_REQUEST - c->ask_bytes) return heddle__fail(err, HEDDLE_ELIMIT, "its settings are too long");
  char *grown = realloc(c->ask, c->ask_bytes + n + k);
  if (grown == NULL) return heddle__no_memory(err, "the settings of a try");
  c->ask = grown;
  memcpy(grown + c->ask_bytes, key, n);
  memcpy(grown + c->ask_bytes + n, value, k);
  c->ask_bytes += n + k;
  return HEDDLE_OK;
}

/* A descriptor above those that a process begins with, so that it is in the way of none. */
static int above(int fd) {
  int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
  if (fd >= 0) close(fd);
  return high;
}

static heddle_status write_request(child *c, heddle_error *err) {
  const heddle__plugin *p = c->plugin;
  heddle_status s = heddle__config_each(p->ctx->config, "", put, c, err);
  if (s == HEDDLE_OK) s = put(c, "plugins", p->manifest != NULL ? p->manifest : p->path, err);
  static const char *const fixed[][2] = {
      {"probe", "off"}, {"plugin_trust", "any"}, {"layers", "off"}, {"log", "trace"}, {"threads", "1"}};
  for (size_t i = 0; s == HEDDLE_OK && i < sizeof fixed / sizeof fixed[0]; i++)
    s = put(c, fixed[i][0], fixed[i][1], err);
  return s;
}

/* ---- the process */

static bool find_program(const heddle__plugin *p, char *path, size_t bytes) {
  static const char *const places[] = {"../libexec/heddle/heddle-probe", HEDDLE_PROBE_INSTALLED};
  for (size_t i = 0; i < sizeof places / sizeof places[0] && p->ctx->folder[0] != '\0'; i++) {
    int n = snprintf(path, bytes, "%s/%s", p->ctx->folder, places[i]);
    if (n > 0 && (size_t)n < bytes && access(path, X_OK) == 0) return true;
  }
  return false;
}

/* Where what drivers print goes; a file system without devices has no /dev/null. */
static int open_nothing(void) {
  int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  return above(fd >= 0 ? fd : memfd_create("heddle-probe", MFD_CLOEXEC));
}

/* 0, or errno's number. */
static int spawn(child *c, char *program, int request, int answer, int nothing_fd) {
  char nothing[] = "PATH=/usr/bin:/bin";
  char *words[] = {program, NULL}, *bare[] = {nothing, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t how;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  int code = posix_spawn_file_actions_init(&actions);
  if (code != 0) return code;
  code = posix_spawnattr_init(&how);
  if (code == 0) {
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setpgroup(&how, 0);
    code = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, request, STDIN_FILENO);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, answer, STDOUT_FILENO);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, nothing_fd, STDERR_FILENO);
    /* A privileged process hands on nothing of the variables that its user chose. */
    if (code == 0)
      code = posix_spawn(&c->pid, program, &actions, &how, words, getauxval(AT_SECURE) != 0 ? bare : environ);
    posix_spawnattr_destroy(&how);
  }
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

/* Sends more of the request, and ends it. A process that is gone does not take it. */
static void send_more(child *c) {
  ssize_t n = send(c->request, c->ask + c->sent, c->ask_bytes - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  c->sent = n < 0 ? c->ask_bytes : c->sent + (size_t)n;
  if (c->sent < c->ask_bytes) return;
  close(c->request);
  c->request = -1;
}

/* Sends the request and reads until it closes its side or its time is over. */
static void talk_to(child *c, uint64_t deadline) {
  for (;;) {
    uint64_t now = now_ms();
    c->late = now >= deadline;
    if (c->late) return;
    struct pollfd fds[2] = {{c->answer, POLLIN, 0}, {c->request, POLLOUT, 0}}; /* -1 is passed over */
    if (poll(fds, 2, deadline - now < 1000 ? (int)(deadline - now) : 1000) <= 0) continue;
    if (fds[1].revents != 0) send_more(c);
    if (fds[0].revents == 0) continue;
    char more[4096];
    ssize_t n = read(c->answer, more, sizeof more);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return;
    if (n <= 0) continue;
    size_t room = MOST_ANSWER - c->used, kept = (size_t)n < room ? (size_t)n : room;
    memcpy(c->text + c->used, more, kept);
    c->used += kept;
  }
}

/* Its end, which is made where it does not come; and that of what it started. A program that collects all its children, or
 * has the system do it, may be first: then how it ended is not known. Nor is it where the process cannot be ended, since
 * its driver does not come back from the kernel: it is left behind. */
static void reap(child *c, uint64_t deadline) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  struct timespec nap = {0, 200000};
  for (;;) {
    uint64_t now = now_ms();
    if (now >= deadline) c->late = true;
    if (c->late) kill(-c->pid, SIGKILL);
    int code = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT | WNOHANG);
    if (code != 0 && errno != EINTR) return;
    if (code == 0 && info.si_pid == c->pid) break;
    if (now >= deadline + MOST_DYING_MS) return;
    nanosleep(&nap, NULL);
    if (nap.tv_nsec < 10000000) nap.tv_nsec *= 2;
  }
  kill(-c->pid, SIGKILL);
  while (waitpid(c->pid, &c->status, 0) < 0)
    if (errno != EINTR) return;
  c->known = true;
}

/* ---- what it said */

static void add_file(json_t *list, const char *path) {
  for (size_t i = 0; i < json_array_size(list); i++)
    if (strcmp(json_string_value(json_array_get(json_array_get(list, i), 0)), path) == 0) return;
  if (json_array_size(list) < MOST_LIST) json_array_append_new(list, heddle__record_file(path));
}

/* The code that it has mapped, before it is killed: a driver may have come within the call that does not end. */
static void add_mapped(const child *c, json_t *list) {
  char line[4600], name[64];
  snprintf(name, sizeof name, "/proc/%lld/maps", (long long)c->pid);
  FILE *maps = fopen(name, "re");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    char *path = strchr(line, '/'), *rights = strchr(line, ' '), *end = strchr(line, '\n');
    if (path == NULL || rights == NULL || end == NULL || rights > path || rights[3] != 'x') continue;
    *end = '\0';
    if (strcmp(path, c->plugin->real) != 0) add_file(list, path);
  }
  if (maps != NULL) fclose(maps);
}

static void add_text(json_t *list, const char *text) {
  for (size_t i = 0; i < json_array_size(list); i++)
    if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) return;
  if (json_array_size(list) < MOST_LIST) json_array_append_new(list, json_string(text));
}

/* Signals that others send: who stops all processes of a service or of a terminal. */
static bool is_from_others(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP;
}

/* The resource of which the process perhaps had too little; NULL where nothing points to one. short_of is
 * what it found itself. */
static const char *wanted(const child *c, const char *short_of) {
  int number = c->known && WIFSIGNALED(c->status) ? WTERMSIG(c->status) : 0;
  if (c->late) return "time";
  if (number == SIGXCPU) return "CPU time (a limit of this process)";
  if (number == SIGXFSZ) return "file size (a limit of this process)";
  if (number == SIGKILL) return "memory (the system ended it)";
  if (short_of != NULL) return short_of;
  if (number == SIGBUS) return "memory or space on disk";
  struct rlimit space = {RLIM_INFINITY, RLIM_INFINITY}, data = space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && getrlimit(RLIMIT_DATA, &data) == 0 &&
      (space.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY))
    return "memory (a limit of this process)";
  return NULL;
}

static void read_answer(const child *c, uint32_t limit_ms, heddle__trial *out) {
  char step[80] = "its start";
  const char *failed = NULL, *short_of = NULL;
  bool done = false;
  for (char *line = c->text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    if (strncmp(line, "step ", 5) == 0) snprintf(step, sizeof step, "%.70s", line + 5);
    else if (strncmp(line, "file ", 5) == 0 && strcmp(line + 5, c->plugin->real) != 0) add_file(out->files, line + 5);
    else if (strncmp(line, "driver ", 7) == 0) add_text(out->drivers, line + 7);
    else if (strncmp(line, "failed ", 7) == 0) failed = line + 7;
    else if (strncmp(line, "short ", 6) == 0) short_of = line + 6;
    else if (strcmp(line, "done") == 0) done = true;
  }
  if (done) snprintf(step, sizeof step, "its end, at exit");
  out->verdict = TRIAL_BAD;
  if (failed != NULL) {
    out->verdict = TRIAL_NONE;
    snprintf(out->words, sizeof out->words, "heddle-probe failed: %.250s", failed);
  } else if (c->late && limit_ms % 1000 == 0)
    snprintf(out->words, sizeof out->words, "did not answer within %u s in %s", (unsigned)limit_ms / 1000, step);
  else if (c->late)
    snprintf(out->words, sizeof out->words, "did not answer within %u ms in %s", (unsigned)limit_ms, step);
  else if (c->known && WIFSIGNALED(c->status))
    snprintf(out->words, sizeof out->words, "crashed: signal %d in %s", WTERMSIG(c->status), step);
  else if (c->known && (!done || WEXITSTATUS(c->status) != 0))
    snprintf(out->words, sizeof out->words, "ended its process with status %d in %s", WEXITSTATUS(c->status), step);
  else if (!done) snprintf(out->words, sizeof out->words, "ended its process in %s", step);
  else out->verdict = TRIAL_GOOD;
  /* Before the plugin was touched, the fault is not its own: heddle-probe could not be loaded, for instance. */
  if (out->verdict == TRIAL_BAD && strcmp(step, "its start") == 0) {
    char words[sizeof out->words];
    memcpy(words, out->words, sizeof words);
    out->verdict = TRIAL_NONE;
    snprintf(out->words, sizeof out->words, "heddle-probe %.280s", words);
  } else if (out->verdict == TRIAL_BAD && !c->late && c->known && WIFSIGNALED(c->status) &&
             is_from_others(WTERMSIG(c->status))) { /* that says nothing of the plugin, which may be sound */
    out->verdict = TRIAL_NONE;
    snprintf(out->words, sizeof out->words, "heddle-probe was ended by signal %d in %s", WTERMSIG(c->status), step);
  }
  const char *want = out->verdict == TRIAL_BAD ? wanted(c, short_of) : NULL;
  snprintf(out->want, sizeof out->want, "%.60s", want != NULL ? want : "");
  out->late = out->verdict == TRIAL_BAD && c->late;
}

/* ---- all of it */

static void run_child(child *c, uint32_t limit_ms, heddle__trial *out) {
  char program[4096];
  int ends[2] = {-1, -1}, pipes[2] = {-1, -1}, nothing = -1;
  heddle_error err = {0, 0, ""};
  out->verdict = TRIAL_NONE;
  if (!find_program(c->plugin, program, sizeof program)) {
    snprintf(out->words, sizeof out->words, "there is no heddle-probe beside libheddle (libexec/heddle)");
    return;
  }
  heddle_status s = write_request(c, &err);
  bool good = s == HEDDLE_OK && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
  good = good && pipe2(pipes, O_CLOEXEC) == 0;
  for (int i = 0; i < 2 && good; i++) {
    ends[i] = above(ends[i]);
    good = ends[i] >= 0;
    pipes[i] = good ? above(pipes[i]) : pipes[i];
    good = good && pipes[i] >= 0;
  }
  nothing = good ? open_nothing() : -1;
  int code = errno;
  if (good && nothing >= 0) code = spawn(c, program, ends[1], pipes[1], nothing);
  else if (s == HEDDLE_OK) s = heddle__fail(&err, HEDDLE_EIO, "no pipe or socket can be made (errno %d)", code);
  const int mine[] = {ends[1], pipes[1], nothing};
  for (size_t i = 0; i < sizeof mine / sizeof mine[0]; i++)
    if (mine[i] >= 0) close(mine[i]);
  c->request = ends[0];
  c->answer = pipes[0];
  if (s != HEDDLE_OK) snprintf(out->words, sizeof out->words, "%.300s", err.text);
  else if (code != 0) snprintf(out->words, sizeof out->words, "heddle-probe could not be started (errno %d)", code);
  else {
    uint64_t deadline = now_ms() + limit_ms;
    talk_to(c, deadline);
    if (c->late) add_mapped(c, out->files);
    reap(c, deadline);
    c->text[c->used] = '\0';
    read_answer(c, limit_ms, out);
  }
}

void heddle__trial_run(const heddle__plugin *plugin, uint32_t limit_ms, heddle__trial *out) {
  child c = {.plugin = plugin, .request = -1, .answer = -1};
  *out =
      (heddle__trial){.verdict = TRIAL_NONE, .words = "memory is out", .drivers = json_array(), .files = json_array()};
  c.text = malloc(MOST_ANSWER + 1);
  if (c.text != NULL && out->drivers != NULL && out->files != NULL) run_child(&c, limit_ms, out);
  if (c.request >= 0) close(c.request);
  if (c.answer >= 0) close(c.answer);
  free(c.ask);
  free(c.text);
}
