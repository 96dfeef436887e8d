/* rpc/session.c: the loop of a session: packets, which request one is, and what is written back. */
#include "rpc/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>

#include "rpc/packet.h"

/* ---- replies */

rpc_outcome rpc_fail(rpc_session *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(s->why, sizeof s->why, format, args);
  va_end(args);
  return RPC_FAILED;
}

rpc_outcome rpc_fail_tvm(rpc_session *s) {
  const char *text = TVMGetLastError();
  return rpc_fail(s, "%s", text != NULL && text[0] != '\0' ? text : "the call failed, and left no text");
}

/* A packet of one sequence. */
static void put_packet(rpc_session *s, uint32_t code, const rpc_value *values, uint32_t count) {
  static const uint8_t zeros[8];
  s->reply.used = 0;
  s->tail = NULL;
  s->tail_bytes = 0;
  byte_put(&s->reply, zeros, sizeof zeros);
  byte_put_u32(&s->reply, code);
  rpc_put_values(&s->reply, s->era, values, count);
}

rpc_outcome rpc_give(rpc_session *s, rpc_value value) {
  put_packet(s, RPC_RETURN, &value, 1);
  return RPC_DONE;
}

rpc_outcome rpc_give_nothing(rpc_session *s) {
  return rpc_give(s, (rpc_value){.kind = RPC_KIND_NULL});
}

static void put_exception(rpc_session *s) {
  rpc_value text = {.kind = RPC_KIND_STRING, .of.text = {s->why, strlen(s->why)}};
  put_packet(s, RPC_EXCEPTION, &text, 1);
}

/* ---- requests that need nothing of TVM's */

/* Clients of both eras take a reply without values; the next request shows the era. */
static rpc_outcome init(rpc_session *s, byte_reader *r) {
  rpc_values values = {0};
  uint64_t version_bytes = byte_take_u64(r);
  if (version_bytes > 64 || byte_take(r, version_bytes) == NULL) return RPC_MALFORMED;
  if (r->left >= 4 && memcmp(r->at, "\0\0\0\0", 4) == 0) {
    (void)byte_take(r, 4);
    if (r->left > 0) return RPC_MALFORMED;
    if (s->is_open) return rpc_fail(s, "the session is open already");
    s->is_open = true;
    put_packet(s, RPC_RETURN, NULL, 0);
    return RPC_DONE;
  }
  if (rpc_read_values(r, s->era, &values) != HEDDLE_OK || r->left > 0) {
    rpc_values_finish(&values);
    return RPC_MALFORMED;
  }
  const bool is_named = values.count > 0 && values.data[0].kind == RPC_KIND_STRING;
  rpc_fail(s, "this server opens no sessions of its own: the constructor '%.100s' is refused",
           is_named ? values.data[0].of.text.data : "");
  rpc_values_finish(&values);
  return RPC_FAILED;
}

