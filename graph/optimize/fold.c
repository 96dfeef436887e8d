/* graph/optimize/fold.c: what only constants decide is computed once, on the device cpu, when the model is made; and Shape of
 * what always has one shape. Results are constants; those that would take much more memory than they save are left. */
#include "core/error.h"
#include "core/context.h"
#include "core/log.h"
#include "graph/optimize/net.h"

#include <stdio.h>

/* Of one result that is larger than what it is made of; of all results, unless limit.fold_bytes says otherwise. */
#define GROWTH_BYTES (UINT64_C(1) << 20)
#define DEFAULT_BYTES (INT64_C(256) << 20)
#define RUN_NS (UINT64_C(60) * 1000000000)

enum { FOLDED = 1 /* opt_node.mark */, MOST_FAILURES = 16 };

static bool is_constant(const opt_value *v) {
  return v->constant != NULL || (v->maker != NULL && v->maker->mark == FOLDED);
}

/* Whether a node's results are to be constants. limit is what memory is left for them. */
static bool can_fold(const opt_node *n, uint64_t limit, uint64_t *bytes) {
  uint64_t in = 0, out = 0;
  if (!n->live || n->unfoldable || !opt_repeats(n) || n->n_outputs == 0) return false;
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    const opt_value *v = opt_in(n, k);
    if (v == NULL) continue;
    if (!v->known || !is_constant(v)) return false;
    in += v->bytes;
  }
  for (uint32_t k = 0; k < n->n_outputs; k++) {
    const opt_value *v = &n->outputs[k];
    if (!v->known || v->pinned || v->bytes == 0) return false;
    out += v->bytes;
  }
  *bytes = out;
  /* Weights in blocks, or of few bits, have no operator on what they were: dequantised in each run they would take longer than what reads them. */
  const opt_value *x = opt_in(n, 0);
  const bool is_weights = opt_is(n, "DequantizeLinear") &&
                          (opt_get_int(n, "block_size", 0) > 0 || (x != NULL && x->known && x->dtype.bits < 8));
  return out <= limit && (out <= in || out <= GROWTH_BYTES || is_weights);
}

/* ---- Shape */

static bool fold_shape(opt_net *net, opt_node *n) {
  const opt_value *x = opt_in(n, 0);
  opt_value *y = &n->outputs[0];
  void *bytes;
  if (!opt_is(n, "Shape") || x == NULL || !x->known || !y->known || y->pinned || y->ndim != 1) return false;
  int64_t first = opt_get_int(n, "start", 0);
  if (first < 0) first += x->ndim;
  first = first < 0 ? 0 : first;
  if (first + y->shape[0] > (int64_t)x->ndim) return false;
  opt_value *made = opt_constant(net, opt_format(net, "%s", n->name), y->dtype, y->shape, 1, &bytes);
  if (made == NULL) return false;
  if (y->shape[0] > 0) memcpy(bytes, x->shape + first, (size_t)y->shape[0] * sizeof *x->shape);
  opt_replace(y, made);
  n->live = false;
  opt_note(net, "fold", (const opt_node *const[]){n}, 1, "a constant: its input has one shape");
  return true;
}

/* ---- running a part of the graph */

typedef struct part {
  opt_node **nodes;
  opt_value **from, **to;
  uint32_t n_nodes, n_from, n_to;
} part;

/* Constants that the part reads, and what others read of it. */
static bool gather(opt_net *net, part *p) {
  uint64_t most_from = 0, most_to = 0;
  for (uint32_t i = 0; i < p->n_nodes; i++) most_from += p->nodes[i]->n_inputs, most_to += p->nodes[i]->n_outputs;
  p->from = opt_alloc(net, most_from, sizeof(opt_value *));
  p->to = opt_alloc(net, most_to, sizeof(opt_value *));
  if (p->from == NULL || p->to == NULL) return false;
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    opt_node *n = p->nodes[i];
    for (uint32_t k = 0; k < n->n_outputs; k++) n->outputs[k].number = 0; /* uses inside */
    for (uint32_t k = 0; k < n->n_inputs; k++) {
      opt_value *v = opt_in(n, k);
      if (v == NULL) continue;
      if (v->maker != NULL) {
        v->number++;
        continue;
      }
      bool seen = v->number < p->n_from && p->from[v->number] == v;
      if (!seen) {
        v->number = p->n_from;
        p->from[p->n_from++] = v;
      }
    }
  }
  for (uint32_t i = 0; i < p->n_nodes; i++)
    for (uint32_t k = 0; k < p->nodes[i]->n_outputs; k++) {
      opt_value *v = &p->nodes[i]->outputs[k];
      if (v->users > v->number) p->to[p->n_to++] = v;
    }
  return true;
}

/* The constants as parameters, for the length of a run: their bytes stay where they are. */
static bool lend(opt_net *net, const part *p, heddle_params *out) {
  out->source = (char *)(uintptr_t) "constants";
  out->items = opt_alloc(net, p->n_from, sizeof *out->items);
  atomic_init(&out->references, 2); /* one more than there will be, so that it is never freed */
  for (uint32_t i = 0; out->items != NULL && i < p->n_from; i++) {
    opt_bytes(net, p->from[i]);
    out->items[i].name = opt_format(net, "c%u", (unsigned)i);
    out->items[i].value = *p->from[i]->constant;
    out->items[i].file_dtype = p->from[i]->dtype;
    out->count = i + 1;
  }
  return !net->failed;
}

