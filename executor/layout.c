/* executor/layout.c: the pass that puts a Reorder wherever a value is wanted in another layout than it has, by the offers
 * that choose.c takes: once per (value, device, layout), on the device whose plugin owns the layout. Edges between
 * devices carry layout 0, and so do outputs and views; a constant is packed before the first run. */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "executor/ask.h"
#include "executor/choose.h"

/* A value in another layout, or elsewhere: a list per value. */
typedef struct variant {
  struct variant *next;
  heddle_layout layout;
  uint32_t device;
  uint32_t value;
} variant;

typedef struct builder {
  heddle__plan *plan;
  heddle__region *regions; /* the new list */
  uint32_t n_regions, cap_regions;
  uint32_t cap_values;
  variant **variants; /* per value */
} builder;

static heddle_status grow_values(builder *b, heddle_error *err) {
  heddle__plan *plan = b->plan;
  if (plan->n_values < b->cap_values) return HEDDLE_OK;
  uint32_t cap = b->cap_values * 2 + 16;
  heddle__value *values = heddle__plan_alloc(plan, cap, sizeof *values);
  variant **variants = heddle__plan_alloc(plan, cap, sizeof *variants);
  if (values == NULL || variants == NULL) return heddle__no_memory(err, "reordered values");
  memcpy(values, plan->values, plan->n_values * sizeof *values);
  if (plan->n_values != 0) memcpy(variants, b->variants, plan->n_values * sizeof *variants);
  plan->values = values;
  b->variants = variants;
  b->cap_values = cap;
  return HEDDLE_OK;
}

static heddle__region *new_region(builder *b) {
  if (b->n_regions == b->cap_regions) {
    uint32_t cap = b->cap_regions * 2 + 16;
    heddle__region *more = heddle__plan_alloc(b->plan, cap, sizeof *more);
    if (more == NULL) return NULL;
    if (b->n_regions != 0) memcpy(more, b->regions, b->n_regions * sizeof *more);
    b->regions = more;
    b->cap_regions = cap;
  }
  return &b->regions[b->n_regions++];
}

/* Size and alignment of a value in its layout, from the plugin that owns it. */
static heddle_status measure(builder *b, uint32_t value, uint32_t device, heddle_error *err) {
  heddle__value *v = &b->plan->values[value];
  if (v->layout == 0) {
    v->size = v->known.bytes;
    return HEDDLE_OK;
  }
  heddle_device *dev = b->plan->devices[device].dev;
  if (!dev->t->has_layout) {
    return heddle__fail_on(dev->name, err, HEDDLE_EABI, "the plugin of %s offered a layout and has no layout table",
                           dev->name);
  }
  heddle_pvalue t = {.struct_size = sizeof t,
                     .dtype = v->known.dtype,
                     .shape = v->known.shape,
                     .layout = v->layout,
                     .ndim = (int32_t)v->known.ndim};
  heddle_status s = dev->t->layout.bytes(dev->instance, dev->index, &t, &v->size, &v->align, err);
  if (s == HEDDLE_ENEEDSOPEN) {
    s = heddle__device_open(dev, err);
    if (s != HEDDLE_OK) return s;
    s = dev->t->layout.bytes(dev->instance, dev->index, &t, &v->size, &v->align, err);
    heddle__device_close(dev);
  }
  if (s != HEDDLE_OK) return heddle__prefix_on(dev->name, err, s, "value '%s' in a layout of %s: ", v->name, dev->name);
  if (v->align == 0) v->align = 1;
  return HEDDLE_OK;
}

static uint32_t producer_device(const builder *b, uint32_t value) {
  const heddle__value *v = &b->plan->values[value];
  return v->kind == HEDDLE__VALUE_COMPUTED ? b->regions[v->region].device : HEDDLE__NONE;
}

