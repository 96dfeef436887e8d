/* tests/executor/storage_rig.h: plans made by hand for the storage pass. Every placement is also compared with the
 * transitive closure of the plan's waits, and handed to prove. */
#ifndef HEDDLE_TESTS_EXECUTOR_STORAGE_RIG_H
#define HEDDLE_TESTS_EXECUTOR_STORAGE_RIG_H

#include "cases.h"

#include "core/alloc.h"
#include "executor/plan.h"

enum { MOST_STEPS = 9000, MOST_INSTANCES = 9000, MOST_STREAMS = 6, CHECKED = 400 };

/* A plan with two devices: "cpu" is inline and has space 0; "acc:0" has space 1 and, pinned, space 2. */
typedef struct maker {
  heddle__plan *plan;
  heddle_device devices[2];
  heddle__tables tables[2];
  heddle_graph graph;
  uint32_t *clock;
} maker;

static inline heddle_status no_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                                    heddle_pbuffer **out, heddle_error *err) {
  (void)dev, (void)parent, (void)offset, (void)bytes, (void)out, (void)err;
  return HEDDLE_EUNSUPPORTED;
}

static inline maker *start(uint32_t n_streams) {
  static maker m;
  static heddle__plan_device devices[2];
  static heddle__space spaces[3];
  static heddle__value values[MOST_INSTANCES];
  static heddle__region regions[MOST_STEPS];
  static heddle__instance instances[MOST_INSTANCES];
  static heddle__step steps[MOST_STEPS];
  static heddle__plan_stream streams[MOST_STREAMS];
  static uint32_t clock[MOST_STEPS * MOST_STREAMS];
  m = (maker){.clock = clock};
  memset(streams, 0, sizeof streams);
  snprintf(m.devices[0].name, sizeof m.devices[0].name, "cpu");
  snprintf(m.devices[1].name, sizeof m.devices[1].name, "acc:0");
  for (int d = 0; d < 2; d++) {
    m.devices[d].t = &m.tables[d];
    m.tables[d].memory.view = no_view;
    m.devices[d].desc.caps = HEDDLE_CAP_VIEWS;
    devices[d] = (heddle__plan_device){&m.devices[d], d == 0, true};
  }
  spaces[0] = (heddle__space){.host_visible = true, .coherent = true, .align = 64};
  spaces[1] = (heddle__space){.device = 1, .coherent = true, .align = 256};
  spaces[2] =
      (heddle__space){.device = 1, .kind = HEDDLE_MEMORY_PINNED, .host_visible = true, .coherent = true, .align = 64};
  heddle__plan *p = m.plan = heddle__alloc(1, sizeof *p);
  assert_non_null(p);
  *p = (heddle__plan){.devices = devices,
                      .n_devices = 2,
                      .spaces = spaces,
                      .n_spaces = 3,
                      .values = values,
                      .regions = regions,
                      .instances = instances,
                      .steps = steps,
                      .streams = streams,
                      .n_streams = n_streams,
                      .clock = clock};
  p->req.in_flight = 1;
  p->req.graph = &m.graph;
  return &m;
}

/* A TEMP instance of a value of its own. */
static inline uint32_t temp(maker *m, uint32_t space, uint64_t bytes) {
  static char names[MOST_INSTANCES][16];
  heddle__plan *p = m->plan;
  uint32_t v = p->n_values++, i = p->n_instances++;
  snprintf(names[v], sizeof names[v], "v%u", v);
  p->values[v] = (heddle__value){.name = names[v], .same_as = v, .size = bytes, .align = 1, .used = true};
  p->instances[i] = (heddle__instance){.value = v, .space = space, .bytes = bytes, .align = 1};
  return i;
}

static inline uint32_t workspace(maker *m, uint32_t space, uint64_t bytes) {
  uint32_t i = m->plan->n_instances++;
  m->plan->instances[i] = (heddle__instance){
      .value = HEDDLE__NONE, .space = space, .role = HEDDLE__ROLE_WORKSPACE, .bytes = bytes, .align = 1};
  return i;
}

/* A step with up to two waits, work, inputs and one output; HEDDLE__NONE for what it does not have. */
typedef struct op {
  uint32_t stream, wait1, wait2, in1, in2, out, work;
} op;

