/* bench/bench_memory.c: how near the memory that storage plans comes to what any plan needs.
 * Seeded plans over several devices and streams are made here as plan structs; storage places them, prove checks them,
 * and each arena is compared with the heaviest set of values of which no two may share bytes (exact), and with a greedy
 * plan by storage ids. Prints one JSON object. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "executor/plan.h"

enum { PLANS = 200, MOST_DEVICES = 4, MOST_INPUTS = 3, LARGE_NODES = 4600, ROUNDS = 15 };

/* ---------------------------------------------------------------- plans */

typedef struct maker {
  heddle__plan *plan;
  uint64_t random;
  heddle_device devices[MOST_DEVICES];
  heddle__tables tables;
  uint32_t streams_each;
  uint32_t *clock;
  uint32_t *counts;   /* by stream: steps so far */
  uint32_t *latest;   /* by stream: its last step */
  uint32_t *writer;   /* by instance: the step that writes it, or HEDDLE__NONE */
  uint32_t *in_space; /* by value and space: the instance, or HEDDLE__NONE */
  bool *read;         /* by value */
} maker;

static void out_of_memory(const void *p) {
  if (p != NULL) return;
  fprintf(stderr, "bench memory: out of memory\n");
  exit(1);
}

static void *room(heddle__plan *plan, size_t count, size_t size) {
  void *p = heddle__plan_alloc(plan, count, size);
  out_of_memory(p);
  return p;
}

static uint32_t below(maker *m, uint32_t n) {
  m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(m->random >> 33) % n;
}

/* Device 0 computes on the host: space 0, stream 0. Device d has spaces 2d - 1 (its own) and 2d (pinned). */
static uint32_t space_of(uint32_t device) {
  return device == 0 ? 0 : 2 * device - 1;
}

static void make_devices(maker *m, uint32_t n) {
  heddle__plan *p = m->plan;
  p->n_devices = n;
  p->n_spaces = 2 * n - 1;
  p->n_streams = 1 + (n - 1) * m->streams_each;
  p->devices = room(p, n, sizeof *p->devices);
  p->spaces = room(p, p->n_spaces, sizeof *p->spaces);
  p->streams = room(p, p->n_streams, sizeof *p->streams);
  for (uint32_t d = 0; d < n; d++) {
    m->devices[d].t = &m->tables;
    m->devices[d].desc.alignment = d == 0 ? 64 : 256;
    p->devices[d] = (heddle__plan_device){&m->devices[d], d == 0, true};
    p->spaces[space_of(d)] =
        (heddle__space){.device = d, .host_visible = d == 0, .coherent = true, .align = d == 0 ? 64 : 256};
    if (d > 0)
      p->spaces[2 * d] = (heddle__space){
          .device = d, .kind = HEDDLE_MEMORY_PINNED, .host_visible = true, .coherent = true, .align = 64};
  }
  p->streams[0] = (heddle__plan_stream){.device = 0, .is_host = true};
  for (uint32_t t = 1; t < p->n_streams; t++) p->streams[t].device = 1 + (t - 1) / m->streams_each;
}

static uint32_t add_instance(maker *m, uint32_t value, uint32_t space, heddle__role role, uint64_t bytes) {
  heddle__plan *p = m->plan;
  uint32_t i = p->n_instances++;
  p->instances[i] = (heddle__instance){.value = value, .space = space, .role = role, .bytes = bytes, .align = 1};
  m->writer[i] = HEDDLE__NONE;
  if (value != HEDDLE__NONE && role != HEDDLE__ROLE_OUTPUT) m->in_space[value * p->n_spaces + space] = i;
  return i;
}

/* Puts a step into a stream: waits for what it reads, unless the stream's order or another wait implies it. */
static void add_step(maker *m, heddle__step step, uint32_t stream) {
  heddle__plan *p = m->plan;
  uint32_t s = p->n_steps++, *clock = m->clock + (size_t)s * p->n_streams;
  heddle__wait *waits = room(p, step.n_accesses, sizeof *waits);
  if (m->counts[stream] > 0) {
    memcpy(clock, m->clock + (size_t)m->latest[stream] * p->n_streams, p->n_streams * sizeof *clock);
    clock[stream] = m->counts[stream];
  }
  for (uint32_t k = 0; k < step.n_accesses; k++) {
    uint32_t i = step.accesses[k].instance, w = m->writer[i];
    if (step.accesses[k].kind == HEDDLE__ACCESS_WRITE) m->writer[i] = s;
    if (step.accesses[k].kind == HEDDLE__ACCESS_WRITE || w == HEDDLE__NONE) continue;
    if (clock[p->steps[w].stream] >= p->steps[w].seq) continue;
    waits[step.n_waits++] = (heddle__wait){w, HEDDLE__BY_FENCE};
    for (uint32_t t = 0; t < p->n_streams; t++) {
      uint32_t done = t == p->steps[w].stream ? p->steps[w].seq : m->clock[(size_t)w * p->n_streams + t];
      if (done > clock[t]) clock[t] = done;
    }
  }
  step.waits = waits;
  step.stream = stream;
  step.seq = ++m->counts[stream];
  m->latest[stream] = s;
  p->streams[stream].n_steps++;
  p->steps[s] = step;
}

