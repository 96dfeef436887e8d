/* executor/control/host_sequence.c: operators on sequences. Tensors in a sequence are copies, which nothing writes to. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/control/host.h"
#include "graph/infer.h"
#include "graph/words.h"

/* What input i, which is the number of a sequence, has. */
static heddle_tensor *const *items_of(ctl_host *h, uint32_t i, size_t *n) {
  heddle_tensor *const *items = NULL;
  const int64_t *code = ctl_host_codes(h, i);
  *n = 0;
  if (code == NULL) return NULL;
  if (h->in[i]->count != 1) ctl_host_fail(h, HEDDLE_EINVAL, "input %u is not one sequence", (unsigned)i);
  else h->s = ctl_list(h->objects, *code, &items, n, h->err);
  return items;
}

/* Output 0: a sequence of these. */
static void give(ctl_host *h, heddle_tensor *const *items, size_t n) {
  int64_t code = 0;
  if (h->s == HEDDLE_OK) h->s = ctl_list_make(h->objects, items, n, &code, h->err);
  heddle_tensor *t = ctl_host_new(h, 0, HEDDLE__INT64, 0, NULL);
  if (t != NULL) memcpy(t->data, &code, sizeof code);
}

static heddle_tensor *copy_of(ctl_host *h, const heddle_tensor *t) {
  heddle_tensor *copy = NULL;
  if (h->s != HEDDLE_OK) return NULL;
  h->s = heddle_tensor_create(NULL, t->dtype, t->shape, t->ndim, &copy, h->err);
  if (h->s == HEDDLE_OK && t->bytes > 0) memcpy(copy->data, t->data, (size_t)t->bytes);
  return copy;
}

/* Position i of n, which may count from the end; room: one behind the last is a position too. */
static size_t place_of(ctl_host *h, uint32_t i, size_t n, bool room) {
  const int64_t all = (int64_t)n;
  const int64_t at = ctl_host_number(h, i, room ? all : all - 1);
  if (h->s == HEDDLE_OK && (at < -all || at >= all + (room ? 1 : 0)))
    ctl_host_fail(h, HEDDLE_EINVAL, "position %lld of a sequence of %zu", (long long)at, n);
  return h->s != HEDDLE_OK ? 0 : (size_t)(at < 0 ? at + all : at);
}

void ctl_host_construct(ctl_host *h) {
  heddle_tensor **items = heddle__alloc((size_t)h->n_in + 1, sizeof *items);
  if (items == NULL) {
    h->s = heddle__no_memory(h->err, "a sequence");
    return;
  }
  for (uint32_t i = 0; i < h->n_in; i++) items[i] = copy_of(h, h->in[i]);
  give(h, items, h->n_in);
  for (uint32_t i = 0; i < h->n_in; i++) heddle_tensor_release(items[i]);
  heddle__free(items);
}

void ctl_host_insert(ctl_host *h) {
  size_t n;
  heddle_tensor *const *items = items_of(h, 0, &n);
  const size_t at = place_of(h, 2, n, true);
  heddle_tensor **more = h->s == HEDDLE_OK ? heddle__alloc(n + 1, sizeof *more) : NULL;
  heddle_tensor *copy = more != NULL ? copy_of(h, h->in[1]) : NULL;
  if (h->s == HEDDLE_OK && more == NULL) h->s = heddle__no_memory(h->err, "a sequence");
  if (h->s == HEDDLE_OK) {
    if (at > 0) memcpy(more, items, at * sizeof(heddle_tensor *));
    if (n > at) memcpy(more + at + 1, items + at, (n - at) * sizeof(heddle_tensor *));
    more[at] = copy;
    give(h, more, n + 1);
  }
  heddle_tensor_release(copy);
  heddle__free(more);
}

void ctl_host_erase(ctl_host *h) {
  size_t n;
  heddle_tensor *const *items = items_of(h, 0, &n);
  if (h->s == HEDDLE_OK && n == 0) ctl_host_fail(h, HEDDLE_EINVAL, "its sequence is empty");
  const size_t at = place_of(h, 1, n, false);
  heddle_tensor **less = h->s == HEDDLE_OK ? heddle__alloc(n, sizeof *less) : NULL;
  if (h->s == HEDDLE_OK && less == NULL) h->s = heddle__no_memory(h->err, "a sequence");
  if (h->s == HEDDLE_OK) {
    if (at > 0) memcpy(less, items, at * sizeof(heddle_tensor *));
    if (n > at + 1) memcpy(less + at, items + at + 1, (n - at - 1) * sizeof(heddle_tensor *));
    give(h, less, n - 1);
  }
  heddle__free(less);
}

