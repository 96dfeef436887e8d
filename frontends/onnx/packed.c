/* frontends/onnx/packed.c: tensors of 2 and 4 bits, which files pack and which have a byte for each number in graphs. */
#include <string.h>

#include "core/alloc.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

int heddle__onnx_packed_bits(int32_t type) {
  return type == ONNX_UINT4 || type == ONNX_INT4 || type == ONNX_FLOAT4E2M1 ? 4
         : type == ONNX_UINT2 || type == ONNX_INT2                          ? 2
                                                                            : 0;
}

static bool is_signed(int32_t type) {
  return type == ONNX_INT4 || type == ONNX_INT2;
}

/* The numbers of one byte after the other, the lowest bits first. */
static void unpack(const unsigned char *from, int8_t *to, uint64_t n, int bits, bool has_sign) {
  const int each = 8 / bits, half = 1 << (bits - 1);
  for (uint64_t i = 0; i < n; i++) {
    const int x = from[i / (uint64_t)each] >> (bits * (int)(i % (uint64_t)each)) & ((1 << bits) - 1);
    to[i] = (int8_t)(has_sign ? (x ^ half) - half : x);
  }
}

heddle_status heddle__onnx_packed(heddle__onnx_reader *r, const Onnx__TensorProto *t, uint64_t n, void *out) {
  const int bits = heddle__onnx_packed_bits(t->data_type);
  Onnx__TensorProto plain = *t; /* its bytes, as a row of uint8 */
  int64_t count = (int64_t)(n / 8 * (uint64_t)bits + (n % 8 * (uint64_t)bits + 7) / 8);
  struct heddle__param p = {.name = NULL};
  plain.data_type = ONNX_UINT8;
  plain.dims = &count;
  plain.n_dims = 1;
  heddle_status s = heddle__onnx_tensor(r, &plain, &p);
  if (s == HEDDLE_OK && n > 0 && bits > 0) unpack(p.value.data, out, n, bits, is_signed(t->data_type));
  if (!p.is_mapped) heddle__free(p.value.data);
  heddle__free(p.value.shape);
  return s;
}
