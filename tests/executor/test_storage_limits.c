/* tests/executor/test_storage_limits.c: the storage pass: whole buffers instead of arenas, the largest buffer, alignment,
 * sizes that cannot be, and plans with nothing in them. */
#include "executor/storage_rig.h"

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

CASES(CASE(slots_are_whole_buffers), CASE(bare_offers_get_slots_where_there_are_no_views),
      CASE(splits_arenas_at_the_largest_buffer), CASE(refuses_what_no_buffer_holds),
      CASE(refuses_sizes_that_no_memory_has), CASE(keeps_alignment), CASE(no_reuse_gives_every_value_its_own),
      CASE(takes_values_without_bytes_and_plans_without_steps))
