/* core/layers/check.c: holds host and plugin to plugin.h: ranges, alignment, devices, capture, threads, regions, offers.
 * What the host did wrong is HEDDLE_EINTERNAL, what the plugin did HEDDLE_EABI, each naming the call. Handles are
 * looked up before this layer is asked. */
#include <string.h>

#include "core/error.h"
#include "core/layers/call.h"
#include "plugins/common/check/offer.h"

static const heddle_device *device_of(const heddle__call *c, const heddle__wrap *device) {
  const heddle__plugin *p = c->layers->plugin;
  return device->index < p->n_devices ? p->devices[device->index] : NULL;
}

static heddle_status check_range(heddle__call *c, const heddle__range *r) {
  const heddle__wrap *b = r->buffer;
  if (r->offset > b->bytes || r->bytes > b->bytes - r->offset)
    return heddle__broken(c, HEDDLE_EINTERNAL, "%llu bytes at %llu leave a buffer of %llu",
                          (unsigned long long)r->bytes, (unsigned long long)r->offset, (unsigned long long)b->bytes);
  const heddle_device *ours = device_of(c, c->device), *its = device_of(c, b->device);
  if (b->device != c->device) {
    if (!r->host_side || ours == NULL || its == NULL || ours->desc.event_domain != its->desc.event_domain)
      return heddle__broken(c, HEDDLE_EINTERNAL, "the buffer is of another device");
  }
  if (r->host_side && b->memory == HEDDLE_MEMORY_DEVICE)
    return heddle__broken(c, HEDDLE_EINTERNAL, "the host side is memory of kind DEVICE");
  if (r->operand && ours != NULL && r->offset % ours->desc.alignment != 0)
    return heddle__broken(c, HEDDLE_EINTERNAL, "the offset %llu is no multiple of %llu", (unsigned long long)r->offset,
                          (unsigned long long)ours->desc.alignment);
  return HEDDLE_OK;
}

static heddle_status before(void *state, heddle__call *c) {
  (void)state;
  heddle_status s = HEDDLE_OK;
  for (unsigned i = 0; i < c->n_ranges && s == HEDDLE_OK; i++) s = check_range(c, &c->range[i]);
  if (s != HEDDLE_OK || c->stream == NULL) return s;
  if ((c->flags & HEDDLE__NOT_CAPTURED) != 0 && atomic_load(&c->stream->capturing))
    return heddle__broken(c, HEDDLE_EINTERNAL, "the stream is being captured");
  if ((c->flags & HEDDLE__ANY_THREAD) == 0) {
    if (atomic_exchange(&c->stream->busy, true))
      return heddle__broken(c, HEDDLE_EINTERNAL, "two threads use the stream at the same time");
    c->held = true;
  }
  return HEDDLE_OK;
}

static void after(void *state, heddle__call *c) {
  (void)state;
  if (c->held) atomic_store(&c->stream->busy, false);
  c->held = false;
  if (c->status < 0 || c->status >= HEDDLE_STATUS_COUNT) {
    int number = (int)c->status;
    heddle__broken(c, HEDDLE_EABI, "%d is no status", number);
  } else if (c->status != HEDDLE_OK && c->status != HEDDLE_EBUSY && c->err != NULL) {
    const char *fault = contract_text_fault(c->err->text, sizeof c->err->text);
    if (fault != NULL) heddle__broken(c, HEDDLE_EABI, "it failed, and its error text %s", fault);
    else if (c->err->text[0] == '\0')
      heddle__broken(c, HEDDLE_EABI, "it failed with %s and no words", heddle_status_name(c->status));
    else if (c->err->status != c->status)
      heddle__broken(c, HEDDLE_EABI, "it returned %s, and its heddle_error says status %d",
                     heddle_status_name(c->status), (int)c->err->status);
  }
}

/* ---- regions and offers */

static bool indices_fit(const int32_t *list, uint32_t n, uint64_t values, bool absent) {
  if (n > 0 && list == NULL) return false;
  for (uint32_t i = 0; i < n; i++)
    if (list[i] < (absent ? -1 : 0) || (list[i] >= 0 && (uint64_t)list[i] >= values)) return false;
  return true;
}

