/* The part of an accelerator's driver that is the same for all (op.h). */
#include "plugins/common/kernels/op.h"

#include <stddef.h>
#include <string.h>

#include "plugins/common/perror.h"
#include "plugins/common/region.h"

#define LAUNCH_NS 5000.0 /* of a step, beside its work */

heddle_status k_op_offer(const k_site *site, const heddle_pregion *region, k_accept accept, void *ctx,
                         heddle_offer_fn offer, void *sink, heddle_error *err) {
  k_plan plan;
  heddle_status s = k_plan_make(site->host, region, site->features, &plan, err);
  if (s != HEDDLE_OK) return s;
  uint64_t workspace = k_workspace_bytes(&plan);
  s = accept(ctx, region, &plan, &workspace, err);
  const heddle_poffer answer = {
      .struct_size = sizeof answer,
      .flags = k_may_resize(region, &plan) ? HEDDLE_OFFER_RESIZES : 0,
      .input_flags = plan.input_flags,
      .in_place = plan.pairs,
      .n_in_place = plan.n_pairs,
      .workspace_bytes = workspace,
      .workspace_align = site->workspace_align,
      .kept_bytes = k_plan_kept(&plan),
      .extends = plan.extends,
      .n_extends = plan.n_extends,
      .cost_ns = LAUNCH_NS * plan.n_steps + plan.work / (site->compute_units > 0 ? site->compute_units : 1),
  };
  if (s == HEDDLE_OK) s = offer(sink, &answer, err);
  k_plan_free(&plan);
  return s;
}

heddle_status k_op_memory(const k_site *site, uint64_t count, uint64_t bytes, void **out, heddle_error *err) {
  const heddle_host *host = site->host;
  *out = count <= SIZE_MAX / bytes ? host->alloc(host->ctx, count * bytes, _Alignof(max_align_t)) : NULL;
  if (*out == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for an operator", site->name, site->index);
  memset(*out, 0, (size_t)(count * bytes));
  return HEDDLE_OK;
}

static void set_bytes(k_op *op, const heddle_pregion *region) {
  for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    const bool is_input = i < op->n_inputs;
    const heddle_pvalue *value = region_value(region, is_input ? region->inputs[i] : region->outputs[i - op->n_inputs]);
    if (value == NULL || (is_input && (op->plan.input_flags[i] & HEDDLE_INPUT_ABSORBED) != 0)) continue;
    region_value_bytes(value, &op->bytes[i]);
  }
  memcpy(op->bytes + k_op_table(op) + 1, op->plan.part_bytes, sizeof op->plan.part_bytes);
}

heddle_status k_op_fill(const k_site *site, const heddle_host *host, const heddle_pregion *region, const k_plan *like,
                        k_op *out, heddle_error *err) {
  heddle_status s = k_plan_make_like(host, region, site->features, like, &out->plan, err);
  if (s != HEDDLE_OK) return s;
  const uint64_t bytes = k_op_places(out) * sizeof *out->bytes;
  out->bytes = host->alloc(host->ctx, bytes, _Alignof(max_align_t));
  if (out->bytes == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "%s:%u: no memory for an operator", site->name, site->index);
  memset(out->bytes, 0, (size_t)bytes);
  set_bytes(out, region);
  return HEDDLE_OK;
}

/* The host's memory, counted. */
typedef struct meter {
  const heddle_host *host;
  uint64_t bytes;
} meter;

static void *metered(void *ctx, uint64_t bytes, uint64_t align) {
  meter *m = ctx;
  m->bytes += bytes + K_ROOM_ALIGN;
  return m->host->alloc(m->host->ctx, bytes, align);
}

static void unmetered(void *ctx, void *memory) {
  const meter *m = ctx;
  m->host->free(m->host->ctx, memory);
}

heddle_status k_op_init(const k_site *site, const heddle_pregion *region, uint32_t offer, k_op *out,
                        heddle_error *err) {
  *out = (k_op){.n_inputs = region->n_inputs, .n_outputs = region->n_outputs};
  if (offer != 0) return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: offer %u was not made", site->name, site->index, offer);
  meter m = {site->host, 0};
  const heddle_host host = {.struct_size = sizeof host, .ctx = &m, .alloc = metered, .free = unmetered};
  const heddle_status s = k_op_fill(site, &host, region, NULL, out, err);
  out->plan.host = site->host; /* also of a plan that is not whole */
  out->room = m.bytes;
  out->open = s == HEDDLE_OK && k_may_resize(region, &out->plan);
  return s;
}

void k_op_finish(k_op *op) {
  const heddle_host *host = op->plan.host;
  if (op->bytes != NULL) host->free(host->ctx, op->bytes);
  op->bytes = NULL;
  k_plan_free(&op->plan);
}

heddle_status k_op_bind(const k_site *site, const k_op *op, bool same_device, const heddle_pbind *slices, k_reach reach,
                        void *ctx, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (!same_device)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: an operator is bound to a stream of another device", site->name,
                  site->index);
  if (slices->n_inputs != op->n_inputs || slices->n_outputs != op->n_outputs)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: an operator of %u inputs and %u outputs is given %u and %u",
                  site->name, site->index, op->n_inputs, op->n_outputs, slices->n_inputs, slices->n_outputs);
  for (uint32_t i = 0; i < k_op_places(op) && s == HEDDLE_OK; i++) {
    const uint32_t table = k_op_table(op);
    const char *what = i < op->n_inputs ? "input of an operator"
                       : i < table      ? "output of an operator"
                                        : "workspace of an operator";
    heddle_pslice slice = i < op->n_inputs ? slices->inputs[i]
                          : i < table      ? slices->outputs[i - op->n_inputs]
                                           : slices->workspace;
    if (i > table) {
      const uint64_t at = k_workspace_at(&op->plan, i - table - 1);
      slice.offset += at;
      slice.bytes = slice.bytes < at ? 0 : slice.bytes - at < op->bytes[i] ? slice.bytes - at : op->bytes[i];
    }
    if (op->bytes[i] == 0 || (op->open && i < table && slice.buffer == NULL)) continue;
    if (slice.buffer == NULL || (slice.bytes < op->bytes[i] && !(op->open && i < table)))
      return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: %s needs %llu bytes and is given %llu", site->name, site->index,
                    what, (unsigned long long)op->bytes[i], slice.buffer != NULL ? (unsigned long long)slice.bytes : 0);
    s = reach(ctx, i, &slice, what, err);
  }
  return s;
}
