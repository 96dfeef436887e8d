/* Layouts of the servers' plugins. Two of them may use one token for two layouts, and the host takes a token of this plugin to
 * mean the same on all of its devices: tokens are exchanged with a number that differs by plugin. */
#include "plugins/remote/remote.h"

/* Its own inverse; 0 stays 0. */
heddle_layout remote_token(uint64_t tokens, heddle_layout layout) {
  return layout == 0 || layout == tokens ? layout : layout ^ tokens;
}

static heddle_layout token(void *user, heddle_layout layout) {
  return remote_token(((const remote_about *)user)->tokens, layout);
}

static heddle_status begin(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, remote_link **link,
                           byte_buffer *b, heddle_error *err) {
  remote_server *server;
  uint32_t remote;
  heddle_status s = remote_find(self, index, &server, &remote, err);
  if (s != HEDDLE_OK) return s;
  remote_about *about = &server->devices[remote];
  if (!about->has_layout)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "remote:%u: %s has no layouts", index, about->name);
  s = remote_link_get(self, (uint32_t)(server - self->servers), link, err);
  if (s != HEDDLE_OK) return s;
  wire_begin(b);
  byte_put_u32(b, remote);
  wire_put_value(b, tensor, token, about);
  return HEDDLE_OK;
}

static heddle_status layout_bytes(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, uint64_t *bytes,
                                  uint64_t *align, heddle_error *err) {
  remote_link *link;
  byte_buffer b = {0}, reply = {0};
  heddle_status s = begin(self, index, tensor, &link, &b, err);
  if (s != HEDDLE_OK) return s;
  s = remote_ask(link, WIRE_LAYOUT_BYTES, &b, &reply, err);
  byte_reader r = {reply.data, reply.used, false};
  if (s == HEDDLE_OK) {
    *bytes = byte_take_u64(&r);
    *align = byte_take_u64(&r);
    if (!wire_is_done(&r)) s = p_fail(err, HEDDLE_EFAILED, 0, "remote:%u: an answer is malformed", index);
  }
  byte_finish(&reply);
  remote_link_drop(link);
  return s;
}

static heddle_status layout_pack(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, void *dst,
                                 uint64_t dst_bytes, heddle_error *err) {
  remote_link *link;
  byte_buffer b = {0}, reply = {0};
  heddle_status s = begin(self, index, tensor, &link, &b, err);
  if (s != HEDDLE_OK) return s;
  byte_put_u64(&b, dst_bytes);
  byte_put(&b, tensor->data, tensor->data_bytes);
  s = remote_ask(link, WIRE_LAYOUT_PACK, &b, &reply, err);
  if (s == HEDDLE_OK && reply.used != dst_bytes)
    s = p_fail(err, HEDDLE_EFAILED, 0, "remote:%u: an answer is malformed", index);
  if (s == HEDDLE_OK && dst_bytes > 0) memcpy(dst, reply.data, dst_bytes);
  byte_finish(&reply);
  remote_link_drop(link);
  return s;
}

static heddle_status layout_describe(heddle_pinstance *self, uint32_t index, heddle_layout layout, char *buf,
                                     uint64_t bytes, heddle_error *err) {
  static const int64_t no_shape[1] = {1};
  const heddle_pvalue tensor = {
      .struct_size = sizeof tensor, .dtype = {HEDDLE_DTYPE_UINT, 8, 1}, .shape = no_shape, .layout = layout};
  remote_link *link;
  byte_buffer b = {0}, reply = {0};
  heddle_status s = begin(self, index, &tensor, &link, &b, err);
  if (s != HEDDLE_OK) return s;
  s = remote_ask(link, WIRE_LAYOUT_NAME, &b, &reply, err);
  byte_reader r = {reply.data, reply.used, false};
  if (s == HEDDLE_OK) {
    char text[256];
    wire_take_text(&r, text, sizeof text);
    if (!wire_is_done(&r)) s = p_fail(err, HEDDLE_EFAILED, 0, "remote:%u: an answer is malformed", index);
    p_one_line(text);
    if (s == HEDDLE_OK && bytes > 0) (void)snprintf(buf, bytes, "%s", text);
  }
  byte_finish(&reply);
  remote_link_drop(link);
  return s;
}

const heddle_layout_table remote_layout_table = {
    .struct_size = sizeof remote_layout_table,
    .bytes = layout_bytes,
    .pack = layout_pack,
    .describe = layout_describe,
};