static const void *element(const heddle_parray *a, uint64_t i) {
  return (const char *)a->data + i * a->stride;
}

heddle_status heddle__check_region(heddle__call *c, const heddle_pregion *r) {
  if (r == NULL || r->struct_size == 0 || r->nodes.count == 0 || r->nodes.data == NULL ||
      r->nodes.stride < sizeof(heddle_pnode) || (r->values.count > 0 && r->values.stride < sizeof(heddle_pvalue)))
    return heddle__broken(c, HEDDLE_EINTERNAL, "the region has no nodes, or its sizes are not set");
  if (!indices_fit(r->inputs, r->n_inputs, r->values.count, false) ||
      !indices_fit(r->outputs, r->n_outputs, r->values.count, false))
    return heddle__broken(c, HEDDLE_EINTERNAL, "an input or output of the region is not one of its values");
  for (uint64_t i = 0; i < r->nodes.count; i++) {
    const heddle_pnode *n = element(&r->nodes, i);
    if (n->struct_size == 0 || n->domain == NULL || n->op == NULL || n->name == NULL)
      return heddle__broken(c, HEDDLE_EINTERNAL, "node %llu lacks a size or a name", (unsigned long long)i);
    if (!indices_fit(n->inputs, n->n_inputs, r->values.count, true) ||
        !indices_fit(n->outputs, n->n_outputs, r->values.count, true))
      return heddle__broken(c, HEDDLE_EINTERNAL, "node '%.100s' refers to a value that is not there", n->name);
  }
  for (uint64_t i = 0; i < r->values.count; i++) {
    const heddle_pvalue *v = element(&r->values, i);
    bool good = v->struct_size != 0 && v->ndim >= 0 && (v->ndim == 0 || v->shape != NULL);
    for (int32_t k = 0; good && k < v->ndim; k++) good = v->shape[k] >= 0;
    if (!good) return heddle__broken(c, HEDDLE_EINTERNAL, "value %llu is malformed", (unsigned long long)i);
  }
  return HEDDLE_OK;
}

#define OFFER_BROKEN "the plugin broke the contract of op.query (plugin %s): %s"

/* The answer goes back through the plugin's query, so it uses the error of the sink. */
heddle_status heddle__check_offer(heddle__call *c, const heddle_pregion *r, const heddle_poffer *o, heddle_error *err) {
  const char *what = offer_fault(o);
  if (what != NULL) return heddle__fail(err, HEDDLE_EABI, OFFER_BROKEN, c->layers->plugin->name, what);
  if (o->workspace_bytes > 0 && (o->workspace_align == 0 || (o->workspace_align & (o->workspace_align - 1)) != 0))
    what = "workspace_align is no power of two";
  else if (o->n_in_place > 0 && o->in_place == NULL) what = "in_place is NULL";
  else if (!(o->cost_ns >= 0)) what = "cost_ns is negative or no number";
  for (uint64_t i = 0; what == NULL && i < o->n_in_place; i++)
    if (o->in_place[2 * i] < 0 || (uint32_t)o->in_place[2 * i] >= r->n_inputs || o->in_place[2 * i + 1] < 0 ||
        (uint32_t)o->in_place[2 * i + 1] >= r->n_outputs)
      what = "an in_place pair is no input and output";
  for (uint32_t i = 0; what == NULL && o->input_flags != NULL && i < r->n_inputs; i++) {
    const heddle_pvalue *v = element(&r->values, (uint64_t)r->inputs[i]);
    if ((o->input_flags[i] & HEDDLE_INPUT_ABSORBED) != 0 && v->data == NULL && v->data_bytes == 0)
      what = "an input without data is absorbed";
  }
  if (what == NULL) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EABI, OFFER_BROKEN, c->layers->plugin->name, what);
}

const heddle__layer heddle__layer_check = {"check", NULL, NULL, before, after};