static uint32_t any_stream(maker *m, uint32_t device) {
  return device == 0 ? 0 : 1 + (device - 1) * m->streams_each + below(m, m->streams_each);
}

static uint32_t add_copy(maker *m, heddle__step_kind kind, uint32_t src, uint32_t dst, uint32_t device) {
  heddle__access *accesses = room(m->plan, 2, sizeof *accesses);
  accesses[0] = (heddle__access){src, HEDDLE__ACCESS_READ};
  accesses[1] = (heddle__access){dst, HEDDLE__ACCESS_WRITE};
  heddle__step step = {.kind = kind,
                       .region = HEDDLE__NONE,
                       .device = device,
                       .src = src,
                       .dst = dst,
                       .workspace = HEDDLE__NONE,
                       .accesses = accesses,
                       .n_accesses = 2};
  add_step(m, step, any_stream(m, device == HEDDLE__NONE ? 0 : device));
  return dst;
}

/* The instance that a device can use, over hop buffers; each copy is made once. */
static uint32_t bring(maker *m, uint32_t value, uint32_t device) {
  heddle__plan *p = m->plan;
  const uint32_t *in = m->in_space + (size_t)value * p->n_spaces;
  uint64_t bytes = p->values[value].size;
  if (in[space_of(device)] != HEDDLE__NONE) return in[space_of(device)];
  uint32_t host = in[0];
  for (uint32_t d = 1; host == HEDDLE__NONE && d < p->n_devices; d++) host = in[2 * d];
  for (uint32_t d = 1; host == HEDDLE__NONE && d < p->n_devices; d++) {
    if (in[2 * d - 1] == HEDDLE__NONE) continue;
    host = add_instance(m, value, 2 * d, HEDDLE__ROLE_TEMP, bytes);
    add_copy(m, HEDDLE__STEP_D2H, in[2 * d - 1], host, d);
  }
  if (device == 0) return host;
  if (in[2 * device] == HEDDLE__NONE) {
    uint32_t hop = add_instance(m, value, 2 * device, HEDDLE__ROLE_TEMP, bytes);
    add_copy(m, HEDDLE__STEP_HOST_COPY, host, hop, HEDDLE__NONE);
  }
  uint32_t dst = add_instance(m, value, space_of(device), HEDDLE__ROLE_TEMP, bytes);
  return add_copy(m, HEDDLE__STEP_H2D, in[2 * device], dst, device);
}

static uint64_t draw_bytes(maker *m) {
  static const uint64_t common[] = {4096, 16384, 50176, 200704, 401408, 802816, 1605632};
  if (below(m, 10) < 6) return common[below(m, sizeof common / sizeof common[0])];
  return 4 * (UINT64_C(1) + below(m, 1u << (4 + below(m, 16))));
}

static uint32_t add_value(maker *m, heddle__value_kind kind, uint64_t bytes) {
  heddle__plan *p = m->plan;
  uint32_t v = p->n_values++;
  p->values[v] = (heddle__value){.name = "v", .kind = kind, .same_as = v, .size = bytes, .align = 1, .used = true};
  for (uint32_t s = 0; s < p->n_spaces; s++) m->in_space[(size_t)v * p->n_spaces + s] = HEDDLE__NONE;
  return v;
}

