/* The exchange with a tracker: a number that both send, then messages of JSON after their lengths. What the tracker answers is
 * not trusted: it is short, and has a host and a port. */
#include "plugins/remote/tracker.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "plugins/common/perror.h"
#include "plugins/common/remote/transport.h"
#include "plugins/common/remote/wire.h"

#define TRACKER_MAGIC 0x2F271u
enum { REQUEST = 4, LONGEST = 1 << 16, MOST_HOST = 255 };

/* All bytes, until a time. false, with errno: ETIMEDOUT, or the connection has ended. */
static bool move(int fd, void *data, size_t bytes, bool sends, int64_t until) {
  char *at = data;
  while (bytes > 0) {
    const ssize_t n = sends ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);
    if (n > 0) {
      at += n;
      bytes -= (size_t)n;
      continue;
    }
    if (n == 0) errno = ECONNRESET;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
    const int64_t left = until - transport_now_ms();
    struct pollfd wait = {.fd = fd, .events = sends ? POLLOUT : POLLIN};
    if (left <= 0 || poll(&wait, 1, (int)left) == 0) {
      errno = ETIMEDOUT;
      return false;
    }
  }
  return true;
}

/* The answer as text, which the caller frees; NULL, with errno: it did not come, or EBADMSG. */
static char *take_answer(int fd, size_t *bytes, int64_t until) {
  uint8_t head[4];
  if (!move(fd, head, sizeof head, false, until)) return NULL;
  byte_reader r = {head, sizeof head, false};
  *bytes = byte_take_u32(&r);
  char *text = *bytes > 0 && *bytes <= LONGEST ? malloc(*bytes) : NULL;
  if (text == NULL) {
    errno = EBADMSG;
    return NULL;
  }
  if (move(fd, text, *bytes, false, until)) return text;
  const int code = errno;
  free(text);
  errno = code;
  return NULL;
}

/* [0, [host, port, match]]; the port may be a text. */
static bool read_place(const char *text, size_t bytes, char place[REMOTE_PLACE_ROOM]) {
  json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
  const json_t *status = json_array_get(root, 0), *server = json_array_get(root, 1), *at = json_array_get(server, 1);
  const char *host = json_string_value(json_array_get(server, 0));
  const json_int_t port = json_is_string(at) ? strtoll(json_string_value(at), NULL, 10) : json_integer_value(at);
  const bool good = json_is_integer(status) && json_integer_value(status) == 0 && host != NULL && host[0] != '\0' &&
                    strlen(host) <= MOST_HOST && strpbrk(host, "[]/") == NULL && port > 0 && port <= UINT16_MAX;
  if (good) {
    const bool is_v6 = strchr(host, ':') != NULL;
    (void)snprintf(place, REMOTE_PLACE_ROOM, "%s%s%s:%d", is_v6 ? "[" : "", host, is_v6 ? "]" : "", (int)port);
  }
  json_decref(root);
  return good;
}

heddle_status remote_ask_tracker(int fd, const char *address, const char *key, uint32_t limit_ms,
                                 char place[REMOTE_PLACE_ROOM], heddle_error *err) {
  const int64_t until = transport_now_ms() + limit_ms;
  byte_buffer b = {0};
  uint8_t magic[4];
  size_t bytes = 0;
  json_t *request = json_pack("[i, s, s, f]", (int)REQUEST, key, "", 1.0);
  char *text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
  json_decref(request);
  if (text == NULL) return p_fail(err, HEDDLE_EINVAL, 0, "%s: the key is no UTF-8", address);
  byte_put_u32(&b, TRACKER_MAGIC);
  byte_put_u32(&b, (uint32_t)strlen(text));
  byte_put(&b, text, strlen(text));
  free(text);
  if (b.failed) {
    byte_finish(&b);
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s: no memory for a request", address);
  }
  /* The number first: what is no tracker gets nothing else. */
  bool good = move(fd, b.data, 4, true, until) && move(fd, magic, sizeof magic, false, until);
  if (good && memcmp(magic, b.data, sizeof magic) != 0) {
    good = false;
    errno = EBADMSG;
  }
  good = good && move(fd, b.data + 4, b.used - 4, true, until);
  byte_finish(&b);
  char *answer = good ? take_answer(fd, &bytes, until) : NULL;
  if (answer == NULL && errno == ETIMEDOUT)
    return p_fail(err, HEDDLE_ENODEV, ETIMEDOUT, "%s: the tracker %s within %u ms", address,
                  good ? "had no free server of the key" : "did not answer", (unsigned)limit_ms);
  const bool is_read = answer != NULL && read_place(answer, bytes, place);
  free(answer);
  if (is_read) return HEDDLE_OK;
  return p_fail(err, HEDDLE_ENODEV, 0, "%s: the other end is no tracker, or refused the request", address);
}
