/* conformance/device.c: the group "device": opening and closing a device, and what can be asked of an open one. */
#include <stdlib.h>
#include <string.h>

#include "conformance/kit_side.h"

static void open_once(kit *k) {
  if (!kit_stage_device(k)) kit_fail(k, "%s", k->err.text);
  heddle_pstream *stream = NULL;
  heddle_status s = k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &stream, &k->err);
  if (s == HEDDLE_OK) k->t.stream.close(stream);
  if (s != HEDDLE_EUNSUPPORTED) return; /* other cases say what is wrong */
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = 64, .align = 1};
  heddle_pbuffer *buffer = NULL;
  s = k->t.memory.alloc(k->dev, &desc, &buffer, &k->err);
  if (s == HEDDLE_OK) kit_free(k, k->dev, buffer);
  if (s != HEDDLE_EUNSUPPORTED) return;
  kit_text(k, k->err.text, sizeof k->err.text, "the error text of memory.alloc");
  kit_say(KIT_SAYS_REFUSES, k->err.text);
}

/* A device that refuses to make anything (as the template plugin's does) is open, but there is nothing to see. */
static heddle_pstream *stream_or_skip(kit *k, heddle_pdevice *dev) {
  heddle_pstream *stream = NULL;
  heddle_status s = k->t.stream.create(dev, HEDDLE_STREAM_COMPUTE, 0, &stream, &k->err);
  if (s == HEDDLE_EUNSUPPORTED) kit_skip(k, "the device makes no streams: %.500s", k->err.text);
  kit_ok(k, s, "stream.create");
  return stream;
}

static int64_t ask(kit *k, heddle_pdevice *dev, uint32_t key) {
  int64_t n = -1;
  kit_ok(k, k->t.device.query(dev, key, &n, &k->err), "device.query");
  if (n < 0) kit_fail(k, "device.query gave %lld for key %u", (long long)n, (unsigned)key);
  return n;
}

static void nothing_alive(kit *k, heddle_pdevice *dev, const char *when) {
  int64_t buffers = ask(k, dev, HEDDLE_QUERY_LIVE_BUFFERS), bytes = ask(k, dev, HEDDLE_QUERY_LIVE_BYTES),
          objects = ask(k, dev, HEDDLE_QUERY_LIVE_OBJECTS);
  if (buffers != 0 || bytes != 0 || objects != 0)
    kit_fail(k, "%s there are %lld buffers, %lld bytes and %lld objects alive by device.query, and there are none",
             when, (long long)buffers, (long long)bytes, (long long)objects);
}

static void reopen(kit *k) {
  for (int i = 0; i < 6; i++) {
    heddle_pdevice *dev = kit_open(k, k->index);
    nothing_alive(k, dev, "after device.open");
    kit_ok(k, k->t.device.health(dev, &k->err), "device.health");
    kit_close(k, dev);
  }
}

static void second(kit *k) {
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = 77};
  heddle_pdevice *other = NULL;
  heddle_status s = k->t.device.open(k->instance, k->index, &options, &other, &k->err);
  if (s == HEDDLE_EBUSY) {
    kit_fails(k, s, HEDDLE_EBUSY, HEDDLE_EBUSY, "a second device.open");
    kit_note(k, "a device is opened once at a time");
    return;
  }
  kit_ok(k, s, "a second device.open");
  if (other == k->dev) kit_fail(k, "a second device.open gave the same handle, and promised an independent one");
  heddle_pstream *stream = stream_or_skip(k, k->dev);
  nothing_alive(k, other, "on the second handle");
  k->t.device.close(other);
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health after the second handle was closed");
  kit_sync(k, stream);
  k->t.stream.close(stream);
}

static void both(kit *k) {
  uint32_t other = k->index == 0 ? 1 : 0;
  heddle_pdevice *dev = kit_open(k, other);
  kit_ok(k, k->t.device.health(dev, &k->err), "device.health of the other device");
  kit_close(k, dev);
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health after the other device was closed");
}

static void query(kit *k) {
  static const uint32_t unknown[] = {0, 999, UINT32_MAX};
  nothing_alive(k, k->dev, "after device.open");
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    int64_t n = 4711;
    k->err = (heddle_error){0};
    kit_fails(k, k->t.device.query(k->dev, unknown[i], &n, &k->err), HEDDLE_EUNSUPPORTED, HEDDLE_EUNSUPPORTED,
              "device.query of an unknown key");
    if (n != 4711) kit_fail(k, "device.query of an unknown key failed, and changed its out-argument");
  }
}

