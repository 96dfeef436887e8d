/* executor/survive/spare.c: models that take a model's place for executors whose devices failed: of the same graph and
 * parameters, with fewer devices, or with the same and less memory. The model keeps them, for all of its executors. */
#include <stdio.h>
#include <string.h>

#include "executor/survive/survive.h"

#include "core/alloc.h"

/* What a spare is to be like. */
typedef struct want {
  heddle_device **devices;
  uint32_t n;
  bool small;
  uint64_t room; /* small: bytes of the device without that are free; 0: not known */
  heddle_device *without;
} want;

/* Appends to a text: "a" to "x,y" makes "x,y,a". false: memory is out. */
static bool append(char **list, const char *item) {
  char *more = item == NULL ? NULL : *list == NULL ? heddle__format("%s", item) : heddle__format("%s,%s", *list, item);
  heddle__free(*list);
  *list = more;
  return more != NULL;
}

/* The limit on a device in the place that it had in the model's list; 0: none. */
static uint64_t limit_of(const heddle_model *m, const heddle_device *dev) {
  for (uint32_t i = 0; m->limits != NULL && i < m->n_devices; i++)
    if (m->devices[i] == dev) return m->limits[i];
  return 0;
}

/* The limit that a device shall have; 0: none. */
static uint64_t limit_for(const heddle_model *root, const want *w, const heddle_device *dev) {
  uint64_t most = limit_of(root, dev);
  return w->small && dev == w->without && w->room > 0 && (most == 0 || w->room < most) ? w->room : most;
}

/* One for less memory will do where its own limit is no higher: another one for each executor would take more of it. */
static bool is_like(const heddle_model *root, const heddle_model *m, const want *w) {
  if (w->small != m->is_small || m->n_devices != w->n || memcmp(m->devices, w->devices, w->n * sizeof *w->devices) != 0)
    return false;
  uint64_t most = w->small ? limit_for(root, w, w->without) : 0, own = w->small ? limit_of(m, w->without) : 0;
  return most == 0 || (own != 0 && own <= most);
}

static bool fill_lists(const scene *c, const want *w, char **devices, char **limits) {
  for (uint32_t i = 0; i < w->n; i++) {
    uint64_t most = limit_for(c->ex->model, w, w->devices[i]);
    if (!append(devices, w->devices[i]->name)) return false;
    if (most == 0) continue;
    char *item = heddle__format("%s=%llu", w->devices[i]->name, (unsigned long long)most);
    bool done = append(limits, item);
    heddle__free(item);
    if (!done) return false;
  }
  return true;
}

/* The rules whose devices are left; first the end of the setting's, which the root has taken. */
static size_t take_rules(const heddle_model *root, const want *w, const char **rules) {
  size_t n = 0;
  rules[n++] = "off";
  for (uint32_t i = 0; i < root->n_rules; i++)
    for (uint32_t k = 0; k < w->n; k++)
      if (w->devices[k] == root->devices[root->rules[i].device]) rules[n++] = root->rules[i].text;
  return n;
}

static heddle_status make(scene *c, const want *w, heddle_model **out) {
  heddle_model *root = c->ex->model;
  char *devices = NULL, *limits = NULL;
  const char **rules = heddle__alloc((size_t)root->n_rules + 1, sizeof *rules);
  char **keep = heddle__alloc(root->n_keep, sizeof *keep);
  bool room = rules != NULL && keep != NULL && fill_lists(c, w, &devices, &limits);
  for (uint32_t i = 0; i < root->n_keep && room; i++) {
    keep[i] = heddle__format("#%u:%u", (unsigned)root->keep[i].node, (unsigned)root->keep[i].index);
    room = keep[i] != NULL;
  }
  heddle_status s = HEDDLE_ENOMEM;
  if (room) {
    const heddle_model_options options = {.struct_size = sizeof options,
                                          .devices = devices,
                                          .place = rules,
                                          .n_place = take_rules(root, w, rules),
                                          .keep = (const char *const *)keep,
                                          .n_keep = root->n_keep,
                                          .flags = root->flags &
                                                   ~(w->small ? HEDDLE_MODEL_NO_REUSE | HEDDLE_MODEL_SLOTS : 0),
                                          .max_streams = w->small ? 1 : root->max_streams,
                                          .max_programs = root->max_programs,
                                          .in_flight = root->in_flight,
                                          .library = root->library,
                                          .upload_timeout_ns = root->upload_timeout_ns,
                                          .optimize = root->wish,
                                          .memory = limits != NULL ? limits : "off",
                                          .on_failure = root->on_failure,
                                          .state = root->state};
    s = heddle_model_create(root->ctx, root->graph, root->params, &options, out, c->words);
  } else {
    snprintf(c->words->text, sizeof c->words->text, "out of memory");
  }
  for (uint32_t i = 0; keep != NULL && i < root->n_keep; i++) heddle__free(keep[i]);
  heddle__free(keep);
  heddle__free((void *)(uintptr_t)rules);
  heddle__free(limits);
  heddle__free(devices);
  if (s != HEDDLE_OK) return s;
  (*out)->is_spare = true;
  (*out)->is_small = w->small;
  return HEDDLE_OK;
}

/* The spare of the model that is as it is wanted; NULL: there is none. */
static heddle_model *find_spare(heddle_model *root, const want *w) {
  pthread_mutex_lock(&root->lock);
  heddle_model *m = root->spares;
  while (m != NULL && !is_like(root, m, w)) m = m->next_spare;
  pthread_mutex_unlock(&root->lock);
  return m;
}

static bool move(scene *c, const want *w) {
  heddle_executor *ex = c->ex;
  heddle_model *root = ex->model, *from = ex->active, *m = find_spare(root, w);
  if (m == NULL) {
    if (make(c, w, &m) != HEDDLE_OK) return survive_no(c, "%.350s", c->words->text);
    pthread_mutex_lock(&root->lock); /* another thread may have made one too: then there are two */
    m->next_spare = root->spares;
    root->spares = m;
    pthread_mutex_unlock(&root->lock);
  }
  atomic_fetch_sub(&from->users, 1);
  atomic_fetch_add(&m->users, 1);
  ex->active = m;
  return true;
}

bool survive_move(scene *c, heddle_device *without, bool small) {
  heddle_model *m = c->ex->active;
  want w = {.small = small, .without = without};
  w.devices = heddle__alloc(m->n_devices, sizeof *w.devices);
  if (w.devices == NULL) return survive_no(c, "out of memory");
  for (uint32_t i = 0; i < m->n_devices; i++)
    if (small || (m->devices[i] != without && !survive_lost(m->devices[i]))) w.devices[w.n++] = m->devices[i];
  bool moved = w.n > 0;
  if (!moved) survive_no(c, "no other device is left in the model's list");
  if (moved) {
    survive_detach(c);
    survive_forget(m);
    uint64_t free_now = 0, total = 0;
    heddle_error ignored;
    if (small && without->handle != NULL && without->t->device.memory_now != NULL &&
        without->t->device.memory_now(without->handle, &free_now, &total, &ignored) == HEDDLE_OK)
      w.room = free_now;
    moved = move(c, &w);
  }
  heddle__free(w.devices);
  return moved;
}
