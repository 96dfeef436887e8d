/* Operators: questions, preparation and binding are requests; a run is a message without an answer of its own. */
#include "plugins/remote/remote.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/fnv.h"

/* ---------------------------------------------------------------- regions */

typedef struct region_user {
  remote_link *link;
  const remote_about *about;
} region_user;

static bool has_blob(const remote_link *link, const wire_blob_id *id) {
  for (uint32_t i = 0; i < link->n_blobs; i++)
    if (memcmp(&link->blobs[i], id, sizeof *id) == 0) return true;
  return false;
}

/* Sends a constant that the server does not have. With link->regions. */
static bool put_blob(void *user, const wire_blob_id *id, const void *data) {
  remote_link *link = ((region_user *)user)->link;
  byte_buffer b = {0};
  if (has_blob(link, id)) return true;
  if (id->bytes > link->most_blob_bytes || link->blob_bytes > link->most_blob_bytes - id->bytes) return false;
  if (link->n_blobs == link->blob_room) {
    const uint32_t room = link->blob_room > 0 ? 2 * link->blob_room : 64;
    wire_blob_id *more = realloc(link->blobs, room * sizeof *more);
    if (more == NULL) return false;
    link->blobs = more;
    link->blob_room = room;
  }
  wire_begin(&b);
  byte_put_u64(&b, id->bytes);
  byte_put_u64(&b, id->hash[0]);
  byte_put_u64(&b, id->hash[1]);
  byte_put(&b, data, id->bytes);
  if (remote_post(link, WIRE_BLOB, 0, &b, NULL) != HEDDLE_OK) return false;
  link->blobs[link->n_blobs++] = *id;
  link->blob_bytes += id->bytes;
  return true;
}

/* The server forgets all constants, where they take half of what it has for them. With link->regions. */
static void make_room(remote_link *link) {
  if (link->blob_bytes <= link->most_blob_bytes / 2) return;
  remote_forget(link, WIRE_ALL_BLOBS);
  link->n_blobs = 0;
  link->blob_bytes = 0;
}

static heddle_layout token(void *user, heddle_layout layout) {
  return remote_token(((region_user *)user)->about->tokens, layout);
}

/* A region, or for RESIZE its values alone, after the words that b has. On success link->regions is held: what b names has been
 * enqueued, and nothing may come between. */
static heddle_status put_region(remote_link *link, const remote_about *about, uint32_t kind, byte_buffer *b,
                                const heddle_pregion *region, heddle_error *err) {
  region_user user = {link, about};
  heddle_pregion asked = *region;
  if (!about->has_resize) asked.flags &= ~HEDDLE_REGION_OPEN;
  pthread_mutex_lock(&link->regions);
  make_room(link);
  if (kind == WIRE_RESIZE) wire_put_values(b, &asked, put_blob, token, &user);
  else wire_put_region(b, &asked, put_blob, token, &user);
  if (kind != WIRE_RESIZE && link->minor >= WIRE_OPEN_MINOR) wire_put_open(b, &asked);
  if (!b->failed) return HEDDLE_OK;
  pthread_mutex_unlock(&link->regions);
  byte_finish(b);
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                "%s: the constants of the region are over the limit of %llu bytes of the server, or memory is out",
                link->address, (unsigned long long)link->most_blob_bytes);
}

static heddle_status ask_region(remote_link *link, const remote_about *about, uint32_t kind, byte_buffer *b,
                                const heddle_pregion *region, byte_buffer *reply, heddle_error *err) {
  remote_call call;
  heddle_status s = put_region(link, about, kind, b, region, err);
  if (s != HEDDLE_OK) return s;
  s = remote_ask_begin(link, kind, b, &call, err);
  pthread_mutex_unlock(&link->regions);
  return s == HEDDLE_OK ? remote_ask_end(link, &call, reply, err) : s;
}

/* ---------------------------------------------------------------- questions, before a device is open */

static heddle_status begin(heddle_pinstance *self, uint32_t index, remote_link **link, const remote_about **about,
                           byte_buffer *b, heddle_error *err) {
  remote_server *server;
  uint32_t remote;
  heddle_status s = remote_find(self, index, &server, &remote, err);
  if (s != HEDDLE_OK) return s;
  *about = &server->devices[remote];
  if (!(*about)->has_op)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: %s has no operators", index, (*about)->name);
  s = remote_link_get(self, (uint32_t)(server - self->servers), link, err);
  if (s != HEDDLE_OK) return s;
  wire_begin(b);
  byte_put_u32(b, remote);
  return HEDDLE_OK;
}

