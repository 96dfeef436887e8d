/* executor/place.c: the pass that gives every node a device and says why.
 * Strongest first: the caller's rules, the graph's annotations, a placer where the caller wishes one, the order of
 * preference among the devices that support the node. Nodes that no device takes are reported all at once, with the list of devices that would serve them. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "core/registry.h"
#include "executor/ask.h"
#include "executor/foreign.h"
#include "executor/place/placer.h"
#include "executor/precedent.h"

/* Words about nodes that found no device: as many as fit. */
typedef struct complaint {
  char text[740]; /* of the 800 bytes that an error with members has */
  size_t used;
  uint32_t nodes;
  uint32_t unsaid;
  heddle_status status;
  const heddle__node *first;
  const char *device; /* that the first one was wanted on; NULL: on any */
} complaint;

static void complain(complaint *c, const heddle__node *n, heddle_status status, const char *device, const char *why) {
  if (c->nodes++ == 0) {
    c->status = status;
    c->first = n;
    c->device = device;
  }
  int k = snprintf(c->text + c->used, sizeof c->text - c->used, "%s'%s' (%s): %s", c->used == 0 ? "" : "; ", n->name,
                   n->op, why);
  if (k < 0 || (size_t)k >= sizeof c->text - c->used) {
    c->text[c->used] = '\0';
    c->unsaid++;
  } else {
    c->used += (size_t)k;
  }
}

/* Does a name in a rule or an annotation mean this device? "sim" is the plugin's first one, "sim:0". */
static bool is_named(const heddle_device *dev, const char *name) {
  if (strcmp(dev->name, name) == 0) return true;
  size_t n = strlen(name);
  if (strncmp(dev->name, name, n) == 0 && strcmp(dev->name + n, ":0") == 0) return true;
  size_t k = strlen(dev->name);
  return strncmp(dev->name, name, k) == 0 && strcmp(name + k, ":0") == 0;
}

static uint32_t find_device(const heddle__plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    if (is_named(plan->devices[i].dev, name)) return i;
  }
  return HEDDLE__NONE;
}

/* A name that means several devices is the first of them in use. */
static heddle_status find_group(const heddle__plan *plan, const char *name, uint32_t *device, heddle_error *err) {
  if (!heddle__is_group(name, strlen(name))) return HEDDLE_OK;
  heddle_device *devices[64];
  size_t n = plan->n_devices < 64 ? plan->n_devices : 64, index;
  for (size_t i = 0; i < n; i++) devices[i] = plan->devices[i].dev;
  heddle_status s = heddle__group_among(plan->req.ctx, name, devices, n, &index, err);
  if (s == HEDDLE_OK && index < n) *device = (uint32_t)index;
  return s;
}

static void list_devices(const heddle__plan *plan, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t i = 0; i < plan->n_devices && used < size; i++) {
    int k = snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ",", plan->devices[i].dev->name);
    if (k > 0) used += (size_t)k;
  }
}

/* The plugin that has devices of a type of DLPack's. */
static const char *plugin_of(int32_t type) {
  switch (type) {
  case HEDDLE_DEVICE_CPU: return "cpu";
  case HEDDLE_DEVICE_CUDA: return "cuda";
  case HEDDLE_DEVICE_OPENCL: return "opencl";
  case HEDDLE_DEVICE_VULKAN: return "vulkan";
  case 8: return "metal";
  case HEDDLE_DEVICE_ROCM: return "rocm";
  default: return NULL;
  }
}

/* The first device in use of the type that the graph's column device_index names for a node. */
static heddle_status wanted_type(heddle__plan *plan, const heddle__node *n, int32_t type, uint32_t *device,
                                 const char **cause, heddle_error *err) {
  for (uint32_t i = 0; i < plan->n_devices; i++) {
    if (!heddle__is_type(plan->devices[i].dev->desc.type, type)) continue;
    for (uint32_t k = i + 1; k < plan->n_devices && type == HEDDLE_DEVICE_EXT; k++) {
      const heddle_device *a = plan->devices[i].dev, *b = plan->devices[k].dev;
      if (!heddle__is_own_type(b->desc.type) || b->plugin == a->plugin) continue;
      return heddle__at_node(
          heddle__fail(
              err, HEDDLE_EINVAL,
              "%s: node '%s' is for a device of DLPack's type %d (device_index), which is ambiguous: %s and %s "
              "are in use; place the node with a rule, or ignore the annotations",
              plan->req.graph->source, n->name, (int)type, a->name, b->name),
          err, (uint32_t)(n - plan->req.graph->nodes), n->name);
    }
    *device = i;
    *cause = heddle__plan_format(plan, "device type %d", (int)type);
    return *cause != NULL ? HEDDLE_OK : heddle__no_memory(err, "a placement");
  }
  if (plan->req.is_spare) return HEDDLE_OK;
  char list[256];
  list_devices(plan, list, sizeof list);
  const char *plugin = plugin_of(type);
  return heddle__at_node(
      heddle__fail(err, HEDDLE_ENODEV,
                   "%s: node '%s' is for a device of DLPack's type %d (device_index%s%s%s), and none of the devices "
                   "in use is one (%s): add one to the list, place the node with a rule, or ignore the annotations",
                   plan->req.graph->source, n->name, (int)type, plugin != NULL ? "; plugin '" : "",
                   plugin != NULL ? plugin : "", plugin != NULL ? "' has those" : "", list),
      err, (uint32_t)(n - plan->req.graph->nodes), n->name);
}

