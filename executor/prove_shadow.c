/* executor/prove_shadow.c: the shadow state of a plan's bytes, as spans over numbered range ends.
 * Because the ends are known beforehand, a span is found by a bit set in levels instead of a balanced tree; a range
 * that is written becomes one span, so each access pays for the spans it made and not for those that once were. */
#include "executor/prove_shadow.h"

#include "core/alloc.h"
#include "core/error.h"

/* ---- Numbering the ends of ranges ---- */

typedef struct end_point {
  uint64_t offset;
  uint32_t alloc;
  uint32_t where; /* range number * 2, + 1 for its end; initial ranges come first */
} end_point;

#define DIGIT_BITS 11u

static uint64_t key_of(const end_point *point, bool by_alloc) {
  return by_alloc ? point->alloc : point->offset;
}

/* Sorts by one key, keeping the order of equals: a radix sort over the digits in which keys differ. */
static void sort_by(end_point **points, end_point **spare, uint32_t n, bool by_alloc) {
  uint64_t differ = 0;
  for (uint32_t i = 1; i < n; i++) differ |= key_of(&(*points)[i], by_alloc) ^ key_of(&(*points)[0], by_alloc);
  for (unsigned shift = 0; shift < 64 && differ >> shift != 0; shift += DIGIT_BITS) {
    while ((differ >> shift & 1) == 0) shift++;
    uint32_t places[1u << DIGIT_BITS] = {0};
    const uint64_t mask = (1u << DIGIT_BITS) - 1;
    for (uint32_t i = 0; i < n; i++) places[key_of(&(*points)[i], by_alloc) >> shift & mask]++;
    uint32_t sum = 0;
    for (uint32_t d = 0; d <= mask; d++) {
      uint32_t count = places[d];
      places[d] = sum;
      sum += count;
    }
    for (uint32_t i = 0; i < n; i++) (*spare)[places[key_of(&(*points)[i], by_alloc) >> shift & mask]++] = (*points)[i];
    end_point *sorted = *spare;
    *spare = *points;
    *points = sorted;
  }
}

static uint32_t add_range(end_point *points, uint32_t n, uint32_t range, uint32_t alloc, uint64_t offset,
                          uint64_t bytes) {
  if (bytes == 0) return n;
  points[n] = (end_point){offset, alloc, range * 2};
  points[n + 1] = (end_point){offset + bytes, alloc, range * 2 + 1};
  return n + 2;
}

static uint32_t collect(const heddle__proof *proof, end_point *points) {
  uint32_t n = 0, range = 0;
  for (uint32_t i = 0; i < proof->n_initial; i++) {
    const heddle__proof_initial *initial = &proof->initial[i];
    n = add_range(points, n, range++, initial->alloc, initial->offset, initial->bytes);
  }
  for (uint32_t i = 0; i < proof->n_steps; i++)
    for (uint32_t k = 0; k < proof->steps[i].n_accesses; k++) {
      const heddle__proof_access *access = &proof->steps[i].accesses[k];
      n = add_range(points, n, range++, access->alloc, access->offset, access->bytes);
    }
  return n;
}

/* The most sets of an allocation; no more than runs are walked. */
static uint32_t count_sets(const heddle__proof *proof) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < proof->n_allocs; i++)
    if (proof->allocs[i].sets > most) most = proof->allocs[i].sets;
  return most <= proof->in_flight ? most : proof->in_flight + 1;
}

