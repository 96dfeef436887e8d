/* conformance/spawn.c: a case's process from outside: started with posix_spawn, listened to, ended when its time is over,
 * and its death read together with what it had said. */
#define _GNU_SOURCE /* memfd_create, strsignal */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

extern char **environ;

enum { MOST_OUTPUT = 16384, MOST_LINE = 4096, MOST_WORDS = 64, MOST_READS = 64 };

struct check_process {
  check *c; /* series[at] */
  check *series[CHECK_SERIES];
  size_t n_series, at;
  check_list *list;
  pid_t pid;
  int results, output; /* -1: at their end */
  kit_page *page;
  uint64_t started_ms, limit_ms;
  double scale;         /* of time limits, by --timeout */
  unsigned calls_begun; /* as last seen, and since when the process is in the same call */
  uint64_t same_since_ms;
  unsigned stuck; /* the call for which it was killed, 0: none */
  uint64_t stuck_ms;
  bool killed, begun, survey;
  char said; /* the letter of its result, 0: none yet */
  char words[MOST_LINE];
  char line[MOST_LINE];
  size_t n_line;
  char text[MOST_OUTPUT + 1];
  size_t n_text, lost;
  size_t n_abilities;
  char (*abilities)[64]; /* lines of this case, with their letter */
};

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- start */

static void finish(check_process *p) {
  if (p->results >= 0) close(p->results);
  if (p->output >= 0) close(p->output);
  if (p->page != NULL) munmap(p->page, sizeof *p->page);
  free(p->abilities);
  free(p);
}

/* The child has the pipe, the page, its output and nothing else of ours: all are close-on-exec. */
static int spawn(const check_options *o, check_process *p, int results, int output, int page) {
  char *argv[MOST_WORDS + CHECK_SERIES + 8], run[224], word[112], index[32], limit[48], then[CHECK_SERIES][208];
  size_t n = 0;
  static char self[] = "/proc/self/exe", name[] = "heddle-check", survey[] = "--survey", set[] = "--set", end[] = "--";
  snprintf(limit, sizeof limit, "--timeout=%.17g", o->seconds);
  if (o->settings.count * 2 > MOST_WORDS - 8) return E2BIG;
  argv[n++] = name;
  snprintf(run, sizeof run, "--case=%s", p->survey ? "" : p->c->what->name);
  snprintf(word, sizeof word, "--word=%s", p->c->word);
  snprintf(index, sizeof index, "--device=%u", (unsigned)p->c->index);
  argv[n++] = run;
  argv[n++] = word;
  argv[n++] = index;
  argv[n++] = limit;
  if (p->survey) argv[n++] = survey;
  for (size_t i = 1; i < p->n_series; i++) {
    const check *c = p->series[i];
    snprintf(then[i], sizeof then[i], "--then=%s%s%s", c->what->name, c->word[0] != '\0' ? ":" : "", c->word);
    argv[n++] = then[i];
  }
  for (size_t i = 0; i < o->settings.count; i++) {
    argv[n++] = set;
    argv[n++] = (char *)(uintptr_t)o->settings.data[i];
  }
  argv[n++] = end;
  argv[n++] = (char *)(uintptr_t)o->library;
  argv[n] = NULL;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  int status = posix_spawn_file_actions_init(&files);
  if (status != 0) return status;
  status = posix_spawnattr_init(&attributes);
  if (status != 0) {
    posix_spawn_file_actions_destroy(&files);
    return status;
  }
  status = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (status == 0) status = posix_spawn_file_actions_adddup2(&files, output, 1);
  if (status == 0) status = posix_spawn_file_actions_adddup2(&files, output, 2);
  if (status == 0) status = posix_spawn_file_actions_adddup2(&files, results, KIT_PIPE_FD);
  if (status == 0) status = posix_spawn_file_actions_adddup2(&files, page, KIT_PAGE_FD);
  if (status == 0)
    status =
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  if (status == 0) status = posix_spawnattr_setpgroup(&attributes, 0);
  if (status == 0) status = posix_spawnattr_setsigdefault(&attributes, &all);
  if (status == 0) status = posix_spawnattr_setsigmask(&attributes, &none);
  if (status == 0) status = posix_spawn(&p->pid, self, &files, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return status;
}

/* A descriptor that is none of the low ones, which the child's are put on. */
static int high(int fd) {
  if (fd < 0) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, 10);
  close(fd);
  return moved;
}

