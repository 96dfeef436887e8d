/* frontends/onnx/packed.c: tensors of 2 and 4 bits. Graphs have no such values: a constant of one becomes one of int8 or
 * uint8, for the operators that only read its numbers or move them. */
#include <string.h>

#include "core/alloc.h"
#include "frontends/onnx/tensor.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

int heddle__onnx_packed_bits(int32_t type) {
  return type == ONNX_UINT4 || type == ONNX_INT4 ? 4 : type == ONNX_UINT2 || type == ONNX_INT2 ? 2 : 0;
}

static bool is_signed(int32_t type) {
  return type == ONNX_INT4 || type == ONNX_INT2;
}

int32_t heddle__onnx_stored_type(int32_t type) {
  return heddle__onnx_packed_bits(type) == 0 ? type : is_signed(type) ? ONNX_INT8 : ONNX_UINT8;
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
  if (s == HEDDLE_OK && n > 0) unpack(p.value.data, out, n, bits, is_signed(t->data_type));
  if (!p.is_mapped) heddle__free(p.value.data);
  heddle__free(p.value.shape);
  return s;
}

/* ---- who may read them */

void heddle__onnx_check_packed(heddle__onnx_reader *r, const Onnx__NodeProto *node) {
  static const char *const readers[] = {"Cast",
                                        "Concat",
                                        "DequantizeLinear",
                                        "Expand",
                                        "Flatten",
                                        "Gather",
                                        "Identity",
                                        "Reshape",
                                        "Shape",
                                        "Size",
                                        "Slice",
                                        "Split",
                                        "Squeeze",
                                        "Tile",
                                        "Transpose",
                                        "Unsqueeze",
                                        "GatherBlockQuantized"};
  char name[24], shown[44];
  for (size_t k = 0; k < node->n_input; k++) {
    const int32_t type = heddle__onnx_known_of(r, node->input[k]).type;
    bool reads = heddle__onnx_packed_bits(type) == 0;
    for (size_t i = 0; !reads && i < sizeof readers / sizeof readers[0]; i++)
      reads = strcmp(node->op_type, readers[i]) == 0;
    if (reads) continue;
    heddle__onnx_problem(r, node, "it reads tensor '%s' of %s, which only operators that move or dequantise it may",
                         heddle__onnx_show(node->input[k], shown), heddle__onnx_type_name(type, name));
    return;
  }
}
