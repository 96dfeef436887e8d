/* core/layers/wrap.c: the set of wrapped handles, and what happens round each call.
 * The tables themselves are in wrap_core.c and wrap_op.c; the layers in check.c, fault.c and log.c. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/layers/call.h"

static const char *const kind_words[HEDDLE__KINDS] = {"instance", "device", "buffer", "stream", "event", "op",
                                                      "launch",   "module", "kernel", "graph",  "timer"};

/* ---- the set: chains by address; process-wide, so that any pointer can be asked about without being read */

enum { BUCKETS = 1024 };

typedef struct node {
  struct node *next;
  heddle__wrap wrap;
} node;

static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER; /* guards set; a leaf */
static node *set[BUCKETS];
static node *dead; /* freed by the core with children left; guarded by set_lock too */

static node **bucket(const void *handle) {
  return &set[((uintptr_t)handle >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 54];
}

static heddle__wrap *find_wrap(const void *handle) {
  pthread_mutex_lock(&set_lock);
  node *n = *bucket(handle);
  while (n != NULL && (const void *)&n->wrap != handle) n = n->next;
  pthread_mutex_unlock(&set_lock);
  return n != NULL ? &n->wrap : NULL;
}

static heddle__wrap *put(const heddle__wrap *w) {
  node *n = heddle__alloc(1, sizeof *n);
  if (n == NULL) return NULL;
  n->wrap.layers = w->layers;
  n->wrap.kind = w->kind;
  n->wrap.real = w->real;
  n->wrap.device = w->device;
  n->wrap.parent = w->parent;
  pthread_mutex_lock(&set_lock);
  node **where = bucket(&n->wrap);
  n->next = *where;
  *where = n;
  pthread_mutex_unlock(&set_lock);
  if (w->device != NULL) atomic_fetch_add(&w->device->children, 1);
  if (w->parent != NULL) atomic_fetch_add(&w->parent->children, 1);
  return &n->wrap;
}

void heddle__drop(heddle__wrap *w) {
  if (w == NULL) return;
  if (w->device != NULL) atomic_fetch_sub(&w->device->children, 1);
  if (w->parent != NULL) atomic_fetch_sub(&w->parent->children, 1);
  pthread_mutex_lock(&set_lock);
  node **at = bucket(w);
  while (*at != NULL && &(*at)->wrap != w) at = &(*at)->next;
  node *n = *at;
  if (n != NULL) *at = n->next;
  if (n != NULL && atomic_load(&n->wrap.children) > 0) { /* they still point here */
    atomic_store(&n->wrap.dead, true);
    n->next = dead;
    dead = n;
    n = NULL;
  }
  pthread_mutex_unlock(&set_lock);
  heddle__free(n);
}

static void bury(const struct heddle__layers *layers) {
  pthread_mutex_lock(&set_lock);
  for (node **at = &dead; *at != NULL;) {
    node *n = *at;
    if (n->wrap.layers != layers) {
      at = &n->next;
      continue;
    }
    *at = n->next;
    heddle__free(n);
  }
  pthread_mutex_unlock(&set_lock);
}

/* Takes out of the set the first wrap that match accepts. */
static heddle__wrap *first(const struct heddle__layers *layers, const heddle__wrap *parent) {
  heddle__wrap *found = NULL;
  pthread_mutex_lock(&set_lock);
  for (unsigned i = 0; i < BUCKETS && found == NULL; i++)
    for (node *n = set[i]; n != NULL && found == NULL; n = n->next)
      if (n->wrap.layers == layers && (parent == NULL || (n->wrap.kind == HEDDLE__KERNEL && n->wrap.parent == parent)))
        found = &n->wrap;
  pthread_mutex_unlock(&set_lock);
  return found;
}

void heddle__drop_kernels(heddle__wrap *module) {
  for (heddle__wrap *w; (w = first(module->layers, module)) != NULL;) heddle__drop(w);
}

/* ---- rules that were broken */

heddle_status heddle__broken(heddle__call *c, heddle_status who, const char *format, ...) {
  char text[800];
  va_list args;
  va_start(args, format);
  if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
  va_end(args);
  const char *plugin = c->layers != NULL ? c->layers->plugin->name : "?";
  c->status = heddle__fail(c->err, who, "%s broke the contract of %s (plugin %s): %s",
                           who == HEDDLE_EABI ? "the plugin" : "Heddle", c->name, plugin, text);
  if (c->layers != NULL && c->err == NULL)
    heddle__logf(&c->layers->plugin->ctx->log, HEDDLE_LOG_ERROR, "check", "%s (plugin %s): %s", c->name, plugin, text);
  return c->status;
}

void heddle__broken_logged(struct heddle__layers *layers, const char *format, ...) {
  char text[800];
  va_list args;
  va_start(args, format);
  if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
  va_end(args);
  atomic_fetch_add(&layers->broken, 1);
  heddle__logf(&layers->plugin->ctx->log, HEDDLE_LOG_ERROR, "check", "plugin %s: %s", layers->plugin->name, text);
}

/* ---- handles */

/* What a failed look-up gives: it may be read, and its call is never made. */
static heddle__wrap nothing;

heddle__wrap *heddle__unwrap(heddle__call *c, const void *handle, heddle__kind kind) {
  if (c->status != HEDDLE_OK) return &nothing;
  heddle__wrap *w = handle != NULL ? find_wrap(handle) : NULL;
  if (w == NULL || w->kind != kind) {
    heddle__broken(c, HEDDLE_EINTERNAL, "the %s is %s", kind_words[kind],
                   handle == NULL ? "NULL"
                   : w != NULL    ? "a handle of another kind"
                                  : "not open now");
    return &nothing;
  }
  if (c->layers == NULL) c->layers = w->layers;
  if (c->layers != w->layers) {
    heddle__broken(c, HEDDLE_EINTERNAL, "the %s belongs to plugin %s", kind_words[kind], w->layers->plugin->name);
    return &nothing;
  }
  heddle__wrap *device = kind == HEDDLE__DEVICE ? w : w->device;
  if (c->device == NULL) c->device = device;
  return w;
}

heddle__wrap *heddle__unwrap_stream(heddle__call *c, heddle_pstream *stream) {
  heddle__wrap *w = heddle__unwrap(c, stream, HEDDLE__STREAM);
  if (c->status == HEDDLE_OK) {
    c->stream = w;
    c->device = w->device;
  }
  return w;
}

heddle__wrap *heddle__unwrap_range(heddle__call *c, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes,
                                   bool host_side) {
  heddle__wrap *w = heddle__unwrap(c, buffer, HEDDLE__BUFFER);
  if (c->status == HEDDLE_OK && c->n_ranges < HEDDLE__RANGES)
    c->range[c->n_ranges++] = (heddle__range){w, offset, bytes, host_side, false};
  return w;
}

heddle__wrap *heddle__give(heddle__call *c, heddle__kind kind, void *real, heddle__wrap *device, heddle__wrap *parent) {
  const heddle__wrap fresh = {.layers = c->layers, .kind = kind, .real = real, .device = device, .parent = parent};
  heddle__wrap *w = put(&fresh);
  if (w == NULL) c->status = heddle__no_memory(c->err, "a layer's handle");
  return w;
}

heddle__wrap *heddle__take(const void *handle, heddle__kind kind, const char *name) {
  if (handle == NULL) return NULL;
  heddle__wrap *w = find_wrap(handle);
  if (w == NULL || w->kind != kind) {
    /* There is no status to return and no log to find by a stranger's pointer, unless it is of another kind. */
    if (w != NULL) heddle__broken_logged(w->layers, "%s was given a handle of another kind", name);
    return NULL;
  }
  if (w->device != NULL && atomic_load(&w->device->dead)) {
    heddle__broken_logged(w->layers, "%s came after the device was closed", name);
    heddle__drop(w);
    return NULL;
  }
  heddle__call c = {.layers = w->layers, .name = name, .device = kind == HEDDLE__DEVICE ? w : w->device};
  if (w->layers->checks && atomic_load(&w->children) > 0 && kind != HEDDLE__MODULE)
    heddle__broken_logged(w->layers, "%s: %u handles that were made on the %s are left", name,
                          atomic_load(&w->children), kind_words[kind]);
  for (unsigned i = 0; i < w->layers->n; i++)
    if (strcmp(w->layers->layer[i]->name, "log") == 0) w->layers->layer[i]->after(w->layers->state[i], &c);
  return w;
}

/* ---- a call */

bool heddle__before(heddle__call *c) {
  for (unsigned i = 0; c->status == HEDDLE_OK && !c->answered && i < c->layers->n; i++)
    if (c->layers->layer[i]->before != NULL) c->status = c->layers->layer[i]->before(c->layers->state[i], c);
  c->t0 = heddle__now_ns();
  return c->status == HEDDLE_OK && !c->answered;
}

heddle_status heddle__after(heddle__call *c) {
  for (unsigned i = c->layers != NULL ? c->layers->n : 0; i-- > 0;)
    if (c->layers->layer[i]->after != NULL) c->layers->layer[i]->after(c->layers->state[i], c);
  return c->status;
}

/* ---- making and ending */

static void end(struct heddle__layers *layers) {
  if (layers->instance != NULL) atomic_store(&layers->instance->children, 0);
  heddle__drop(layers->instance);
  for (heddle__wrap *w; (w = first(layers, NULL)) != NULL;) {
    heddle__broken_logged(layers, "a %s was never freed", kind_words[w->kind]);
    w->device = w->parent = NULL; /* the order in which they go means nothing now */
    atomic_store(&w->children, 0);
    heddle__drop(w);
  }
  bury(layers);
  for (unsigned i = 0; i < layers->n; i++)
    if (layers->layer[i]->release != NULL) layers->layer[i]->release(layers->state[i]);
  heddle__free(layers);
}

heddle_status heddle__layers_wrap(heddle__plugin *plugin, const char *list, const char *origin, heddle_error *err) {
  static const heddle__layer *const all[] = {&heddle__layer_check, &heddle__layer_fault, &heddle__layer_log};
  struct heddle__layers *layers = heddle__alloc(1, sizeof *layers);
  if (layers == NULL) return heddle__no_memory(err, "the layers");
  plugin->layers = layers;
  layers->head.release = end;
  layers->plugin = plugin;
  layers->next = &plugin->tables;
  for (const char *p = list; *p != '\0'; p += *p == ',') {
    size_t n = strcspn(p, ","), k = 0;
    while (k < 3 && (strlen(all[k]->name) != n || memcmp(all[k]->name, p, n) != 0)) k++;
    if (k == 3 || layers->n == HEDDLE__MAX_LAYERS)
      return heddle__fail(err, HEDDLE_EINVAL, "setting 'layers' is '%.100s' (%s); it lists check, fault, log", list,
                          origin);
    heddle_status s = all[k]->create != NULL ? all[k]->create(layers, &layers->state[layers->n], err) : HEDDLE_OK;
    if (s != HEDDLE_OK) return s;
    layers->checks |= k == 0;
    layers->layer[layers->n++] = all[k];
    p += n;
  }
  const heddle__wrap w = {.layers = layers, .kind = HEDDLE__INSTANCE, .real = plugin->instance};
  layers->instance = put(&w);
  if (layers->instance == NULL) return heddle__no_memory(err, "the layers");
  layers->head.instance = (heddle_pinstance *)(void *)layers->instance;
  layers->tables = plugin->tables;
  heddle__wrap_core_tables(layers);
  heddle__wrap_op_tables(layers);
  plugin->use = &layers->tables;
  return HEDDLE_OK;
}
