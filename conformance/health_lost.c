/* The cases "health/lost*" and "health/reset": a device that is lost with signals pending. It stays lost until it is opened
 * again, the host hears of it once, every fence fails, every call answers with the first text, and what it had can be given
 * back. The kit loses a device by its work, where a setting does that (--set), by the hook lose_on_fill
 * (docs/plugin-guide.md), or by device.reset. */
#include "conformance/health.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conformance/kit_side.h"

enum { BYTES = 4096, ROUNDS = 16, LATER = 3 };
#define SOON_MS kit_patience_ms(k, 4000)

typedef struct used {
  heddle_pstream *stream, *held, *made;
  heddle_pbuffer *x, *y, *more;
  heddle_pevent *event;
  heddle_pfence gate;    /* held waits for it; 0: the device does not wait for fences */
  heddle_pfence pending; /* a signal of held */
  heddle_pfence behind;  /* a signal behind the work that loses the device, 0: there is none */
  const char *by;        /* the call that first reported it */
  char first[sizeof((heddle_error *)NULL)->text];
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

static heddle_status call_health(kit *k, used *u) {
  (void)u;
  return k->t.device.health(k->dev, &k->err);
}

static heddle_status call_query(kit *k, used *u) {
  return k->t.stream.query(u->stream, &k->err);
}

static heddle_status call_record(kit *k, used *u) {
  return k->t.event.record(u->event, u->stream, &k->err);
}

typedef struct lost_call {
  const char *name;
  heddle_status (*call)(kit *k, used *u);
} lost_call;

static const lost_call calls[] = {{"memory.alloc", call_alloc},
                                  {"stream.create", call_create},
                                  {"copy.write", call_write},
                                  {"copy.d2d", call_d2d},
                                  {"copy.fill", call_fill},
                                  {"copy.read", call_read},
                                  {"stream.sync", call_sync},
                                  /* those that do not lose a device: */
                                  {"device.health", call_health},
                                  {"stream.query", call_query},
                                  {"event.record", call_record}};
enum { N_CALLS = sizeof calls / sizeof calls[0], N_WORK = 7 };

static bool has_call(const used *u, uint32_t i) {
  return calls[i].call != call_record || u->event != NULL;
}

static void give_back(kit *k, used *u) {
  k->t.memory.free(k->dev, u->more);
  k->t.stream.close(u->made);
  u->more = NULL;
  u->made = NULL;
}

static heddle_status put_signal(kit *k, heddle_pstream *s, heddle_pfence fence) {
  return k->t.fence.signal(s, fence, 1, &k->err);
}

/* ---- the loss */

static void open_used(kit *k, used *u) {
  *u = (used){.stream = kit_stream(k, k->dev),
              .x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES),
              .y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES)};
  if (kit_inline(k)) return;
  u->held = kit_stream(k, k->dev);
  kit_ok(k, k->t.event.create(k->dev, &u->event, &k->err), "event.create");
  u->gate = kit_fence(k);
  if (!kit_can_hold(k) || k->t.fence.wait(u->held, u->gate, 1, &k->err) != HEDDLE_OK) {
    kit_fence_free(k, u->gate);
    u->gate = 0;
    return;
  }
  u->pending = kit_fence(k);
  kit_ok(k, put_signal(k, u->held, u->pending), "fence.signal");
}

static bool says_lost(kit *k, used *u, heddle_status status, const char *name) {
  if (status == HEDDLE_EDEVICE) u->by = name;
  else kit_ok(k, status, name);
  return status == HEDDLE_EDEVICE;
}

static bool work_until_lost(kit *k, used *u) {
  for (uint32_t round = 0; round < ROUNDS; round++) {
    for (uint32_t i = 0; i < N_WORK; i++)
      if (says_lost(k, u, calls[i].call(k, u), calls[i].name)) return true;
    give_back(k, u);
  }
  return false;
}

/* The plugin asked for lose_on_fill: the fill with that word loses it, at the call or when the stream comes to it. */
static void lose_by_hook(kit *k, used *u) {
  const uint64_t start = kit_now_ms();
  if (says_lost(k, u, k->t.copy.fill(u->stream, u->x, 0, BYTES, KIT_LOSE_WORD, &k->err), "copy.fill")) return;
  if (!kit_inline(k)) {
    u->behind = kit_fence(k);
    if (says_lost(k, u, put_signal(k, u->stream, u->behind), "fence.signal")) return;
  }
  if (says_lost(k, u, k->t.stream.submit(u->stream, &k->err), "stream.submit")) return;
  while (kit_now_ms() - start < SOON_MS) {
    if (says_lost(k, u, k->t.device.health(k->dev, &k->err), "device.health")) return;
    kit_sleep_ms(2);
  }
  kit_fail(
      k,
      "the plugin asked for the setting lose_on_fill, and device.health is HEDDLE_OK %g s after a fill with its word",
      (double)SOON_MS / 1000);
}

