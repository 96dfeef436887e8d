/* The group "regions": several nodes that run as one give what they give one by one. What partition proposes of the kit's
 * graphs, and what query takes of them, is prepared, bound and run. */
#include "op_each.h"
#include "op_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROPOSALS = GRAPH_NODES, RANDOM = 8 };

typedef struct work {
  kit *k;
  heddle_pstream *stream;
  bool dry; /* nothing runs, and nothing fails: it is asked which families there are */
  op_graph g;
  op_part part;
  op_offers offers;
  op_want want[OP_OUT];
  bool proposed[PROPOSALS][GRAPH_NODES];
  uint32_t n_proposed;
  uint32_t graphs, from_partition, from_query;
} work;

/* ---------------------------------------------------------------- one region */

/* false: query refuses it. Offers are run one after the other, operands in one buffer and in place. */
static bool run_part(work *w, const bool *in, bool must) {
  kit *k = w->k;
  char text[512], what[600];
  if (!op_part_make(&w->g, in, &w->part)) return false;
  op_text(&w->part.c, text, sizeof text);
  const heddle_status s = op_query(k, &w->part.r, &w->offers);
  if (w->dry) return s != HEDDLE_EUNSUPPORTED;
  if (w->offers.wrong[0] != '\0') kit_fail(k, "%s: %s", text, w->offers.wrong);
  if (s == HEDDLE_EUNSUPPORTED && !must) return false;
  if (s == HEDDLE_EUNSUPPORTED)
    kit_fail(k, "partition proposed the region %s, and query refuses it: %.300s", text, k->err.text);
  snprintf(what, sizeof what, "op.query of the region %s", text);
  kit_ok(k, s, what);
  if (!op_part_reference(&w->g, in, &w->part, w->want))
    kit_fail(k, "the kit's reference does not take the region %s", text);
  for (uint32_t offer = 0; offer < w->offers.count && offer < OP_OFFERS; offer++) {
    op_ready ready;
    op_prepare_region(k, &w->part.c, &w->part.r, &w->offers, offer, &ready);
    op_launch(k, k->dev, w->stream, &ready, w->want, OP_ARENA | OP_TWICE, -1);
    for (uint64_t p = 0; p < ready.offer->n_in_place; p++)
      op_launch(k, k->dev, w->stream, &ready, w->want, 0, (int32_t)p);
    op_ready_free(k, &ready);
  }
  op_want_free(w->want);
  return true;
}

/* ---------------------------------------------------------------- one graph */

static heddle_status take(void *sink, const uint32_t *nodes, uint32_t count, heddle_error *err) {
  work *w = sink;
  (void)err;
  if (w->dry && w->n_proposed == PROPOSALS) return HEDDLE_OK;
  if (w->n_proposed == PROPOSALS) kit_fail(w->k, "partition made more proposals than half of a graph's nodes");
  bool *in = w->proposed[w->n_proposed];
  memset(in, 0, sizeof w->proposed[0]);
  for (uint32_t i = 0; i < count; i++) {
    if (w->dry && nodes[i] >= w->g.n) return HEDDLE_OK;
    if (nodes[i] >= w->g.n) kit_fail(w->k, "partition proposed node %u of %u", nodes[i], w->g.n);
    in[nodes[i]] = true;
  }
  w->n_proposed += count > 1;
  return HEDDLE_OK;
}

static void propose(work *w) {
  kit *k = w->k;
  bool all[GRAPH_NODES] = {false};
  w->n_proposed = 0;
  if (k->t.op.partition == NULL) return;
  for (uint32_t i = 0; i < w->g.n; i++) all[i] = true;
  if (!op_part_make(&w->g, all, &w->part)) return;
  heddle_error err = {0};
  const heddle_status s = k->t.op.partition(k->instance, k->index, &w->part.r.region, take, w, &err);
  k->err = err;
  if (w->dry) w->from_partition += s != HEDDLE_OK;
  else kit_ok(k, s, "op.partition");
}

/* Whether the plugin takes each node of the graph alone: only such nodes are shown to partition. */
static bool takes_nodes(work *w) {
  for (uint32_t i = 0; i < w->g.n; i++) {
    bool in[GRAPH_NODES] = {false};
    in[i] = true;
    if (!op_part_make(&w->g, in, &w->part)) return false;
    const heddle_status s = op_query(w->k, &w->part.r, &w->offers);
    if (s == HEDDLE_EUNSUPPORTED) return false;
    if (!w->dry) kit_ok(w->k, s, "op.query of a node of a graph");
  }
  return true;
}

static bool is_proposed(const work *w, const bool *in) {
  for (uint32_t p = 0; p < w->n_proposed; p++)
    if (memcmp(w->proposed[p], in, GRAPH_NODES * sizeof *in) == 0) return true;
  return false;
}

/* The whole graph, and each pair of a node and one that reads it: convex where no other path leads from one to the other,
 * which holds for neighbours in the order. */
