/* executor/routes/probe.c: moves patterns over one route and times it. Each place of the target is written twice, the
 * second time with the complement of the first, so that bytes that never came are seen whatever was there. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "core/alloc.h"
#include "executor/routes/routes.h"

#define TIMEOUT_NS UINT64_C(5000000000)
#define SETTLE_NS UINT64_C(100000000)
enum {
  ROUNDS = 5,        /* of which the median counts */
  SMALL = 4096,      /* what the latency is taken on */
  LARGE = 1 << 20,   /* and what the bandwidth */
  IMAGE = 160 << 10, /* the part of a buffer that patterns are moved in */
  LEAST = IMAGE,     /* bytes of a buffer without which nothing is tested */
  STEP = 4096        /* between the beginnings of what is moved: a multiple of every usual alignment */
};

typedef enum place { AT_FROM, AT_TO, AT_PAGE, AT_HOP } place;

/* The two ends, and what lies between them on the host. */
typedef struct way {
  heddle_device *from, *to;
  heddle__route route;
  bool from_host, to_host;
  uint64_t bytes;           /* of each buffer */
  heddle_pstream *out, *in; /* of from and of to; NULL of inline devices */
  heddle__memory *memory[4];
  heddle_pbuffer *page; /* the page or the last hop buffer as `to` has it */
  bool imported;        /* page is a handle of to's own */
  bool back;            /* SHARED: from `to` to `from` */
  bool half;            /* SHARED: only until the page is written and that is known */
} way;

/* ---- making and ending */

static heddle_status make_memory(way *w, place at, heddle_device *dev, uint32_t kind, heddle_error *err) {
  const uint64_t a = w->from->desc.import_alignment, b = w->to->desc.import_alignment;
  return heddle__memory_create(dev, kind, w->bytes, STEP, a > b ? a : b, &w->memory[at], err);
}

static heddle_status import_page(way *w, heddle__memory *page, heddle_error *err) {
  heddle_device *dev = w->to;
  bool own = page->dev == dev;
  bool kin = page->dev->instance == dev->instance && page->dev->desc.event_domain == dev->desc.event_domain;
  w->page = page->buffer;
  if (own || w->to_host || (kin && w->route != HEDDLE__ROUTE_SHARED)) return HEDDLE_OK;
  if (dev->t->memory.import_host == NULL)
    return heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED, "%s cannot import host memory", dev->name);
  heddle_status s = dev->t->memory.import_host(dev->handle, page->host, page->imported, &w->page, err);
  w->imported = s == HEDDLE_OK;
  return s;
}

/* Buffers as the planner would have them. A direct route begins or ends in a page of the host's: that of the other end
 * where one is inline, else one that `from` has filled before. */
static heddle_status make_buffers(way *w, heddle_error *err) {
  bool direct = w->route == HEDDLE__ROUTE_DIRECT, twice = w->route == HEDDLE__ROUTE_STAGED2;
  bool staged = w->route == HEDDLE__ROUTE_STAGED || twice;
  twice = twice || (staged && !w->from_host && !w->to_host && !heddle__route_fetches(w->from, w->to));
  heddle_device *owner = w->from_host ? w->to : w->from;
  heddle_status s = HEDDLE_OK;
  if (staged || !(w->from_host || (direct && !w->to_host)))
    s = make_memory(w, AT_FROM, w->from, HEDDLE_MEMORY_DEVICE, err);
  if (s == HEDDLE_OK && (!w->to_host || staged)) s = make_memory(w, AT_TO, w->to, HEDDLE_MEMORY_DEVICE, err);
  if (s == HEDDLE_OK && w->route == HEDDLE__ROUTE_SHARED)
    s = make_memory(w, AT_PAGE, w->from, HEDDLE_MEMORY_UNIFIED, err);
  if (s == HEDDLE_OK && (direct || staged)) s = make_memory(w, AT_PAGE, owner, HEDDLE_MEMORY_PINNED, err);
  if (s == HEDDLE_OK && twice) s = make_memory(w, AT_HOP, w->to, HEDDLE_MEMORY_PINNED, err);
  heddle__memory *last = twice ? w->memory[AT_HOP] : w->memory[AT_PAGE];
  return s == HEDDLE_OK && last != NULL ? import_page(w, last, err) : s;
}

