/* executor/explain/json.c: a plan as one JSON object. Every access is written with its bytes, and every wait, as
 * executor/prove.h means them, so that another program can check the proof. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/tensor.h"
#include "executor/budget.h"
#include "executor/explain/sheet.h"
#include "executor/place/placer.h"

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

/* HEDDLE__NONE is -1. */
static json_int_t or_none(uint32_t n) {
  return n == HEDDLE__NONE ? -1 : (json_int_t)n;
}

/* Adds an element to a list. When memory is out it is dropped and *lost set. */
static void add(json_t *list, json_t *value, bool *lost) {
  if (json_array_append_new(list, value) != 0) *lost = true;
}

/* ---- what there is */

static json_t *devices_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    uint32_t nodes = 0;
    for (uint32_t k = 0; k < plan->n_placed; k++) nodes += plan->placed[k].device == i;
    add(list,
        json_pack("{sI so sb sb sI}", "id", (json_int_t)i, "name", words(heddle__explain_device(plan, i)), "inline",
                  (int)plan->devices[i].is_inline, "regions", !plan->devices[i].dev->plugin->one_by_one, "nodes",
                  (json_int_t)nodes),
        lost);
  }
  return list;
}

static json_t *nodes_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_placed; i++) {
    const heddle__placed *p = &plan->placed[i];
    if (p->device == HEDDLE__NONE) continue;
    const heddle__node *n = &plan->req.graph->nodes[i];
    add(list,
        json_pack("{sI so so sI so}", "id", (json_int_t)i, "name", words(n->name), "op",
                  words(n->kind == HEDDLE__NODE_TVM ? n->func_name : n->op), "device", (json_int_t)p->device, "cause",
                  words(p->cause != NULL ? p->cause : "")),
        lost);
  }
  return list;
}

static json_t *numbers_of(const uint32_t *data, uint32_t n, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) add(list, json_integer(or_none(data[i])), lost);
  return list;
}

static json_t *layouts_of(const heddle__plan *plan, uint32_t device, const uint32_t *values, uint32_t n, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) {
    char name[HEDDLE__LAYOUT_NAME];
    heddle__explain_layout(plan, device, plan->values[values[i]].layout, name);
    add(list, words(name), lost);
  }
  return list;
}

static json_t *regions_of(const heddle__plan *plan, bool *lost) {
  static const char *const kinds[] = {"op", "view", "reorder"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    const heddle__region *r = &plan->regions[i];
    add(list,
        json_pack("{sI ss so sI so so so so so so}", "id", (json_int_t)i, "kind", kinds[r->kind], "label",
                  words(r->label), "device", (json_int_t)r->device, "nodes", numbers_of(r->nodes, r->n_nodes, lost),
                  "inputs", numbers_of(r->inputs, r->n_inputs, lost), "outputs",
                  numbers_of(r->outputs, r->n_outputs, lost), "reads",
                  layouts_of(plan, r->device, r->inputs, r->n_inputs, lost), "writes",
                  layouts_of(plan, r->device, r->outputs, r->n_outputs, lost), "sizes",
                  heddle__explain_sizes(plan, r) != NULL ? json_string(heddle__explain_sizes(plan, r)) : json_null()),
        lost);
  }
  return list;
}

static json_t *streams_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_streams; i++) {
    const heddle__plan_stream *s = &plan->streams[i];
    add(list,
        json_pack("{sI sI ss sb sI}", "id", (json_int_t)i, "device", or_none(s->device), "kind",
                  heddle__explain_stream(s->kind), "host", (int)s->is_host, "steps", (json_int_t)s->n_steps),
        lost);
  }
  return list;
}

static json_t *dimensions_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  heddle__explain_dim d;
  for (uint32_t arg = 0, dim = 0; heddle__explain_next_dim(plan, &arg, &dim, &d);)
    add(list,
        json_pack("{so sI so sI so so}", "input", words(d.input), "dimension", (json_int_t)d.dim, "name",
                  d.name != NULL ? words(d.name) : json_null(), "value", (json_int_t)d.value, "bound",
                  d.bound > 0 ? json_integer(d.bound) : json_null(), "maximum",
                  d.most > 0 ? json_integer(d.most) : json_null()),
        lost);
  return list;
}

