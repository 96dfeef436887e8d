/* tools/profile.c: takes times of several runs, the order of their steps from the plan, and puts both together: medians
 * of steps, sums of operators, and the critical path of the run of median length. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text.h"

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_number(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

/* The lower one of two in the middle, so that it is always one that was seen. */
static uint64_t median(const uint64_t *values, uint64_t n, uint64_t *scratch) {
  memcpy(scratch, values, n * sizeof *values);
  qsort(scratch, n, sizeof *scratch, by_number);
  return scratch[(n - 1) / 2];
}

/* ---- the plan */

static path_by by_of(const char *word) {
  if (strcmp(word, "event") == 0) return PATH_EVENT;
  return strcmp(word, "fence") == 0 ? PATH_FENCE : PATH_HOST;
}

static const char *word_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

/* What a copy moves: the bytes that it writes. */
static uint64_t bytes_moved(const json_t *step) {
  static const char *const copies[] = {"h2d", "d2h", "d2d", "peer", "host_copy"};
  const char *kind = word_of(step, "kind");
  bool moves = false;
  json_int_t bytes = 0;
  size_t k;
  json_t *access;
  for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) moves = moves || strcmp(kind, copies[i]) == 0;
  if (!moves) return 0;
  json_array_foreach(json_object_get(step, "accesses"), k, access) if (strcmp(word_of(access, "mode"), "write") == 0)
      bytes += number_of(access, "bytes");
  return (uint64_t)bytes;
}

/* Order of the steps: streams and waits. Of a model in stages the steps are the n that the run gave, one after another. */
static int read_plan(profile *p, const json_t *plan, size_t n) {
  const json_t *steps = json_object_get(plan, "steps"), *streams = json_object_get(plan, "streams");
  size_t n_waits = 0, i, k;
  json_t *step, *wait;
  json_array_foreach(steps, i, step) n_waits += json_array_size(json_object_get(step, "waits"));
  p->n_steps = json_object_get(plan, "stages") != NULL ? n : json_array_size(steps);
  p->steps = calloc(p->n_steps + 1, sizeof *p->steps);
  p->times = calloc(p->n_steps + 1, sizeof *p->times);
  p->waits = calloc(n_waits + 1, sizeof *p->waits);
  if (p->steps == NULL || p->times == NULL || p->waits == NULL) return fail_text("run", "out of memory");
  path_wait *next = p->waits;
  for (i = 0; i < p->n_steps; i++) p->times[i].is_host = true; /* unless the plan says otherwise */
  json_array_foreach(steps, i, step) {
    path_step *t = &p->times[i];
    t->stream = (uint32_t)number_of(step, "stream");
    t->is_host = json_is_true(json_object_get(json_array_get(streams, t->stream), "host"));
    t->waits = next;
    json_array_foreach(json_object_get(step, "waits"), k, wait) if ((size_t)number_of(wait, "step") < i) *next++ =
        (path_wait){(uint32_t)number_of(wait, "step"), by_of(word_of(wait, "by"))};
    t->n_waits = (size_t)(next - t->waits);
    p->steps[i].bytes = bytes_moved(step);
  }
  return DONE;
}

/* Whether step b reads bytes of a value that step a wrote. */
static bool reads_from(const json_t *plan, uint32_t b, uint32_t a) {
  const json_t *steps = json_object_get(plan, "steps");
  size_t i, k;
  json_t *read, *written;
  json_array_foreach(json_object_get(json_array_get(steps, b), "accesses"), i, read) {
    if (strcmp(word_of(read, "mode"), "read") != 0) continue;
    json_array_foreach(json_object_get(json_array_get(steps, a), "accesses"), k,
                       written) if (strcmp(word_of(written, "mode"), "write") == 0 &&
                                    number_of(read, "value") == number_of(written, "value") &&
                                    number_of(read, "value") >= 0 &&
                                    number_of(read, "alloc") == number_of(written, "alloc") &&
                                    number_of(read, "offset") == number_of(written, "offset")) return true;
  }
  return false;
}

