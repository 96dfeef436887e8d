/* A run of a helper program whose input and output go through a pair of sockets. It is started with posix_spawn,
 * which runs nothing of this process in the child, so that drivers and threads that are there do not matter. */
#include "rocm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { OURS, THEIRS };

static const uint64_t MOST_OUTPUT = UINT64_C(1) << 30;

static uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* Two ends of a stream, both above standard error, so that neither is in the way of what the child gets, and both
 * closed in children that other threads start meanwhile. */
static bool pair(int fds[2]) {
  int raw[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw) != 0) return false;
  for (int i = 0; i < 2; i++) {
    fds[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, 3);
    close(raw[i]);
  }
  if (fds[0] >= 0 && fds[1] >= 0) return true;
  shut(&fds[0]);
  shut(&fds[1]);
  return false;
}

/* 0, or an errno. The child has stream as its input and output, and no signal blocked or ignored. */
static int start(const rocm_child *child, int stream, int complaints, pid_t *out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  int code = posix_spawn_file_actions_init(&actions);
  if (code != 0) return code;
  code = posix_spawnattr_init(&attributes);
  if (code == 0) {
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, stream, STDIN_FILENO);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, stream, STDOUT_FILENO);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
    /* posix_spawn takes strings that it does not change as char *. */
    char *words[32];
    size_t n = 0;
    for (; child->words[n] != NULL && n + 1 < sizeof words / sizeof words[0]; n++)
      memcpy(&words[n], &child->words[n], sizeof words[n]);
    words[n] = NULL;
    if (code == 0)
      code = child->words[n] != NULL ? E2BIG : posix_spawn(out, words[0], &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

/* ---------------------------------------------------------------- moving bytes */

/* Room for more bytes and a zero in child->output. */
static bool make_room(rocm_child *child, uint64_t more, uint64_t *room) {
  const heddle_host *host = child->host;
  if (child->output_bytes + more + 1 <= *room) return true;
  uint64_t want = *room > 0 ? *room * 2 : 65536;
  while (want < child->output_bytes + more + 1) want *= 2;
  if (want > MOST_OUTPUT) return false;
  char *bigger = host->alloc(host->ctx, want, 64);
  if (bigger == NULL) return false;
  if (child->output_bytes > 0) memcpy(bigger, child->output, child->output_bytes);
  host->free(host->ctx, child->output);
  child->output = bigger;
  *room = want;
  return true;
}

/* False at the stream's end. The last bytes are kept. */
static bool take_complaint(rocm_child *child, int fd) {
  char part[sizeof child->complaint];
  const size_t most = sizeof child->complaint - 1;
  const ssize_t got = recv(fd, part, most, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  size_t have = strlen(child->complaint);
  if (have + (size_t)got > most) {
    const size_t cut = have + (size_t)got - most;
    memmove(child->complaint, child->complaint + cut, have - cut + 1);
    have -= cut;
  }
  memcpy(child->complaint + have, part, (size_t)got);
  child->complaint[have + (size_t)got] = '\0';
  return true;
}

/* Feeds the child and reads it until it closes its output or its time is up. */
static heddle_status talk(rocm_child *child, int *stream, int *complaints, uint64_t deadline, heddle_error *err) {
  uint64_t sent = 0, room = 0;
  bool feeding = true;
  if (!make_room(child, 0, &room)) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for what hiprtc gives");
  while (*stream >= 0) {
    const uint64_t now = now_ms();
    if (now >= deadline) {
      child->late = true;
      break;
    }
    struct pollfd fds[2] = {{*stream, (short)(POLLIN | (feeding ? POLLOUT : 0)), 0}, {*complaints, POLLIN, 0}};
    const uint64_t left = deadline - now;
    if (poll(fds, 2, left < 1000 ? (int)left : 1000) < 0 && errno != EINTR) break;
    if (feeding && (fds[0].revents & (POLLOUT | POLLERR | POLLHUP)) != 0) {
      const ssize_t put = sent < child->input_bytes ? send(*stream, child->input + sent, child->input_bytes - sent,
                                                           MSG_NOSIGNAL | MSG_DONTWAIT)
                                                    : 0;
      if (put > 0) sent += (uint64_t)put;
      if (sent == child->input_bytes || (put < 0 && errno != EAGAIN && errno != EINTR)) {
        feeding = false; /* a child that ended does not read: how it ended says more */
        shutdown(*stream, SHUT_WR);
      }
    }
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      if (!make_room(child, 65536, &room)) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for what hiprtc gives");
      const ssize_t got = recv(*stream, child->output + child->output_bytes, 65536, MSG_DONTWAIT);
      if (got > 0) child->output_bytes += (uint64_t)got;
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) shut(stream);
    }
    if (fds[1].revents != 0 && !take_complaint(child, *complaints)) shut(complaints);
  }
  while (*complaints >= 0 && !child->late) {
    struct pollfd last = {*complaints, POLLIN, 0};
    if (poll(&last, 1, 0) <= 0 || !take_complaint(child, *complaints)) break;
  }
  child->output[child->output_bytes] = '\0';
  return HEDDLE_OK;
}

/* Waits for its end, which is made where it does not come in time. */
static void reap(rocm_child *child, pid_t pid, uint64_t deadline) {
  int state = 0;
  pid_t got = 0;
  struct timespec nap = {0, 500000};
  if (child->late) kill(pid, SIGKILL);
  for (;;) {
    got = waitpid(pid, &state, child->late ? 0 : WNOHANG);
    if (got == pid || (got < 0 && errno != EINTR)) break;
    if (got < 0) continue;
    if (now_ms() >= deadline) {
      child->late = true;
      kill(pid, SIGKILL);
      continue;
    }
    nanosleep(&nap, NULL);
    if (nap.tv_nsec < 20000000) nap.tv_nsec *= 2;
  }
  child->status = got == pid && WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  child->ended_by = got == pid && WIFSIGNALED(state) ? WTERMSIG(state) : 0;
}

heddle_status rocm_child_run(rocm_child *child, heddle_error *err) {
  int stream[2] = {-1, -1}, complaints[2] = {-1, -1};
  pid_t pid = 0;
  child->output = NULL;
  child->output_bytes = 0;
  child->complaint[0] = '\0';
  child->late = false;
  int code = pair(stream) && pair(complaints) ? 0 : errno;
  if (code == 0) code = start(child, stream[THEIRS], complaints[THEIRS], &pid);
  shut(&stream[THEIRS]);
  shut(&complaints[THEIRS]);
  heddle_status s = HEDDLE_OK;
  if (code == 0) {
    const uint64_t deadline = now_ms() + (uint64_t)child->limit_seconds * 1000;
    s = talk(child, &stream[OURS], &complaints[OURS], deadline, err);
    if (s != HEDDLE_OK) child->late = true; /* it writes into nothing: end it */
    reap(child, pid, deadline);
  } else {
    char words[96];
    if (strerror_r(code, words, sizeof words) != 0) snprintf(words, sizeof words, "errno %d", code);
    s = p_fail(err, HEDDLE_EFAILED, code, "%.300s could not be started: %s", child->words[0], words);
  }
  shut(&stream[OURS]);
  shut(&complaints[OURS]);
  if (s != HEDDLE_OK) {
    child->host->free(child->host->ctx, child->output);
    child->output = NULL;
  }
  return s;
}
