/* The case "streams/full": a queue that is full refuses what finds no place, at once, and loses nothing of what it took. */
#include "conformance/streams.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "conformance/kit_side.h"

enum { MOST = 6000, WORD = 4, WAIT_MS = 3000 };

typedef struct guard {
  kit *k;
  heddle_pfence fence;
  atomic_bool done, released;
} guard;

/* Lets the stream go where a call waits for a place. */
static void *watch(void *arg) {
  guard *g = arg;
  const uint64_t end = kit_now_ms() + kit_patience_ms(g->k, WAIT_MS);
  while (!atomic_load(&g->done) && kit_now_ms() < end) kit_sleep_ms(2);
  if (atomic_load(&g->done)) return NULL;
  atomic_store(&g->released, true);
  kit_release(g->k, g->fence);
  return NULL;
}

/* Fills a word each, until one finds no place. How many were taken. */
static uint32_t enqueue(kit *k, heddle_pstream *s, heddle_pbuffer *x, const guard *g) {
  const uint64_t end = kit_now_ms() + kit_patience_ms(k, WAIT_MS) / 2; /* a slow device need not take them all */
  for (uint32_t i = 0; i < MOST && (i % 64 != 0 || kit_now_ms() < end); i++) {
    const heddle_status status = k->t.copy.fill(s, x, i * UINT64_C(4), WORD, i + 1, &k->err);
    if (atomic_load(&g->released))
      kit_fail(k,
               "copy.fill number %" PRIu32
               " did not return while the stream was held; a call that finds no place returns "
               "HEDDLE_ELIMIT",
               i + 1);
    if (status == HEDDLE_ELIMIT) return i;
    kit_ok(k, status, "copy.fill, of many in a stream that is held");
  }
  return MOST;
}

void kit_streams_full(kit *k) {
  static uint32_t got[MOST];
  heddle_pstream *s = kit_stream(k, k->dev), *other = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, sizeof got);
  pthread_t thread;
  kit_fill(k, s, x, 0, sizeof got, 0);
  kit_sync(k, s);
  guard g = {.k = k, .fence = kit_hold(k, s)};
  if (pthread_create(&thread, NULL, watch, &g) != 0) kit_skip(k, "the kit could not make a thread");
  memset(got, 0, sizeof got);
  uint32_t n = enqueue(k, s, x, &g);
  atomic_store(&g.done, true);
  pthread_join(thread, NULL);
  kit_ok(k, k->t.stream.sync(other, UINT64_C(5000000000), &k->err), "stream.sync of a stream beside one that is full");
  kit_release(k, g.fence);
  kit_sync(k, s);
  kit_get(k, s, x, 0, got, sizeof got);
  for (uint32_t i = 0; i < MOST; i++) {
    if (i >= n && got[i] == 0) continue;
    if (i < n && got[i] == i + 1) continue;
    if (i < n)
      kit_fail(k, "of %" PRIu32 " fills that a stream took while it was held, number %" PRIu32 " did not run", n,
               i + 1);
    kit_fail(k, "fill number %" PRIu32 ", of which copy.fill said HEDDLE_ELIMIT, ran", i + 1);
  }
  kit_fill(k, s, x, 0, sizeof got, 9);
  kit_words(k, s, x, 0, sizeof got, 9, "what a stream filled after it had been full");
  kit_note(k, "%" PRIu32 " fills found a place in a stream that was held", n);
  kit_fence_free(k, g.fence);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
  k->t.stream.close(other);
}
