/* bench/bench_prove_plan.c: what the proof costs beside the other passes, on plans that the passes make themselves.
 * Seeded graphs of Add, Mul and Relu, annotated over cpu and three sims, are planned for about 2,500, 5,000 and 10,000
 * steps with 4 streams a device; one JSON object holds the nanoseconds of every pass in 15 interleaved rounds. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "executor/plan.h"
#include "heddle/graph.h"

#define DEVICES 4u
#define CLASSES 5u /* of shapes; the last is [1], which broadcasts into the others */
#define WINDOW 6u  /* values of a device and class that a node may read: so that most die young */
#define SIZES 3u
#define ROUNDS 15u
#define PASSES 9u

static const char *const device_names[DEVICES] = {"cpu", "sim:0", "sim:1", "sim:2"};
static const char *const pass_names[PASSES] = {"infer",   "place",   "regions", "layout", "copies",
                                               "streams", "storage", "prove",   "all"};
static const unsigned class_sizes[CLASSES] = {64, 256, 1024, 4096, 1};

typedef struct text {
  char *bytes;
  size_t used, cap;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...) {
  if (t->cap - t->used < 256) {
    char *grown = heddle__grow(t->bytes, t->cap, t->cap * 2 + 4096, 1);
    if (grown == NULL) {
      fprintf(stderr, "bench_prove_plan: out of memory\n");
      exit(1);
    }
    t->bytes = grown;
    t->cap = t->cap * 2 + 4096;
  }
  va_list args;
  va_start(args, format);
  t->used += (size_t)vsnprintf(t->bytes + t->used, t->cap - t->used, format, args);
  va_end(args);
}

/* ---- the graph */

/* The last few values of a device and class, and whether they have been read. */
typedef struct recent {
  uint32_t nodes[WINDOW];
  bool read[WINDOW];
  uint32_t n;
} recent;

typedef struct generator {
  recent values[DEVICES][CLASSES];
  uint64_t random;
  uint32_t edges, crossings;
} generator;

static uint32_t below(generator *g, uint32_t n) {
  g->random = g->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(g->random >> 33) % n;
}

static void keep(generator *g, uint32_t device, uint32_t class, uint32_t node) {
  recent *r = &g->values[device][class];
  r->read[r->n % WINDOW] = false;
  r->nodes[r->n++ % WINDOW] = node;
}

/* An operand for a node of this device: mostly a neighbour's, sometimes another device's; one that is not read yet
 * where there is one, so that few nodes are dead. Inputs belong to all devices. */
static uint32_t pick(generator *g, uint32_t device, uint32_t class) {
  uint32_t from = below(g, 100) < 20 ? (device + 1 + below(g, DEVICES - 1)) % DEVICES : device;
  recent *r = &g->values[from][class];
  if (r->n == 0) return class; /* the input of this class */
  g->edges++;
  g->crossings += from != device;
  uint32_t count = r->n < WINDOW ? r->n : WINDOW, i = 0;
  while (i < count && r->read[i]) i++;
  if (i == count) i = below(g, count);
  r->read[i] = true;
  return r->nodes[i];
}

static void put_node(generator *g, text *t, uint32_t number, uint32_t device) {
  static const char *const binary[] = {"Add", "Mul"};
  uint32_t class = below(g, CLASSES), a = pick(g, device, class);
  if (below(g, 3) == 0) {
    put(t, ",{\"op\":\"Relu\",\"name\":\"n%u\",\"device\":\"%s\",\"inputs\":[[%u,0,0]]}", (unsigned)number,
        device_names[device], (unsigned)a);
  } else {
    uint32_t b = pick(g, device, below(g, 8) == 0 ? CLASSES - 1 : class);
    put(t, ",{\"op\":\"%s\",\"name\":\"n%u\",\"device\":\"%s\",\"inputs\":[[%u,0,0],[%u,0,0]]}", binary[below(g, 2)],
        (unsigned)number, device_names[device], (unsigned)a, (unsigned)b);
  }
  keep(g, device, class, number);
}

/* Every window's values are heads, so that all nodes but a few are needed. */
static void put_heads(const generator *g, text *t) {
  const char *comma = "";
  put(t, "],\"heads\":[");
  for (uint32_t d = 0; d < DEVICES; d++)
    for (uint32_t c = 0; c < CLASSES; c++) {
      const recent *r = &g->values[d][c];
      for (uint32_t i = 0; i < r->n && i < WINDOW; i++) {
        put(t, "%s[%u,0,0]", comma, (unsigned)r->nodes[i]);
        comma = ",";
      }
    }
}

