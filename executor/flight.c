/* executor/flight.c: which lane a call to an executor with several runs in flight is about, and how the values of inputs
 * come from one lane to the next. What a run is, and what becomes of it, each lane knows by itself. */
#include "executor/flight.h"

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"

#if HEDDLE_HAS_IN_FLIGHT

/* ---- begin and end */

static HEDDLE__COLD heddle_status make_lane(heddle_model *m, heddle__flight *f, uint32_t i, heddle_error *err) {
  heddle__flight_lane *l = &f->lanes[i];
  l->has = heddle__alloc(f->n_args, sizeof *l->has);
  if (l->has == NULL) return heddle__no_memory(err, "the inputs of a lane");
  heddle_status s = heddle__executor_single(m, &l->ex, err);
  if (s != HEDDLE_OK) return s;
  l->ex->lane_of = f;
  l->ex->lane = i;
  return HEDDLE_OK;
}

static HEDDLE__COLD void free_flight(heddle_executor *ex) {
  heddle__flight *f = ex->flight;
  for (uint32_t i = 0; f->lanes != NULL && i < f->n; i++)
    if (f->lanes[i].ex != NULL) heddle__drive_cancel(&f->lanes[i].ex->drive);
  for (uint32_t i = 0; f->lanes != NULL && i < f->n; i++) {
    heddle_executor_release(f->lanes[i].ex);
    heddle__free(f->lanes[i].has);
  }
  heddle__free(f->lanes);
  heddle__free(f->latest);
  heddle__free(f);
  heddle_model_release(ex->model);
  heddle__free(ex);
}

/* ---- inputs */

static heddle_executor *holder_of(const heddle_executor *ex, uint32_t arg) {
  const heddle__flight *f = ex->flight;
  return f->lanes[arg < f->n_args ? f->latest[arg].lane : 0].ex;
}

heddle_executor *heddle__flight_peer(heddle_executor *lane, uint32_t i) {
  const heddle__flight *f = lane->lane_of;
  if (f == NULL) return i == 0 ? lane : NULL;
  return i < f->n ? f->lanes[i].ex : NULL;
}

void heddle__flight_note(heddle_executor *lane, uint32_t arg) {
  heddle__flight *f = lane->lane_of;
  if (f == NULL) return;
  heddle__flight_lane *l = &f->lanes[lane->lane];
  if (l->seen == f->settings) l->seen++;
  l->has[arg] = ++f->settings;
  f->latest[arg] = (heddle__setting){f->settings, lane->lane};
}

/* Gives a lane what was set in others since. Their runs, which may be pending, only read it. */
static heddle_status bring_inputs(heddle__flight *f, heddle__flight_lane *l, heddle_error *err) {
  for (uint32_t i = 0; l->seen != f->settings && i < f->n_args; i++) {
    if (l->has[i] == f->latest[i].number) continue;
    const heddle__arg *from = &f->lanes[f->latest[i].lane].ex->args[i];
    heddle_status s = heddle__executor_set(l->ex, i, from->value, from->lent ? HEDDLE__LEND : HEDDLE__COPY, err);
    if (s != HEDDLE_OK) return s;
    l->has[i] = f->latest[i].number;
  }
  l->seen = f->settings;
  return HEDDLE_OK;
}

/* ---- lanes */