#define NONE HEDDLE__NONE

static inline uint32_t add(maker *m, op o) {
  heddle__plan *p = m->plan;
  uint32_t s = p->n_steps++, n = 0, n_waits = 0;
  heddle__access *accesses = heddle__plan_alloc(p, 4, sizeof *accesses);
  heddle__wait *waits = heddle__plan_alloc(p, 2, sizeof *waits);
  heddle__offer *offer = heddle__plan_alloc(p, 1, sizeof *offer);
  uint32_t *in = heddle__plan_alloc(p, 2, sizeof *in), *out = heddle__plan_alloc(p, 1, sizeof *out);
  uint32_t *values = heddle__plan_alloc(p, 3, sizeof *values);
  assert_true(accesses && waits && offer && in && out && values);
  uint32_t *row = m->clock + (size_t)s * p->n_streams, seq = ++p->streams[o.stream].n_steps;
  for (uint32_t t = 0; t < p->n_streams; t++) row[t] = 0;
  uint32_t earlier[3] = {NONE, o.wait1, o.wait2};
  for (uint32_t k = s; k-- > 0 && earlier[0] == NONE;)
    if (p->steps[k].stream == o.stream) earlier[0] = k;
  for (int k = 0; k < 3; k++) {
    if (earlier[k] == NONE) continue;
    const heddle__step *w = &p->steps[earlier[k]];
    if (k > 0) waits[n_waits++] = (heddle__wait){earlier[k], HEDDLE__BY_FENCE};
    for (uint32_t t = 0; t < p->n_streams; t++) {
      uint32_t done = t == w->stream ? w->seq : m->clock[(size_t)earlier[k] * p->n_streams + t];
      if (done > row[t]) row[t] = done;
    }
  }
  uint32_t region = p->n_regions++;
  in[0] = o.in1;
  in[1] = o.in2;
  out[0] = o.out;
  values[0] = o.in1 != NONE ? p->instances[o.in1].value : 0;
  values[1] = o.in2 != NONE ? p->instances[o.in2].value : 0;
  values[2] = o.out != NONE ? p->instances[o.out].value : 0;
  if (o.in1 != NONE) accesses[n++] = (heddle__access){o.in1, HEDDLE__ACCESS_READ};
  if (o.in2 != NONE && o.in2 != o.in1) accesses[n++] = (heddle__access){o.in2, HEDDLE__ACCESS_READ};
  if (o.out != NONE) accesses[n++] = (heddle__access){o.out, HEDDLE__ACCESS_WRITE};
  if (o.work != NONE) accesses[n++] = (heddle__access){o.work, HEDDLE__ACCESS_WRITE};
  p->regions[region] =
      (heddle__region){.device = n > 0 ? p->spaces[p->instances[accesses[0].instance].space].device : 0,
                       .label = "node",
                       .n_inputs = (o.in1 != NONE) + (o.in2 != NONE),
                       .n_outputs = o.out != NONE ? 1 : 0,
                       .inputs = values,
                       .outputs = values + 2,
                       .offers = offer,
                       .n_offers = 1};
  p->steps[s] = (heddle__step){.kind = HEDDLE__STEP_OP,
                               .region = region,
                               .src = NONE,
                               .dst = NONE,
                               .workspace = o.work,
                               .in = in,
                               .out = out,
                               .accesses = accesses,
                               .n_accesses = n,
                               .stream = o.stream,
                               .seq = seq,
                               .n_waits = n_waits,
                               .waits = waits};
  return s;
}

static inline void allow_in_place(maker *m, uint32_t step, const int32_t *pairs, uint64_t n) {
  heddle__offer *offer = &m->plan->regions[m->plan->steps[step].region].offers[0];
  offer->in_place = pairs;
  offer->n_in_place = n;
}

static const int32_t first_only[] = {0, 0};
static const int32_t both[] = {0, 0, 1, 0};

static inline bool uses(const heddle__step *s, uint32_t instance) {
  for (uint32_t k = 0; k < s->n_accesses; k++)
    if (s->accesses[k].instance == instance) return true;
  return false;
}