static void add_node(maker *m, uint32_t device) {
  static const int32_t in_place[] = {0, 0};
  heddle__plan *p = m->plan;
  uint32_t n_in = 1 + below(m, MOST_INPUTS), n_out = below(m, 12) == 0 ? 2 : 1, count = 0, known = p->n_values;
  uint32_t *in = room(p, MOST_INPUTS, sizeof *in), *out = room(p, 2, sizeof *out), n = 0;
  for (uint32_t k = 0; k < n_in; k++) {
    uint32_t window = below(m, 6) == 0 ? known : known < 6 ? known : 6;
    uint32_t value = known - 1 - below(m, window), i = bring(m, value, device);
    bool twice = false;
    for (uint32_t j = 0; j < n; j++) twice = twice || in[j] == i;
    if (!twice) in[n++] = i;
    m->read[value] = true;
  }
  bool elementwise = below(m, 10) < 4;
  for (uint32_t k = 0; k < n_out; k++) {
    uint64_t bytes = elementwise ? p->instances[in[0]].bytes : draw_bytes(m);
    out[k] = add_instance(m, add_value(m, HEDDLE__VALUE_COMPUTED, bytes), space_of(device), HEDDLE__ROLE_TEMP, bytes);
  }
  uint32_t workspace = HEDDLE__NONE;
  if (!elementwise && below(m, 4) == 0)
    workspace = add_instance(m, HEDDLE__NONE, space_of(device), HEDDLE__ROLE_WORKSPACE, draw_bytes(m));
  heddle__access *accesses = room(p, n + n_out + 1, sizeof *accesses);
  for (uint32_t k = 0; k < n; k++) accesses[count++] = (heddle__access){in[k], HEDDLE__ACCESS_READ};
  for (uint32_t k = 0; k < n_out; k++) accesses[count++] = (heddle__access){out[k], HEDDLE__ACCESS_WRITE};
  if (workspace != HEDDLE__NONE) accesses[count++] = (heddle__access){workspace, HEDDLE__ACCESS_WRITE};
  heddle__region *region = &p->regions[p->n_regions];
  heddle__offer *offer = room(p, 1, sizeof *offer);
  if (elementwise) *offer = (heddle__offer){.in_place = in_place, .n_in_place = 1};
  uint32_t *values = room(p, n + n_out, sizeof *values);
  for (uint32_t k = 0; k < n; k++) values[k] = p->instances[in[k]].value;
  for (uint32_t k = 0; k < n_out; k++) values[n + k] = p->instances[out[k]].value;
  *region = (heddle__region){.device = device,
                             .label = "n",
                             .inputs = values,
                             .outputs = values + n,
                             .n_inputs = n,
                             .n_outputs = n_out,
                             .offers = offer,
                             .n_offers = 1};
  heddle__step step = {.kind = HEDDLE__STEP_OP,
                       .region = p->n_regions++,
                       .device = device,
                       .src = HEDDLE__NONE,
                       .dst = HEDDLE__NONE,
                       .workspace = workspace,
                       .in = in,
                       .out = out,
                       .accesses = accesses,
                       .n_accesses = count};
  uint32_t w = m->writer[in[0]], stream = any_stream(m, device); /* a row of nodes stays on its stream */
  if (w != HEDDLE__NONE && p->steps[w].device == device && m->latest[p->steps[w].stream] == w)
    stream = p->steps[w].stream;
  add_step(m, step, stream);
}

static void add_finish(maker *m) {
  heddle__plan *p = m->plan;
  heddle__access *accesses = room(p, p->n_values, sizeof *accesses);
  uint32_t n = 0, n_values = p->n_values;
  for (uint32_t v = 0; v < n_values; v++) {
    if (m->read[v]) continue;
    uint32_t from = bring(m, v, 0), out = add_instance(m, v, 0, HEDDLE__ROLE_OUTPUT, p->values[v].size);
    add_copy(m, HEDDLE__STEP_HOST_COPY, from, out, HEDDLE__NONE);
    accesses[n++] = (heddle__access){out, HEDDLE__ACCESS_READ};
  }
  heddle__step step = {.kind = HEDDLE__STEP_FINISH,
                       .region = HEDDLE__NONE,
                       .device = HEDDLE__NONE,
                       .src = HEDDLE__NONE,
                       .dst = HEDDLE__NONE,
                       .workspace = HEDDLE__NONE,
                       .accesses = accesses,
                       .n_accesses = n};
  add_step(m, step, 0);
}

