/* Frames and the parts that messages consist of. */
#include "plugins/common/remote/wire.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/perror.h"

/* ---- writing */

static bool has_room(wire_buffer *b, size_t bytes) {
  if (b->failed) return false;
  if (bytes <= b->room - b->used) return true;
  size_t room = b->room > 0 ? b->room : 256;
  while (room - b->used < bytes && room <= SIZE_MAX / 4) room *= 2;
  uint8_t *data = room - b->used >= bytes ? realloc(b->data, room) : NULL;
  b->failed = data == NULL;
  if (b->failed) return false;
  b->data = data;
  b->room = room;
  return true;
}

void wire_put(wire_buffer *b, const void *data, size_t bytes) {
  if (bytes == 0 || !has_room(b, bytes)) return;
  memcpy(b->data + b->used, data, bytes);
  b->used += bytes;
}

static void place(uint8_t *to, uint64_t n, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(n >> 8 * i);
}

void wire_put_u32(wire_buffer *b, uint32_t n) {
  uint8_t bytes[4];
  place(bytes, n, 4);
  wire_put(b, bytes, sizeof bytes);
}

void wire_put_u64(wire_buffer *b, uint64_t n) {
  uint8_t bytes[8];
  place(bytes, n, 8);
  wire_put(b, bytes, sizeof bytes);
}

void wire_put_text(wire_buffer *b, const char *text) {
  const size_t n = text != NULL ? strlen(text) : 0;
  wire_put_u32(b, (uint32_t)n);
  wire_put(b, text, n);
}

void wire_finish(wire_buffer *b) {
  free(b->data);
  *b = (wire_buffer){0};
}

void wire_head_put(uint8_t out[WIRE_HEAD], const wire_head *head) {
  place(out, head->bytes, 8);
  place(out + 8, head->kind, 4);
  place(out + 12, head->id, 4);
}

void wire_begin(wire_buffer *b) {
  static const uint8_t nothing[WIRE_HEAD];
  wire_put(b, nothing, sizeof nothing);
}

void wire_end(wire_buffer *b, uint32_t kind, uint32_t id, uint64_t more) {
  if (b->failed) return;
  wire_head_put(b->data, &(wire_head){.bytes = b->used - WIRE_HEAD + more, .kind = kind, .id = id});
}

/* ---- reading */

static uint64_t number(const uint8_t *at, int bytes) {
  uint64_t n = 0;
  for (int i = 0; i < bytes; i++) n |= (uint64_t)at[i] << 8 * i;
  return n;
}

wire_head wire_head_take(const uint8_t in[WIRE_HEAD]) {
  return (wire_head){.bytes = number(in, 8), .kind = (uint32_t)number(in + 8, 4), .id = (uint32_t)number(in + 12, 4)};
}

const uint8_t *wire_take(wire_reader *r, uint64_t bytes) {
  if (r->bad || bytes > r->left) {
    r->bad = true;
    return NULL;
  }
  const uint8_t *at = r->at;
  if (bytes > 0) r->at += bytes;
  r->left -= (size_t)bytes;
  return at;
}

uint32_t wire_take_u32(wire_reader *r) {
  const uint8_t *at = wire_take(r, 4);
  return at != NULL ? (uint32_t)number(at, 4) : 0;
}

uint64_t wire_take_u64(wire_reader *r) {
  const uint8_t *at = wire_take(r, 8);
  return at != NULL ? number(at, 8) : 0;
}

uint32_t wire_take_count(wire_reader *r, uint32_t most, size_t least) {
  const uint32_t n = wire_take_u32(r);
  if (r->bad || n > most || n > r->left / (least > 0 ? least : 1)) {
    r->bad = true;
    return 0;
  }
  return n;
}

void wire_take_text(wire_reader *r, char *out, size_t room) {
  const uint32_t n = wire_take_u32(r);
  out[0] = '\0';
  if (r->bad || n >= room) {
    r->bad = true;
    return;
  }
  const uint8_t *at = wire_take(r, n);
  if (at == NULL || (n > 0 && memchr(at, 0, n) != NULL)) {
    r->bad = true;
    return;
  }
  if (n > 0) memcpy(out, at, n);
  out[n] = '\0';
}

bool wire_is_done(const wire_reader *r) {
  return !r->bad && r->left == 0;
}

/* ---- errors */

void wire_put_error(wire_buffer *b, heddle_status status, const heddle_error *err) {
  wire_put_u32(b, (uint32_t)status);
  wire_put_u32(b, status != HEDDLE_OK ? (uint32_t)err->api_code : 0);
  wire_put_text(b, status != HEDDLE_OK ? err->text : "");
}

heddle_status wire_take_error(wire_reader *r, heddle_error *err) {
  char text[sizeof err->text];
  const uint32_t status = wire_take_u32(r), code = wire_take_u32(r);
  wire_take_text(r, text, sizeof text);
  if (r->bad || status >= HEDDLE_STATUS_COUNT) {
    r->bad = true;
    return p_fail(err, HEDDLE_EFORMAT, 0, "an answer of the server is malformed");
  }
  if (status != HEDDLE_OK) (void)p_fail(err, (heddle_status)status, (int32_t)code, "%s", text);
  return (heddle_status)status;
}
