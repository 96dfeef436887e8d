/* graph/optimize/optimize.c: which optimisations are wished for, their order, and how often
 * they take turns. Each is a file of its own. */
#include <stdio.h>

#include "core/error.h"
#include "core/alloc.h"
#include "graph/optimize/net.h"

static const struct {
  const char *name;
  bool (*run)(opt_net *net);
} passes[] = {
    {"dead", opt_pass_dead},
    {"identity", opt_pass_identity},
    {"cse", opt_pass_cse},
    {"quantized", opt_pass_quantized}, /* before fold, which would make floats of quantised weights */
    {"fold", opt_pass_fold},
    {"rotary", opt_pass_rotary}, /* before attention, which moves Reshapes */
    {"attention", opt_pass_attention},
    {"grouped", opt_pass_grouped}, /* behind attention, which takes scales off the operands */
    {"reshapes", opt_pass_reshapes},
    {"transposes", opt_pass_transposes},
    {"conv", opt_pass_conv},
    {"activation", opt_pass_activation},
    {"layer_norm", opt_pass_layer_norm},
    {"rms_norm", opt_pass_rms_norm},
    {"gemm", opt_pass_gemm},
};

enum { N_PASSES = sizeof passes / sizeof passes[0], ALL = (1 << N_PASSES) - 1, MOST_ROUNDS = 8 };

/* ---- the wish */

static heddle_status unknown(const char *word, size_t length, heddle_error *err) {
  char list[240];
  size_t used = 0;
  for (size_t i = 0; i < N_PASSES; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, ", %s", passes[i].name);
  return heddle__fail(err, HEDDLE_EINVAL,
                      "optimize: there is no optimisation '%.*s'; there are on, off%s, and each with '-' before it",
                      (int)(length < 60 ? length : 60), word, list);
}

/* As switches are given: on, or off where it is not among 0, off and none, for which this library is not opened. */
static bool is_switch(const char *wish, uint32_t *mask) {
  static const char *const words[] = {"on", "1", "yes", "true", "no", "false"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(wish, words[i]) == 0) {
      *mask = i < 4 ? ALL : 0;
      return true;
    }
  return false;
}

static heddle_status read_word(const char *word, size_t length, bool first, uint32_t *mask, heddle_error *err) {
  bool without = length > 0 && word[0] == '-';
  const char *name = word + without;
  size_t n = length - without;
  uint32_t bits = n == 2 && memcmp(name, "on", 2) == 0 ? ALL : 0;
  for (size_t i = 0; i < N_PASSES; i++)
    if (strlen(passes[i].name) == n && memcmp(passes[i].name, name, n) == 0) bits = 1u << i;
  if (bits == 0) return unknown(word, length, err);
  if (first && without) *mask = ALL; /* "-cse" is all but that one */
  *mask = without ? *mask & ~bits : *mask | bits;
  return HEDDLE_OK;
}

static heddle_status read_wish(const char *wish, uint32_t *mask, heddle_error *err) {
  *mask = 0;
  if (is_switch(wish, mask)) return HEDDLE_OK;
  for (const char *at = wish;;) {
    size_t n = strcspn(at, ", ");
    heddle_status s = read_word(at, n, at == wish, mask, err);
    if (s != HEDDLE_OK) return s;
    at += n;
    at += strspn(at, ", ");
    if (*at == '\0') return HEDDLE_OK;
  }
}

/* ---- the rounds */

static heddle_status rewrite(opt_net *net, uint32_t mask, heddle_error *err) {
  bool changed = true;
  opt_count(net);
  opt_types(net);
  for (int round = 0; round < MOST_ROUNDS && changed && !net->wrong && !net->failed; round++) {
    changed = false;
    for (size_t i = 0; i < N_PASSES && !net->wrong && !net->failed; i++) {
      if ((mask >> i & 1) == 0 || !passes[i].run(net)) continue;
      changed = true;
      opt_count(net);
      opt_types(net);
    }
  }
  return net->failed ? heddle__no_memory(err, "optimisations") : HEDDLE_OK;
}

/* ---- the result */

typedef struct result {
  heddle__optimized shown;
  opt_net net;
} result;

void heddle__optimized_free(heddle__optimized *o) {
  if (o == NULL) return;
  result *r = (result *)o;
  heddle_graph_release(o->graph);
  json_decref(o->changes);
  opt_free(&r->net);
  heddle__free(r);
}

static heddle__entry kept_entry(const opt_value *v) {
  return v->maker != NULL ? (heddle__entry){v->maker->mark, v->index} : (heddle__entry){v->number, 0};
}

static heddle_status finish(result *r, heddle_error *err) {
  opt_net *net = &r->net;
  heddle_status s = opt_write(net, &r->shown.graph, err);
  heddle__constant *made = s == HEDDLE_OK ? opt_alloc(net, net->n_made, sizeof *made) : NULL;
  heddle__entry *keep = s == HEDDLE_OK ? opt_alloc(net, net->ask->n_keep, sizeof *keep) : NULL;
  if (s == HEDDLE_OK && (made == NULL || keep == NULL)) s = heddle__no_memory(err, "an optimised graph");
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < net->n_made; i++) made[i] = *net->made[i]->constant;
  for (uint32_t i = 0; i < net->ask->n_keep; i++) keep[i] = kept_entry(net->keep[i]);
  r->shown.made = made;
  r->shown.n_made = net->n_made;
  r->shown.read = net->read;
  r->shown.keep = keep;
  return opt_tell(net, &r->shown, err);
}

static bool is_ours(const heddle_graph *g) {
  bool ours = g->is_heddle;
  for (uint32_t i = 0; ours && i < g->n_nodes; i++) ours = g->nodes[i].kind != HEDDLE__NODE_TVM;
  return ours;
}

heddle_status heddle__optimize_graph(const heddle__optimize_ask *ask, heddle__optimized **out, heddle_error *err) {
  uint32_t mask;
  *out = NULL;
  heddle_status s = read_wish(ask->wish, &mask, err);
  if (s != HEDDLE_OK || mask == 0 || !is_ours(ask->graph)) return s;
  result *r = heddle__alloc(1, sizeof *r);
  if (r == NULL) return heddle__no_memory(err, "optimisations");
  r->net.ask = ask;
  s = opt_read(&r->net, err);
  if (s == HEDDLE_OK) s = rewrite(&r->net, mask, err);
  if (s == HEDDLE_OK && r->net.n_changes > 0 && !r->net.wrong) {
    opt_log(&r->net);
    s = finish(r, err);
    if (s == HEDDLE_OK) *out = &r->shown;
  }
  r->net.ask = NULL; /* it was lent for the call */
  if (*out == NULL) heddle__optimized_free(&r->shown);
  return s;
}
