/* executor/model.c: models: made of a graph, its constants and a wish where to run; the cache of their programs.
 * What a request looks like is request.c's business, what a program is program.c's. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "core/watch.h"
#include "executor/most.h"
#include "executor/bind.h"
#include "executor/budget.h"
#include "executor/explain.h"
#include "executor/foreign.h"
#include "executor/optimize.h"
#include "executor/place/placer.h"
#include "executor/precedent.h"
#include "executor/range.h"
#include "executor/prepared.h"
#include "executor/program.h"
#include "executor/ranks.h"
#include "executor/ranks/spread.h"
#include "executor/rules.h"
#include "executor/stages.h"
#include "executor/survive.h"
#include "executor/ties.h"
#include "heddle/strings.h"
#include "modules/module.h"

enum {
  DEFAULT_PROGRAMS = 8,
  MOST_PROGRAMS = 1000000,
  MAX_STREAMS = 64,
  MAX_IN_FLIGHT = 64,
  DEFAULT_UPLOAD_SECONDS = 60,
  MOST_UPLOAD_SECONDS = 1000000
};
#define ORPHAN_WAIT_NS UINT64_C(2000000000)

/* ---- finding values */

static bool read_number(const char *text, uint32_t *out) {
  uint64_t n = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return false;
    n = n * 10 + (uint64_t)(*text - '0');
    if (n >= UINT32_MAX) return false;
  }
  *out = (uint32_t)n;
  return true;
}

static heddle_status find_node(const heddle_graph *g, const char *name, uint32_t *out, heddle_error *err) {
  if (name[0] != '#' || !read_number(name + 1, out)) return heddle__graph_find(g, name, out, err);
  if (*out < g->n_nodes) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_ENOTFOUND, "%s: there is no node %s; there are %u nodes", g->source, name,
                      (unsigned)g->n_nodes);
}

heddle_status heddle__model_find(const heddle_graph *g, const char *text, heddle__keep *out, heddle_error *err) {
  *out = (heddle__keep){0, 0};
  heddle_status s = find_node(g, text, &out->node, err);
  const char *colon = strrchr(text, ':');
  if (s == HEDDLE_ENOTFOUND && colon != NULL && read_number(colon + 1, &out->index)) {
    char *name = heddle__strndup(text, (size_t)(colon - text));
    if (name == NULL) return heddle__no_memory(err, "a node's name");
    s = find_node(g, name, &out->node, err);
    heddle__free(name);
  }
  if (s == HEDDLE_OK && out->index >= g->nodes[out->node].n_outputs)
    s = heddle__at_node(heddle__fail(err, HEDDLE_ENOTFOUND, "%s: node '%s' has %u outputs; there is no output %u",
                                     g->source, g->nodes[out->node].name, (unsigned)g->nodes[out->node].n_outputs,
                                     (unsigned)out->index),
                        err, out->node, g->nodes[out->node].name);
  return s;
}

/* ---- creation */

static heddle_status take_devices(heddle_model *m, const char *list, heddle_error *err) {
  size_t n = 0, cap = 0;
  if (heddle__spread_idle(m->spread)) return HEDDLE_OK;
  heddle_status s = heddle_context_select(m->ctx, list, NULL, 0, &cap, &m->devices_from, err);
  if (s != HEDDLE_OK) return s;
  m->devices = heddle__alloc(cap, sizeof *m->devices);
  m->opened = heddle__alloc(cap, sizeof *m->opened);
  if (m->devices == NULL || m->opened == NULL) return heddle__no_memory(err, "a model's devices");
  s = heddle_context_select(m->ctx, list, m->devices, cap, &n, NULL, err);
  if (HEDDLE_HAS_EXPLAIN && s == HEDDLE_OK) s = heddle_context_left_out(m->ctx, list, &m->left_out, err);
  if (s != HEDDLE_OK) return s;
  if (n == 0) return heddle__fail(err, HEDDLE_ENODEV, "%s: there is no device to run on", m->graph->source);
  m->n_devices = (uint32_t)(n < cap ? n : cap);
  return HEDDLE_OK;
}

