/* executor/weights/weights.c: which file of packed weights a plan needs: it is named after the model's files (not their bytes, whose reading would cost what is to be saved), what is packed of them
 * and how, and who packs. */
#include "executor/weights.h"

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/registry.h"
#include "executor/prepared.h"
#include "executor/weights/file.h"

enum { ALIGN = 64 }; /* of places, at least */
#define DEFAULT_LIMIT (INT64_C(4) << 30)

typedef struct weights {
  heddle__weights shown;
  heddle__weights_file file;
  uint32_t n_allocs;
  struct place {
    bool is_there;
    uint64_t at, bytes;
  } places[];
} weights;

/* The file's tensor ends with this: a map, or a package that stays mapped. */
typedef struct held {
  void *map;
  uint64_t bytes;
  heddle_params *params;
} held;

static void unmap(void *user) {
  held *h = user;
  if (h->map != NULL) heddle__weights_file_unmap(h->map, h->bytes);
  heddle_params_release(h->params);
  heddle__free(h);
}

/* ---- what a plan packs */

static uint64_t round_up(uint64_t n, uint64_t align) {
  return (n + align - 1) / align * align;
}

static const heddle_device *device_of(const heddle__plan *plan, const heddle__instance *inst) {
  return plan->devices[plan->spaces[inst->space].device].dev;
}

/* Gives each its place; how many bytes all take, 0 where that is more than any file. */
static uint64_t lay_out(weights *w, const heddle__plan *plan) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    if (!w->places[i].is_there) continue;
    const heddle__instance *inst = &plan->instances[plan->allocs[i].instance];
    at = round_up(at, inst->align > ALIGN ? inst->align : ALIGN);
    if (inst->bytes > (uint64_t)INT64_MAX / 2 - at) return 0;
    w->places[i].at = at;
    w->places[i].bytes = round_up(inst->bytes, ALIGN);
    at += w->places[i].bytes;
  }
  return at;
}

/* ---- the key */

static void add_number(heddle__digest *d, uint64_t n) {
  heddle__digest_add(d, &n, sizeof n);
}

/* Where the bytes come from: a place in a package that carries what is packed of them, which it names by its content; a
 * place in a file that is as it was; else what they are. */
static void add_source(heddle__digest *d, const heddle_params *params, const heddle__known *k, bool of_package) {
  heddle__file_place place;
  const heddle__carried *c = of_package ? params->carried : NULL;
  const unsigned char *data = k->data;
  if (c != NULL && data >= c->data && data < c->data + c->bytes) {
    heddle__digest_add(d, &c->content, sizeof c->content);
    add_number(d, (uint64_t)(data - c->data));
    add_number(d, k->bytes);
    return;
  }
  bool in_file = params != NULL && params->where != NULL && params->where(params->maps, k->data, k->bytes, &place);
  add_number(d, in_file);
  heddle__digest_add(d, in_file ? (const void *)&place : k->data, in_file ? sizeof place : k->bytes);
}

/* Who packs: the device as it describes itself, and its plugin's file, since a plugin that is built anew may pack
 * otherwise under the name of the same version. */
static void add_packer(heddle__digest *d, const heddle_device *dev) {
  struct stat file;
  heddle__digest_text(d, dev->name);
  heddle__digest_text(d, dev->plugin->root.build != NULL ? dev->plugin->root.build : "");
  heddle__digest_text(d, dev->desc.name);
  heddle__digest_text(d, dev->desc.driver);
  if (stat(dev->plugin->path, &file) != 0) return;
  add_number(d, (uint64_t)file.st_size);
  add_number(d, (uint64_t)file.st_mtim.tv_sec);
  add_number(d, (uint64_t)file.st_mtim.tv_nsec);
}

static heddle__digest key_of(const weights *w, const heddle_model *m, const heddle__plan *plan, bool of_package) {
  heddle__digest d = {{0, 0}};
  const heddle_device *last = NULL;
  heddle__digest_text(&d, HEDDLE_VERSION);
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    if (!w->places[i].is_there) continue;
    const heddle__instance *inst = &plan->instances[plan->allocs[i].instance];
    const heddle__value *v = &plan->values[inst->value];
    const heddle_device *dev = device_of(plan, inst);
    if (dev != last) add_packer(&d, dev);
    last = dev;
    add_number(&d, v->layout);
    add_number(&d, inst->bytes);
    add_number(&d, inst->align);
    heddle__digest_add(&d, &v->known.dtype, sizeof v->known.dtype);
    heddle__digest_add(&d, v->known.shape, v->known.ndim * sizeof *v->known.shape);
    add_source(&d, m->params, &v->known, of_package);
  }
  return d;
}

/* ---- opening */

