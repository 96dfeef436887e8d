/* remote/prepare.c: regions: questions, preparation, and captures. A client's region is checked by its reader and by the plugin's
 * query; the bytes that each operand needs are found here, and bind.c checks them. */
#include <stdlib.h>
#include <string.h>

#include "plugins/common/perror.h"
#include "remote/session.h"

static heddle_status take_region(remote_session *s, byte_reader *r, bool is_open, remote_device **d, uint32_t *offer,
                                 heddle_pregion **region, heddle_error *err) {
  heddle_status status = remote_device_of(s, r, is_open, d, err);
  if (status != HEDDLE_OK) return status;
  if (offer != NULL) *offer = byte_take_u32(r);
  if (!(*d)->dev->t->has_op) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s has no operators", (*d)->dev->name);
  *region = wire_take_region(r, remote_find_blob, s, err);
  if (*region == NULL) return err->status;
  status = r->left == 0 ? remote_check_shapes(*region, err) : p_fail(err, HEDDLE_EFORMAT, 0, "a region is malformed");
  if (status != HEDDLE_OK) free(*region);
  return status;
}

/* ---- offers, as the client gets them */

typedef struct offers {
  byte_buffer bytes;
  const heddle_pregion *region;
  bool can_resize, extends;
  uint32_t count;
} offers;

static bool can_resize(const heddle_device *dev, const heddle_pregion *region) {
  return (region->flags & HEDDLE_REGION_OPEN) != 0 && dev->t->op.resize != NULL;
}

static heddle_status add_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  offers *o = sink;
  if (!HEDDLE_HAS(heddle_poffer, offer, cost_ns)) return p_fail(err, HEDDLE_EFAILED, 0, "an offer cannot be read");
  if (o->count == WIRE_MOST_OFFERS) return HEDDLE_OK;
  heddle_poffer copy = {.struct_size = sizeof copy};
  memcpy(&copy, offer, offer->struct_size < sizeof copy ? offer->struct_size : sizeof copy);
  copy.struct_size = offer->struct_size < sizeof copy ? offer->struct_size : (uint32_t)sizeof copy;
  if (!o->can_resize) copy.flags &= ~HEDDLE_OFFER_RESIZES;
  wire_put_offer(&o->bytes, &copy, o->region->n_inputs, o->region->n_outputs, o->extends);
  o->count++;
  return o->bytes.failed ? p_fail(err, HEDDLE_ENOMEM, 0, "no memory for an offer") : HEDDLE_OK;
}

heddle_status remote_query(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_pregion *region;
  heddle_status status = take_region(s, r, false, &d, NULL, &region, err);
  if (status != HEDDLE_OK) return status;
  offers o = {.region = region, .can_resize = can_resize(d->dev, region), .extends = s->minor >= WIRE_EXTENDS_MINOR};
  if (remote_calls_library(region)) status = remote_library_query(s, d, region, add_offer, &o, err);
  else status = d->dev->t->op.query(d->dev->instance, d->dev->index, region, add_offer, &o, err);
  if (status == HEDDLE_OK) {
    byte_put_u32(out, o.count);
    byte_put(out, o.bytes.data, o.bytes.used);
  }
  byte_finish(&o.bytes);
  free(region);
  return status;
}

static heddle_status add_proposal(void *sink, const uint32_t *nodes, uint32_t count, heddle_error *err) {
  byte_buffer *out = sink;
  byte_put_u32(out, count);
  for (uint32_t i = 0; i < count; i++) byte_put_u32(out, nodes[i]);
  return out->failed ? p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a proposal") : HEDDLE_OK;
}

heddle_status remote_partition(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  remote_device *d;
  heddle_pregion *region;
  heddle_status status = take_region(s, r, false, &d, NULL, &region, err);
  if (status != HEDDLE_OK) return status;
  if (d->dev->t->op.partition == NULL)
    status = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "%s proposes no regions", d->dev->name);
  else status = d->dev->t->op.partition(d->dev->instance, d->dev->index, region, add_proposal, out, err);
  free(region);
  return status;
}

/* ---- preparation */

/* The offer that the client chose, and what its operands need. */
typedef struct choice {
  remote_device *device;
  const heddle_pregion *region;
  remote_op *op;
  uint32_t wanted, at;
  bool is_found, resizes;
} choice;

static heddle_pvalue *value_at(const heddle_pregion *region, int32_t index) {
  return (heddle_pvalue *)(uintptr_t)region->values.data + index;
}

heddle_status remote_needed(const remote_device *d, const heddle_pvalue *v, uint64_t *bytes, heddle_error *err) {
  const heddle_device *dev = d->dev;
  uint64_t align = 0, n = 1;
  if (v->layout != 0 && !dev->t->has_layout) return p_fail(err, HEDDLE_EINVAL, 0, "%s has no layouts", dev->name);
  if (v->layout != 0) return dev->t->layout.bytes(dev->instance, dev->index, v, bytes, &align, err);
  for (int32_t i = 0; i < v->ndim; i++) n *= (uint64_t)v->shape[i];
  *bytes = (n * v->dtype.bits * v->dtype.lanes + 7) / 8;
  return HEDDLE_OK;
}