/* A reset loses the device too. Whether it did; what else a reset may do wrong is health/reset's. */
static bool lose_by_reset(kit *k, used *u) {
  if (k->t.device.reset == NULL) return false;
  if (k->t.device.reset(k->dev, kit_patience_ms(k, 10000) * 1000000, &k->err) != HEDDLE_OK) return false;
  u->by = "device.health";
  return k->t.device.health(k->dev, &k->err) == HEDDLE_EDEVICE;
}

/* Skips the case where nothing loses the device. */
static void lose(kit *k, used *u) {
  open_used(k, u);
  bool lost = work_until_lost(k, u);
  if (!lost && k->side->lose_asked) lose_by_hook(k, u), lost = true;
  if (!lost) lost = lose_by_reset(k, u);
  if (!lost) {
    if (u->gate != 0) kit_release(k, u->gate), kit_sync(k, u->held);
    kit_skip(k,
             "the device was not lost at work; the hook lose_on_fill (docs/plugin-guide.md), a setting that loses it "
             "(--set) or device.reset makes the case go on");
  }
  give_back(k, u);
  k->err.text[sizeof k->err.text - 1] = '\0';
  memcpy(u->first, k->err.text, sizeof u->first);
}

/* A plugin whose stream still waits for the gate would hang in what follows: that is the fault of one case, not of all. */
static heddle_status let_go(kit *k, used *u) {
  if (u->gate != 0) kit_release(k, u->gate);
  return k->t.device.idle(k->dev, kit_patience_ms(k, 10000) * 1000000, &k->err);
}

/* Frees all; the device stays open. */
static void free_used(kit *k, used *u) {
  give_back(k, u); /* of a device that makes objects although it is lost */
  if (u->event != NULL) k->t.event.free(u->event);
  k->t.stream.close(u->stream);
  k->t.stream.close(u->held);
  kit_free(k, k->dev, u->x);
  kit_free(k, k->dev, u->y);
}

static void finish(kit *k, used *u) {
  let_go(k, u);
  free_used(k, u);
  kit_close_all(k);
}

/* ---- what is promised */

/* Health, all calls and idle, in that order: HEDDLE_EDEVICE, until it is opened again. */
void kit_health_lost(kit *k) {
  used u;
  lose(k, &u);
  heddle_status status = k->t.device.health(k->dev, &k->err);
  if (status != HEDDLE_EDEVICE)
    kit_fail(k, "%s said that the device is lost, and device.health answers %d: it is lost until it is opened again",
             u.by, (int)status);
  for (uint32_t i = 0; i < N_CALLS; i++) {
    if (!has_call(&u, i)) continue;
    status = calls[i].call(k, &u);
    if (status != HEDDLE_EDEVICE)
      kit_fail(k, "%s answers %d after the device was lost; every call answers HEDDLE_EDEVICE until it is opened again",
               calls[i].name, (int)status);
  }
  status = k->t.device.idle(k->dev, kit_patience_ms(k, 10000) * 1000000, &k->err);
  if (status != HEDDLE_EDEVICE) kit_fail(k, "device.idle of a lost device answers %d, not HEDDLE_EDEVICE", (int)status);
  finish(k, &u);
}

void kit_health_lost_fault(kit *k) {
  used u;
  lose(k, &u);
  const uint64_t start = kit_now_ms();
  while (kit_faults(k) == 0 && kit_now_ms() - start < SOON_MS) kit_sleep_ms(5);
  if (kit_faults(k) == 0)
    kit_fail(k, "host.device_fault was not called within %g s of the loss of the device", (double)SOON_MS / 1000);
  if (kit_fault_cookie(k) != k->index + 1)
    kit_fail(k, "host.device_fault was called with the cookie %llu, and the device was opened with %u",
             (unsigned long long)kit_fault_cookie(k), (unsigned)k->index + 1);
  for (uint32_t i = 0; i < N_CALLS; i++)
    if (has_call(&u, i)) calls[i].call(k, &u);
  finish(k, &u);
  if (kit_faults(k) != 1)
    kit_fail(k, "host.device_fault was called %u times for one loss of the device", (unsigned)kit_faults(k));
}

