/* Cases of the group "process": what a plugin leaves to others: processes that it started, descriptors that programs
 * started by the host would inherit, threads that take the host's signals, and variables that it reads. */
#define _GNU_SOURCE /* gettid */
#include "conformance/process_left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/interpose.h"
#include "conformance/kit_side.h"

/* ---- child processes */

typedef struct child {
  int pid;
  char state; /* as in /proc: 'Z' is a zombie */
  char name[32];
} child;

/* Reads "PID (NAME) STATE PARENT"; false where the process is not this one's child. */
static bool read_child(const char *pid, child *out) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
  if (fd >= 0) close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  char *from = strchr(text, '('), *to = strrchr(text, ')'); /* a name may hold anything */
  int parent = 0;
  if (from == NULL || to == NULL || sscanf(to + 1, " %c %d", &out->state, &parent) != 2) return false;
  out->pid = atoi(pid);
  snprintf(out->name, sizeof out->name, "%.*s", (int)(to - from - 1), from + 1);
  return parent == getpid();
}

static bool first_child(child *out) {
  bool found = false;
  DIR *folder = opendir("/proc");
  if (folder == NULL) return false;
  for (const struct dirent *e; !found && (e = readdir(folder)) != NULL;)
    found = e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_child(e->d_name, out);
  closedir(folder);
  return found;
}

/* Processes that the plugin's processes leave become children of this one (PR_SET_CHILD_SUBREAPER). One that is ending
 * is waited for. */
void process_children(kit *k) {
  child c;
  const uint64_t end = kit_patience_ms(k, 2000);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) kit_note(k, "processes of processes cannot be followed here");
  if (!kit_stage_library(k) || !kit_stage_entry(k) || !kit_stage_instance(k) || !kit_stage_device(k))
    kit_skip(k, "%s", k->err.text);
  process_work(k);
  kit_close_all(k);
  const uint64_t start = kit_now_ms();
  bool left = first_child(&c);
  while (left && kit_now_ms() - start < end) {
    kit_sleep_ms(20);
    left = first_child(&c);
  }
  if (!left) return;
  if (c.state != 'Z') kill(c.pid, SIGKILL);
  if (c.state == 'Z')
    kit_fail(k, "a child process (%s, number %d) has ended and was not waited for: a zombie is left when all is closed",
             c.name, c.pid);
  kit_fail(k, "a child process (%s, number %d) still runs when all is closed", c.name, c.pid);
}

/* ---- descriptors */

enum { MOST_FDS = 4096 };

static void what_is(int fd, char *out, size_t bytes) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(path, out, bytes - 1);
  out[n > 0 ? n : 0] = '\0';
}

/* The host's descriptors are open before; what is open beyond them must not reach a program that the host starts. */
static void compare_fds(kit *k, const bool *before, const char *when) {
  char name[200];
  for (int fd = 0; fd < MOST_FDS; fd++) {
    int flags = before[fd] ? -1 : fcntl(fd, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    what_is(fd, name, sizeof name);
    if (interpose_opened(fd))
      kit_fail(k, "%s, descriptor %d (%s) would be inherited by programs that the host starts: it lacks close-on-exec",
               when, fd, name);
    kit_note(k, "%s, descriptor %d (%s), which the plugin's own file did not open, lacks close-on-exec", when, fd,
             name);
  }
}

void process_inherited(kit *k) {
  static bool before[MOST_FDS];
  for (int fd = 0; fd < MOST_FDS; fd++) before[fd] = fcntl(fd, F_GETFD) >= 0;
  interpose_watch(k->file);
  if (!kit_stage_library(k) || !kit_stage_entry(k) || !kit_stage_instance(k) || !kit_stage_device(k))
    kit_skip(k, "%s", k->err.text);
  compare_fds(k, before, "with a device open");
  heddle_pstream *s = NULL;
  if (k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &s, &k->err) != HEDDLE_OK) s = NULL;
  process_work(k);
  compare_fds(k, before, "with a stream open");
  k->t.stream.close(s);
}

/* ---- threads */

/* The mask of blocked signals of a thread of this process; false where it has ended. */
static bool blocked(int32_t thread, uint64_t *out) {
  char path[64], line[256];
  bool found = false;
  unsigned long long mask = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  while (!found && fgets(line, sizeof line, file) != NULL) found = sscanf(line, "SigBlk: %llx", &mask) == 1;
  fclose(file);
  *out = mask;
  return found;
}

/* Those that are sent to a process, and not raised by what a thread does. */
static const int for_the_program[] = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1, SIGUSR2,
                                      SIGALRM, SIGCHLD, SIGWINCH, SIGTSTP, SIGCONT};

static void check_threads(kit *k) {
  int32_t all[256];
  uint32_t n = interpose_threads(all, 256);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t mask;
    if (!blocked(all[i], &mask)) continue;
    for (size_t j = 0; j < sizeof for_the_program / sizeof for_the_program[0]; j++)
      if ((mask >> (for_the_program[j] - 1) & 1) == 0)
        kit_fail(k, "a thread of the plugin does not block signal %d (%s): a handler of the program's could run there",
                 for_the_program[j], strsignal(for_the_program[j]));
  }
}

void process_thread_signals(kit *k) {
  heddle_pstream *s = NULL;
  interpose_watch(k->file);
  if (!kit_stage_library(k) || !kit_stage_entry(k) || !kit_stage_instance(k) || !kit_stage_device(k))
    kit_skip(k, "%s", k->err.text);
  if (k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &s, &k->err) != HEDDLE_OK) s = NULL;
  process_work(k);
  if (s != NULL && !kit_inline(k)) {
    heddle_pfence fence = kit_fence(k);
    kit_ok(k, k->t.fence.signal(s, fence, 1, &k->err), "fence.signal");
    kit_fence_wait(k, fence, 1, kit_patience_ms(k, 5000));
    kit_sync(k, s);
    kit_fence_free(k, fence);
  }
  kit_sleep_ms(20); /* a thread that blocks its signals itself has done so */
  check_threads(k);
  k->t.stream.close(s);
}

/* ---- variables */

void process_environment(kit *k) {
  interpose_watch(k->file);
  bool there = kit_stage_library(k) && kit_stage_entry(k) && kit_stage_instance(k) && kit_stage_device(k);
  if (there) {
    process_work(k);
    kit_close_all(k);
  }
  const char *name = interpose_variable();
  if (name != NULL)
    kit_fail(k, "the plugin read the variable %s of the environment; its settings come from host.config", name);
  if (!there) kit_skip(k, "%s", k->err.text);
}
