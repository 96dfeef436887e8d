/* executor/control/host.c: a stage of one operator that the host carries out: its operands in host memory, the call, and what
 * came out. */
#include "executor/control/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "graph/infer.h"

static const struct row {
  const char *op;
  ctl_host_fn call;
} rows[] = {
    {"ConcatFromSequence", ctl_host_join},     {"NumberToText", ctl_host_number_to_text},
    {"RegexFullMatch", ctl_host_regex},        {"SequenceAt", ctl_host_at},
    {"SequenceConstruct", ctl_host_construct}, {"SequenceErase", ctl_host_erase},
    {"SequenceInsert", ctl_host_insert},       {"SequenceLength", ctl_host_length},
    {"SplitToSequence", ctl_host_part},        {"StringConcat", ctl_host_concat},
    {"StringNormalizer", ctl_host_normalize},  {"StringSplit", ctl_host_split},
    {"TextToNumber", ctl_host_text_to_number}, {"Tokenizer", ctl_host_tokens},
};

static ctl_host_fn call_of(const heddle__node *node) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].op, node->op) == 0) return rows[i].call;
  return NULL;
}

heddle_status ctl_host_check(const heddle__node *node, ctl_regex **pattern, heddle_error *err) {
  *pattern = NULL;
  if (strcmp(node->op, "Tokenizer") == 0) return ctl_tokens_check(node, pattern, err);
  if (strcmp(node->op, "RegexFullMatch") != 0) return HEDDLE_OK;
  return ctl_regex_make(heddle__attr_string(node, "pattern", ""), pattern, err);
}

void ctl_host_fail(ctl_host *h, heddle_status s, const char *format, ...) {
  char words[300];
  va_list args;
  if (h->s != HEDDLE_OK) return;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  h->s = heddle__fail(h->err, s, "%s", words);
}

heddle_tensor *ctl_host_new(ctl_host *h, uint32_t i, heddle_dtype dtype, uint32_t ndim, const int64_t *shape) {
  if (h->s != HEDDLE_OK) return NULL;
  h->s = heddle_tensor_create(NULL, dtype, shape, ndim, &h->out[i], h->err);
  return h->s == HEDDLE_OK ? h->out[i] : NULL;
}

const int64_t *ctl_host_codes(ctl_host *h, uint32_t i) {
  static const int64_t none;
  const heddle_tensor *t = i < h->n_in ? h->in[i] : NULL;
  if (h->s != HEDDLE_OK) return NULL;
  if (t == NULL || !heddle__dtype_equal(t->dtype, HEDDLE__INT64)) {
    ctl_host_fail(h, HEDDLE_EINVAL, "input %u is not of int64, which texts and sequences are", (unsigned)i);
    return NULL;
  }
  return t->count > 0 ? t->data : &none;
}

int64_t ctl_host_number(ctl_host *h, uint32_t i, int64_t fallback) {
  const heddle_tensor *t = i < h->n_in ? h->in[i] : NULL;
  int64_t number = fallback;
  if (t == NULL || h->s != HEDDLE_OK) return fallback;
  h->s = ctl_number(t, "its position", &number, h->err);
  return number;
}

/* A reference to a tensor that the host can read as it is: t, or a copy. */
static heddle_status on_host(heddle_tensor *t, heddle_tensor **out, heddle_error *err) {
  if (t->dev == NULL && t->contiguous) {
    *out = heddle_tensor_retain(t);
    return HEDDLE_OK;
  }
  heddle_status s = heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, out, err);
  return s == HEDDLE_OK ? heddle__tensor_read(t, (*out)->data, err) : s;
}

heddle_status ctl_host_run(heddle__staged *st, const ctl_stage *stage, heddle_error *err) {
  const ctl_host_fn call = call_of(stage->node);
  ctl_host h = {.objects = st->owner->objects,
                .node = stage->node,
                .pattern = stage->pattern,
                .in = heddle__alloc((size_t)stage->n_inputs + 1, sizeof *h.in),
                .n_in = stage->n_inputs,
                .s = HEDDLE_OK,
                .err = err};
  if (h.in == NULL) return heddle__no_memory(err, "a node's inputs");
  for (uint32_t i = 0; i < h.n_in && h.s == HEDDLE_OK; i++) {
    heddle_tensor *t = ctl_value_of(st, stage->inputs[i]);
    if (t != NULL) h.s = on_host(t, &h.in[i], err);
  }
  if (h.s == HEDDLE_OK && call != NULL && h.objects != NULL) call(&h);
  else if (h.s == HEDDLE_OK) ctl_host_fail(&h, HEDDLE_EINTERNAL, "nothing carries it out");
  for (uint32_t i = 0; i < CTL_HOST_OUTPUTS; i++) {
    if (h.out[i] == NULL) continue;
    if (h.s == HEDDLE_OK) h.s = ctl_give(st, stage, i, h.out[i], err);
    heddle_tensor_release(h.out[i]);
  }
  for (uint32_t i = 0; i < h.n_in; i++) heddle_tensor_release(h.in[i]);
  heddle__free(h.in);
  return h.s;
}