/* The fence must have failed; what it is in the text. */
static void has_failed(kit *k, heddle_pfence fence, const char *what) {
  const heddle_status status = kit_fence_wait(k, fence, 1, SOON_MS);
  if (status == HEDDLE_OK)
    kit_fail(k, "%s was signalled, though the device is lost: host.fence_fail is promised", what);
  if (status == HEDDLE_ETIMEOUT)
    kit_fail(k, "%s has not failed %g s after the device was lost: host.fence_fail was not called for it", what,
             (double)SOON_MS / 1000);
}

static void only_once(kit *k, heddle_pfence fence, const char *what) {
  if (kit_fence_signals(k, fence) != 1)
    kit_fail(k, "%s was raised or failed %" PRIu32 " times, for one fence.signal", what, kit_fence_signals(k, fence));
}

static const char held_text[] = "the fence of a signal that was pending when the device was lost";
static const char behind_text[] = "the fence of a signal behind the work that lost the device";

void kit_health_lost_fences(kit *k) {
  used u;
  lose(k, &u);
  if (u.pending == 0 && u.behind == 0)
    kit_skip(k,
             "the device does not wait for fences, and without the hook lose_on_fill no signal is sure to be pending");
  if (u.behind != 0) has_failed(k, u.behind, behind_text);
  if (u.pending != 0) has_failed(k, u.pending, held_text);
  finish(k, &u);
  if (u.behind != 0) only_once(k, u.behind, behind_text);
  if (u.pending != 0) only_once(k, u.pending, held_text);
}

void kit_health_lost_later(kit *k) {
  static const char text[] = "the fence of a signal that was asked for after the loss";
  used u;
  heddle_pfence later[LATER];
  lose(k, &u);
  for (uint32_t i = 0; i < LATER; i++) {
    later[i] = kit_fence(k);
    heddle_status status = put_signal(k, i % 2 == 0 ? u.stream : u.held, later[i]);
    if (status != HEDDLE_OK && status != HEDDLE_EDEVICE)
      kit_fail(k, "fence.signal on a lost device answers %d, not HEDDLE_EDEVICE", (int)status);
  }
  for (uint32_t i = 0; i < LATER; i++) has_failed(k, later[i], text);
  finish(k, &u);
  for (uint32_t i = 0; i < LATER; i++) only_once(k, later[i], text);
}

void kit_health_lost_words(kit *k) {
  used u;
  lose(k, &u);
  if (u.first[0] == '\0') kit_fail(k, "%s said that the device is lost, without a text", u.by);
  for (uint32_t i = 0; i < 2 * N_CALLS; i++) {
    const lost_call *c = &calls[i % N_CALLS];
    if (!has_call(&u, i % N_CALLS) || c->call(k, &u) != HEDDLE_EDEVICE) continue; /* health/lost sees to that */
    k->err.text[sizeof k->err.text - 1] = '\0';
    if (strstr(k->err.text, u.first) == NULL)
      kit_fail(k, "%s after the device was lost says \"%.300s\"; the first text was \"%.300s\"", c->name, k->err.text,
               u.first);
  }
  finish(k, &u);
}

/* What is freed after the device has said that nothing touches memory any more is freed indeed. */
static void frees_all(kit *k, used *u) {
  static const struct {
    uint32_t key;
    const char *name;
  } counts[] = {{HEDDLE_QUERY_LIVE_BUFFERS, "LIVE_BUFFERS"},
                {HEDDLE_QUERY_LIVE_BYTES, "LIVE_BYTES"},
                {HEDDLE_QUERY_LIVE_OBJECTS, "LIVE_OBJECTS"}};
  free_used(k, u);
  for (uint32_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    int64_t n = 0;
    if (k->t.device.query(k->dev, counts[i].key, &n, &k->err) == HEDDLE_OK && n != 0)
      kit_fail(k, "%s is %" PRId64 " when all that a lost device had is freed", counts[i].name, n);
  }
}

void kit_health_lost_memory(kit *k) {
  used u;
  lose(k, &u);
  const bool quiet = let_go(k, &u) == HEDDLE_EDEVICE;
  frees_all(k, &u);
  kit_close_all(k);
  if (quiet && kit_host_blocks(k) != 0)
    kit_fail(k, "%" PRIu64 " blocks of host.alloc are left when a lost device and its instance are closed",
             kit_host_blocks(k));
}