static void live(kit *k) {
  heddle_pstream *stream = stream_or_skip(k, k->dev);
  if (ask(k, k->dev, HEDDLE_QUERY_LIVE_OBJECTS) != 1)
    kit_fail(k, "a stream is alive, and device.query counts %lld objects",
             (long long)ask(k, k->dev, HEDDLE_QUERY_LIVE_OBJECTS));
  heddle_pbuffer *buffer = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 1000);
  if (ask(k, k->dev, HEDDLE_QUERY_LIVE_BUFFERS) != 1 || ask(k, k->dev, HEDDLE_QUERY_LIVE_BYTES) < 1000)
    kit_fail(k, "a buffer of 1000 bytes is alive, and device.query counts %lld buffers of %lld bytes",
             (long long)ask(k, k->dev, HEDDLE_QUERY_LIVE_BUFFERS), (long long)ask(k, k->dev, HEDDLE_QUERY_LIVE_BYTES));
  kit_free(k, k->dev, buffer);
  k->t.stream.close(stream);
  nothing_alive(k, k->dev, "after everything was freed");
}

static void idle(kit *k) {
  kit_ok(k, k->t.device.idle(k->dev, UINT64_C(5000000000), &k->err), "device.idle of a device without work");
  kit_ok(k, k->t.device.idle(k->dev, UINT64_MAX, &k->err), "device.idle without a limit, of a device without work");
}

static void memory_now(kit *k) {
  uint64_t unused = UINT64_MAX, total = 0;
  if (k->t.device.memory_now == NULL) kit_skip(k, "the plugin has no device.memory_now");
  heddle_status s = k->t.device.memory_now(k->dev, &unused, &total, &k->err);
  if (s == HEDDLE_EUNSUPPORTED) kit_skip(k, "device.memory_now: %.500s", k->err.text);
  kit_ok(k, s, "device.memory_now");
  if (unused > total)
    kit_fail(k, "device.memory_now says that %llu bytes are free, of %llu", (unsigned long long)unused,
             (unsigned long long)total);
}

static void nulls(kit *k) {
  const kit_tables *t = &k->t;
  t->device.close(NULL);
  k->root.close_instance(NULL);
  t->memory.free(k->dev, NULL);
  t->stream.close(NULL);
  if (t->has_event) t->event.free(NULL);
  if (t->has_op) {
    t->op.launch_free(NULL);
    t->op.op_free(NULL);
  }
  if (t->has_module) t->module.unload(NULL);
  if (t->has_capture) t->capture.free(NULL);
  if (t->has_timing) t->timing.free(NULL);
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health after NULLs were freed");
}

static void options(kit *k) {
  struct {
    heddle_pdevice_options options;
    unsigned char more[64];
  } newer = {.options = {.cookie = 5}};
  memset(newer.more, 0xff, sizeof newer.more);
  newer.options.struct_size = sizeof newer;
  heddle_pdevice *dev = NULL;
  if (k->dev != NULL) kit_close(k, k->dev);
  kit_ok(k, k->t.device.open(k->instance, k->index, &newer.options, &dev, &k->err),
         "device.open with the options of a newer host");
  kit_close(k, dev);
}

KIT_GROUP(kit_device, "device",
          {"device/open", "device.open opens every device that device_describe describes", KIT_STAGE_INSTANCE, 0, 30,
           open_once, NULL},
          {"device/reopen", "a device can be opened and closed again and again, and starts empty", KIT_STAGE_INSTANCE,
           KIT_OPENS | KIT_REFUSES, 30, reopen, NULL},
          {"device/second", "opening a device that is open gives a second, independent handle or HEDDLE_EBUSY",
           KIT_STAGE_DEVICE, KIT_REFUSES, 30, second, NULL},
          {"device/both", "devices of one instance are open at the same time", KIT_STAGE_DEVICE,
           KIT_SECOND | KIT_REFUSES, 30, both, NULL},
          {"device/query", "device.query answers its keys, and HEDDLE_EUNSUPPORTED for others", KIT_STAGE_DEVICE,
           KIT_REFUSES, 0, query, NULL},
          {"device/live", "device.query counts what is not yet freed", KIT_STAGE_DEVICE, KIT_REFUSES, 0, live, NULL},
          {"device/idle", "device.idle waits until all work has finished: without work it returns", KIT_STAGE_DEVICE,
           KIT_REFUSES, 0, idle, NULL},
          {"device/memory_now", "device.memory_now gives bytes free and in all", KIT_STAGE_DEVICE, KIT_REFUSES, 0,
           memory_now, NULL},
          {"device/nulls", "functions that free or close take NULL", KIT_STAGE_DEVICE, KIT_REFUSES, 0, nulls, NULL},
          {"device/options", "a newer host's options open the device", KIT_STAGE_DEVICE, KIT_REFUSES, 30, options,
           NULL});