static heddle_status take_param(heddle_model *m, uint32_t arg, const struct heddle__param *param, heddle_error *err) {
  const heddle__constant *c = &param->value;
  heddle_status s = heddle__model_fits(m, arg, c->dtype, c->ndim, c->shape, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "%s: a parameter of ", m->params->source);
  m->constants[arg] = c;
  return HEDDLE_OK;
}

/* What was found wrong with the graph's file, and read nevertheless. */
static void tell_warnings(const heddle_model *m) {
  for (size_t i = 0; i < json_array_size(m->graph->warnings); i++)
    heddle__log_line(heddle__context_log(m->ctx), HEDDLE_LOG_WARN, "model",
                     json_string_value(json_array_get(m->graph->warnings, i)));
}

static heddle_status take_params(heddle_model *m, heddle_error *err) {
  m->constants = heddle__alloc(m->graph->n_args, sizeof *m->constants);
  if (m->constants == NULL) return heddle__no_memory(err, "a model's constants");
  uint32_t n = m->params != NULL ? m->params->count : 0, used = 0;
  char names[400] = "";
  size_t at = 0;
  for (uint32_t i = 0; i < n; i++) {
    int32_t arg = heddle__graph_arg(m->graph, m->params->items[i].name);
    heddle_status s = HEDDLE_OK;
    if (arg >= 0) s = take_param(m, (uint32_t)arg, &m->params->items[i], err);
    if (s != HEDDLE_OK) return s;
    if (arg >= 0) {
      used++;
    } else {
      int k = snprintf(names + at, sizeof names - at, "%s'%.60s'", at == 0 ? "" : ", ", m->params->items[i].name);
      if (k > 0 && (size_t)k < sizeof names - at) at += (size_t)k;
      else names[at] = '\0';
    }
  }
  if (used < n)
    heddle__logf(heddle__context_log(m->ctx), used > 0 ? HEDDLE_LOG_INFO : HEDDLE_LOG_WARN, "model",
                 "%s: %u of its %u tensors are no inputs of %s: %s", m->params->source, (unsigned)(n - used),
                 (unsigned)n, m->graph->source, names);
  return HEDDLE_OK;
}

/* What the options say, else the setting. */
static heddle_status take_timeout(heddle_model *m, const heddle_model_options *o, heddle_error *err) {
  int64_t seconds = 0;
  heddle_status s = heddle__context_number(m->ctx, "limit.upload_seconds", DEFAULT_UPLOAD_SECONDS, 1,
                                           MOST_UPLOAD_SECONDS, &seconds, err);
  m->upload_timeout_ns = o->upload_timeout_ns != 0 ? o->upload_timeout_ns : (uint64_t)seconds * UINT64_C(1000000000);
  if (s == HEDDLE_OK)
    s = heddle__context_number(m->ctx, "limit.plan_seconds", 0, 0, MOST_UPLOAD_SECONDS, &seconds, err);
  m->plan_timeout_ns = o->plan_timeout_ns != 0 ? o->plan_timeout_ns
                       : seconds != 0          ? (uint64_t)seconds * UINT64_C(1000000000)
                                               : HEDDLE_FOREVER;
  return s;
}

/* Leaves the flag FAST where reduced precision is allowed: by the options, else by the setting. */
static heddle_status take_precision(heddle_model *m, heddle_error *err) {
  const char *word = NULL, *origin = NULL;
  if ((m->flags & HEDDLE_MODEL_FAST) != 0 && (m->flags & HEDDLE_MODEL_STRICT) != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "the model's options ask for HEDDLE_MODEL_FAST and HEDDLE_MODEL_STRICT");
  if ((m->flags & (HEDDLE_MODEL_FAST | HEDDLE_MODEL_STRICT)) != 0) return HEDDLE_OK;
  (void)heddle_context_setting(m->ctx, "precision", &word, &origin, NULL);
  if (word == NULL || strcmp(word, "strict") == 0) return HEDDLE_OK;
  if (strcmp(word, "fast") != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "the setting precision is strict or fast, not '%s' (from %s)", word,
                        origin);
  m->flags |= HEDDLE_MODEL_FAST;
  return HEDDLE_OK;
}