/* All values, since others refer to them by number; those of nodes that are not needed have no bytes. */
static json_t *values_of(const heddle__plan *plan, bool *lost) {
  static const char *const kinds[] = {"input", "constant", "computed"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_values; i++) {
    const heddle__value *v = &plan->values[i];
    char dtype[32] = "", layout[24];
    json_t *shape = json_array();
    if (v->known.dtype.bits != 0) heddle__dtype_name(v->known.dtype, dtype);
    for (uint32_t k = 0; k < v->known.ndim; k++) add(shape, json_integer(v->known.shape[k]), lost);
    snprintf(layout, sizeof layout, "0x%" PRIx64, (uint64_t)v->layout);
    add(list,
        json_pack("{sI so ss sI ss so ss sI}", "id", (json_int_t)i, "name", words(v->name != NULL ? v->name : ""),
                  "kind", kinds[v->kind], "bytes", (json_int_t)(v->size != 0 ? v->size : v->known.bytes), "dtype",
                  dtype, "shape", shape, "layout", layout, "same_as", (json_int_t)v->same_as),
        lost);
  }
  return list;
}

static json_t *crossings_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_crossings; i++) {
    const heddle__crossing *c = &plan->crossings[i];
    add(list,
        json_pack("{sI sI sI ss sI sI sb sI}", "value", (json_int_t)c->value, "from", or_none(c->from), "to",
                  or_none(c->to), "route", heddle__explain_route(c->route), "bytes", (json_int_t)c->bytes,
                  "estimated_ns", (json_int_t)heddle__explain_time(c), "measured", (int)c->cost.measured, "page",
                  or_none(c->page)),
        lost);
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
    const char *kind = heddle__explain_memory(s->image.width > 0 ? HEDDLE_MEMORY_IMAGE : s->kind);
    char space[128];
    snprintf(space, sizeof space, "%s %s %s", heddle__explain_device(plan, s->device), kind, kinds[a->kind]);
    add(list,
        json_pack("{sI so sI ss ss sb sb sI sI}", "id", (json_int_t)i, "space", words(space), "device",
                  (json_int_t)s->device, "kind", kind, "use", kinds[a->kind], "host_visible", (int)s->host_visible,
                  "coherent", (int)s->coherent, "bytes", (json_int_t)a->bytes, "sets",
                  (json_int_t)heddle__plan_sets(plan, i)),
        lost);
  }
  return list;
}

static json_t *memory_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_spaces; i++) {
    const heddle__space *s = &plan->spaces[i];
    json_int_t bytes[5] = {0};
    for (uint32_t k = 0; k < plan->n_allocs; k++)
      if (plan->allocs[k].space == i)
        bytes[plan->allocs[k].kind] += (json_int_t)(plan->allocs[k].bytes * heddle__plan_sets(plan, k));
    add(list,
        json_pack("{sI ss sI sI sI sI}", "device", (json_int_t)s->device, "kind",
                  heddle__explain_memory(s->image.width > 0 ? HEDDLE_MEMORY_IMAGE : s->kind), "arena",
                  bytes[HEDDLE__ALLOC_ARENA] + bytes[HEDDLE__ALLOC_SLOT], "constants", bytes[HEDDLE__ALLOC_CONSTANT],
                  "inputs", bytes[HEDDLE__ALLOC_INPUT], "outputs", bytes[HEDDLE__ALLOC_OUTPUT]),
        lost);
  }
  return list;
}

/* What is taken of each device in all. */
static json_t *taken_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    uint64_t limit = plan->req.limits != NULL ? plan->req.limits[i] : 0;
    add(list,
        json_pack("{sI sI sI sI so so}", "id", (json_int_t)i, "device_bytes",
                  (json_int_t)heddle__plan_bytes(plan, i, HEDDLE_MEMORY_DEVICE), "unified_bytes",
                  (json_int_t)heddle__plan_bytes(plan, i, HEDDLE_MEMORY_UNIFIED), "pinned_bytes",
                  (json_int_t)heddle__plan_bytes(plan, i, HEDDLE_MEMORY_PINNED), "limit",
                  limit != 0 ? json_integer((json_int_t)limit) : json_null(), "limit_from",
                  limit != 0 ? words(plan->req.limits_from) : json_null()),
        lost);
  }
  return json_pack("{so so}", "devices", list, "fitted", plan->fitted != NULL ? words(plan->fitted) : json_null());
}