/* The plan as its JSON; NULL, and words on stderr, where there is none. */
static json_t *load_plan(session *s) {
  heddle_error err = {0};
  json_error_t wrong;
  char *text = NULL;
  if (heddle_executor_explain(s->ex, HEDDLE_EXPLAIN_JSON, &text, &err) != HEDDLE_OK) {
    fail("run", &err);
    return NULL;
  }
  json_t *plan = json_loads(text, 0, &wrong);
  heddle_free(text);
  if (plan == NULL) fail_text("run", "out of memory");
  return plan;
}

/* ---- runs */

/* One run without times of steps, by the host's clock. */
static int run_plain(session *s, uint64_t *ns) {
  heddle_error err = {0};
  const uint64_t start = now_ns();
  const heddle_status r = heddle_executor_run(s->ex, session_timeout(s), &err);
  *ns = now_ns() - start;
  return r == HEDDLE_OK ? DONE : session_run_failed(s, r, &err);
}

static int run_timed(session *s, profile *p, uint64_t run) {
  heddle_error err = {0};
  const heddle_profile_entry *e = NULL;
  size_t n = 0;
  if (heddle_executor_profile(s->ex, &e, &n, &err) != HEDDLE_OK) return fail("run", &err);
  uint64_t *starts = p->starts + run * p->n_steps, *ends = p->ends + run * p->n_steps;
  uint64_t first = UINT64_MAX, last = 0;
  for (size_t i = 0; i < p->n_steps; i++) starts[i] = UINT64_MAX;
  for (size_t i = 0; i < n; i++) {
    if (e[i].step >= p->n_steps) continue;
    profile_step *step = &p->steps[e[i].step];
    step->name = e[i].name;
    step->op = e[i].op;
    step->device = e[i].device;
    starts[e[i].step] = e[i].start_ns;
    ends[e[i].step] = e[i].end_ns > e[i].start_ns ? e[i].end_ns : e[i].start_ns;
    if (e[i].start_ns < first) first = e[i].start_ns;
    if (ends[e[i].step] > last) last = ends[e[i].step];
  }
  p->walls[run] = n > 0 ? last - first : 0;
  return DONE;
}

static uint64_t replays_of(session *s) {
  heddle_executor_stats stats = {.struct_size = sizeof stats};
  return heddle_executor_get_stats(s->ex, &stats, NULL) == HEDDLE_OK ? stats.replays : 0;
}

static int take_runs(session *s, profile *p) {
  p->walls = calloc(p->n_runs, sizeof *p->walls);
  p->plain = calloc(p->n_runs, sizeof *p->plain);
  p->starts = calloc(p->n_runs * p->n_steps + 1, sizeof *p->starts);
  p->ends = calloc(p->n_runs * p->n_steps + 1, sizeof *p->ends);
  if (p->walls == NULL || p->plain == NULL || p->starts == NULL || p->ends == NULL)
    return fail_text("run", "out of memory");
  int status = DONE;
  for (uint64_t run = 0; run < p->n_runs && status == DONE; run++) {
    progress("timed run %llu of %llu", (unsigned long long)run + 1, (unsigned long long)p->n_runs);
    const uint64_t replayed = replays_of(s);
    status = run_plain(s, &p->plain[run]);
    p->replays = replays_of(s) - replayed;
    if (status == DONE) status = run_timed(s, p, run);
  }
  progress_end();
  return status;
}

/* ---- what they tell */

typedef struct started {
  uint64_t start;
  uint32_t step;
} started;

static int by_start(const void *a, const void *b) {
  const started *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return x->step < y->step ? -1 : x->step > y->step;
}

