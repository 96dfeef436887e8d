/* Launches: an op with its operands resolved to bytes, put into its stream by run and executed by the stream's
 * thread. */
#include "ops.h"

struct heddle_plaunch {
  sim_retired retired; /* first */
  uint32_t magic;
  atomic_uint references; /* the host's, and one for each capture that recorded it */
  heddle_pop *op;
  heddle_pstream *stream;
  uint8_t *workspace;
  uint8_t **operands; /* inputs, then outputs, as they lie */
  void **values;      /* of all steps, plain */
  uint8_t **others;   /* operands of the shapes that a resize gives */
  ref_op *own;        /* the only step's, where the launch can be resized; else NULL */
  uint64_t reserved;  /* bytes of the device, for the setting launch_bytes */
};

/* ---- execution ---- */

static void reorder(const heddle_plaunch *l) {
  const sim_operand *in = &l->op->operands[0], *out = &l->op->operands[1];
  uint8_t *from = l->operands[0], *to = l->operands[1];
  if (in->bytes == 0 || out->bytes == 0) return;
  if (in->blocking.token == out->blocking.token) {
    memcpy(to, from, in->bytes);
    return;
  }
  if (in->blocking.token != 0) {
    uint8_t *plain = out->blocking.token != 0 ? l->workspace + in->plain_offset : to;
    sim_unpack(&in->blocking, from, plain);
    from = plain;
  }
  if (out->blocking.token != 0) sim_pack(&out->blocking, from, to);
}

void sim_launch_execute(heddle_plaunch *l) {
  const heddle_pop *op = l->op;
  if (op->reorder) {
    reorder(l);
    return;
  }
  for (uint32_t k = 0; op->any_blocked && k < op->n_inputs; k++) {
    const sim_operand *in = &op->operands[k];
    if (in->blocking.token != 0 && in->bytes != 0)
      sim_unpack(&in->blocking, l->operands[k], l->workspace + in->plain_offset);
  }
  for (uint32_t i = 0; i < op->n_steps; i++) {
    const sim_step *step = &op->steps[i];
    void **values = l->values + step->first;
    ref_run(l->own != NULL ? l->own : step->op, values, values + step->n_inputs,
            l->workspace == NULL ? NULL : l->workspace + op->scratch);
    if (step->wrong.elements > 0) sim_wrong_apply(step, values[step->n_inputs]);
  }
  for (uint32_t k = op->n_inputs; op->any_blocked && k < op->n_inputs + op->n_outputs; k++) {
    const sim_operand *out = &op->operands[k];
    if (out->blocking.token != 0 && out->bytes != 0)
      sim_pack(&out->blocking, l->workspace + out->plain_offset, l->operands[k]);
  }
}

uint64_t sim_launch_busy_ns(const heddle_plaunch *l) {
  return l->op->busy_us * 1000;
}

/* ---- binding ---- */

/* Bytes of one slice, which must hold need; NULL where none are needed. */
static heddle_status resolve(const heddle_pop *op, const heddle_pslice *slice, uint64_t need, const char *what,
                             uint32_t number, uint8_t **out, heddle_error *err) {
  char text[160];
  *out = NULL;
  if (need == 0) return HEDDLE_OK;
  snprintf(text, sizeof text, "bind of node '%s': %s %u", op->name, what, number);
  if (slice->buffer == NULL) return p_fail(err, HEDDLE_EINVAL, 0, "%s is missing", text);
  if (slice->bytes < need)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s has %llu bytes; it needs %llu", text, (unsigned long long)slice->bytes,
                  (unsigned long long)need);
  if (slice->offset % SIM_ALIGNMENT != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s lies at %llu, no multiple of %d", text, (unsigned long long)slice->offset,
                  SIM_ALIGNMENT);
  if (op->bare && slice->offset != 0)
    return p_fail(err, HEDDLE_EINVAL, 0, "%s lies at %llu of its buffer; the offer was for whole buffers", text,
                  (unsigned long long)slice->offset);
  return sim_bytes(op->dev, slice->buffer, slice->offset, need, SIM_OPERAND, text, out, err);
}