static heddle_status make_way(way *w, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (!w->from_host) s = w->from->t->stream.create(w->from->handle, HEDDLE_STREAM_COPY, 0, &w->out, err);
  if (s == HEDDLE_OK && !w->to_host) s = w->to->t->stream.create(w->to->handle, HEDDLE_STREAM_COPY, 0, &w->in, err);
  return s == HEDDLE_OK ? make_buffers(w, err) : s;
}

/* False: it did not end, and its plugin knows that it has to keep what it may touch. */
static bool end_stream(heddle_device *dev, heddle_pstream *stream) {
  bool quiet = true;
  if (stream == NULL) return true;
  (void)heddle__device_settle(dev, stream, SETTLE_NS, &quiet, NULL);
  if (!quiet) (void)dev->t->device.idle(dev->handle, 0, NULL);
  dev->t->stream.close(stream);
  return quiet;
}

static void end_way(way *w) {
  bool quiet = end_stream(w->from, w->out);
  quiet = end_stream(w->to, w->in) && quiet;
  if (w->imported) w->to->t->memory.free(w->to->handle, w->page);
  for (int i = 0; i < 4; i++) {
    if (w->memory[i] != NULL) w->memory[i]->keep_block = !quiet;
    heddle__memory_release(w->memory[i]);
  }
}

/* ---- moving */

static heddle_status finish(heddle_device *dev, heddle_pstream *stream, heddle_error *err) {
  return stream != NULL ? dev->t->stream.sync(stream, TIMEOUT_NS, err) : HEDDLE_OK;
}

/* What the host wrote, for the device; and what the device wrote, for the host. */
static heddle_status show(heddle__memory *m, uint64_t at, uint64_t n, heddle_error *err) {
  return m->coherent ? HEDDLE_OK : m->dev->t->memory.flush(m->dev->handle, m->buffer, at, n, err);
}

static heddle_status see(heddle__memory *m, uint64_t at, uint64_t n, heddle_error *err) {
  return m->coherent ? HEDDLE_OK : m->dev->t->memory.invalidate(m->dev->handle, m->buffer, at, n, err);
}

static heddle_status host_copy(heddle__memory *dst, heddle__memory *src, uint64_t at, uint64_t n, heddle_error *err) {
  memcpy((char *)dst->host + at, (const char *)src->host + at, (size_t)n);
  return show(dst, at, n, err);
}

/* Of a page: from the device that wrote to it, to the one that reads, each within its own memory. */
static heddle_status move_shared(way *w, uint64_t at, uint64_t n, heddle_error *err) {
  heddle__memory *page = w->memory[AT_PAGE], *mine = w->memory[AT_FROM], *theirs = w->memory[AT_TO];
  heddle_status s = HEDDLE_OK;
  if (!w->back) {
    s = w->from->t->copy.d2d(w->out, page->buffer, at, mine->buffer, at, n, err);
    if (s == HEDDLE_OK) s = finish(w->from, w->out, err);
    if (s != HEDDLE_OK || w->half) return s;
    if (w->to_host) return see(page, at, n, err);
    s = w->to->t->copy.d2d(w->in, theirs->buffer, at, w->page, at, n, err);
    return s == HEDDLE_OK ? finish(w->to, w->in, err) : s;
  }
  if (!w->to_host) s = w->to->t->copy.d2d(w->in, w->page, at, theirs->buffer, at, n, err);
  if (s == HEDDLE_OK) s = w->to_host ? show(page, at, n, err) : finish(w->to, w->in, err);
  if (s == HEDDLE_OK) s = w->from->t->copy.d2d(w->out, mine->buffer, at, page->buffer, at, n, err);
  return s == HEDDLE_OK ? finish(w->from, w->out, err) : s;
}

static heddle_status move_staged(way *w, uint64_t at, uint64_t n, heddle_error *err) {
  heddle__memory *page = w->memory[AT_PAGE];
  heddle_status s;
  if (w->from_host) {
    s = host_copy(page, w->memory[AT_FROM], at, n, err);
  } else {
    s = w->from->t->copy.d2h(w->out, page->buffer, at, w->memory[AT_FROM]->buffer, at, n, err);
    if (s == HEDDLE_OK) s = finish(w->from, w->out, err);
    heddle__memory *last = w->to_host ? w->memory[AT_TO] : w->memory[AT_HOP];
    if (s == HEDDLE_OK && last != NULL) s = see(page, at, n, err);
    if (s == HEDDLE_OK && last != NULL) s = host_copy(last, page, at, n, err);
  }
  if (s != HEDDLE_OK || w->to_host) return s;
  s = w->to->t->copy.h2d(w->in, w->memory[AT_TO]->buffer, at, w->page, at, n, err);
  return s == HEDDLE_OK ? finish(w->to, w->in, err) : s;
}

