/* rpc/wire.c: reading and writing of TVM's RPC packets. */
#include "rpc/wire.h"

#include <stdlib.h>
#include <string.h>

/* ---- tags */

enum { NESTED_STRING = 65, NESTED_BYTES = 66 };
enum { A_MODULE = 9, A_FUNCTION = 10, A_STRING = 11, A_BYTES = 12, A_BOOL = 15 };
enum { B_STRING = 8, B_BYTES = 9, B_SMALL_STRING = 11, B_SMALL_BYTES = 12 };
enum { B_FUNCTION = 68, B_MODULE = 73, B_OBJECT = 115 };

/* -1: there is no such tag. */
static int kind_a(uint32_t tag) {
  static const int8_t kinds[] = {RPC_KIND_INT,
                                 RPC_KIND_INT,
                                 RPC_KIND_FLOAT,
                                 RPC_KIND_HANDLE,
                                 RPC_KIND_NULL,
                                 RPC_KIND_DTYPE,
                                 RPC_KIND_DEVICE,
                                 RPC_KIND_TENSOR,
                                 RPC_KIND_OBJECT,
                                 RPC_KIND_MODULE,
                                 RPC_KIND_FUNCTION,
                                 RPC_KIND_STRING,
                                 RPC_KIND_BYTES,
                                 -1,
                                 -1,
                                 RPC_KIND_BOOL};
  return tag < sizeof kinds ? kinds[tag] : -1;
}

static int kind_b(uint32_t tag) {
  static const int8_t kinds[] = {RPC_KIND_NULL,
                                 RPC_KIND_INT,
                                 RPC_KIND_BOOL,
                                 RPC_KIND_FLOAT,
                                 RPC_KIND_HANDLE,
                                 RPC_KIND_DTYPE,
                                 RPC_KIND_DEVICE,
                                 RPC_KIND_TENSOR,
                                 RPC_KIND_STRING,
                                 RPC_KIND_BYTES,
                                 -1,
                                 RPC_KIND_STRING,
                                 RPC_KIND_BYTES};
  if (tag < sizeof kinds) return kinds[tag];
  switch (tag) {
  case NESTED_STRING: return RPC_KIND_STRING;
  case NESTED_BYTES: return RPC_KIND_BYTES;
  case B_FUNCTION: return RPC_KIND_FUNCTION;
  case B_MODULE: return RPC_KIND_MODULE;
  case B_OBJECT: return RPC_KIND_OBJECT;
  default: return -1;
  }
}

static uint32_t tag_of(rpc_era era, rpc_kind kind) {
  static const uint32_t a[] = {4, 0, 2, 0, 3, 5, 6, 7, A_STRING, A_BYTES, A_MODULE, A_FUNCTION, 8};
  static const uint32_t b[] = {0, 1, 3, 2, 4, 5, 6, 7, B_STRING, B_BYTES, B_MODULE, B_FUNCTION, B_OBJECT};
  return era == RPC_ERA_A ? a[kind] : b[kind];
}

/* Those of A have kinds of their own for a string and bytes alone; of B the forms that its later clients read. A tensor is
 * 7 everywhere. */
int64_t rpc_result_tag(rpc_era era, rpc_kind kind) {
  if (era == RPC_ERA_B && kind == RPC_KIND_STRING) return B_SMALL_STRING;
  if (era == RPC_ERA_B && kind == RPC_KIND_BYTES) return B_SMALL_BYTES;
  return tag_of(era, kind);
}

/* ---- reading */

bool rpc_read_tensor(byte_reader *r, rpc_tensor *out) {
  *out = (rpc_tensor){.data = byte_take_u64(r)};
  out->device.type = (int32_t)byte_take_u32(r);
  out->device.number = (int32_t)byte_take_u32(r);
  uint32_t ndim = byte_take_u32(r), dtype = byte_take_u32(r);
  if (r->bad || ndim > RPC_MOST_DIMENSIONS) return !(r->bad = true);
  out->ndim = ndim;
  out->dtype = (heddle_dtype){(uint8_t)dtype, (uint8_t)(dtype >> 8), (uint16_t)(dtype >> 16)};
  uint64_t count = 1;
  bool empty = false;
  for (uint32_t i = 0; i < ndim; i++) {
    out->shape[i] = (int64_t)byte_take_u64(r);
    if (out->shape[i] < 0) r->bad = true;
    if (out->shape[i] == 0) empty = true;
  }
  for (uint32_t i = 0; i < ndim && !empty; i++)
    if (__builtin_mul_overflow(count, (uint64_t)out->shape[i], &count)) r->bad = true;
  if (empty) count = 0;
  out->offset = byte_take_u64(r);
  const uint64_t bits = (uint64_t)out->dtype.bits * out->dtype.lanes;
  uint64_t all;
  if (bits == 0 || __builtin_mul_overflow(count, bits, &all) || all > (uint64_t)INT64_MAX - 7) r->bad = true;
  else out->bytes = bits < 8 ? count : (all + 7) / 8; /* uint1 is a byte each */
  return !r->bad;
}

