/* bench/prove.c: how long heddle__prove takes, and how that grows with the steps of a plan.
 * Prints one JSON object: medians over 15 interleaved rounds for plans of 2,500, 5,000 and 10,000 steps on 4 devices
 * of 4 streams each, with arenas that are reused and a wait every fifth step. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "executor/prove.h"

#define DEVICES 4u
#define STREAMS 16u /* stream s is on device s % DEVICES */
#define SIZES 3u
#define ROUNDS 15u
#define BLOCK 4096u /* an arena is handed out in blocks; a value takes a part of one */
#define MOST_ACCESSES 6u
#define KEPT 3u /* values that a stream has at hand */

typedef struct blocks {
  uint64_t *offsets;
  uint32_t n;
} blocks;

typedef struct lane {
  blocks free; /* of its device's arena; whatever used them comes before this stream's next step */
  heddle__proof_access values[KEPT];
  uint32_t n_values;
  uint32_t last; /* its last step */
} lane;

typedef struct generator {
  heddle__proof proof;
  heddle__proof_alloc allocs[DEVICES];
  bool hosts[STREAMS];
  heddle__proof_step *steps;
  heddle__proof_access *accesses;
  uint32_t *waits;
  uint32_t n_accesses, n_waits, n_values;
  lane lanes[STREAMS];
  blocks lent[DEVICES][STREAMS]; /* blocks that the stream of another device was the last to read */
  uint64_t random;
} generator;

static uint32_t below(generator *g, uint32_t n) {
  g->random = g->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(g->random >> 33) % n;
}

static void *room(size_t count, size_t size) {
  void *p = heddle__alloc(count, size);
  if (p != NULL) return p;
  fprintf(stderr, "bench prove: out of memory\n");
  exit(1);
}

static void give(generator *g, blocks *list, uint64_t offset) {
  if (list->offsets == NULL) list->offsets = room(g->proof.n_steps * (size_t)2, sizeof *list->offsets);
  list->offsets[list->n++] = offset / BLOCK * BLOCK;
}

/* A range in a block that the stream may write: one that it has, or a new one at the arena's end. */
static heddle__proof_access take(generator *g, uint32_t stream, uint32_t value) {
  uint32_t device = stream % DEVICES;
  blocks *list = &g->lanes[stream].free;
  uint64_t offset = g->allocs[device].bytes;
  if (list->n > 0) offset = list->offsets[--list->n];
  else g->allocs[device].bytes += BLOCK;
  uint32_t skipped = below(g, 4), grains = 1 + below(g, 12);
  return (heddle__proof_access){device, value, offset + skipped * 256, grains * UINT64_C(256), HEDDLE__WRITE, 0};
}

static void add(generator *g, heddle__proof_step *step, heddle__proof_access access, heddle__access_mode mode) {
  access.mode = mode;
  g->accesses[g->n_accesses++] = access;
  step->n_accesses++;
}

/* The step takes over a value of another stream, and the blocks that were lent to that. */
static void cross(generator *g, uint32_t stream, heddle__proof_step *step) {
  uint32_t other = (stream + 1 + below(g, STREAMS - 1)) % STREAMS, device = stream % DEVICES;
  while (other == stream || g->lanes[other].n_values == 0) other = (other + 1) % STREAMS;
  lane *from = &g->lanes[other], *to = &g->lanes[stream];
  g->waits[g->n_waits++] = from->last;
  step->n_waits = 1;
  for (blocks *back = &g->lent[device][other]; back->n > 0;) give(g, &to->free, back->offsets[--back->n]);
  heddle__proof_access value = from->values[--from->n_values];
  add(g, step, value, HEDDLE__READ);
  if (value.alloc == device) give(g, &to->free, value.offset);
  else give(g, &g->lent[value.alloc][stream], value.offset);
}

