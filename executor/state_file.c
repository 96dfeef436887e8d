/* executor/state_file.c: state values in a file (docs/state.md has its bytes): written whole or not at all, and read whole
 * before the first value changes. Numbers are little-endian, as the machines that this library runs on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/config.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/whole_file.h"
#include "executor/states.h"
#include "heddle/state.h"
#include "plugins/common/fnv.h"

enum { VERSION = 1, MOST_NAME = 65535 };
static const char MAGIC[8] = {'H', 'E', 'D', 'D', 'L', 'E', 'S', 'T'};

/* The beginning of a file. */
typedef struct head {
  char magic[8];
  uint32_t version, count;
  uint64_t bytes; /* of the whole file */
} head;

/* The beginning of a value; its name, ndim dimensions of 8 bytes and its elements follow. */
typedef struct item {
  uint32_t name_bytes, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  uint32_t is_reset;
  uint64_t bytes;
} item;

static heddle_status check(heddle_executor *ex, const char *path, heddle_error *err) {
  heddle_status s = heddle__executor_check(ex, err);
  if (s == HEDDLE_OK && path == NULL) s = heddle__fail(err, HEDDLE_EINVAL, "a state file needs a path");
  if (s == HEDDLE_OK && heddle_executor_state_count(ex) == 0)
    s = heddle__fail(err, HEDDLE_EINVAL, "%s has no state values: the model's option state says which there are",
                     ex->model->graph->source);
  return s == HEDDLE_OK ? heddle__states_settle(ex, err) : s;
}

static const char *name_of(const heddle_executor *ex, uint32_t i) {
  return heddle__model_arg(ex->model, ex->states->at[i].arg)->name;
}

/* ---- out */

typedef struct writer {
  heddle__aside file;
  uint64_t sum;
} writer;

static heddle_status put(writer *w, const void *data, size_t bytes, heddle_error *err) {
  w->sum = fnv1a(w->sum, data, bytes);
  return heddle__aside_put(&w->file, data, bytes, err);
}

static heddle_status put_value(writer *w, heddle_executor *ex, uint32_t i, heddle_error *err) {
  heddle_tensor *t = NULL;
  const char *name = name_of(ex, i);
  heddle_status s = heddle_executor_read_state(ex, i, &t, err);
  if (s != HEDDLE_OK) return s;
  const item x = {.name_bytes = (uint32_t)strlen(name),
                  .ndim = t->ndim,
                  .code = t->dtype.code,
                  .bits = t->dtype.bits,
                  .lanes = t->dtype.lanes,
                  .is_reset = ex->states->at[i].is_reset,
                  .bytes = t->bytes};
  s = put(w, &x, sizeof x, err);
  if (s == HEDDLE_OK) s = put(w, name, x.name_bytes, err);
  if (s == HEDDLE_OK) s = put(w, t->shape, t->ndim * sizeof t->shape[0], err);
  if (s == HEDDLE_OK && t->bytes > 0) s = put(w, t->data, (size_t)t->bytes, err);
  heddle_tensor_release(t);
  return s;
}

heddle_status heddle_executor_save_state(heddle_executor *ex, const char *path, heddle_error *err) {
  writer w = {.sum = FNV1A_START};
  heddle_status s = check(ex, path, err);
  if (s != HEDDLE_OK) return s;
  head h = {.version = VERSION, .count = ex->states->n, .bytes = sizeof h + sizeof w.sum};
  memcpy(h.magic, MAGIC, sizeof h.magic);
  for (uint32_t i = 0; i < h.count; i++) {
    const heddle_tensor *v = ex->states->at[i].now.view;
    if (strlen(name_of(ex, i)) > MOST_NAME)
      return heddle__fail(err, HEDDLE_ELIMIT, "the name of state value %u is longer than %d bytes", (unsigned)i,
                          (int)MOST_NAME);
    h.bytes += sizeof(item) + strlen(name_of(ex, i)) + v->ndim * sizeof v->shape[0] + v->bytes;
  }
  s = heddle__aside_begin(&w.file, path, false, err);
  if (s != HEDDLE_OK) return s;
  s = put(&w, &h, sizeof h, err);
  for (uint32_t i = 0; i < h.count && s == HEDDLE_OK; i++) s = put_value(&w, ex, i, err);
  if (s == HEDDLE_OK) s = heddle__aside_put(&w.file, &w.sum, sizeof w.sum, err);
  if (s == HEDDLE_OK) return heddle__aside_keep(&w.file, err);
  heddle__aside_drop(&w.file);
  return s;
}

/* ---- in */

typedef struct reader {
  const char *path;
  const unsigned char *at;
  uint64_t left;
  heddle_error *err;
} reader;

static heddle_status broken(const reader *r, const char *what) {
  return heddle__fail(r->err, HEDDLE_EFORMAT, "%s: this is no whole state file: %s", r->path, what);
}

static heddle_status get(reader *r, void *to, uint64_t bytes) {
  if (bytes > r->left) return broken(r, "it is too short");
  if (bytes > 0) memcpy(to, r->at, (size_t)bytes);
  r->at += bytes;
  r->left -= bytes;
  return HEDDLE_OK;
}

