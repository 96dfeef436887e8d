/* tests/executor/test_storage.c: the storage pass: who may share bytes with whom, in place and one after
 * another, and what has bytes of its own. */
#include "executor/storage_rig.h"

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

/* A reader on another stream that nothing waits for keeps a value alive to the end. */
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

/* An output on the host, of an alignment that bound memory is asked for. */
static uint32_t output(maker *m, uint64_t bytes, uint64_t align) {
  uint32_t i = temp(m, 0, bytes);
  m->plan->instances[i].role = HEDDLE__ROLE_OUTPUT;
  m->plan->instances[i].align = align;
  m->plan->values[m->plan->instances[i].value].align = align;
  return i;
}

static bool shares(const maker *m, uint32_t instance, uint32_t other) {
  return m->plan->instances[instance].alloc == m->plan->instances[other].alloc;
}

/* Values in a row take turns between the output's bytes and one place more. */
static void an_output_lends_its_bytes_before_it_is_written(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= 6; n++) {
    maker *m = start(1);
    uint32_t first = chain(m, n, 0, 300), out = output(m, 300, 64);
    add(m, (op){0, NONE, NONE, first + n - 1, NONE, out, NONE});
    place(m);
    for (uint32_t k = 0; k < n; k++) assert_int_equal(shares(m, first + k, out), (n - k) % 2 == 0);
    assert_int_equal(total(m, 0), 320 + 320);
    finish(m);
  }
}

static void what_does_not_fit_an_output_is_not_in_it(void **state) {
  (void)state;
  maker *m = start(2);
  /* larger than the output; as large as it with the room behind it; both end before it is written */
  uint32_t large = temp(m, 0, 301), last = temp(m, 0, 40), out = output(m, 300, 64);
  add(m, (op){0, NONE, NONE, NONE, NONE, large, NONE});
  add(m, (op){0, NONE, NONE, large, NONE, last, NONE});
  add(m, (op){0, NONE, NONE, last, NONE, out, NONE});
  place(m);
  assert_false(shares(m, large, out) || shares(m, last, out));
  finish(m);

  m = start(2); /* read by a stream that nothing waits for */
  uint32_t a = temp(m, 0, 300), b = temp(m, 0, 300);
  out = output(m, 300, 64);
  uint32_t made = add(m, (op){0, NONE, NONE, NONE, NONE, a, NONE});
  uint32_t other = temp(m, 0, 300);
  add(m, (op){0, NONE, NONE, a, NONE, b, NONE});
  uint32_t reads = add(m, (op){1, made, NONE, a, NONE, other, NONE});
  add(m, (op){0, NONE, NONE, b, NONE, out, NONE});
  add(m, (op){0, reads, NONE, other, NONE, NONE, NONE});
  place(m);
  assert_false(shares(m, a, out) || shares(m, other, out));
  finish(m);

  m = start(1); /* memory that is bound in place of it may be less aligned than the space */
  uint32_t first = chain(m, 3, 0, 300);
  out = output(m, 300, 32);
  add(m, (op){0, NONE, NONE, first + 2, NONE, out, NONE});
  place(m);
  for (uint32_t k = 0; k < 3; k++) assert_false(shares(m, first + k, out));
  finish(m);

  m = start(1);
  first = chain(m, 3, 0, 300);
  out = output(m, 300, 64);
  m->plan->req.no_reuse = true;
  add(m, (op){0, NONE, NONE, first + 2, NONE, out, NONE});
  place(m);
  for (uint32_t k = 0; k < 3; k++) assert_false(shares(m, first + k, out));
  finish(m);
}

/* Only what the host computes in: pages of others may be where bound memory cannot be. */
static void outputs_of_other_devices_lend_nothing(void **state) {
  (void)state;
  maker *m = start(1);
  uint32_t first = chain(m, 3, 2, 300), out = output(m, 300, 64);
  m->plan->instances[out].space = 2;
  add(m, (op){0, NONE, NONE, first + 2, NONE, out, NONE});
  place(m);
  for (uint32_t k = 0; k < 3; k++) assert_false(shares(m, first + k, out));
  finish(m);
}

CASES(CASE(reuses_bytes_of_what_is_over), CASE(keeps_unordered_values_apart),
      CASE(reuses_bytes_of_another_stream_after_a_wait), CASE(waits_for_every_reader),
      CASE(writes_in_place_where_the_offer_allows_it),
      CASE(one_value_twice_is_written_in_place_when_both_pairs_allow_it), CASE(does_not_write_over_what_is_still_read),
      CASE(an_input_is_never_written_in_place), CASE(gives_what_outlives_a_run_its_own),
      CASE(a_workspace_lives_in_its_step), CASE(an_output_lends_its_bytes_before_it_is_written),
      CASE(what_does_not_fit_an_output_is_not_in_it), CASE(outputs_of_other_devices_lend_nothing))