static bool make_pipe(int *reader, int *writer) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  *reader = high(ends[0]);
  *writer = high(ends[1]);
  return *reader >= 0 && *writer >= 0 && fcntl(*reader, F_SETFL, O_NONBLOCK) == 0;
}

enum { SURVEY = 4 }; /* times as long as opening a device may take */

static void begin_case(check_process *p, size_t at) {
  p->at = at;
  p->c = p->series[at];
  p->limit_ms = (uint64_t)((p->c->what->seconds != 0 ? p->c->what->seconds : CHECK_SECONDS) * p->scale * 1000);
  if (p->survey) p->limit_ms *= SURVEY; /* it asks of every operator in every type */
  p->started_ms = p->same_since_ms = now_ms();
  p->begun = false;
  p->n_text = p->lost = 0;
}

check_process *check_start(const check_options *o, check *const *series, size_t n, bool survey, check_list *list,
                           char **reason) {
  *reason = NULL;
  check_process *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  memcpy(p->series, series, n * sizeof series[0]);
  p->n_series = n;
  p->list = list;
  p->survey = survey;
  p->results = p->output = -1;
  int results = -1, output = -1, page = high(memfd_create("heddle-check", MFD_CLOEXEC));
  int status = 0;
  if (page < 0 || ftruncate(page, sizeof(kit_page)) != 0 || !make_pipe(&p->results, &results) ||
      !make_pipe(&p->output, &output))
    status = errno;
  void *shared = status == 0 ? mmap(NULL, sizeof(kit_page), PROT_READ | PROT_WRITE, MAP_SHARED, page, 0) : MAP_FAILED;
  if (shared != MAP_FAILED) p->page = shared;
  else if (status == 0) status = errno;
  p->scale = o->seconds / CHECK_SECONDS;
  begin_case(p, 0);
  if (p->page != NULL) check_tell(p);
  if (status == 0) status = spawn(o, p, results, output, page);
  if (results >= 0) close(results);
  if (output >= 0) close(output);
  if (page >= 0) close(page);
  if (status == 0) return p;
  *reason = strdup(strerror(status));
  finish(p);
  return NULL;
}

/* ---- what it says */

static void next_case(check_process *p) {
  p->c->outcome = CHECK_PASS;
  p->c->seconds = (double)(now_ms() - p->started_ms) / 1000;
  if (p->at + 1 < p->n_series) begin_case(p, p->at + 1);
}

static bool grow_device(check_list *list, const char *driver) {
  char(*grown)[128] = realloc(list->drivers, (list->n_devices + 1) * sizeof *grown);
  if (grown == NULL) return false;
  list->drivers = grown;
  snprintf(grown[list->n_devices++], sizeof *grown, "%s", driver);
  return true;
}

/* Numbers, then the name. */
static bool grow_about(check_list *list, const char *text) {
  check_about *grown = realloc(list->about, (list->n_about + 1) * sizeof *grown), a = {.type = 0};
  int at = 0;
  if (grown == NULL) return false;
  list->about = grown;
  if (sscanf(text, "%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32 " %n", &a.type, &a.caps,
             &a.memory_bytes, &a.max_buffer_bytes, &a.alignment, &a.compute_units, &a.max_streams, &at) == 7)
    snprintf(a.name, sizeof a.name, "%s", text + at);
  grown[list->n_about++] = a;
  return true;
}

static bool set_plugin(check_list *list, const char *text) {
  unsigned major = 0, minor = 0;
  int at = 0;
  if (sscanf(text, "%u %u %n", &major, &minor, &at) != 2) return true;
  snprintf(list->plugin, sizeof list->plugin, "%s", text + at);
  snprintf(list->plugin_abi, sizeof list->plugin_abi, "%u.%u", major, minor);
  return true;
}

static bool grow_word(check_list *list, const char *text) {
  char(*grown)[192] = realloc(list->worded, (list->n_worded + 1) * sizeof *grown);
  if (grown == NULL) return false;
  list->worded = grown;
  snprintf(grown[list->n_worded++], sizeof *grown, "%s", text);
  return true;
}