static bool number_ends(heddle__shadow *shadow, const heddle__proof *proof, uint32_t n_ranges) {
  end_point *points = heddle__alloc((size_t)n_ranges * 2, sizeof *points);
  end_point *spare = heddle__alloc((size_t)n_ranges * 2, sizeof *spare);
  shadow->initial = heddle__alloc(n_ranges, sizeof *shadow->initial);
  shadow->offsets = heddle__alloc((size_t)n_ranges * 2, sizeof *shadow->offsets);
  shadow->spans = heddle__alloc((size_t)n_ranges * 2 * shadow->n_sets, sizeof *shadow->spans);
  bool ok =
      points != NULL && spare != NULL && shadow->initial != NULL && shadow->offsets != NULL && shadow->spans != NULL;
  if (ok) {
    shadow->accesses = shadow->initial + proof->n_initial;
    uint32_t n = collect(proof, points), n_ranks = 0, first = 0;
    sort_by(&points, &spare, n, false);
    sort_by(&points, &spare, n, true);
    for (uint32_t i = 0; i < n; i++) {
      bool new_alloc = i == 0 || points[i].alloc != points[i - 1].alloc;
      if (new_alloc || points[i].offset != points[i - 1].offset) shadow->offsets[n_ranks++] = points[i].offset;
      if (new_alloc) first = n_ranks - 1;
      shadow->spans[first].end = n_ranks - 1; /* the allocation's one span: until its last end */
      heddle__ranks *ranks = &shadow->initial[points[i].where / 2];
      if (points[i].where % 2 == 0) ranks->first = n_ranks - 1;
      else ranks->end = n_ranks - 1;
    }
    shadow->n_ranks = n_ranks;
    for (uint32_t i = n_ranks; i < n_ranks * shadow->n_sets; i++)
      shadow->spans[i].end = shadow->spans[i - n_ranks].end + n_ranks;
  }
  heddle__free(points);
  heddle__free(spare);
  return ok;
}

/* ---- The bits of span starts ---- */

static bool init_starts(heddle__shadow *shadow) {
  uint64_t bits = (uint64_t)shadow->n_ranks * shadow->n_sets;
  do {
    uint64_t words = bits / 64 + 1;
    shadow->starts[shadow->n_levels] = heddle__alloc(words, sizeof(uint64_t));
    if (shadow->starts[shadow->n_levels++] == NULL) return false;
    bits = words;
  } while (bits > 1);
  return true;
}

static bool starts_at(const heddle__shadow *shadow, uint32_t rank) {
  return shadow->starts[0][rank / 64] >> rank % 64 & 1;
}

static void set_start(heddle__shadow *shadow, uint32_t rank) {
  for (uint32_t level = 0; level < shadow->n_levels; level++, rank /= 64) {
    uint64_t *word = &shadow->starts[level][rank / 64], old = *word;
    *word |= UINT64_C(1) << rank % 64;
    if (old != 0) return;
  }
}

static void clear_start(heddle__shadow *shadow, uint32_t rank) {
  for (uint32_t level = 0; level < shadow->n_levels; level++, rank /= 64) {
    uint64_t *word = &shadow->starts[level][rank / 64];
    *word &= ~(UINT64_C(1) << rank % 64);
    if (*word != 0) return;
  }
}

static uint32_t top_bit(uint64_t word) {
  return 63u - (uint32_t)__builtin_clzll(word);
}

/* The start of the span that rank lies in: the last bit set at or before it. Rank 0 is a start. */
static uint32_t start_before(const heddle__shadow *shadow, uint32_t rank) {
  uint64_t up_to = ~UINT64_C(0) >> (63 - rank % 64);
  uint32_t level = 0;
  while (level + 1 < shadow->n_levels && (shadow->starts[level][rank / 64] & up_to) == 0) {
    level++;
    rank /= 64;
    up_to = ~(~UINT64_C(0) << rank % 64); /* words before this one only */
  }
  uint64_t word = shadow->starts[level][rank / 64] & up_to;
  if (word == 0) return 0;
  rank = rank / 64 * 64 + top_bit(word);
  while (level > 0) {
    level--;
    rank = rank * 64 + top_bit(shadow->starts[level][rank]);
  }
  return rank;
}

/* ---- Marks and spans ---- */

bool heddle__shadow_mark(heddle__shadow *shadow, uint32_t *list, uint32_t stream, uint32_t tick, bool valued) {
  if (shadow->free_mark == HEDDLE__NO_MARK) {
    uint32_t n = shadow->n_marks;
    if (n > UINT32_MAX / 2 - 64) return false;
    heddle__mark *grown = heddle__grow(shadow->marks, n, (size_t)n * 2 + 64, sizeof *grown);
    if (grown == NULL) return false;
    shadow->marks = grown;
    shadow->n_marks = n * 2 + 64;
    for (uint32_t i = shadow->n_marks; i > n; i--) {
      grown[i - 1].next = shadow->free_mark;
      shadow->free_mark = i - 1;
    }
  }
  uint32_t taken = shadow->free_mark;
  heddle__mark *mark = &shadow->marks[taken];
  shadow->free_mark = mark->next;
  *mark = (heddle__mark){.stream = stream, .tick = tick, .next = *list, .valued = valued};
  *list = taken;
  return true;
}

