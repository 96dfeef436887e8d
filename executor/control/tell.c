/* executor/control/tell.c: what may be asked of a model in stages between runs: its plans, one value, and what was counted. */
#include <string.h>

#include "executor/control/stages.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/sheet.h"

/* ---- plans */

typedef struct teller {
  heddle__sheet sheet;
  heddle_status status;
  heddle_explain_format format;
  uint32_t n;
  heddle_error *err; /* of the status, but for HEDDLE_ENOMEM */
} teller;

/* The plan of one model; what names it. */
static void tell(teller *t, heddle_model *m, heddle_executor *ex, const char *what) {
  char *plan = NULL;
  heddle_error why = {0};
  heddle_status s = ex != NULL ? heddle_executor_explain(ex, t->format, &plan, &why)
                               : heddle_model_explain(m, t->format, NULL, NULL, 0, &plan, &why);
  if (s == HEDDLE_ELIMIT) { /* not for a run to tell: what is not known yet has another status */
    t->status = s;
    if (t->err != NULL) *t->err = why;
    (void)heddle__prefix(t->err, s, "%s: ", what);
    return;
  }
  const bool known = s == HEDDLE_OK;
  if (t->format == HEDDLE_EXPLAIN_JSON) {
    heddle__say(&t->sheet, "%s\n {\"stage\": \"%s\", \"plan\": ", t->n > 0 ? "," : "", what);
    heddle__say_text(&t->sheet, known ? plan : "null");
    heddle__say_text(&t->sheet, "}");
  } else {
    heddle__say_text(&t->sheet, t->n > 0 ? "\n" : "");
    heddle__say(&t->sheet, t->format == HEDDLE_EXPLAIN_DOT ? "// %s%s\n" : "%s%s\n", what,
                known ? "" : ": planned when a run reaches it");
    heddle__say_text(&t->sheet, known ? plan : "");
  }
  if (s == HEDDLE_ENOMEM) t->status = s;
  t->n++;
  heddle__free(plan);
}

/* A name as it may stand in JSON: plain characters. */
static void plain_name(const char *name, char out[64]) {
  size_t i = 0;
  for (; name[i] != '\0' && i < 60; i++) {
    const unsigned char c = (unsigned char)name[i];
    out[i] = (char)(c < 32 || c > 126 || c == '"' || c == '\\' ? '?' : c);
  }
  out[i] = '\0';
}

heddle_status ctl_explain(const heddle__stages *all, heddle__staged *st, heddle_explain_format format, char **out,
                          heddle_error *err) {
  static const char *const branches[2] = {"then_branch", "else_branch"};
  const bool json = format == HEDDLE_EXPLAIN_JSON;
  teller t = {.status = HEDDLE_OK, .format = format, .err = err};
  heddle__say_text(&t.sheet, json ? "{" : "");
#if HEDDLE_HAS_RANKS
  if (heddle__spread_cuts(all->model->spread) && format != HEDDLE_EXPLAIN_DOT)
    heddle__spread_explain(all->model, json, &t.sheet);
#endif
  heddle__say_text(&t.sheet, json ? "\"stages\": [" : "");
  for (uint32_t i = 0; i < all->n_list && t.status == HEDDLE_OK; i++) {
    const ctl_stage *stage = &all->list[i];
    for (uint32_t k = 0; k < 2 && t.status == HEDDLE_OK; k++) {
      char *what = NULL, name[64];
      if (stage->models[k] == NULL) continue;
      if (stage->node != NULL) plain_name(stage->node->name, name);
      if (stage->node == NULL) what = heddle__format("stage %u", (unsigned)i + 1);
      else
        what = heddle__format("stage %u: %s of node '%s' (%s)", (unsigned)i + 1,
                              stage->kind == CTL_IF ? branches[k] : "body", name, stage->node->op);
      if (what != NULL) tell(&t, stage->models[k], st != NULL ? st->runs[i].units[k].ex : NULL, what);
      else t.status = HEDDLE_ENOMEM;
      heddle__free(what);
    }
  }
  if (json) heddle__say_text(&t.sheet, "\n]}\n");
  if (t.sheet.failed || t.status != HEDDLE_OK) {
    heddle__free(t.sheet.text);
    if (t.status == HEDDLE_ELIMIT) return t.status;
    return heddle__no_memory(err, "a plan's text");
  }
  *out = t.sheet.text;
  return HEDDLE_OK;
}

/* ---- one value */

static heddle_status copy_of(heddle_tensor *t, heddle_tensor **out, heddle_error *err) {
  heddle_status s = heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, out, err);
  if (s == HEDDLE_OK) s = heddle_tensor_copy(*out, t, err);
  if (s != HEDDLE_OK) {
    heddle_tensor_release(*out);
    *out = NULL;
  }
  return s;
}

heddle_status ctl_value(heddle__staged *st, const heddle__keep *target, heddle_tensor **out, heddle_error *err) {
  const heddle__stages *all = st->stages;
  const heddle_graph *g = all->model->graph;
  const heddle__node *n = &g->nodes[target->node];
  uint32_t slot = all->slot_of[n->first_entry + target->index], stage = all->stage_of[target->node];
  if (stage != HEDDLE__NONE && all->list[stage].elsewhere)
    return heddle__at_node(heddle__fail(err, HEDDLE_EUNSUPPORTED,
                                        "%s: another rank runs node '%s': keep the node when the model is made",
                                        g->source, n->name),
                           err, target->node, n->name);
  if (slot != HEDDLE__NONE && st->values[slot] != NULL) return copy_of(st->values[slot], out, err);
  if (stage == HEDDLE__NONE || all->list[stage].node != NULL)
    return heddle__at_node(
        heddle__fail(err, HEDDLE_EUNSUPPORTED,
                     "%s: no output of the model needs node '%s', and a model with If, Loop or Scan computes nothing "
                     "else; keep the node when the model is made",
                     g->source, n->name),
        err, target->node, n->name);
  uint32_t at =
      st->runs[stage].units[0].ex->n_args; /* the stage's nodes stand after its inputs, in the graph's order */
  for (uint32_t i = 0; i < target->node; i++) at += all->stage_of[i] == stage;
  char number[16];
  snprintf(number, sizeof number, "#%u", (unsigned)at);
  return heddle_executor_run_to(st->runs[stage].units[0].ex, number, target->index, out, err);
}

/* ---- what was counted */

void ctl_stats(heddle__staged *st, heddle_executor_stats *all) {
  for (uint32_t i = 0; i < st->stages->n_list; i++)
    for (uint32_t k = 0; k < 2; k++) {
      heddle_executor_stats one = {.struct_size = sizeof one};
      heddle_executor *ex = st->runs[i].units[k].ex;
      if (ex == NULL || heddle_executor_get_stats(ex, &one, NULL) != HEDDLE_OK) continue;
      all->bytes_copied += one.bytes_copied;
      all->copies += one.copies;
      all->device_bytes += one.device_bytes;
      all->orphan_bytes += one.orphan_bytes;
      all->replays += one.replays;
      all->retries += one.retries;
      all->failovers += one.failovers;
      all->growths += one.growths;
    }
}
