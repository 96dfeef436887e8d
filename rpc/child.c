/* rpc/child.c: processes of sessions. The server itself opens no device and has one thread, so that a plain fork will do. */
#define _GNU_SOURCE /* FTW_PHYS, prctl */
#include "rpc/child.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *at) {
  (void)about, (void)type, (void)at;
  (void)remove(path);
  return 0;
}

static void remove_folder(const char *folder) {
  enum { OPEN = 16 };
  if (folder[0] != '\0') (void)nftw(folder, remove_one, OPEN, FTW_DEPTH | FTW_PHYS);
}

static void limit(int what, uint64_t most) {
  struct rlimit now, to;
  if (getrlimit(what, &now) != 0) return;
  to.rlim_max = now.rlim_max < most ? now.rlim_max : (rlim_t)most;
  to.rlim_cur = to.rlim_max;
  (void)setrlimit(what, &to);
}

/* The memory that all mappings of a process's own may have: its code's and libraries' share besides what a session allocates. */
static void enter(const rpc_child *c, pid_t server, uint64_t memory) {
  enum { BESIDES = 1 << 30 };
  static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) signal(numbers[i], SIG_DFL);
  signal(SIGXFSZ, SIG_IGN); /* a file that is too large is a write that fails */
  (void)setpgid(0, 0);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != server) _exit(1); /* it ended before that */
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, memory);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  limit(RLIMIT_DATA, memory + BESIDES);
#endif
  if (chdir(c->folder) != 0) _exit(1);
}

bool rpc_child_start(rpc_child *c, uint64_t memory, int (*serve)(void *user), void *user, const int *closes,
                     int n_closes) {
  const char *base = getenv("TMPDIR");
  const pid_t server = getpid();
  *c = (rpc_child){0};
  if (base == NULL || base[0] == '\0') base = "/tmp";
  if ((size_t)snprintf(c->folder, sizeof c->folder, "%s/heddle-rpc-XXXXXX", base) >= sizeof c->folder ||
      mkdtemp(c->folder) == NULL) {
    c->folder[0] = '\0';
    return false;
  }
  c->pid = fork();
  if (c->pid == 0) {
    for (int i = 0; i < n_closes; i++)
      if (closes[i] >= 0) close(closes[i]);
    enter(c, server, memory);
    /* No handlers of exit: they are the server's, and uploaded libraries may have left some that do not return. */
    _exit(serve(user));
  }
  if (c->pid > 0) {
    (void)setpgid(c->pid, c->pid); /* in both, so that it is done when either goes on */
    return true;
  }
  c->pid = 0;
  remove_folder(c->folder);
  return false;
}

static void finish(rpc_child *c) {
  remove_folder(c->folder);
  *c = (rpc_child){0};
}

/* What it started is killed while its number is still taken. */
bool rpc_child_ended(rpc_child *c, int *status) {
  siginfo_t about = {.si_pid = 0};
  if (c->pid == 0 || waitid(P_PID, (id_t)c->pid, &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid != c->pid)
    return false;
  (void)kill(-c->pid, SIGKILL);
  if (waitpid(c->pid, status, 0) != c->pid) return false;
  finish(c);
  return true;
}

void rpc_child_kill(rpc_child *c) {
  if (c->pid == 0) return;
  (void)kill(-c->pid, SIGKILL);
  (void)kill(c->pid, SIGKILL);
  while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) continue;
  finish(c);
}