/* Where an instance lies, and what it means; mode NULL is left out. */
static json_t *range(const heddle__instance *in, const char *mode, json_int_t value) {
  return json_pack("{sI sI sI ss* sI}", "alloc", or_none(in->alloc), "offset", (json_int_t)in->offset, "bytes",
                   (json_int_t)in->bytes, "mode", mode, "value", value);
}

static json_int_t meaning(const heddle__plan *plan, const heddle__instance *in) {
  return or_none(in->value == HEDDLE__NONE ? HEDDLE__NONE : plan->values[in->value].same_as);
}

/* The range with one more member, the meaning of an instance, unless that is HEDDLE__NONE. */
static json_t *with(const heddle__plan *plan, json_t *range, const char *name, uint32_t instance) {
  if (range != NULL && instance != HEDDLE__NONE)
    json_object_set_new(range, name, json_integer(meaning(plan, &plan->instances[instance])));
  return range;
}

static json_t *initial_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    const heddle__instance *in = &plan->instances[i];
    if (in->role == HEDDLE__ROLE_CONSTANT || in->role == HEDDLE__ROLE_INPUT)
      add(list, with(plan, range(in, NULL, meaning(plan, in)), "becomes", heddle__input_becomes(plan, i)), lost);
  }
  return list;
}

/* State values, and whether they are updated in place. */
static json_t *states_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->req.n_ties; i++) {
    const heddle__tie *tie = &plan->req.ties[i];
    const heddle__update *u = &plan->updates[i];
    add(list,
        json_pack("{so so sb so so}", "input", words(plan->req.graph->nodes[plan->req.graph->args[tie->arg]].name),
                  "output", words(plan->values[plan->outputs[tie->output].value].name), "in_place",
                  (int)(u->step != HEDDLE__NONE), "step",
                  u->step != HEDDLE__NONE ? json_integer((json_int_t)u->step) : json_null(), "why",
                  u->why != NULL ? words(u->why) : json_null()),
        lost);
  }
  return list;
}

static json_t *outputs_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_outputs; i++)
    add(list, range(&plan->instances[plan->outputs[i].instance], NULL, (json_int_t)plan->outputs[i].value), lost);
  return list;
}

/* ---- steps */

static json_t *accesses_of(const heddle__plan *plan, uint32_t step, bool *lost) {
  json_t *list = json_array();
  const heddle__step *s = &plan->steps[step];
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    const heddle__access *a = &s->accesses[i];
    const heddle__instance *in = &plan->instances[a->instance];
    bool sync = a->kind == HEDDLE__ACCESS_SYNC;
    const char *mode = sync ? heddle__explain_step(s->kind) : a->kind == HEDDLE__ACCESS_WRITE ? "write" : "read";
    const uint32_t kept = a->kind == HEDDLE__ACCESS_WRITE ? heddle__write_keeps(plan, step, a->instance) : HEDDLE__NONE;
    add(list, with(plan, range(in, mode, sync ? -1 : meaning(plan, in)), "keeps", kept), lost);
  }
  return list;
}

static json_t *waits_of(const heddle__step *s, bool *lost) {
  static const char *const by[] = {"event", "fence", "host"};
  json_t *list = json_array();
  for (uint32_t i = 0; i < s->n_waits; i++)
    add(list, json_pack("{sI ss}", "step", (json_int_t)s->waits[i].step, "by", by[s->waits[i].by]), lost);
  return list;
}