void ctl_host_at(ctl_host *h) {
  size_t n;
  heddle_tensor *const *items = items_of(h, 0, &n);
  if (h->s == HEDDLE_OK && n == 0) ctl_host_fail(h, HEDDLE_EINVAL, "its sequence is empty");
  const size_t at = place_of(h, 1, n, false);
  if (h->s == HEDDLE_OK) h->out[0] = heddle_tensor_retain(items[at]);
}

void ctl_host_length(ctl_host *h) {
  size_t n;
  (void)items_of(h, 0, &n);
  heddle_tensor *t = ctl_host_new(h, 0, HEDDLE__INT64, 0, NULL);
  if (t != NULL) *(int64_t *)t->data = (int64_t)n;
}

/* An axis of a tensor of ndim dimensions, made positive. */
static uint32_t axis_of(ctl_host *h, int64_t axis, uint32_t ndim) {
  if (h->s == HEDDLE_OK && (axis < -(int64_t)ndim || axis >= (int64_t)ndim))
    ctl_host_fail(h, HEDDLE_EINVAL, "axis %lld of %u dimensions", (long long)axis, (unsigned)ndim);
  return h->s == HEDDLE_OK ? (uint32_t)(axis < 0 ? axis + ndim : axis) : 0;
}

void ctl_host_join(ctl_host *h) {
  size_t n;
  heddle_tensor *const *items = items_of(h, 0, &n);
  const bool is_new = heddle__attr_int(h->node, "new_axis", 0) != 0;
  if (h->s == HEDDLE_OK && n == 0) ctl_host_fail(h, HEDDLE_EINVAL, "its sequence is empty");
  if (h->s != HEDDLE_OK) return;
  const heddle_tensor *first = items[0];
  const uint32_t ndim = first->ndim + (is_new ? 1 : 0);
  const uint32_t axis = axis_of(h, heddle__attr_int(h->node, "axis", 0), ndim);
  int64_t shape[HEDDLE__MAX_NDIM + 1], all = 0;
  if (h->s == HEDDLE_OK && ndim > HEDDLE__MAX_NDIM)
    ctl_host_fail(h, HEDDLE_ELIMIT, "its result has %u dimensions", (unsigned)ndim);
  for (size_t i = 0; i < n && h->s == HEDDLE_OK; i++) {
    bool fits = items[i]->ndim == first->ndim && heddle__dtype_equal(items[i]->dtype, first->dtype);
    for (uint32_t d = 0; d < first->ndim && fits; d++)
      fits = items[i]->shape[d] == first->shape[d] || (!is_new && d == axis);
    char a[128], b[128];
    if (!fits)
      ctl_host_fail(h, HEDDLE_EINVAL, "tensor %zu of its sequence is %s, which does not go with %s", i,
                    heddle__type_words(items[i]->dtype, items[i]->ndim, items[i]->shape, a),
                    heddle__type_words(first->dtype, first->ndim, first->shape, b));
    else if (__builtin_add_overflow(all, is_new ? 1 : items[i]->shape[axis], &all))
      ctl_host_fail(h, HEDDLE_ELIMIT, "its result is too large");
  }
  if (h->s != HEDDLE_OK) return;
  uint64_t before = 1, after = 1; /* rows, and bytes of one position */
  for (uint32_t d = 0; d < ndim; d++) {
    shape[d] = d == axis ? all : first->shape[d > axis && is_new ? d - 1 : d];
    if (d < axis) before *= (uint64_t)shape[d];
    if (d > axis) after *= (uint64_t)shape[d];
  }
  after *= heddle__dtype_bytes(first->dtype);
  heddle_tensor *out = ctl_host_new(h, 0, first->dtype, ndim, shape);
  if (out == NULL || out->bytes == 0) return;
  char *to = out->data;
  for (uint64_t row = 0; row < before; row++)
    for (size_t i = 0; i < n; i++) {
      const size_t bytes = (size_t)(after * (uint64_t)(is_new ? 1 : items[i]->shape[axis]));
      if (bytes > 0) memcpy(to, (const char *)items[i]->data + row * bytes, bytes);
      to += bytes;
    }
}