static heddle_status take_result(opt_net *net, heddle_executor *ex, opt_value *v, uint32_t i, heddle_error *err) {
  heddle_tensor *t = NULL;
  void *bytes;
  heddle_status s = heddle_executor_view_output(ex, i, &t, err);
  if (s != HEDDLE_OK) return s;
  const char *name = v->maker->n_outputs == 1 ? opt_format(net, "%s", v->maker->name)
                                              : opt_format(net, "%s:%u", v->maker->name, (unsigned)v->index);
  opt_value *made = opt_constant(net, name, v->dtype, v->shape, v->ndim, &bytes);
  if (made == NULL) s = heddle__no_memory(err, "a folded constant");
  else if (heddle_tensor_bytes(t) != v->bytes) s = heddle__fail(err, HEDDLE_EINTERNAL, "a result of another size");
  else memcpy(bytes, heddle_tensor_data(t), (size_t)v->bytes);
  heddle_tensor_release(t);
  if (s == HEDDLE_OK) opt_replace(v, made);
  return s;
}

static heddle_status compute(opt_net *net, part *p, heddle_error *err) {
  heddle_graph *graph = NULL;
  heddle_model *model = NULL;
  heddle_executor *ex = NULL;
  heddle_params params = {.count = 0};
  const heddle_model_options options = {.struct_size = sizeof options,
                                        .devices = "cpu",
                                        .flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS | HEDDLE_MODEL_STRICT,
                                        .optimize = "off",
                                        .memory = "off"};
  heddle_status s = HEDDLE_OK;
  s = opt_write_part(net, p->nodes, p->n_nodes, p->from, p->n_from, p->to, p->n_to, &graph, err);
  if (s == HEDDLE_OK && !lend(net, p, &params)) s = heddle__no_memory(err, "constants");
  if (s == HEDDLE_OK)
    s = heddle_model_create(net->ask->ctx, graph, p->n_from > 0 ? &params : NULL, &options, &model, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(model, &ex, err);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, RUN_NS, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < p->n_to; i++) s = take_result(net, ex, p->to[i], i, err);
  heddle_executor_release(ex);
  heddle_model_release(model);
  heddle_graph_release(graph);
  return s;
}

/* ---- the pass */

/* Whether all went well. Where it did not, the graph is right without it: the words are for who wonders. */
static bool fold_part(opt_net *net, part *p) {
  heddle_error why = {0};
  uint64_t bytes = 0;
  if (!gather(net, p)) return false;
  for (uint32_t i = 0; i < p->n_to; i++) bytes += p->to[i]->bytes;
  heddle_status s = compute(net, p, &why);
  if (s == HEDDLE_ENOMEM) net->failed = true;
  if (s != HEDDLE_OK) {
    char text[sizeof why.text + 200];
    snprintf(text, sizeof text, "%.120s: fold: not computed%s: %s", net->graph->source,
             p->n_nodes > 1 ? " together" : "", why.text);
    heddle__log_line(heddle__context_log(net->ask->ctx), HEDDLE_LOG_INFO, "optimize", text);
    return false;
  }
  net->folded_bytes += bytes;
  for (uint32_t i = 0; i < p->n_nodes; i++) p->nodes[i]->live = false;
  opt_note(net, "fold", (const opt_node *const *)p->nodes, p->n_nodes, "computed once: constants of %llu bytes",
           (unsigned long long)bytes);
  return true;
}

static bool has_constants(const opt_node *n) {
  for (uint32_t k = 0; k < n->n_inputs; k++) {
    const opt_value *v = opt_in(n, k);
    if (v != NULL && v->constant == NULL) return false;
  }
  return true;
}

/* Where the device cannot do one of them, each alone; what cannot be done is not tried again, and where much cannot be
 * done (there is no such device, perhaps) no more is tried. */
static bool fold_each(opt_net *net, const part *all) {
  bool changed = false;
  for (uint32_t i = 0; i < all->n_nodes && !net->failed && net->failures < MOST_FAILURES; i++) {
    part one = {.nodes = &all->nodes[i], .n_nodes = 1};
    if (!has_constants(one.nodes[0])) continue;
    one.nodes[0]->unfoldable = !fold_part(net, &one);
    net->failures += one.nodes[0]->unfoldable;
    changed = changed || !one.nodes[0]->unfoldable;
  }
  return changed;
}

bool opt_pass_fold(opt_net *net) {
  bool changed = false;
  int64_t most = 0;
  uint64_t total = 0;
  part p = {.nodes = opt_alloc(net, net->n_nodes, sizeof(opt_node *))};
  if (net->failed ||
      heddle__context_number(net->ask->ctx, "limit.fold_bytes", DEFAULT_BYTES, 0, INT64_MAX, &most, NULL) != HEDDLE_OK)
    return false;
  for (uint32_t i = 0; i < net->n_nodes; i++) net->nodes[i].mark = 0;
  for (uint32_t i = 0; i < net->n_nodes && !net->failed; i++) {
    opt_node *n = &net->nodes[i];
    uint64_t bytes = 0, done = net->folded_bytes + total;
    if (n->live && fold_shape(net, n)) {
      changed = true;
    } else if (done <= (uint64_t)most && can_fold(n, (uint64_t)most - done, &bytes)) {
      n->mark = FOLDED;
      total += bytes;
      p.nodes[p.n_nodes++] = n;
    }
  }
  if (p.n_nodes == 0 || net->failed) return changed;
  if (!net->folds_each && fold_part(net, &p)) return true;
  net->folds_each = true;
  return fold_each(net, &p) || changed;
}