static bool grow_ability(check_process *p, const char *line) {
  const size_t length = strlen(line);
  if (length >= sizeof *p->abilities) return true; /* no ability has so long a name */
  for (size_t i = 0; i < p->n_abilities; i++)
    if (strcmp(p->abilities[i], line) == 0) return true;
  char(*grown)[64] = realloc(p->abilities, (p->n_abilities + 1) * sizeof *grown);
  if (grown == NULL) return false;
  p->abilities = grown;
  memcpy(grown[p->n_abilities++], line, length + 1);
  return true;
}

/* What was seen counts, but of a case that failed only what was seen, or tried, and did not work. */
static void keep_abilities(const check_process *p) {
  bool failed = p->c->outcome == CHECK_FAIL;
  for (size_t i = 0; i < p->n_abilities; i++) {
    const char *line = p->abilities[i];
    bool works = line[strlen(line) - 1] != '0';
    if (failed ? !works : line[0] == KIT_SAYS_ABILITY) check_keep_ability(p->list, p->c->index, line + 2);
  }
}

static bool append(char **text, const char *line) {
  size_t have = *text != NULL ? strlen(*text) : 0, more = strlen(line);
  char *grown = realloc(*text, have + more + 2);
  if (grown == NULL) return false;
  memcpy(grown + have, line, more + 1);
  grown[have + more] = '\n';
  grown[have + more + 1] = '\0';
  *text = grown;
  return true;
}

static void hear(check_process *p, const char *line) {
  const char *text = line[1] == ' ' ? line + 2 : "";
  bool ok = true;
  switch (line[0]) {
  case KIT_SAYS_BEGUN: p->begun = true; break;
  case KIT_SAYS_NOTE: ok = append(&p->c->notes, text); break;
  case KIT_SAYS_REFUSES:
    free(p->c->refuses);
    p->c->refuses = strdup(text);
    break;
  case KIT_SAYS_ABILITY:
  case KIT_SAYS_TRIAL: ok = text[0] == '\0' || grow_ability(p, line); break;
  case KIT_SAYS_DEVICE: ok = !p->survey || grow_device(p->list, text); break;
  case KIT_SAYS_ABOUT: ok = !p->survey || grow_about(p->list, text); break;
  case KIT_SAYS_PLUGIN: ok = !p->survey || set_plugin(p->list, text); break;
  case KIT_SAYS_WORD: ok = !p->survey || grow_word(p->list, text); break;
  case KIT_SAYS_NEXT: next_case(p); break;
  case KIT_SAYS_PASS:
  case KIT_SAYS_FAIL:
  case KIT_SAYS_SKIP:
  case KIT_SAYS_STAGE:
    if (p->said == 0) {
      p->said = line[0];
      snprintf(p->words, sizeof p->words, "%s", text);
    }
    break;
  default: break;
  }
  if (!ok && p->said == 0) {
    p->said = KIT_SAYS_FAIL;
    snprintf(p->words, sizeof p->words, "the kit is out of memory");
  }
}

/* True while there may be more. */
static bool read_results(check_process *p) {
  char bytes[4096];
  ssize_t n = read(p->results, bytes, sizeof bytes);
  if (n < 0) return errno == EINTR;
  if (n == 0) {
    close(p->results);
    p->results = -1;
    return false;
  }
  for (ssize_t i = 0; i < n; i++) {
    if (bytes[i] != '\n') {
      if (p->n_line < sizeof p->line - 1) p->line[p->n_line++] = bytes[i];
      continue;
    }
    p->line[p->n_line] = '\0';
    p->n_line = 0;
    hear(p, p->line);
  }
  return true;
}

static bool read_output(check_process *p) {
  char bytes[4096];
  ssize_t n = read(p->output, bytes, sizeof bytes);
  if (n < 0) return errno == EINTR;
  if (n == 0) {
    close(p->output);
    p->output = -1;
    return false;
  }
  size_t kept = (size_t)n <= MOST_OUTPUT - p->n_text ? (size_t)n : MOST_OUTPUT - p->n_text;
  memcpy(p->text + p->n_text, bytes, kept);
  p->n_text += kept;
  p->lost += (size_t)n - kept;
  return true;
}

