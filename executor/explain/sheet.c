/* executor/explain/sheet.c: the library's entry, the sheet that explanations are written on, and the words that all of
 * them use. The three formats are in text.c, json.c and dot.c. */
#include "executor/explain/sheet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "executor/model.h"

/* ---- words */

const char *heddle__explain_device(const heddle__plan *plan, uint32_t device) {
  return device < plan->n_devices ? plan->devices[device].dev->name : "host";
}

uint64_t heddle__explain_time(const heddle__crossing *c) {
  return (uint64_t)(c->cost.latency_ns + c->cost.ns_per_byte * (double)c->bytes + 0.5);
}

const char *heddle__explain_step(heddle__step_kind kind) {
  switch (kind) {
  case HEDDLE__STEP_OP: return "op";
  case HEDDLE__STEP_H2D: return "h2d";
  case HEDDLE__STEP_D2H: return "d2h";
  case HEDDLE__STEP_D2D: return "d2d";
  case HEDDLE__STEP_PEER: return "peer";
  case HEDDLE__STEP_HOST_COPY: return "host_copy";
  case HEDDLE__STEP_RELEASE: return "release";
  case HEDDLE__STEP_ACQUIRE: return "acquire";
  case HEDDLE__STEP_FINISH: return "finish";
  }
  return "?";
}

const char *heddle__explain_memory(uint32_t kind) {
  static const char *const names[] = {"device", "pinned", "unified", "image"};
  return names[kind <= HEDDLE_MEMORY_IMAGE ? kind : HEDDLE_MEMORY_DEVICE];
}

static const char *instance_name(const heddle__plan *plan, uint32_t instance) {
  if (instance >= plan->n_instances) return "?";
  uint32_t value = plan->instances[instance].value;
  return value < plan->n_values ? plan->values[value].name : "workspace";
}

static const char *instance_device(const heddle__plan *plan, uint32_t instance) {
  if (instance >= plan->n_instances) return "?";
  return heddle__explain_device(plan, plan->spaces[plan->instances[instance].space].device);
}

void heddle__explain_layout(const heddle__plan *plan, uint32_t device, heddle_layout layout,
                            char name[HEDDLE__LAYOUT_NAME]) {
  const heddle_device *dev = plan->devices[device].dev;
  snprintf(name, HEDDLE__LAYOUT_NAME, "plain");
  if (layout == 0) return;
  if (!dev->t->has_layout || dev->t->layout.describe == NULL ||
      dev->t->layout.describe(dev->instance, dev->index, layout, name, HEDDLE__LAYOUT_NAME, NULL) != HEDDLE_OK)
    name[0] = '\0';
  name[HEDDLE__LAYOUT_NAME - 1] = '\0';
  if (name[0] == '\0') snprintf(name, HEDDLE__LAYOUT_NAME, "0x%" PRIx64, (uint64_t)layout);
}

void heddle__explain_label(const heddle__plan *plan, const heddle__step *step, heddle__sheet *sheet) {
  if (step->kind == HEDDLE__STEP_FINISH) {
    heddle__say(sheet, "outputs");
  } else if (step->kind == HEDDLE__STEP_OP) {
    const heddle__region *r = &plan->regions[step->region];
    heddle__say(sheet, "%s", r->label);
    for (uint32_t i = 0; i < r->n_nodes; i++)
      heddle__say(sheet, "%s%s", i == 0 ? " " : "+", plan->req.graph->nodes[r->nodes[i]].op);
  } else {
    heddle__say(sheet, "%s", instance_name(plan, step->src));
    bool to_host = step->kind == HEDDLE__STEP_D2H || step->kind == HEDDLE__STEP_HOST_COPY;
    if (step->dst != HEDDLE__NONE) heddle__say(sheet, " to %s", to_host ? "host" : instance_device(plan, step->dst));
  }
}