static void ask_others(work *w) {
  bool in[GRAPH_NODES] = {false};
  for (uint32_t i = 0; i < w->g.n; i++) in[i] = true;
  if (w->g.n > 1 && !is_proposed(w, in)) w->from_query += run_part(w, in, false);
  for (uint32_t i = 1; i < w->g.n && w->g.n > 2; i++) {
    bool reads = false;
    for (uint32_t j = 0; j < w->g.node[i].n_in; j++) reads = reads || w->g.in[i][j] == (int32_t)i - 1;
    memset(in, 0, sizeof in);
    in[i - 1] = in[i] = true;
    if (reads && !is_proposed(w, in)) w->from_query += run_part(w, in, false);
  }
}

/* others: also regions that nothing proposed. */
static void run_graph(work *w, const op_graph_line *line, const op_line *stand_in, char type, uint32_t known,
                      bool others) {
  if (op_graph_make(w->k, &w->g, line, stand_in, type, known) && takes_nodes(w)) {
    w->graphs++;
    propose(w);
    if (w->dry) w->from_partition += w->n_proposed;
    for (uint32_t p = 0; p < w->n_proposed && !w->dry; p++) w->from_partition += run_part(w, w->proposed[p], true);
    if (others) ask_others(w);
  }
  op_graph_free(&w->g);
}

/* ---------------------------------------------------------------- a family */

/* Whether the plugin's list has the operator; true where there is no list. */
typedef struct listed {
  const op_line *line;
  bool found;
} listed;

static heddle_status take_listed(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                                 const char *dtypes, heddle_error *err) {
  listed *l = sink;
  (void)dtypes;
  (void)err;
  l->found = l->found || (domain != NULL && op != NULL && domain[0] == '\0' && strcmp(op, l->line->op) == 0 &&
                          l->line->opset >= first && l->line->opset <= last);
  return HEDDLE_OK;
}

static bool is_listed(kit *k, const op_line *line) {
  listed l = {line, k->t.op.list == NULL};
  heddle_error err = {0};
  if (!l.found) (void)k->t.op.list(k->instance, k->index, take_listed, &l, &err);
  return l.found;
}

/* With its first stand-in in every form, with the others in one. */
static void run_line(work *w, const op_graph_line *line) {
  const char sign = op_graph_sign(line);
  bool first = true;
  for (uint32_t n = 0; n == 0 || sign != '\0'; n++) {
    const op_line *stand_in = sign != '\0' ? op_graph_stand_in(sign, n) : NULL;
    if (sign != '\0' && stand_in == NULL) break;
    if (stand_in != NULL && !is_listed(w->k, stand_in)) continue;
    if (first || sign != '^') run_graph(w, line, stand_in, 'f', OP_RUN, first);
    if (first || sign == '^') run_graph(w, line, stand_in, 'f', OP_KNOWN_EVEN, false);
    if (first) run_graph(w, line, stand_in, 'h', OP_RUN, false);
    first = false;
  }
}

static void run_family(work *w, const char *family) {
  for (uint32_t i = 0; i < op_graph_line_count; i++)
    if (strcmp(op_graph_lines[i].family, family) == 0 && !(w->dry && w->from_partition + w->from_query > 0))
      run_line(w, &op_graph_lines[i]);
  for (uint32_t seed = 1; seed <= RANDOM && strcmp(family, "random") == 0; seed++) {
    op_graph_line line;
    op_graph_random(seed, &line);
    run_graph(w, &line, NULL, 'f', OP_RUN, true);
  }
}

static void compute(kit *k) {
  if (!k->t.has_op) kit_skip(k, "the plugin has no operators");
  work *w = calloc(1, sizeof *w);
  if (w == NULL) kit_fail(k, "the kit has no memory");
  w->k = k;
  w->stream = kit_stream(k, k->dev);
  run_family(w, k->param);
  k->t.stream.close(w->stream);
  const uint32_t graphs = w->graphs, proposed = w->from_partition, taken = w->from_query;
  free(w);
  if (proposed + taken == 0) kit_skip(k, "of %u graphs the plugin takes no region of several nodes", graphs);
  kit_note(k, "of %u graphs %u proposals ran, and %u regions that query takes besides", graphs, proposed, taken);
}

/* The families of which the plugin proposes or takes a region. */
static void families(kit *k, void (*each)(void *sink, const char *word), void *sink) {
  const char *last = "";
  work *w = k->t.has_op && k->t.op.query != NULL ? calloc(1, sizeof *w) : NULL;
  for (uint32_t i = 0; w != NULL && i <= op_graph_line_count; i++) {
    const char *family = i < op_graph_line_count ? op_graph_lines[i].family : "random";
    if (strcmp(family, last) == 0) continue;
    last = family;
    w->k = k;
    w->dry = true;
    run_family(w, family);
    if (w->from_partition + w->from_query > 0) each(sink, family);
    memset(w, 0, sizeof *w);
  }
  free(w);
}

/* The limit is for drivers that compile each region when it is first met. */
KIT_GROUP(kit_regions, "regions",
          {"regions/compute", "a region of several nodes gives what its nodes give one by one", KIT_STAGE_DEVICE,
           KIT_SERIES, 300, compute, families});