static void make_step(generator *g, uint32_t number, uint32_t stream) {
  heddle__proof_step *step = &g->steps[number];
  lane *mine = &g->lanes[stream];
  uint64_t scratch_block = 0;
  *step = (heddle__proof_step){stream, 0, 0, g->accesses + g->n_accesses, g->waits + g->n_waits};
  heddle__proof_access written = take(g, stream, g->n_values++);
  bool scratch = below(g, 4) == 0;
  if (scratch) {
    heddle__proof_access workspace = take(g, stream, HEDDLE__NO_VALUE);
    scratch_block = workspace.offset;
    add(g, step, workspace, HEDDLE__WRITE);
  }
  if (number % 5 == 4) cross(g, stream, step);
  for (uint32_t i = 0; i < mine->n_values; i++) add(g, step, mine->values[i], HEDDLE__READ);
  add(g, step, written, HEDDLE__WRITE);
  if (scratch) give(g, &mine->free, scratch_block);
  if (mine->n_values == KEPT) { /* the oldest has had its last reader */
    give(g, &mine->free, mine->values[0].offset);
    for (uint32_t i = 1; i < KEPT; i++) mine->values[i - 1] = mine->values[i];
    mine->n_values--;
  }
  mine->values[mine->n_values++] = written;
  mine->last = number;
}

static generator *generate(uint32_t n_steps) {
  generator *g = room(1, sizeof *g);
  g->random = n_steps;
  g->steps = room(n_steps, sizeof *g->steps);
  g->accesses = room((size_t)n_steps * MOST_ACCESSES, sizeof *g->accesses);
  g->waits = room(n_steps, sizeof *g->waits);
  g->proof.n_steps = n_steps;
  for (uint32_t i = 0; i < n_steps; i++) make_step(g, i, i < STREAMS ? i : below(g, STREAMS));
  for (uint32_t d = 0; d < DEVICES; d++) g->allocs[d].coherent = true;
  g->proof = (heddle__proof){.n_streams = STREAMS,
                             .n_allocs = DEVICES,
                             .n_values = g->n_values,
                             .n_steps = n_steps,
                             .in_flight = 1,
                             .stream_is_host = g->hosts,
                             .allocs = g->allocs,
                             .steps = g->steps};
  return g;
}

static void discard(generator *g) {
  for (uint32_t s = 0; s < STREAMS; s++) {
    heddle__free(g->lanes[s].free.offsets);
    for (uint32_t d = 0; d < DEVICES; d++) heddle__free(g->lent[d][s].offsets);
  }
  heddle__free(g->steps);
  heddle__free(g->accesses);
  heddle__free(g->waits);
  heddle__free(g);
}

static double prove_ms(const generator *g) {
  heddle_error err;
  const double start = now_ns();
  check(heddle__prove(&g->proof, NULL, &err), &err);
  return (now_ns() - start) / 1e6;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  static const uint32_t sizes[SIZES] = {2500, 5000, 10000};
  generator *plans[SIZES];
  double times[SIZES][ROUNDS], medians[SIZES];
  for (uint32_t k = 0; k < SIZES; k++) plans[k] = generate(sizes[k]);
  for (uint32_t k = 0; k < SIZES; k++) prove_ms(plans[k]);
  for (uint32_t round = 0; round < ROUNDS; round++)
    for (uint32_t k = 0; k < SIZES; k++) times[k][round] = prove_ms(plans[k]);
  printf("{\"plans\": [");
  for (uint32_t k = 0; k < SIZES; k++) {
    uint64_t arena = 0;
    printf("%s{\"steps\": %u, \"streams\": %u, \"accesses\": %u, \"waits\": %u, \"rounds_ms\": [", k > 0 ? ", " : "",
           sizes[k], STREAMS, plans[k]->n_accesses, plans[k]->n_waits);
    for (uint32_t round = 0; round < ROUNDS; round++) printf("%s%.4f", round > 0 ? ", " : "", times[k][round]);
    qsort(times[k], ROUNDS, sizeof times[k][0], by_size);
    medians[k] = times[k][ROUNDS / 2];
    for (uint32_t d = 0; d < DEVICES; d++) arena += plans[k]->allocs[d].bytes;
    printf("], \"median_ms\": %.4f, \"arena_bytes\": %" PRIu64 "}", medians[k], arena);
  }
  printf("], \"growth\": %.4f}\n", medians[2] / medians[0] * sizes[0] / sizes[2]);
  for (uint32_t k = 0; k < SIZES; k++) discard(plans[k]);
  return 0;
}