static heddle_status malformed(uint32_t index, heddle_error *err) {
  return p_fail(err, HEDDLE_EFAILED, 0, "remote:%u: an answer of the server is malformed", index);
}

static heddle_status give_offers(remote_link *link, const remote_about *about, const heddle_pregion *region,
                                 byte_reader *r, uint32_t index, heddle_offer_fn offer, void *sink, heddle_error *err) {
  region_user user = {link, about};
  const bool extends = link->minor >= WIRE_EXTENDS_MINOR;
  const uint32_t n = wire_take_count(r, WIRE_MOST_OFFERS, 48);
  heddle_status s = n > 0 ? HEDDLE_OK : malformed(index, err);
  for (uint32_t i = 0; i < n && s == HEDDLE_OK; i++) {
    heddle_poffer o;
    void *block;
    if (!wire_take_offer(r, region->n_inputs, region->n_outputs, extends, token, &user, &o, &block))
      s = malformed(index, err);
    else s = offer(sink, &o, err);
    free(block);
  }
  if (s == HEDDLE_OK && !wire_is_done(r)) s = malformed(index, err);
  return s;
}

/* Libraries are not sent to a server that does not run them. */
static heddle_status check_library(const remote_about *about, uint32_t index, const heddle_pregion *region,
                                   heddle_error *err) {
  const heddle_pnode *first = region->nodes.data;
  if (about->has_libraries || strcmp(first->domain, HEDDLE_DOMAIN_LIBRARY) != 0) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0,
                "function '%.200s' on remote:%u: the server runs no code of its clients; heddle device-server "
                "--allow-libraries does",
                first->op, index);
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  const remote_about *about;
  remote_link *link;
  byte_buffer b = {0}, reply = {0};
  heddle_status s = begin(self, index, &link, &about, &b, err);
  if (s != HEDDLE_OK) return s;
  s = check_library(about, index, region, err);
  if (s == HEDDLE_OK) s = ask_region(link, about, WIRE_QUERY, &b, region, &reply, err);
  else byte_finish(&b);
  byte_reader r = {reply.data, reply.used, false};
  if (s == HEDDLE_OK) s = give_offers(link, about, region, &r, index, offer, sink, err);
  byte_finish(&reply);
  remote_link_drop(link);
  return s;
}

