/* executor/weights.c: which file of packed weights a plan needs: it is named after the model's files (not their bytes,
 * whose reading would cost what is to be saved), what is packed of them and how, and who packs. */
#include "executor/weights.h"

#include <string.h>

#include "core/alloc.h"
#include "core/config.h"
#include "core/registry.h"
#include "executor/weights_file.h"

enum { MOST_ALIGN = 4096, LEAST_ALIGN = 64 };
#define LEAST_BYTES (UINT64_C(1) << 20) /* below, packing costs no more than a file */
#define DEFAULT_LIMIT (INT64_C(4) << 30)

struct heddle__weights {
  heddle__weights_file file;
  heddle_tensor *tensor; /* of the whole map */
  bool filled;
  uint32_t n_allocs;
  struct place {
    bool is_there;
    uint64_t at, bytes;
  } places[];
};

/* The file's tensor ends with this. */
typedef struct held {
  void *map;
  uint64_t bytes;
} held;

static void unmap(void *user) {
  held *h = user;
  heddle__weights_file_unmap(h->map, h->bytes);
  heddle__free(h);
}

/* ---- what a plan packs */

static const heddle_device *device_of(const heddle__plan *plan, const heddle__instance *inst) {
  return plan->devices[plan->spaces[inst->space].device].dev;
}

static bool is_packed(const heddle__plan *plan, uint32_t alloc) {
  if (plan->allocs[alloc].kind != HEDDLE__ALLOC_CONSTANT) return false;
  const heddle__instance *inst = &plan->instances[plan->allocs[alloc].instance];
  return plan->values[inst->value].layout != 0 && inst->bytes > 0 && inst->align <= MOST_ALIGN &&
         heddle__device_inline(device_of(plan, inst)) && device_of(plan, inst)->desc.import_alignment != 0 &&
         device_of(plan, inst)->desc.import_alignment <= LEAST_ALIGN;
}

/* Gives each its place; how many bytes all take, 0 where that is more than any file. */
static uint64_t lay_out(heddle__weights *w, const heddle__plan *plan) {
  uint64_t at = 0, bytes = 0;
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    if (!is_packed(plan, i)) continue;
    const heddle__instance *inst = &plan->instances[plan->allocs[i].instance];
    at = heddle__round_up(at, inst->align > LEAST_ALIGN ? inst->align : LEAST_ALIGN);
    bytes = heddle__round_up(inst->bytes, LEAST_ALIGN);
    if (at >= INT64_MAX || bytes >= INT64_MAX) return 0;
    w->places[i] = (struct place){true, at, bytes};
    at += bytes;
  }
  return at;
}

/* ---- the key */

static void add_text(heddle__digest *d, const char *text) {
  heddle__digest_add(d, text, strlen(text) + 1);
}

static void add_number(heddle__digest *d, uint64_t n) {
  heddle__digest_add(d, &n, sizeof n);
}

/* Where the bytes come from: a place in a file that is as it was, else what they are. */
static void add_source(heddle__digest *d, const heddle_params *params, const heddle__known *k) {
  heddle__file_place place;
  bool in_file = params != NULL && params->where != NULL && params->where(params->maps, k->data, k->bytes, &place);
  add_number(d, in_file);
  heddle__digest_add(d, in_file ? (const void *)&place : k->data, in_file ? sizeof place : k->bytes);
}

static heddle__digest key_of(const heddle_model *m, const heddle__plan *plan) {
  heddle__digest d = {{0, 0}};
  const heddle_device *last = NULL;
  add_text(&d, heddle_version());
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    if (!is_packed(plan, i)) continue;
    const heddle__instance *inst = &plan->instances[plan->allocs[i].instance];
    const heddle__value *v = &plan->values[inst->value];
    const heddle_device *dev = device_of(plan, inst);
    if (dev != last) {
      add_text(&d, dev->name);
      add_text(&d, dev->plugin->root.build != NULL ? dev->plugin->root.build : "");
      add_text(&d, dev->desc.name);
      add_text(&d, dev->desc.driver);
      last = dev;
    }
    add_number(&d, v->layout);
    add_number(&d, inst->bytes);
    add_number(&d, inst->align);
    heddle__digest_add(&d, &v->known.dtype, sizeof v->known.dtype);
    heddle__digest_add(&d, v->known.shape, v->known.ndim * sizeof *v->known.shape);
    add_source(&d, m->params, &v->known);
  }
  return d;
}

