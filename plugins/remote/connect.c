/* Ways to a server, as an address of the setting names them: unix:PATH, tcp:HOST:PORT on this machine, tls:HOST:PORT, ssh:HOST,
 * tracker:HOST:PORT/KEY, and exec:PROGRAM with words, whose standard input and output are the connection. */
#define _GNU_SOURCE /* struct ucred */
#include "plugins/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "plugins/common/remote/tls.h"
#include "plugins/remote/tracker.h"

extern char **environ;

static heddle_status no_way(const char *address, const char *why, heddle_error *err) {
  return p_fail(err, HEDDLE_ENODEV, 0, "%s: %s", address, why);
}

static bool connect_within(int fd, const struct sockaddr *to, socklen_t bytes, uint32_t limit_ms) {
  int error = 0;
  socklen_t size = sizeof error;
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return false;
  if (connect(fd, to, bytes) == 0) return true;
  struct pollfd wait = {.fd = fd, .events = POLLOUT};
  if (errno != EINPROGRESS) return false;
  if (poll(&wait, 1, (int)limit_ms) != 1) {
    errno = ETIMEDOUT;
    return false;
  }
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return false;
  errno = error;
  return error == 0;
}

/* ---- unix: the server must be this user's or root's */

static heddle_status connect_unix(heddle_pinstance *self, const char *address, const char *path, int *out,
                                  heddle_error *err) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  struct ucred who;
  socklen_t size = sizeof who;
  if (strlen(path) >= sizeof to.sun_path) return no_way(address, "the path is too long for a socket", err);
  memcpy(to.sun_path, path, strlen(path) + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect_within(fd, (struct sockaddr *)&to, sizeof to, self->connect_ms) &&
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
    if (who.uid == geteuid() || who.uid == 0) {
      *out = fd;
      return HEDDLE_OK;
    }
    close(fd);
    return no_way(address, "the server is another user's", err);
  }
  const int code = errno;
  if (fd >= 0) close(fd);
  return no_way(address, strerror(code), err);
}

/* ---- tcp and tls */

static bool is_loopback(const struct sockaddr *a) {
  if (a->sa_family == AF_INET) {
    struct sockaddr_in in;
    memcpy(&in, a, sizeof in);
    return ntohl(in.sin_addr.s_addr) >> 24 == 127;
  }
  if (a->sa_family != AF_INET6) return false;
  struct sockaddr_in6 in6;
  memcpy(&in6, a, sizeof in6);
  return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) != 0;
}

static bool split(const char *text, char host[256], char port[8]) {
  const char *colon = strrchr(text, ':');
  if (colon == NULL || colon == text || colon[1] == '\0' || strlen(colon + 1) > 5) return false;
  if (strspn(colon + 1, "0123456789") != strlen(colon + 1)) return false;
  const bool has_brackets = text[0] == '[' && colon[-1] == ']'; /* [::1]:9190 */
  const int n = (int)(colon - text) - (has_brackets ? 2 : 0);
  if (n <= 0 || n >= 256) return false;
  (void)snprintf(host, 256, "%.*s", n, text + has_brackets);
  (void)snprintf(port, 8, "%s", colon + 1);
  return true;
}

static heddle_status connect_tcp(heddle_pinstance *self, const char *address, const char *rest, bool is_plain,
                                 char host[256], int *out, heddle_error *err) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  struct addrinfo *list = NULL;
  const int yes = 1;
  char port[8];
  int fd = -1, code = 0;
  if (!split(rest, host, port)) return p_fail(err, HEDDLE_EINVAL, 0, "%s: it needs HOST:PORT", address);
  const int rc = getaddrinfo(host, port, &hints, &list);
  if (rc != 0) return no_way(address, gai_strerror(rc), err);
  bool is_refused = false;
  for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next) {
    if (is_plain && !is_loopback(at->ai_addr)) {
      is_refused = true;
      continue;
    }
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect_within(fd, at->ai_addr, at->ai_addrlen, self->connect_ms)) break;
    code = errno;
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(list);
  if (fd < 0 && is_refused)
    return p_fail(err, HEDDLE_EDENIED, 0,
                  "%s: a server of another machine is not authenticated without TLS; use tls: or remote.psk", address);
  if (fd < 0) return no_way(address, strerror(code), err);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  *out = fd;
  return HEDDLE_OK;
}

/* ---- tracker: it has no authentication, so the server that it names must authenticate itself, or be on this machine */

static bool has_tls(const heddle_pinstance *self) {
  return self->psk[0] != '\0' || self->tls_cert[0] != '\0' || self->tls_key[0] != '\0' || self->tls_ca[0] != '\0';
}

static heddle_status connect_tracked(heddle_pinstance *self, const char *address, const char *rest, char host[256],
                                     int *out, heddle_error *err) {
  char tracker[256], place[REMOTE_PLACE_ROOM], full[256 + 8 + REMOTE_PLACE_ROOM];
  const char *slash = strchr(rest, '/');
  if (slash == NULL || slash[1] == '\0') return p_fail(err, HEDDLE_EINVAL, 0, "%s: it needs HOST:PORT/KEY", address);
  (void)snprintf(tracker, sizeof tracker, "%.*s", (int)(slash - rest), rest);
  int fd = -1;
  heddle_status s = connect_tcp(self, address, tracker, false, host, &fd, err);
  if (s != HEDDLE_OK) return s;
  s = remote_ask_tracker(fd, address, slash + 1, self->connect_ms, place, err);
  close(fd);
  if (s != HEDDLE_OK) return s;
  (void)snprintf(full, sizeof full, "%s: %s", address, place);
  return connect_tcp(self, full, place, !has_tls(self), host, out, err);
}

