/* frontends/onnx/blocked.c: weights of 2, 4 or 8 bits in blocks become floats. */
#include "frontends/onnx/blocked.h"

#include <string.h>

#include "core/alloc.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"
#include "plugins/common/float16.h"

enum { TILE = 16 };

static int64_t blocks_of(const heddle__onnx_blocked *b) {
  return (b->columns + b->block - 1) / b->block;
}

/* -1: more than 2^62. */
static int64_t count_of(const Onnx__TensorProto *t) {
  int64_t n = 1;
  for (size_t i = 0; i < t->n_dims; i++) {
    if (t->dims[i] < 0 || (t->dims[i] > 0 && n > (INT64_C(1) << 62) / t->dims[i])) return -1;
    n *= t->dims[i];
  }
  return n;
}

static bool is_float(int32_t type) {
  return type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16;
}

const char *heddle__onnx_blocked_check(const heddle__onnx_blocked *b) {
  const int64_t most = INT32_MAX;
  if (b->rows < 1 || b->rows > most) return "N is out of range";
  if (b->columns < 1 || b->columns > most) return "K is out of range";
  if (b->block < 16 || b->block > most || (b->block & (b->block - 1)) != 0)
    return "block_size is no power of two from 16 on";
  if (b->bits != 2 && b->bits != 4 && b->bits != 8) return "bits is none of 2, 4 and 8";
  const int64_t blocks = blocks_of(b), row = blocks * (b->block * b->bits / 8);
  if (b->q->data_type != ONNX_UINT8) return "operand B is not of uint8";
  if (count_of(b->q) != b->rows * row) return "operand B has not N rows of ceil(K / block_size) blocks";
  if (!is_float(b->scales->data_type)) return "operand scales is not of float32, float16 or bfloat16";
  if (count_of(b->scales) != b->rows * blocks) return "operand scales has not a number for each block";
  if (b->zeros != NULL) {
    const bool is_packed = b->zeros->data_type == ONNX_UINT8;
    if (!is_packed && b->zeros->data_type != b->scales->data_type)
      return "operand zero_points is neither of uint8 nor of the type of scales";
    if (count_of(b->zeros) != b->rows * (is_packed ? (blocks * b->bits + 7) / 8 : blocks))
      return "operand zero_points has not a number for each block";
  }
  if (b->index == NULL) return NULL;
  if (b->index->data_type != ONNX_INT32) return "operand g_idx is not of int32";
  const int64_t n = count_of(b->index);
  return n == b->columns || n == blocks * b->block ? NULL : "operand g_idx has not a number for each of K";
}

const char *heddle__onnx_blocked_tensor(heddle__onnx_reader *r, const Onnx__NodeProto *node,
                                        const heddle__onnx_blocked *b) {
  Onnx__TensorProto *t = heddle__onnx_take(&r->arena, sizeof *t);
  int64_t *dims = heddle__onnx_take(&r->arena, 2 * sizeof *dims);
  heddle__onnx_blocked *copy = heddle__onnx_take(&r->arena, sizeof *copy);
  const char *name = heddle__onnx_new_value(r, node, "weights");
  if (t == NULL || dims == NULL || copy == NULL || name == NULL) return NULL;
  onnx__tensor_proto__init(t);
  *copy = *b;
  dims[0] = b->columns;
  dims[1] = b->rows;
  t->name = (char *)(uintptr_t)name;
  t->has_data_type = 1;
  t->data_type = b->scales->data_type;
  t->dims = dims;
  t->n_dims = 2;
  t->has_raw_data = 1;
  t->raw_data.data = (uint8_t *)copy;
  t->raw_data.len = sizeof *copy;
  t->has_data_location = 1;
  t->data_location = (Onnx__TensorProto__DataLocation)HEDDLE__ONNX_BLOCKED;
  if (heddle__onnx_add_tensor(r, t) != HEDDLE_OK) return NULL;
  return heddle__onnx_note(r, name, t->data_type, 2) == HEDDLE_OK ? name : NULL;
}

