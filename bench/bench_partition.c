/* bench/bench_partition.c: what it costs to collect a plugin's proposals, by the number of nodes. A chain of Relus on
 * sim is planned where the plugin wants each four as one (its own partition is replaced by one that only counts), and
 * where it wants nothing; one JSON object holds the nanoseconds of the pass in 15 interleaved rounds, and the edges
 * followed. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "executor/plan.h"
#include "heddle/graph.h"

enum { SIZES = 3, ROUNDS = 15, TOGETHER = 4, REGIONS_PASS = 2 };

/* ---- the plugin */

static heddle_status want_fours(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                heddle_propose_fn propose, void *sink, heddle_error *err) {
  (void)self;
  (void)index;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK && i + TOGETHER <= region->nodes.count; i += TOGETHER) {
    uint32_t nodes[TOGETHER];
    for (uint32_t k = 0; k < TOGETHER; k++) nodes[k] = i + k;
    s = propose(sink, nodes, TOGETHER, err);
  }
  return s;
}

static heddle_status want_nothing(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                  heddle_propose_fn propose, void *sink, heddle_error *err) {
  (void)self;
  (void)index;
  (void)region;
  (void)propose;
  (void)sink;
  (void)err;
  return HEDDLE_OK;
}

/* ---- the graph */

static heddle_graph *chain(uint32_t n) {
  char *text = malloc((size_t)n * 80 + 512), *t = text;
  if (text == NULL) exit(1);
  t += sprintf(t, "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}");
  for (uint32_t i = 1; i <= n; i++)
    t += sprintf(t, ",{\"op\":\"Relu\",\"name\":\"n%u\",\"inputs\":[[%u,0,0]]}", (unsigned)i, (unsigned)i - 1);
  t += sprintf(t, "],\"heads\":[[%u,0,0]],\"arg_nodes\":[0],\"node_row_ptr\":[0", (unsigned)n);
  for (uint32_t i = 1; i <= n + 1; i++) t += sprintf(t, ",%u", (unsigned)i);
  t += sprintf(t, "],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\"");
  for (uint32_t i = 0; i < n; i++) t += sprintf(t, ",null");
  t += sprintf(t, "]],\"shape\":[\"list_shape\",[[64]");
  for (uint32_t i = 0; i < n; i++) t += sprintf(t, ",null");
  t += sprintf(t, "]]}}");
  heddle_graph *graph = NULL;
  heddle_error err;
  check(heddle_graph_parse(text, (size_t)(t - text), "chain", NULL, &graph, &err), &err);
  free(text);
  return graph;
}

/* ---- the plans */

typedef struct subject {
  heddle_graph *graph;
  heddle__plan_input input;
  heddle__request request;
  uint32_t nodes, regions;
  uint64_t visits;
  uint64_t ns[2][ROUNDS]; /* fours, nothing */
} subject;

static void make_subject(subject *s, heddle_context *ctx, heddle_device *const *device, uint32_t nodes) {
  s->nodes = nodes;
  s->graph = chain(nodes);
  s->input = (heddle__plan_input){.source = HEDDLE__SOURCE_INPUT, .has_shape = true};
  s->input.known = (heddle__known){.dtype = HEDDLE_FLOAT32, .ndim = 1, .bytes = 64 * sizeof(float), .shape = {64}};
  s->request = (heddle__request){
      .graph = s->graph, .ctx = ctx, .devices = device, .inputs = &s->input, .n_devices = 1, .in_flight = 1};
}

static void measure(subject *s, heddle__tables *tables, uint32_t round) {
  for (int quiet = 0; quiet < 2; quiet++) {
    heddle__plan *plan = NULL;
    heddle_error err;
    tables->op.partition = quiet ? want_nothing : want_fours;
    check(heddle__plan_make(&s->request, &plan, &err), &err);
    s->ns[quiet][round] = plan->pass_ns[REGIONS_PASS];
    if (!quiet) s->visits = plan->proposal_visits;
    if (!quiet) s->regions = plan->n_regions;
    heddle__plan_free(plan);
  }
}

static void print_subject(const subject *s) {
  static const char *const names[] = {"fours", "nothing"};
  printf("{\"nodes\": %u, \"regions\": %u, \"visits\": %" PRIu64, (unsigned)s->nodes, (unsigned)s->regions, s->visits);
  for (int quiet = 0; quiet < 2; quiet++) {
    printf(", \"%s_ns\": [", names[quiet]);
    for (int r = 0; r < ROUNDS; r++) printf("%s%" PRIu64, r > 0 ? ", " : "", s->ns[quiet][r]);
    printf("]");
  }
  printf("}");
}

int main(void) {
  static const uint32_t sizes[SIZES] = {2500, 5000, 10000};
  static subject subjects[SIZES];
  mallopt(M_MMAP_THRESHOLD, 1 << 25); /* memory is used again, so that fresh pages are not what is measured */
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const heddle_setting settings[] = {{"sim.fuse", "1"}, {"log", "error"}};
  heddle_context *ctx = NULL;
  heddle_device *device = NULL;
  heddle_error err;
  check(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err), &err);
  check(heddle_context_find_device(ctx, "sim:0", &device, &err), &err);
  heddle__tables tables = *device->t;
  device->t = &tables;
  for (uint32_t k = 0; k < SIZES; k++) make_subject(&subjects[k], ctx, &device, sizes[k]);
  for (uint32_t round = 0; round < ROUNDS; round++)
    for (uint32_t k = 0; k < SIZES; k++) measure(&subjects[k], &tables, round);
  printf("{\"plans\": [");
  for (uint32_t k = 0; k < SIZES; k++) {
    if (k > 0) printf(", ");
    print_subject(&subjects[k]);
    heddle_graph_release(subjects[k].graph);
  }
  printf("]}\n");
  heddle_context_release(ctx);
  return 0;
}