void heddle__explain_regions(const heddle__plan *plan, uint32_t *region_of, uint32_t *stream_of) {
  for (uint32_t i = 0; i < plan->n_placed; i++) region_of[i] = HEDDLE__NONE;
  for (uint32_t i = 0; i < plan->n_regions; i++) {
    stream_of[i] = HEDDLE__NONE;
    for (uint32_t k = 0; k < plan->regions[i].n_nodes; k++) region_of[plan->regions[i].nodes[k]] = i;
  }
  for (uint32_t i = 0; i < plan->n_steps; i++)
    if (plan->steps[i].kind == HEDDLE__STEP_OP) stream_of[plan->steps[i].region] = plan->steps[i].stream;
}

const heddle__crossing *heddle__explain_crossing(const heddle__plan *plan, uint32_t value, uint32_t to) {
  for (uint32_t i = 0; i < plan->n_crossings; i++) {
    const heddle__crossing *c = &plan->crossings[i];
    if (c->to == to && plan->values[c->value].same_as == plan->values[value].same_as) return c;
  }
  return NULL;
}

/* ---- the whole */

heddle_status heddle__explain(const heddle__plan *plan, heddle_explain_format format, char **out, heddle_error *err) {
  heddle__sheet sheet = {0};
  heddle_status s;
  *out = NULL;
  switch (format) {
  case HEDDLE_EXPLAIN_TEXT: s = heddle__explain_text(plan, &sheet, err); break;
  case HEDDLE_EXPLAIN_JSON: s = heddle__explain_json(plan, &sheet, err); break;
  case HEDDLE_EXPLAIN_DOT: s = heddle__explain_dot(plan, &sheet, err); break;
  default: s = heddle__fail(err, HEDDLE_EINVAL, "explain: %d is no format", (int)format);
  }
  if (s == HEDDLE_OK && (sheet.failed || sheet.text == NULL)) s = heddle__no_memory(err, "the explanation of a plan");
  if (s != HEDDLE_OK) {
    heddle__free(sheet.text);
    return s;
  }
  *out = sheet.text;
  return HEDDLE_OK;
}

bool heddle__explain_next_dim(const heddle__plan *plan, uint32_t *arg, uint32_t *dim, heddle__explain_dim *out) {
  const heddle_graph *g = plan->req.graph;
  for (; *arg < g->n_args; (*arg)++, *dim = 0) {
    const heddle__node *n = &g->nodes[g->args[*arg]];
    const heddle__type *t = &g->types[n->first_entry];
    const heddle__plan_input *in = &plan->req.inputs[*arg], *bound = plan->req.bounds;
    if (in->source != HEDDLE__SOURCE_INPUT || !in->has_shape || !plan->values[n->first_entry].used) continue;
    for (; *dim < in->known.ndim; (*dim)++) {
      const bool is_typed = t->has_shape && *dim < t->ndim;
      if (is_typed && t->dims[*dim].value >= 0) continue;
      *out = (heddle__explain_dim){n->name, is_typed ? t->dims[*dim].symbol : NULL, *dim, in->known.shape[*dim], 0, 0};
      if (bound != NULL && bound[*arg].known.ndim == in->known.ndim) out->bound = bound[*arg].known.shape[*dim];
      if (plan->req.open) out->bound = out->value;
      for (uint32_t i = 0; i < plan->req.n_most; i++) {
        const heddle__most *m = &plan->req.most[i];
        if (m->arg == *arg && m->dim == *dim && (out->most == 0 || m->most < out->most)) out->most = m->most;
      }
      (*dim)++;
      return true;
    }
  }
  return false;
}

const char *heddle__explain_sizes(const heddle__plan *plan, const heddle__region *r) {
  if ((!plan->req.open && plan->req.bounds == NULL) || r->kind == HEDDLE__REGION_VIEW || r->foreign != NULL ||
      r->offer >= r->n_offers)
    return NULL;
  return (r->offers[r->offer].flags & HEDDLE_OFFER_RESIZES) != 0 ? "resized" : "prepared";
}
