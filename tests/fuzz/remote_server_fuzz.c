/* What a client may send to heddle device-server: frames, to a session with the device cpu. Regions are read, and not given to
 * the plugin, whose own questions have a kit. Nothing may crash, leak, or reach memory that the session did not hand out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/heddle.h"
#include "remote/session.h"

typedef struct input {
  const uint8_t *at;
  size_t left;
} input;

static int64_t put(transport *t, const void *data, size_t bytes) {
  (void)t, (void)data;
  return (int64_t)bytes;
}

static int64_t get(transport *t, void *data, size_t bytes) {
  input *in = t->state;
  const size_t n = bytes < in->left ? bytes : in->left;
  if (n == 0) return -1;
  memcpy(data, in->at, n);
  in->at += n;
  in->left -= n;
  return (int64_t)n;
}

static void end(transport *t) {
  (void)t;
}

static const transport_carrier carrier = {put, get, end};

static const void *no_blob(void *user, const wire_blob_id *id) {
  (void)user, (void)id;
  return NULL;
}

static bool read_region(input *in, const wire_head *head) {
  if (head->bytes > in->left) return false;
  byte_reader r = {in->at, (size_t)head->bytes, false};
  heddle_error err;
  free(wire_take_region(&r, no_blob, NULL, &err));
  in->at += head->bytes;
  in->left -= (size_t)head->bytes;
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const remote_limits limits = {.devices = "cpu", .memory = 1 << 20, .idle_ms = 1000};
  input in = {data, size};
  uint8_t bytes[WIRE_HEAD];
  heddle_error err = {0};
  remote_session s;
  setenv("HEDDLE_PLUGINS", HEDDLE_FUZZ_PLUGINS, 1);
  setenv("HEDDLE_PROBE", "off", 1);
  setenv("HEDDLE_CONFIG", "off", 0);
  transport t = {.carrier = &carrier, .state = &in, .in = -1, .out = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
  atomic_init(&t.ended, false);
  atomic_init(&t.heard_ms, 0);
  if (remote_session_init(&s, &t, &limits, &err) != HEDDLE_OK) {
    fprintf(stderr, "%s\n", err.text);
    exit(1);
  }
  while (transport_receive(&t, bytes, sizeof bytes)) {
    const wire_head head = wire_head_take(bytes);
    const bool is_region = head.kind == WIRE_QUERY || head.kind == WIRE_PARTITION || head.kind == WIRE_PREPARE;
    if (!(is_region ? read_region(&in, &head) : remote_session_answer(&s, &head))) break;
  }
  remote_session_finish(&s);
  return 0;
}