/* Reads what is there, but no more at a time than a pipe holds: a process that never stops printing does not hold the
 * reader, and what a process has left behind is read to its end. */
static void read_all(check_process *p) {
  for (int i = 0; i < MOST_READS && p->results >= 0 && read_results(p); i++) continue;
  for (int i = 0; i < MOST_READS && p->output >= 0 && read_output(p); i++) continue;
}

/* ---- its end */

/* ", in memory.alloc", with what the case said last. */
static void where(const check_process *p, char *out, size_t bytes) {
  const char *in = kit_call_name(atomic_load(&p->page->in)), *last = kit_call_name(atomic_load(&p->page->last));
  char what[sizeof p->page->what];
  memcpy(what, p->page->what, sizeof what);
  what[sizeof what - 1] = '\0';
  if (in != NULL) snprintf(out, bytes, " in %s", in);
  else if (last != NULL) snprintf(out, bytes, " after %s", last);
  else if (what[0] != '\0') snprintf(out, bytes, " in %s", what);
  else out[0] = '\0';
  size_t n = strlen(out);
  if (in == NULL && last != NULL && what[0] != '\0' && strcmp(what, last) != 0)
    snprintf(out + n, bytes - n, " (%s)", what);
}

static void set_reason(check *c, const char *text) {
  free(c->reason);
  c->reason = strdup(text);
}

/* A stage that the gates' processes have passed, and this one has not: the plugin is not the same each time. */
static const char on_the_way[] = "before the case itself, where other processes came through: ";

/* What causes.c compares: the case's own note, or how its process ended. */
static void note_fault(const check_process *p, int status) {
  const kit_page *page = p->page;
  const unsigned in = atomic_load(&page->in), last = atomic_load(&page->last);
  check *c = p->c;
  for (int i = 0; i < 2; i++) c->called[i] = atomic_load(&page->called[i]);
  c->call = in != 0 ? in : last;
  c->status = 0;
  if (p->said == KIT_SAYS_FAIL || p->said == KIT_SAYS_SKIP || p->said == KIT_SAYS_STAGE) {
    c->fault = atomic_load(&page->fault);
    c->call = atomic_load(&page->fault_call);
    c->status = atomic_load(&page->fault_status);
  } else if (p->killed) {
    c->fault = KIT_FAULT_HUNG;
    if (in != 0 && p->stuck == 0) p->list->hung[in / 64] |= UINT64_C(1) << in % 64;
  } else {
    c->fault = WIFSIGNALED(status) ? KIT_FAULT_DIED : KIT_FAULT_ENDED;
    c->status = WIFSIGNALED(status) ? (unsigned)WTERMSIG(status) : 0;
  }
  if (c->outcome == CHECK_FAIL && c->fault == KIT_FAULT_OVERDUE)
    p->list->overdue[c->call / 64 % 2] |= UINT64_C(1) << c->call % 64;
}

static void judge(check_process *p, int status) {
  check *c = p->c;
  char step[512], text[MOST_LINE + 600];
  const char *late = p->said == KIT_SAYS_PASS ? " after it had passed, while the process ended" : "";
  const char *way = p->begun || p->said == KIT_SAYS_PASS ? "" : on_the_way;
  where(p, step, sizeof step);
  if (late[0] != '\0') step[0] = '\0';
  c->outcome = CHECK_FAIL;
  if (p->said == KIT_SAYS_FAIL || p->said == KIT_SAYS_SKIP || p->said == KIT_SAYS_STAGE) {
    snprintf(text, sizeof text, "%s%s", p->said == KIT_SAYS_STAGE ? on_the_way : "", p->words);
    c->outcome = p->said == KIT_SAYS_SKIP ? CHECK_SKIP : CHECK_FAIL;
    if (c->outcome == CHECK_SKIP && p->begun) c->needs = check_needs(c->what);
    set_reason(c, text);
    return;
  }
  if (p->stuck != 0)
    snprintf(text, sizeof text, "%s%s did not return within %g s", way, kit_call_name(p->stuck),
             (double)p->stuck_ms / 1000);
  else if (p->killed)
    snprintf(text, sizeof text, "%sthe process did not end within %g s%s%s", way, (double)p->limit_ms / 1000, step,
             late);
  else if (WIFSIGNALED(status))
    snprintf(text, sizeof text, "%sthe process died of signal %d (%s)%s%s", way, WTERMSIG(status),
             strsignal(WTERMSIG(status)), step, late);
  else if (late[0] == '\0')
    snprintf(text, sizeof text, "%sthe process ended with status %d in the middle of the case%s", way,
             WEXITSTATUS(status), step);
  else if (WEXITSTATUS(status) != 0)
    snprintf(text, sizeof text, "%sthe process ended with status %d%s", way, WEXITSTATUS(status), late);
  else c->outcome = CHECK_PASS;
  if (c->outcome == CHECK_PASS) return;
  set_reason(c, text);
}

