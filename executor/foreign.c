/* executor/foreign.c: what place and regions ask of a compiled library in place of a device's plugin. On inline devices
 * of type cpu its functions take addresses; on devices that its modules have code for, whole buffers. Devices with
 * HEDDLE_CAP_LIBRARIES get the library with the question, and run its functions themselves. */
#include "executor/foreign.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/parts.h"
#include "modules/call_device.h"

static bool takes_libraries(const heddle_device *dev) {
  return (dev->desc.caps & HEDDLE_CAP_LIBRARIES) != 0 && dev->t->has_op;
}

heddle_status heddle__foreign_init(heddle_model *m, heddle_module *library, heddle_error *err) {
  if (!HEDDLE_HAS_TVM) return heddle__left_out(err, "loaders of compiled libraries", "HEDDLE_TVM");
  m->library = heddle_module_retain(library);
  m->foreigns = heddle__alloc(m->n_devices, sizeof *m->foreigns);
  m->callers = heddle__alloc(m->n_devices, sizeof *m->callers);
  if (m->foreigns == NULL || m->callers == NULL) return heddle__no_memory(err, "a model's library");
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < m->n_devices && s == HEDDLE_OK; i++) {
    heddle_device *dev = m->devices[i];
    bool is_inline = heddle__device_inline(dev);
    heddle__tvm_caller *caller = &m->callers[i];
    *caller = (heddle__tvm_caller){.library = library->library, .pool = heddle__context_pool(m->ctx), .dev = dev};
    if (takes_libraries(dev) && !library->is_system) {
      s = heddle__module_image(library, err);
      continue;
    }
    if (is_inline && (dev->desc.type != HEDDLE_DEVICE_CPU || dev->t->memory.native == NULL)) continue;
    if (!is_inline && (!dev->t->has_module || !library->t->serves(library->library, dev->desc.type))) continue;
    if (!is_inline) s = library->t->attach(caller, err);
    m->foreigns[i] =
        (heddle__foreign){library->t->op, (heddle_pdevice *)(void *)caller, is_inline ? library->t->row : NULL};
  }
  return s;
}

void heddle__foreign_finish(heddle_model *m) {
  for (uint32_t i = 0; HEDDLE_HAS_TVM && m->callers != NULL && m->foreigns != NULL && i < m->n_devices; i++)
    if (m->callers[i].device != NULL) m->library->t->detach(&m->callers[i]);
  heddle__free(m->foreigns);
  heddle__free(m->callers);
}

/* The node as the library sees it: its op is the function, and its attributes are n numbers. Memory is the plan's. */
static heddle_status rename_node(heddle__plan *plan, const heddle__node *n, heddle_pnode *node,
                                 const char *const *names, const int64_t *numbers, uint32_t count, heddle_error *err) {
  heddle_pattr *attrs = heddle__plan_alloc(plan, count, sizeof *attrs);
  int64_t *values = heddle__plan_alloc(plan, count, sizeof *values);
  if (attrs == NULL || values == NULL) return heddle__no_memory(err, "a node's function");
  for (uint32_t i = 0; i < count; i++) {
    values[i] = numbers[i];
    attrs[i] = (heddle_pattr){sizeof attrs[i], HEDDLE_ATTR_INT, names[i], &values[i], 1};
  }
  node->op = n->func_name;
  node->attrs = (heddle_parray){attrs, count, sizeof *attrs};
  return HEDDLE_OK;
}

/* Two arrays of zeros serve all members of an offer: layouts are plain, nothing is absorbed. */
static heddle_status offer(heddle__plan *plan, heddle__answer *a, uint32_t flags, heddle_error *err) {
  uint32_t n = a->ask->n_inputs > a->ask->n_outputs ? a->ask->n_inputs : a->ask->n_outputs;
  heddle_layout *plain = heddle__plan_alloc(plan, (size_t)n + 1, sizeof *plain);
  a->offers = heddle__plan_alloc(plan, 1, sizeof *a->offers);
  if (plain == NULL || a->offers == NULL) return heddle__no_memory(err, "an offer");
  a->n_offers = 1;
  a->offers[0] = (heddle__offer){.flags = flags,
                                 .input_layouts = plain,
                                 .output_layouts = plain,
                                 .input_flags = (const uint32_t *)(const void *)plain,
                                 .in_place = (const int32_t *)(const void *)plain,
                                 .extends = (const int32_t *)(const void *)plain,
                                 .workspace_align = 1};
  return HEDDLE_OK;
}