/* Part [from, from + size) of x along the axis; drops: without that axis. */
static heddle_tensor *part_of(ctl_host *h, const heddle_tensor *x, uint32_t axis, int64_t from, int64_t size,
                              bool drops) {
  int64_t shape[HEDDLE__MAX_NDIM];
  uint64_t before = 1, after = heddle__dtype_bytes(x->dtype);
  uint32_t ndim = 0;
  heddle_tensor *t = NULL;
  for (uint32_t d = 0; d < x->ndim; d++) {
    if (d != axis || !drops) shape[ndim++] = d == axis ? size : x->shape[d];
    if (d < axis) before *= (uint64_t)x->shape[d];
    if (d > axis) after *= (uint64_t)x->shape[d];
  }
  h->s = heddle_tensor_create(NULL, x->dtype, shape, ndim, &t, h->err);
  if (h->s != HEDDLE_OK || t->bytes == 0) return t;
  const size_t bytes = (size_t)(after * (uint64_t)size);
  for (uint64_t row = 0; row < before; row++)
    memcpy((char *)t->data + row * bytes,
           (const char *)x->data + (row * (uint64_t)x->shape[axis] + (uint64_t)from) * after, bytes);
  return t;
}

/* Size i of the parts of `dim`: of a tensor of sizes, or the same for each but the last. */
static int64_t size_of(const ctl_host *h, size_t i, int64_t dim, int64_t each) {
  const heddle_tensor *split = h->n_in > 1 ? h->in[1] : NULL;
  if (split == NULL || split->ndim == 0) {
    const int64_t left = dim - (int64_t)i * each;
    return left < each ? left : each;
  }
  return split->dtype.bits == 64 ? ((const int64_t *)split->data)[i] : ((const int32_t *)split->data)[i];
}

void ctl_host_part(ctl_host *h) {
  const heddle_tensor *x = h->in[0], *split = h->n_in > 1 ? h->in[1] : NULL;
  const bool drops = split == NULL && heddle__attr_int(h->node, "keepdims", 1) == 0;
  const uint32_t axis = axis_of(h, heddle__attr_int(h->node, "axis", 0), x->ndim);
  int64_t each = 1, at = 0;
  if (split != NULL && (split->dtype.code != HEDDLE_DTYPE_INT || split->dtype.bits < 32 || split->ndim > 1))
    ctl_host_fail(h, HEDDLE_EINVAL, "the sizes of its parts are no int64 or int32 numbers");
  if (split != NULL && split->ndim == 0) each = ctl_host_number(h, 1, 1);
  if (h->s == HEDDLE_OK && each < 1) ctl_host_fail(h, HEDDLE_EINVAL, "the size of its parts is %lld", (long long)each);
  if (h->s != HEDDLE_OK) return;
  const int64_t dim = x->shape[axis];
  const size_t n = split != NULL && split->ndim == 1 ? (size_t)split->count : (size_t)(dim / each + (dim % each != 0));
  heddle_tensor **parts = heddle__alloc(n + 1, sizeof *parts);
  if (parts == NULL) h->s = heddle__no_memory(h->err, "a sequence");
  for (size_t i = 0; i < n && h->s == HEDDLE_OK; i++) {
    const int64_t size = size_of(h, i, dim, each);
    if (size < 0 || size > dim - at)
      ctl_host_fail(h, HEDDLE_EINVAL, "parts of a dimension of %lld: part %zu has size %lld at %lld", (long long)dim, i,
                    (long long)size, (long long)at);
    else parts[i] = part_of(h, x, axis, at, size, drops);
    at += size;
  }
  if (h->s == HEDDLE_OK && at != dim)
    ctl_host_fail(h, HEDDLE_EINVAL, "the sizes of its parts come to %lld of %lld", (long long)at, (long long)dim);
  give(h, parts, n);
  for (size_t i = 0; parts != NULL && i < n; i++) heddle_tensor_release(parts[i]);
  heddle__free(parts);
}
