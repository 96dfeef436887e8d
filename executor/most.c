/* executor/most.c: see most.h. */
#define HEDDLE__MOST_C
#include "executor/most.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "graph/words.h"

static const char *behind(const char *rule) {
  const char *at = rule != NULL ? strstr(rule, "<=") : NULL;
  return at != NULL && strchr(rule, '=') == at + 1 ? at + 2 : NULL;
}

bool heddle__most_is(const char *rule) {
  return behind(rule) != NULL;
}

static const heddle__type *type_of(const heddle_model *m, uint32_t arg) {
  return &m->graph->types[heddle__model_arg(m, arg)->first_entry];
}

/* Gives fn each dimension of an input that has a name. */
static uint32_t each_name(const heddle_model *m, const char *name, size_t length, heddle__most *out, int64_t most) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->graph->n_args; i++) {
    const heddle__type *t = type_of(m, i);
    for (uint32_t d = 0; t->has_shape && d < t->ndim; d++) {
      const char *symbol = t->dims[d].symbol;
      if (symbol == NULL || strlen(symbol) != length || memcmp(symbol, name, length) != 0) continue;
      if (out != NULL) out[n] = (heddle__most){.arg = i, .dim = d, .most = most};
      n++;
    }
  }
  return n;
}

static heddle_status read_one(heddle_model *m, const char *rule, heddle_error *err) {
  const char *number = behind(rule);
  const size_t length = (size_t)(number - 2 - rule);
  const int64_t most = heddle__dimension_number(number);
  if (most < 1 || length == 0)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "%s: dimension '%.200s': expected NAME<=NUMBER, a whole number from 1 to %lld",
                        m->graph->source, rule, (long long)HEDDLE__MOST_DIMENSION);
  const uint32_t n = each_name(m, rule, length, NULL, 0);
  if (n == 0)
    return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: dimension '%.200s': no input has an open dimension of that name",
                        m->graph->source, rule);
  heddle__most *all = heddle__alloc(m->n_most + n, sizeof *all);
  if (all == NULL) return heddle__no_memory(err, "a model's options");
  if (m->n_most > 0) memcpy(all, m->most, m->n_most * sizeof *all);
  each_name(m, rule, length, all + m->n_most, most);
  heddle__free(m->most);
  m->most = all;
  m->n_most += n;
  return HEDDLE_OK;
}

heddle_status heddle__most_read(heddle_model *m, const char *const *rules, size_t n, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (size_t i = 0; HEDDLE_HAS_DIMENSIONS && i < n && s == HEDDLE_OK; i++)
    if (heddle__most_is(rules[i])) s = read_one(m, rules[i], err);
  return s;
}

/* Of several rules for a name the least. */
int64_t heddle__most_of(const heddle_model *m, uint32_t arg, uint32_t dim) {
  int64_t most = 0;
  for (uint32_t i = 0; i < m->n_most; i++)
    if (m->most[i].arg == arg && m->most[i].dim == dim && (most == 0 || m->most[i].most < most)) most = m->most[i].most;
  return most;
}

bool heddle__most_raise(const heddle_model *m, uint32_t arg, uint32_t ndim, int64_t *shape) {
  bool any = false;
  for (uint32_t d = 0; HEDDLE_HAS_DIMENSIONS && d < ndim; d++) {
    const int64_t most = heddle__most_of(m, arg, d);
    if (most == 0) continue;
    shape[d] = most;
    any = true;
  }
  return any;
}

heddle_status heddle__most_check(const heddle_model *m, uint32_t arg, const int64_t *shape, heddle_error *err) {
  for (uint32_t i = 0; HEDDLE_HAS_DIMENSIONS && i < m->n_most; i++) {
    const heddle__most *x = &m->most[i];
    if (x->arg != arg || shape[x->dim] <= x->most) continue;
    return heddle__fail(err, HEDDLE_EINVAL,
                        "%s: input '%s': dimension %u, '%s', is %lld, and the model's options allow %lld at most",
                        m->graph->source, heddle__model_arg(m, arg)->name, (unsigned)x->dim,
                        type_of(m, arg)->dims[x->dim].symbol, (long long)shape[x->dim], (long long)x->most);
  }
  return HEDDLE_OK;
}