/* The bytes of a string or of bytes, which the tag alone may not say: nested ones have a second tag. */
static void read_text(byte_reader *r, rpc_era era, uint32_t tag, rpc_value *v) {
  if (era != RPC_ERA_A && tag != B_STRING && tag != B_BYTES) {
    uint32_t inner = byte_take_u32(r);
    if (inner != (v->kind == RPC_KIND_STRING ? NESTED_STRING : NESTED_BYTES)) r->bad = true;
  }
  v->of.text.bytes = byte_take_u64(r);
  v->of.text.data = (const char *)byte_take(r, v->of.text.bytes);
}

static void read_value(byte_reader *r, rpc_era era, uint32_t tag, rpc_value *v, rpc_tensor *tensor) {
  int kind = era == RPC_ERA_A ? kind_a(tag) : kind_b(tag);
  uint64_t word;
  if (kind < 0) {
    r->bad = true;
    return;
  }
  *v = (rpc_value){.kind = (rpc_kind)kind};
  switch (v->kind) {
  case RPC_KIND_NULL: break;
  case RPC_KIND_DTYPE: {
    uint32_t dtype = byte_take_u32(r);
    (void)byte_take_u32(r);
    v->of.dtype = (heddle_dtype){(uint8_t)dtype, (uint8_t)(dtype >> 8), (uint16_t)(dtype >> 16)};
    break;
  }
  case RPC_KIND_DEVICE:
    v->of.device.type = (int32_t)byte_take_u32(r);
    v->of.device.number = (int32_t)byte_take_u32(r);
    break;
  case RPC_KIND_TENSOR:
    rpc_read_tensor(r, tensor);
    v->of.tensor = tensor;
    break;
  case RPC_KIND_STRING:
  case RPC_KIND_BYTES: read_text(r, era, tag, v); break;
  case RPC_KIND_OBJECT: /* a tag inside, then the handle */
    (void)byte_take_u32(r);
    v->of.handle = byte_take_u64(r);
    break;
  default:
    word = byte_take_u64(r);
    memcpy(&v->of, &word, sizeof word);
    break;
  }
}

/* One walk over the sequence; v and tensors NULL: only counts. */
static void walk(byte_reader *r, rpc_era era, uint32_t count, rpc_value *v, rpc_tensor *tensors, size_t *n_tensors,
                 size_t *text_bytes) {
  byte_reader tags = *r;
  if (era == RPC_ERA_A) (void)byte_take(r, (uint64_t)count * 4);
  for (uint32_t i = 0; i < count && !r->bad; i++) {
    rpc_value spare;
    rpc_tensor spare_tensor;
    rpc_value *to = v != NULL ? &v[i] : &spare;
    uint32_t tag = byte_take_u32(era == RPC_ERA_A ? &tags : r);
    read_value(r, era, tag, to, v != NULL ? &tensors[*n_tensors] : &spare_tensor);
    if (r->bad) return;
    if (to->kind == RPC_KIND_TENSOR) (*n_tensors)++;
    if (to->kind == RPC_KIND_STRING) *text_bytes += (size_t)to->of.text.bytes + 1;
  }
}

/* Strings are copied, to end in a zero; one with a zero inside is malformed. */
static bool copy_strings(rpc_values *v, char *room) {
  for (uint32_t i = 0; i < v->count; i++) {
    rpc_value *s = &v->data[i];
    if (s->kind != RPC_KIND_STRING) continue;
    size_t n = (size_t)s->of.text.bytes;
    if (n > 0 && memchr(s->of.text.data, 0, n) != NULL) return false;
    if (n > 0) memcpy(room, s->of.text.data, n);
    room[n] = '\0';
    s->of.text.data = room;
    room += n + 1;
  }
  return true;
}