/* What an entry's memory has to be by the graph; NULL: plain bytes. */
static const char *scope_of(const heddle_graph *g, uint32_t entry) {
  const char *scope = g->storage_scope != NULL ? g->storage_scope[entry] : "";
  return scope[0] == '\0' || strcmp(scope, "global") == 0 ? NULL : scope;
}

/* How many leading dimensions of a tensor are the rows of its image; what is left, but for the last one, are the columns,
 * and the last one is a pixel (docs/tvm.md). 0 and more than the dimensions: such a tensor is no image. */
static uint32_t rows_of(const char *scope, uint32_t ndim) {
  if (strcmp(scope, "global.texture") == 0) return ndim >= 2 ? ndim - 2 : UINT32_MAX;
  if (strcmp(scope, "global.texture-weight") == 0) return 1;
  if (strcmp(scope, "global.texture-nhwc") == 0) return ndim == 3 ? 1 : 2;
  return UINT32_MAX;
}

static bool has_channels(heddle_dtype t) {
  if (t.lanes != 1) return false;
  if (t.code == HEDDLE_DTYPE_FLOAT) return t.bits == 16 || t.bits == 32;
  return (t.code == HEDDLE_DTYPE_INT || t.code == HEDDLE_DTYPE_UINT) && (t.bits == 8 || t.bits == 16 || t.bits == 32);
}

/* The image that an entry is in a function on the device, by its scope. */
static heddle_status image_of(const heddle__plan *plan, uint32_t entry, const char *function, const heddle_device *dev,
                              heddle__image *out, heddle_error *err) {
  const char *scope = scope_of(plan->req.graph, entry);
  const heddle__known *k = &plan->values[entry].known;
  *out = (heddle__image){0};
  if (scope == NULL) return HEDDLE_OK;
  const uint32_t rows = rows_of(scope, k->ndim);
  if (strstr(scope, "texture") == NULL || heddle__device_inline(dev) || dev->desc.max_image_width == 0)
    return heddle__fail_on(
        dev->name, err, HEDDLE_EUNSUPPORTED,
        "function '%.200s' takes a tensor in memory of kind '%.60s' (storage_scope), and %s has %s: compile the model "
        "for a target without it",
        function, scope, dev->name,
        strstr(scope, "texture") != NULL ? "no images, which such textures are" : "no memory of this kind");
  if (rows >= k->ndim || k->shape[k->ndim - 1] != 4 || !has_channels(k->dtype))
    return heddle__fail_on(dev->name, err, HEDDLE_EUNSUPPORTED,
                           "function '%.200s' takes '%.200s' as a texture of kind '%.60s', and such a tensor cannot be "
                           "one: its last dimension is 4, there are dimensions for rows and columns, and its elements "
                           "are float32, float16 or integers of 8, 16 or 32 bits",
                           function, plan->values[entry].name, scope);
  uint64_t size[2] = {1, 1};
  for (uint32_t i = 0; i + 1 < k->ndim; i++) {
    uint64_t *side = &size[i < rows ? 1 : 0];
    *side = k->shape[i] >= 0 && (uint64_t)k->shape[i] <= UINT32_MAX ? *side * (uint64_t)k->shape[i] : UINT64_MAX;
    if (*side > UINT32_MAX) *side = UINT32_MAX;
  }
  if (size[0] > dev->desc.max_image_width || size[1] > dev->desc.max_image_height)
    return heddle__fail_on(
        dev->name, err, HEDDLE_EUNSUPPORTED,
        "function '%.200s' takes '%.200s' as a texture of %llu x %llu pixels, and %s has images of at "
        "most %u x %u",
        function, plan->values[entry].name, (unsigned long long)size[0], (unsigned long long)size[1], dev->name,
        (unsigned)dev->desc.max_image_width, (unsigned)dev->desc.max_image_height);
  if (size[0] > 0 && size[1] > 0) *out = (heddle__image){(uint32_t)size[0], (uint32_t)size[1], k->dtype};
  return HEDDLE_OK;
}

/* Kernels that were compiled for images must not get buffers. */
static heddle_status check_scopes(const heddle__plan *plan, const heddle__node *n, const heddle_device *dev,
                                  heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  heddle__image image;
  for (uint32_t i = 0; i < n->n_outputs && s == HEDDLE_OK; i++)
    s = image_of(plan, n->first_entry + i, n->func_name, dev, &image, err);
  for (uint32_t i = 0; i < n->n_inputs && s == HEDDLE_OK; i++)
    if (n->inputs[i].node != HEDDLE__ABSENT)
      s = image_of(plan, heddle__entry_id(plan->req.graph, n->inputs[i]), n->func_name, dev, &image, err);
  return s;
}