static heddle_status needed(const choice *c, int32_t index, heddle_layout layout, uint64_t *bytes, heddle_error *err) {
  const heddle_pvalue *v = value_at(c->region, index);
  if (v->layout != layout) return p_fail(err, HEDDLE_EINVAL, 0, "a value has another layout than in the offer");
  return remote_needed(c->device, v, bytes, err);
}

static heddle_status choose(void *sink, const heddle_poffer *offer, heddle_error *err) {
  choice *c = sink;
  remote_op *op = c->op;
  if (!HEDDLE_HAS(heddle_poffer, offer, cost_ns)) return p_fail(err, HEDDLE_EFAILED, 0, "an offer cannot be read");
  if (c->at++ != c->wanted) return HEDDLE_OK;
  c->is_found = true;
  c->resizes = (offer->flags & HEDDLE_OFFER_RESIZES) != 0;
  op->is_bare = (offer->flags & HEDDLE_OFFER_BARE) != 0;
  op->workspace = offer->workspace_bytes;
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < op->n_inputs && s == HEDDLE_OK; i++) {
    op->is_absorbed[i] = offer->input_flags != NULL && (offer->input_flags[i] & HEDDLE_INPUT_ABSORBED) != 0;
    const heddle_layout layout = offer->input_layouts != NULL ? offer->input_layouts[i] : 0;
    if (op->is_absorbed[i]) op->bytes[i] = 0;
    else s = needed(c, c->region->inputs[i], layout, &op->bytes[i], err);
  }
  for (uint32_t i = 0; i < op->n_outputs && s == HEDDLE_OK; i++)
    s = needed(c, c->region->outputs[i], offer->output_layouts != NULL ? offer->output_layouts[i] : 0,
               &op->bytes[op->n_inputs + i], err);
  return s;
}

