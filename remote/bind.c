/* remote/bind.c: launches: operands are bound, and others put in their place when a launch is resized. The bytes of each operand are
 * checked against those that its shape needs. */
#include <stdlib.h>
#include <string.h>

#include "plugins/common/perror.h"
#include "remote/session.h"
#include "rpc/net.h"

/* is_short: NULL, or set where the operand has fewer bytes. */
static heddle_status take_slice(remote_session *s, byte_reader *r, const remote_launch *l, uint64_t least,
                                bool *is_short, heddle_pslice *slice, remote_buffer **buffer, heddle_error *err) {
  const remote_device *d = l->op->head.device;
  const uint64_t handle = byte_take_u64(r), offset = byte_take_u64(r), bytes = byte_take_u64(r);
  *slice = (heddle_pslice){0};
  *buffer = NULL;
  if (r->bad) return p_fail(err, HEDDLE_EFORMAT, 0, "a request is malformed");
  if (handle == 0 && least > 0 && is_short != NULL) *is_short = true;
  if (handle == 0 && (least == 0 || is_short != NULL)) return HEDDLE_OK;
  heddle_status status = remote_get(s, handle, REMOTE_BUFFER, d, buffer, err);
  if (status == HEDDLE_OK) status = remote_range(*buffer, offset, bytes, err);
  if (status != HEDDLE_OK) return status;
  if (bytes < least && is_short != NULL) {
    *is_short = true;
    least = bytes;
  }
  if (bytes < least || offset % d->dev->desc.alignment != 0 || (l->op->is_bare && offset != 0))
    return p_fail(err, HEDDLE_EINVAL, 0,
                  "an operand of %llu bytes at %llu: the operator needs %llu, at a multiple of %llu",
                  (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)least,
                  (unsigned long long)d->dev->desc.alignment);
  *slice = (heddle_pslice){(*buffer)->buffer, offset, bytes};
  return HEDDLE_OK;
}

static heddle_status bind(remote_session *s, byte_reader *r, remote_launch *l, heddle_pslice *slices,
                          remote_stream *stream, heddle_error *err) {
  bool *is_short = l->op->region != NULL ? &l->is_short : NULL;
  const remote_op *op = l->op;
  heddle_pbind operands = {.struct_size = sizeof operands,
                           .inputs = slices,
                           .outputs = slices + op->n_inputs,
                           .n_inputs = op->n_inputs,
                           .n_outputs = op->n_outputs};
  heddle_status status = take_slice(s, r, l, op->workspace, NULL, &operands.workspace, &l->buffers[0], err);
  for (uint32_t i = 0; i + 1 < l->n_buffers && status == HEDDLE_OK; i++)
    status = take_slice(s, r, l, op->bytes[i], is_short, &slices[i], &l->buffers[i + 1], err);
  if (status == HEDDLE_OK && !wire_is_done(r)) status = p_fail(err, HEDDLE_EFORMAT, 0, "a request is malformed");
  return status == HEDDLE_OK ? op->table->bind(op->op, stream->stream, &operands, &l->launch, err) : status;
}

heddle_status remote_bind(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_op *op;
  const uint64_t handle = byte_take_u64(r);
  const uint32_t id = byte_take_u32(r), n_inputs = byte_take_u32(r), n_outputs = byte_take_u32(r);
  if (r->bad) return p_fail(err, HEDDLE_EFORMAT, 0, "a request is malformed");
  heddle_status status = remote_get(s, handle, REMOTE_OP, NULL, &op, err);
  if (status != HEDDLE_OK) return status;
  remote_stream *stream = remote_find_stream(s, id);
  if (stream == NULL || stream->device != op->head.device || n_inputs != op->n_inputs || n_outputs != op->n_outputs)
    return p_fail(err, HEDDLE_EINVAL, 0, "the stream or the number of operands does not fit the operator");
  const uint32_t n = n_inputs + n_outputs;
  remote_launch *l = calloc(1, sizeof *l + ((size_t)n + 1) * sizeof(remote_buffer *));
  heddle_pslice *slices = calloc((size_t)n + 1, sizeof *slices);
  if (l == NULL || slices == NULL) {
    status = p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a launch");
  } else {
    l->op = op;
    l->stream = id;
    l->n_buffers = n + 1;
    status = bind(s, r, l, slices, stream, err);
  }
  free(slices);
  if (status == HEDDLE_OK && !remote_add(s, &l->head, REMOTE_LAUNCH, op->head.device, err)) {
    op->table->launch_free(l->launch);
    status = HEDDLE_ELIMIT;
  }
  if (status != HEDDLE_OK) {
    free(l);
    return status;
  }
  op->head.users++;
  for (uint32_t i = 0; i < l->n_buffers; i++)
    if (l->buffers[i] != NULL) l->buffers[i]->head.users++;
  byte_put_u64(out, l->head.handle);
  return HEDDLE_OK;
}