static heddle__plan *make_plan(maker *m, uint64_t seed, uint32_t nodes, uint32_t n_devices, uint32_t streams_each) {
  *m = (maker){.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .streams_each = streams_each};
  heddle__plan *p = m->plan = heddle__alloc(1, sizeof *p);
  out_of_memory(p);
  for (int i = 0; i < 8; i++) below(m, 2);
  p->req.in_flight = 1;
  make_devices(m, n_devices);
  size_t values = (size_t)nodes * 2 + 4, steps = values * 8;
  p->values = room(p, values, sizeof *p->values);
  p->regions = room(p, nodes, sizeof *p->regions);
  p->steps = room(p, steps, sizeof *p->steps);
  p->instances = room(p, steps, sizeof *p->instances);
  m->clock = room(p, steps * p->n_streams, sizeof *m->clock);
  p->clock = m->clock;
  m->counts = room(p, p->n_streams, sizeof *m->counts);
  m->latest = room(p, p->n_streams, sizeof *m->latest);
  m->writer = room(p, steps, sizeof *m->writer);
  m->in_space = room(p, values * p->n_spaces, sizeof *m->in_space);
  m->read = room(p, values, sizeof *m->read);
  for (uint32_t k = 0; k < 3; k++) {
    uint64_t bytes = draw_bytes(m);
    add_instance(m, add_value(m, HEDDLE__VALUE_INPUT, bytes), 0, HEDDLE__ROLE_INPUT, bytes);
    m->read[k] = true;
  }
  uint32_t device = below(m, n_devices);
  for (uint32_t k = 0; k < nodes; k++) {
    if (below(m, 3) == 0) device = below(m, n_devices);
    add_node(m, device);
  }
  add_finish(m);
  return p;
}

/* ---------------------------------------------------------------- what any plan needs */

/* The placed instances of one space, and which happen before which: straight from accesses and clock. */
typedef struct arena {
  uint32_t n;
  uint32_t *instance;
  uint64_t *bytes;
  bool *before;  /* n * n: all steps of the row's happen before all of the column's */
  bool *inherit; /* n * n: the column's may be written over the row's */
} arena;

static bool touches(const heddle__step *step, uint32_t instance) {
  for (uint32_t k = 0; k < step->n_accesses; k++)
    if (step->accesses[k].instance == instance) return true;
  return false;
}

static bool happens_before(const heddle__plan *p, uint32_t a, uint32_t b) {
  return p->clock[(size_t)b * p->n_streams + p->steps[a].stream] >= p->steps[a].seq;
}

static void relate(const heddle__plan *p, arena *a) {
  bool *uses = heddle__alloc((size_t)a->n * p->n_steps, sizeof *uses);
  out_of_memory(uses);
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t s = 0; s < p->n_steps; s++) uses[i * p->n_steps + s] = touches(&p->steps[s], a->instance[i]);
  for (uint32_t i = 0; i < a->n; i++) {
    for (uint32_t j = 0; j < a->n; j++) {
      bool before = i != j, inherit = i != j && a->bytes[i] == a->bytes[j];
      for (uint32_t s = 0; s < p->n_steps && (before || inherit); s++) {
        if (!uses[i * p->n_steps + s]) continue;
        for (uint32_t r = 0; r < p->n_steps; r++) {
          if (!uses[j * p->n_steps + r] || happens_before(p, s, r)) continue;
          before = false;
          bool here = s == r && p->steps[s].kind == HEDDLE__STEP_OP;
          const heddle__region *region = here ? &p->regions[p->steps[s].region] : NULL;
          inherit = inherit && here && region->offers->n_in_place > 0 && p->steps[s].in[0] == a->instance[i] &&
                    p->steps[s].out[0] == a->instance[j];
        }
      }
      a->before[i * a->n + j] = before;
      a->inherit[i * a->n + j] = inherit && !before;
    }
  }
  heddle__free(uses);
}

/* The heaviest set of which no two are ordered. By Dilworth's theorem with weights it weighs as much as the cheapest
 * cover by chains, which is the sum of all weights less a flow from each to those that come after it. An input and the
 * output that may be written over it count as ordered. */
typedef struct flow {
  uint32_t n; /* nodes: source, sink, and two for each instance */
  uint64_t *room;
  uint32_t *level, *queue, *next;
} flow;

static bool reach(flow *f) {
  uint32_t head = 0, tail = 0;
  for (uint32_t i = 0; i < f->n; i++) f->level[i] = UINT32_MAX;
  f->level[0] = 0;
  f->queue[tail++] = 0;
  while (head < tail) {
    uint32_t x = f->queue[head++];
    for (uint32_t y = 0; y < f->n; y++) {
      if (f->room[x * f->n + y] == 0 || f->level[y] != UINT32_MAX) continue;
      f->level[y] = f->level[x] + 1;
      f->queue[tail++] = y;
    }
  }
  return f->level[1] != UINT32_MAX;
}