/* The limit of the folder; false, said in the log, where a setting is none. */
static bool read_settings(heddle_model *m, heddle__weights_file *f) {
  int64_t limit = 0;
  heddle_error why;
  if (f->place.folder[0] != '/') {
    heddle__weights_say(f, HEDDLE_LOG_WARN,
                        "packed weights are not kept: weights.cache_dir has to be an absolute path, or off");
    return false;
  }
  if (heddle__context_number(m->ctx, "weights.cache_bytes", DEFAULT_LIMIT, 0, INT64_MAX, &limit, &why) != HEDDLE_OK)
    heddle__weights_say(f, HEDDLE_LOG_WARN, "packed weights are not kept: %s", why.text);
  f->place.limit = (uint64_t)limit;
  return limit > 0;
}

/* Found or made; then everything of it belongs to the tensor. */
static bool map(weights *w, heddle_params *package) {
  if (package == NULL) w->shown.filled = heddle__weights_file_find(&w->file);
  if (!w->shown.filled && !heddle__weights_file_make(&w->file)) return false;
  held *h = heddle__alloc(1, sizeof *h);
  const int64_t bytes = (int64_t)w->file.bytes;
  if (h != NULL) *h = (held){w->file.map, w->file.bytes, package != NULL ? heddle_params_retain(package) : NULL};
  if (h != NULL && heddle_tensor_wrap(w->file.data, (heddle_dtype){HEDDLE_DTYPE_UINT, 8, 1}, &bytes, 1, NULL, unmap, h,
                                      &w->shown.tensor, NULL) == HEDDLE_OK)
    return true;
  if (h != NULL) heddle_params_release(h->params);
  heddle__free(h);
  if (package == NULL) heddle__weights_file_unmap(w->file.map, w->file.bytes);
  return false;
}

/* Those that the model's package carries. */
static bool take_prepared(weights *w, heddle_model *m, const heddle__plan *plan) {
  const void *whole = NULL;
  uint64_t bytes = 0;
  if (m->params == NULL || m->params->carried == NULL || m->params->carried->prepared == NULL) return false;
  w->file.key = key_of(w, m, plan, true);
  heddle__weights_file_name(&w->file);
  if (!heddle__prepared_find(m, w->file.name, &whole, &bytes) || !heddle__weights_file_take(&w->file, whole, bytes))
    return false;
  w->shown.filled = true;
  if (map(w, m->params)) {
    heddle__weights_say(&w->file, HEDDLE_LOG_INFO, "%s: its packed weights, %llu bytes, are those of its package",
                        m->graph->source, (unsigned long long)w->file.bytes);
    return true;
  }
  w->shown.filled = false;
  return false;
}

void *heddle__weights_at(const heddle__weights *shown, uint32_t alloc, uint64_t *bytes) {
  const weights *w = (const weights *)shown;
  if (alloc >= w->n_allocs || !w->places[alloc].is_there) return NULL;
  *bytes = w->places[alloc].bytes;
  return (char *)w->file.data + w->places[alloc].at;
}

void heddle__weights_close(heddle__weights *shown, bool good) {
  weights *w = (weights *)shown;
  if (good && !shown->filled) heddle__weights_file_keep(&w->file);
  heddle__weights_file_end(&w->file);
  heddle_tensor_release(shown->tensor);
  heddle__free(w);
}

heddle__weights *heddle__weights_begin(heddle_model *m, const heddle__plan *plan, const char *folder,
                                       const char *from) {
  heddle__weights_file f = {
      .log = &m->ctx->log, .place = {.folder = folder}, .folder_given = strcmp(from, "default") != 0};
  const bool has_folder = folder != NULL && read_settings(m, &f);
  const bool is_made = m->params != NULL && m->params->carried != NULL && m->params->carried->is_made;
  weights *w = heddle__alloc(1, sizeof *w + plan->n_allocs * sizeof w->places[0]);
  if (w == NULL) return NULL;
  w->file = f;
  w->n_allocs = plan->n_allocs;
  for (uint32_t i = 0; i < plan->n_allocs; i++) w->places[i].is_there = heddle__weights_holds(plan, i);
  w->file.bytes = lay_out(w, plan);
  bool good = w->file.bytes > 0;
  if (good && take_prepared(w, m, plan)) return &w->shown;
  good = good && has_folder;
  if (good) {
    w->file.key = key_of(w, m, plan, is_made);
    good = map(w, NULL);
  }
  if (good && w->shown.filled)
    heddle__weights_say(&w->file, HEDDLE_LOG_INFO, "%s: its packed weights, %llu bytes, are those in %s/%s",
                        m->graph->source, (unsigned long long)w->file.bytes, w->file.place.folder, w->file.name);
  if (good) return &w->shown;
  heddle__weights_close(&w->shown, false);
  return NULL;
}
