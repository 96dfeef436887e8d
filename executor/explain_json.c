/* executor/explain_json.c: a plan as one JSON object. Every access is written with its bytes, and every wait, as
 * executor/prove.h means them, so that a program of somebody else's can check the proof. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "executor/explain.h"

/* Text as JSON; bytes that are no UTF-8 (of a rule, or a path) become '?'. */
static json_t *words(const char *text) {
  json_t *made = json_string(text);
  if (made != NULL) return made;
  char ascii[512];
  size_t n = 0;
  for (; text[n] != '\0' && n + 1 < sizeof ascii; n++) ascii[n] = (unsigned char)text[n] < 128 ? text[n] : '?';
  ascii[n] = '\0';
  return json_string(ascii);
}

static json_t *number(uint64_t n) {
  return json_integer((json_int_t)n);
}

/* HEDDLE__NONE is -1. */
static json_t *number_or_none(uint32_t n) {
  return json_integer(n == HEDDLE__NONE ? -1 : (json_int_t)n);
}

/* Puts a member into an object or an element into a list. When memory is out the thing is dropped and *lost set. */
static void put(json_t *object, const char *key, json_t *value, bool *lost) {
  if (json_object_set_new(object, key, value) != 0) *lost = true;
}

static void add(json_t *list, json_t *value, bool *lost) {
  if (json_array_append_new(list, value) != 0) *lost = true;
}

static json_t *layout_words(heddle_layout layout) {
  char text[24];
  snprintf(text, sizeof text, "0x%" PRIx64, (uint64_t)layout);
  return json_string(text);
}

/* ---- what there is */

