/* The group "calls": what the functions on the path of a run may not do: op.run allocates nothing, and none of those that
 * do not block waits for work on the device. A device that waits for fences is held, so that a call that waits is seen
 * without doubt; on others, the call is made behind work that takes long (calls_behind.c). */
#include "conformance/calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "conformance/kit_side.h"

/* ---- the calls */

static heddle_status call_run(kit *k, calls_set *c) {
  return k->t.op.run(c->launch, &k->err);
}

static heddle_status call_h2d(kit *k, calls_set *c) {
  return k->t.copy.h2d(c->stream, c->x, 0, c->page.buffer, 0, CALLS_BYTES, &k->err);
}

static heddle_status call_d2h(kit *k, calls_set *c) {
  return k->t.copy.d2h(c->stream, c->page.buffer, 0, c->x, 0, CALLS_BYTES, &k->err);
}

static heddle_status call_d2d(kit *k, calls_set *c) {
  return k->t.copy.d2d(c->stream, c->y, 0, c->x, 0, CALLS_BYTES, &k->err);
}

static heddle_status call_fill(kit *k, calls_set *c) {
  return k->t.copy.fill(c->stream, c->x, 0, CALLS_BYTES, 0, &k->err);
}

static heddle_status call_submit(kit *k, calls_set *c) {
  heddle_status status = call_fill(k, c);
  return status != HEDDLE_OK ? status : k->t.stream.submit(c->stream, &k->err);
}

static heddle_status call_signal(kit *k, calls_set *c) {
  return k->t.fence.signal(c->stream, c->fence, ++c->value, &k->err);
}

static heddle_status call_record(kit *k, calls_set *c) {
  return k->t.event.record(c->event, c->stream, &k->err);
}

/* Another stream waits for this one. */
static heddle_status call_wait(kit *k, calls_set *c) {
  heddle_status status = k->t.event.record(c->event, c->stream, &k->err);
  if (status == HEDDLE_OK) status = k->t.stream.submit(c->stream, &k->err);
  return status != HEDDLE_OK ? status : k->t.event.wait(c->other, c->event, &k->err);
}

static heddle_status call_health(kit *k, calls_set *c) {
  (void)c;
  return k->t.device.health(k->dev, &k->err);
}

/* ---- what they need */

static void open_set(kit *k, calls_set *c, bool launches) {
  *c = (calls_set){.stream = kit_stream(k, k->dev),
                   .other = kit_stream(k, k->dev),
                   .x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, CALLS_BYTES),
                   .y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, CALLS_BYTES)};
  if (!kit_inline(k)) {
    c->page = kit_pinned_new(k, k->dev, CALLS_BYTES);
    if (c->page.at != NULL) memset(c->page.at, 0, CALLS_BYTES);
    kit_pinned_flush(k, &c->page);
    c->fence = kit_fence(k);
    kit_ok(k, k->t.event.create(k->dev, &c->event, &k->err), "event.create");
  }
  kit_fill(k, c->stream, c->x, 0, CALLS_BYTES, 0);
  kit_sync(k, c->stream);
  if (!launches) return;
  c->any = op_any_prepare(k);
  c->launch = op_any_bind(k, c->any, c->stream);
}

static void close_set(kit *k, calls_set *c) {
  kit_sync(k, c->stream);
  kit_sync(k, c->other);
  if (c->launch != NULL) {
    k->t.op.launch_free(c->launch);
    op_any_free(k, c->any);
  }
  if (!kit_inline(k)) {
    k->t.event.free(c->event);
    kit_pinned_free(k, &c->page);
    kit_fence_free(k, c->fence);
  }
  kit_free(k, k->dev, c->x);
  kit_free(k, k->dev, c->y);
  k->t.stream.close(c->stream);
  k->t.stream.close(c->other);
}

/* ---- run allocates nothing */

enum { AT_ONCE = 64 };

static void run_counted(kit *k, calls_set *c, const char *when) {
  const uint64_t before = kit_heap_calls();
  kit_ok(k, k->t.op.run(c->launch, &k->err), "op.run");
  const uint64_t calls = kit_heap_calls() - before;
  if (calls != 0)
    kit_fail(k, "op.run called host.alloc %llu times %s; it allocates nothing", (unsigned long long)calls, when);
}

