/* executor/region_key.c: what distinguishes the time of one region from that of another. Names of nodes and values do
 * not count, nor do the bytes of large constants. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "executor/region_key.h"

enum { SHORT_BYTES = 256 }; /* bounds, axes, shapes; not biases, which only the results depend on */

static void add_number(heddle__digest *d, int64_t n) {
  heddle__digest_add(d, &n, sizeof n);
}

static void add_attr(heddle__digest *d, const heddle_pattr *a) {
  static const uint64_t sizes[] = {0, 8, 8, 1, 8, 8, 0};
  heddle__digest_text(d, a->name);
  add_number(d, a->kind);
  add_number(d, (int64_t)a->count);
  if (a->kind < HEDDLE_ATTR_STRINGS) {
    heddle__digest_add(d, a->data, a->count * sizes[a->kind]);
    return;
  }
  const char *const *texts = a->data;
  for (uint64_t i = 0; i < a->count; i++) heddle__digest_text(d, texts[i]);
}

static void add_value(heddle__digest *d, const heddle_pvalue *v, bool is_open) {
  heddle__digest_add(d, &v->dtype, sizeof v->dtype);
  add_number(d, v->ndim);
  if (v->ndim > 0) heddle__digest_add(d, v->shape, (uint64_t)v->ndim * sizeof *v->shape);
  add_number(d, v->room);
  if (v->room > 0) add_number(d, v->room_axis);
  if (is_open) add_number(d, v->open_dims);
  add_number(d, v->data != NULL);
  if (v->data != NULL && v->data_bytes <= SHORT_BYTES) heddle__digest_add(d, v->data, v->data_bytes);
}

static void say(char *label, size_t size, size_t *used, const char *format, ...) __attribute__((format(printf, 4, 5)));
static void say(char *label, size_t size, size_t *used, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = *used < size ? vsnprintf(label + *used, size - *used, format, args) : 0;
  va_end(args);
  if (n > 0) *used += (size_t)n;
}

heddle__digest heddle__region_digest(const heddle_pregion *r, char *label, size_t size) {
  heddle__digest d = {{0, 0}};
  const char *nodes = r->nodes.data, *values = r->values.data;
  size_t used = 0;
  label[0] = '\0';
  add_number(&d, r->flags);
  for (uint64_t i = 0; i < r->nodes.count; i++) {
    const heddle_pnode *n = (const heddle_pnode *)(const void *)(nodes + i * r->nodes.stride);
    heddle__digest_text(&d, n->domain);
    heddle__digest_text(&d, n->op);
    add_number(&d, n->opset);
    add_number(&d, (int64_t)n->attrs.count);
    for (uint64_t k = 0; k < n->attrs.count; k++)
      add_attr(&d, (const heddle_pattr *)(const void *)((const char *)n->attrs.data + k * n->attrs.stride));
    add_number(&d, n->n_inputs);
    heddle__digest_add(&d, n->inputs, n->n_inputs * sizeof *n->inputs);
    add_number(&d, n->n_outputs);
    heddle__digest_add(&d, n->outputs, n->n_outputs * sizeof *n->outputs);
    say(label, size, &used, "%s%s", i > 0 ? "+" : "", n->op);
  }
  for (uint64_t i = 0; i < r->values.count; i++)
    add_value(&d, (const heddle_pvalue *)(const void *)(values + i * r->values.stride),
              (r->flags & HEDDLE_REGION_OPEN) != 0);
  add_number(&d, r->n_outputs);
  heddle__digest_add(&d, r->outputs, r->n_outputs * sizeof *r->outputs);
  if (r->n_outputs == 0) return d;
  const heddle_pvalue *y = (const heddle_pvalue *)(const void *)(values + (uint64_t)r->outputs[0] * r->values.stride);
  for (int32_t k = 0; k < y->ndim; k++) say(label, size, &used, "%s%lld", k > 0 ? "x" : " ", (long long)y->shape[k]);
  return d;
}
