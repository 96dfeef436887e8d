/* conformance/process_kernel.c: see process_kernel.h. Everything is read for the calling thread, which is the one that calls
 * the plugin; what a plugin's own threads have is theirs. */
#define _GNU_SOURCE /* sched_getaffinity, uselocale */
#include "conformance/process_kernel.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { STANDARD = 3, ASKED = 5 };

typedef struct standard {
  int open, flags;
  dev_t device;
  ino_t file;
} standard;

struct process_kernel {
  cpu_set_t processors;
  int nice, policy, priority;
  struct itimerval timers[3];
  int posix_timers;
  char name[16], score[16];
  long prctl[ASKED];
  unsigned long persona;
  pid_t group, session;
  uid_t user;
  gid_t users;
  locale_t locale;
  stack_t signals;
  int cancel, cancel_type, death, reaper;
  bool unbuffered; /* the standard output */
  standard fds[STANDARD];
};

static const int asked[ASKED] = {PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_TIMERSLACK, PR_GET_NO_NEW_PRIVS,
                                 PR_GET_THP_DISABLE};

static int count_lines(const char *path, const char *begin) {
  char line[256];
  int n = 0;
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) n += strncmp(line, begin, strlen(begin)) == 0;
  fclose(file);
  return n;
}

static void first_line(const char *path, char *out, size_t bytes) {
  FILE *file = fopen(path, "re");
  if (file == NULL || fgets(out, (int)bytes, file) == NULL) out[0] = '\0';
  if (file != NULL) fclose(file);
}

process_kernel *process_kernel_take(void) {
  process_kernel *s = calloc(1, sizeof *s);
  struct sched_param param = {0};
  if (s == NULL) return NULL;
  sched_getaffinity(0, sizeof s->processors, &s->processors);
  s->nice = getpriority(PRIO_PROCESS, 0);
  s->policy = sched_getscheduler(0);
  if (sched_getparam(0, &param) == 0) s->priority = param.sched_priority;
  getitimer(ITIMER_REAL, &s->timers[0]);
  getitimer(ITIMER_VIRTUAL, &s->timers[1]);
  getitimer(ITIMER_PROF, &s->timers[2]);
  s->posix_timers = count_lines("/proc/self/timers", "ID:");
  prctl(PR_GET_NAME, s->name, 0, 0, 0);
  first_line("/proc/self/oom_score_adj", s->score, sizeof s->score);
  for (int i = 0; i < ASKED; i++) s->prctl[i] = prctl(asked[i], 0, 0, 0, 0);
  if (prctl(PR_GET_PDEATHSIG, &s->death, 0, 0, 0) != 0) s->death = 0;
  if (prctl(PR_GET_CHILD_SUBREAPER, &s->reaper, 0, 0, 0) != 0) s->reaper = 0;
  s->unbuffered = __fbufsize(stdout) == 1;
  s->persona = (unsigned long)personality(0xffffffff);
  s->group = getpgrp();
  s->session = getsid(0);
  s->user = geteuid();
  s->users = getegid();
  s->locale = uselocale((locale_t)0);
  sigaltstack(NULL, &s->signals);
  if (pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &s->cancel) == 0) pthread_setcancelstate(s->cancel, NULL);
  if (pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &s->cancel_type) == 0) pthread_setcanceltype(s->cancel_type, NULL);
  for (int i = 0; i < STANDARD; i++) {
    struct stat info;
    s->fds[i].open = fstat(i, &info) == 0;
    if (!s->fds[i].open) continue;
    s->fds[i].flags = fcntl(i, F_GETFL);
    s->fds[i].device = info.st_dev;
    s->fds[i].file = info.st_ino;
  }
  return s;
}

static int is_set(const struct itimerval *t) {
  return t->it_value.tv_sec != 0 || t->it_value.tv_usec != 0;
}

