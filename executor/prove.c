/* executor/prove.c: walks the runs of a plan once, in list order, with a vector clock a stream, and refuses the first
 * access that is not ordered after what it depends on. What bytes hold and who touched them is in prove_shadow.c.
 *
 * Why one order of the steps says enough for all: list order extends happens-before (waits lead backwards; streams
 * and the start of a run only lead forwards). Of all unordered conflicting pairs (a, b) take the one with the earliest
 * b, and of those the latest a. Up to b every conflict is ordered, so what was dropped from a byte's state is ordered
 * before what is there: writes before the last write (with the reads between them), and reads before a later read that
 * is ordered after them. Had a been dropped for c, a would come before c, and (c, b) conflict, so c before b by the
 * choice of a, and a before b. So a is still there and is found when b is walked. Without such a pair, all orders in
 * which the steps could run have the same last write before a read, and the same releases and acquires between the
 * two, so what the walk sees is what every run sees.
 *
 * A further run depends on nothing earlier than the in_flight before it, all of which are walked. Rules beyond order
 * and content: a device may touch what the host wrote last, to read or to write it, only after a release, for else
 * the host's cache may yet be written over it; the host what a device wrote only after an acquire; a step's two writes
 * must not overlap, nor its workspace what it reads.
 *
 * One proof of a root covers its sizes (range.h): they have its steps, order and offsets, and no access has more bytes than
 * in the root. So two accesses that overlap in a size overlap in the root, where they are ordered. A value is written and
 * read with the same bytes, those of its instance, so a read finds the same last write: another one between them that
 * overlaps the smaller bytes would overlap the larger ones. Releases and acquires are steps, and their places in the order
 * are the same.
 *
 * A state value that is updated in place is initial content that becomes another value. The first write to its bytes in a
 * run must keep it; what the run leaves there is the initial content of the next one. A write that comes first in one order
 * of the steps comes first in all of them, since two writes to the same bytes are ordered. */
#include "executor/prove.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/prove_shadow.h"

typedef struct walk {
  const heddle__proof *proof;
  heddle__shadow shadow;
  uint32_t n_streams;  /* of all sets, one after another */
  uint32_t *clocks;    /* n_streams rows: the last tick of each stream that the row's stream comes after */
  uint32_t *kept;      /* rows like them, of steps that are still to be waited for */
  uint32_t *finish;    /* the last tick of each stream in run 0 */
  uint32_t *last_wait; /* a step: the last step that waits for it, 0 for none */
  uint32_t *row;       /* a step: its row in kept */
  bool *is_state;      /* a value: it is initial content that becomes another value */
  uint32_t n_accesses;
  uint32_t n_rows;
  /* where the walk is */
  uint32_t run, step, stream, tick;
  uint32_t *clock; /* of stream */
  heddle_error *err;
} walk;

/* ---- Words ---- */

static unsigned step_of(const walk *w, uint32_t tick) {
  return (tick - 1) % w->proof->n_steps;
}

static unsigned run_of(const walk *w, uint32_t tick) {
  return (tick - 1) / w->proof->n_steps;
}

static uint32_t stream_of(const walk *w, uint32_t stream) {
  return stream % w->proof->n_streams;
}

static bool is_host(const walk *w, uint32_t stream) {
  return w->proof->stream_is_host[stream_of(w, stream)];
}

/* Which of so many sets the present run uses. */
static uint32_t set_of(const walk *w, uint32_t sets) {
  return sets > 1 ? w->run % sets : 0;
}

static const char *verb(const heddle__proof_access *access) {
  static const char *const verbs[] = {"reads", "writes", "releases", "acquires"};
  return verbs[access->mode];
}

/* "bytes 0 to 64 of allocation 3", of the span at rank. */
static const char *place(const walk *w, const heddle__proof_access *access, uint32_t rank, char *words, size_t n) {
  const uint32_t n_ranks = w->shadow.n_ranks;
  snprintf(words, n, "bytes %" PRIu64 " to %" PRIu64 " of allocation %u", w->shadow.offsets[rank % n_ranks],
           w->shadow.offsets[w->shadow.spans[rank].end % n_ranks], access->alloc);
  return words;
}