static heddle_status choose_lane(heddle_executor *ex, heddle__lane_use use, heddle_executor **out, heddle_error *err) {
  heddle__flight *f = ex->flight;
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < f->n; i++)
    if (atomic_load_explicit(&f->lanes[i].ex->dead, memory_order_acquire) != HEDDLE_OK) {
      *out = f->lanes[i].ex;
      return HEDDLE_OK;
    }
  uint64_t ended = atomic_load(&f->ended), started = atomic_load(&f->started);
  uint32_t pending = (uint32_t)(started - ended);
  bool full = pending >= f->n;
  heddle__flight_lane *l = &f->lanes[started % f->n];
  switch (use) {
  case HEDDLE__LANE_OLDEST: l = &f->lanes[ended % f->n]; break;
  case HEDDLE__LANE_SHOWN:
    if (full)
      return heddle__fail(err, HEDDLE_EBUSY,
                          "%u runs are pending, and the last of them has the memory of the outputs: read those before "
                          "it is started",
                          (unsigned)pending);
    l = &f->lanes[(ended + f->n - 1) % f->n];
    break;
  case HEDDLE__LANE_INFO:
    if (!full) (void)bring_inputs(f, l, NULL); /* where that fails, the start will report it */
    break;
  case HEDDLE__LANE_ALONE:
  case HEDDLE__LANE_START:
  case HEDDLE__LANE_SET:
    if (use == HEDDLE__LANE_ALONE ? pending > 0 : full)
      return heddle__fail(err, HEDDLE_EBUSY, "%u of %u runs in flight are pending; wait for %s", (unsigned)pending,
                          (unsigned)f->n, use == HEDDLE__LANE_ALONE ? "them" : "one");
    if (use != HEDDLE__LANE_SET) s = bring_inputs(f, l, err);
    /* Before the run can end: a thread that waits for the lane's last run must not take this one's result. */
    if (use != HEDDLE__LANE_SET) atomic_store(&l->run, started);
    break;
  }
  if (s == HEDDLE_OK) *out = l->ex;
  return s;
}

/* ---- runs */

/* The run in the lane that was chosen has begun: gives its number. */
static uint64_t note_begun(heddle__flight *f) {
  uint64_t run = atomic_load(&f->started);
  atomic_store(&f->started, run + 1);
  return run;
}

/* Whether this thread was the first to report the end of the run. */
static bool is_first(heddle__flight *f, uint64_t run) {
  unsigned long long expected = run;
  return atomic_compare_exchange_strong(&f->ended, &expected, run + 1);
}

static heddle_status wait_flight(heddle_executor *ex, uint64_t deadline_ns, heddle_error *err) {
  heddle__flight *f = ex->flight;
  for (;;) {
    uint64_t ended = atomic_load(&f->ended);
    bool none = ended == atomic_load(&f->started);
    uint64_t run = none ? ended + f->n - 1 : ended; /* none: the lane of the one before */
    heddle__flight_lane *l = &f->lanes[run % f->n];
    heddle_status s = heddle__drive_attend(&l->ex->drive, deadline_ns, err);
    if (none) return s;
    if (s == HEDDLE_ETIMEOUT) {
      if (heddle__drive_pending(&l->ex->drive)) return s;
      s = heddle__drive_wait(&l->ex->drive, 0, err); /* it has ended since */
    }
    if (is_first(f, run) || atomic_load(&l->run) == run) return s;
    /* Others have reported it, and have started another run in its lane meanwhile. */
  }
}

static heddle_status begin_flight(heddle_executor *ex, bool timed, heddle_error *err) {
  heddle_executor *lane;
  heddle_status s = choose_lane(ex, HEDDLE__LANE_START, &lane, err);
  if (s == HEDDLE_OK) s = lane->course->begin(lane, timed, err);
  if (s == HEDDLE_OK) (void)note_begun(ex->flight);
  return s;
}

static heddle_status run_flight(heddle_executor *ex, bool timed, uint64_t deadline_ns, heddle_executor **lane,
                                heddle_error *err) {
  bool goes_on;
  heddle_status s = choose_lane(ex, HEDDLE__LANE_ALONE, lane, err);
  if (s == HEDDLE_OK) s = heddle__single_begin(*lane, timed, deadline_ns, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t run = note_begun(ex->flight);
  s = heddle__single_end(*lane, deadline_ns, &goes_on, err);
  if (!goes_on) (void)is_first(ex->flight, run);
  return s;
}

static heddle_status start_flight(heddle_executor *ex, heddle_error *err) {
  heddle_executor *lane;
  heddle_status s = choose_lane(ex, HEDDLE__LANE_START, &lane, err);
  if (s == HEDDLE_OK) s = heddle__single_start(lane, err);
  if (s == HEDDLE_OK) (void)note_begun(ex->flight);
  return s;
}

static heddle_status cancel_flight(heddle_executor *ex, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < ex->flight->n; i++) {
    heddle_status one = heddle_executor_cancel(ex->flight->lanes[i].ex, err);
    if (one != HEDDLE_OK) s = one;
  }
  return s;
}