/* After the rules, which may wish for it: opens what places automatically. */
static heddle_status take_placer(heddle_model *m, heddle_error *err) {
  return (m->flags & HEDDLE_MODEL_PLACE_AUTO) != 0 ? heddle__placer_open(m->ctx, &m->placer, err) : HEDDLE_OK;
}

static heddle_status take_options(heddle_model *m, const heddle_model_options *o, heddle_error *err) {
  if ((o->n_place > 0 && o->place == NULL) || (o->n_keep > 0 && o->keep == NULL))
    return heddle__fail(err, HEDDLE_EINVAL, "the model's options count rules or kept nodes and give none");
  if (o->max_streams > MAX_STREAMS)
    return heddle__fail(err, HEDDLE_EINVAL, "the model's options ask for %u streams a device; there can be %u",
                        (unsigned)o->max_streams, (unsigned)MAX_STREAMS);
  if (o->in_flight > MAX_IN_FLIGHT)
    return heddle__fail(err, HEDDLE_EINVAL, "the model's options ask for %u runs in flight; there can be %u",
                        (unsigned)o->in_flight, (unsigned)MAX_IN_FLIGHT);
  const uint32_t known = HEDDLE_MODEL_NO_CAPTURE | HEDDLE_MODEL_IGNORE_ANNOTATIONS | HEDDLE_MODEL_NO_REUSE |
                         HEDDLE_MODEL_SLOTS | HEDDLE_MODEL_FAST | HEDDLE_MODEL_STRICT | HEDDLE_MODEL_PLACE_AUTO;
  if ((o->flags & ~known) != 0)
    return heddle__fail(err, HEDDLE_EINVAL, "the model's options have flags 0x%x, which this library does not know",
                        (unsigned)(o->flags & ~known));
  m->flags = o->flags;
  m->max_streams = o->max_streams;
  m->in_flight = o->in_flight != 0 ? o->in_flight : 1;
  int64_t programs = DEFAULT_PROGRAMS;
  m->keep = heddle__alloc(o->n_keep, sizeof *m->keep);
  if (m->keep == NULL) return heddle__no_memory(err, "a model's options");
  heddle_status s =
      heddle__context_number(m->ctx, "limit.programs", DEFAULT_PROGRAMS, 1, MOST_PROGRAMS, &programs, err);
  m->max_programs = o->max_programs != 0 ? o->max_programs : (uint32_t)programs;
  const char *ranges = NULL;
  (void)heddle_context_setting(m->ctx, "ranges", &ranges, NULL, NULL);
  m->ranges = ranges == NULL || !heddle__config_is_off(ranges);
  if (s == HEDDLE_OK) s = take_precision(m, err);
  if (s == HEDDLE_OK) s = take_timeout(m, o, err);
  if (s == HEDDLE_OK) s = take_devices(m, o->devices, err);
  if (s == HEDDLE_OK) s = heddle__budget_read(m, o->memory, err);
  if (s == HEDDLE_OK) s = heddle__survive_read(m, o->on_failure, err);
  if (m->on_failure != NULL && o->optimize != NULL && (m->wish = heddle__strdup(o->optimize)) == NULL)
    s = heddle__no_memory(err, "a model's options");
  if (s == HEDDLE_OK) s = heddle__rules_take(m, o->place, o->n_place, err);
  if (s == HEDDLE_OK) s = take_placer(m, err);
  for (size_t i = 0; i < o->n_keep && s == HEDDLE_OK; i++) {
    s = o->keep[i] != NULL ? heddle__model_find(m->graph, o->keep[i], &m->keep[i], err)
                           : heddle__fail(err, HEDDLE_EINVAL, "a kept node has no name");
    if (s == HEDDLE_OK) m->n_keep++;
  }
  return s;
}

