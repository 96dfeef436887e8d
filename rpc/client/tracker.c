/* rpc/client/tracker.c: what a client asks of a tracker: a server of a key, and what there is. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/client/client.h"

static heddle_status bad_answer(const char *host, uint16_t port, heddle_error *err) {
  return rpc_error(err, HEDDLE_EFORMAT, "%.200s:%u is no tracker of TVM's RPC, or refused", host, (unsigned)port);
}

/* The second part of the answer [0, it]; takes message over. */
static heddle_status ask(const char *host, uint16_t port, uint32_t connect_ms, json_t *message, json_t **out,
                         heddle_error *err) {
  enum { LONGEST = 1 << 24 };
  uint8_t head[4];
  byte_buffer b = {0};
  char *text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL, *answer = NULL;
  json_decref(message);
  *out = NULL;
  if (text == NULL) return rpc_error(err, HEDDLE_EINVAL, "a message to the tracker: the key is no UTF-8");
  int fd = rpc_dial(host, port, connect_ms, err);
  if (fd < 0) {
    free(text);
    return HEDDLE_EIO;
  }
  byte_put_u32(&b, RPC_TRACKER_MAGIC);
  byte_put_u32(&b, (uint32_t)strlen(text));
  byte_put(&b, text, strlen(text));
  free(text);
  bool good = !b.failed && rpc_write_bytes(fd, b.data, 4) && rpc_read_bytes(fd, head, 4);
  if (good && memcmp(head, b.data, 4) != 0) {
    byte_finish(&b);
    close(fd);
    return bad_answer(host, port, err);
  }
  good = good && rpc_write_bytes(fd, b.data + 4, b.used - 4) && rpc_read_bytes(fd, head, 4);
  byte_finish(&b);
  byte_reader r = {head, 4, !good};
  uint32_t n = byte_take_u32(&r);
  if (n > 0 && n <= LONGEST) answer = malloc(n);
  json_t *root =
      answer != NULL && rpc_read_bytes(fd, answer, n) ? json_loadb(answer, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
  free(answer);
  close(fd);
  if (!good) return rpc_error(err, HEDDLE_EIO, "the tracker at %.200s:%u closed the connection", host, (unsigned)port);
  const json_t *status = json_array_get(root, 0);
  if (json_array_size(root) == 2 && json_is_integer(status) && json_integer_value(status) == 0)
    *out = json_incref(json_array_get(root, 1));
  json_decref(root);
  return *out != NULL ? HEDDLE_OK : bad_answer(host, port, err);
}

heddle_status heddle_rpc_request(const char *tracker, uint16_t port, const char *key, double priority,
                                 const heddle_rpc_options *options, heddle_rpc **out, heddle_error *err) {
  enum { REQUEST = 4 };
  json_t *answer;
  if (out != NULL) *out = NULL;
  if (tracker == NULL || key == NULL || out == NULL || (options != NULL && options->struct_size < sizeof *options))
    return rpc_error(err, HEDDLE_EINVAL, "a request needs a tracker, a key and valid options");
  heddle_status s = ask(tracker, port, options != NULL ? options->connect_ms : 0,
                        json_pack("[i, s, s, f]", REQUEST, key, "", priority), &answer, err);
  if (s != HEDDLE_OK) return s;
  const char *host = json_string_value(json_array_get(answer, 0)),
             *match = json_string_value(json_array_get(answer, 2));
  const json_t *at = json_array_get(answer, 1);
  const json_int_t number = json_is_string(at) ? strtoll(json_string_value(at), NULL, 10) : json_integer_value(at);
  if (host == NULL || match == NULL || number < 1 || number > UINT16_MAX) s = bad_answer(tracker, port, err);
  else s = heddle_rpc_connect(host, (uint16_t)number, match, options, out, err);
  json_decref(answer);
  return s;
}

heddle_status heddle_rpc_summary(const char *tracker, uint16_t port, char **out, heddle_error *err) {
  enum { SUMMARY = 6 };
  json_t *answer;
  if (tracker == NULL || out == NULL) return rpc_error(err, HEDDLE_EINVAL, "a tracker and a place are needed");
  *out = NULL;
  heddle_status s = ask(tracker, port, 0, json_pack("[i]", SUMMARY), &answer, err);
  if (s != HEDDLE_OK) return s;
  *out = json_dumps(answer, JSON_COMPACT);
  json_decref(answer);
  return *out != NULL ? HEDDLE_OK : rpc_error(err, HEDDLE_ENOMEM, "out of memory: the tracker's summary");
}

void heddle_rpc_release(char *text) {
  free(text);
}