static uint64_t push(flow *f, uint32_t x, uint64_t most) {
  if (x == 1 || most == 0) return most;
  uint64_t sent = 0;
  for (; f->next[x] < f->n && sent < most; f->next[x]++) {
    uint32_t y = f->next[x];
    uint64_t *there = &f->room[x * f->n + y];
    if (*there == 0 || f->level[y] != f->level[x] + 1) continue;
    uint64_t some = push(f, y, *there < most - sent ? *there : most - sent);
    *there -= some;
    f->room[y * f->n + x] += some;
    sent += some;
    if (sent == most) break;
  }
  return sent;
}

static uint64_t heaviest(const arena *a) {
  flow f = {.n = 2 * a->n + 2};
  uint64_t sum = 0;
  f.room = heddle__alloc((size_t)f.n * f.n, sizeof *f.room);
  f.level = heddle__alloc((size_t)f.n * 3, sizeof *f.level);
  out_of_memory(f.room);
  out_of_memory(f.level);
  f.queue = f.level + f.n;
  f.next = f.queue + f.n;
  for (uint32_t i = 0; i < a->n; i++) {
    sum += a->bytes[i];
    f.room[2 + i] = a->bytes[i];
    f.room[(size_t)(2 + a->n + i) * f.n + 1] = a->bytes[i];
    for (uint32_t j = 0; j < a->n; j++)
      if (a->before[i * a->n + j] || a->inherit[i * a->n + j])
        f.room[(size_t)(2 + i) * f.n + 2 + a->n + j] = UINT64_MAX / 4;
  }
  while (reach(&f)) {
    for (uint32_t i = 0; i < f.n; i++) f.next[i] = 0;
    sum -= push(&f, 0, UINT64_MAX / 2);
  }
  heddle__free(f.room);
  heddle__free(f.level);
  return sum;
}

/* ---------------------------------------------------------------- a greedy plan by storage ids */

/* As graph planners with storage ids do it: in list order, a value takes a free buffer of up to 16 times its size, the
 * nearest that is large enough first, else the nearest smaller one, which grows. A buffer is free when all that used it
 * happens before; or, with shared, when its last user may be written over. */
static uint64_t greedy(const arena *a, bool shared) {
  enum { RANGE = 16 };
  uint32_t *id = heddle__alloc(a->n, sizeof *id), n_ids = 0;
  uint64_t *size = heddle__alloc(a->n, sizeof *size), sum = 0;
  bool *gone = heddle__alloc((size_t)a->n, sizeof *gone);
  out_of_memory(id);
  out_of_memory(size);
  out_of_memory(gone);
  for (uint32_t j = 0; j < a->n; j++) {
    uint32_t best = UINT32_MAX;
    for (uint32_t k = 0; k < n_ids; k++) {
      bool free = size[k] <= a->bytes[j] * RANGE && size[k] * RANGE >= a->bytes[j];
      for (uint32_t i = 0; i < j && free; i++)
        free = id[i] != k || a->before[i * a->n + j] || (shared && !gone[i] && a->inherit[i * a->n + j]);
      if (!free) continue;
      bool large = size[k] >= a->bytes[j], had = best != UINT32_MAX && size[best] >= a->bytes[j];
      if (best == UINT32_MAX || (large && !had) || (large && size[k] < size[best]) ||
          (!large && !had && size[k] > size[best]))
        best = k;
    }
    if (best == UINT32_MAX) best = n_ids++;
    for (uint32_t i = 0; i < j; i++) gone[i] = gone[i] || (id[i] == best && a->inherit[i * a->n + j]);
    id[j] = best;
    if (a->bytes[j] > size[best]) size[best] = a->bytes[j];
  }
  for (uint32_t k = 0; k < n_ids; k++) sum += size[k];
  heddle__free(id);
  heddle__free(size);
  heddle__free(gone);
  return sum;
}

/* ---------------------------------------------------------------- figures */

typedef struct figures {
  uint64_t bytes, lower, greedy;
  double worst; /* of one arena */
  uint32_t above, instances, largest;
} figures;