/* The graph with the numbers of its dimensions; maxima are read later. */
static heddle_status take_dims(heddle_model *m, const heddle_graph *graph, const heddle_model_options *o,
                               heddle_error *err) {
  size_t n = 0;
  if (!HEDDLE_HAS_DIMENSIONS && o->n_dims > 0)
    return heddle__left_out(err, "numbers for dimensions of graphs", "HEDDLE_DIMENSIONS");
  if (o->n_dims > 0 && o->dims == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "the model's options count dimensions and give none");
  const char **numbers = heddle__alloc(o->n_dims, sizeof *numbers);
  if (numbers == NULL) return heddle__no_memory(err, "a model's options");
  for (size_t i = 0; i < o->n_dims; i++)
    if (!heddle__most_is(o->dims[i])) numbers[n++] = o->dims[i];
  heddle_status s = HEDDLE_OK;
  if (n > 0) s = heddle_graph_bind(graph, numbers, n, &m->graph, err);
  else m->graph = heddle_graph_retain((heddle_graph *)(uintptr_t)graph);
  heddle__free((void *)(uintptr_t)numbers);
  return s;
}

uint64_t heddle__model_plan_deadline(const heddle_model *m) {
  const uint64_t now = heddle__now_ns(), limit = m->plan_timeout_ns;
  return limit == 0 || limit >= HEDDLE_FOREVER - now ? HEDDLE_FOREVER : now + limit;
}

heddle_status heddle_model_create(heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                                  const heddle_model_options *options, heddle_model **out, heddle_error *err) {
  return heddle__model_make(ctx, graph, params, options, false, out, err);
}

/* Over ranks: what the options have of devices becomes what this rank has; others are refused what they cannot have. */
static heddle_status take_ranks(heddle_model *m, heddle_model_options *o, bool in_stages, heddle_error *err) {
#if HEDDLE_HAS_RANKS
  heddle_status s = heddle__spread_open(m->ctx, m->graph, m->params, o, &m->spread, err);
  if (s != HEDDLE_OK || !heddle__spread_cuts(m->spread)) return s;
  const char *what = in_stages          ? "If, Loop, Scan, or shapes that only a run gives"
                     : o->state != NULL ? "state values"
                                        : NULL;
  if (what == NULL) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EUNSUPPORTED, "%s: a model with %s runs on one rank", m->graph->source, what);
#else
  (void)m, (void)o, (void)in_stages, (void)err;
  return HEDDLE_OK;
#endif
}

heddle_status heddle__model_make(heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                                 const heddle_model_options *options, bool is_part, heddle_model **out,
                                 heddle_error *err) {
  if (out == NULL) return heddle__fail(err, HEDDLE_EINVAL, "there is no place for the model: out is NULL");
  *out = NULL;
  if (ctx == NULL || graph == NULL) return heddle__fail(err, HEDDLE_EINVAL, "a model needs a context and a graph");
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  heddle_model_options o = {0};
  if (options != NULL) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  if (o.trust != NULL || o.key != NULL)
    return heddle__fail(err, HEDDLE_EINVAL,
                        "the model's options trust and key are those of heddle_model_load: here the "
                        "files were read already; heddle_read_limits has them");
  if (o.library != NULL) s = heddle__module_trusted(o.library, heddle__access_of(ctx, NULL, NULL).trust, err);
  if (s != HEDDLE_OK) return s;
  heddle_model *m = heddle__alloc(1, sizeof *m);
  if (m == NULL) return heddle__no_memory(err, "a model");
  atomic_init(&m->references, 1);
  m->ctx = heddle_context_retain(ctx);
  s = take_dims(m, graph, &o, err);
  if (s == HEDDLE_OK && o.seed != 0 && !HEDDLE_HAS_RARE_OPERATORS)
    s = heddle__left_out(err, "random operators, which the option seed is for", "HEDDLE_RARE_OPERATORS");
  if (HEDDLE_HAS_RARE_OPERATORS && s == HEDDLE_OK && o.seed != 0) {
    heddle_graph *plain = m->graph;
    s = heddle__graph_seed(plain, o.seed, &m->graph, err);
    heddle_graph_release(plain);
  }
  if (params != NULL) m->params = heddle_params_retain((heddle_params *)params);
  m->has_lock = pthread_mutex_init(&m->lock, NULL) == 0;
  m->feeds = heddle__alloc(graph->n_args, sizeof *m->feeds);
  if (!m->has_lock || m->feeds == NULL) s = heddle__no_memory(err, "a model");
  if (s == HEDDLE_OK) s = heddle__shape_feeds(m->graph, m->feeds, err);
  if (s == HEDDLE_OK) s = take_params(m, err);
  if (s == HEDDLE_OK) tell_warnings(m);
  bool in_stages = heddle__graph_has_inner(graph) || heddle_graph_has_objects(graph) != 0;
  if (s == HEDDLE_OK && !in_stages && graph->is_heddle)
    s = heddle__graph_cuts(graph, m->constants, NULL, &in_stages, err);
  const bool in_ranks = HEDDLE_HAS_RANKS && !is_part && heddle__context_is_ranked(ctx);
  m->is_part = is_part;
  if (s == HEDDLE_OK && in_ranks) s = take_ranks(m, &o, in_stages, err);
  if (s == HEDDLE_OK) s = take_options(m, &o, err);
  if (s == HEDDLE_OK) s = heddle__ties_read(m, o.state, err);
  if (s == HEDDLE_OK) s = heddle__most_read(m, o.dims, o.n_dims, err);
  if (s == HEDDLE_OK) s = heddle__prepared_open(m, err);
  if (s == HEDDLE_OK && o.library != NULL) s = heddle__foreign_init(m, o.library, err);
  heddle__watch watch = {.deadline_ns = heddle__model_plan_deadline(m)};
  heddle__watch_enter(&watch);
  if (s == HEDDLE_OK && (in_stages || heddle__spread_cuts(m->spread))) s = heddle__stages_make(m, o.optimize, err);
  else if (s == HEDDLE_OK) s = heddle__optimize(m, o.optimize, err);
  heddle__watch_leave(&watch);
  if (s != HEDDLE_OK) {
    if (in_ranks) (void)heddle__spread_fail(m->spread, s, err); /* other ranks may wait for this one */
    heddle_model_release(m);
    return s;
  }
  *out = m;
  return HEDDLE_OK;
}

