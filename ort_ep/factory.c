/* ort_ep/factory.c: the library's entry points, and the providers of sessions with their options. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "plugins/common/perror.h"
#include "ort_ep/ep.h"

typedef struct factory {
  ort_factory base; /* first: ONNX Runtime knows it by this */
  const ort_api *api;
} factory;

/* ---- small things that all parts use */

ort_status *ep_status(const ort_api *api, heddle_status s, const heddle_error *err) {
  if (s == HEDDLE_OK) return NULL;
  const int code = s == HEDDLE_EINVAL         ? ORT_INVALID_ARGUMENT
                   : s == HEDDLE_EUNSUPPORTED ? ORT_NOT_IMPLEMENTED
                                              : ORT_EP_FAIL;
  return ORT(api, CreateStatus)(code, err->text);
}

heddle_status ep_take(const ep *e, ort_status *status, heddle_error *err) {
  if (status == NULL) return HEDDLE_OK;
  const heddle_status s = p_fail(err, HEDDLE_EINVAL, 0, "ONNX Runtime: %.400s", ORT(e->api, GetErrorMessage)(status));
  ORT(e->api, ReleaseStatus)(status);
  return s;
}

void ep_log(const ep *e, int level, const char *text) {
  ep_take(e, ORT(e->api, Logger_LogMessage)(e->logger, level, text, "heddle", 0, "heddle"), NULL);
}

const char *ep_value_name(const ep *e, const ort_value_info *v) {
  const char *name = NULL;
  if (v == NULL || ep_take(e, ORT(e->api, GetValueInfoName)(v, &name), NULL) != HEDDLE_OK || name == NULL) return "";
  return name;
}

heddle_status ep_node_values(const ep *e, const ort_node *node, bool outputs, heddle__arena *arena,
                             const ort_value_info ***out, size_t *n, heddle_error *err) {
  heddle_status s =
      ep_take(e, outputs ? ORT(e->api, Node_GetNumOutputs)(node, n) : ORT(e->api, Node_GetNumInputs)(node, n), err);
  if (s != HEDDLE_OK) return s;
  *out = heddle__arena_take(arena, *n + 1, sizeof **out);
  if (*out == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a node's values");
  return ep_take(
      e, outputs ? ORT(e->api, Node_GetOutputs)(node, *out, *n) : ORT(e->api, Node_GetInputs)(node, *out, *n), err);
}

/* ---- options of a session: "ep.heddleexecutionprovider.KEY" */

static const char *keep(ep *e, const char *value, heddle_error *err) {
  char *to = heddle__arena_take(&e->texts, strlen(value) + 1, 1);
  if (to == NULL) p_fail(err, HEDDLE_ENOMEM, 0, "no memory for options");
  else memcpy(to, value, strlen(value) + 1);
  return to;
}

/* A list "A,B" of rules as an array. */
static heddle_status keep_rules(ep *e, const char *value, const char **rules, size_t *n, heddle_error *err) {
  char *at = (char *)(uintptr_t)keep(e, value, err);
  if (at == NULL) return HEDDLE_ENOMEM;
  for (*n = 0; at != NULL;) {
    char *next = strchr(at, ',');
    if (next != NULL) *next++ = '\0';
    if (*n == EP_MOST_RULES) return p_fail(err, HEDDLE_ELIMIT, 0, "more than %d rules", (int)EP_MOST_RULES);
    if (at[0] != '\0') rules[(*n)++] = at;
    at = next;
  }
  return HEDDLE_OK;
}

static heddle_status set_option(ep *e, const char *key, const char *value, heddle_error *err) {
  heddle_model_options *o = &e->options;
  const struct {
    const char *key;
    const char **text;
  } texts[] = {{"device", &o->devices},
               {"devices", &o->devices},
               {"optimize", &o->optimize},
               {"memory", &o->memory},
               {"on_failure", &o->on_failure}};
  if (strcmp(key, "place") == 0) {
    o->place = e->place;
    return keep_rules(e, value, e->place, &o->n_place, err);
  }
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    if (strcmp(key, texts[i].key) != 0) continue;
    *texts[i].text = keep(e, value, err);
    return *texts[i].text != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
  }
  return p_fail(err, HEDDLE_EINVAL, 0,
                "%s has no option '%.60s'; it has device, place, optimize, memory and on_failure", EP_NAME, key);
}

static heddle_status read_options(ep *e, const ort_session_options *from, heddle_error *err) {
  static const char prefix[] = "ep." EP_NAME ".";
  const char *const *keys = NULL, *const *values = NULL;
  ort_pairs *pairs = NULL;
  size_t n = 0;
  heddle_status s = ep_take(e, ORT(e->api, GetSessionOptionsConfigEntries)(from, &pairs), err);
  if (s != HEDDLE_OK) return s;
  ORT(e->api, GetKeyValuePairs)(pairs, &keys, &values, &n);
  for (size_t i = 0; i < n && s == HEDDLE_OK; i++)
    if (strncasecmp(keys[i], prefix, sizeof prefix - 1) == 0)
      s = set_option(e, keys[i] + sizeof prefix - 1, values[i], err);
  ORT(e->api, ReleaseKeyValuePairs)(pairs);
  return s;
}

