/* tests/executor/test_storage.c: the storage pass on plans made by hand: who may share bytes with whom.
 * Every placement is also compared with the transitive closure of the plan's waits, and handed to prove. */
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

static heddle_status no_view(heddle_pdevice *dev, heddle_pbuffer *parent, uint64_t offset, uint64_t bytes,
                             heddle_pbuffer **out, heddle_error *err) {
  (void)dev, (void)parent, (void)offset, (void)bytes, (void)out, (void)err;
  return HEDDLE_EUNSUPPORTED;
}

static maker *start(uint32_t n_streams) {
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
  spaces[0] = (heddle__space){0, HEDDLE_MEMORY_DEVICE, true, true, 64};
  spaces[1] = (heddle__space){1, HEDDLE_MEMORY_DEVICE, false, true, 256};
  spaces[2] = (heddle__space){1, HEDDLE_MEMORY_PINNED, true, true, 64};
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
static uint32_t temp(maker *m, uint32_t space, uint64_t bytes) {
  static char names[MOST_INSTANCES][16];
  heddle__plan *p = m->plan;
  uint32_t v = p->n_values++, i = p->n_instances++;
  snprintf(names[v], sizeof names[v], "v%u", v);
  p->values[v] = (heddle__value){.name = names[v], .same_as = v, .size = bytes, .align = 1, .used = true};
  p->instances[i] = (heddle__instance){.value = v, .space = space, .bytes = bytes, .align = 1};
  return i;
}

static uint32_t workspace(maker *m, uint32_t space, uint64_t bytes) {
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

static uint32_t add(maker *m, op o) {
  heddle__plan *p = m->plan;
  uint32_t s = p->n_steps++, n = 0, n_waits = 0;
  heddle__access *accesses = heddle__plan_alloc(p, 4, sizeof *accesses);
  heddle__wait *waits = heddle__plan_alloc(p, 2, sizeof *waits);
  heddle__offer *offer = heddle__plan_alloc(p, 1, sizeof *offer);
  uint32_t *in = heddle__plan_alloc(p, 2, sizeof *in), *out = heddle__plan_alloc(p, 1, sizeof *out);
  assert_true(accesses && waits && offer && in && out);
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
  if (o.in1 != NONE) accesses[n++] = (heddle__access){o.in1, HEDDLE__ACCESS_READ};
  if (o.in2 != NONE && o.in2 != o.in1) accesses[n++] = (heddle__access){o.in2, HEDDLE__ACCESS_READ};
  if (o.out != NONE) accesses[n++] = (heddle__access){o.out, HEDDLE__ACCESS_WRITE};
  if (o.work != NONE) accesses[n++] = (heddle__access){o.work, HEDDLE__ACCESS_WRITE};
  p->regions[region] =
      (heddle__region){.device = n > 0 ? p->spaces[p->instances[accesses[0].instance].space].device : 0,
                       .label = "node",
                       .n_inputs = (o.in1 != NONE) + (o.in2 != NONE),
                       .n_outputs = o.out != NONE ? 1 : 0,
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

static void allow_in_place(maker *m, uint32_t step, const int32_t *pairs, uint64_t n) {
  heddle__offer *offer = &m->plan->regions[m->plan->steps[step].region].offers[0];
  offer->in_place = pairs;
  offer->n_in_place = n;
}

static const int32_t first_only[] = {0, 0};
static const int32_t both[] = {0, 0, 1, 0};

static bool uses(const heddle__step *s, uint32_t instance) {
  for (uint32_t k = 0; k < s->n_accesses; k++)
    if (s->accesses[k].instance == instance) return true;
  return false;
}

/* All uses of a come before all uses of b, by the closure of streams and waits; a step that may be both is allowed
 * where it writes b in place over a. */
static bool ordered(const heddle__plan *p, const bool *after, uint32_t a, uint32_t b) {
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

static void check_overlaps(const heddle__plan *p) {
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

static void check_ranges(const heddle__plan *p) {
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

static void place(maker *m) {
  heddle_error err = {0};
  if (heddle__pass_storage(m->plan, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  check_ranges(m->plan);
  if (m->plan->n_steps <= CHECKED) check_overlaps(m->plan);
  if (heddle__pass_prove(m->plan, &err) != HEDDLE_OK) fail_msg("%s", err.text);
}

static void finish(maker *m) {
  heddle__plan_free(m->plan);
  assert_int_equal(heddle__alloc_live(), 0);
}

static uint64_t total(const maker *m, uint32_t space) {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < m->plan->n_allocs; k++)
    if (m->plan->allocs[k].space == space) sum += m->plan->allocs[k].bytes;
  return sum;
}

static uint64_t offset_of(const maker *m, uint32_t instance) {
  return m->plan->instances[instance].offset;
}

/* A row of n steps on one stream, each reading what the one before wrote; gives the first instance. */
static uint32_t chain(maker *m, uint32_t n, uint32_t space, uint64_t bytes) {
  uint32_t first = temp(m, space, bytes);
  add(m, (op){0, NONE, NONE, NONE, NONE, first, NONE});
  for (uint32_t k = 1; k < n; k++) add(m, (op){0, NONE, NONE, first + k - 1, NONE, temp(m, space, bytes), NONE});
  return first;
}

static void reuses_bytes_of_what_is_over(void **state) {
  (void)state;
  maker *m = start(1);
  uint32_t a = chain(m, 5, 1, 1000);
  place(m);
  assert_int_equal(m->plan->n_allocs, 1);
  assert_int_equal(m->plan->allocs[0].kind, HEDDLE__ALLOC_ARENA);
  assert_int_equal(m->plan->allocs[0].instance, NONE);
  assert_int_equal(m->plan->allocs[0].bytes, 2048);
  assert_int_equal(offset_of(m, a), offset_of(m, a + 2));
  assert_int_not_equal(offset_of(m, a), offset_of(m, a + 1));
  finish(m);
}

/* In the list, all of stream 0 comes before all of stream 1; nothing orders them. */
static void keeps_unordered_values_apart(void **state) {
  (void)state;
  maker *m = start(2);
  for (uint32_t t = 0; t < 2; t++) {
    uint32_t a = temp(m, 1, 256);
    add(m, (op){t, NONE, NONE, NONE, NONE, a, NONE});
    add(m, (op){t, NONE, NONE, a, NONE, temp(m, 1, 256), NONE});
  }
  place(m);
  assert_int_equal(total(m, 1), 4 * 256);
  finish(m);
}

static void reuses_bytes_of_another_stream_after_a_wait(void **state) {
  (void)state;
  maker *m = start(2);
  uint32_t a = temp(m, 1, 256), b = temp(m, 1, 256), c = temp(m, 1, 256);
  add(m, (op){0, NONE, NONE, NONE, NONE, a, NONE});
  uint32_t reads = add(m, (op){0, NONE, NONE, a, NONE, b, NONE});
  add(m, (op){1, reads, NONE, b, NONE, c, NONE});
  place(m);
  assert_int_equal(total(m, 1), 2 * 256);
  assert_int_equal(offset_of(m, a), offset_of(m, c));
  finish(m);
}

/* A reader on another stream that nobody waits for keeps a value alive to the end. */
static void waits_for_every_reader(void **state) {
  (void)state;
  maker *m = start(2);
  uint32_t a = temp(m, 1, 256), b = temp(m, 1, 256), c = temp(m, 1, 256), d = temp(m, 1, 256);
  uint32_t writes = add(m, (op){0, NONE, NONE, NONE, NONE, a, NONE});
  add(m, (op){1, writes, NONE, a, NONE, b, NONE});
  add(m, (op){0, NONE, NONE, a, NONE, c, NONE});
  add(m, (op){0, NONE, NONE, c, NONE, d, NONE});
  place(m);
  assert_int_equal(total(m, 1), 4 * 256);
  finish(m);
}

static void writes_in_place_where_the_offer_allows_it(void **state) {
  (void)state;
  maker *m = start(1);
  chain(m, 4, 1, 1024);
  for (uint32_t s = 1; s < 4; s++) allow_in_place(m, s, first_only, 1);
  place(m);
  assert_int_equal(total(m, 1), 1024);
  finish(m);
}

static void one_value_twice_is_written_in_place_when_both_pairs_allow_it(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    maker *m = start(1);
    uint32_t a = temp(m, 1, 512), b = temp(m, 1, 512);
    add(m, (op){0, NONE, NONE, NONE, NONE, a, NONE});
    allow_in_place(m, add(m, (op){0, NONE, NONE, a, a, b, NONE}), k == 0 ? both : first_only, k == 0 ? 2 : 1);
    place(m);
    assert_int_equal(total(m, 1), k == 0 ? 512 : 1024);
    finish(m);
  }
}

static void does_not_write_over_what_is_still_read(void **state) {
  (void)state;
  for (int k = 0; k < 3; k++) {
    maker *m = start(2);
    uint32_t a = temp(m, 1, 512), b = temp(m, 1, k == 2 ? 256 : 512), c = temp(m, 1, 512);
    uint32_t writes = add(m, (op){0, NONE, NONE, NONE, NONE, a, NONE});
    if (k == 0) add(m, (op){1, writes, NONE, a, NONE, c, NONE}); /* unordered reader */
    allow_in_place(m, add(m, (op){0, NONE, NONE, a, NONE, b, NONE}), first_only, 1);
    if (k == 1) add(m, (op){0, NONE, NONE, a, b, c, NONE});    /* later reader */
    if (k == 2) add(m, (op){0, NONE, NONE, b, NONE, c, NONE}); /* another size */
    place(m);
    assert_true(offset_of(m, a) != offset_of(m, b));
    finish(m);
  }
}

static void an_input_is_never_written_in_place(void **state) {
  (void)state;
  maker *m = start(1);
  uint32_t a = temp(m, 0, 512), b = temp(m, 0, 512);
  m->plan->instances[a].role = HEDDLE__ROLE_INPUT;
  allow_in_place(m, add(m, (op){0, NONE, NONE, a, NONE, b, NONE}), first_only, 1);
  place(m);
  assert_int_not_equal(m->plan->instances[a].alloc, m->plan->instances[b].alloc);
  finish(m);
}

static void gives_what_outlives_a_run_its_own(void **state) {
  (void)state;
  static const heddle__role roles[] = {HEDDLE__ROLE_INPUT, HEDDLE__ROLE_CONSTANT, HEDDLE__ROLE_OUTPUT};
  static const heddle__alloc_kind kinds[] = {HEDDLE__ALLOC_INPUT, HEDDLE__ALLOC_CONSTANT, HEDDLE__ALLOC_OUTPUT};
  maker *m = start(1);
  uint32_t i[3];
  for (int k = 0; k < 3; k++) {
    i[k] = temp(m, k == 2 ? 0 : 1, 300);
    m->plan->instances[i[k]].role = roles[k];
  }
  m->plan->instances[i[1]].align = 1024;
  add(m, (op){0, NONE, NONE, i[0], i[1], i[2], NONE});
  place(m);
  assert_int_equal(m->plan->n_allocs, 3);
  for (int k = 0; k < 3; k++) {
    const heddle__allocation *a = &m->plan->allocs[m->plan->instances[i[k]].alloc];
    assert_int_equal(a->kind, kinds[k]);
    assert_int_equal(a->instance, i[k]);
    assert_int_equal(a->bytes, k == 2 ? 320 : 512);
    assert_int_equal(a->align, k == 2 ? 64 : k == 1 ? 1024 : 256);
    assert_int_equal(offset_of(m, i[k]), 0);
  }
  finish(m);
}

static void a_workspace_lives_in_its_step(void **state) {
  (void)state;
  maker *m = start(1);
  uint32_t a = temp(m, 1, 256), b = temp(m, 1, 256), w = workspace(m, 1, 512), v = workspace(m, 1, 512);
  add(m, (op){0, NONE, NONE, NONE, NONE, a, w});
  add(m, (op){0, NONE, NONE, a, NONE, b, v});
  place(m);
  assert_int_equal(offset_of(m, w), offset_of(m, v));
  assert_int_equal(total(m, 1), 256 + 256 + 512);
  finish(m);
}

static void slots_are_whole_buffers(void **state) {
  (void)state;
  maker *m = start(1);
  m->plan->req.slots = true;
  uint32_t a = temp(m, 1, 100), b = temp(m, 1, 5000), c = temp(m, 1, 3000), d = temp(m, 1, 200);
  add(m, (op){0, NONE, NONE, NONE, NONE, a, NONE});
  add(m, (op){0, NONE, NONE, a, NONE, b, NONE});
  add(m, (op){0, NONE, NONE, b, NONE, c, NONE});
  add(m, (op){0, NONE, NONE, c, NONE, d, NONE});
  place(m);
  assert_int_equal(m->plan->n_allocs, 2);
  for (uint32_t k = 0; k < 2; k++) assert_int_equal(m->plan->allocs[k].kind, HEDDLE__ALLOC_SLOT);
  for (uint32_t i = a; i <= d; i++) assert_int_equal(offset_of(m, i), 0);
  assert_int_equal(m->plan->instances[b].alloc, m->plan->instances[d].alloc);
  assert_int_equal(total(m, 1), 5120 + 3072);
  finish(m);
}

/* The host's arena stays one, unless bare code touches it. */
static void bare_offers_get_slots_where_there_are_no_views(void **state) {
  (void)state;
  for (int k = 0; k < 3; k++) {
    maker *m = start(1);
    uint32_t a = temp(m, 1, 256), b = temp(m, 1, 256), c = temp(m, 0, 64), d = temp(m, 0, 64);
    add(m, (op){0, NONE, NONE, NONE, NONE, a, NONE});
    uint32_t bare = add(m, (op){0, NONE, NONE, a, NONE, b, NONE});
    add(m, (op){0, NONE, NONE, NONE, NONE, c, NONE});
    add(m, (op){0, NONE, NONE, c, k == 2 ? b : NONE, d, NONE});
    if (k == 2) bare = m->plan->n_steps - 1;
    m->plan->regions[m->plan->steps[bare].region].offers[0].flags = HEDDLE_OFFER_BARE;
    if (k > 0) m->tables[k == 1 ? 1 : 0].memory.view = NULL;
    place(m);
    bool slots = m->plan->allocs[m->plan->instances[a].alloc].kind == HEDDLE__ALLOC_SLOT;
    bool host_slots = m->plan->allocs[m->plan->instances[c].alloc].kind == HEDDLE__ALLOC_SLOT;
    assert_int_equal(slots, k > 0);
    assert_int_equal(host_slots, k == 2);
    finish(m);
  }
}

static void splits_arenas_at_the_largest_buffer(void **state) {
  (void)state;
  static const uint64_t limits[] = {4096, 4000, 1280};
  for (size_t k = 0; k < sizeof limits / sizeof limits[0]; k++) {
    maker *m = start(3);
    m->devices[1].desc.max_buffer_bytes = limits[k];
    for (uint32_t t = 0; t < 3; t++) {
      for (uint32_t n = 0; n < 5; n++) {
        uint32_t a = temp(m, 1, 300 + 240 * n - 60 * t), b = temp(m, 1, 1200);
        if (n == 3) m->plan->instances[a].align = 512;
        add(m, (op){t, NONE, NONE, NONE, NONE, a, NONE});
        add(m, (op){t, NONE, NONE, a, NONE, b, NONE});
      }
    }
    m->plan->req.no_reuse = k == 2;
    place(m);
    assert_true(m->plan->n_allocs > 1);
    finish(m);
  }
}

static void refuses_what_no_buffer_holds(void **state) {
  (void)state;
  heddle_error err = {0};
  for (int k = 0; k < 3; k++) {
    maker *m = start(1);
    m->devices[1].desc.max_buffer_bytes = 4096;
    uint32_t a = temp(m, 1, 256), b = temp(m, 1, k == 2 ? 4096 : 4097), w = workspace(m, 1, k == 2 ? 9999 : 16);
    if (k == 1) m->plan->instances[b].role = HEDDLE__ROLE_OUTPUT;
    add(m, (op){0, NONE, NONE, NONE, NONE, a, NONE});
    add(m, (op){0, NONE, NONE, a, NONE, b, w});
    assert_int_equal(heddle__pass_storage(m->plan, &err), HEDDLE_ELIMIT);
    assert_non_null(strstr(err.text, k == 2 ? "workspace of node 'node'" : "value 'v1'"));
    assert_non_null(strstr(err.text, k == 2 ? "9999 bytes" : "4097 bytes"));
    assert_non_null(strstr(err.text, "acc:0"));
    assert_non_null(strstr(err.text, "4096"));
    finish(m);
  }
}

static void refuses_sizes_that_no_memory_has(void **state) {
  (void)state;
  heddle_error err = {0};
  maker *m = start(2);
  for (uint32_t k = 0; k < 8; k++) add(m, (op){k % 2, NONE, NONE, NONE, NONE, temp(m, 1, UINT64_C(1) << 59), NONE});
  assert_int_equal(heddle__pass_storage(m->plan, &err), HEDDLE_ELIMIT);
  m->plan->instances[3].bytes = UINT64_MAX - 3;
  assert_int_equal(heddle__pass_storage(m->plan, &err), HEDDLE_ELIMIT);
  finish(m);
}

static void keeps_alignment(void **state) {
  (void)state;
  static const uint64_t aligns[] = {1, 16, 4096, 512, 1, 1024};
  maker *m = start(2);
  for (uint32_t k = 0; k < 6; k++) {
    uint32_t a = temp(m, 1, 100 + 77 * k);
    m->plan->instances[a].align = aligns[k];
    add(m, (op){k % 2, NONE, NONE, NONE, NONE, a, NONE});
    add(m, (op){k % 2, NONE, NONE, a, NONE, temp(m, 1, 300), NONE});
  }
  place(m);
  assert_int_equal(m->plan->allocs[0].align, 4096);
  assert_int_equal(m->plan->allocs[0].bytes % 256, 0);
  finish(m);
}

static void no_reuse_gives_every_value_its_own(void **state) {
  (void)state;
  for (int slots = 0; slots < 2; slots++) {
    maker *m = start(1);
    m->plan->req.no_reuse = true;
    m->plan->req.slots = slots == 1;
    chain(m, 6, 1, 512);
    for (uint32_t s = 1; s < 6; s++) allow_in_place(m, s, first_only, 1);
    place(m);
    assert_int_equal(total(m, 1), 6 * 512);
    assert_int_equal(m->plan->n_allocs, slots == 1 ? 6 : 1);
    finish(m);
  }
}

static void takes_values_without_bytes_and_plans_without_steps(void **state) {
  (void)state;
  maker *m = start(1);
  chain(m, 3, 1, 0);
  uint32_t unused = temp(m, 1, 100);
  place(m);
  assert_int_equal(offset_of(m, unused), 0);
  assert_int_equal(total(m, 1), 256);
  finish(m);
  m = start(1);
  heddle_error err = {0};
  assert_int_equal(heddle__pass_storage(m->plan, &err), HEDDLE_OK);
  assert_int_equal(m->plan->n_allocs, 0);
  finish(m);
}

/* ---------------------------------------------------------------- seeded plans */

static uint32_t below(uint64_t *random, uint32_t n) {
  *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*random >> 33) % n;
}

static maker *random_plan(uint64_t seed, uint32_t n_steps) {
  static uint32_t writer[MOST_INSTANCES];
  uint64_t random = seed * 977 + 5;
  maker *m = start(1 + below(&random, 4));
  for (uint32_t k = 0; k < n_steps; k++) {
    uint32_t in[2] = {NONE, NONE}, wait[2] = {NONE, NONE}, n = m->plan->n_values;
    for (int j = 0; j < 2 && n > 0; j++) {
      if (below(&random, 3) == 0) continue;
      do in[j] = n - 1 - below(&random, n < 9 ? n : 9);
      while (m->plan->instances[in[j]].role == HEDDLE__ROLE_WORKSPACE);
      wait[j] = writer[in[j]];
    }
    uint64_t bytes = below(&random, 3) == 0 ? 1 + below(&random, 6000) : 2048;
    uint32_t out = temp(m, 1, bytes);
    writer[out] = add(m, (op){below(&random, m->plan->n_streams), wait[0], wait[1], in[0], in[1], out, NONE});
    if (below(&random, 2) == 0) allow_in_place(m, writer[out], both, m->plan->regions[writer[out]].n_inputs);
  }
  return m;
}

static void seeded_plans_are_proved(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 120; seed++) {
    maker *m = random_plan(seed, 4 + (uint32_t)seed % 90);
    m->plan->req.slots = seed % 5 == 4;
    if (seed % 7 == 6) m->devices[1].desc.max_buffer_bytes = 6200;
    place(m);
    finish(m);
  }
}

static void the_same_plan_gets_the_same_bytes(void **state) {
  (void)state;
  static uint64_t offsets[MOST_INSTANCES];
  for (int round = 0; round < 2; round++) {
    maker *m = random_plan(7, 300);
    place(m);
    for (uint32_t i = 0; i < m->plan->n_instances; i++) {
      if (round == 1) assert_int_equal(offsets[i], offset_of(m, i));
      offsets[i] = offset_of(m, i);
    }
    finish(m);
  }
}

/* More pairs conflict than are kept as lists. */
static void many_values_of_streams_that_never_meet(void **state) {
  (void)state;
  maker *m = start(2);
  for (uint32_t t = 0; t < 2; t++) {
    for (uint32_t k = 0, last = NONE; k < 2200; k++) {
      uint32_t out = temp(m, 1, 256 * (1 + k % 3));
      add(m, (op){t, NONE, NONE, last, NONE, out, NONE});
      last = out;
    }
  }
  place(m);
  assert_int_equal(total(m, 1), 2 * (768 + 512 + 256));
  m->plan->req.slots = true;
  place(m);
  assert_int_equal(total(m, 1), 2 * (768 + 512 + 256));
  finish(m);
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  for (int slots = 0; slots < 2; slots++) {
    heddle_status s = HEDDLE_ENOMEM;
    for (uint64_t n = 1; s != HEDDLE_OK; n++) {
      heddle_error err = {0};
      maker *m = random_plan(3, 60);
      m->plan->req.slots = slots == 1;
      heddle__alloc_fail_at(n);
      s = heddle__pass_storage(m->plan, &err);
      heddle__alloc_fail_at(0);
      assert_true(s == HEDDLE_OK || s == HEDDLE_ENOMEM);
      assert_true(n < 1000);
      assert_int_equal(s != HEDDLE_OK, err.text[0] != '\0');
      finish(m);
    }
  }
}

CASES(CASE(reuses_bytes_of_what_is_over), CASE(keeps_unordered_values_apart),
      CASE(reuses_bytes_of_another_stream_after_a_wait), CASE(waits_for_every_reader),
      CASE(writes_in_place_where_the_offer_allows_it),
      CASE(one_value_twice_is_written_in_place_when_both_pairs_allow_it), CASE(does_not_write_over_what_is_still_read),
      CASE(an_input_is_never_written_in_place), CASE(gives_what_outlives_a_run_its_own),
      CASE(a_workspace_lives_in_its_step), CASE(slots_are_whole_buffers),
      CASE(bare_offers_get_slots_where_there_are_no_views), CASE(splits_arenas_at_the_largest_buffer),
      CASE(refuses_what_no_buffer_holds), CASE(refuses_sizes_that_no_memory_has), CASE(keeps_alignment),
      CASE(no_reuse_gives_every_value_its_own), CASE(takes_values_without_bytes_and_plans_without_steps),
      CASE(seeded_plans_are_proved), CASE(the_same_plan_gets_the_same_bytes),
      CASE(many_values_of_streams_that_never_meet), CASE(every_failed_allocation_is_an_error))