static json_t *steps_of(const heddle__plan *plan, bool *lost) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *s = &plan->steps[i];
    heddle__sheet label = {0};
    heddle__explain_label(plan, s, &label);
    add(list,
        json_pack("{sI ss so sI so* so so sb sb}", "id", (json_int_t)i, "kind", heddle__explain_step(s->kind), "label",
                  label.failed ? NULL : words(label.text), "stream", (json_int_t)s->stream, "region",
                  s->kind == HEDDLE__STEP_OP ? json_integer((json_int_t)s->region) : NULL, "accesses",
                  accesses_of(plan, i, lost), "waits", waits_of(s, lost), "signals_event", (int)s->event_signal,
                  "signals_fence", (int)s->fence_signal),
        lost);
    heddle__free(label.text);
  }
  return list;
}

/* ---- the whole */

static json_t *counts_of(const heddle__plan *plan) {
  json_int_t nodes = 0, copies = 0, waits = 0, bytes = 0;
  for (uint32_t i = 0; i < plan->n_placed; i++) nodes += plan->placed[i].device != HEDDLE__NONE;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const heddle__step *s = &plan->steps[i];
    waits += s->n_waits;
    if (s->kind == HEDDLE__STEP_OP || s->dst == HEDDLE__NONE) continue;
    copies++;
    bytes += (json_int_t)plan->instances[s->src].bytes;
  }
  return json_pack("{sI sI sI sI sI}", "nodes", nodes, "steps", (json_int_t)plan->n_steps, "waits", waits, "copies",
                   copies, "copied_bytes", bytes);
}

/* Lines as a list. */
static json_t *lines_of(const char *text) {
  json_t *list = json_array();
  while (text != NULL && *text != '\0') {
    char line[2048];
    size_t n = strcspn(text, "\n");
    snprintf(line, sizeof line, "%.*s", (int)n, text);
    json_array_append_new(list, words(line));
    text += n + (text[n] == '\n');
  }
  return list;
}

/* In ASCII, but for U+007F, which jansson leaves as it is. */
static int take(const char *data, size_t bytes, void *sheet) {
  for (size_t i = 0; i < bytes;) {
    size_t n = 0;
    while (i + n < bytes && data[i + n] != 0x7F) n++;
    heddle__say_bytes(sheet, data + i, n);
    i += n;
    if (i < bytes) heddle__say_bytes(sheet, "\\u007f", 6);
    i += i < bytes;
  }
  return ((heddle__sheet *)sheet)->failed ? -1 : 0;
}

heddle_status heddle__explain_json(const heddle__plan *plan, heddle__sheet *sheet, heddle_error *err) {
  bool lost = false;
  const heddle__optimized *other = plan->req.optimized;
  json_t *o = json_pack(
      "{si so sI sI sI so sI so so so so so so so so so so so so so so so so so so so}", "format", 1, "graph",
      words(plan->req.graph->source), "in_flight", (json_int_t)plan->req.in_flight, "stream_sets",
      (json_int_t)plan->req.in_flight, "programs", (json_int_t)plan->req.programs, "dimensions",
      dimensions_of(plan, &lost), "growths", (json_int_t)plan->req.growths, "devices_from",
      words(plan->req.devices_from), "left_out", lines_of(plan->req.left_out), "on_failure",
      words(plan->req.on_failure != NULL ? plan->req.on_failure : "error"), "counts", counts_of(plan), "devices",
      devices_of(plan, &lost), "nodes", nodes_of(plan, &lost), "regions", regions_of(plan, &lost), "crossings",
      crossings_of(plan, &lost), "memory", memory_of(plan, &lost), "taken", taken_of(plan, &lost), "outputs",
      outputs_of(plan, &lost), "streams", streams_of(plan, &lost), "values", values_of(plan, &lost), "allocations",
      allocations_of(plan, &lost), "states", states_of(plan, &lost), "initial", initial_of(plan, &lost), "steps",
      steps_of(plan, &lost), "optimizations", other != NULL ? json_deep_copy(other->changes) : json_array(),
      "placement", plan->placing != NULL ? json_loads(plan->placing->json, 0, NULL) : json_null());
  bool written = !lost && o != NULL && json_dump_callback(o, take, sheet, JSON_COMPACT | JSON_ENSURE_ASCII) == 0;
  json_decref(o);
  if (written) heddle__say(sheet, "\n");
  return written ? HEDDLE_OK : heddle__no_memory(err, "the plan as JSON");
}