/* A list of dimensions with their sizes, for an error; cut where the text is full. */
typedef struct named {
  char text[300];
  size_t used;
} named;

static void name_dim(const heddle_model *m, uint32_t arg, uint32_t d, int64_t size, named *to) {
  const heddle__type *t = type_of(m, arg);
  const char *symbol = t->has_shape && d < t->ndim ? t->dims[d].symbol : NULL;
  const size_t room = sizeof to->text - to->used;
  const int n = snprintf(to->text + to->used, room, "%s'%.40s' dimension %u%s%.40s%s = %lld", to->used > 0 ? ", " : "",
                         heddle__model_arg(m, arg)->name, (unsigned)d, symbol != NULL ? " (" : "",
                         symbol != NULL ? symbol : "", symbol != NULL ? ")" : "", (long long)size);
  if (n > 0 && (size_t)n < room) to->used += (size_t)n;
  else to->text[to->used] = '\0';
}

static void name_open(const heddle_model *m, const heddle__wish *wish, named *to) {
  for (uint32_t i = 0; i < m->graph->n_args && wish->values != NULL; i++) {
    const heddle__type *t = type_of(m, i);
    const heddle_tensor *value = wish->values[i];
    for (uint32_t d = 0; value != NULL && t->has_shape && t->ndim == value->ndim && d < t->ndim; d++)
      if (t->dims[d].value < 0) name_dim(m, i, d, value->shape[d], to);
  }
}

/* Elements of an input whose shape is fixed, in floating point, which has no overflow; 0 of another. */
static double elements_of(const heddle__type *t) {
  double count = t->has_shape ? 1 : 0;
  for (uint32_t d = 0; t->has_shape && d < t->ndim; d++) count *= t->dims[d].value > 0 ? (double)t->dims[d].value : 0;
  return count;
}

/* Where nothing is open: the largest input's. */
static void name_fixed(const heddle_model *m, named *to) {
  uint32_t largest = HEDDLE__NONE;
  double most = 1; /* what has one element is not to blame */
  for (uint32_t i = 0; i < m->graph->n_args; i++) {
    const double count = m->constants[i] == NULL ? elements_of(type_of(m, i)) : 0;
    if (count <= most) continue;
    largest = i;
    most = count;
  }
  const heddle__type *t = largest != HEDDLE__NONE ? type_of(m, largest) : NULL;
  for (uint32_t d = 0; t != NULL && d < t->ndim; d++)
    if (t->dims[d].value > 1) name_dim(m, largest, d, t->dims[d].value, to);
}

heddle_status heddle__most_blame(const heddle_model *m, const heddle__wish *wish, heddle_status s, heddle_error *err) {
  named dims = {.used = 0};
  if (!HEDDLE_HAS_DIMENSIONS || (s != HEDDLE_ENOMEM && s != HEDDLE_ELIMIT)) return s;
  name_open(m, wish, &dims);
  if (dims.used == 0 && s == HEDDLE_ENOMEM) name_fixed(m, &dims); /* limits have words of their own */
  return dims.used > 0 ? heddle__prefix(err, s, "for %s: ", dims.text) : s;
}

heddle_status heddle__most_blame_value(const heddle_model *m, uint32_t arg, const heddle_tensor *value, heddle_status s,
                                       heddle_error *err) {
  named dims = {.used = 0};
  for (uint32_t d = 0; HEDDLE_HAS_DIMENSIONS && s == HEDDLE_ENOMEM && d < value->ndim; d++)
    if (value->shape[d] > 1) name_dim(m, arg, d, value->shape[d], &dims);
  return dims.used > 0 ? heddle__prefix(err, s, "for %s: %llu bytes for a copy of the input: ", dims.text,
                                        (unsigned long long)value->bytes)
                       : s;
}
