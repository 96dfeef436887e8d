/* executor/ranks/said.c: what each rank says of its devices, its model and its options, and what differs between ranks. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/device.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/registry.h"
#include "executor/ranks/own.h"
#include "plugins/common/fnv.h"

/* ---- what this rank has */

typedef struct lister {
  heddle__spread *s;
  heddle_context *ctx;
  json_t *items; /* an array of names for each item */
} lister;

static heddle_status list_item(void *user, const char *item, size_t n, heddle_error *err) {
  lister *l = user;
  const char *rest = NULL;
  json_t *names = json_array();
  if (names == NULL || json_array_append_new(l->items, names) != 0) return heddle__no_memory(err, "a list of devices");
  if (!heddle__spread_is_for(item, n, l->s->ranks->comm.rank, &rest)) return HEDDLE_OK;
  char *text = heddle__strndup(rest, n - (size_t)(rest - item));
  size_t count = 0;
  if (text == NULL) return heddle__no_memory(err, "a list of devices");
  const char *list = strcmp(text, "default") == 0 ? NULL : text;
  heddle_status s = heddle_context_select(l->ctx, list, NULL, 0, &count, NULL, err);
  if (s == HEDDLE_ENODEV && item[n - 1] == '?') { /* preferred, and not there */
    heddle__free(text);
    return HEDDLE_OK;
  }
  heddle_device **devices = s == HEDDLE_OK ? heddle__alloc(count, sizeof *devices) : NULL;
  if (s == HEDDLE_OK && devices == NULL) s = heddle__no_memory(err, "a list of devices");
  if (s == HEDDLE_OK) s = heddle_context_select(l->ctx, list, devices, count, &count, NULL, err);
  for (size_t i = 0; i < count && s == HEDDLE_OK; i++)
    if (json_array_append_new(names, json_string(devices[i]->name)) != 0)
      s = heddle__no_memory(err, "a list of devices");
  heddle__free(devices);
  heddle__free(text);
  return s;
}

static heddle_status add_plugin(heddle_context *ctx, json_t *plugins, heddle_error *err) {
  for (size_t i = 0; i < ctx->plugins.count; i++) {
    const heddle__plugin *p = ctx->plugins.data[i];
    if (!atomic_load(&p->seen) || p->reason != NULL || p->n_devices == 0) continue;
    const char *build = p->root.build != NULL ? p->root.build : "";
    if (json_object_set_new(plugins, p->name, json_string(build)) != 0)
      return heddle__no_memory(err, "a list of plugins");
  }
  return HEDDLE_OK;
}

/* ---- what the ranks compare */

static char *hash_of_graph(const heddle_graph *g, heddle_error *err) {
  char *text = NULL;
  size_t bytes = 0;
  if (heddle_graph_text(g, &text, &bytes, err) != HEDDLE_OK) return NULL;
  char *out = heddle__format("%016llx", (unsigned long long)fnv1a(FNV1A_START, text, bytes));
  heddle_free(text);
  return out;
}

/* Names, types and shapes, and the bytes at the begin, in the middle and at the end: no rank reads all of what it does not need. */
static char *hash_of_params(const heddle_params *p) {
  enum { SAMPLE = 4096 };
  uint64_t hash = FNV1A_START;
  for (uint32_t i = 0; p != NULL && i < p->count; i++) {
    const heddle__constant *c = &p->items[i].value;
    hash = fnv1a(hash, p->items[i].name, strlen(p->items[i].name) + 1);
    hash = fnv1a(hash, &c->dtype, sizeof c->dtype);
    hash = fnv1a(hash, c->shape, c->ndim * sizeof *c->shape);
    const char *data = c->data;
    if (c->bytes <= 3 * SAMPLE) {
      hash = fnv1a(hash, data, (size_t)c->bytes);
      continue;
    }
    hash = fnv1a(hash, data, SAMPLE);
    hash = fnv1a(hash, data + c->bytes / 2, SAMPLE);
    hash = fnv1a(hash, data + c->bytes - SAMPLE, SAMPLE);
  }
  return heddle__format("%016llx", (unsigned long long)hash);
}

