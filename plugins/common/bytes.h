/* Messages as bytes: a growing buffer, and a reader of a bounded one. Integers are little-endian. A buffer without memory is
 * failed from then on, and a reader that meets its end is bad and gives zeros, so that one look at the end is enough. Header
 * only, and of nothing but C's own types, so that every room may include it. Any thread. */
#ifndef HEDDLE_PLUGINS_COMMON_BYTES_H
#define HEDDLE_PLUGINS_COMMON_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- integers */

static inline void byte_place(uint8_t *to, uint64_t n, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(n >> 8 * i);
}

static inline uint64_t byte_number(const uint8_t *at, int bytes) {
  uint64_t n = 0;
  for (int i = 0; i < bytes; i++) n |= (uint64_t)at[i] << 8 * i;
  return n;
}

/* ---- writing. byte_finish frees. */

typedef struct byte_buffer {
  uint8_t *data;
  size_t used, room;
  bool failed; /* memory is out, and nothing more is added */
} byte_buffer;

static inline void byte_put(byte_buffer *b, const void *data, size_t bytes) {
  if (b->failed || bytes == 0) return;
  if (bytes > b->room - b->used) {
    size_t room = b->room > 0 ? b->room : 256;
    while (room - b->used < bytes && room <= SIZE_MAX / 4) room *= 2;
    uint8_t *more = room - b->used >= bytes ? (uint8_t *)realloc(b->data, room) : NULL;
    b->failed = more == NULL;
    if (more == NULL) return;
    b->data = more;
    b->room = room;
  }
  memcpy(b->data + b->used, data, bytes);
  b->used += bytes;
}

static inline void byte_put_u32(byte_buffer *b, uint32_t n) {
  uint8_t bytes[4];
  byte_place(bytes, n, 4);
  byte_put(b, bytes, sizeof bytes);
}

static inline void byte_put_u64(byte_buffer *b, uint64_t n) {
  uint8_t bytes[8];
  byte_place(bytes, n, 8);
  byte_put(b, bytes, sizeof bytes);
}

static inline void byte_finish(byte_buffer *b) {
  free(b->data);
  *b = (byte_buffer){NULL, 0, 0, false};
}

/* ---- reading */

typedef struct byte_reader {
  const uint8_t *at;
  size_t left;
  bool bad;
} byte_reader;

/* NULL: there are fewer, and the reader is bad. */
static inline const uint8_t *byte_take(byte_reader *r, uint64_t bytes) {
  if (r->bad || bytes > r->left) {
    r->bad = true;
    return NULL;
  }
  const uint8_t *at = r->at;
  if (bytes > 0) r->at += bytes;
  r->left -= (size_t)bytes;
  return at;
}

static inline uint32_t byte_take_u32(byte_reader *r) {
  const uint8_t *at = byte_take(r, 4);
  return at != NULL ? (uint32_t)byte_number(at, 4) : 0;
}

static inline uint64_t byte_take_u64(byte_reader *r) {
  const uint8_t *at = byte_take(r, 8);
  return at != NULL ? byte_number(at, 8) : 0;
}

#endif