/* The device that the caller or the graph wants for a node; HEDDLE__NONE where neither says anything. */
static heddle_status wanted(heddle__plan *plan, const heddle__node *n, uint32_t *device, const char **cause,
                            heddle_error *err) {
  *device = HEDDLE__NONE;
  for (uint32_t i = plan->req.n_rules; i-- > 0;) {
    if (fnmatch(plan->req.rules[i].pattern, n->name, 0) != 0) continue;
    *device = plan->req.rules[i].device;
    *cause = heddle__plan_format(plan, "rule %s", plan->req.rules[i].text);
    return *cause != NULL ? HEDDLE_OK : heddle__no_memory(err, "a placement");
  }
  if (plan->req.ignore_annotations) return HEDDLE_OK;
  if (n->device == NULL) {
    const int32_t *types = plan->req.graph->device_index;
    if (types == NULL || types[n->first_entry] == 0) return HEDDLE_OK;
    return wanted_type(plan, n, types[n->first_entry], device, cause, err);
  }
  *device = find_device(plan, n->device);
  *cause = "annotation";
  if (*device == HEDDLE__NONE) {
    heddle_status s = find_group(plan, n->device, device, err);
    if (s != HEDDLE_OK) return s;
  }
  if (*device != HEDDLE__NONE || plan->req.is_spare) return HEDDLE_OK;
  char list[256];
  list_devices(plan, list, sizeof list);
  return heddle__at_node(
      heddle__fail(err, HEDDLE_ENODEV,
                   "%s: node '%s' is annotated for device '%s', which is not among the devices in use (%s): add it "
                   "to the list, place the node with a rule (%s=%s), or ignore the annotations",
                   plan->req.graph->source, n->name, n->device, list, n->name, plan->devices[0].dev->name),
      err, (uint32_t)(n - plan->req.graph->nodes), n->name);
}

static heddle_status keep_answer(heddle__plan *plan, uint32_t node, uint32_t device, const char *cause,
                                 const heddle__answer *a) {
  heddle__placed *p = &plan->placed[node];
  p->device = device;
  p->cause = cause;
  p->ask = a->ask;
  p->offers = a->offers;
  p->n_offers = a->n_offers;
  plan->devices[device].used = true;
  return HEDDLE_OK;
}

/* A device of the context, outside the list, that would take the node: what the error recommends. */
static const char *who_would(heddle__plan *plan, heddle__answer *a) {
  size_t n = heddle_context_device_count(plan->req.ctx);
  for (size_t i = 0; i < n; i++) {
    heddle_device *dev = heddle_context_device(plan->req.ctx, i);
    bool listed = false;
    for (uint32_t k = 0; k < plan->n_devices; k++) listed = listed || plan->devices[k].dev == dev;
    heddle_error ignored;
    if (!listed && heddle__ask_device(plan, dev, a, &ignored) == HEDDLE_OK) return dev->name;
  }
  return NULL;
}

/* Asks the device's plugin, or the library whose function the node calls. */
static heddle_status ask(heddle__plan *plan, const heddle__node *n, uint32_t device, heddle__answer *a,
                         heddle_error *err) {
  return n->kind == HEDDLE__NODE_TVM ? heddle__foreign_ask(plan, n, device, a, err) : heddle__ask(plan, device, a, err);
}

heddle_status heddle__place_ask(heddle__plan *plan, uint32_t node, uint32_t device, heddle__answer *out,
                                heddle_error *err) {
  heddle_status s = heddle__ask_build(plan, &node, 1, NULL, out, err);
  return s == HEDDLE_OK ? ask(plan, &plan->req.graph->nodes[node], device, out, err) : s;
}