/* The file is one value more, which is no operand: a plugin that sends values away sends it once. */
static heddle_status ask_plugin(heddle__plan *plan, const heddle__node *n, int32_t type, uint32_t device,
                                heddle__answer *a, heddle_error *err) {
  static const char *const names[] = {"flatten_data", "library", "device_type"};
  const heddle_module *library = plan->req.library;
  const uint64_t count = a->ask->values.count;
  const int64_t numbers[] = {n->flatten_data, (int64_t)count, type};
  heddle_pvalue *values = heddle__plan_alloc(plan, count + 1, sizeof *values);
  int64_t *bytes = heddle__plan_alloc(plan, 1, sizeof *bytes);
  if (values == NULL || bytes == NULL) return heddle__no_memory(err, "a node's function");
  memcpy(values, a->ask->values.data, count * sizeof *values);
  *bytes = (int64_t)library->image_bytes;
  values[count] = (heddle_pvalue){.struct_size = sizeof *values,
                                  .dtype = {HEDDLE_DTYPE_UINT, 8, 1},
                                  .shape = bytes,
                                  .data = library->image,
                                  .data_bytes = library->image_bytes,
                                  .ndim = 1};
  a->ask->values = (heddle_parray){values, count + 1, sizeof *values};
  heddle_pnode *node = (heddle_pnode *)(uintptr_t)a->ask->nodes.data;
  node->domain = HEDDLE_DOMAIN_LIBRARY;
  heddle_status s = rename_node(plan, n, node, names, numbers, 3, err);
  return s == HEDDLE_OK ? heddle__ask(plan, device, a, err) : s;
}

/* Whether the library has the function at all, and code for the device where it runs here. */
static heddle_status check_function(const heddle__plan *plan, const heddle__node *n, const heddle_device *dev,
                                    int32_t type, heddle_error *err) {
  const heddle_module *library = plan->req.library;
  const char *kind;
  int32_t of;
  if (!takes_libraries(dev) || library->image == NULL)
    return heddle__library_fits(library, n->func_name, type, dev, err);
  return library->t->find(library->library, n->func_name, &of, &kind, err);
}

heddle_status heddle__foreign_ask(heddle__plan *plan, const heddle__node *n, uint32_t device, heddle__answer *a,
                                  heddle_error *err) {
  static const char *const names[] = {"flatten_data"};
  const int64_t numbers[] = {n->flatten_data};
  if (!HEDDLE_HAS_TVM) return heddle__left_out(err, "loaders of compiled libraries", "HEDDLE_TVM");
  const heddle_device *dev = plan->devices[device].dev;
  const int32_t *said = plan->req.graph->device_index;
  const int32_t type = said != NULL ? said[n->first_entry] : 0;
  heddle_status s = check_function(plan, n, dev, type, err);
  if (s == HEDDLE_OK) s = check_scopes(plan, n, dev, err);
  if (s != HEDDLE_OK) return s == HEDDLE_ENOTFOUND ? heddle__prefix(err, HEDDLE_EUNSUPPORTED, "%s", "") : s;
  if (takes_libraries(dev)) return ask_plugin(plan, n, type, device, a, err);
  s = rename_node(plan, n, (heddle_pnode *)(uintptr_t)a->ask->nodes.data, names, numbers, 1, err);
  return s == HEDDLE_OK ? offer(plan, a, heddle__device_inline(dev) ? 0 : HEDDLE_OFFER_BARE, err) : s;
}

void heddle__foreign_take(heddle__plan *plan, heddle__region *r) {
  const heddle_module *library = plan->req.library;
  if (!HEDDLE_HAS_TVM) return;
  uint64_t align = library->t->alignment(library->library);
  if (!takes_libraries(plan->devices[r->device].dev)) r->foreign = &plan->req.foreigns[r->device];
  for (uint32_t i = 0; i < r->n_inputs + r->n_outputs; i++) {
    uint32_t value = i < r->n_inputs ? r->inputs[i] : r->outputs[i - r->n_inputs];
    heddle__value *v = &plan->values[plan->values[value].same_as];
    if (v->align < align) v->align = align;
    /* It was checked when the device was asked. */
    if (value < plan->req.graph->n_entries && plan->devices[r->device].dev->desc.max_image_width > 0)
      (void)image_of(plan, value, r->label, plan->devices[r->device].dev, &plan->values[value].image, NULL);
  }
}