/* These read any file of the machine: files of the session are loaded by tvm.rpc.server.load_module. */
static bool is_refused(const char *name) {
  static const char *const names[] = {"module.loadfile_so", "runtime.module.loadfile_so", "runtime.ModuleLoadFromFile"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static rpc_outcome find_global(rpc_session *s, const rpc_values *v) {
  if (v->count != 1 || v->data[0].kind != RPC_KIND_STRING) return RPC_MALFORMED;
  const char *name = v->data[0].of.text.data;
  rpc_held held = {.kind = RPC_HELD_OWN};
  int own = rpc_own_find(name);
  if (own >= 0) held.index = (uint32_t)own;
  else if (!is_refused(name)) {
    held.kind = RPC_HELD_FUNCTION;
    if (TVMFuncGetGlobal(name, &held.pointer) != 0) return rpc_fail_tvm(s);
  }
  uint64_t number = 0;
  if (own >= 0 || held.pointer != NULL) {
    number = rpc_handles_add(&s->handles, held);
    if (number == 0) rpc_drop(s, held);
    if (number == 0) return rpc_fail(s, "the session holds too many handles");
  }
  return rpc_give(s, (rpc_value){.kind = RPC_KIND_HANDLE, .of.handle = number});
}

/* A second value, and more, is of older clients. */
static rpc_outcome free_handle(rpc_session *s, const rpc_values *v) {
  if (v->count < 1 || v->data[0].kind != RPC_KIND_HANDLE) return RPC_MALFORMED;
  rpc_held *held = rpc_handles_find(&s->handles, v->data[0].of.handle);
  if (held == NULL || held->kind == RPC_HELD_MEMORY || held->kind == RPC_HELD_STREAM)
    return rpc_fail(s, "kFreeHandle: the session has no such handle");
  rpc_drop(s, rpc_handles_remove(&s->handles, v->data[0].of.handle));
  return rpc_give_nothing(s);
}

static rpc_outcome of_values(rpc_session *s, uint32_t code, byte_reader *r) {
  rpc_values values;
  heddle_status read = rpc_read_values(r, s->era, &values);
  if (read == HEDDLE_ENOMEM) return rpc_fail(s, "out of memory: a request");
  rpc_outcome out = RPC_MALFORMED;
  if (read == HEDDLE_OK && r->left == 0) out = code == RPC_GLOBAL ? find_global(s, &values) : free_handle(s, &values);
  rpc_values_finish(&values);
  return out;
}

static rpc_outcome answer(rpc_session *s, uint32_t code, byte_reader *r) {
  if (code == RPC_INIT) return init(s, r);
  if (code < RPC_CALL || code > RPC_CURRENT_STREAM || code == RPC_RETURN || code == RPC_EXCEPTION ||
      code == RPC_COPY_ACK)
    return RPC_MALFORMED;
  if (!s->is_open) return rpc_fail(s, "the session is not open: kInitServer comes first");
  if (code == RPC_CALL) return rpc_call(s, r);
  if (code == RPC_GLOBAL || code == RPC_FREE_HANDLE) return of_values(s, code, r);
  return rpc_memory_request(s, code, r);
}

bool rpc_session_answer(rpc_session *s, const uint8_t *packet, size_t bytes) {
  byte_reader r = {packet, bytes, false};
  uint32_t code = byte_take_u32(&r);
  if (r.bad || code == RPC_SHUTDOWN) return false;
  if (s->era == RPC_ERA_UNKNOWN) s->era = rpc_era_of(code, r.at, r.left);
  const bool was_unknown = s->era == RPC_ERA_UNKNOWN;
  if (was_unknown) s->era = RPC_ERA_B;
  rpc_outcome out = answer(s, code, &r);
  if (out == RPC_FAILED) put_exception(s);
  if (was_unknown) s->era = RPC_ERA_UNKNOWN;
  if (out == RPC_MALFORMED) return false;
  if (was_unknown && out == RPC_DONE && code == RPC_SET_DEVICE) { /* a zero, which both eras read */
    rpc_value zero = {.kind = RPC_KIND_INT};
    put_packet(s, RPC_RETURN, &zero, 1);
  }
  if (s->reply.failed) return false;
  uint64_t n = s->reply.used - 8 + s->tail_bytes;
  for (int i = 0; i < 8; i++) s->reply.data[i] = (uint8_t)(n >> 8 * i);
  return true;
}

void rpc_session_finish(rpc_session *s) {
  for (uint32_t i = 0; i < s->handles.count; i++) {
    rpc_held held = s->handles.data[i];
    s->handles.data[i].kind = RPC_HELD_NOTHING;
    rpc_drop(s, held);
  }
  rpc_handles_finish(&s->handles);
  byte_finish(&s->reply);
}

/* ---- the socket */

static bool reply(const rpc_session *s) {
  struct iovec parts[2] = {{s->reply.data, s->reply.used}, {(void *)(uintptr_t)s->tail, s->tail_bytes}};
  return rpc_send_parts(s->socket, parts, 2);
}

int rpc_session_serve(int socket, const rpc_limits *limits) {
  static const uint8_t last[] = {4, 0, 0, 0, 0, 0, 0, 0, RPC_SHUTDOWN, 0, 0, 0};
  rpc_session s = {.socket = socket, .limits = *limits};
  rpc_inbox inbox = {0};
  const uint8_t *packet;
  size_t n;
  rpc_arrival got;
  bool is_broken = false;
  while ((got = rpc_inbox_take(&inbox, socket, limits->packet, &packet, &n)) == RPC_ARRIVED) {
    if (!rpc_session_answer(&s, packet, n)) {
      is_broken = packet[0] != RPC_SHUTDOWN || n != 4;
      break;
    }
    if (!reply(&s)) break;
  }
  if (is_broken || got == RPC_BAD_SIZE || got == RPC_NO_ROOM) {
    struct iovec part = {(void *)(uintptr_t)last, sizeof last};
    is_broken = true;
    (void)rpc_send_parts(socket, &part, 1);
  }
  rpc_session_finish(&s);
  rpc_inbox_finish(&inbox);
  return is_broken;
}