static heddle_status unordered(const walk *w, const heddle__proof_access *access, uint32_t rank, uint32_t stream,
                               uint32_t tick, const char *did) {
  char where[96];
  return heddle__fail(w->err, HEDDLE_EPLAN,
                      "step %u (run %u, stream %u) %s %s, and nothing orders it after step %u (run %u, stream %u), "
                      "which %s them",
                      w->step, w->run, stream_of(w, w->stream), verb(access),
                      place(w, access, rank, where, sizeof where), step_of(w, tick), run_of(w, tick),
                      stream_of(w, stream), did);
}

static heddle_status invisible(const walk *w, const heddle__proof_access *access, uint32_t rank,
                               const heddle__span *span) {
  char where[96];
  bool host = is_host(w, w->stream);
  return heddle__fail(w->err, HEDDLE_EPLAN,
                      "step %u (run %u, stream %u%s) %s %s, which are not coherent and which step %u (run %u, stream "
                      "%u%s) wrote: it needs %s between the two, ordered after one and before the other",
                      w->step, w->run, stream_of(w, w->stream), host ? ", host" : "", verb(access),
                      place(w, access, rank, where, sizeof where), step_of(w, span->write_tick),
                      run_of(w, span->write_tick), stream_of(w, span->write_stream), host ? "" : ", host",
                      host ? "an acquire" : "a release");
}

static heddle_status wrong_content(const walk *w, const heddle__proof_access *access, uint32_t rank,
                                   const heddle__span *span) {
  char where[96], holds[128], writer[64] = "";
  place(w, access, rank, where, sizeof where);
  if (span->write_tick != 0)
    snprintf(writer, sizeof writer, " since step %u of run %u", step_of(w, span->write_tick),
             run_of(w, span->write_tick));
  if (span->value == HEDDLE__NO_VALUE)
    snprintf(holds, sizeof holds, "%s", span->write_tick != 0 ? "a workspace" : "nothing yet");
  else if (span->value == access->value && span->run == w->run)
    snprintf(holds, sizeof holds, "it with its first byte at %" PRIu64,
             w->shadow.offsets[span->base % w->shadow.n_ranks]);
  else if (span->run == HEDDLE__INITIAL)
    snprintf(holds, sizeof holds, "initial value %u from byte %" PRIu64, span->value,
             w->shadow.offsets[span->base % w->shadow.n_ranks]);
  else snprintf(holds, sizeof holds, "value %u of run %u", span->value, span->run);
  return heddle__fail(w->err, HEDDLE_EPLAN,
                      "step %u (run %u, stream %u) reads value %u from byte %" PRIu64 ", but %s hold %s%s", w->step,
                      w->run, stream_of(w, w->stream), access->value, access->offset, where, holds, writer);
}

/* ---- One access ---- */

static bool comes_before(const walk *w, uint32_t stream, uint32_t tick) {
  return w->clock[stream] >= tick;
}

static bool is_this_step(const walk *w, uint32_t tick) {
  return tick == w->tick;
}

/* The other side wrote span last: has it been released or acquired, in time for this step? */
static bool is_visible(const walk *w, const heddle__proof_access *access, const heddle__span *span) {
  if (span->write_tick == 0 || w->proof->allocs[access->alloc].coherent) return true;
  if (is_host(w, span->write_stream) == is_host(w, w->stream)) return true;
  for (uint32_t at = span->syncs; at != HEDDLE__NO_MARK; at = w->shadow.marks[at].next) {
    const heddle__mark *sync = &w->shadow.marks[at];
    if (comes_before(w, sync->stream, sync->tick) && !is_this_step(w, sync->tick)) return true;
  }
  return false;
}