heddle_status remote_ask(remote_session *s, const remote_device *d, const heddle_pregion *region, heddle_offer_fn offer,
                         void *sink, heddle_error *err) {
  if (remote_calls_library(region)) return remote_library_query(s, d, region, offer, sink, err);
  const heddle_device *dev = d->dev;
  const uint64_t n = region->values.count;
  const heddle_pnode *first = region->nodes.data;
  const bool is_reorder = strcmp(first->op, "Reorder") == 0 && strcmp(first->domain, "heddle") == 0;
  heddle_pvalue *plain = malloc((size_t)(n + 1) * sizeof *plain);
  if (plain == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a region");
  memcpy(plain, region->values.data, (size_t)n * sizeof *plain);
  for (uint64_t i = 0; i < n && !is_reorder; i++) plain[i].layout = 0;
  heddle_pregion asked = *region;
  asked.values.data = plain;
  const heddle_status status = dev->t->op.query(dev->instance, dev->index, &asked, offer, sink, err);
  free(plain);
  return status;
}

/* What a launch needs to be resized: the region, whose constants that came before are not kept. */
static heddle_status keep_region(remote_session *s, remote_op *op, const uint8_t *bytes, size_t n, heddle_error *err) {
  if (!remote_hold(s, n, err)) return HEDDLE_ENOMEM;
  op->region = malloc(n + 1);
  if (op->region == NULL) {
    remote_unhold(s, n);
    return p_fail(err, HEDDLE_ENOMEM, 0, "no memory for an operator");
  }
  memcpy(op->region, bytes, n);
  op->region_bytes = n;
  return HEDDLE_OK;
}

void remote_op_free(remote_session *s, remote_op *op) {
  if (op == NULL) return;
  if (op->op != NULL) op->table->op_free(op->op);
  if (op->region != NULL) remote_unhold(s, op->region_bytes);
  free(op->region);
  free(op->is_absorbed);
  free(op);
}

heddle_status remote_prepare(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  enum { WORDS = 8 }; /* before the region */
  remote_device *d;
  heddle_pregion *region;
  uint32_t offer;
  const byte_reader whole = *r;
  heddle_status status = take_region(s, r, true, &d, &offer, &region, err);
  if (status != HEDDLE_OK) return status;
  const size_t n = (size_t)region->n_inputs + region->n_outputs;
  remote_op *op = calloc(1, sizeof *op + n * sizeof op->bytes[0]);
  if (op != NULL) op->is_absorbed = calloc((size_t)region->n_inputs + 1, sizeof *op->is_absorbed);
  if (op == NULL || op->is_absorbed == NULL) status = p_fail(err, HEDDLE_ENOMEM, 0, "no memory for an operator");
  choice c = {.device = d, .region = region, .op = op, .wanted = offer};
  if (status == HEDDLE_OK) {
    op->head.device = d;
    op->table = &d->dev->t->op;
    op->n_inputs = region->n_inputs;
    op->n_outputs = region->n_outputs;
    status = remote_ask(s, d, region, choose, &c, err);
  }
  if (status == HEDDLE_OK && !c.is_found) status = p_fail(err, HEDDLE_EINVAL, 0, "%s made no such offer", d->dev->name);
  if (status == HEDDLE_OK && c.resizes && can_resize(d->dev, region))
    status = keep_region(s, op, whole.at + WORDS, whole.left - WORDS, err);
  if (status == HEDDLE_OK && remote_calls_library(region)) status = remote_library_prepare(s, d, region, op, err);
  else if (status == HEDDLE_OK) status = d->dev->t->op.prepare(d->dev->handle, region, offer, &op->op, err);
  free(region);
  if (status == HEDDLE_OK && !remote_add(s, &op->head, REMOTE_OP, d, err)) status = HEDDLE_ELIMIT;
  if (status == HEDDLE_OK) byte_put_u64(out, op->head.handle);
  else remote_op_free(s, op);
  return status;
}

/* ---- captures */

static heddle_status take_step(remote_session *s, byte_reader *r, const remote_device *d, remote_step *step,
                               heddle_error *err) {
  step->kind = byte_take_u32(r);
  step->pattern = byte_take_u32(r);
  const uint64_t to = byte_take_u64(r);
  step->to_offset = byte_take_u64(r);
  const uint64_t from = byte_take_u64(r);
  step->from_offset = byte_take_u64(r);
  step->bytes = byte_take_u64(r);
  if (r->bad || step->kind < WIRE_WRITE || step->kind > WIRE_RUN)
    return p_fail(err, HEDDLE_EFORMAT, 0, "a capture is malformed");
  if (step->kind == WIRE_RUN) return remote_get(s, to, REMOTE_LAUNCH, d, &step->to, err);
  heddle_status status = remote_get(s, to, REMOTE_BUFFER, d, &step->to, err);
  if (status == HEDDLE_OK) status = remote_range((remote_buffer *)step->to, step->to_offset, step->bytes, err);
  if (status == HEDDLE_OK && step->kind == WIRE_FILL && (step->to_offset % 4 != 0 || step->bytes % 4 != 0))
    return p_fail(err, HEDDLE_EINVAL, 0, "a fill is not of whole words");
  if (status != HEDDLE_OK || step->kind != WIRE_COPY) return status;
  status = remote_get(s, from, REMOTE_BUFFER, d, &step->from, err);
  return status == HEDDLE_OK ? remote_range((remote_buffer *)step->from, step->from_offset, step->bytes, err) : status;
}

static heddle_status add_up(remote_graph *g, heddle_error *err) {
  g->tail = g->count;
  while (g->tail > 0 && g->steps[g->tail - 1].kind == WIRE_READ) g->tail--;
  for (uint32_t i = 0; i < g->count; i++) {
    const remote_step *step = &g->steps[i];
    if (step->kind == WIRE_WRITE) g->in_bytes += step->bytes;
    if (step->kind == WIRE_READ) g->out_bytes += step->bytes;
    if (step->kind == WIRE_READ && i < g->tail) g->out_early += step->bytes;
    if (g->in_bytes > INT64_MAX || g->out_bytes > INT64_MAX)
      return p_fail(err, HEDDLE_ELIMIT, 0, "a capture copies too many bytes");
  }
  return HEDDLE_OK;
}

heddle_status remote_graph_make(remote_session *s, byte_reader *r, byte_buffer *out, heddle_error *err) {
  enum { STEP = 48 };
  remote_device *d;
  heddle_status status = remote_device_of(s, r, true, &d, err);
  if (status != HEDDLE_OK) return status;
  const uint32_t n = wire_take_count(r, WIRE_MOST_STEPS, STEP);
  remote_graph *g = r->bad ? NULL : calloc(1, sizeof *g + n * sizeof g->steps[0]);
  if (g == NULL) return p_fail(err, r->bad ? HEDDLE_EFORMAT : HEDDLE_ENOMEM, 0, "a capture cannot be read");
  g->count = n;
  for (uint32_t i = 0; i < n && status == HEDDLE_OK; i++) status = take_step(s, r, d, &g->steps[i], err);
  if (status == HEDDLE_OK && !wire_is_done(r)) status = p_fail(err, HEDDLE_EFORMAT, 0, "a capture is malformed");
  if (status == HEDDLE_OK) status = add_up(g, err);
  if (status == HEDDLE_OK && g->out_early > 0) {
    if (!remote_hold(s, g->out_early, err)) status = HEDDLE_ENOMEM;
    else if ((g->out = malloc((size_t)g->out_early)) == NULL) {
      remote_unhold(s, g->out_early);
      status = p_fail(err, HEDDLE_ENOMEM, 0, "no memory for a capture");
    }
  }
  if (status == HEDDLE_OK && !remote_add(s, &g->head, REMOTE_GRAPH, d, err)) {
    remote_unhold(s, g->out_early);
    free(g->out);
    status = HEDDLE_ELIMIT;
  }
  if (status != HEDDLE_OK) {
    free(g);
    return status;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (g->steps[i].to != NULL) g->steps[i].to->users++;
    if (g->steps[i].from != NULL) g->steps[i].from->users++;
  }
  byte_put_u64(out, g->head.handle);
  return HEDDLE_OK;
}