/* ---- programs */

static heddle_status start(const char *address, char *const *words, int *out, uint64_t *child, heddle_error *err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, usual;
  int ends[2];
  pid_t pid = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return no_way(address, strerror(errno), err);
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  int code = posix_spawn_file_actions_init(&actions);
  if (code == 0 && (code = posix_spawnattr_init(&attributes)) != 0) (void)posix_spawn_file_actions_destroy(&actions);
  if (code == 0) {
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &usual);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    code = posix_spawnp(&pid, words[0], &actions, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
  }
  close(ends[1]);
  if (code == 0) {
    *out = ends[0];
    *child = (uint64_t)pid;
    return HEDDLE_OK;
  }
  close(ends[0]);
  return p_fail(err, HEDDLE_ENODEV, code, "%s: '%s' cannot be started: %s", address, words[0], strerror(code));
}

static heddle_status connect_ssh(const char *address, const char *host, int *out, uint64_t *child, heddle_error *err) {
  char name[256];
  if (host[0] == '\0' || host[0] == '-' || strlen(host) >= sizeof name)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s: it needs the name of a host", address);
  (void)snprintf(name, sizeof name, "%s", host);
  char words[][32] = {"ssh", "-oBatchMode=yes", "--", "heddle", "device-server", "--stdio"};
  char *const line[] = {words[0], words[1], words[2], name, words[3], words[4], words[5], NULL};
  return start(address, line, out, child, err);
}

static heddle_status connect_exec(const char *address, const char *command, int *out, uint64_t *child,
                                  heddle_error *err) {
  enum { MOST_WORDS = 32 };
  char text[256], *words[MOST_WORDS + 1], *rest = NULL;
  int n = 0;
  (void)snprintf(text, sizeof text, "%s", command);
  for (char *word = strtok_r(text, " ", &rest); word != NULL && n < MOST_WORDS; word = strtok_r(NULL, " ", &rest))
    words[n++] = word;
  words[n] = NULL;
  if (n == 0) return p_fail(err, HEDDLE_EINVAL, 0, "%s: it needs a program", address);
  return start(address, words, out, child, err);
}

/* ---- all of them */

static heddle_status secure(heddle_pinstance *self, const char *address, const char *host, transport *t,
                            heddle_error *err) {
  char why[TLS_WHY];
  const tls_options o = {.cert = self->tls_cert[0] != '\0' ? self->tls_cert : NULL,
                         .key = self->tls_key[0] != '\0' ? self->tls_key : NULL,
                         .ca = self->tls_ca[0] != '\0' ? self->tls_ca : NULL,
                         .psk = self->psk[0] != '\0' ? self->psk : NULL,
                         .name = self->tls_name[0] != '\0' ? self->tls_name : host,
                         .limit_ms = self->connect_ms};
  if (o.psk == NULL && (o.cert == NULL || o.key == NULL || o.ca == NULL))
    return p_fail(err, HEDDLE_EDENIED, 0,
                  "%s: tls: needs the setting remote.psk, or all of remote.tls_cert, remote.tls_key and remote.tls_ca",
                  address);
  if (tls_start(t, &o, why)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EDENIED, 0, "%s: %s", address, why);
}

heddle_status remote_connect(heddle_pinstance *self, const char *address, transport *t, uint64_t *child,
                             heddle_error *err) {
  char host[256] = "";
  int fd = -1;
  heddle_status s;
  *child = 0;
  const bool is_tracked = strncmp(address, "tracker:", 8) == 0;
  const bool is_tls = strncmp(address, "tls:", 4) == 0 || (is_tracked && has_tls(self));
  if (strncmp(address, "unix:", 5) == 0) s = connect_unix(self, address, address + 5, &fd, err);
  else if (is_tracked) s = connect_tracked(self, address, address + 8, host, &fd, err);
  else if (is_tls || strncmp(address, "tcp:", 4) == 0)
    s = connect_tcp(self, address, address + 4, !is_tls, host, &fd, err);
  else if (strncmp(address, "ssh:", 4) == 0) s = connect_ssh(address, address + 4, &fd, child, err);
  else if (strncmp(address, "exec:", 5) == 0) s = connect_exec(address, address + 5, &fd, child, err);
  else
    s = p_fail(
        err, HEDDLE_EINVAL, 0,
        "'%s' is no address of a server: unix:PATH, tcp:HOST:PORT, tls:HOST:PORT, ssh:HOST, tracker:HOST:PORT/KEY or "
        "exec:PROGRAM",
        address);
  if (s != HEDDLE_OK) return s;
  if (!transport_init(t, fd, fd, self->connect_ms)) return no_way(address, "no memory for a connection", err);
  if (!is_tls) return HEDDLE_OK;
  s = secure(self, address, host, t, err);
  if (s != HEDDLE_OK) transport_close(t);
  return s;
}
