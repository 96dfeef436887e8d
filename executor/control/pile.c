/* executor/control/pile.c: tensors of one shape that become one tensor with a new axis: what an iteration adds is copied behind
 * what there is, and put in order at the end where the axis is not the first. */
#include <inttypes.h>
#include <string.h>

#include "graph/words.h"
#include "executor/control/stages.h"
#include "core/error.h"

#define BYTES ((heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1})

void ctl_pile_reset(ctl_pile *p) {
  p->count = 0;
}

void ctl_pile_free(ctl_pile *p) {
  ctl_put(&p->whole, NULL);
  ctl_put(&p->memory, NULL);
}

static heddle_status reserve(ctl_pile *p, uint64_t bytes, heddle_error *err) {
  heddle_tensor *more = NULL;
  uint64_t have = p->memory != NULL ? p->memory->bytes : 0;
  if (p->memory != NULL && bytes <= have) return HEDDLE_OK;
  if (bytes > INT64_MAX / 2) return heddle__fail(err, HEDDLE_ELIMIT, "what is collected comes to more than 2^62 bytes");
  int64_t size = (int64_t)(bytes < 4096 ? 4096 : bytes * 2);
  heddle_status s = heddle_tensor_create(NULL, BYTES, &size, 1, &more, err);
  if (s != HEDDLE_OK) return s;
  if (have > 0) memcpy(more->data, p->memory->data, (size_t)(p->count * p->bytes));
  heddle_tensor_release(p->memory);
  p->memory = more;
  return HEDDLE_OK;
}

heddle_status ctl_pile_add(ctl_pile *p, const heddle_tensor *t, heddle_error *err) {
  if (p->count == 0) {
    p->dtype = t->dtype;
    p->ndim = t->ndim;
    p->bytes = t->bytes;
    if (t->ndim > 0) memcpy(p->shape, t->shape, t->ndim * sizeof *t->shape);
  } else if (memcmp(&p->dtype, &t->dtype, sizeof p->dtype) != 0 || p->ndim != t->ndim ||
             (t->ndim > 0 && memcmp(p->shape, t->shape, t->ndim * sizeof *t->shape) != 0)) {
    char before[128], now[128];
    return heddle__fail(
        err, HEDDLE_EINVAL, "an output that is collected is %s in this iteration and was %s in those before",
        heddle__type_words(t->dtype, t->ndim, t->shape, now), heddle__type_words(p->dtype, p->ndim, p->shape, before));
  }
  heddle_status s = reserve(p, (p->count + 1) * p->bytes, err);
  if (s == HEDDLE_OK && p->bytes > 0) s = heddle__tensor_read(t, (char *)p->memory->data + p->count * p->bytes, err);
  if (s == HEDDLE_OK) p->count++;
  return s;
}

heddle_status ctl_pile_empty(ctl_pile *p, ctl_unit *u, uint32_t i, const heddle__type *whole, int64_t axis,
                             heddle_error *err) {
  heddle_io_info info = {.struct_size = sizeof info};
  (void)heddle__executor_prepare(u->ex, NULL); /* where it cannot be planned, what the graph says has to do */
  heddle_status s = heddle_executor_output_info(u->ex, i, &info, err);
  if (s != HEDDLE_OK) return s;
  if (info.dtype.bits == 0 && whole != NULL && whole->has_dtype) info.dtype = whole->dtype;
  if (info.dtype.bits == 0)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED,
                        "there was no iteration, and of which dtype output %u of its body would have been is not known",
                        (unsigned)i);
  const bool has_shape = whole != NULL && whole->has_shape && whole->ndim > 0;
  p->dtype = info.dtype;
  p->ndim = info.ndim != UINT32_MAX ? info.ndim : has_shape ? whole->ndim - 1 : 0;
  if (has_shape && axis < 0) axis += whole->ndim;
  for (uint32_t d = 0; d < p->ndim; d++) {
    const int64_t said = info.ndim != UINT32_MAX ? info.shape[d] : -1;
    p->shape[d] = said > 0 ? said : 0;
    if (said >= 0 || !has_shape || whole->ndim != p->ndim + 1) continue;
    const int64_t other = whole->dims[(int64_t)d < axis ? d : d + 1].value;
    p->shape[d] = other > 0 ? other : 0;
  }
  p->bytes = 0;
  return reserve(p, 1, err);
}

static void release_memory(void *memory) {
  heddle_tensor_release(memory);
}

/* Rows of `inner` bytes: from [count][outer] to [outer][count], the counted ones backwards where reverse. */
static void put_in_order(const ctl_pile *p, uint64_t outer, uint64_t inner, bool reverse, char *to) {
  const char *from = p->memory->data;
  for (uint64_t i = 0; i < p->count; i++) {
    uint64_t at = reverse ? p->count - 1 - i : i;
    for (uint64_t o = 0; o < outer && inner > 0; o++)
      memcpy(to + (o * p->count + at) * inner, from + (i * outer + o) * inner, (size_t)inner);
  }
}

heddle_status ctl_pile_whole(ctl_pile *p, int64_t axis, bool reverse, heddle_tensor **out, heddle_error *err) {
  int64_t shape[HEDDLE__MAX_NDIM + 1];
  const int64_t ndim = (int64_t)p->ndim + 1;
  if (ndim > HEDDLE__MAX_NDIM || axis < -ndim || axis >= ndim)
    return heddle__fail(err, HEDDLE_EINVAL, "an output is collected along axis %" PRId64 " of %" PRId64, axis, ndim);
  if (axis < 0) axis += ndim;
  uint64_t outer = 1;
  for (int64_t d = 0; d < ndim; d++) {
    shape[d] = d == axis ? (int64_t)p->count : p->shape[d < axis ? d : d - 1];
    if (d < axis) outer *= (uint64_t)shape[d];
  }
  const bool in_place = (axis == 0 || p->count <= 1) && !reverse;
  heddle_tensor *t = p->whole;
  const bool same = t != NULL && (!in_place || t->user == p->memory) && t->ndim == (uint32_t)ndim &&
                    memcmp(&t->dtype, &p->dtype, sizeof t->dtype) == 0 &&
                    memcmp(t->shape, shape, (size_t)ndim * sizeof *shape) == 0;
  heddle_status s = HEDDLE_OK;
  if (!same && in_place) {
    s = heddle_tensor_wrap(p->memory->data, p->dtype, shape, (uint32_t)ndim, NULL, release_memory, p->memory, &t, err);
    if (s == HEDDLE_OK) heddle_tensor_retain(p->memory); /* the tensor's */
  } else if (!same) {
    s = heddle_tensor_create(NULL, p->dtype, shape, (uint32_t)ndim, &t, err);
  }
  if (s != HEDDLE_OK) return s;
  if (!same) {
    ctl_put(&p->whole, t);
    heddle_tensor_release(t);
  }
  if (!in_place && p->count > 0 && outer > 0) put_in_order(p, outer, p->bytes / outer, reverse, p->whole->data);
  *out = p->whole;
  return HEDDLE_OK;
}
