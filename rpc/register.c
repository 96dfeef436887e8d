/* rpc/register.c: messages of a server to a tracker: a length of 32 bits, then JSON. */
#include "rpc/register.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/wire.h"

enum { WAIT_MS = 3000, PERIOD_MS = 2000, MOST_MISSING = 4, LONGEST = 1 << 20 };

void rpc_register_finish(rpc_register *r) {
  if (r->fd >= 0) close(r->fd);
  r->fd = -1;
  r->offers = false;
}

/* One exchange; takes request over. NULL: the connection failed, or the answer is no JSON. */
static json_t *ask(rpc_register *r, json_t *request) {
  byte_buffer b = {0};
  uint8_t head[4];
  char *text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
  json_t *answer = NULL;
  json_decref(request);
  if (text == NULL) return NULL;
  byte_put_u32(&b, (uint32_t)strlen(text));
  byte_put(&b, text, strlen(text));
  free(text);
  bool good = !b.failed && rpc_send(r->fd, b.data, b.used) && rpc_receive(r->fd, head, sizeof head);
  byte_finish(&b);
  byte_reader reader = {head, good ? sizeof head : 0, false};
  uint32_t n = byte_take_u32(&reader);
  char *reply = n > 0 && n <= LONGEST ? malloc(n) : NULL;
  if (reply != NULL && rpc_receive(r->fd, reply, n))
    answer = json_loadb(reply, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
  free(reply);
  return answer;
}

static bool is_zero(json_t *answer) {
  bool good = json_is_integer(answer) && json_integer_value(answer) == 0;
  json_decref(answer);
  return good;
}

static json_t *address_of(const rpc_register *r) {
  return r->address != NULL ? json_string(r->address) : json_null();
}

static bool log_in(rpc_register *r) {
  uint8_t magic[4];
  byte_buffer b = {0};
  char name[1100];
  r->fd = rpc_connect(r->host, r->tracker_port, WAIT_MS);
  if (r->fd < 0) return false;
  byte_put_u32(&b, RPC_TRACKER_MAGIC);
  bool good = !b.failed && rpc_send(r->fd, b.data, b.used) && rpc_receive(r->fd, magic, sizeof magic) &&
              memcmp(magic, b.data, sizeof magic) == 0;
  byte_finish(&b);
  snprintf(name, sizeof name, "server:%.1024s", r->key);
  if (good)
    good = is_zero(ask(r, json_pack("[i, {s: s, s: [o, i]}]", 5, "key", name, "addr", address_of(r), (int)r->port)));
  if (!good) rpc_register_finish(r);
  return good;
}

/* Digits of the kernel's randomness: a client that knows the key was given it by the tracker. */
static bool make_match(rpc_register *r) {
  uint64_t number = 0;
  FILE *f = fopen("/dev/urandom", "rb");
  bool good = f != NULL && fread(&number, sizeof number, 1, f) == 1;
  if (f != NULL) fclose(f);
  snprintf(r->match, sizeof r->match, "%.1024s:%llu", r->key, (unsigned long long)number);
  return good;
}

static bool offer(rpc_register *r) {
  if (!make_match(r)) return false;
  r->missing = 0;
  r->offers = is_zero(ask(r, json_pack("[i, s, [i, s], o]", 3, r->key, (int)r->port, r->match, address_of(r))));
  return r->offers;
}

/* A key that a client took and does not use is replaced after some polls. */
static bool check(rpc_register *r) {
  json_t *keys = ask(r, json_pack("[i]", 7));
  bool good = json_is_array(keys), found = false;
  for (size_t i = 0; i < json_array_size(keys); i++) {
    const char *key = json_string_value(json_array_get(keys, i));
    if (key != NULL && strcmp(key, r->match) == 0) found = true;
  }
  json_decref(keys);
  r->missing = found ? 0 : r->missing + 1;
  return good && (r->missing < (r->is_shared ? 1 : MOST_MISSING) || offer(r));
}

void rpc_register_step(rpc_register *r, bool wants) {
  if (r->host == NULL) return;
  if (r->is_shared && r->offers && !wants) rpc_register_finish(r); /* the protocol has no other way to withdraw it */
  const int64_t now = rpc_now_ms();
  const bool is_due = now >= r->next;
  if (r->fd < 0 && !is_due) return;
  bool good = r->fd >= 0 || log_in(r);
  if (good && wants && !r->offers) good = offer(r);
  else if (good && r->offers && is_due) good = check(r);
  else if (good && is_due) json_decref(ask(r, json_pack("[i]", 1)));
  else if (good) return;
  r->next = rpc_now_ms() + PERIOD_MS;
  if (!good) {
    rpc_register_finish(r);
    if (!r->complained)
      rpc_log("heddle %s: the tracker at %s:%u does not answer; trying again", r->command, r->host, r->tracker_port);
  } else if (r->complained) {
    rpc_log("heddle %s: registered at the tracker %s:%u", r->command, r->host, r->tracker_port);
  }
  r->complained = !good;
}

void rpc_register_used(rpc_register *r) {
  r->offers = false;
}