static char *text_of_rules(const heddle_model_options *o, heddle_context *ctx) {
  const char *setting = NULL;
  (void)heddle_context_setting(ctx, "place", &setting, NULL, NULL);
  char *text = heddle__format("%s", setting != NULL ? setting : "");
  for (size_t i = 0; i < o->n_place && text != NULL; i++) {
    char *more = heddle__format("%s;%s", text, o->place[i] != NULL ? o->place[i] : "");
    heddle__free(text);
    text = more;
  }
  return text;
}

static bool put(json_t *to, const char *key, const char *text) {
  return json_object_set_new(to, key, json_string(text != NULL ? text : "")) == 0;
}

/* Words that are compared, in the order in which a difference is reported, and what they are called then. */
static const char *const compared[][2] = {
    {"graph", "its model's graph"},
    {"params", "its model's parameters"},
    {"list", "its list of devices"},
    {"rules", "its placement rules"},
    {"memory", "its limits on memory"},
    {"options", "its options (flags, runs in flight, kept nodes, whether links are measured)"}};

static heddle_status compare(const heddle__spread *s, json_t *const *said, heddle_error *err) {
  for (uint32_t i = 0; i < s->ranks->comm.size; i++) {
    const char *why = json_string_value(json_object_get(said[i], "error"));
    if (why == NULL || json_object_get(said[i], "items") == NULL)
      return heddle__at_rank(
          heddle__fail(err, HEDDLE_EFORMAT, "rank %u sent something else than a list of its devices", (unsigned)i), err,
          i);
    if (why[0] != '\0')
      return heddle__at_rank(heddle__fail(err, HEDDLE_ENODEV, "rank %u: %s", (unsigned)i, why), err, i);
  }
  for (uint32_t i = 1; i < s->ranks->comm.size; i++) {
    for (size_t k = 0; k < sizeof compared / sizeof compared[0]; k++) {
      const char *a = json_string_value(json_object_get(said[0], compared[k][0]));
      const char *b = json_string_value(json_object_get(said[i], compared[k][0]));
      if (a == NULL || b == NULL || strcmp(a, b) != 0)
        return heddle__at_rank(heddle__fail(err, HEDDLE_EINVAL,
                                            "rank %u differs from rank 0 in %s: '%.150s' is not '%.150s'", (unsigned)i,
                                            compared[k][1], b != NULL ? b : "", a != NULL ? a : ""),
                               err, i);
    }
    const char *name;
    json_t *build;
    json_object_foreach(json_object_get(said[i], "plugins"), name, build) {
      const char *a = json_string_value(json_object_get(json_object_get(said[0], "plugins"), name));
      const char *b = json_string_value(build);
      if (a != NULL && b != NULL && strcmp(a, b) != 0)
        return heddle__at_rank(heddle__fail(err, HEDDLE_EINVAL,
                                            "rank %u differs from rank 0 in its plugin %s: '%.150s' is not '%.150s'",
                                            (unsigned)i, name, b, a),
                               err, i);
    }
  }
  return HEDDLE_OK;
}

