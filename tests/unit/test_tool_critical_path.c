/* The critical path that heddle run --profile prints, of runs made up by hand and of random ones: it follows what ended
 * last, its parts and what lies between them make up the whole time, and clocks that contradict the order do no harm. */
#include "cases.h"

#include "tools/critical_path.c"

enum { MOST = 64 };

/* Steps in order of their start, as the tool hands them over. */
static size_t find(path_step *steps, uint32_t n, path_part *out) {
  uint32_t order[MOST], n_ran = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!steps[i].ran) continue;
    uint32_t at = n_ran++;
    for (; at > 0 && steps[order[at - 1]].start > steps[i].start; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  return critical_path(steps, order, n_ran, out);
}

static void same(const path_part *part, uint32_t step, path_by by, uint64_t start, uint64_t takes, uint64_t busy,
                 uint64_t gap) {
  assert_int_equal(part->step, step);
  assert_int_equal(part->by, by);
  assert_int_equal(part->start, start);
  assert_int_equal(part->takes, takes);
  assert_int_equal(part->busy, busy);
  assert_int_equal(part->gap, gap);
}

/* The calling thread runs 0 and 1, a device runs 2 once 0 is over, and 3 needs 2. While 2 could have been sent, the
 * thread was in step 1 for 12 of the 15 ns. */
static void follows_what_ended_last(void **state) {
  (void)state;
  const path_wait on_0 = {0, PATH_HOST}, on_2 = {2, PATH_FENCE};
  path_step steps[5] = {{.start = 100, .end = 110, .is_host = true, .ran = true},
                        {.start = 112, .end = 124, .is_host = true, .ran = true},
                        {.start = 125, .end = 160, .stream = 1, .ran = true, .waits = &on_0, .n_waits = 1},
                        {.start = 170, .end = 180, .is_host = true, .ran = true, .waits = &on_2, .n_waits = 1},
                        {.stream = 0, .is_host = true}};
  path_part path[MOST];
  assert_int_equal(find(steps, 5, path), 3);
  same(&path[0], 0, PATH_BEGIN, 100, 10, 0, 0);
  same(&path[1], 2, PATH_HOST, 125, 35, 12, 3);
  same(&path[2], 3, PATH_FENCE, 170, 10, 0, 10);
}

/* The path begins on a device whose first step was sent late: the thread was busy for 30 of those 33 ns. What a device
 * does between two steps that were sent together is not the thread's. */
static void begins_late(void **state) {
  (void)state;
  path_step steps[4] = {{.start = 0, .end = 30, .is_host = true, .ran = true},
                        {.start = 33, .end = 50, .stream = 1, .ran = true},
                        {.start = 52, .end = 56, .stream = 1, .ran = true},
                        {.start = 40, .end = 55, .is_host = true, .ran = true}};
  path_part path[MOST];
  assert_int_equal(find(steps, 4, path), 2);
  same(&path[0], 1, PATH_BEGIN, 33, 17, 30, 3);
  same(&path[1], 2, PATH_STREAM, 52, 4, 0, 2);
}

/* Two clocks: what has to come first ends later than its follower starts, or even than it ends. */
static void cuts_where_clocks_contradict(void **state) {
  (void)state;
  const path_wait on_0 = {0, PATH_EVENT}, on_1 = {1, PATH_EVENT};
  path_step steps[3] = {{.start = 10, .end = 30, .stream = 0, .ran = true},
                        {.start = 25, .end = 90, .stream = 1, .ran = true, .waits = &on_0, .n_waits = 1},
                        {.start = 70, .end = 91, .stream = 2, .ran = true, .waits = &on_1, .n_waits = 1}};
  path_part path[MOST];
  assert_int_equal(find(steps, 3, path), 3);
  same(&path[0], 0, PATH_BEGIN, 10, 15, 0, 0);
  same(&path[1], 1, PATH_EVENT, 25, 45, 0, 0);
  same(&path[2], 2, PATH_EVENT, 70, 21, 0, 0);
  steps[1].start = 5; /* before everything */
  steps[0].start = 8;
  assert_int_equal(find(steps, 3, path), 3);
  same(&path[0], 0, PATH_BEGIN, 5, 0, 0, 0);
  same(&path[1], 1, PATH_EVENT, 5, 65, 0, 0);
}

static void nothing_ran(void **state) {
  (void)state;
  path_step steps[2] = {{.is_host = true}, {.stream = 1}};
  path_part path[MOST];
  assert_int_equal(find(steps, 2, path), 0);
}

static uint32_t draw(uint64_t *seed, uint32_t below) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*seed >> 33) % below;
}

/* 500 runs on up to four streams, each step after all that it has to come after: parts touch, their sum is the whole,
 * and each follows a step that it has to come after, of which none ended later. */
static void adds_up(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int round = 0; round < 500; round++) {
    path_step steps[MOST] = {0};
    path_wait waits[MOST][2];
    const uint32_t n = 1 + draw(&seed, MOST - 1), streams = 1 + draw(&seed, 4);
    uint64_t thread = 1000, first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < n; i++) {
      path_step *s = &steps[i];
      *s = (path_step){.waits = waits[i], .stream = draw(&seed, streams), .ran = draw(&seed, 16) != 0};
      s->is_host = s->stream < 2;
      s->start = s->is_host ? thread : 1000;
      for (uint32_t k = 0; k < i; k++)
        if (steps[k].ran && steps[k].stream == s->stream && steps[k].end > s->start) s->start = steps[k].end;
      while (i > 0 && s->n_waits < draw(&seed, 3)) {
        const path_wait wait = {draw(&seed, i), draw(&seed, 2) == 0 ? PATH_EVENT : PATH_FENCE};
        waits[i][s->n_waits++] = wait;
        if (steps[wait.step].ran && steps[wait.step].end > s->start) s->start = steps[wait.step].end;
        if (s->n_waits == 2) break;
      }
      s->start += draw(&seed, 20);
      s->end = s->start + draw(&seed, 100);
      if (!s->ran) continue;
      if (s->is_host) thread = s->end;
      if (s->start < first) first = s->start;
      if (s->end > last) last = s->end;
    }
    path_part path[MOST];
    const size_t parts = find(steps, n, path);
    uint64_t at = first;
    for (size_t i = 0; i < parts; i++) {
      const path_step *s = &steps[path[i].step];
      at += path[i].busy + path[i].gap;
      assert_int_equal(path[i].start, at);
      assert_int_equal(path[i].start, s->start);
      assert_int_equal(path[i].takes, s->end - s->start);
      at += path[i].takes;
      uint64_t latest = 0;
      bool any = false, follows = false;
      for (uint32_t k = 0; k < n; k++) {
        bool before = steps[k].ran && k < path[i].step && steps[k].stream == s->stream;
        for (size_t w = 0; w < s->n_waits; w++) before = before || (steps[k].ran && s->waits[w].step == k);
        if (!before) continue;
        any = true;
        if (steps[k].end > latest) latest = steps[k].end;
        follows = follows || (i > 0 && path[i - 1].step == k);
      }
      assert_int_equal(any, path[i].by != PATH_BEGIN);
      assert_int_equal(any, i > 0);
      assert_true(!any || (follows && steps[path[i - 1].step].end == latest));
    }
    assert_true(parts > 0 ? at == last : first == UINT64_MAX);
  }
}

CASES(CASE(follows_what_ended_last), CASE(begins_late), CASE(cuts_where_clocks_contradict), CASE(nothing_ran),
      CASE(adds_up))
