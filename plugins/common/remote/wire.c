/* Frames and the parts that messages consist of. */
#include "plugins/common/remote/wire.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/perror.h"

/* ---- writing */

void wire_put_text(byte_buffer *b, const char *text) {
  const size_t n = text != NULL ? strlen(text) : 0;
  byte_put_u32(b, (uint32_t)n);
  byte_put(b, text, n);
}

void wire_head_put(uint8_t out[WIRE_HEAD], const wire_head *head) {
  byte_place(out, head->bytes, 8);
  byte_place(out + 8, head->kind, 4);
  byte_place(out + 12, head->id, 4);
}

void wire_begin(byte_buffer *b) {
  static const uint8_t nothing[WIRE_HEAD];
  byte_put(b, nothing, sizeof nothing);
}

void wire_end(byte_buffer *b, uint32_t kind, uint32_t id, uint64_t more) {
  if (b->failed) return;
  wire_head_put(b->data, &(wire_head){.bytes = b->used - WIRE_HEAD + more, .kind = kind, .id = id});
}

/* ---- reading */

wire_head wire_head_take(const uint8_t in[WIRE_HEAD]) {
  return (wire_head){
      .bytes = byte_number(in, 8), .kind = (uint32_t)byte_number(in + 8, 4), .id = (uint32_t)byte_number(in + 12, 4)};
}

uint32_t wire_take_count(byte_reader *r, uint32_t most, size_t least) {
  const uint32_t n = byte_take_u32(r);
  if (r->bad || n > most || n > r->left / (least > 0 ? least : 1)) {
    r->bad = true;
    return 0;
  }
  return n;
}

void wire_take_text(byte_reader *r, char *out, size_t room) {
  const uint32_t n = byte_take_u32(r);
  out[0] = '\0';
  if (r->bad || n >= room) {
    r->bad = true;
    return;
  }
  const uint8_t *at = byte_take(r, n);
  if (at == NULL || (n > 0 && memchr(at, 0, n) != NULL)) {
    r->bad = true;
    return;
  }
  if (n > 0) memcpy(out, at, n);
  out[n] = '\0';
}

bool wire_is_done(const byte_reader *r) {
  return !r->bad && r->left == 0;
}

/* ---- errors */

void wire_put_error(byte_buffer *b, heddle_status status, const heddle_error *err) {
  byte_put_u32(b, (uint32_t)status);
  byte_put_u32(b, status != HEDDLE_OK ? (uint32_t)err->api_code : 0);
  wire_put_text(b, status != HEDDLE_OK ? err->text : "");
}

heddle_status wire_take_error(byte_reader *r, heddle_error *err) {
  char text[sizeof err->text];
  const uint32_t status = byte_take_u32(r), code = byte_take_u32(r);
  wire_take_text(r, text, sizeof text);
  if (r->bad || status >= HEDDLE_STATUS_COUNT) {
    r->bad = true;
    return p_fail(err, HEDDLE_EFORMAT, 0, "an answer of the server is malformed");
  }
  if (status != HEDDLE_OK) (void)p_fail(err, (heddle_status)status, (int32_t)code, "%s", text);
  return (heddle_status)status;
}
