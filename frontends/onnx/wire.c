/* frontends/onnx/wire.c: walks the wire format of protocol buffers by the schema's descriptors, and copies it without
 * what is large. The encoding is that of protobuf.dev/programming-guides/encoding; lengths of nested messages are
 * written with five bytes each, which any reader takes, so that they can be filled in afterwards. */
#include "frontends/onnx/wire.h"

#include <onnx.pb-c.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { LENGTH_BYTES = HEDDLE__ONNX_LENGTH_BYTES, RAW_DATA = 9, DEFAULTS = 11 };

typedef struct walk {
  const char *name;
  const unsigned char *data;
  const heddle_read_limits *limits;
  unsigned char *out;
  size_t used, capacity;
  uint32_t n_nodes;
  heddle_error *err;
} walk;

/* ---- reading */

static heddle_status bad(const walk *w, const unsigned char *at, const char *what) {
  return heddle__fail(w->err, HEDDLE_EFORMAT, "%s: byte %llu: %s; it is no ONNX model, or was damaged", w->name,
                      (unsigned long long)(at - w->data), what);
}

/* A number of at most 64 bits in *at, before end; false where it is cut short or too long. */
static bool take_varint(const unsigned char **at, const unsigned char *end, uint64_t *out) {
  *out = 0;
  for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
    unsigned char byte = *(*at)++;
    *out |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

/* ---- writing */

static heddle_status put(walk *w, const void *bytes, size_t n) {
  if (n > w->limits->max_bytes - w->used)
    return heddle__fail(w->err, HEDDLE_ELIMIT,
                        "%s: without its weights it is larger than %llu bytes; the limit is an option of the reader",
                        w->name, (unsigned long long)w->limits->max_bytes);
  if (n > w->capacity - w->used) {
    size_t more = w->capacity * 2 > w->used + n ? w->capacity * 2 : w->used + n + 4096;
    unsigned char *grown = heddle__grow(w->out, w->capacity, more, 1);
    if (grown == NULL) return heddle__no_memory(w->err, "a model");
    w->out = grown;
    w->capacity = more;
  }
  if (n > 0) memcpy(w->out + w->used, bytes, n);
  w->used += n;
  return HEDDLE_OK;
}

static heddle_status put_length(walk *w, size_t length) {
  unsigned char bytes[LENGTH_BYTES];
  for (int i = 0; i < LENGTH_BYTES; i++) bytes[i] = (unsigned char)((length >> (7 * i) & 127) | (i < 4 ? 128 : 0));
  return put(w, bytes, sizeof bytes);
}

/* ---- the walk */

static bool is_comment(const ProtobufCFieldDescriptor *field) {
  return strcmp(field->name, "doc_string") == 0 || strcmp(field->name, "metadata_props") == 0;
}

static heddle_status copy_message(walk *w, const ProtobufCMessageDescriptor *type, const unsigned char *at,
                                  const unsigned char *end, uint32_t depth);

/* A message in a field; tag stands before its length. */
static heddle_status copy_nested(walk *w, const ProtobufCMessageDescriptor *type, const void *tag, size_t tag_bytes,
                                 const unsigned char *at, const unsigned char *end, uint32_t depth) {
  heddle_status s = put(w, tag, tag_bytes);
  size_t place = w->used;
  if (s == HEDDLE_OK) s = put_length(w, 0);
  if (s == HEDDLE_OK) s = copy_message(w, type, at, end, depth + 1);
  if (s != HEDDLE_OK) return s;
  size_t all = w->used;
  w->used = place;
  s = put_length(w, all - place - LENGTH_BYTES);
  w->used = all;
  return s;
}

/* A field of bytes: a message, a string, or plain. tag is what stands before its length. */
static heddle_status copy_bytes(walk *w, const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field,
                                const unsigned char *tag, size_t tag_bytes, const unsigned char *at, uint64_t length,
                                uint32_t depth) {
  if (field->type == PROTOBUF_C_TYPE_MESSAGE)
    return copy_nested(w, field->descriptor, tag, tag_bytes, at, at + length, depth);
  heddle_status s = put(w, tag, tag_bytes);
  if (s == HEDDLE_OK && type == &onnx__tensor_proto__descriptor && field->id == RAW_DATA) {
    heddle__onnx_raw raw = {(uint64_t)(at - w->data), length};
    s = put_length(w, sizeof raw);
    return s == HEDDLE_OK ? put(w, &raw, sizeof raw) : s;
  }
  if (field->type == PROTOBUF_C_TYPE_STRING && length > 0 && memchr(at, 0, (size_t)length) != NULL)
    return bad(w, at, "a name with a zero byte in it");
  if (s == HEDDLE_OK && length > INT32_MAX)
    return heddle__fail(w->err, HEDDLE_ELIMIT, "%s: byte %llu: a field of %llu bytes is over 2^31", w->name,
                        (unsigned long long)(at - w->data), (unsigned long long)length);
  if (s == HEDDLE_OK) s = put_length(w, (size_t)length);
  return s == HEDDLE_OK ? put(w, at, (size_t)length) : s;
}

static heddle_status copy_field(walk *w, const ProtobufCMessageDescriptor *type, const unsigned char **at,
                                const unsigned char *end, uint32_t depth) {
  const unsigned char *start = *at;
  uint64_t tag = 0, value = 0;
  if (!take_varint(at, end, &tag) || tag >> 3 == 0 || tag >> 3 > (1 << 29) - 1)
    return bad(w, start, "expected the number of a field");
  size_t tag_bytes = (size_t)(*at - start);
  const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
  bool is_default = type == &onnx__function_proto__descriptor && tag >> 3 == DEFAULTS;
  bool keep = (field != NULL && !is_comment(field)) || is_default;
  if (is_default && (tag & 7) != BYTES) return bad(w, start, "expected an attribute");
  switch (tag & 7) {
  case VARINT:
    if (!take_varint(at, end, &value)) return bad(w, start, "a number that is cut short");
    return keep ? put(w, start, (size_t)(*at - start)) : HEDDLE_OK;
  case FIXED64:
  case FIXED32: {
    size_t n = (tag & 7) == FIXED64 ? 8 : 4;
    if ((size_t)(end - *at) < n) return bad(w, start, "a number that is cut short");
    *at += n;
    return keep ? put(w, start, (size_t)(*at - start)) : HEDDLE_OK;
  }
  case BYTES:
    if (!take_varint(at, end, &value)) return bad(w, start, "a length that is cut short");
    if (value > (uint64_t)(end - *at)) {
      char words[96];
      snprintf(words, sizeof words, "a field of %llu bytes where %llu are left", (unsigned long long)value,
               (unsigned long long)(end - *at));
      return bad(w, start, words);
    }
    *at += value;
    if (is_default) {
      static const unsigned char kept[] = {(HEDDLE__ONNX_DEFAULTS << 3 & 127) | 128 | BYTES,
                                           HEDDLE__ONNX_DEFAULTS >> 4};
      return copy_nested(w, &onnx__attribute_proto__descriptor, kept, sizeof kept, *at - value, *at, depth);
    }
    return keep ? copy_bytes(w, type, field, start, tag_bytes, *at - value, value, depth) : HEDDLE_OK;
  default: return bad(w, start, "expected a field of a known kind");
  }
}

static heddle_status copy_message(walk *w, const ProtobufCMessageDescriptor *type, const unsigned char *at,
                                  const unsigned char *end, uint32_t depth) {
  heddle_status s = HEDDLE_OK;
  if (depth > w->limits->max_depth)
    return heddle__fail(w->err, HEDDLE_ELIMIT,
                        "%s: byte %llu: nested deeper than %u; the limit is an option of the reader", w->name,
                        (unsigned long long)(at - w->data), (unsigned)w->limits->max_depth);
  if (type == &onnx__node_proto__descriptor && ++w->n_nodes > w->limits->max_nodes)
    return heddle__fail(w->err, HEDDLE_ELIMIT, "%s: more than %u nodes; the limit is an option of the reader", w->name,
                        (unsigned)w->limits->max_nodes);
  while (at < end && s == HEDDLE_OK) s = copy_field(w, type, &at, end, depth);
  return s;
}

heddle_status heddle__onnx_thin(const char *name, const unsigned char *data, uint64_t bytes,
                                const heddle_read_limits *limits, unsigned char **out, size_t *out_bytes,
                                heddle_error *err) {
  static const unsigned char nothing[1];
  heddle_read_limits own = *limits;
  if (own.max_bytes > INT32_MAX) own.max_bytes = INT32_MAX; /* protobuf-c's */
  walk w = {.name = name, .data = bytes > 0 ? data : nothing, .limits = &own, .err = err};
  heddle_status s = copy_message(&w, &onnx__model_proto__descriptor, w.data, w.data + bytes, 1);
  if (s != HEDDLE_OK) {
    heddle__free(w.out);
    return s;
  }
  *out = w.out;
  *out_bytes = w.used;
  return HEDDLE_OK;
}
