/* The case "health/lost": a device that says that it is lost stays so until it is opened again. The kit cannot lose a
 * device by itself: the case is for plugins that lose one at work, or that have a setting for it (--set). */
#include "conformance/health.h"

#include <string.h>

enum { BYTES = 4096, ROUNDS = 16 };

typedef struct used {
  heddle_pstream *stream, *made;
  heddle_pbuffer *x, *y, *more;
  char bytes[BYTES];
} used;

static heddle_status call_alloc(kit *k, used *u) {
  const heddle_pmemory_desc desc = {.struct_size = sizeof desc, .bytes = BYTES, .align = 64};
  return k->t.memory.alloc(k->dev, &desc, &u->more, &k->err);
}

static heddle_status call_create(kit *k, used *u) {
  return k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &u->made, &k->err);
}

static heddle_status call_write(kit *k, used *u) {
  return k->t.copy.write(u->stream, u->x, 0, u->bytes, BYTES, &k->err);
}

static heddle_status call_d2d(kit *k, used *u) {
  return k->t.copy.d2d(u->stream, u->y, 0, u->x, 0, BYTES, &k->err);
}

static heddle_status call_fill(kit *k, used *u) {
  return k->t.copy.fill(u->stream, u->x, 0, BYTES, 7, &k->err);
}

static heddle_status call_read(kit *k, used *u) {
  return k->t.copy.read(u->stream, u->bytes, u->y, 0, BYTES, &k->err);
}

static heddle_status call_sync(kit *k, used *u) {
  return k->t.stream.sync(u->stream, kit_patience_ms(k, 10000) * 1000000, &k->err);
}

static const struct {
  const char *name;
  heddle_status (*call)(kit *k, used *u);
} calls[] = {{"memory.alloc", call_alloc}, {"stream.create", call_create}, {"copy.write", call_write},
             {"copy.d2d", call_d2d},       {"copy.fill", call_fill},       {"copy.read", call_read},
             {"stream.sync", call_sync}};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

static void give_back(kit *k, used *u) {
  k->t.memory.free(k->dev, u->more);
  k->t.stream.close(u->made);
  u->more = NULL;
  u->made = NULL;
}

/* The name of the first call that says that the device is lost; NULL: none does. */
static const char *work_until_lost(kit *k, used *u) {
  for (uint32_t round = 0; round < ROUNDS; round++) {
    for (uint32_t i = 0; i < N_CALLS; i++) {
      heddle_status status = calls[i].call(k, u);
      if (status == HEDDLE_EDEVICE) return calls[i].name;
      kit_ok(k, status, calls[i].name);
    }
    give_back(k, u);
  }
  return NULL;
}

void kit_health_lost(kit *k) {
  used u = {.stream = kit_stream(k, k->dev),
            .x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES),
            .y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES)};
  char first[sizeof k->err.text];
  const char *lost = work_until_lost(k, &u);
  if (lost != NULL) {
    give_back(k, &u);
    heddle_status status = k->t.device.health(k->dev, &k->err);
    if (status != HEDDLE_EDEVICE)
      kit_fail(k, "%s said that the device is lost, and device.health answers %d: it is lost until it is opened again",
               lost, (int)status);
    if (kit_faults(k) > 1)
      kit_fail(k, "host.device_fault was called %u times for one loss of the device", (unsigned)kit_faults(k));
    if (kit_faults(k) == 1 && kit_fault_cookie(k) != k->index + 1)
      kit_fail(k, "host.device_fault was called with the cookie %llu, and the device was opened with %u",
               (unsigned long long)kit_fault_cookie(k), (unsigned)k->index + 1);
    k->err.text[sizeof k->err.text - 1] = '\0';
    memcpy(first, k->err.text, sizeof first);
    for (uint32_t i = 0; i < N_CALLS; i++) {
      status = calls[i].call(k, &u);
      if (status != HEDDLE_EDEVICE)
        kit_fail(k,
                 "%s answers %d after the device was lost; every call answers HEDDLE_EDEVICE until it is opened again",
                 calls[i].name, (int)status);
      k->err.text[sizeof k->err.text - 1] = '\0';
      if (strstr(k->err.text, first) == NULL)
        kit_fail(k, "%s after the device was lost says \"%.300s\"; the first words were \"%.300s\"", calls[i].name,
                 k->err.text, first);
    }
    status = k->t.device.idle(k->dev, kit_patience_ms(k, 10000) * 1000000, &k->err);
    if (status != HEDDLE_EDEVICE)
      kit_fail(k, "device.idle of a lost device answers %d, not HEDDLE_EDEVICE", (int)status);
  }
  k->t.stream.close(u.stream);
  kit_free(k, k->dev, u.x);
  kit_free(k, k->dev, u.y);
  kit_close_all(k);
  if (lost == NULL)
    kit_skip(k, "the device was not lost at work; a setting that loses it makes the case go on (--set)");
}