heddle_model *heddle_model_retain(heddle_model *m) {
  atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
  return m;
}

void heddle_model_release(heddle_model *m) {
  if (m == NULL || atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) != 1) return;
  if (heddle__check_fork(NULL) != HEDDLE_OK) return; /* its devices are the parent's */
  while (m->orphans != NULL) {
    struct heddle__bound *next = heddle__bound_next_orphan(m->orphans);
    bool quiet = heddle__bound_quiet(m->orphans, ORPHAN_WAIT_NS);
    heddle__bound_free(m->orphans, quiet);
    m->orphans = next;
  }
  while (m->spares != NULL) {
    heddle_model *next = m->spares->next_spare;
    heddle_model_release(m->spares);
    m->spares = next;
  }
  while (m->programs != NULL) {
    heddle__program *next = m->programs->next;
    heddle__program_release(m->programs);
    m->programs = next;
  }
  if (m->has_lock) heddle__constants_forget(m);
  while (m->precedents != NULL) {
    heddle__precedent *next = m->precedents->next;
    heddle__precedent_release(m->precedents);
    m->precedents = next;
  }
  heddle__stages_free(m);
  heddle__spread_close(m->spread);
  heddle__prepared_close(m);
  heddle__foreign_finish(m);
  heddle__optimize_finish(m);
  heddle__placer_close(m->placer);
  for (uint32_t i = 0; i < m->n_opened; i++) heddle__device_close(m->opened[i]);
  heddle__rules_forget(m);
  heddle__free(m->keep);
  heddle__free(m->limits);
  heddle__free(m->limits_text);
  heddle__free(m->most);
  heddle__free(m->on_failure);
  heddle__free(m->state);
  heddle__free(m->ties);
  heddle__free(m->wish);
  heddle__free(m->devices);
  heddle__free(m->left_out);
  heddle__free(m->opened);
  heddle__free(m->constants);
  heddle__free(m->feeds);
  if (m->has_lock) pthread_mutex_destroy(&m->lock);
  heddle_module_release(m->library);
  heddle_params_release(m->params);
  heddle_graph_release(m->graph);
  heddle_context *ctx = m->ctx;
  heddle__free(m);
  heddle_context_release(ctx);
}

const heddle_graph *heddle_model_graph(const heddle_model *m) {
  return m->graph;
}

heddle_module *heddle_model_library(const heddle_model *m) {
  return m->library;
}

size_t heddle_model_device_count(const heddle_model *m) {
  return m->n_devices;
}