static heddle_status add_value(builder *b, uint32_t from, heddle_layout layout, uint32_t device, uint32_t *out,
                               heddle_error *err) {
  heddle_status s = grow_values(b, err);
  if (s != HEDDLE_OK) return s;
  heddle__plan *plan = b->plan;
  uint32_t id = plan->n_values++;
  heddle__value *v = &plan->values[id];
  *v = plan->values[from];
  v->layout = layout;
  v->same_as = id;
  v->align = 1;
  v->feeds_shape = false;
  v->name = heddle__plan_format(plan, "%s(%s)", plan->values[from].name, layout == 0 ? "plain" : "reordered");
  variant *w = heddle__plan_alloc(plan, 1, sizeof *w);
  if (v->name == NULL || w == NULL) return heddle__no_memory(err, "a reordered value");
  *w = (variant){b->variants[from], layout, device, id};
  b->variants[from] = w;
  *out = id;
  return measure(b, id, device, err);
}

static heddle_status add_reorder(builder *b, uint32_t from, heddle_layout layout, uint32_t device, uint32_t *out,
                                 heddle_error *err) {
  heddle__plan *plan = b->plan;
  heddle__answer a;
  heddle_status s = heddle__ask_reorder(plan, from, plan->values[from].layout, layout, &a, err);
  if (s == HEDDLE_OK) s = heddle__ask(plan, device, &a, err);
  if (s != HEDDLE_OK) {
    return heddle__prefix_on(plan->devices[device].dev->name, err, HEDDLE_EABI,
                             "the plugin of %s offered a layout that it cannot reorder '%s' to or from: ",
                             plan->devices[device].dev->name, plan->values[from].name);
  }
  s = add_value(b, from, layout, device, out, err);
  if (s != HEDDLE_OK) return s;
  heddle__region *r = new_region(b);
  if (r == NULL) return heddle__no_memory(err, "a Reorder");
  a.outputs[0] = *out;
  *r = (heddle__region){.kind = HEDDLE__REGION_REORDER,
                        .device = device,
                        .label = plan->values[*out].name,
                        .n_inputs = 1,
                        .n_outputs = 1,
                        .inputs = a.inputs,
                        .outputs = a.outputs,
                        .ask = a.ask,
                        .offers = a.offers,
                        .n_offers = a.n_offers,
                        .stream = -1};
  plan->values[*out].kind = HEDDLE__VALUE_COMPUTED;
  plan->values[*out].arg = HEDDLE__NONE;
  plan->values[*out].region = b->n_regions - 1;
  plan->values[*out].known.data = NULL;
  return HEDDLE_OK;
}

static uint32_t find_variant(const builder *b, uint32_t value, heddle_layout layout, uint32_t device) {
  for (const variant *w = b->variants[value]; w != NULL; w = w->next) {
    if (w->layout == layout && (layout == 0 || w->device == device)) return w->value;
  }
  return HEDDLE__NONE;
}

/* The value that has the elements of `value` in a layout, for use on a device; Reorders are added where needed. */
static heddle_status want(builder *b, uint32_t value, heddle_layout layout, uint32_t device, uint32_t *out,
                          heddle_error *err) {
  const heddle__value *v = &b->plan->values[value];
  uint32_t home = producer_device(b, value);
  *out = value;
  if (v->layout == layout && (layout == 0 || home == device)) return HEDDLE_OK;
  *out = find_variant(b, value, layout, device);
  if (*out != HEDDLE__NONE) return HEDDLE_OK;
  if (layout == 0) return add_reorder(b, value, 0, home, out, err);
  if (v->kind == HEDDLE__VALUE_CONSTANT) return add_value(b, value, layout, device, out, err);
  uint32_t plain = value;
  heddle_status s = v->layout == 0 ? HEDDLE_OK : want(b, value, 0, home, &plain, err);
  if (s != HEDDLE_OK) return s;
  s = add_reorder(b, plain, layout, device, out, err);
  if (s != HEDDLE_OK || plain == value) return s;
  variant *w = heddle__plan_alloc(b->plan, 1, sizeof *w);
  if (w == NULL) return heddle__no_memory(err, "a reordered value");
  *w = (variant){b->variants[value], layout, device, *out};
  b->variants[value] = w;
  return HEDDLE_OK;
}