/* Of the reads, those that come before this one need not be kept: who comes after it comes after them. */
static bool note_read(walk *w, heddle__span *span, bool valued) {
  for (uint32_t *link = &span->readers; *link != HEDDLE__NO_MARK;) {
    heddle__mark *mark = &w->shadow.marks[*link];
    if (is_this_step(w, mark->tick)) {
      mark->valued |= valued;
      return true;
    }
    if (comes_before(w, mark->stream, mark->tick)) heddle__shadow_unmark(&w->shadow, link);
    else link = &mark->next;
  }
  return heddle__shadow_mark(&w->shadow, &span->readers, w->stream, w->tick, valued);
}

/* Of the releases (of what the host wrote) and acquires (of what a device wrote), one that comes after another adds
 * nothing to it. */
static bool note_sync(walk *w, heddle__span *span, heddle__access_mode mode) {
  bool host_wrote = is_host(w, span->write_stream);
  if (span->write_tick == 0 || host_wrote != (mode == HEDDLE__RELEASE)) return true;
  for (uint32_t at = span->syncs; at != HEDDLE__NO_MARK; at = w->shadow.marks[at].next)
    if (comes_before(w, w->shadow.marks[at].stream, w->shadow.marks[at].tick)) return true;
  return heddle__shadow_mark(&w->shadow, &span->syncs, w->stream, w->tick, false);
}

static heddle_status walk_read(walk *w, const heddle__proof_access *access, heddle__ranks range) {
  bool valued = access->mode == HEDDLE__READ && access->value != HEDDLE__NO_VALUE;
  if (!heddle__shadow_cut(&w->shadow, range)) return heddle__no_memory(w->err, "the proof of a plan");
  for (uint32_t at = range.first; at < range.end; at = w->shadow.spans[at].end) {
    heddle__span *span = &w->shadow.spans[at];
    if (span->write_tick != 0 && !comes_before(w, span->write_stream, span->write_tick))
      return unordered(w, access, at, span->write_stream, span->write_tick, "writes");
    if (access->mode == HEDDLE__READ && !is_visible(w, access, span)) return invisible(w, access, at, span);
    if (valued && (span->value != access->value || span->base != range.first ||
                   (span->run != w->run && span->run != HEDDLE__INITIAL)))
      return wrong_content(w, access, at, span);
    bool ok = note_read(w, span, valued);
    if (ok && access->mode != HEDDLE__READ) ok = note_sync(w, span, access->mode);
    if (!ok) return heddle__no_memory(w->err, "the proof of a plan");
  }
  return HEDDLE_OK;
}

static heddle_status walk_write(walk *w, const heddle__proof_access *access, heddle__ranks range) {
  char where[96];
  if (range.first == range.end) return HEDDLE_OK;
  if (!heddle__shadow_cut(&w->shadow, range)) return heddle__no_memory(w->err, "the proof of a plan");
  for (uint32_t at = range.first; at < range.end; at = w->shadow.spans[at].end) {
    const heddle__span *span = &w->shadow.spans[at];
    if (span->write_tick != 0 && is_this_step(w, span->write_tick))
      return heddle__fail(w->err, HEDDLE_EPLAN, "step %u writes %s twice", w->step,
                          place(w, access, at, where, sizeof where));
    if (span->write_tick != 0 && !comes_before(w, span->write_stream, span->write_tick))
      return unordered(w, access, at, span->write_stream, span->write_tick, "writes");
    for (uint32_t m = span->readers; m != HEDDLE__NO_MARK; m = w->shadow.marks[m].next) {
      const heddle__mark *reader = &w->shadow.marks[m];
      if (!comes_before(w, reader->stream, reader->tick))
        return unordered(w, access, at, reader->stream, reader->tick, "reads");
      if (access->value == HEDDLE__NO_VALUE && reader->valued && is_this_step(w, reader->tick))
        return heddle__fail(w->err, HEDDLE_EPLAN, "step %u has its workspace in %s, where it reads a value", w->step,
                            place(w, access, at, where, sizeof where));
    }
    if (!is_visible(w, access, span)) return invisible(w, access, at, span);
    const bool is_kept = access->keeps == span->value + 1 && span->base == range.first;
    if (span->value != HEDDLE__NO_VALUE && span->run == HEDDLE__INITIAL && w->is_state[span->value] && !is_kept)
      return heddle__fail(w->err, HEDDLE_EPLAN,
                          "step %u (run %u, stream %u) writes %s, which hold the state value %u, and does not keep it",
                          w->step, w->run, stream_of(w, w->stream), place(w, access, at, where, sizeof where),
                          span->value);
  }
  heddle__span *written = heddle__shadow_replace(&w->shadow, range, access->value, w->run);
  written->write_stream = w->stream;
  written->write_tick = w->tick;
  return HEDDLE_OK;
}