static void opens_again(kit *k) {
  kit_close(k, k->dev);
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = k->index + 1};
  heddle_status status = k->t.device.open(k->instance, k->index, &options, &k->dev, &k->err);
  if (status != HEDDLE_OK)
    kit_fail(k, "device.open after a lost device was closed: %s, with the text \"%.600s\"", kit_status_name(status),
             k->err.text);
  status = k->t.device.health(k->dev, &k->err);
  if (status != HEDDLE_OK)
    kit_fail(k, "device.health of a device opened again after a loss: %s, with the text \"%.600s\"",
             kit_status_name(status), k->err.text);
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  kit_put_pattern(k, s, x, 0, BYTES, 3);
  kit_holds(k, s, x, 0, BYTES, 3, "bytes of a device opened again after a loss");
  kit_free(k, k->dev, x);
  k->t.stream.close(s);
  kit_close_all(k);
}

void kit_health_lost_again(kit *k) {
  used u;
  lose(k, &u);
  let_go(k, &u);
  free_used(k, &u);
  opens_again(k);
}

enum { ROW = 12, ROW_BYTES = 1 << 24 /* at most */ };

/* Copies by turns from two buffers into one page: as long as they run, the page changes. */
typedef struct row {
  heddle_pbuffer *from[2];
  kit_pinned page;
  uint64_t bytes;
} row;

static row put_row(kit *k, used *u) {
  row r = {.bytes = ROW_BYTES};
  while ((k->desc.memory_bytes != 0 && r.bytes > k->desc.memory_bytes / 8) ||
         (k->desc.max_buffer_bytes != 0 && r.bytes > k->desc.max_buffer_bytes))
    r.bytes /= 2;
  r.page = kit_pinned_new(k, k->dev, r.bytes);
  for (uint32_t i = 0; i < 2; i++) {
    r.from[i] = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, r.bytes);
    kit_fill(k, u->stream, r.from[i], 0, r.bytes, 0x11 + i);
  }
  kit_sync(k, u->stream);
  for (uint32_t i = 0; i < ROW; i++) kit_d2h(k, u->stream, r.page.buffer, 0, r.from[i % 2], 0, r.bytes);
  kit_submit(k, u->stream);
  kit_sleep_ms(2); /* so that a copy is under way */
  return r;
}

/* After a reset nothing is under way: the page does not change (a byte here and there is enough, and seen at once). */
static void row_stands(kit *k, row *r) {
  enum { PLACES = 256 };
  uint8_t seen[PLACES];
  const uint64_t step = r->bytes / PLACES;
  if (r->page.at == NULL) return;
  for (uint32_t i = PLACES; i-- > 0;) seen[i] = r->page.at[i * step];
  kit_sleep_ms(50);
  for (uint32_t i = 0; i < PLACES; i++)
    if (seen[i] != r->page.at[i * step])
      kit_fail(k, "memory changes after device.reset has answered HEDDLE_OK: work is still under way");
  for (uint32_t i = 0; i < 2; i++) kit_free(k, k->dev, r->from[i]);
  kit_pinned_free(k, &r->page);
}

/* With work that would never end by itself, where the device waits for fences. */
void kit_health_reset(kit *k) {
  used u;
  row r = {.from = {NULL}};
  if (k->t.device.reset == NULL) kit_skip(k, "the plugin has no device.reset");
  open_used(k, &u);
  if (!kit_inline(k)) r = put_row(k, &u);
  heddle_status status = k->t.device.reset(k->dev, kit_patience_ms(k, 10000) * 1000000, &k->err);
  if (status == HEDDLE_EUNSUPPORTED) kit_skip(k, "device.reset: %.500s", k->err.text);
  kit_ok(k, status, "device.reset");
  status = k->t.device.health(k->dev, &k->err);
  if (status != HEDDLE_EDEVICE)
    kit_fail(k, "device.health answers %d after device.reset: the device is lost until it is opened again",
             (int)status);
  if (!kit_inline(k)) row_stands(k, &r);
  if (kit_faults(k) != 1)
    kit_fail(k, "host.device_fault was called %u times for one device.reset", (unsigned)kit_faults(k));
  if (u.pending != 0) has_failed(k, u.pending, held_text);
  frees_all(k, &u);
  if (u.pending != 0) only_once(k, u.pending, held_text);
  opens_again(k);
}