static uint32_t gather(const heddle__plan *p, uint32_t space, arena *a) {
  uint64_t align = p->spaces[space].align;
  a->n = 0;
  for (uint32_t s = 0; s < p->n_steps; s++) {
    for (uint32_t k = 0; k < p->steps[s].n_accesses; k++) {
      uint32_t i = p->steps[s].accesses[k].instance;
      const heddle__instance *x = &p->instances[i];
      if (x->space != space || (x->role != HEDDLE__ROLE_TEMP && x->role != HEDDLE__ROLE_WORKSPACE)) continue;
      bool known = false;
      for (uint32_t j = 0; j < a->n; j++) known = known || a->instance[j] == i;
      if (known) continue;
      a->instance[a->n] = i;
      a->bytes[a->n++] = (x->bytes + align - 1) / align * align;
    }
  }
  return a->n;
}

static void measure(const heddle__plan *p, figures *f) {
  arena a = {0};
  *f = (figures){0};
  size_t n = p->n_instances;
  a.instance = heddle__alloc(n, sizeof *a.instance);
  a.bytes = heddle__alloc(n, sizeof *a.bytes);
  a.before = heddle__alloc(n * n, sizeof *a.before);
  a.inherit = heddle__alloc(n * n, sizeof *a.inherit);
  out_of_memory(a.instance);
  out_of_memory(a.bytes);
  out_of_memory(a.before);
  out_of_memory(a.inherit);
  for (uint32_t space = 0; space < p->n_spaces; space++) {
    if (gather(p, space, &a) == 0) continue;
    relate(p, &a);
    uint64_t bytes = 0, lower = heaviest(&a), plain = greedy(&a, false), shared = greedy(&a, true);
    if (shared < plain) plain = shared;
    for (uint32_t k = 0; k < p->n_allocs; k++)
      if (p->allocs[k].kind == HEDDLE__ALLOC_ARENA && p->allocs[k].space == space) bytes += p->allocs[k].bytes;
    f->bytes += bytes;
    f->lower += lower;
    f->greedy += plain;
    f->instances += a.n;
    f->above += bytes > plain;
    if (a.n > f->largest) f->largest = a.n;
    if ((double)bytes > f->worst * (double)lower) f->worst = (double)bytes / (double)lower;
  }
  heddle__free(a.instance);
  heddle__free(a.bytes);
  heddle__free(a.before);
  heddle__free(a.inherit);
}

/* Storage on a plan of about 10,000 steps on 4 devices, three of 4 streams and the host. */
static void large(void) {
  maker m;
  heddle_error err = {0};
  printf("\"large\": {\"storage_ns\": [");
  for (int r = 0; r < ROUNDS; r++) {
    heddle__plan *p = make_plan(&m, 77, LARGE_NODES, MOST_DEVICES, 4);
    uint64_t start = heddle__now_ns();
    check(heddle__pass_storage(p, &err), &err);
    printf("%s%" PRIu64, r > 0 ? ", " : "", heddle__now_ns() - start);
    if (r == ROUNDS - 1) {
      uint32_t waits = 0;
      for (uint32_t s = 0; s < p->n_steps; s++) waits += p->steps[s].n_waits;
      printf("], \"steps\": %u, \"waits\": %u, \"instances\": %u}", p->n_steps, waits, p->n_instances);
    }
    heddle__plan_free(p);
  }
}

int main(void) {
  maker m;
  figures f;
  heddle_error err = {0};
  static const heddle_graph graph; /* prove names it where a plan is wrong */
  printf("{\"plans\": [");
  for (uint32_t seed = 0; seed < PLANS; seed++) {
    heddle__plan *p = make_plan(&m, seed, 10 + seed % 191, 2 + seed % 3, 1 + seed / 3 % 3);
    p->req.graph = &graph;
    uint64_t start = heddle__now_ns();
    check(heddle__pass_storage(p, &err), &err);
    uint64_t took = heddle__now_ns() - start;
    check(heddle__pass_prove(p, &err), &err);
    measure(p, &f);
    printf("%s\n{\"seed\": %u, \"nodes\": %u, \"instances\": %u, \"largest_arena\": %u, \"bytes\": %" PRIu64
           ", \"lower\": %" PRIu64 ", \"greedy\": %" PRIu64 ", \"worst_arena\": %.6f, \"above_greedy\": %u, "
           "\"storage_ns\": %" PRIu64 "}",
           seed > 0 ? "," : "", seed, p->n_regions, f.instances, f.largest, f.bytes, f.lower, f.greedy, f.worst,
           f.above, took);
    heddle__plan_free(p);
  }
  printf("],\n");
  large();
  printf("}\n");
  return 0;
}
