/* graph/declared.c: what a graph declares of a value, against what the value is. Nothing here allocates. */
#include "graph/declared.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "core/tensor.h"
#include "graph/words.h"

void heddle__declared_shape(const heddle__type *type, char *out, size_t size) {
  size_t used = 0;
  if (!type->has_shape) {
    snprintf(out, size, "of any rank");
    return;
  }
  for (uint32_t d = 0; d <= type->ndim && used < size; d++) {
    int n;
    char symbol[64];
    const char *before = d == 0 ? "[" : ", ";
    if (d == type->ndim) n = snprintf(out + used, size - used, "%s]", type->ndim == 0 ? "[" : "");
    else if (type->dims[d].value >= 0) n = snprintf(out + used, size - used, "%s%" PRId64, before, type->dims[d].value);
    else
      n = snprintf(out + used, size - used, "%s%.40s", before,
                   type->dims[d].symbol != NULL ? heddle__show(type->dims[d].symbol, symbol) : "?");
    if (n > 0) used += (size_t)n;
  }
}

static bool has_dims(const heddle__type *type, uint32_t ndim, const int64_t *shape) {
  bool same = !type->has_shape || type->ndim == ndim;
  for (uint32_t d = 0; same && type->has_shape && d < ndim; d++)
    same = type->dims[d].value < 0 || type->dims[d].value == shape[d];
  return same;
}

/* Both as words; true. */
static bool say(const heddle__type *type, heddle_dtype dtype, uint32_t ndim, const int64_t *shape, char declared[200],
                char is[128]) {
  char name[32], dims[160];
  heddle__dtype_name(type->has_dtype ? type->dtype : dtype, name);
  heddle__declared_shape(type, dims, sizeof dims);
  snprintf(declared, 200, "%s %s", name, dims);
  heddle__type_words(dtype, ndim, shape, is);
  return true;
}

bool heddle__declared_differs(const heddle__type *type, heddle_dtype dtype, uint32_t ndim, const int64_t *shape,
                              char declared[200], char is[128]) {
  const bool same = !type->has_dtype || heddle__dtype_equal(type->dtype, dtype);
  if (same && (type->hints_shape || has_dims(type, ndim, shape))) return false;
  return say(type, dtype, ndim, shape, declared, is);
}

bool heddle__declared_misleads(const heddle__type *type, heddle_dtype dtype, uint32_t ndim, const int64_t *shape,
                               char declared[200], char is[128]) {
  return type->hints_shape && !has_dims(type, ndim, shape) && say(type, dtype, ndim, shape, declared, is);
}

void heddle__declared_tell(const heddle__log *log, const heddle_graph *g, const heddle__node *node, uint32_t index,
                           heddle_dtype dtype, uint32_t ndim, const int64_t *shape) {
  char declared[200], is[128], shown[64];
  if (heddle__declared_misleads(&g->types[node->first_entry + index], dtype, ndim, shape, declared, is))
    heddle__logf(log, HEDDLE_LOG_WARN, "model", "%s: output '%s' is declared %s, and is %s", g->source,
                 heddle__show(node->name, shown), declared, is);
}

heddle_status heddle__declared_check(const heddle_graph *g, const heddle__node *node, uint32_t index,
                                     heddle_dtype dtype, uint32_t ndim, const int64_t *shape, heddle_error *err) {
  char declared[200], is[128], shown[64], number[16] = "";
  if (!heddle__declared_differs(&g->types[node->first_entry + index], dtype, ndim, shape, declared, is))
    return HEDDLE_OK;
  if (node->n_outputs > 1) snprintf(number, sizeof number, ":%u", (unsigned)index);
  heddle__fail(err, HEDDLE_EFORMAT, "%s: output '%s%s' is declared %s, and is %s", g->source,
               heddle__show(node->name, shown), number, declared, is);
  return heddle__at_node(HEDDLE_EFORMAT, err, (uint32_t)(node - g->nodes), node->name);
}