static const char *compare(const process_kernel *a, const process_kernel *b) {
  static const char *const of_prctl[ASKED] = {
      "whether the process may be dumped (prctl)", "the capabilities that are kept (prctl)",
      "the timer slack of the calling thread (prctl)", "what new privileges the process may get (prctl)",
      "whether the process uses huge pages (prctl)"};
  static const char *const of_timer[3] = {"the timer of the process (alarm, setitimer)",
                                          "the timer of the process's time (setitimer)",
                                          "the profiling timer of the process (setitimer)"};
  static const char *const of_fd[STANDARD] = {"the standard input", "the standard output", "the standard error output"};
  if (!CPU_EQUAL(&a->processors, &b->processors)) return "the processors of the calling thread (affinity)";
  if (a->nice != b->nice) return "the priority of the calling thread (nice)";
  if (a->policy != b->policy || a->priority != b->priority) return "how the calling thread is scheduled";
  for (int i = 0; i < 3; i++)
    if (is_set(&a->timers[i]) != is_set(&b->timers[i])) return of_timer[i];
  if (a->posix_timers < b->posix_timers) return "the number of timers of the process (timer_create)";
  if (memcmp(a->name, b->name, sizeof a->name) != 0) return "the name of the calling thread";
  if (strcmp(a->score, b->score) != 0) return "the process's score when memory is out (oom_score_adj)";
  for (int i = 0; i < ASKED; i++)
    if (a->prctl[i] != b->prctl[i]) return of_prctl[i];
  if (a->death != b->death) return "the signal at the parent's death (prctl)";
  if (a->reaper != b->reaper) return "the child subreaper (prctl)";
  if (a->unbuffered != b->unbuffered) return "how the standard output is buffered (setvbuf)";
  if (a->persona != b->persona) return "the personality of the process";
  if (a->group != b->group || a->session != b->session) return "the process group or the session";
  if (a->user != b->user || a->users != b->users) return "the user or the group of the process";
  if (a->locale != b->locale) return "the locale of the calling thread (uselocale)";
  if (a->signals.ss_sp != b->signals.ss_sp) return "the stack for signals of the calling thread (sigaltstack)";
  if (a->cancel != b->cancel || a->cancel_type != b->cancel_type) return "whether the calling thread can be cancelled";
  for (int i = 0; i < STANDARD; i++)
    if (memcmp(&a->fds[i], &b->fds[i], sizeof a->fds[i]) != 0) return of_fd[i];
  return NULL;
}

/* By which functions what is changed: those whose part is in the text of what differs. */
static const struct {
  const char *part, *name;
} changers[] = {{"(affinity)", "sched_setaffinity"},
                {"(affinity)", "pthread_setaffinity_np"},
                {"(nice)", "setpriority"},
                {"(nice)", "nice"},
                {"scheduled", "sched_setscheduler"},
                {"scheduled", "sched_setparam"},
                {"scheduled", "pthread_setschedparam"},
                {"setitimer", "setitimer"},
                {"setitimer", "alarm"},
                {"setitimer", "ualarm"},
                {"timer_create", "timer_create"},
                {"(prctl)", "prctl"},
                {"name of the", "prctl"},
                {"name of the", "pthread_setname_np"},
                {"oom_score_adj", "open"},
                {"oom_score_adj", "fopen"},
                {"personality", "personality"},
                {"process group", "setpgid"},
                {"process group", "setpgrp"},
                {"process group", "setsid"},
                {"process group", "daemon"},
                {"the user", "setuid"},
                {"the user", "seteuid"},
                {"the user", "setreuid"},
                {"the user", "setresuid"},
                {"the user", "setgid"},
                {"the user", "setegid"},
                {"uselocale", "uselocale"},
                {"sigaltstack", "sigaltstack"},
                {"cancelled", "pthread_setcancelstate"},
                {"cancelled", "pthread_setcanceltype"},
                {"the standard", "fcntl"},
                {"the standard", "fcntl64"},
                {"the standard", "dup2"},
                {"the standard", "dup3"},
                {"the standard", "close"},
                {"the standard", "freopen"},
                {"(setvbuf)", "setvbuf"},
                {"(setvbuf)", "setbuf"},
                {"(setvbuf)", "setlinebuf"},
                {"", "syscall"}};

bool process_kernel_changer(void *sink, const char *name, bool defined) {
  process_changer *c = sink;
  for (size_t i = 0; i < sizeof changers / sizeof changers[0] && !defined; i++)
    if (strcmp(name, changers[i].name) == 0 && strstr(c->what, changers[i].part) != NULL) c->found = true;
  return true;
}

const char *process_kernel_differs(const process_kernel *a) {
  process_kernel *b = process_kernel_take();
  const char *what = b != NULL ? compare(a, b) : NULL;
  free(b);
  return what;
}