static heddle_status place_node(heddle__plan *plan, uint32_t i, complaint *c, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  const heddle__node *n = &g->nodes[i];
  uint32_t device = HEDDLE__NONE;
  const char *cause = NULL;
  heddle_status s = wanted(plan, n, &device, &cause, err);
  if (s != HEDDLE_OK) return s;
  plan->placed[i].is_free = device == HEDDLE__NONE;

  if (heddle__node_is_view(g, n)) {
    uint32_t source = n->inputs[0].node;
    if (device == HEDDLE__NONE && source != HEDDLE__ABSENT && plan->placed[source].device != HEDDLE__NONE) {
      device = plan->placed[source].device;
      cause = heddle__plan_format(plan, "follows %s", g->nodes[source].name);
      if (cause == NULL) return heddle__no_memory(err, "a placement");
    }
    plan->placed[i].device = device != HEDDLE__NONE ? device : 0;
    plan->placed[i].cause = cause != NULL ? cause : "preference";
    plan->devices[plan->placed[i].device].used = true;
    return HEDDLE_OK;
  }

  if (heddle__precedent_device(plan, i, device) != HEDDLE__NONE) { /* its region will be asked about */
    plan->placed[i].device = device != HEDDLE__NONE ? device : 0;
    plan->placed[i].cause = cause != NULL ? cause : "preference";
    plan->devices[plan->placed[i].device].used = true;
    return HEDDLE_OK;
  }
  heddle__answer a;
  s = heddle__ask_build(plan, &i, 1, NULL, &a, err);
  if (s != HEDDLE_OK) return s;
  heddle_error why = {0};
  if (device != HEDDLE__NONE) {
    s = ask(plan, n, device, &a, &why);
    if (s == HEDDLE_OK) return keep_answer(plan, i, device, cause, &a);
    if (s != HEDDLE_EUNSUPPORTED) {
      if (err != NULL) *err = why;
      return s;
    }
    char text[400];
    snprintf(text, sizeof text, "%s places it on %s: %.300s", cause, plan->devices[device].dev->name, why.text);
    complain(c, n, HEDDLE_EUNSUPPORTED, plan->devices[device].dev->name, text);
    return HEDDLE_OK;
  }
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    s = ask(plan, n, d, &a, &why);
    if (s == HEDDLE_OK)
      return keep_answer(plan, i, d, d == 0 ? "preference" : "preference: first that supports it", &a);
    if (s != HEDDLE_EUNSUPPORTED) {
      if (err != NULL) *err = why;
      return s;
    }
  }
  char text[700], list[128];
  list_devices(plan, list, sizeof list);
  const char *other = n->kind == HEDDLE__NODE_OP ? who_would(plan, &a) : NULL;
  if (other != NULL) {
    snprintf(text, sizeof text, "%.200s (the list '%s,%s' would serve it)", why.text, list, other);
  } else {
    snprintf(text, sizeof text, "%.300s", why.text);
  }
  complain(c, n, HEDDLE_EUNSUPPORTED, NULL, text);
  return HEDDLE_OK;
}

heddle_status heddle__pass_place(heddle__plan *plan, heddle_error *err) {
  const heddle_graph *g = plan->req.graph;
  if (plan->n_devices == 0) return heddle__fail(err, HEDDLE_ENODEV, "%s: no device to run on", g->source);
  plan->n_placed = g->n_nodes;
  plan->placed = heddle__plan_alloc(plan, g->n_nodes, sizeof *plan->placed);
  if (plan->placed == NULL) return heddle__no_memory(err, "placements");
  complaint c = {.used = 0};
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const heddle__node *n = &g->nodes[i];
    plan->placed[i].device = HEDDLE__NONE;
    bool used = false;
    for (uint32_t k = 0; k < n->n_outputs; k++) used = used || plan->values[n->first_entry + k].used;
    if (n->kind == HEDDLE__NODE_NULL || !used) continue;
    heddle_status s = place_node(plan, i, &c, err);
    if (s != HEDDLE_OK) return s;
  }
  if (c.nodes == 0) return plan->req.placer != NULL ? heddle__placer_place(plan->req.placer, plan, err) : HEDDLE_OK;
  if (c.unsaid != 0)
    heddle__fail(err, c.status, "%s: no device runs %u node%s: %.640s; and %u more", g->source, (unsigned)c.nodes,
                 c.nodes == 1 ? "" : "s", c.text, (unsigned)c.unsaid);
  else
    heddle__fail(err, c.status, "%s: no device runs %u node%s: %s", g->source, (unsigned)c.nodes,
                 c.nodes == 1 ? "" : "s", c.text);
  heddle__at_node(c.status, err, (uint32_t)(c.first - g->nodes), c.first->name);
  return heddle__at_device(c.status, err, c.device);
}