static json_t *devices_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    uint32_t nodes = 0;
    for (uint32_t k = 0; k < plan->n_placed; k++) nodes += plan->placed[k].device == i;
    json_t *o = json_object();
    put(o, "id", number(i), lost);
    put(o, "name", words(heddle__explain_device(plan, i)), lost);
    put(o, "inline", json_boolean(plan->devices[i].is_inline), lost);
    put(o, "nodes", number(nodes), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *nodes_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_placed; i++) {
    const heddle__placed *p = &plan->placed[i];
    if (p->device == HEDDLE__NONE) continue;
    const heddle__node *n = &plan->req.graph->nodes[i];
    json_t *o = json_object();
    put(o, "id", number(i), lost);
    put(o, "name", words(n->name), lost);
    put(o, "op", words(n->kind == HEDDLE__NODE_TVM ? n->func_name : n->op), lost);
    put(o, "device", number(p->device), lost);
    put(o, "cause", words(p->cause != NULL ? p->cause : ""), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *numbers_of(const uint32_t *data, uint32_t n, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) add(list, number_or_none(data[i]), lost);
  return list;
}

static json_t *regions_of(const heddle__plan *plan, bool *lost) {
  static const char *const kinds[] = {"op", "view", "reorder"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    json_t *o = json_object();
    put(o, "id", number(i), lost);
    put(o, "kind", words(kinds[r->kind]), lost);
    put(o, "label", words(r->label), lost);
    put(o, "device", number(r->device), lost);
    put(o, "nodes", numbers_of(r->nodes, r->n_nodes, lost), lost);
    put(o, "inputs", numbers_of(r->inputs, r->n_inputs, lost), lost);
    put(o, "outputs", numbers_of(r->outputs, r->n_outputs, lost), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *streams_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_streams; i++) {
    const heddle__plan_stream *s = &plan->streams[i];
    json_t *o = json_object();
    put(o, "id", number(i), lost);
    put(o, "device", number_or_none(s->device), lost);
    put(o, "kind", words(heddle__explain_stream(s->kind)), lost);
    put(o, "host", json_boolean(s->is_host), lost);
    put(o, "steps", number(s->n_steps), lost);
    add(list, o, lost);
  }
  return list;
}

/* All values, since others refer to them by number; those of nodes that are not needed have no bytes. */
static json_t *values_of(const heddle__plan *plan, bool *lost) {
  static const char *const kinds[] = {"input", "constant", "computed"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_values; i++) {
    const heddle__value *v = &plan->values[i];
    char dtype[32] = "";
    json_t *o = json_object(), *shape = json_array();
    if (v->known.dtype.bits != 0) heddle__dtype_text(v->known.dtype, dtype);
    for (uint32_t k = 0; k < v->known.ndim; k++) add(shape, json_integer(v->known.shape[k]), lost);
    put(o, "id", number(i), lost);
    put(o, "name", words(v->name != NULL ? v->name : ""), lost);
    put(o, "kind", words(kinds[v->kind]), lost);
    put(o, "bytes", number(v->size != 0 ? v->size : v->known.bytes), lost);
    put(o, "dtype", words(dtype), lost);
    put(o, "shape", shape, lost);
    put(o, "layout", layout_words(v->layout), lost);
    put(o, "same_as", number(v->same_as), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *crossings_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_crossings; i++) {
    const heddle__crossing *c = &plan->crossings[i];
    json_t *o = json_object();
    put(o, "value", number(c->value), lost);
    put(o, "from", number_or_none(c->from), lost);
    put(o, "to", number_or_none(c->to), lost);
    put(o, "route", words(heddle__explain_route(c->route)), lost);
    put(o, "bytes", number(c->bytes), lost);
    add(list, o, lost);
  }
  return list;
}

/* ---- memory */

static json_t *allocations_of(const heddle__plan *plan, bool *lost) {
  static const char *const kinds[] = {"arena", "slot", "constant", "input", "output"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_allocs; i++) {
    const heddle__allocation *a = &plan->allocs[i];
    const heddle__space *s = &plan->spaces[a->space];
    char space[128];
    snprintf(space, sizeof space, "%s %s %s", heddle__explain_device(plan, s->device), heddle__explain_memory(s->kind),
             kinds[a->kind]);
    json_t *o = json_object();
    put(o, "id", number(i), lost);
    put(o, "space", words(space), lost);
    put(o, "device", number(s->device), lost);
    put(o, "kind", words(heddle__explain_memory(s->kind)), lost);
    put(o, "use", words(kinds[a->kind]), lost);
    put(o, "host_visible", json_boolean(s->host_visible), lost);
    put(o, "coherent", json_boolean(s->coherent), lost);
    put(o, "bytes", number(a->bytes), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *memory_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_spaces; i++) {
    uint64_t bytes[5] = {0};
    for (uint32_t k = 0; k < plan->n_allocs; k++)
      if (plan->allocs[k].space == i) bytes[plan->allocs[k].kind] += plan->allocs[k].bytes;
    json_t *o = json_object();
    put(o, "device", number(plan->spaces[i].device), lost);
    put(o, "kind", words(heddle__explain_memory(plan->spaces[i].kind)), lost);
    put(o, "arena", number(bytes[HEDDLE__ALLOC_ARENA] + bytes[HEDDLE__ALLOC_SLOT]), lost);
    put(o, "constants", number(bytes[HEDDLE__ALLOC_CONSTANT]), lost);
    put(o, "inputs", number(bytes[HEDDLE__ALLOC_INPUT]), lost);
    put(o, "outputs", number(bytes[HEDDLE__ALLOC_OUTPUT]), lost);
    add(list, o, lost);
  }
  return list;
}

static void put_range(json_t *o, const heddle__instance *in, bool *lost) {
  put(o, "alloc", number_or_none(in->alloc), lost);
  put(o, "offset", number(in->offset), lost);
  put(o, "bytes", number(in->bytes), lost);
}

static json_t *meaning(const heddle__plan *plan, const heddle__instance *in) {
  return number_or_none(in->value == HEDDLE__NONE ? HEDDLE__NONE : plan->values[in->value].same_as);
}

static json_t *initial_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    const heddle__instance *in = &plan->instances[i];
    if (in->role != HEDDLE__ROLE_CONSTANT && in->role != HEDDLE__ROLE_INPUT) continue;
    json_t *o = json_object();
    put_range(o, in, lost);
    put(o, "value", meaning(plan, in), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *outputs_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_outputs; i++) {
    const heddle__instance *in = &plan->instances[plan->outputs[i].instance];
    json_t *o = json_object();
    put(o, "value", number(plan->outputs[i].value), lost);
    put_range(o, in, lost);
    add(list, o, lost);
  }
  return list;
}

/* ---- steps */

static json_t *accesses_of(const heddle__plan *plan, const heddle__step *s, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    const heddle__access *a = &s->accesses[i];
    const heddle__instance *in = &plan->instances[a->instance];
    bool sync = a->kind == HEDDLE__ACCESS_SYNC;
    json_t *o = json_object();
    put_range(o, in, lost);
    put(o, "mode",
        words(sync                              ? heddle__explain_step(s->kind)
              : a->kind == HEDDLE__ACCESS_WRITE ? "write"
                                                : "read"),
        lost);
    put(o, "value", sync ? json_integer(-1) : meaning(plan, in), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *waits_of(const heddle__step *s, bool *lost) {
  static const char *const by[] = {"event", "fence", "host"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < s->n_waits; i++) {
    json_t *o = json_object();
    put(o, "step", number(s->waits[i].step), lost);
    put(o, "by", words(by[s->waits[i].by]), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *steps_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *s = &plan->steps[i];
    heddle__sheet label = {0};
    heddle__explain_label(plan, s, &label);
    json_t *o = json_object();
    put(o, "id", number(i), lost);
    put(o, "kind", words(heddle__explain_step(s->kind)), lost);
    put(o, "label", label.failed ? NULL : words(label.text), lost);
    heddle_free(label.text);
    put(o, "stream", number(s->stream), lost);
    if (s->kind == HEDDLE__STEP_OP) put(o, "region", number(s->region), lost);
    put(o, "accesses", accesses_of(plan, s, lost), lost);
    put(o, "waits", waits_of(s, lost), lost);
    put(o, "signals_event", json_boolean(s->event_signal), lost);
    put(o, "signals_fence", json_boolean(s->fence_signal), lost);
    add(list, o, lost);
  }
  return list;
}

static json_t *changes_of(const heddle__optimized *o, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; o != NULL && i < o->n_changes; i++) {
    json_t *change = json_object(), *nodes = json_array();
    for (uint32_t k = 0; k < o->changes[i].n_nodes; k++) add(nodes, words(o->changes[i].nodes[k]), lost);
    put(change, "pass", words(o->changes[i].pass), lost);
    put(change, "nodes", nodes, lost);
    put(change, "change", words(o->changes[i].words), lost);
    add(list, change, lost);
  }
  return list;
}

/* ---- the whole */

static json_t *counts_of(const heddle__plan *plan, bool *lost) {
  uint32_t nodes = 0, copies = 0, waits = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < plan->n_placed; i++) nodes += plan->placed[i].device != HEDDLE__NONE;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *s = &plan->steps[i];
    waits += s->n_waits;
    if (s->kind == HEDDLE__STEP_OP || s->dst == HEDDLE__NONE) continue;
    copies++;
    bytes += plan->instances[s->src].bytes;
  }
  json_t *o = json_object();
  put(o, "nodes", number(nodes), lost);
  put(o, "steps", number(plan->n_steps), lost);
  put(o, "waits", number(waits), lost);
  put(o, "copies", number(copies), lost);
  put(o, "copied_bytes", number(bytes), lost);
  return o;
}

static int take(const char *data, size_t bytes, void *sheet) {
  heddle__say_bytes(sheet, data, bytes);
  return ((heddle__sheet *)sheet)->failed ? -1 : 0;
}

heddle_status heddle__explain_json(const heddle__plan *plan, heddle__sheet *sheet, heddle_error *err) {
  bool lost = false;
  json_t *o = json_object();
  put(o, "format", number(1), &lost);
  put(o, "graph", words(plan->req.graph->source), &lost);
  put(o, "in_flight", number(plan->req.in_flight), &lost);
  put(o, "devices_from", words(plan->req.devices_from), &lost);
  put(o, "counts", counts_of(plan, &lost), &lost);
  put(o, "devices", devices_of(plan, &lost), &lost);
  put(o, "nodes", nodes_of(plan, &lost), &lost);
  put(o, "regions", regions_of(plan, &lost), &lost);
  put(o, "crossings", crossings_of(plan, &lost), &lost);
  put(o, "memory", memory_of(plan, &lost), &lost);
  put(o, "outputs", outputs_of(plan, &lost), &lost);
  put(o, "streams", streams_of(plan, &lost), &lost);
  put(o, "values", values_of(plan, &lost), &lost);
  put(o, "allocations", allocations_of(plan, &lost), &lost);
  put(o, "initial", initial_of(plan, &lost), &lost);
  put(o, "steps", steps_of(plan, &lost), &lost);
  put(o, "optimizations", changes_of(plan->req.optimized, &lost), &lost);
  bool written = !lost && json_dump_callback(o, take, sheet, JSON_COMPACT) == 0;
  json_decref(o);
  if (written) heddle__say(sheet, "\n");
  return written ? HEDDLE_OK : heddle__no_memory(err, "the plan as JSON");
}