static heddle_status check_head(reader *r, uint32_t *count) {
  head h;
  uint64_t sum = 0, all = r->left;
  if (all < sizeof h + sizeof sum || memcmp(r->at, MAGIC, sizeof MAGIC) != 0)
    return broken(r, "it does not begin with HEDDLEST");
  (void)get(r, &h, sizeof h);
  if (h.version != VERSION)
    return heddle__fail(r->err, HEDDLE_EFORMAT, "%s: state files of version %u are not known; this library reads %u",
                        r->path, (unsigned)h.version, (unsigned)VERSION);
  if (h.bytes != all) return broken(r, "its size is not what its head says");
  memcpy(&sum, r->at + r->left - sizeof sum, sizeof sum);
  if (fnv1a(FNV1A_START, r->at - sizeof h, (size_t)(all - sizeof sum)) != sum)
    return broken(r, "its checksum is wrong");
  r->left -= sizeof sum;
  *count = h.count;
  return HEDDLE_OK;
}

/* What a value of the file is to be, where it fits the model. */
static heddle_status get_value(reader *r, heddle_executor *ex, heddle__held *made, bool *is_reset) {
  item x;
  char name[MOST_NAME + 1];
  int64_t shape[HEDDLE__MAX_NDIM];
  heddle_status s = get(r, &x, sizeof x);
  if (s != HEDDLE_OK) return s;
  if (x.name_bytes > MOST_NAME || x.ndim > HEDDLE__MAX_NDIM) return broken(r, "a name or a shape is too long");
  s = get(r, name, x.name_bytes);
  name[x.name_bytes] = '\0';
  if (s == HEDDLE_OK) s = get(r, shape, x.ndim * sizeof *shape);
  if (s != HEDDLE_OK) return s;
  uint32_t i = 0;
  while (i < ex->states->n && strcmp(name_of(ex, i), name) != 0) i++;
  if (i == ex->states->n)
    return heddle__fail(r->err, HEDDLE_EINVAL, "%s: it is of another model: %s has no state value '%.200s'", r->path,
                        ex->model->graph->source, name);
  if (made[i].store != NULL) return broken(r, "a value is in it twice");
  const heddle__state *st = &ex->states->at[i];
  const heddle_dtype dtype = {x.code, x.bits, x.lanes};
  uint64_t bytes = 0;
  s = heddle__shape_bytes(dtype, x.ndim, shape, NULL, &bytes, r->err);
  if (s != HEDDLE_OK || bytes != x.bytes || x.bytes > r->left) return broken(r, "a value's size is wrong");
  s = heddle__model_fits(ex->model, st->arg, dtype, x.ndim, shape, r->err);
  if (s != HEDDLE_OK) return heddle__prefix(r->err, s, "%s: it is of another model: ", r->path);
  s = heddle__held_make(st->now.store->dev, dtype, x.ndim, shape, st->axis != HEDDLE__NONE, &made[i], r->err);
  if (s == HEDDLE_OK) s = heddle__tensor_write(made[i].view, r->at, r->err);
  if (s != HEDDLE_OK) return heddle__prefix(r->err, s, "state value '%s': ", name);
  is_reset[i] = x.is_reset != 0;
  r->at += x.bytes;
  r->left -= x.bytes;
  return HEDDLE_OK;
}

static heddle_status get_all(reader *r, heddle_executor *ex, heddle__held *made, bool *is_reset) {
  uint32_t count = 0;
  heddle_status s = check_head(r, &count);
  if (s == HEDDLE_OK && count != ex->states->n)
    s = heddle__fail(r->err, HEDDLE_EINVAL, "%s: it is of another model: it has %u state values, and %s has %u",
                     r->path, (unsigned)count, ex->model->graph->source, (unsigned)ex->states->n);
  for (uint32_t i = 0; i < count && s == HEDDLE_OK; i++) s = get_value(r, ex, made, is_reset);
  if (s == HEDDLE_OK && r->left != 0) s = broken(r, "there is more than it says");
  return s;
}

heddle_status heddle_executor_load_state(heddle_executor *ex, const char *path, heddle_error *err) {
  void *data = NULL;
  size_t bytes = 0;
  int64_t most = 0;
  heddle_status s = check(ex, path, err);
  if (s == HEDDLE_OK)
    s = heddle__context_number(ex->model->ctx, "limit.params_bytes", INT64_MAX, 1, INT64_MAX, &most, err);
  if (s == HEDDLE_OK) s = heddle__file_read(path, (uint64_t)most, &data, &bytes, err);
  if (s != HEDDLE_OK) return s;
  const uint32_t n = ex->states->n;
  heddle__held *made = heddle__alloc(n, sizeof *made);
  bool *is_reset = heddle__alloc(n, sizeof *is_reset);
  reader r = {path, data, bytes, err};
  s = made != NULL && is_reset != NULL ? get_all(&r, ex, made, is_reset) : heddle__no_memory(err, "state values");
  for (uint32_t i = 0; i < n && made != NULL; i++) {
    if (s == HEDDLE_OK) heddle__state_put(ex, &ex->states->at[i], made[i], is_reset[i]);
    else heddle__held_drop(&made[i]);
  }
  heddle__free(made);
  heddle__free(is_reset);
  heddle__free(data);
  return s;
}