heddle_device *heddle_model_device(const heddle_model *m, size_t i) {
  return i < m->n_devices ? m->devices[i] : NULL;
}

/* ---- devices and programs */

static bool is_open(const heddle_model *m, const heddle_device *dev) {
  for (uint32_t i = 0; i < m->n_opened; i++)
    if (m->opened[i] == dev) return true;
  return false;
}

heddle_status heddle__model_open(heddle_model *m, heddle_device *dev, heddle_error *err) {
  heddle_status s =
      heddle__device_check(dev, err); /* first: one that was lost may be closed and opened anew meanwhile */
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&m->lock);
  bool open = is_open(m, dev);
  pthread_mutex_unlock(&m->lock);
  if (open) return HEDDLE_OK;
  s = heddle__device_open(dev, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&m->lock);
  open = is_open(m, dev);
  if (!open) m->opened[m->n_opened++] = dev;
  pthread_mutex_unlock(&m->lock);
  if (open) heddle__device_close(dev); /* another thread was faster */
  return HEDDLE_OK;
}

/* Finds the cached program of a key, moves it to the front and adds a reference. With exact, programs that are sizes of a
 * root do not count. The lock is held. */
static heddle__program *find_program(heddle_model *m, const heddle__order *o, bool exact) {
  for (heddle__program **link = &m->programs; *link != NULL; link = &(*link)->next) {
    heddle__program *p = *link;
    if (p->order_of->key_bytes != o->key_bytes || memcmp(p->order_of->key, o->key, o->key_bytes) != 0) continue;
    if (exact && p->root != NULL) continue;
    *link = p->next;
    p->next = m->programs;
    m->programs = p;
    return heddle__program_retain(p);
  }
  return NULL;
}

/* Takes the program over into the cache; gives what fell out of it. The lock is held. */
static heddle__program *add_program(heddle_model *m, heddle__program *p) {
  p->next = m->programs;
  m->programs = p;
  uint32_t count = 0;
  for (heddle__program **link = &m->programs; *link != NULL; link = &(*link)->next)
    if (++count > m->max_programs) {
      heddle__program *last = *link;
      *link = last->next;
      return last;
    }
  return NULL;
}

heddle__program *heddle__model_keep(heddle_model *m, heddle__program *take, bool exact) {
  pthread_mutex_lock(&m->lock);
  heddle__program *dropped = take; /* where another thread was faster, ours */
  heddle__program *p = find_program(m, take->order_of, exact);
  if (p == NULL) {
    p = heddle__program_retain(take);
    dropped = add_program(m, take);
  }
  pthread_mutex_unlock(&m->lock);
  heddle__program_release(dropped);
  return p;
}

heddle_status heddle__model_program(heddle_model *m, const heddle__wish *wish, heddle__program **out,
                                    heddle_error *err) {
  *out = NULL;
  heddle__order *order = NULL;
  heddle_status s = heddle__order_make(m, wish, &order, err);
  if (s != HEDDLE_OK) return s;
  pthread_mutex_lock(&m->lock);
  heddle__program *p = find_program(m, order, wish->exact);
  pthread_mutex_unlock(&m->lock);
  if (p != NULL) {
    heddle__order_free(order);
    *out = p;
    return HEDDLE_OK;
  }
  heddle__program *made = NULL;
  s = heddle__range_program(m, wish, order, &made, err);
  if (s == HEDDLE_OK && made == NULL) s = heddle__program_make(m, order, &made, err);
  if (s == HEDDLE_OK) *out = heddle__model_keep(m, made, wish->exact);
  else heddle__order_free(order);
  return s;
}

/* ---- names */

heddle_status heddle__model_no_input(const heddle_model *m, const char *name, heddle_error *err) {
  char list[600] = "";
  size_t used = 0;
  uint32_t unsaid = 0;
  for (uint32_t i = 0; i < m->graph->n_args; i++) {
    if (m->constants[i] != NULL) {
      unsaid++;
      continue;
    }
    int n =
        snprintf(list + used, sizeof list - used, "%s'%.60s'", used == 0 ? "" : ", ", heddle__model_arg(m, i)->name);
    if (n > 0 && (size_t)n < sizeof list - used) {
      used += (size_t)n;
    } else {
      list[used] = '\0';
      unsaid++;
    }
  }
  char more[64] = "";
  if (unsaid > 0) snprintf(more, sizeof more, ", and %u more, parameters among them", (unsigned)unsaid);
  return heddle__fail(err, HEDDLE_ENOTFOUND, "%s has no input '%s'; its inputs are %s%s", m->graph->source, name,
                      used > 0 ? list : "none", more);
}