/* What this rank tells the others; and, in err, a failure that it tells them too. */
static heddle_status say(heddle__spread *s, heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                         const heddle_model_options *o, const char *list, json_t **out, heddle_error *err) {
  json_t *all = *out = json_object(), *items = json_array(), *plugins = json_object();
  lister l = {s, ctx, items};
  char options[128];
  uint64_t kept = FNV1A_START;
  for (size_t i = 0; i < o->n_keep; i++)
    if (o->keep != NULL && o->keep[i] != NULL) kept = fnv1a(kept, o->keep[i], strlen(o->keep[i]) + 1);
  snprintf(options, sizeof options, "flags %x, in flight %u, kept %016llx%s", (unsigned)o->flags,
           (unsigned)o->in_flight, (unsigned long long)kept, s->measures ? "" : ", links not measured");
  char *graph_hash = hash_of_graph(graph, err), *params_hash = hash_of_params(params), *rules = text_of_rules(o, ctx);
  heddle_status status = HEDDLE_OK;
  if (all == NULL || items == NULL || plugins == NULL || graph_hash == NULL || params_hash == NULL || rules == NULL)
    status = heddle__no_memory(err, "what a rank says of itself");
  if (status == HEDDLE_OK) status = heddle__spread_each(list, list_item, &l, err);
  const char *why = status == HEDDLE_OK ? "" : err->text;
  bool done = all != NULL && put(all, "error", why) && put(all, "graph", graph_hash) &&
              put(all, "params", params_hash) && put(all, "list", list) && put(all, "rules", rules) &&
              put(all, "memory", o->memory) && put(all, "options", options);
  if (done && status == HEDDLE_OK) done = add_plugin(ctx, plugins, err) == HEDDLE_OK;
  if (all != NULL)
    done = json_object_set_new(all, "items", items) == 0 && json_object_set_new(all, "plugins", plugins) == 0 && done;
  heddle__free(graph_hash);
  heddle__free(params_hash);
  heddle__free(rules);
  if (all == NULL) json_decref(items), json_decref(plugins);
  return done ? HEDDLE_OK : heddle__no_memory(err, "what a rank says of itself"); /* a failure is among what was said */
}

/* Puts what the ranks have into said, by rank. */
static heddle_status exchange(heddle__spread *s, const json_t *own, json_t **said, heddle_error *err) {
  char *text = json_dumps(own, JSON_COMPACT), **texts = NULL;
  if (text == NULL) return heddle__no_memory(err, "what a rank says of itself");
  heddle_status status = heddle__ranks_agree(s->ranks, "the devices of a model", text, &texts, err);
  free(text);
  for (uint32_t i = 0; i < s->ranks->comm.size && status == HEDDLE_OK; i++) {
    said[i] = json_loads(texts[i], 0, NULL);
    if (said[i] == NULL) status = heddle__no_memory(err, "what ranks say");
  }
  heddle__free(texts);
  return status;
}

static heddle_status add_devices(heddle__spread *s, json_t *const *said, heddle_error *err) {
  const size_t n = json_array_size(json_object_get(said[0], "items"));
  heddle_status status = HEDDLE_OK;
  for (size_t k = 0; k < n; k++)
    for (uint32_t i = 0; i < s->ranks->comm.size; i++) {
      const json_t *names = json_array_get(json_object_get(said[i], "items"), k);
      for (size_t d = 0; d < json_array_size(names) && status == HEDDLE_OK; d++) {
        const char *name = json_string_value(json_array_get(names, d));
        if (name != NULL) status = heddle__spread_add(s, i, name, err);
      }
    }
  if (status == HEDDLE_OK && s->n_devices == 0)
    status = heddle__fail(err, HEDDLE_ENODEV, "no rank has a device to run on");
  return status;
}

heddle_status heddle__spread_exchange(heddle__spread *s, heddle_context *ctx, const heddle_graph *graph,
                                      const heddle_params *params, const heddle_model_options *o, const char *list,
                                      heddle_error *err) {
  const uint32_t size = s->ranks->comm.size;
  json_t *own = NULL, **said = heddle__alloc(size, sizeof(json_t *));
  heddle_status status = said != NULL ? HEDDLE_OK : heddle__no_memory(err, "a model over ranks");
  if (status == HEDDLE_OK) status = say(s, ctx, graph, params, o, list, &own, err);
  if (status == HEDDLE_OK) status = exchange(s, own, said, err);
  if (status == HEDDLE_OK) status = compare(s, said, err);
  if (status == HEDDLE_OK) status = add_devices(s, said, err);
  for (uint32_t i = 0; said != NULL && i < size; i++) json_decref(said[i]);
  heddle__free(said);
  json_decref(own);
  return status;
}