/* All uses of a come before all uses of b, by the closure of streams and waits; a step that may be both is allowed
 * where it writes b in place over a. */
static inline bool ordered(const heddle__plan *p, const bool *after, uint32_t a, uint32_t b) {
  for (uint32_t x = 0; x < p->n_steps; x++) {
    if (!uses(&p->steps[x], a)) continue;
    for (uint32_t y = 0; y < p->n_steps; y++) {
      if (!uses(&p->steps[y], b) || after[x * p->n_steps + y]) continue;
      const heddle__offer *offer = p->regions[p->steps[x].region].offers;
      bool taken_over = x == y && offer->n_in_place > 0 && p->steps[x].out[0] == b &&
                        p->instances[a].bytes == p->instances[b].bytes &&
                        p->instances[a].offset == p->instances[b].offset;
      if (!taken_over) return false;
    }
  }
  return true;
}

static inline void check_overlaps(const heddle__plan *p) {
  static bool after[CHECKED * CHECKED];
  uint32_t n = p->n_steps;
  assert_true(n <= CHECKED);
  memset(after, 0, sizeof after);
  for (uint32_t y = 0; y < n; y++) {
    for (uint32_t x = 0; x < y; x++) {
      bool direct = p->steps[x].stream == p->steps[y].stream;
      for (uint32_t k = 0; k < p->steps[y].n_waits; k++) direct = direct || p->steps[y].waits[k].step == x;
      if (!direct) continue;
      for (uint32_t w = 0; w < n; w++) after[w * n + y] = after[w * n + y] || w == x || after[w * n + x];
    }
  }
  for (uint32_t a = 0; a < p->n_instances; a++) {
    for (uint32_t b = a + 1; b < p->n_instances; b++) {
      const heddle__instance *x = &p->instances[a], *y = &p->instances[b];
      if (x->alloc != y->alloc || x->offset >= y->offset + y->bytes || y->offset >= x->offset + x->bytes) continue;
      if (!ordered(p, after, a, b) && !ordered(p, after, b, a))
        fail_msg("instances %u and %u share bytes and are not ordered", a, b);
    }
  }
}

static inline void check_ranges(const heddle__plan *p) {
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const heddle__instance *x = &p->instances[i];
    assert_in_range(x->alloc, 0, p->n_allocs - 1);
    const heddle__allocation *a = &p->allocs[x->alloc];
    assert_int_equal(a->space, x->space);
    assert_true(x->offset + x->bytes <= a->bytes);
    assert_int_equal(x->offset % p->spaces[x->space].align, 0);
    assert_int_equal(x->offset % x->align, 0);
    assert_int_equal(a->align % x->align, 0);
    assert_true(p->devices[p->spaces[a->space].device].dev->desc.max_buffer_bytes == 0 ||
                a->bytes <= p->devices[p->spaces[a->space].device].dev->desc.max_buffer_bytes);
  }
}

static inline void place(maker *m) {
  heddle_error err = {0};
  if (heddle__pass_storage(m->plan, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  check_ranges(m->plan);
  if (m->plan->n_steps <= CHECKED) check_overlaps(m->plan);
  if (heddle__pass_prove(m->plan, &err) != HEDDLE_OK) fail_msg("%s", err.text);
}

static inline void finish(maker *m) {
  heddle__plan_free(m->plan);
  assert_int_equal(heddle__alloc_live(), 0);
}

static inline uint64_t total(const maker *m, uint32_t space) {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < m->plan->n_allocs; k++)
    if (m->plan->allocs[k].space == space) sum += m->plan->allocs[k].bytes;
  return sum;
}

static inline uint64_t offset_of(const maker *m, uint32_t instance) {
  return m->plan->instances[instance].offset;
}

/* A row of n steps on one stream, each reading what the one before wrote; gives the first instance. */
static inline uint32_t chain(maker *m, uint32_t n, uint32_t space, uint64_t bytes) {
  uint32_t first = temp(m, space, bytes);
  add(m, (op){0, NONE, NONE, NONE, NONE, first, NONE});
  for (uint32_t k = 1; k < n; k++) add(m, (op){0, NONE, NONE, first + k - 1, NONE, temp(m, space, bytes), NONE});
  return first;
}

#endif