void check_tell(check_process *p) {
  for (int i = 0; i < 2; i++) atomic_store_explicit(&p->page->overdue[i], p->list->overdue[i], memory_order_relaxed);
}

enum { PROMPT_MS = 8000, KNOWN_MS = 1500 };

/* A call that must return at once has less time than the case, and one in which another case hung has little. */
static bool is_stuck(check_process *p, uint64_t now) {
  const unsigned begun = atomic_load(&p->page->begun), in = atomic_load(&p->page->in);
  if (begun != p->calls_begun || in == 0) {
    p->calls_begun = begun;
    p->same_since_ms = now;
    return false;
  }
  const bool known = (p->list->hung[in / 64 % 2] >> in % 64 & 1) != 0;
  if (!known && !kit_call_is_prompt(in)) return false;
  p->stuck_ms = (uint64_t)((known ? KNOWN_MS : PROMPT_MS) * p->scale);
  if (now - p->same_since_ms <= p->stuck_ms || kit_call_name(in) == NULL) return false;
  p->stuck = in;
  p->list->hung[in / 64] |= UINT64_C(1) << in % 64;
  return true;
}

bool check_poll(check_process *p) {
  int status;
  read_all(p);
  check_tell(p);
  pid_t ended = waitpid(p->pid, &status, WNOHANG);
  if (ended == 0) {
    const uint64_t now = now_ms();
    if (!p->killed && (now - p->started_ms > p->limit_ms || is_stuck(p, now))) {
      p->killed = true;
      kill(-p->pid, SIGKILL);
      kill(p->pid, SIGKILL); /* it may not have got as far as its group */
    }
    return false;
  }
  if (ended < 0) {
    if (errno == EINTR) return false;
    status = 0;
  }
  kill(-p->pid, SIGKILL); /* what it started and left behind */
  read_all(p);
  check *c = p->c;
  judge(p, status);
  note_fault(p, status);
  c->seconds = (double)(now_ms() - p->started_ms) / 1000;
  if (p->n_text > 0 && c->outcome != CHECK_PASS) {
    p->text[p->n_text] = '\0';
    for (size_t i = 0; i < p->n_text; i++)
      if (p->text[i] == '\0') p->text[i] = '?';
    c->output = strdup(p->text);
    char cut[64];
    snprintf(cut, sizeof cut, "(and %zu bytes more)", p->lost);
    if (p->lost > 0) append(&c->output, cut);
  }
  keep_abilities(p);
  finish(p);
  return true;
}

void check_wait(check_process *const *p, size_t n, int ms) {
  struct pollfd fds[256];
  nfds_t used = 0;
  bool ending = false;
  for (size_t i = 0; i < n && used + 2 <= sizeof fds / sizeof fds[0]; i++) {
    if (p[i] == NULL) continue;
    if (p[i]->results >= 0) fds[used++] = (struct pollfd){.fd = p[i]->results, .events = POLLIN};
    else ending = true; /* only its death is still to come */
    if (p[i]->output >= 0) fds[used++] = (struct pollfd){.fd = p[i]->output, .events = POLLIN};
  }
  poll(fds, used, ending ? 1 : ms);
}

void check_kill(check_process *p) {
  int status;
  kill(-p->pid, SIGKILL);
  kill(p->pid, SIGKILL);
  while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) continue;
  finish(p);
}