static void launch_destroy(const heddle_host *host, sim_retired *retired) {
  heddle_plaunch *l = (heddle_plaunch *)retired;
  heddle_pop *op = l->op;
  atomic_fetch_sub(&op->dev->live_bytes, l->reserved);
  ref_free(l->own);
  host->free(host->ctx, l->others);
  host->free(host->ctx, l->operands);
  host->free(host->ctx, l->values);
  host->free(host->ctx, l);
  sim_op_drop(op);
}

/* sized: the bytes of each operand, inputs first; NULL: as for the op's own shapes, or what an open op is given of them. */
static heddle_status resolve_all(heddle_plaunch *l, const heddle_pbind *b, const uint64_t *sized, uint8_t **operands,
                                 uint8_t **workspace, heddle_error *err) {
  const heddle_pop *op = l->op;
  heddle_status status = resolve(op, &b->workspace, op->workspace_bytes, "workspace", 0, workspace, err);
  for (uint32_t k = 0; k < op->n_inputs + op->n_outputs && status == HEDDLE_OK; k++) {
    const bool in = k < op->n_inputs;
    const uint32_t slot = in ? k : k - op->n_inputs;
    const heddle_pslice *slice = in ? &b->inputs[slot] : &b->outputs[slot];
    const uint64_t given = slice->buffer == NULL ? 0 : slice->bytes, most = op->operands[k].bytes;
    uint64_t need = sized != NULL ? sized[k] : op->open && given < most ? given : most;
    if (op->operands[k].absorbed) need = 0;
    status = resolve(op, slice, need, in ? "input" : "output", slot, &operands[k], err);
  }
  return status;
}

static void set_values(heddle_plaunch *l) {
  const heddle_pop *op = l->op;
  for (uint32_t i = 0; i < op->n_places; i++) {
    const sim_place *place = &op->places[i];
    switch (place->at) {
    case SIM_AT_INPUT: l->values[i] = l->operands[place->slot]; break;
    case SIM_AT_OUTPUT: l->values[i] = l->operands[op->n_inputs + place->slot]; break;
    case SIM_AT_WORKSPACE: l->values[i] = l->workspace == NULL ? NULL : l->workspace + place->offset; break;
    default: break;
    }
  }
}

heddle_status sim_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                          heddle_error *err) {
  if (op == NULL || op->magic != SIM_MAGIC_OP)
    return p_fail(err, HEDDLE_EINVAL, 0, "bind: the handle is no live op of sim");
  heddle_status status = sim_stream_enter(stream, SIM_CALL_BIND, NULL, err);
  if (status != HEDDLE_OK) return status;
  if (stream->dev != op->dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "bind of node '%s': the op is of sim:%u, the stream of sim:%u", op->name,
                  op->dev->index, stream->dev->index);
  if (operands->n_inputs != op->n_inputs || operands->n_outputs != op->n_outputs)
    return p_fail(err, HEDDLE_EINVAL, 0, "bind of node '%s': %u inputs and %u outputs given; it has %u and %u",
                  op->name, operands->n_inputs, operands->n_outputs, op->n_inputs, op->n_outputs);
  const heddle_host *host = op->dev->host;
  heddle_plaunch *l = sim_alloc(host, sizeof *l);
  if (l == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "bind of node '%s': no memory", op->name);
  l->retired.destroy = launch_destroy;
  l->magic = SIM_MAGIC_LAUNCH;
  atomic_init(&l->references, 1);
  l->op = op;
  l->stream = stream;
  atomic_fetch_add(&op->references, 1);
  l->operands = sim_alloc(host, (op->n_inputs + op->n_outputs + 1) * sizeof *l->operands);
  l->values = sim_alloc(host, (op->n_places + 1) * sizeof *l->values);
  l->others = sim_alloc(host, (op->n_inputs + op->n_outputs + 1) * (sizeof *l->others + sizeof(uint64_t)));
  if (l->operands == NULL || l->values == NULL || l->others == NULL)
    status = p_fail(err, HEDDLE_ENOMEM, 0, "bind of node '%s': no memory", op->name);
  if (status == HEDDLE_OK && op->open) status = ref_copy(op->steps[0].op, &l->own, err);
  if (status == HEDDLE_OK) status = resolve_all(l, operands, NULL, l->operands, &l->workspace, err);
  if (status == HEDDLE_OK) set_values(l);
  if (status == HEDDLE_OK) status = sim_memory_reserve(op->dev, op->dev->settings.launch_bytes, err);
  if (status == HEDDLE_OK) l->reserved = op->dev->settings.launch_bytes;
  if (status != HEDDLE_OK) {
    launch_destroy(host, &l->retired);
    return status;
  }
  atomic_fetch_add(&op->dev->live_objects, 1);
  *out = l;
  return HEDDLE_OK;
}

