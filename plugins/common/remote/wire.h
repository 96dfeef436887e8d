/* The messages of Heddle's remote protocol (docs/remote-protocol.md), for both ends: frames, a reader of a bounded buffer, and
 * a growing buffer. All integers are little-endian. Nothing that is read is trusted: a reader that meets wrong bytes is bad
 * from then on and gives zeros, and no size is believed before its bytes were seen. Any thread. */
#ifndef HEDDLE_PLUGINS_COMMON_REMOTE_WIRE_H
#define HEDDLE_PLUGINS_COMMON_REMOTE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/plugin.h"
#include "plugins/common/bytes.h"

#define WIRE_MAGIC UINT64_C(0x31304d52454c4448) /* "HDLERM01" */
/* The bit of an event's number: events are numbered by the client, everything else by the server. */
#define WIRE_EVENT (UINT64_C(1) << 63)
/* FREE of this number: all constants that were sent. */
#define WIRE_ALL_BLOBS UINT64_MAX
enum { WIRE_MAJOR = 1, WIRE_MINOR = 4 };

/* Kinds of frames. Numbers never change. */
enum {
  WIRE_HELLO = 1,
  WIRE_ALIVE = 2,
  WIRE_RESULT = 3, /* of a request; id is the request's */
  WIRE_DONE = 4,   /* of work; id is the stream's */
  WIRE_BLOB = 5,
  WIRE_FREE = 6,
  WIRE_TUNNEL = 7, /* in place of the first HELLO: DATA follow; since 1.2 */
  WIRE_DATA = 8,
  /* requests: each is answered by one RESULT */
  WIRE_OPEN = 16,
  WIRE_CLOSE = 17,
  WIRE_MEMORY_NOW = 18,
  WIRE_ALLOC = 19,
  WIRE_STREAM = 20,
  WIRE_QUERY = 21,
  WIRE_PARTITION = 22,
  WIRE_LIST = 23,
  WIRE_PREPARE = 24,
  WIRE_BIND = 25,
  WIRE_GRAPH = 26,
  WIRE_LAYOUT_BYTES = 27,
  WIRE_LAYOUT_PACK = 28,
  WIRE_LAYOUT_NAME = 29,
  WIRE_RESIZE = 30, /* since 1.1; without a RESULT where the id is 0, since 1.3 */
  WIRE_LAST_REQUEST = WIRE_RESIZE,
  /* work of a stream, whose number is the id */
  WIRE_WRITE = 48,
  WIRE_READ = 49,
  WIRE_COPY = 50,
  WIRE_FILL = 51,
  WIRE_RUN = 52,
  WIRE_RECORD = 53,
  WIRE_WAIT = 54,
  WIRE_REPLAY = 55,
  WIRE_MARK = 56,
  WIRE_RESUME = 57,
  WIRE_LAST_WORK = WIRE_RESUME
};

/* A frame begins with these 16 bytes: bytes of the body (u64), kind (u32), id (u32). */
enum { WIRE_HEAD = 16 };
typedef struct wire_head {
  uint64_t bytes;
  uint32_t kind;
  uint32_t id;
} wire_head;

/* Limits that both ends check. */
enum {
  WIRE_MOST_HELLO = 1 << 20,
  WIRE_MOST_DEVICES = 256,
  WIRE_MOST_NODES = 1 << 16,
  WIRE_MOST_VALUES = 1 << 18,
  WIRE_MOST_OPERANDS = 1 << 16,
  WIRE_MOST_ATTRS = 256,
  WIRE_MOST_DIMS = 32,
  WIRE_MOST_NAME = 1 << 16,
  WIRE_MOST_OFFERS = 64,
  WIRE_MOST_STEPS = 1 << 16
};

/* ---- writing */

void wire_put_text(byte_buffer *b, const char *text); /* length and bytes; NULL as "" */

/* A frame: begin leaves room for the head in an empty buffer, which end fills in with the bytes that follow. */
void wire_begin(byte_buffer *b);
void wire_end(byte_buffer *b, uint32_t kind, uint32_t id, uint64_t more);
void wire_head_put(uint8_t out[WIRE_HEAD], const wire_head *head);

/* ---- reading */

wire_head wire_head_take(const uint8_t in[WIRE_HEAD]);
/* A number of things that take at least least bytes each; at most most. */
uint32_t wire_take_count(byte_reader *r, uint32_t most, size_t least);
/* A text of at most room - 1 bytes into out, terminated; one with a zero in it is bad. */
void wire_take_text(byte_reader *r, char *out, size_t room);
/* Whether all was read, and nothing was wrong. */
bool wire_is_done(const byte_reader *r);

/* A status with its error: i32, i32, text. An unknown status is bad. */
void wire_put_error(byte_buffer *b, heddle_status status, const heddle_error *err);
heddle_status wire_take_error(byte_reader *r, heddle_error *err);

#endif