/* Moves bytes [at, at + n) to the same place on the other side, and returns when they are there. */
static heddle_status move(way *w, uint64_t at, uint64_t n, heddle_error *err) {
  heddle__memory *page = w->memory[AT_PAGE];
  heddle_status s;
  switch (w->route) {
  case HEDDLE__ROUTE_SHARED: return move_shared(w, at, n, err);
  case HEDDLE__ROUTE_PEER:
    s = w->to->t->copy.peer(w->in, w->to->handle, w->memory[AT_TO]->buffer, at, w->from->handle,
                            w->memory[AT_FROM]->buffer, at, n, err);
    return s == HEDDLE_OK ? finish(w->to, w->in, err) : s;
  case HEDDLE__ROUTE_DIRECT:
    if (w->to_host) {
      s = w->from->t->copy.d2h(w->out, page->buffer, at, w->memory[AT_FROM]->buffer, at, n, err);
      if (s == HEDDLE_OK) s = finish(w->from, w->out, err);
      return s == HEDDLE_OK ? see(page, at, n, err) : s;
    }
    s = show(page, at, n, err);
    if (s == HEDDLE_OK) s = w->to->t->copy.h2d(w->in, w->memory[AT_TO]->buffer, at, w->page, at, n, err);
    return s == HEDDLE_OK ? finish(w->to, w->in, err) : s;
  default: return move_staged(w, at, n, err);
  }
}

/* ---- the two ends */

/* Where values of an end lie: on the host's side of a direct or shared route that is the page. */
static heddle__memory *end_memory(const way *w, bool source) {
  heddle__memory *m = w->memory[source == !w->back ? AT_FROM : AT_TO];
  return m != NULL ? m : w->memory[AT_PAGE];
}

static heddle_status put(way *w, bool source, const void *bytes, heddle_error *err) {
  heddle__memory *m = end_memory(w, source);
  bool by_out = source == !w->back;
  heddle_device *dev = by_out ? w->from : w->to;
  heddle_pstream *stream = by_out ? w->out : w->in;
  if (stream == NULL || m == w->memory[AT_PAGE]) {
    memcpy(m->host, bytes, IMAGE);
    return show(m, 0, IMAGE, err);
  }
  heddle_status s = dev->t->copy.write(stream, m->buffer, 0, bytes, IMAGE, err);
  return s == HEDDLE_OK ? finish(dev, stream, err) : s;
}

static heddle_status get(way *w, void *bytes, heddle_error *err) {
  heddle__memory *m = end_memory(w, false);
  heddle_device *dev = w->back ? w->from : w->to;
  heddle_pstream *stream = w->back ? w->out : w->in;
  if (stream == NULL) {
    memcpy(bytes, m->host, IMAGE);
    return HEDDLE_OK;
  }
  heddle_status s = dev->t->copy.read(stream, bytes, m->buffer, 0, IMAGE, err);
  return s == HEDDLE_OK ? finish(dev, stream, err) : s;
}

/* ---- patterns */

static const struct {
  uint32_t step, bytes;
} moves[] = {{0, 1}, {1, 3}, {2, 64}, {3, 257}, {5, 4099}, {8, 12288}, {12, 65537}, {30, 31}, {31, 4096}};
enum { N_MOVES = sizeof moves / sizeof moves[0] };

static void fill(unsigned char *bytes, uint32_t seed, unsigned flip) {
  uint32_t x = seed;
  for (uint32_t i = 0; i < IMAGE; i++) {
    x = x * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(x >> 24 ^ flip);
  }
}

