/* The group "health": a device that works reports it, idle means that nothing is being touched, and what was closed can
 * be opened again. */
#include "conformance/health.h"

#include <string.h>

#include "conformance/kit_side.h"

enum { BYTES = 65536 };
#define LONG_NS (kit_patience_ms(k, 20000) * 1000000)

static void live(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health of a device just opened");
  kit_ok(k, k->t.device.health(k->dev, NULL), "device.health without a heddle_error");
  kit_busy *work = kit_busy_put(k, k->dev, s);
  kit_submit(k, s);
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health of a busy device");
  kit_sync(k, s);
  kit_busy_free(k, work);
  k->t.stream.close(s);
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health after work");
  if (kit_faults(k) != 0) kit_fail(k, "host.device_fault was called, and the device answers that it is well");
}

static void idle_at_once(kit *k) {
  kit_ok(k, k->t.device.idle(k->dev, 0, &k->err), "device.idle of a device just opened, without time");
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_ok(k, k->t.device.idle(k->dev, UINT64_MAX, &k->err), "device.idle of a device without work, without limit");
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_put_pattern(k, s, x, 0, BYTES, 1);
  kit_ok(k, k->t.device.idle(k->dev, LONG_NS, &k->err), "device.idle after work");
  kit_ok(k, k->t.stream.query(s, &k->err), "stream.query after device.idle");
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
}

/* When idle has succeeded, the bytes of all streams are in the host's memory. */
static void idle_means_done(kit *k) {
  enum { N = 4 };
  heddle_pstream *all[N];
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_pinned pages[N];
  for (uint32_t i = 0; i < N; i++) all[i] = kit_stream(k, k->dev), pages[i] = kit_pinned_new(k, k->dev, BYTES);
  for (uint32_t round = 1; round <= 3; round++) {
    kit_put_pattern(k, all[0], x, 0, BYTES, round);
    kit_busy *work = kit_busy_put(k, k->dev, all[1]);
    for (uint32_t i = 0; i < N; i++) {
      kit_d2h(k, all[i], pages[i].buffer, 0, x, 0, BYTES);
      kit_submit(k, all[i]);
    }
    kit_ok(k, k->t.device.idle(k->dev, LONG_NS, &k->err), "device.idle over submitted work");
    for (uint32_t i = 0; i < N; i++) {
      kit_pinned_invalidate(k, &pages[i]);
      kit_same(k, pages[i].at, BYTES, round, "what d2h had brought when device.idle said that all is done");
    }
    for (uint32_t i = 0; i < N; i++) kit_ok(k, k->t.stream.query(all[i], &k->err), "stream.query after device.idle");
    for (uint32_t i = 0; i < N; i++) kit_sync(k, all[i]);
    kit_busy_free(k, work);
  }
  for (uint32_t i = 0; i < N; i++) k->t.stream.close(all[i]), kit_pinned_free(k, &pages[i]);
  kit_free(k, k->dev, x);
}

static void idle_short(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_busy *work = kit_busy_put(k, k->dev, s);
  kit_submit(k, s);
  heddle_status status = k->t.device.idle(k->dev, 0, &k->err);
  if (status != HEDDLE_OK) kit_fails(k, status, HEDDLE_ETIMEOUT, HEDDLE_ETIMEOUT, "device.idle without time");
  kit_ok(k, k->t.device.idle(k->dev, LONG_NS, &k->err), "device.idle after one whose time had passed");
  kit_sync(k, s);
  kit_busy_free(k, work);
  k->t.stream.close(s);
}

/* A device is closed while its work is under way (its objects were freed by the host, as close demands). */
static void close_after_busy(kit *k) {
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_busy *work = kit_busy_put(k, k->dev, s);
  kit_submit(k, s);
  k->t.stream.close(s);
  kit_ok(k, k->t.device.idle(k->dev, LONG_NS, &k->err), "device.idle");
  kit_busy_free(k, work);
  kit_close(k, k->dev);
}