/* ---- explain */

static heddle_status take_values(heddle_model *m, const char *const *names, heddle_tensor *const *tensors, size_t n,
                                 const heddle_tensor **values, bool *late, heddle_error *err) {
  for (size_t i = 0; i < n; i++) {
    int32_t arg = names[i] != NULL ? heddle__graph_arg(m->graph, names[i]) : -1;
    if (arg < 0) return heddle__model_no_input(m, names[i] != NULL ? names[i] : "(null)", err);
    if (tensors[i] == NULL) return heddle__fail(err, HEDDLE_EINVAL, "input '%s': its tensor is NULL", names[i]);
    values[arg] = tensors[i];
    late[arg] = true;
  }
  return HEDDLE_OK;
}

heddle_status heddle_model_explain(heddle_model *m, heddle_explain_format format, const char *const *names,
                                   heddle_tensor *const *tensors, size_t n, char **out, heddle_error *err) {
  if (m == NULL || out == NULL || (n > 0 && (names == NULL || tensors == NULL)))
    return heddle__fail(err, HEDDLE_EINVAL, "a plan needs a model, a place for its text, and a tensor for each name");
  *out = NULL;
  heddle_status s = heddle__check_fork(err);
  if (s != HEDDLE_OK) return s;
  if (m->stages != NULL) return heddle__stages_explain(m, format, out, err);
  const heddle_tensor **values = heddle__alloc(m->graph->n_args, sizeof *values);
  bool *late = heddle__alloc(m->graph->n_args, sizeof *late);
  heddle__order *order = NULL;
  heddle__plan *plan = NULL;
  if (values == NULL || late == NULL) s = heddle__no_memory(err, "a plan's inputs");
  if (s == HEDDLE_OK) s = take_values(m, names, tensors, n, values, late, err);
  if (s == HEDDLE_OK)
    s = heddle__order_make(m, &(heddle__wish){.values = values, .late = late, .to_most = m->ranges}, &order, err);
  atomic_fetch_add(&m->users, 1);
  if (s == HEDDLE_OK) s = heddle__optimize_plan(m, order, &plan, err);
  atomic_fetch_sub(&m->users, 1);
  if (s == HEDDLE_OK) s = heddle__explain(plan, format, out, err);
  heddle__plan_free(plan);
  heddle__order_free(order);
  heddle__free(late);
  heddle__free(values);
  return s;
}

/* ---- orphans */

void heddle__model_keep_orphan(heddle_model *m, struct heddle__bound *take) {
  pthread_mutex_lock(&m->lock);
  m->orphans = heddle__bound_push_orphan(m->orphans, take);
  pthread_mutex_unlock(&m->lock);
}

uint64_t heddle__model_orphan_bytes(heddle_model *m) {
  uint64_t bytes = 0;
  pthread_mutex_lock(&m->lock);
  for (const struct heddle__bound *b = m->orphans; b != NULL; b = heddle__bound_next_orphan(b))
    bytes += b->orphan_bytes;
  heddle_model *spare = m->spares; /* the list only grows */
  pthread_mutex_unlock(&m->lock);
  for (; spare != NULL; spare = spare->next_spare) bytes += heddle__model_orphan_bytes(spare);
  return bytes;
}

void heddle__model_retry_orphans(heddle_model *m) {
  pthread_mutex_lock(&m->lock);
  struct heddle__bound *all = m->orphans;
  m->orphans = NULL;
  pthread_mutex_unlock(&m->lock);
  while (all != NULL) {
    struct heddle__bound *next = heddle__bound_next_orphan(all);
    if (heddle__bound_quiet(all, 0)) heddle__bound_free(all, true);
    else heddle__model_keep_orphan(m, all);
    all = next;
  }
}
