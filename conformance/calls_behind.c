/* A call behind work that takes long, on a device that does not wait for fences. The call waits for the device where it
 * takes a good part of the time of that work, and the work has ended when it returns, each time that it is tried. Nothing
 * else is concluded from times. */
#include "conformance/calls.h"

#include <stdlib.h>

enum { TRIES = 4, LEAST_MS = 60, MOST_COPIES = 4096 };
#define COPY_BYTES (UINT64_C(4) << 20)

typedef struct burden {
  heddle_pbuffer *from, *to;
  uint64_t bytes;
  uint32_t copies;
} burden;

static uint64_t now_us(kit *k) {
  return k->host.now_ns(k->host.ctx) / 1000;
}

/* Puts it into the stream and submits; gives the time that the calls took. */
static uint64_t put(kit *k, heddle_pstream *s, const burden *b) {
  const uint64_t start = now_us(k);
  for (uint32_t i = 0; i < b->copies; i++) kit_d2d(k, s, b->to, 0, b->from, 0, b->bytes);
  kit_submit(k, s);
  return now_us(k) - start;
}

/* Makes the work long enough; gives its time, 0 where no amount is. put_us gets the time of the calls. */
static uint64_t grow(kit *k, heddle_pstream *s, burden *b, uint64_t *put_us) {
  b->copies = 1; /* memory that is touched for the first time takes longer */
  put(k, s, b);
  kit_sync(k, s);
  for (b->copies = 8; b->copies <= MOST_COPIES; b->copies *= 2) {
    const uint64_t start = now_us(k);
    *put_us = put(k, s, b);
    kit_sync(k, s);
    const uint64_t all = now_us(k) - start;
    if (all >= LEAST_MS * 1000) return all;
  }
  return 0;
}

static bool ended(kit *k, heddle_pstream *s) {
  heddle_status status = k->t.stream.query(s, &k->err);
  if (status != HEDDLE_EBUSY) kit_ok(k, status, "stream.query");
  return status == HEDDLE_OK;
}

void calls_behind(kit *k, calls_set *c, const calls_what *what) {
  burden b = {.bytes = COPY_BYTES};
  if (k->desc.max_buffer_bytes != 0 && k->desc.max_buffer_bytes < b.bytes) b.bytes = k->desc.max_buffer_bytes;
  if (k->desc.memory_bytes != 0 && k->desc.memory_bytes / 8 < b.bytes) b.bytes = k->desc.memory_bytes / 8;
  b.from = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, b.bytes);
  b.to = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, b.bytes);
  uint64_t put_us = 0, blocked = 0, at_once = 0, call_us = 0;
  const uint64_t all = grow(k, c->stream, &b, &put_us);
  for (uint32_t i = 0; i < TRIES && all != 0; i++) {
    put_us = put(k, c->stream, &b);
    if (ended(k, c->stream) && put_us > all / 8) { /* its own calls did the work */
      at_once++;
      continue;
    }
    const uint64_t start = now_us(k);
    heddle_status status = what->call(k, c);
    call_us = now_us(k) - start;
    if (call_us > all / 8 && ended(k, c->stream)) blocked++;
    kit_ok(k, status, what->name);
    kit_sync(k, c->stream);
  }
  kit_free(k, k->dev, b.from);
  kit_free(k, k->dev, b.to);
  if (all == 0) kit_skip(k, "the device does not wait for fences, and its copies end too soon to be seen at work");
  if (blocked == TRIES)
    kit_fail(k,
             "%s took %g ms behind work of %g ms, which had ended when it returned, each of %d times: it waits for the "
             "device",
             what->name, (double)call_us / 1000, (double)all / 1000, TRIES);
  if (at_once == TRIES && what->copies)
    kit_fail(k,
             "%s returned only when its bytes had been moved, each of %d times: only an inline device does its work in "
             "the call",
             what->name, TRIES);
  if (at_once == TRIES)
    kit_skip(
        k,
        "the device does not wait for fences, and its copies are done when copy.d2d returns: nothing can be put in "
        "front of %s",
        what->name);
}
