/* frontends/onnx/expand_blocked.c: weights of 2, 4 or 8 bits in blocks with a scale each. A product keeps them as they are,
 * as MatMulNBits of domain "heddle"; of an embedding only the rows that are read are unpacked, in the run. */
#include <string.h>

#include "frontends/onnx/blocked.h"
#include "frontends/onnx/expand.h"

/* A, B, scales, zero_points, g_idx, bias */
void expand_matmul_nbits(expansion *e) {
  heddle__onnx_blocked b = {.q = heddle__onnx_find_tensor(e->r, x_in(e, 1)),
                            .scales = heddle__onnx_find_tensor(e->r, x_in(e, 2)),
                            .zeros = x_has(e, 3) ? heddle__onnx_find_tensor(e->r, x_in(e, 3)) : NULL,
                            .index = x_has(e, 4) ? heddle__onnx_find_tensor(e->r, x_in(e, 4)) : NULL,
                            .columns = x_attr(e, "K", 0),
                            .rows = x_attr(e, "N", 0),
                            .block = x_attr(e, "block_size", 0),
                            .bits = x_attr(e, "bits", 4)};
  if (x_attr(e, "weight_prepacked", 0) != 0) x_refuse(e, "weight_prepacked: weights in the order of a CUDA kernel");
  if (x_has(e, 4) && b.index == NULL) x_refuse(e, "its group indices are no constant");
  if (!x_ok(e)) return;
  const char *wrong = heddle__onnx_blocked_check(&b);
  if (wrong != NULL) {
    x_wrong(e, wrong);
    return;
  }
  e->status = heddle__onnx_blocked_index(e->r, &b);
  const char *in[6];
  for (size_t k = 0; k < 6; k++) in[k] = x_in(e, k);
  const char *y = x_node(e, "MatMulNBits", in, 6);
  x_keep(e, "K N accuracy_level bits block_size");
  if (x_ok(e)) e->last->domain = (char *)(uintptr_t) "heddle";
  x_give(e, 0, y);
}

/* ---- GatherBlockQuantized */

static const char *byte(expansion *e, int32_t value) {
  return x_cast(e, x_2(e, "Squeeze", x_one(e, value), x_one(e, 0)), ONNX_UINT8);
}

const char *x_unpacked(expansion *e, const char *x, int64_t bits) {
  const char *parts[4], *kept = x_1(e, "Shape", x);
  const size_t n = (size_t)(8 / bits);
  x_int(e, "end", -1);
  for (size_t i = 0; i < n; i++) {
    const char *part = x;
    if (i > 0) {
      part = x_2(e, "BitShift", x, byte(e, (int32_t)(bits * (int64_t)i)));
      x_text(e, "direction", "RIGHT");
    }
    if (i + 1 < n) part = x_2(e, "BitwiseAnd", part, byte(e, (1 << bits) - 1));
    parts[i] = x_unsqueeze(e, part, -1);
  }
  return x_2(e, "Reshape", x_concat(e, -1, parts, n), x_concat(e, 0, (const char *[]){kept, x_one(e, -1)}, 2));
}

static const char *rows(expansion *e, size_t k, int64_t axis) {
  const char *y = x_2(e, "Gather", x_in(e, k), x_in(e, 1));
  x_int(e, "axis", axis);
  return y;
}

/* data of bytes: rows of packed numbers, whose zero points are packed too, or half of the range. */
static const char *from_bytes(expansion *e, int64_t bits, const char *scales, const char **zeros) {
  const char *q = rows(e, 0, 0);
  if (bits < 8) q = x_unpacked(e, q, bits);
  if (x_has(e, 3)) {
    *zeros = rows(e, 3, 0);
    if (bits < 8) *zeros = x_slice(e, x_unpacked(e, *zeros, bits), x_one(e, 0), x_dim(e, scales, -1), -1);
    return q;
  }
  const char *half = x_cast(e, x_2(e, "Squeeze", x_one(e, 1 << (bits - 1)), x_one(e, 0)), ONNX_INT16);
  return x_2(e, "Sub", x_cast(e, q, ONNX_INT16), half);
}

/* data, indices, scales, zero_points */
void expand_gather_blocked(expansion *e) {
  const int64_t block = x_attr(e, "block_size", 128), bits = x_attr(e, "bits", 4);
  const int32_t type = x_known(e, x_in(e, 0)).type, rank = x_rank(e, x_in(e, 0));
  const int32_t of_indices = x_rank(e, x_in(e, 1));
  const bool is_bytes = type == ONNX_UINT8 || type == ONNX_INT8;
  int64_t gather = x_attr(e, "gather_axis", 0), axis = x_attr(e, "quantize_axis", 1);
  if (rank < 2 || of_indices < 0) x_refuse(e, "the number of dimensions of its data or indices is not known");
  if (gather < 0) gather += rank;
  if (axis < 0) axis += rank;
  if (x_ok(e) && (gather < 0 || gather >= rank || axis < 0 || axis >= rank || axis == gather)) {
    x_wrong(e, "gather_axis and quantize_axis are not two dimensions of its data");
    return;
  }
  if (block < 16 || (block & (block - 1)) != 0) {
    x_wrong(e, "block_size is no power of two from 16 on");
    return;
  }
  if (bits != 2 && bits != 4 && bits != 8) {
    x_wrong(e, "bits is none of 2, 4 and 8");
    return;
  }
  if (is_bytes && (gather != 0 || axis != rank - 1)) {
    x_wrong(e, "of bytes, rows are gathered and the last dimension is quantised");
    return;
  }
  const char *scales = rows(e, 2, gather), *zeros = "", *q;
  if (is_bytes) {
    q = from_bytes(e, bits, scales, &zeros);
  } else {
    q = rows(e, 0, gather);
    if (x_has(e, 3)) zeros = rows(e, 3, gather);
  }
  const char *y = x_3(e, "DequantizeLinear", q, scales, zeros);
  x_int(e, "axis", axis > gather ? axis + of_indices - 1 : axis);
  x_int(e, "block_size", block);
  x_give(e, 0, y);
}