static void works(kit *k, heddle_pdevice *dev, uint32_t seed) {
  heddle_pstream *s = kit_stream(k, dev);
  heddle_pbuffer *x = kit_buffer(k, dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_put_pattern(k, s, x, 0, BYTES, seed);
  kit_holds(k, s, x, 0, BYTES, seed, "bytes of a device opened again");
  kit_ok(k, k->t.device.health(dev, &k->err), "device.health of a device opened again");
  kit_free(k, dev, x);
  k->t.stream.close(s);
}

static void open_again(kit *k) {
  works(k, k->dev, 1);
  kit_close(k, k->dev);
  for (uint32_t i = 0; i < 3; i++) {
    heddle_pdevice *dev = kit_open(k, k->index);
    works(k, dev, 2 + i);
    kit_close(k, dev);
  }
}

static void instance_again(kit *k) {
  works(k, k->dev, 1);
  kit_close_all(k);
  for (uint32_t i = 0; i < 2; i++) {
    heddle_pinstance *self = NULL;
    kit_ok(k, k->root.open_instance(&k->host, &self, &k->err), "open_instance after all was closed");
    k->instance = self;
    heddle_pdevice *dev = kit_open(k, k->index);
    works(k, dev, 5 + i);
    kit_close(k, dev);
    k->root.close_instance(self);
    k->instance = NULL;
  }
}

/* A second handle of the same device is independent of the first, or there is none. */
static void open_twice(kit *k) {
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 99};
  heddle_pdevice *second = NULL;
  heddle_status status = k->t.device.open(k->instance, k->index, &options, &second, &k->err);
  if (status != HEDDLE_OK) {
    kit_fails(k, status, HEDDLE_EBUSY, HEDDLE_EBUSY, "device.open of a device that is open");
    works(k, k->dev, 1);
    return;
  }
  if (second == k->dev) kit_fail(k, "device.open of a device that is open gave the same handle");
  works(k, second, 2);
  works(k, k->dev, 3);
  kit_close(k, second);
  works(k, k->dev, 4);
}

static void closed_null(kit *k) {
  k->t.device.close(NULL);
  works(k, k->dev, 1);
}

/* Work with many completions, closed as soon as it is done: what would tell the host of them later finds no host. */
static void quiet_when_closed(kit *k) {
  enum { SIGNALS = 24, LATE_MS = 150 };
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_put_pattern(k, s, x, 0, BYTES, 1);
  for (uint32_t i = 0; i < SIGNALS && !kit_inline(k); i++)
    kit_ok(k, k->t.fence.signal(s, kit_fence(k), 1, &k->err), "fence.signal");
  kit_sync(k, s);
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
  kit_close_all(k);
  atomic_store(&k->side->closed, true);
  kit_sleep_ms(LATE_MS);
  const char *late = atomic_load(&k->side->late_call);
  atomic_store(&k->side->closed, false);
  if (late != NULL) kit_fail(k, "host.%s was called after close_instance had returned", late);
}

#define ON_DEVICE(name, promise, flags, run) \
  { "health/" name, promise, KIT_STAGE_DEVICE, flags, 60, run, NULL }

KIT_GROUP(kit_health, "health", ON_DEVICE("live", "health is HEDDLE_OK of a device that works", 0, live),
          ON_DEVICE("idle-empty", "idle of a device without work returns at once", 0, idle_at_once),
          ON_DEVICE("idle-done", "after idle the work of all streams is done", 0, idle_means_done),
          ON_DEVICE("idle-short", "idle is HEDDLE_ETIMEOUT when its time is over, and harms no work", 0, idle_short),
          ON_DEVICE("close-worked", "a device that has worked is closed", 0, close_after_busy),
          ON_DEVICE("open-again", "a device that was closed is opened again", 0, open_again),
          ON_DEVICE("instance-again", "an instance that was closed is opened again", 0, instance_again),
          ON_DEVICE("open-twice", "a device opened twice is two handles, or HEDDLE_EBUSY", 0, open_twice),
          ON_DEVICE("close-null", "close takes NULL", 0, closed_null),
          ON_DEVICE("close-quiet", "a closed instance calls the host no more", 0, quiet_when_closed),
          ON_DEVICE("lost", "a lost device answers HEDDLE_EDEVICE until it is opened again", KIT_LOSES,
                    kit_health_lost),
          ON_DEVICE("lost-fault", "the loss of a device is reported to the host once", KIT_LOSES,
                    kit_health_lost_fault),
          ON_DEVICE("lost-fences", "fences whose signals are pending when a device is lost fail",
                    KIT_LOSES | KIT_NOT_INLINE, kit_health_lost_fences),
          ON_DEVICE("lost-later", "a signal that a lost device is asked for fails its fence",
                    KIT_LOSES | KIT_NOT_INLINE, kit_health_lost_later),
          ON_DEVICE("lost-words", "every call to a lost device answers with the first text", KIT_LOSES,
                    kit_health_lost_words),
          ON_DEVICE("lost-memory", "what a lost device has can be freed", KIT_LOSES, kit_health_lost_memory),
          ON_DEVICE("lost-again", "a device that was lost can be opened again", KIT_LOSES, kit_health_lost_again),
          ON_DEVICE("reset", "reset ends the work of a device, which is lost, until it is opened again", 0,
                    kit_health_reset));