/* ---- resizing. The client sends values alone: the nodes are those of the prepared region. As for a region that is prepared,
 * the plugin's query checks that the shapes agree with each other, and buffers are compared with what they need. A plugin may
 * not want a whole region of small shapes, which a launch of larger ones serves: then its nodes are checked one by one. */

/* Constants are replaced by those that the client sends now. */
static const void *any_blob(void *user, const wire_blob_id *id) {
  (void)id;
  return user;
}

static heddle_status count_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  (void)offer, (void)err;
  ++*(uint32_t *)sink;
  return HEDDLE_OK;
}

static heddle_status ask(remote_session *s, const remote_op *op, const heddle_pregion *region, heddle_error *err) {
  uint32_t n_offers = 0;
  const heddle_status status = remote_ask(s, op->head.device, region, count_offer, &n_offers, err);
  if (status != HEDDLE_OK || n_offers > 0) return status;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s does not run these shapes", op->head.device->dev->name);
}

/* Those of the indices that are there, each once. */
static uint32_t distinct(const int32_t *from, uint32_t n, int32_t *to) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = 0;
    while (k < found && to[k] != from[i]) k++;
    if (from[i] >= 0 && k == found) to[found++] = from[i];
  }
  return found;
}

static heddle_status ask_node(remote_session *s, const remote_op *op, const heddle_pregion *region,
                              const heddle_pnode *node, heddle_error *err) {
  int32_t *operands = calloc((size_t)node->n_inputs + node->n_outputs + 1, sizeof *operands);
  if (operands == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a region");
  heddle_pregion alone = *region;
  alone.nodes = (heddle_parray){node, 1, sizeof *node};
  alone.inputs = operands;
  alone.outputs = operands + node->n_inputs;
  alone.n_inputs = distinct(node->inputs, node->n_inputs, operands);
  alone.n_outputs = distinct(node->outputs, node->n_outputs, operands + node->n_inputs);
  const heddle_status status = ask(s, op, &alone, err);
  free(operands);
  return status;
}

static heddle_status check_shapes(remote_session *s, const remote_op *op, const heddle_pregion *region,
                                  heddle_error *err) {
  const heddle_pnode *nodes = region->nodes.data;
  heddle_status status = ask(s, op, region, err);
  if (status != HEDDLE_EUNSUPPORTED || region->nodes.count < 2) return status;
  status = HEDDLE_OK;
  for (uint64_t i = 0; i < region->nodes.count && status == HEDDLE_OK; i++)
    status = ask_node(s, op, region, &nodes[i], err);
  return status;
}

static heddle_status take_shapes(remote_session *s, byte_reader *r, const remote_op *op, heddle_pregion **out,
                                 heddle_error *err) {
  char nothing;
  byte_reader kept = {op->region, op->region_bytes, false};
  heddle_pregion *region = wire_take_region(&kept, any_blob, &nothing, err);
  if (region == NULL) return HEDDLE_ENOMEM;
  region->flags &= ~HEDDLE_REGION_OPEN;
  heddle_status status = HEDDLE_OK;
  if (!wire_take_values(r, region, remote_find_blob, s) || !wire_is_done(r))
    status = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the shapes are not those of the operator, or smaller ones");
  if (status == HEDDLE_OK) status = remote_check_shapes(region, err);
  if (status == HEDDLE_OK) status = check_shapes(s, op, region, err);
  if (status == HEDDLE_OK) *out = region;
  else free(region);
  return status;
}

static heddle_status take_operands(remote_session *s, byte_reader *r, const remote_launch *l,
                                   const heddle_pregion *region, heddle_pbind *operands, heddle_pslice *slices,
                                   remote_buffer **buffers, heddle_error *err) {
  const remote_op *op = l->op;
  const heddle_pvalue *values = region->values.data;
  heddle_status status = take_slice(s, r, l, op->workspace, NULL, &operands->workspace, &buffers[0], err);
  for (uint32_t i = 0; i + 1 < l->n_buffers && status == HEDDLE_OK; i++) {
    const bool is_input = i < op->n_inputs;
    const int32_t index = is_input ? region->inputs[i] : region->outputs[i - op->n_inputs];
    uint64_t least = 0;
    if (!is_input || !op->is_absorbed[i]) status = remote_needed(op->head.device, &values[index], &least, err);
    if (status == HEDDLE_OK) status = take_slice(s, r, l, least, NULL, &slices[i], &buffers[i + 1], err);
  }
  return status;
}

/* On success the launch has other buffers; buffers then has those that it had. */
static heddle_status resize(remote_session *s, remote_launch *l, const heddle_pregion *region, byte_reader *r,
                            heddle_pslice *slices, remote_buffer **buffers, heddle_error *err) {
  const remote_op *op = l->op;
  heddle_pbind operands = {.struct_size = sizeof operands,
                           .inputs = slices,
                           .outputs = slices + op->n_inputs,
                           .n_inputs = op->n_inputs,
                           .n_outputs = op->n_outputs};
  heddle_status status = take_operands(s, r, l, region, &operands, slices, buffers, err);
  remote_stream *stream = remote_find_stream(s, l->stream);
  if (status == HEDDLE_OK && stream != NULL) (void)remote_settle(stream); /* a failure stays with the stream */
  if (status == HEDDLE_OK) status = op->table->resize(l->launch, region, &operands, err);
  if (status != HEDDLE_OK) return status;
  for (uint32_t i = 0; i < l->n_buffers; i++) {
    remote_buffer *before = l->buffers[i];
    if (buffers[i] != NULL) buffers[i]->head.users++;
    l->buffers[i] = buffers[i];
    buffers[i] = before;
  }
  for (uint32_t i = 0; i < l->n_buffers; i++)
    if (buffers[i] != NULL) remote_let_go(s, &buffers[i]->head);
  l->is_short = false;
  return HEDDLE_OK;
}

heddle_status remote_resize(remote_session *s, byte_reader *r, heddle_error *err) {
  enum { SLICE = 24 };
  remote_launch *l;
  heddle_pregion *region = NULL;
  const uint64_t handle = byte_take_u64(r);
  if (r->bad) return p_fail(err, HEDDLE_EFORMAT, 0, "a request is malformed");
  heddle_status status = remote_get(s, handle, REMOTE_LAUNCH, NULL, &l, err);
  if (status != HEDDLE_OK) return status;
  if (l->op->region == NULL) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the launch cannot be resized");
  const size_t n = l->n_buffers;
  byte_reader places = {byte_take(r, n * SLICE), n * SLICE, false};
  if (places.at == NULL) return p_fail(err, HEDDLE_EFORMAT, 0, "a request is malformed");
  status = take_shapes(s, r, l->op, &region, err);
  if (status != HEDDLE_OK) return status;
  heddle_pslice *slices = calloc(n, sizeof *slices);
  remote_buffer **buffers = calloc(n, sizeof *buffers);
  if (slices == NULL || buffers == NULL) status = p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a launch");
  else status = resize(s, l, region, &places, slices, buffers, err);
  free(buffers);
  free(slices);
  free(region);
  return status;
}

bool remote_resize_unasked(remote_session *s, byte_reader *r) {
  heddle_error err = {0};
  remote_launch *l;
  byte_reader first = *r;
  if (remote_get(s, byte_take_u64(&first), REMOTE_LAUNCH, NULL, &l, &err) != HEDDLE_OK) return false;
  if (remote_resize(s, r, &err) == HEDDLE_OK) return true;
  rpc_log("heddle device-server: a launch was not resized, and does not run: %s", err.text);
  l->is_short = true;
  return true;
}