/* ---- Steps and runs ---- */

static void join(walk *w, const uint32_t *other) {
  for (uint32_t s = 0; s < w->n_streams; s++)
    if (w->clock[s] < other[s]) w->clock[s] = other[s];
}

static uint32_t *kept_row(const walk *w, uint32_t step) {
  return w->kept + (size_t)w->row[step] * w->n_streams;
}

static heddle_status walk_access(walk *w, const heddle__proof_access *access, heddle__ranks range) {
  uint32_t base = set_of(w, w->proof->allocs[access->alloc].sets) * w->shadow.n_ranks;
  range.first += base;
  range.end += base;
  return access->mode == HEDDLE__WRITE ? walk_write(w, access, range) : walk_read(w, access, range);
}

static heddle_status walk_step(walk *w, const heddle__ranks *ranges) {
  const heddle__proof_step *step = &w->proof->steps[w->step];
  uint32_t base = set_of(w, w->proof->stream_sets) * w->proof->n_streams;
  w->stream = base + step->stream;
  w->clock = w->clocks + (size_t)w->stream * w->n_streams;
  for (uint32_t i = 0; i < step->n_waits; i++) {
    uint32_t other = step->waits[i], stream = base + w->proof->steps[other].stream;
    const uint32_t *clock = kept_row(w, other);
    if (!comes_before(w, stream, clock[stream])) join(w, clock);
  }
  w->clock[w->stream] = w->tick;
  heddle_status s = HEDDLE_OK;
  for (int writes = 0; writes < 2; writes++)
    for (uint32_t i = 0; i < step->n_accesses && s == HEDDLE_OK; i++)
      if ((step->accesses[i].mode == HEDDLE__WRITE) == (writes != 0)) s = walk_access(w, &step->accesses[i], ranges[i]);
  if (w->last_wait[w->step] != 0) {
    uint32_t *row = kept_row(w, w->step);
    for (uint32_t t = 0; t < w->n_streams; t++) row[t] = w->clock[t];
  }
  return s;
}

/* At the end of a run its state values are what the run made of them. */
static heddle_status advance(walk *w) {
  for (uint32_t i = 0; i < w->proof->n_initial; i++) {
    const heddle__proof_initial *x = &w->proof->initial[i];
    const heddle__ranks range = w->shadow.initial[i];
    if (x->becomes == 0) continue;
    if (!heddle__shadow_cut(&w->shadow, range)) return heddle__no_memory(w->err, "the proof of a plan");
    for (uint32_t at = range.first; at < range.end; at = w->shadow.spans[at].end) {
      heddle__span *span = &w->shadow.spans[at];
      if (span->value != x->becomes - 1 || span->run != w->run || span->base != range.first)
        return heddle__fail(w->err, HEDDLE_EPLAN,
                            "at the end of run %u the bytes of state value %u do not hold value %u", w->run, x->value,
                            x->becomes - 1);
      span->value = x->value;
      span->run = HEDDLE__INITIAL;
    }
  }
  return HEDDLE_OK;
}