static void run_allocates(kit *k) {
  calls_set c;
  open_set(k, &c, true);
  run_counted(k, &c, "the first time");
  op_sync(k, c.stream);
  for (uint32_t i = 0; i < AT_ONCE; i++) {
    run_counted(k, &c, "in a stream whose work is done");
    kit_sync(k, c.stream);
  }
  for (uint32_t i = 0; i < AT_ONCE; i++) run_counted(k, &c, "behind at most 64 launches that were pending");
  close_set(k, &c);
}

/* ---- calls that do not block */

/* Lets the stream go when the calls have not returned in time. */
typedef struct guard {
  kit *k;
  heddle_pfence fence;
  atomic_bool returned, released;
} guard;

static void *watch(void *arg) {
  guard *g = arg;
  const uint64_t end = kit_now_ms() + kit_patience_ms(g->k, CALLS_HELD_MS);
  while (!atomic_load(&g->returned) && kit_now_ms() < end) kit_sleep_ms(2);
  if (atomic_load(&g->returned)) return NULL;
  atomic_store(&g->released, true);
  kit_release(g->k, g->fence);
  return NULL;
}

/* A call of the row that ends with the one under test has returned. */
static void came_back(kit *k, const guard *g, heddle_status status, const char *name) {
  if (atomic_load(&g->released))
    kit_fail(k, "%s did not return while the stream was held, but only when the kit let the stream go after %g s", name,
             (double)kit_patience_ms(k, CALLS_HELD_MS) / 1000);
  kit_ok(k, status, name);
}

static void while_held(kit *k, calls_set *c, const calls_what *what) {
  pthread_t thread;
  guard g = {.k = k, .fence = kit_fence(k)};
  if (pthread_create(&thread, NULL, watch, &g) != 0) kit_skip(k, "the kit could not make a thread");
  came_back(k, &g, k->t.fence.wait(c->stream, g.fence, 1, &k->err), "fence.wait");
  came_back(k, &g, k->t.stream.submit(c->stream, &k->err), "stream.submit");
  came_back(k, &g, what->call(k, c), what->name);
  atomic_store(&g.returned, true);
  pthread_join(thread, NULL);
  kit_release(k, g.fence);
  kit_sync(k, c->stream);
  kit_fence_free(k, g.fence);
}

/* Whether the stream can be held: the device may answer that it cannot. */
static bool waits(kit *k, const calls_set *c) {
  if (!kit_can_hold(k)) return false;
  heddle_pfence fence = kit_fence(k);
  kit_release(k, fence);
  const heddle_status status = k->t.fence.wait(c->stream, fence, 1, &k->err);
  if (status != HEDDLE_EUNSUPPORTED) kit_ok(k, status, "fence.wait");
  kit_sync(k, c->stream);
  kit_fence_free(k, fence);
  return status == HEDDLE_OK;
}

static void returns(kit *k, const char *name, heddle_status (*call)(kit *k, calls_set *c)) {
  const calls_what what = {name, call, call == call_d2d};
  calls_set c;
  open_set(k, &c, call == call_run);
  kit_ok(k, call(k, &c), name); /* what the first call of its kind sets up is done */
  op_sync(k, c.stream);
  if (waits(k, &c)) while_held(k, &c, &what);
  else calls_behind(k, &c, &what);
  close_set(k, &c);
}

#define RETURNS(word, text) \
  static void returns_##word(kit *k) { \
    returns(k, text, call_##word); \
  }
RETURNS(run, "op.run")
RETURNS(h2d, "copy.h2d")
RETURNS(d2h, "copy.d2h")
RETURNS(d2d, "copy.d2d")
RETURNS(fill, "copy.fill")
RETURNS(submit, "stream.submit")
RETURNS(signal, "fence.signal")
RETURNS(record, "event.record")
RETURNS(wait, "event.wait")
RETURNS(health, "device.health")

#define CASE(word, text) \
  { \
    "calls/" #word "-returns", text " returns before the work ahead of it ends", KIT_STAGE_DEVICE, KIT_NOT_INLINE, 30, \
        returns_##word, NULL \
  }

KIT_GROUP(kit_calls, "calls",
          {"calls/run-allocates", "op.run allocates nothing", KIT_STAGE_DEVICE, 0, 0, run_allocates, NULL},
          CASE(run, "op.run"), CASE(h2d, "copy.h2d"), CASE(d2h, "copy.d2h"), CASE(d2d, "copy.d2d"),
          CASE(fill, "copy.fill"), CASE(submit, "stream.submit"), CASE(signal, "fence.signal"),
          CASE(record, "event.record"), CASE(wait, "event.wait"), CASE(health, "device.health"));