/* ---- opening */

/* The folder and its limit; false where the cache is off. */
static bool read_settings(heddle_model *m, heddle__weights_file *f) {
  const char *folder = NULL, *origin = "";
  int64_t limit = 0;
  heddle_error why;
  f->log = heddle__context_log(m->ctx);
  if (!heddle__config_get(m->ctx->config, "weights.cache_dir", &folder, &origin) || heddle__config_is_off(folder))
    return false;
  f->folder = folder;
  f->folder_given = strcmp(origin, "default") != 0;
  if (heddle__context_number(m->ctx, "weights.cache_bytes", DEFAULT_LIMIT, 0, INT64_MAX, &limit, &why) != HEDDLE_OK ||
      folder[0] != '/') {
    heddle__logf(f->log, HEDDLE_LOG_WARN, "weights", "packed weights are not kept: %s",
                 folder[0] != '/' ? "weights.cache_dir has to be an absolute path, or off" : why.text);
    return false;
  }
  f->limit = (uint64_t)limit;
  return limit > 0;
}

/* Found or made; then everything of it belongs to the tensor. */
static bool map(heddle__weights *w) {
  w->filled = heddle__weights_file_find(&w->file);
  if (!w->filled && !heddle__weights_file_make(&w->file)) return false;
  held *h = heddle__alloc(1, sizeof *h);
  const int64_t bytes = (int64_t)w->file.bytes;
  if (h != NULL) *h = (held){w->file.map, w->file.bytes};
  if (h != NULL && heddle_tensor_wrap(w->file.data, (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1}, &bytes, 1, NULL, unmap, h,
                                      &w->tensor, NULL) == HEDDLE_OK)
    return true;
  heddle__free(h);
  heddle__weights_file_unmap(w->file.map, w->file.bytes);
  return false;
}

heddle__weights *heddle__weights_open(heddle_model *m, const heddle__plan *plan) {
  heddle__weights_file f = {.fd = -1};
  if (!read_settings(m, &f)) return NULL;
  heddle__weights *w = heddle__alloc(1, sizeof *w + plan->n_allocs * sizeof w->places[0]);
  if (w == NULL) return NULL;
  w->file = f;
  w->n_allocs = plan->n_allocs;
  w->file.bytes = lay_out(w, plan);
  bool good = w->file.bytes >= LEAST_BYTES;
  if (good) {
    w->file.key = key_of(m, plan);
    good = map(w);
  }
  if (good && w->filled)
    heddle__logf(f.log, HEDDLE_LOG_INFO, "weights", "%s: its packed weights, %llu bytes, are those in %s",
                 m->graph->source, (unsigned long long)w->file.bytes, w->file.path);
  if (good) return w;
  heddle__weights_close(w, false);
  return NULL;
}

void *heddle__weights_at(const heddle__weights *w, uint32_t alloc, uint64_t *bytes, bool *filled) {
  if (w == NULL || alloc >= w->n_allocs || !w->places[alloc].is_there) return NULL;
  *bytes = w->places[alloc].bytes;
  *filled = w->filled;
  return (char *)w->file.data + w->places[alloc].at;
}

heddle_tensor *heddle__weights_tensor(const heddle__weights *w) {
  return w->tensor;
}

void heddle__weights_close(heddle__weights *w, bool good) {
  if (w == NULL) return;
  if (good && !w->filled) heddle__weights_file_keep(&w->file);
  heddle__weights_file_end(&w->file);
  heddle_tensor_release(w->tensor);
  heddle__free(w);
}