static heddle_status walk_runs(walk *w) {
  const heddle__proof *proof = w->proof;
  for (w->run = 0; w->run <= proof->in_flight; w->run++) {
    const heddle__ranks *ranges = w->shadow.accesses;
    for (w->step = 0; w->step < proof->n_steps; w->step++) {
      w->tick = w->run * proof->n_steps + w->step + 1;
      heddle_status s = walk_step(w, ranges);
      if (s != HEDDLE_OK) return s;
      ranges += proof->steps[w->step].n_accesses;
    }
    w->step = UINT32_MAX;
    heddle_status s = advance(w);
    if (s != HEDDLE_OK) return s;
    if (w->run == 0)
      for (uint32_t t = 0; t < w->n_streams; t++) w->finish[t] = w->clocks[(size_t)t * w->n_streams + t];
    if (w->run + 1 == proof->in_flight) /* the next run starts when run 0 has wholly finished */
      for (uint32_t t = 0; t < w->n_streams; t++) {
        w->clock = w->clocks + (size_t)t * w->n_streams;
        join(w, w->finish);
      }
  }
  return HEDDLE_OK;
}

/* ---- Is it a plan at all? ---- */

static heddle_status check_range(const walk *w, const char *what, uint32_t number, uint32_t alloc, uint64_t offset,
                                 uint64_t bytes) {
  if (alloc >= w->proof->n_allocs)
    return heddle__fail(w->err, HEDDLE_EPLAN, "%s %u names allocation %u of %u", what, number, alloc,
                        w->proof->n_allocs);
  uint64_t has = w->proof->allocs[alloc].bytes;
  if (offset > has || bytes > has - offset)
    return heddle__fail(w->err, HEDDLE_EPLAN,
                        "%s %u takes %" PRIu64 " bytes at %" PRIu64 " of allocation %u, which has %" PRIu64, what,
                        number, bytes, offset, alloc, has);
  return HEDDLE_OK;
}

static heddle_status check_access(const walk *w, const heddle__proof_step *step, const heddle__proof_access *access) {
  if ((unsigned)access->mode > HEDDLE__ACQUIRE)
    return heddle__fail(w->err, HEDDLE_EPLAN, "step %u has an access of unknown mode %u", w->step,
                        (unsigned)access->mode);
  if (access->value != HEDDLE__NO_VALUE && access->value >= w->proof->n_values)
    return heddle__fail(w->err, HEDDLE_EPLAN, "step %u %s value %u of %u", w->step, verb(access), access->value,
                        w->proof->n_values);
  if (access->mode >= HEDDLE__RELEASE && !w->proof->stream_is_host[step->stream])
    return heddle__fail(w->err, HEDDLE_EPLAN, "step %u %s on stream %u, but only the host does", w->step, verb(access),
                        step->stream);
  return check_range(w, "step", w->step, access->alloc, access->offset, access->bytes);
}

static heddle_status check_step(walk *w) {
  const heddle__proof *proof = w->proof;
  const heddle__proof_step *step = &proof->steps[w->step];
  if (step->stream >= proof->n_streams)
    return heddle__fail(w->err, HEDDLE_EPLAN, "step %u is on stream %u of %u", w->step, step->stream, proof->n_streams);
  for (uint32_t i = 0; i < step->n_waits; i++) {
    if (step->waits[i] >= w->step)
      return heddle__fail(w->err, HEDDLE_EPLAN, "step %u waits for step %u, which is not earlier in the list", w->step,
                          step->waits[i]);
    w->last_wait[step->waits[i]] = w->step;
  }
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    heddle_status s = check_access(w, step, &step->accesses[i]);
    if (s != HEDDLE_OK) return s;
  }
  if (step->n_accesses > UINT32_MAX - w->n_accesses) return heddle__no_memory(w->err, "the proof of a plan");
  w->n_accesses += step->n_accesses;
  return HEDDLE_OK;
}

