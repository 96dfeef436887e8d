/* frontends/onnx/blocked.c: what weights of 2, 4 or 8 bits in blocks have to be. */
#include "frontends/onnx/blocked.h"

#include <string.h>

#include "core/alloc.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

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
  if (b->q != NULL && b->q->data_type != ONNX_UINT8) return "operand B is not of uint8";
  if (b->q != NULL && count_of(b->q) != b->rows * row) return "operand B has not N rows of ceil(K / block_size) blocks";
  if (b->scales != NULL && !is_float(b->scales->data_type))
    return "operand scales is not of float32, float16 or bfloat16";
  if (b->scales != NULL && count_of(b->scales) != b->rows * blocks)
    return "operand scales has not a number for each block";
  if (b->zeros != NULL) {
    const bool is_packed = b->zeros->data_type == ONNX_UINT8;
    if (!is_packed &&
        (b->scales == NULL ? !is_float(b->zeros->data_type) : b->zeros->data_type != b->scales->data_type))
      return "operand zero_points is neither of uint8 nor of the type of scales";
    if (count_of(b->zeros) != b->rows * (is_packed ? (blocks * b->bits + 7) / 8 : blocks))
      return "operand zero_points has not a number for each block";
  }
  if (b->index == NULL) return NULL;
  if (b->index->data_type != ONNX_INT32) return "operand g_idx is not of int32";
  const int64_t n = count_of(b->index);
  return n == b->columns || n == blocks * b->block ? NULL : "operand g_idx has not a number for each of K";
}

heddle_status heddle__onnx_blocked_index(heddle__onnx_reader *r, const heddle__onnx_blocked *b) {
  struct heddle__param p = {.name = NULL};
  if (b->index == NULL || r->only_looks) return HEDDLE_OK;
  heddle_status s = heddle__onnx_tensor(r, b->index, &p);
  for (int64_t k = 0; s == HEDDLE_OK && p.value.data != NULL && k < b->columns; k++) {
    int32_t block;
    memcpy(&block, (const char *)p.value.data + 4 * k, sizeof block);
    if (block < 0 || block >= blocks_of(b))
      s = heddle__onnx_fail(r, HEDDLE_EFORMAT, "tensor '%s': number %lld is %d, and there are %lld blocks",
                            b->index->name, (long long)k, (int)block, (long long)blocks_of(b));
  }
  if (!p.is_mapped) heddle__free(p.value.data);
  heddle__free(p.value.shape);
  return s;
}