/* Whether a model can be made with the options: a wrong device would else leave all nodes to ONNX Runtime. */
static heddle_status try_options(const ep *e, heddle_error *err) {
  static const char least[] =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"Identity\", \"name\": \"y\", "
      "\"inputs\": [[0, 0, 0]]}], \"arg_nodes\": [0], \"heads\": [[1, 0, 0]], \"node_row_ptr\": [0, 1, 2], \"attrs\": "
      "{\"shape\": [\"list_shape\", [[4], [4]]], \"dltype\": [\"list_str\", [\"float32\", \"float32\"]]}, "
      "\"heddle\": {\"version\": 1, \"opset\": 13}}";
  heddle_model *model = NULL;
  const heddle_status s = heddle_model_parse(e->ctx, least, sizeof least - 1, NULL, &e->options, &model, err);
  heddle_model_release(model);
  return s;
}

/* ---- providers */

static const char *ep_name(const ort_ep *self) {
  (void)self;
  return EP_NAME;
}

static void release_ep(ort_factory *self, ort_ep *base) {
  ep *e = (ep *)base;
  (void)self;
  if (e == NULL) return;
  heddle_context_release(e->ctx);
  heddle__arena_drop(&e->texts);
  free(e);
}

static ort_status *create_ep(ort_factory *self, const ort_hardware *const *hardware, const ort_pairs *const *metadata,
                             size_t n, const ort_session_options *options, const ort_logger *logger, ort_ep **out) {
  factory *f = (factory *)self;
  heddle_error err = {0};
  (void)hardware;
  (void)metadata;
  (void)n;
  ep *e = calloc(1, sizeof *e);
  *out = NULL;
  if (e == NULL) return ORT(f->api, CreateStatus)(ORT_FAIL, "no memory for a provider");
  e->base = (ort_ep){.version = ORT_API_VERSION,
                     .get_name = ep_name,
                     .get_capability = ep_get_capability,
                     .compile = ep_compile,
                     .release_computes = ep_release_computes};
  e->api = f->api;
  e->logger = logger;
  e->options = (heddle_model_options){.struct_size = sizeof e->options};
  heddle_status s = heddle_context_process(&e->ctx, &err);
  if (s == HEDDLE_OK) s = read_options(e, options, &err);
  if (s == HEDDLE_OK) s = try_options(e, &err);
  if (s == HEDDLE_OK) *out = &e->base;
  else release_ep(self, &e->base);
  return ep_status(f->api, s, &err);
}

/* ---- the factory */

static const char *factory_name(const ort_factory *self) {
  (void)self;
  return EP_NAME;
}

static const char *factory_vendor(const ort_factory *self) {
  (void)self;
  return "Heddle";
}

static uint32_t factory_vendor_id(const ort_factory *self) {
  (void)self;
  return 0; /* of no PCI device */
}

static const char *factory_version(const ort_factory *self) {
  (void)self;
  return heddle_version();
}

/* Heddle chooses among its own devices, by the option "device". The provider is offered once, for the processor. */
static ort_status *get_devices(ort_factory *self, const ort_hardware *const *hardware, size_t n, ort_ep_device **out,
                               size_t most, size_t *count) {
  factory *f = (factory *)self;
  const ort_create_ep_device create = (ort_create_ep_device)ORT(f->api, GetEpApi)()->at[ORT_AT_CREATE_EP_DEVICE];
  *count = 0;
  for (size_t i = 0; i < n && *count < most && *count == 0; i++) {
    if (ORT(f->api, HardwareDevice_Type)(hardware[i]) != ORT_HARDWARE_CPU) continue;
    ort_status *s = create(self, hardware[i], NULL, NULL, &out[*count]);
    if (s != NULL) return s;
    *count += 1;
  }
  return NULL;
}

/* Its devices' memory is the host's, to ONNX Runtime. */
static ort_status *create_allocator(ort_factory *self, const void *memory, const ort_pairs *options, void **out) {
  (void)self;
  (void)memory;
  (void)options;
  *out = NULL;
  return NULL;
}

static void release_allocator(ort_factory *self, void *allocator) {
  (void)self;
  (void)allocator;
}

static ort_status *create_transfer(ort_factory *self, void **out) {
  (void)self;
  *out = NULL;
  return NULL;
}

static bool is_stream_aware(const ort_factory *self) {
  (void)self;
  return false;
}

HEDDLE_API ort_status *CreateEpFactories(const char *name, const ort_api_base *base, const ort_logger *logger,
                                         ort_factory **factories, size_t most, size_t *count);
HEDDLE_API ort_status *ReleaseEpFactory(ort_factory *self);

ort_status *CreateEpFactories(const char *name, const ort_api_base *base, const ort_logger *logger,
                              ort_factory **factories, size_t most, size_t *count) {
  (void)name;
  (void)logger;
  *count = 0;
  const ort_api *api = base->get_api(ORT_API_VERSION);
  if (api == NULL) { /* older than 1.23: there is no function that could make a status */
    fprintf(stderr, "%s needs ONNX Runtime 1.23 or later; this is %s\n", EP_NAME, base->get_version());
    return NULL;
  }
  factory *f = most > 0 ? calloc(1, sizeof *f) : NULL;
  if (f == NULL) return ORT(api, CreateStatus)(ORT_FAIL, "no memory for a factory of providers");
  f->api = api;
  f->base = (ort_factory){.version = ORT_API_VERSION,
                          .get_name = factory_name,
                          .get_vendor = factory_vendor,
                          .get_devices = get_devices,
                          .create_ep = create_ep,
                          .release_ep = release_ep,
                          .get_vendor_id = factory_vendor_id,
                          .get_version = factory_version,
                          .create_allocator = create_allocator,
                          .release_allocator = release_allocator,
                          .create_transfer = create_transfer,
                          .is_stream_aware = is_stream_aware};
  factories[0] = &f->base;
  *count = 1;
  return NULL;
}

ort_status *ReleaseEpFactory(ort_factory *self) {
  free(self);
  return NULL;
}