static heddle_status check_plan(walk *w) {
  const heddle__proof *proof = w->proof;
  if (proof->in_flight == 0) return heddle__fail(w->err, HEDDLE_EPLAN, "a plan has at least 1 run in flight, not 0");
  if ((uint64_t)proof->n_steps * ((uint64_t)proof->in_flight + 1) >= UINT32_MAX)
    return heddle__fail(w->err, HEDDLE_EPLAN, "%u steps times %u runs in flight are too many to prove", proof->n_steps,
                        proof->in_flight);
  for (uint32_t i = 0; i < proof->n_initial; i++) {
    const heddle__proof_initial *initial = &proof->initial[i];
    heddle_status s = check_range(w, "initial content", i, initial->alloc, initial->offset, initial->bytes);
    if (s != HEDDLE_OK) return s;
    if (initial->value >= proof->n_values)
      return heddle__fail(w->err, HEDDLE_EPLAN, "initial content %u is value %u of %u", i, initial->value,
                          proof->n_values);
    if (initial->becomes == 0) continue;
    if (initial->becomes > proof->n_values)
      return heddle__fail(w->err, HEDDLE_EPLAN, "initial content %u becomes value %u of %u", i, initial->becomes - 1,
                          proof->n_values);
    if (proof->in_flight > 1)
      return heddle__fail(w->err, HEDDLE_EPLAN, "initial content %u becomes value %u, but %u runs are in flight", i,
                          initial->becomes - 1, proof->in_flight);
    w->is_state[initial->value] = true;
  }
  for (w->step = 0; w->step < proof->n_steps; w->step++) {
    heddle_status s = check_step(w);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* Gives each step that is waited for a row for its clock, free again after the last wait. */
static bool assign_rows(walk *w) {
  const heddle__proof *proof = w->proof;
  uint32_t *free_rows = heddle__alloc(proof->n_steps, sizeof *free_rows), n_free = 0;
  if (free_rows == NULL) return false;
  for (uint32_t i = 0; i < proof->n_steps; i++) {
    const heddle__proof_step *step = &proof->steps[i];
    for (uint32_t k = 0; k < step->n_waits; k++) {
      uint32_t other = step->waits[k];
      if (w->last_wait[other] != i) continue;
      free_rows[n_free++] = w->row[other];
      w->last_wait[other] = UINT32_MAX; /* named twice, its row is free once */
    }
    if (w->last_wait[i] != 0) w->row[i] = n_free > 0 ? free_rows[--n_free] : w->n_rows++;
  }
  heddle__free(free_rows);
  return true;
}

heddle_status heddle__prove(const heddle__proof *proof, uint32_t *faulty, heddle_error *err) {
  walk w = {.proof = proof, .err = err};
  uint32_t stream_sets = proof->stream_sets <= proof->in_flight ? proof->stream_sets : proof->in_flight + 1;
  size_t n_streams = w.n_streams = proof->n_streams * (stream_sets > 1 ? stream_sets : 1);
  w.last_wait = heddle__alloc(proof->n_steps, sizeof *w.last_wait);
  w.row = heddle__alloc(proof->n_steps, sizeof *w.row);
  w.finish = heddle__alloc(n_streams, sizeof *w.finish);
  w.clocks = heddle__alloc(n_streams, n_streams * sizeof *w.clocks);
  w.is_state = heddle__alloc(proof->n_values, sizeof *w.is_state);
  heddle_status s = HEDDLE_OK;
  if (w.last_wait == NULL || w.row == NULL || w.finish == NULL || w.clocks == NULL || w.is_state == NULL)
    s = heddle__no_memory(err, "the proof of a plan");
  w.step = UINT32_MAX;
  if (s == HEDDLE_OK) s = check_plan(&w);
  if (s == HEDDLE_OK) s = heddle__shadow_init(&w.shadow, proof, w.n_accesses, err);
  if (s == HEDDLE_OK && !assign_rows(&w)) s = heddle__no_memory(err, "the proof of a plan");
  if (s == HEDDLE_OK && (w.kept = heddle__alloc(w.n_rows, n_streams * sizeof *w.kept)) == NULL)
    s = heddle__no_memory(err, "the proof of a plan");
  if (s == HEDDLE_OK) s = walk_runs(&w);
  if (s == HEDDLE_EPLAN && faulty != NULL) *faulty = w.step;
  heddle__shadow_finish(&w.shadow);
  heddle__free(w.kept);
  heddle__free(w.clocks);
  heddle__free(w.finish);
  heddle__free(w.row);
  heddle__free(w.last_wait);
  heddle__free(w.is_state);
  return s;
}