/* Its runs are those of its lanes, which have drives. */
static heddle_status end_flight(void *user, heddle_status status, const char *hung, heddle_error *words) {
  (void)user, (void)hung, (void)words;
  return status;
}

/* ---- what the lane does */

static heddle_status prepare_flight(heddle_executor *ex, heddle_error *err) {
  heddle_executor *lane;
  heddle_status s = choose_lane(ex, HEDDLE__LANE_START, &lane, err);
  return s == HEDDLE_OK ? lane->course->prepare(lane, err) : s;
}

static heddle_tensor *result_of_flight(heddle_executor *ex, uint32_t i) {
  heddle_executor *lane;
  return choose_lane(ex, HEDDLE__LANE_SHOWN, &lane, NULL) == HEDDLE_OK ? lane->course->result(lane, i) : NULL;
}

static HEDDLE__COLD heddle_status value_of_flight(heddle_executor *ex, const heddle__keep *target, heddle_tensor **out,
                                                  heddle_error *err) {
  heddle_executor *lane;
  heddle_status s = choose_lane(ex, HEDDLE__LANE_ALONE, &lane, err);
  return s == HEDDLE_OK ? lane->course->value(lane, target, out, err) : s;
}

static HEDDLE__COLD heddle_status explain_flight(heddle_executor *ex, heddle_explain_format format, char **out,
                                                 heddle_error *err) {
  heddle_executor *lane;
  heddle_status s = choose_lane(ex, HEDDLE__LANE_START, &lane, err);
  return s == HEDDLE_OK ? lane->course->explain(lane, format, out, err) : s;
}

static HEDDLE__COLD heddle_status add_stats_of_flight(heddle_executor *ex, heddle_executor_stats *all,
                                                      heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK && i < ex->flight->n; i++) {
    heddle_executor *lane = ex->flight->lanes[i].ex;
    s = lane->course->add_stats(lane, all, err);
  }
  return s;
}

/* ---- the table */

static const heddle__course flight_course = {.lane = choose_lane,
                                             .holder = holder_of,
                                             .free = free_flight,
                                             .begin = begin_flight,
                                             .run = run_flight,
                                             .start = start_flight,
                                             .wait = wait_flight,
                                             .cancel = cancel_flight,
                                             .ended = end_flight,
                                             .prepare = prepare_flight,
                                             .result = result_of_flight,
                                             .value = value_of_flight,
                                             .explain = explain_flight,
                                             .add_stats = add_stats_of_flight};

HEDDLE__COLD heddle_status heddle__flight_make(heddle_model *m, heddle_executor **out, heddle_error *err) {
  heddle_executor *ex = heddle__alloc(1, sizeof *ex);
  heddle__flight *f = heddle__alloc(1, sizeof *f);
  heddle_status s = ex != NULL && f != NULL ? HEDDLE_OK : heddle__no_memory(err, "an executor");
  if (s != HEDDLE_OK) {
    heddle__free(f);
    heddle__free(ex);
    return s;
  }
  atomic_init(&ex->references, 1);
  ex->model = heddle_model_retain(m);
  ex->course = &flight_course;
  ex->flight = f;
  ex->n_args = f->n_args = m->graph->n_args;
  f->latest = heddle__alloc(f->n_args, sizeof *f->latest);
  f->lanes = heddle__alloc(m->in_flight, sizeof *f->lanes);
  if (f->latest == NULL || f->lanes == NULL) s = heddle__no_memory(err, "the lanes of an executor");
  while (s == HEDDLE_OK && f->n < m->in_flight) s = make_lane(m, f, f->n++, err);
  if (s != HEDDLE_OK) {
    free_flight(ex);
    return s;
  }
  ex->n_results = f->lanes[0].ex->n_results;
  *out = ex;
  return HEDDLE_OK;
}

#else

heddle_status heddle__flight_make(heddle_model *m, heddle_executor **out, heddle_error *err) {
  (void)m, (void)out;
  return heddle__left_out(err, "executors with several runs in flight", "HEDDLE_IN_FLIGHT");
}

heddle_executor *heddle__flight_peer(heddle_executor *lane, uint32_t i) {
  return i == 0 ? lane : NULL;
}

void heddle__flight_note(heddle_executor *lane, uint32_t arg) {
  (void)lane, (void)arg;
}

#endif