/* ---- numbers */

typedef struct bytes {
  struct heddle__param p;
  const unsigned char *at;
} bytes;

static heddle_status open_bytes(heddle__onnx_reader *r, const Onnx__TensorProto *t, bytes *out) {
  if (t == NULL) return HEDDLE_OK;
  heddle_status s = heddle__onnx_tensor(r, t, &out->p);
  out->at = out->p.value.data;
  return s;
}

static void close_bytes(bytes *b) {
  if (!b->p.is_mapped) heddle__free(b->p.value.data);
  heddle__free(b->p.value.shape);
}

static float float_at(int32_t type, const unsigned char *from, int64_t i) {
  uint16_t half;
  float x;
  if (type == ONNX_FLOAT) {
    memcpy(&x, from + 4 * i, sizeof x);
    return x;
  }
  memcpy(&half, from + 2 * i, sizeof half);
  return type == ONNX_FLOAT16 ? float16_to_float(half) : bfloat16_to_float(half);
}

static void put(int32_t type, void *to, int64_t i, float x) {
  if (type == ONNX_FLOAT) ((float *)to)[i] = x;
  else ((uint16_t *)to)[i] = type == ONNX_FLOAT16 ? float16_from_float(x) : bfloat16_from_float(x);
}

static unsigned packed_at(const unsigned char *row, int64_t i, int64_t bits) {
  const int64_t each = 8 / bits;
  return (unsigned)row[i / each] >> (bits * (i % each)) & ((1u << bits) - 1);
}

heddle_status heddle__onnx_blocked_fill(heddle__onnx_reader *r, const heddle__onnx_blocked *b, void *out) {
  bytes q = {.at = NULL}, scales = {.at = NULL}, zeros = {.at = NULL}, index = {.at = NULL};
  const int64_t blocks = blocks_of(b), row = blocks * (b->block * b->bits / 8), zero_row = (blocks * b->bits + 7) / 8;
  const int32_t type = b->scales->data_type;
  const bool is_packed = b->zeros != NULL && b->zeros->data_type == ONNX_UINT8;
  heddle_status s = open_bytes(r, b->q, &q);
  if (s == HEDDLE_OK) s = open_bytes(r, b->scales, &scales);
  if (s == HEDDLE_OK) s = open_bytes(r, b->zeros, &zeros);
  if (s == HEDDLE_OK) s = open_bytes(r, b->index, &index);
  const bool is_there = q.at != NULL && scales.at != NULL && (b->zeros == NULL || zeros.at != NULL) &&
                        (b->index == NULL || index.at != NULL);
  for (int64_t first = 0; s == HEDDLE_OK && is_there && first < b->rows; first += TILE) {
    const int64_t last = first + TILE < b->rows ? first + TILE : b->rows;
    for (int64_t k = 0; k < b->columns && s == HEDDLE_OK; k++) {
      int32_t block = (int32_t)(k / b->block);
      if (b->index != NULL) memcpy(&block, index.at + 4 * k, sizeof block);
      if (block < 0 || block >= blocks) {
        s = heddle__onnx_fail(r, HEDDLE_EFORMAT, "tensor '%s': number %lld is %d, and there are %lld blocks",
                              b->index->name, (long long)k, (int)block, (long long)blocks);
        break;
      }
      for (int64_t n = first; n < last; n++) {
        float zero = (float)(1 << (b->bits - 1));
        if (is_packed) zero = (float)packed_at(zeros.at + n * zero_row, block, b->bits);
        else if (b->zeros != NULL) zero = float_at(type, zeros.at, n * blocks + block);
        const float x = (float)packed_at(q.at + n * row, k, b->bits) - zero;
        put(type, out, k * b->rows + n, x * float_at(type, scales.at, n * blocks + block));
      }
    }
  }
  close_bytes(&q);
  close_bytes(&scales);
  close_bytes(&zeros);
  close_bytes(&index);
  return s;
}