static heddle_status give_proposals(const heddle_pregion *region, byte_reader *r, uint32_t index,
                                    heddle_propose_fn propose, void *sink, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  uint32_t *nodes = malloc((region->nodes.count + 1) * sizeof *nodes);
  if (nodes == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for a proposal", index);
  while (s == HEDDLE_OK && !r->bad && r->left > 0) {
    const uint32_t n = wire_take_count(r, (uint32_t)region->nodes.count, 4);
    for (uint32_t i = 0; i < n; i++) {
      nodes[i] = byte_take_u32(r);
      if (nodes[i] >= region->nodes.count) r->bad = true;
    }
    if (!r->bad && n > 0) s = propose(sink, nodes, n, err);
  }
  free(nodes);
  return s == HEDDLE_OK && r->bad ? malformed(index, err) : s;
}

static heddle_status op_partition(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                  heddle_propose_fn propose, void *sink, heddle_error *err) {
  const remote_about *about;
  remote_link *link;
  byte_buffer b = {0}, reply = {0};
  heddle_status s = begin(self, index, &link, &about, &b, err);
  if (s != HEDDLE_OK) return s;
  if (!about->has_partition) {
    s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: %s proposes no regions", index, about->name);
    byte_finish(&b);
  } else {
    s = ask_region(link, about, WIRE_PARTITION, &b, region, &reply, err);
  }
  byte_reader r = {reply.data, reply.used, false};
  if (s == HEDDLE_OK) s = give_proposals(region, &r, index, propose, sink, err);
  byte_finish(&reply);
  remote_link_drop(link);
  return s;
}

static heddle_status op_list(heddle_pinstance *self, uint32_t index, heddle_list_fn list, void *sink,
                             heddle_error *err) {
  const remote_about *about;
  remote_link *link;
  byte_buffer b = {0}, reply = {0};
  heddle_status s = begin(self, index, &link, &about, &b, err);
  if (s != HEDDLE_OK) return s;
  if (!about->has_list) {
    s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: %s lists no operators", index, about->name);
    byte_finish(&b);
  } else {
    s = remote_ask(link, WIRE_LIST, &b, &reply, err);
  }
  byte_reader r = {reply.data, reply.used, false};
  while (s == HEDDLE_OK && r.left > 0) {
    char domain[128], op[128], dtypes[512];
    wire_take_text(&r, domain, sizeof domain);
    wire_take_text(&r, op, sizeof op);
    const uint32_t first = byte_take_u32(&r), last = byte_take_u32(&r);
    wire_take_text(&r, dtypes, sizeof dtypes);
    s = r.bad ? malformed(index, err) : list(sink, domain, op, first, last, dtypes, err);
  }
  byte_finish(&reply);
  remote_link_drop(link);
  return s;
}

/* ---------------------------------------------------------------- preparing and binding */

static void destroy_op(heddle_pdevice *dev, remote_kept *kept) {
  heddle_pop *op = (heddle_pop *)(void *)kept;
  remote_forget(dev->link, op->handle);
  dev->host->free(dev->host->ctx, op);
}

static void op_free(heddle_pop *op) {
  if (op == NULL) return;
  remote_count(op->dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  remote_give(op->dev, &op->kept);
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  byte_buffer b = {0}, reply = {0};
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  heddle_pop *op = remote_new(dev->host, sizeof *op);
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for an operator", dev->index);
  wire_begin(&b);
  byte_put_u32(&b, dev->remote);
  byte_put_u32(&b, offer);
  s = ask_region(dev->link, dev->about, WIRE_PREPARE, &b, region, &reply, err);
  byte_reader r = {reply.data, reply.used, false};
  op->handle = s == HEDDLE_OK ? byte_take_u64(&r) : 0;
  if (s == HEDDLE_OK && !wire_is_done(&r)) s = malformed(dev->index, err);
  byte_finish(&reply);
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, op);
    return s;
  }
  op->kept.destroy = destroy_op;
  op->dev = dev;
  remote_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  *out = op;
  return HEDDLE_OK;
}

static void destroy_launch(heddle_pdevice *dev, remote_kept *kept) {
  heddle_plaunch *launch = (heddle_plaunch *)(void *)kept;
  remote_forget(dev->link, launch->handle);
  remote_stream_give(launch->stream);
  dev->host->free(dev->host->ctx, launch);
}

static void launch_free(heddle_plaunch *launch) {
  if (launch == NULL) return;
  heddle_pdevice *dev = launch->stream->dev;
  remote_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, -1);
  remote_give(dev, &launch->kept);
}

static heddle_status put_slice(heddle_pdevice *dev, byte_buffer *b, const heddle_pslice *slice, heddle_error *err) {
  if (slice->buffer != NULL) {
    heddle_status s =
        remote_range(dev, slice->buffer, HEDDLE_MEMORY_DEVICE, slice->offset, slice->bytes, "an operand", err);
    if (s != HEDDLE_OK) return s;
  }
  byte_put_u64(b, slice->buffer != NULL ? slice->buffer->handle : 0);
  byte_put_u64(b, slice->buffer != NULL ? slice->offset : 0);
  byte_put_u64(b, slice->buffer != NULL ? slice->bytes : 0);
  return HEDDLE_OK;
}