/* The bytes of the operands of other shapes. */
static heddle_status size_operands(const heddle_pop *op, const heddle_pregion *region, uint64_t *sized,
                                   heddle_error *err) {
  for (uint32_t k = 0; k < op->n_inputs + op->n_outputs; k++) {
    const int32_t v = k < op->n_inputs ? region->inputs[k] : region->outputs[k - op->n_inputs];
    const heddle_pvalue *value = region_value(region, v);
    if (value == NULL || value->layout != 0 || !region_value_bytes(value, &sized[k]) ||
        (sized[k] > op->operands[k].bytes && !op->operands[k].absorbed))
      return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': a launch is resized beyond its bound", op->name);
  }
  return HEDDLE_OK;
}

heddle_status sim_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                            heddle_error *err) {
  if (launch == NULL || launch->magic != SIM_MAGIC_LAUNCH)
    return p_fail(err, HEDDLE_EINVAL, 0, "resize: the handle is no live launch of sim");
  const heddle_pop *op = launch->op;
  const uint32_t n = op->n_inputs + op->n_outputs;
  uint64_t *sized = (uint64_t *)(void *)(launch->others + n + 1);
  uint8_t *workspace = NULL;
  heddle_status status = sim_stream_enter(launch->stream, SIM_CALL_BIND, NULL, err);
  if (status != HEDDLE_OK) return status;
  if (launch->own == NULL || op->steps[0].wrong.elements > 0 || region->n_inputs != op->n_inputs ||
      region->n_outputs != op->n_outputs || operands->n_inputs != op->n_inputs || operands->n_outputs != op->n_outputs)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': this launch cannot be resized", op->name);
  status = size_operands(op, region, sized, err);
  if (status == HEDDLE_OK) status = resolve_all(launch, operands, sized, launch->others, &workspace, err);
  if (status == HEDDLE_OK) status = ref_resize(launch->own, region, err);
  if (status != HEDDLE_OK) return status;
  memcpy(launch->operands, launch->others, n * sizeof *launch->operands);
  launch->workspace = workspace;
  set_values(launch);
  return HEDDLE_OK;
}

heddle_status sim_op_run(heddle_plaunch *launch, heddle_error *err) {
  sim_cmd cmd = {.kind = SIM_CMD_LAUNCH};
  if (launch == NULL || launch->magic != SIM_MAGIC_LAUNCH)
    return p_fail(err, HEDDLE_EINVAL, 0, "run: the handle is no live launch of sim");
  heddle_status status = sim_stream_enter(launch->stream, SIM_CALL_RUN, &cmd, err);
  if (status != HEDDLE_OK) return status;
  cmd.u.launch = launch;
  return sim_push(launch->stream, &cmd, err);
}

void sim_launch_keep(heddle_plaunch *launch) {
  atomic_fetch_add(&launch->references, 1);
}

void sim_launch_drop(heddle_plaunch *launch) {
  if (atomic_fetch_sub(&launch->references, 1) == 1) sim_retire(launch->op->dev, &launch->retired);
}

void sim_launch_free(heddle_plaunch *launch) {
  if (launch == NULL || launch->magic != SIM_MAGIC_LAUNCH) return;
  launch->magic = SIM_MAGIC_DEAD;
  atomic_fetch_sub(&launch->op->dev->live_objects, 1);
  sim_launch_drop(launch);
}