static heddle_graph *generate(uint32_t n_nodes, generator *g) {
  text t = {0};
  memset(g, 0, sizeof *g);
  g->random = 20240 + n_nodes;
  put(&t, "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[");
  for (uint32_t i = 0; i < CLASSES; i++)
    put(&t, "%s{\"op\":\"null\",\"name\":\"x%u\",\"inputs\":[]}", i > 0 ? "," : "", (unsigned)i);
  uint32_t device = 0;
  for (uint32_t i = CLASSES; i < CLASSES + n_nodes; i++) {
    if (below(g, 8) == 0) device = below(g, DEVICES);
    put_node(g, &t, i, device);
  }
  put_heads(g, &t);
  put(&t, "],\"arg_nodes\":[0,1,2,3,4],\"node_row_ptr\":[0");
  for (uint32_t i = 1; i <= CLASSES + n_nodes; i++) put(&t, ",%u", (unsigned)i);
  put(&t, "],\"attrs\":{\"dltype\":[\"list_str\",[");
  for (uint32_t i = 0; i < CLASSES + n_nodes; i++)
    put(&t, "%s%s", i > 0 ? "," : "", i < CLASSES ? "\"float32\"" : "null");
  put(&t, "]],\"shape\":[\"list_shape\",[");
  for (uint32_t i = 0; i < CLASSES; i++) put(&t, "%s[%u]", i > 0 ? "," : "", class_sizes[i]);
  for (uint32_t i = 0; i < n_nodes; i++) put(&t, ",null");
  put(&t, "]]}}");
  heddle_graph *graph = NULL;
  heddle_error err;
  check(heddle_graph_parse(t.bytes, t.used, "generated", NULL, &graph, &err), &err);
  heddle__free(t.bytes);
  return graph;
}

/* ---- the plans */

typedef struct subject {
  heddle_graph *graph;
  generator made;
  uint32_t nodes;
  heddle__request request;
  heddle__plan_input inputs[CLASSES];
  uint32_t steps, streams, waits, copies;
  uint64_t ns[PASSES][ROUNDS];
} subject;

static heddle__plan *plan_of(const subject *s) {
  heddle__plan *plan = NULL;
  heddle_error err;
  check(heddle__plan_make(&s->request, &plan, &err), &err);
  return plan;
}

static void make_subject(subject *s, heddle_context *ctx, heddle_device *const *devices, uint32_t n_steps) {
  for (uint32_t i = 0; i < CLASSES; i++) {
    heddle__plan_input *in = &s->inputs[i];
    in->source = HEDDLE__SOURCE_INPUT;
    in->has_shape = true;
    in->known = (heddle__known){.dtype = HEDDLE_FLOAT32, .ndim = 1, .bytes = class_sizes[i] * sizeof(float)};
    in->known.shape[0] = class_sizes[i];
  }
  s->nodes = n_steps / 2;
  for (int turn = 0; turn < 4; turn++) { /* until there are about as many steps as were asked for */
    heddle_graph_release(s->graph);
    s->graph = generate(s->nodes, &s->made);
    s->request = (heddle__request){.graph = s->graph,
                                   .ctx = ctx,
                                   .devices = devices,
                                   .inputs = s->inputs,
                                   .n_devices = DEVICES,
                                   .max_streams = 3,
                                   .in_flight = 1};
    heddle__plan *plan = plan_of(s);
    s->steps = plan->n_steps;
    s->streams = plan->n_streams;
    s->waits = s->copies = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
      s->waits += plan->steps[i].n_waits;
      s->copies += plan->steps[i].kind != HEDDLE__STEP_OP;
    }
    heddle__plan_free(plan);
    if (turn < 3) s->nodes = (uint32_t)((uint64_t)s->nodes * n_steps / s->steps);
  }
}

static void print_subject(const subject *s) {
  printf("{\"steps\": %u, \"nodes\": %u, \"streams\": %u, \"waits\": %u, \"copies\": %u, \"crossing\": %.3f, \"ns\": {",
         (unsigned)s->steps, (unsigned)s->nodes, (unsigned)s->streams, (unsigned)s->waits, (unsigned)s->copies,
         (double)s->made.crossings / (double)s->made.edges);
  for (uint32_t p = 0; p < PASSES; p++) {
    printf("%s\"%s\": [", p > 0 ? ", " : "", pass_names[p]);
    for (uint32_t r = 0; r < ROUNDS; r++) printf("%s%" PRIu64, r > 0 ? ", " : "", s->ns[p][r]);
    printf("]");
  }
  printf("}}");
}

int main(void) {
  static const uint32_t sizes[SIZES] = {2500, 5000, 10000};
  static subject subjects[SIZES];
  const heddle_setting settings[] = {{"sim.devices", "3"}, {"log", "off"}};
  heddle_context *ctx = NULL;
  heddle_device *devices[DEVICES];
  heddle_error err;
  check(heddle_context_create(settings, 2, NULL, NULL, &ctx, &err), &err);
  for (uint32_t i = 0; i < DEVICES; i++)
    check(heddle_context_find_device(ctx, device_names[i], &devices[i], &err), &err);
  for (uint32_t k = 0; k < SIZES; k++) make_subject(&subjects[k], ctx, devices, sizes[k]);
  for (uint32_t round = 0; round < ROUNDS; round++)
    for (uint32_t k = 0; k < SIZES; k++) {
      heddle__plan *plan = plan_of(&subjects[k]);
      for (uint32_t p = 0; p < PASSES; p++) subjects[k].ns[p][round] = plan->pass_ns[p];
      heddle__plan_free(plan);
    }
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