/* Medians; the shown run; its steps in order. */
static int settle(profile *p) {
  uint64_t *scratch = calloc(p->n_runs, sizeof *scratch), *took = calloc(p->n_runs, sizeof *took);
  started *list = calloc(p->n_steps + 1, sizeof *list);
  p->order = calloc(p->n_steps + 1, sizeof *p->order);
  const bool room = scratch != NULL && took != NULL && list != NULL && p->order != NULL;
  if (room) {
    const uint64_t middle = median(p->walls, p->n_runs, scratch);
    p->plain_median = median(p->plain, p->n_runs, scratch);
    while (p->walls[p->shown] != middle) p->shown++;
  }
  for (uint32_t i = 0; room && i < p->n_steps; i++) {
    const uint64_t start = p->starts[p->shown * p->n_steps + i];
    if (start == UINT64_MAX) continue;
    for (uint64_t run = 0; run < p->n_runs; run++) {
      const size_t at = run * p->n_steps + i;
      took[run] = p->starts[at] != UINT64_MAX ? p->ends[at] - p->starts[at] : 0;
    }
    p->steps[i].median_ns = median(took, p->n_runs, scratch);
    p->times[i].ran = true;
    p->times[i].start = start;
    p->times[i].end = p->ends[p->shown * p->n_steps + i];
    list[p->n_ran++] = (started){start, i};
  }
  if (room) qsort(list, p->n_ran, sizeof *list, by_start);
  for (size_t i = 0; i < p->n_ran; i++) p->order[i] = list[i].step;
  free(list);
  free(took);
  free(scratch);
  return room ? DONE : fail_text("run", "out of memory");
}

static int by_operator(const void *a, const void *b) {
  const profile_operator *x = a, *y = b;
  const int order = strcmp(x->op, y->op);
  return order != 0 ? order : strcmp(x->device, y->device);
}

static int by_total(const void *a, const void *b) {
  const profile_operator *x = a, *y = b;
  if (x->total_ns != y->total_ns) return x->total_ns > y->total_ns ? -1 : 1;
  return by_operator(a, b);
}

static int sum_operators(profile *p) {
  profile_operator *list = calloc(p->n_ran + 1, sizeof *list);
  if (list == NULL) return fail_text("run", "out of memory");
  for (size_t i = 0; i < p->n_ran; i++) {
    const profile_step *step = &p->steps[p->order[i]];
    list[i] = (profile_operator){step->op, step->device, 1, step->median_ns};
    p->total_ns += step->median_ns;
  }
  qsort(list, p->n_ran, sizeof *list, by_operator);
  for (size_t i = 0; i < p->n_ran; i++) {
    profile_operator *before = p->n_operators > 0 ? &list[p->n_operators - 1] : NULL;
    if (before == NULL || by_operator(before, &list[i]) != 0) {
      list[p->n_operators++] = list[i];
      continue;
    }
    before->count++;
    before->total_ns += list[i].total_ns;
  }
  qsort(list, p->n_operators, sizeof *list, by_total);
  p->operators = list;
  return DONE;
}

static int find_path(profile *p, const json_t *plan) {
  p->path = calloc(p->n_ran + 1, sizeof *p->path);
  p->reads = calloc(p->n_ran + 1, sizeof *p->reads);
  if (p->path == NULL || p->reads == NULL) return fail_text("run", "out of memory");
  p->n_path = critical_path(p->times, p->order, p->n_ran, p->path);
  for (size_t i = 1; i < p->n_path; i++) p->reads[i] = reads_from(plan, p->path[i].step, p->path[i - 1].step);
  return DONE;
}

int profile_take(session *s, uint64_t n_runs, profile *out) {
  *out = (profile){.n_runs = n_runs};
  heddle_error err = {0};
  const heddle_profile_entry *e = NULL;
  size_t n = 0;
  if (heddle_executor_profile(s->ex, &e, &n, &err) != HEDDLE_OK) return fail("run", &err); /* makes what times need */
  json_t *plan = load_plan(s);
  if (plan == NULL) return FAILED;
  int status = read_plan(out, plan, n);
  if (status == DONE) status = take_runs(s, out);
  if (status == DONE) status = settle(out);
  if (status == DONE) status = sum_operators(out);
  if (status == DONE) status = find_path(out, plan);
  json_decref(plan);
  return status;
}

void profile_finish(profile *p) {
  void *const all[] = {p->walls, p->plain, p->steps, p->times,  p->order, p->operators,
                       p->path,  p->reads, p->waits, p->starts, p->ends};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
  *p = (profile){0};
}