/* One turn: what was moved has to be there, and what was not as it was. */
static heddle_status turn(way *w, unsigned flip, unsigned char *sent, unsigned char *wanted, bool *wrong,
                          heddle_error *err) {
  bool one_place = end_memory(w, true) == end_memory(w, false); /* a page that both ends compute in */
  fill(sent, 1, flip);
  fill(wanted, 2, flip);
  heddle_status s = one_place ? HEDDLE_OK : put(w, false, wanted, err);
  if (s == HEDDLE_OK) s = put(w, true, sent, err);
  for (int i = 0; i < N_MOVES && s == HEDDLE_OK; i++) {
    const uint32_t at = moves[i].step * STEP, n = moves[i].bytes;
    s = move(w, at, n, err);
    memcpy(wanted + at, sent + at, n);
  }
  if (s == HEDDLE_OK) s = get(w, sent, err);
  for (uint32_t i = 0; i < IMAGE && s == HEDDLE_OK; i++) {
    if (sent[i] == wanted[i]) continue;
    *wrong = true;
    const char *ends[2] = {w->from->name, w->to->name};
    return heddle__fail(err, HEDDLE_EFAILED, "from %s to %s byte %u of a pattern arrived as 0x%02x, not 0x%02x",
                        ends[w->back], ends[!w->back], (unsigned)i, sent[i], wanted[i]);
  }
  return s;
}

static heddle_status check(way *w, bool *wrong, heddle_error *err) {
  unsigned char *bytes = heddle__alloc(2, IMAGE);
  if (bytes == NULL) return heddle__no_memory(err, "the self-test of a route");
  heddle_status s = HEDDLE_OK;
  for (int back = 0; back <= (w->route == HEDDLE__ROUTE_SHARED) && s == HEDDLE_OK; back++) {
    w->back = back != 0;
    s = turn(w, 0, bytes, bytes + IMAGE, wrong, err);
    if (s == HEDDLE_OK) s = turn(w, 0xff, bytes, bytes + IMAGE, wrong, err);
  }
  w->back = false;
  heddle__free(bytes);
  return s;
}

/* ---- times */

static heddle_status median(way *w, uint64_t n, double *out, heddle_error *err) {
  uint64_t times[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    const uint64_t start = heddle__now_ns();
    heddle_status s = move(w, 0, n, err);
    if (s != HEDDLE_OK) return s;
    uint64_t time = heddle__now_ns() - start;
    int k = i;
    for (; k > 0 && times[k - 1] > time; k--) times[k] = times[k - 1];
    times[k] = time;
  }
  const uint64_t middle = times[ROUNDS / 2];
  *out = (double)middle;
  return HEDDLE_OK;
}

/* A page moves nothing: what is left is to tell the other side, which is what the smallest work takes of who wrote. */
static heddle_status measure(way *w, heddle__route_cost *cost, heddle_error *err) {
  bool shared = w->route == HEDDLE__ROUTE_SHARED;
  double small = 0, large = 0;
  w->half = shared;
  heddle_status s = median(w, shared ? 4 : SMALL, &small, err);
  if (s == HEDDLE_OK && !shared) s = median(w, w->bytes, &large, err);
  if (s != HEDDLE_OK) return s;
  const double slope = shared ? 0 : (large - small) / (double)(w->bytes - SMALL);
  *cost = (heddle__route_cost){small, slope > 0 ? slope : 0, true, false};
  cost->latency_ns -= shared ? 0 : cost->ns_per_byte * SMALL;
  if (cost->latency_ns < 0) cost->latency_ns = 0;
  return s;
}

static uint64_t least(uint64_t bytes, const heddle_device *dev) {
  const uint64_t most = dev->desc.max_buffer_bytes;
  return most != 0 && most < bytes ? most / STEP * STEP : bytes;
}

heddle_status heddle__route_probe(heddle_device *from, heddle_device *to, heddle__route route, heddle__route_cost *cost,
                                  bool *wrong, heddle_error *err) {
  way w = {.from = from, .to = to, .route = route};
  w.from_host = heddle__device_inline(from);
  w.to_host = heddle__device_inline(to);
  w.bytes = least(least(LARGE, from), to);
  *wrong = false;
  if (w.bytes < LEAST) return heddle__fail(err, HEDDLE_ENOMEM, "buffers of %d bytes are too large for it", LEAST);
  heddle_status s = make_way(&w, err);
  if (s == HEDDLE_OK) s = check(&w, wrong, err);
  if (s == HEDDLE_OK) s = measure(&w, cost, err);
  end_way(&w);
  return s;
}