static heddle_status lay_out(builder *b, const heddle__region *old, heddle_error *err) {
  heddle__plan *plan = b->plan;
  heddle__region r = *old;
  heddle_status s = HEDDLE_OK;
  if (r.kind == HEDDLE__REGION_VIEW) {
    s = want(b, r.inputs[0], 0, r.device, &r.inputs[0], err);
    if (s != HEDDLE_OK) return s;
    plan->values[r.outputs[0]].same_as = plan->values[r.inputs[0]].same_as;
  } else {
    const heddle__offer *o = &r.offers[r.offer];
    heddle_pvalue *values = (heddle_pvalue *)(uintptr_t)r.ask->values.data;
    for (uint32_t i = 0; s == HEDDLE_OK && i < r.n_inputs; i++) {
      values[r.ask->inputs[i]].layout = o->input_layouts[i];
      if (!(o->input_flags[i] & HEDDLE_INPUT_ABSORBED)) {
        s = want(b, r.inputs[i], o->input_layouts[i], r.device, &r.inputs[i], err);
      }
    }
    for (uint32_t i = 0; s == HEDDLE_OK && i < r.n_outputs; i++) {
      values[r.ask->outputs[i]].layout = o->output_layouts[i];
      plan->values[r.outputs[i]].layout = o->output_layouts[i];
      s = measure(b, r.outputs[i], r.device, err);
    }
    if (s != HEDDLE_OK) return s;
  }
  heddle__region *mine = new_region(b);
  if (mine == NULL) return heddle__no_memory(err, "regions");
  *mine = r;
  uint32_t number = b->n_regions - 1;
  const heddle_graph *g = plan->req.graph;
  for (uint32_t i = 0; i < r.n_nodes; i++) {
    const heddle__node *n = &g->nodes[r.nodes[i]];
    for (uint32_t k = 0; k < n->n_outputs; k++) plan->values[n->first_entry + k].region = number;
  }
  return HEDDLE_OK;
}

/* Heads and kept values are wanted plain. */
static heddle_status lay_out_outputs(builder *b, heddle_error *err) {
  heddle__plan *plan = b->plan;
  const heddle_graph *g = plan->req.graph;
  plan->n_outputs = g->n_heads + plan->req.n_keep;
  plan->outputs = heddle__plan_alloc(plan, plan->n_outputs, sizeof *plan->outputs);
  if (plan->outputs == NULL) return heddle__no_memory(err, "outputs");
  for (uint32_t i = 0; i < plan->n_outputs; i++) {
    heddle__entry e = i < g->n_heads
                          ? g->heads[i]
                          : (heddle__entry){plan->req.keep[i - g->n_heads].node, plan->req.keep[i - g->n_heads].index};
    uint32_t value = heddle__entry_id(g, e);
    heddle_status s = want(b, value, 0, producer_device(b, value), &plan->outputs[i].value, err);
    if (s != HEDDLE_OK) return s;
    plan->outputs[i].instance = HEDDLE__NONE;
  }
  return HEDDLE_OK;
}

heddle_status heddle__pass_layout(heddle__plan *plan, heddle_error *err) {
  builder b = {.plan = plan, .cap_values = plan->n_values, .cap_regions = plan->n_regions};
  b.variants = heddle__plan_alloc(plan, plan->n_values, sizeof *b.variants);
  b.regions = heddle__plan_alloc(plan, plan->n_regions, sizeof *b.regions);
  if (b.variants == NULL || b.regions == NULL) return heddle__no_memory(err, "layouts");
  heddle_status s = heddle__choose_offers(plan, err);
  for (uint32_t i = 0; s == HEDDLE_OK && i < plan->n_regions; i++) s = lay_out(&b, &plan->regions[i], err);
  if (s == HEDDLE_OK) s = lay_out_outputs(&b, err);
  if (s != HEDDLE_OK) return s;
  plan->regions = b.regions;
  plan->n_regions = b.n_regions;
  return HEDDLE_OK;
}
