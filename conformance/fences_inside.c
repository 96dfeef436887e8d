/* The case "fences/host-inside": while a plugin is inside the host's fence_signal, the calls that do not block go on. A
 * plugin that holds a lock of its own there, and takes it in those calls too, makes them wait for the host. */
#include "conformance/fences.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "conformance/kit_side.h"

enum { STAY_MS = 5000 }; /* how long the host stays in the call, where it is not let go */

/* One case a process. */
static struct { atomic_bool inside, go, alone; /* alone: no other call came while the host stayed */ } at;

static void stay(void *ctx, heddle_pfence fence, uint64_t value) {
  const kit *k = ctx;
  if (!atomic_exchange(&at.inside, true)) {
    uint64_t until = kit_now_ms() + kit_patience_ms(k, STAY_MS);
    while (!atomic_load(&at.go) && kit_now_ms() < until) kit_sleep_ms(1);
    atomic_store(&at.alone, !atomic_load(&at.go));
  }
  k->host.fence_signal(ctx, fence, value);
}

typedef struct signalling {
  kit *k;
  heddle_pstream *stream;
  heddle_pfence fence;
  heddle_status status;
  heddle_error err;
} signalling;

/* On a thread of its own: a plugin may signal from within fence.signal itself. */
static void *signal_one(void *arg) {
  signalling *s = arg;
  s->status = s->k->t.fence.signal(s->stream, s->fence, 1, &s->err);
  return NULL;
}

/* What is for any thread and does not block is called for another stream while the host stays in the signal. */
static void call_others(kit *k, heddle_pstream *beside, heddle_pdevice *dev) {
  int64_t live = 0;
  kit_ok(k, k->t.stream.query(beside, &k->err), "stream.query of another stream inside the host's fence_signal");
  if (atomic_load(&at.alone))
    kit_fail(k,
             "stream.query of another stream waited until the host had returned from fence_signal; it does not block");
  kit_ok(k, k->t.device.health(dev, &k->err), "device.health inside the host's fence_signal");
  kit_ok(k, k->t.device.query(dev, HEDDLE_QUERY_LIVE_OBJECTS, &live, &k->err),
         "device.query inside the host's fence_signal");
  if (atomic_load(&at.alone))
    kit_fail(k, "device.health or query waited until the host had returned from fence_signal; they do not block");
}

void kit_fences_inside(kit *k) {
  heddle_host host = k->host;
  pthread_t thread;
  host.fence_signal = stay;
  kit_close_all(k);
  kit_ok(k, k->root.open_instance(&host, &k->instance, &k->err), "open_instance after all was closed");
  k->dev = kit_open(k, k->index);
  heddle_pstream *stream = kit_stream(k, k->dev), *beside = kit_stream(k, k->dev);
  signalling s = {.k = k, .stream = stream, .fence = kit_fence(k)};
  if (pthread_create(&thread, NULL, signal_one, &s) != 0) kit_skip(k, "the kit itself has no thread");
  uint64_t until = kit_now_ms() + kit_overdue_ms(k, kit_call_number("fence.signal"), KIT_FENCE_MS);
  while (!atomic_load(&at.inside) && kit_now_ms() < until) kit_sleep_ms(1);
  if (!atomic_load(&at.inside)) kit_fail(k, "fence.signal: the host's fence_signal was not called");
  call_others(k, beside, k->dev);
  atomic_store(&at.go, true);
  pthread_join(thread, NULL);
  k->err = s.err;
  kit_ok(k, s.status, "fence.signal");
  kit_reached(k, s.fence, 1, "a signal that the host was slow to take");
  kit_sync(k, stream);
  k->t.stream.close(stream);
  k->t.stream.close(beside);
  kit_close_all(k);
}