heddle_status rpc_read_values(byte_reader *r, rpc_era era, rpc_values *out) {
  *out = (rpc_values){0};
  uint32_t count = byte_take_u32(r);
  size_t n_tensors = 0, text_bytes = 0;
  if (r->bad || count > r->left / 4) return HEDDLE_EFORMAT;
  if (count > RPC_MOST_VALUES) return HEDDLE_ELIMIT;
  byte_reader first = *r;
  walk(&first, era, count, NULL, NULL, &n_tensors, &text_bytes);
  if (first.bad) {
    r->bad = true;
    return HEDDLE_EFORMAT;
  }
  const size_t tensors_at = count * sizeof(rpc_value), text_at = tensors_at + (n_tensors + 1) * sizeof(rpc_tensor);
  char *block = malloc(text_at + text_bytes + 1);
  if (block == NULL) return HEDDLE_ENOMEM;
  *out = (rpc_values){(rpc_value *)(void *)block, count, block};
  n_tensors = text_bytes = 0;
  walk(r, era, count, out->data, (rpc_tensor *)(void *)(block + tensors_at), &n_tensors, &text_bytes);
  if (copy_strings(out, block + text_at)) return HEDDLE_OK;
  rpc_values_finish(out);
  r->bad = true;
  return HEDDLE_EFORMAT;
}

void rpc_values_finish(rpc_values *v) {
  free(v->block);
  *v = (rpc_values){0};
}

/* ---- writing */

static void put_dtype(byte_buffer *b, heddle_dtype d) {
  byte_put_u32(b, (uint32_t)d.code | (uint32_t)d.bits << 8 | (uint32_t)d.lanes << 16);
}

static void put_payload(byte_buffer *b, const rpc_value *v) {
  uint64_t word = 0;
  switch (v->kind) {
  case RPC_KIND_NULL: return;
  case RPC_KIND_DTYPE:
    put_dtype(b, v->of.dtype);
    byte_put_u32(b, 0);
    return;
  case RPC_KIND_DEVICE:
    byte_put_u32(b, (uint32_t)v->of.device.type);
    byte_put_u32(b, (uint32_t)v->of.device.number);
    return;
  case RPC_KIND_TENSOR: {
    const rpc_tensor *t = v->of.tensor;
    byte_put_u64(b, t->data);
    byte_put_u32(b, (uint32_t)t->device.type);
    byte_put_u32(b, (uint32_t)t->device.number);
    byte_put_u32(b, t->ndim);
    put_dtype(b, t->dtype);
    for (uint32_t i = 0; i < t->ndim; i++) byte_put_u64(b, (uint64_t)t->shape[i]);
    byte_put_u64(b, t->offset);
    return;
  }
  case RPC_KIND_STRING:
  case RPC_KIND_BYTES:
    byte_put_u64(b, v->of.text.bytes);
    byte_put(b, v->of.text.data, (size_t)v->of.text.bytes);
    return;
  default: memcpy(&word, &v->of, sizeof word); byte_put_u64(b, word);
  }
}

void rpc_put_values(byte_buffer *b, rpc_era era, const rpc_value *values, uint32_t count) {
  byte_put_u32(b, count);
  for (uint32_t i = 0; i < count && era == RPC_ERA_A; i++) byte_put_u32(b, tag_of(era, values[i].kind));
  for (uint32_t i = 0; i < count; i++) {
    if (era != RPC_ERA_A) byte_put_u32(b, tag_of(era, values[i].kind));
    put_payload(b, &values[i]);
  }
}

/* ---- which era */

rpc_era rpc_era_of(uint32_t code, const uint8_t *body, size_t bytes) {
  byte_reader r = {body, bytes, false};
  if (code == RPC_INIT) (void)byte_take(&r, byte_take_u64(&r)); /* the version comes first */
  uint32_t count = byte_take_u32(&r), first = byte_take_u32(&r), next = byte_take_u32(&r);
  if (code == RPC_CALL || code == RPC_COPY_TO || code == RPC_COPY_FROM) return RPC_ERA_UNKNOWN;
  if (r.bad || count == 0) return RPC_ERA_UNKNOWN;
  if (first == A_STRING)
    return next == NESTED_STRING && r.left >= 8 && r.left == 8 + (size_t)r.at[0] ? RPC_ERA_B : RPC_ERA_A;
  if (first == B_STRING || first == NESTED_STRING) return RPC_ERA_B;
  if (code == RPC_ALLOC_SCOPE && first == 7) return next == 4 || next == A_STRING ? RPC_ERA_A : RPC_ERA_B;
  if ((code == RPC_ATTRIBUTE || code == RPC_ALLOC) && first == 6) return next == 0 ? RPC_ERA_A : RPC_ERA_B;
  return RPC_ERA_UNKNOWN;
}