static heddle_status put_slices(heddle_pdevice *dev, byte_buffer *b, const heddle_pbind *operands, heddle_error *err) {
  heddle_status s = put_slice(dev, b, &operands->workspace, err);
  for (uint32_t i = 0; i < operands->n_inputs && s == HEDDLE_OK; i++) s = put_slice(dev, b, &operands->inputs[i], err);
  for (uint32_t i = 0; i < operands->n_outputs && s == HEDDLE_OK; i++)
    s = put_slice(dev, b, &operands->outputs[i], err);
  return s;
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                             heddle_error *err) {
  heddle_pdevice *dev = op->dev;
  byte_buffer b = {0};
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (stream->dev != dev)
    return p_fail(err, HEDDLE_EINVAL, 0, "remote:%u: the stream is of another device", dev->index);
  heddle_plaunch *launch = remote_new(dev->host, sizeof *launch);
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "remote:%u: no memory for a launch", dev->index);
  wire_begin(&b);
  byte_put_u64(&b, op->handle);
  byte_put_u32(&b, stream->id);
  byte_put_u32(&b, operands->n_inputs);
  byte_put_u32(&b, operands->n_outputs);
  s = put_slices(dev, &b, operands, err);
  if (s == HEDDLE_OK) s = remote_ask_number(dev->link, WIRE_BIND, &b, &launch->handle, err);
  else byte_finish(&b);
  if (s == HEDDLE_OK) {
    s = remote_stream_take(stream, err);
    if (s != HEDDLE_OK) remote_forget(dev->link, launch->handle);
  }
  if (s != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, launch);
    return s;
  }
  launch->kept.destroy = destroy_launch;
  launch->stream = stream;
  remote_count(dev, HEDDLE_QUERY_LIVE_OBJECTS, 1);
  *out = launch;
  return HEDDLE_OK;
}

/* Whether the server accepted this request before. Each hash is in one set, the last one of the set first. */
static bool was_accepted(const heddle_plaunch *launch, uint64_t hash) {
  const uint64_t *set = launch->resized[hash % REMOTE_RESIZE_SETS];
  for (int i = 0; i < REMOTE_RESIZES; i++)
    if (set[i] == hash) return true;
  return false;
}

static void remember(heddle_plaunch *launch, uint64_t hash) {
  uint64_t *set = launch->resized[hash % REMOTE_RESIZE_SETS];
  memmove(set + 1, set, (REMOTE_RESIZES - 1) * sizeof *set);
  set[0] = hash;
}

/* What the server accepted once it accepts again, and its answer is not waited for. */
static heddle_status ask_resize(heddle_plaunch *launch, const heddle_pregion *region, byte_buffer *b,
                                heddle_error *err) {
  enum { SINCE = 3 };
  const heddle_pdevice *dev = launch->stream->dev;
  remote_link *link = dev->link;
  remote_call call;
  byte_buffer reply = {0};
  heddle_status s = put_region(link, dev->about, WIRE_RESIZE, b, region, err);
  if (s != HEDDLE_OK) return s;
  uint64_t hash = fnv1a(FNV1A_START, b->data + WIRE_HEAD, b->used - WIRE_HEAD);
  if (hash == 0) hash = 1;
  const bool is_known = link->minor >= SINCE && was_accepted(launch, hash);
  s = is_known ? remote_post(link, WIRE_RESIZE, 0, b, err) : remote_ask_begin(link, WIRE_RESIZE, b, &call, err);
  pthread_mutex_unlock(&link->regions);
  if (is_known || s != HEDDLE_OK) return s;
  s = remote_ask_end(link, &call, &reply, err);
  if (s == HEDDLE_OK && reply.used > 0) s = malformed(dev->index, err);
  byte_finish(&reply);
  if (s == HEDDLE_OK) remember(launch, hash);
  return s;
}

static heddle_status op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *operands,
                               heddle_error *err) {
  heddle_pdevice *dev = launch->stream->dev;
  byte_buffer b = {0};
  heddle_status s = remote_check(dev, err);
  if (s != HEDDLE_OK) return s;
  if (!dev->about->has_resize)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: %s resizes no launches", dev->index, dev->about->name);
  wire_begin(&b);
  byte_put_u64(&b, launch->handle);
  s = put_slices(dev, &b, operands, err);
  if (s == HEDDLE_OK) return ask_resize(launch, region, &b, err);
  byte_finish(&b);
  return s;
}

static heddle_status op_run(heddle_plaunch *launch, heddle_error *err) {
  const remote_cmd cmd = {.kind = CMD_RUN, .to = launch->handle};
  return remote_push(launch->stream, &cmd, err);
}

const heddle_op_table remote_op_table = {
    .struct_size = sizeof remote_op_table,
    .launch_free = launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = op_bind,
    .run = op_run,
    .partition = op_partition,
    .list = op_list,
    .resize = op_resize,
};