void heddle__shadow_unmark(heddle__shadow *shadow, uint32_t *link) {
  uint32_t gone = *link;
  *link = shadow->marks[gone].next;
  shadow->marks[gone].next = shadow->free_mark;
  shadow->free_mark = gone;
}

static bool copy_marks(heddle__shadow *shadow, uint32_t from, uint32_t *list) {
  *list = HEDDLE__NO_MARK;
  for (; from != HEDDLE__NO_MARK; from = shadow->marks[from].next) {
    heddle__mark mark = shadow->marks[from];
    if (!heddle__shadow_mark(shadow, list, mark.stream, mark.tick, mark.valued)) return false;
  }
  return true;
}

static bool cut_at(heddle__shadow *shadow, uint32_t rank) {
  if (starts_at(shadow, rank)) return true;
  heddle__span *left = &shadow->spans[start_before(shadow, rank)], *right = &shadow->spans[rank];
  if (left->end <= rank) return true; /* the end of the allocation */
  *right = *left;
  left->end = rank;
  set_start(shadow, rank);
  right->syncs = HEDDLE__NO_MARK;
  return copy_marks(shadow, left->readers, &right->readers) && copy_marks(shadow, left->syncs, &right->syncs);
}

bool heddle__shadow_cut(heddle__shadow *shadow, heddle__ranks range) {
  return range.first == range.end || (cut_at(shadow, range.first) && cut_at(shadow, range.end));
}

heddle__span *heddle__shadow_replace(heddle__shadow *shadow, heddle__ranks range, uint32_t value, uint32_t run) {
  for (uint32_t at = range.first, next; at < range.end; at = next) {
    heddle__span *span = &shadow->spans[at];
    next = span->end;
    while (span->readers != HEDDLE__NO_MARK) heddle__shadow_unmark(shadow, &span->readers);
    while (span->syncs != HEDDLE__NO_MARK) heddle__shadow_unmark(shadow, &span->syncs);
    if (at != range.first) clear_start(shadow, at);
  }
  heddle__span *span = &shadow->spans[range.first];
  *span = (heddle__span){.end = range.end,
                         .value = value,
                         .run = run,
                         .base = range.first,
                         .readers = HEDDLE__NO_MARK,
                         .syncs = HEDDLE__NO_MARK};
  return span;
}

/* ---- Beginning and end ---- */

heddle_status heddle__shadow_init(heddle__shadow *shadow, const heddle__proof *proof, uint32_t n_accesses,
                                  heddle_error *err) {
  const char *what = "the proof of a plan";
  *shadow = (heddle__shadow){.free_mark = HEDDLE__NO_MARK, .n_sets = count_sets(proof)};
  uint64_t n_ranges = (uint64_t)proof->n_initial + n_accesses;
  if (n_ranges > UINT32_MAX / 2 / shadow->n_sets) return heddle__no_memory(err, what);
  if (!number_ends(shadow, proof, (uint32_t)n_ranges) || !init_starts(shadow)) return heddle__no_memory(err, what);
  for (uint32_t at = 0; at < shadow->n_ranks * shadow->n_sets; at = shadow->spans[at].end + 1) {
    set_start(shadow, at);
    heddle__ranks all = {at, shadow->spans[at].end};
    shadow->spans[at].readers = shadow->spans[at].syncs = HEDDLE__NO_MARK;
    heddle__shadow_replace(shadow, all, HEDDLE__NO_VALUE, HEDDLE__INITIAL);
  }
  for (uint32_t k = 0; k < shadow->n_sets * proof->n_initial; k++) {
    uint32_t i = k % proof->n_initial, base = k / proof->n_initial * shadow->n_ranks;
    const heddle__ranks range = {shadow->initial[i].first + base, shadow->initial[i].end + base};
    if (range.first == range.end) continue;
    if (!heddle__shadow_cut(shadow, range)) return heddle__no_memory(err, what);
    heddle__shadow_replace(shadow, range, proof->initial[i].value, HEDDLE__INITIAL);
  }
  return HEDDLE_OK;
}

void heddle__shadow_finish(heddle__shadow *shadow) {
  heddle__free(shadow->initial); /* and accesses, which lie behind */
  heddle__free(shadow->offsets);
  heddle__free(shadow->spans);
  for (uint32_t level = 0; level < shadow->n_levels; level++) heddle__free(shadow->starts[level]);
  heddle__free(shadow->marks);
}
