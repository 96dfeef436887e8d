/* remote/library.c: functions of compiled libraries that a client sent, where the server runs them (--allow-libraries). A
 * library is a constant of the regions that call it (HEDDLE_DOMAIN_LIBRARY in heddle/plugin.h); it is written into the folder
 * of the session's process and opened once. Its code has the rights of that process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/whole_file.h"
#include "modules/call_device.h"
#include "plugins/common/perror.h"
#include "remote/session.h"

struct remote_library {
  remote_library *next;
  wire_blob_id id;
  heddle_module *module;
  heddle__tvm_caller callers[]; /* by the number of the device */
};

/* What a region of the domain says, checked. */
typedef struct call {
  const heddle_pnode *node;
  const heddle_pvalue *file;
  int64_t device_type;
} call;

bool remote_calls_library(const heddle_pregion *region) {
  const heddle_pnode *first = region->nodes.data;
  return strcmp(first->domain, HEDDLE_DOMAIN_LIBRARY) == 0;
}

static int64_t number_of(const heddle_pnode *node, const char *name, int64_t usual) {
  const heddle_pattr *attrs = node->attrs.data;
  for (uint64_t i = 0; i < node->attrs.count; i++)
    if (attrs[i].kind == HEDDLE_ATTR_INT && strcmp(attrs[i].name, name) == 0) return *(const int64_t *)attrs[i].data;
  return usual;
}

static bool has(const int32_t *list, uint32_t n, int32_t value) {
  for (uint32_t i = 0; i < n; i++)
    if (list[i] == value) return true;
  return false;
}

static heddle_status read_call(const heddle_pregion *region, call *c, heddle_error *err) {
  const heddle_pvalue *values = region->values.data;
  const heddle_pnode *node = c->node = region->nodes.data;
  const int64_t at = number_of(node, "library", -1);
  bool good = region->nodes.count == 1 && at >= 0 && (uint64_t)at < region->values.count && values[at].data != NULL;
  for (uint32_t i = 0; i < node->n_inputs && good; i++) good = has(region->inputs, region->n_inputs, node->inputs[i]);
  for (uint32_t i = 0; i < node->n_outputs && good; i++)
    good = has(region->outputs, region->n_outputs, node->outputs[i]);
  for (uint64_t i = 0; i < region->values.count && good; i++) good = values[i].layout == 0;
  if (!good) return p_fail(err, HEDDLE_EFORMAT, 0, "a call of a library's function is malformed");
  c->file = &values[at];
  c->device_type = number_of(node, "device_type", 0);
  return HEDDLE_OK;
}

/* ---- libraries */

/* A constant that was sent before has its name already. */
static wire_blob_id name_of(const remote_session *s, const heddle_pvalue *file) {
  for (uint32_t i = 0; i < s->n_blobs; i++)
    if (s->blobs[i].data == file->data && s->blobs[i].id.bytes == file->data_bytes) return s->blobs[i].id;
  return wire_blob_of(file->data, file->data_bytes);
}

static heddle_status load(remote_session *s, const heddle_pvalue *file, heddle_module **out, heddle_error *err) {
  char path[64];
  snprintf(path, sizeof path, "./library-%u.so", s->n_libraries);
  heddle_status status = heddle__file_write(path, file->data, (size_t)file->data_bytes, err);
  if (status == HEDDLE_OK) status = heddle_module_load(s->ctx, path, out, err);
  (void)unlink(path); /* it is mapped */
  return status;
}

static heddle_status find(remote_session *s, const heddle_pvalue *file, remote_library **out, heddle_error *err) {
  const wire_blob_id id = name_of(s, file);
  remote_library *l = s->libraries;
  while (l != NULL && memcmp(&l->id, &id, sizeof id) != 0) l = l->next;
  *out = l;
  if (l != NULL) return HEDDLE_OK;
  if (!remote_hold(s, id.bytes, err)) return HEDDLE_ENOMEM;
  l = calloc(1, sizeof *l + s->n_devices * sizeof l->callers[0]);
  heddle_status status =
      l != NULL ? load(s, file, &l->module, err) : p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a library");
  if (status != HEDDLE_OK) {
    remote_unhold(s, id.bytes);
    free(l);
    return status;
  }
  l->id = id;
  for (uint32_t i = 0; i < s->n_devices; i++)
    l->callers[i] = (heddle__tvm_caller){
        .library = l->module->library, .pool = heddle__context_pool(s->ctx), .dev = s->devices[i].dev};
  l->next = s->libraries;
  s->libraries = l;
  s->n_libraries++;
  *out = l;
  return HEDDLE_OK;
}

void remote_libraries_leave(remote_session *s, const remote_device *d) {
  for (remote_library *l = s->libraries; l != NULL; l = l->next) {
    heddle__tvm_caller *caller = &l->callers[d - s->devices];
    if (caller->device != NULL) l->module->t->detach(caller);
  }
}

void remote_libraries_finish(remote_session *s) {
  while (s->libraries != NULL) {
    remote_library *l = s->libraries;
    s->libraries = l->next;
    heddle_module_release(l->module);
    free(l);
  }
}

/* ---- questions and preparation */

static heddle_status open_call(remote_session *s, const remote_device *d, const heddle_pregion *region, call *c,
                               remote_library **out, heddle_error *err) {
  if (!s->limits->allow_libraries)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                  "the server runs no code of its clients; heddle device-server --allow-libraries does");
  heddle_status status = read_call(region, c, err);
  if (status == HEDDLE_OK) status = find(s, c->file, out, err);
  if (status != HEDDLE_OK) return status;
  status = heddle__library_fits((*out)->module, c->node->op, (int32_t)c->device_type, d->dev, err);
  return status == HEDDLE_ENOTFOUND ? HEDDLE_EUNSUPPORTED : status; /* another device may run it */
}

heddle_status remote_library_query(remote_session *s, const remote_device *d, const heddle_pregion *region,
                                   heddle_offer_fn offer, void *sink, heddle_error *err) {
  remote_library *l;
  call c;
  const heddle_status status = open_call(s, d, region, &c, &l, err);
  const heddle_poffer o = {
      .struct_size = sizeof o, .flags = heddle__device_inline(d->dev) ? 0 : HEDDLE_OFFER_BARE, .workspace_align = 1};
  return status == HEDDLE_OK ? offer(sink, &o, err) : status;
}

heddle_status remote_library_prepare(remote_session *s, const remote_device *d, const heddle_pregion *region,
                                     remote_op *op, heddle_error *err) {
  remote_library *l;
  call c;
  heddle_status status = open_call(s, d, region, &c, &l, err);
  if (status != HEDDLE_OK) return status;
  heddle__tvm_caller *caller = &l->callers[d - s->devices];
  if (!heddle__device_inline(d->dev) && caller->device == NULL) status = l->module->t->attach(caller, err);
  if (status == HEDDLE_OK)
    status = l->module->t->op->prepare((heddle_pdevice *)(void *)caller, region, 0, &op->op, err);
  if (status == HEDDLE_OK) op->table = l->module->t->op;
  return status;
}
