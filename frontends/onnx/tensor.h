/* frontends/onnx/tensor.h: the bytes of a TensorProto. */
#ifndef HEDDLE_ONNX_TENSOR_H
#define HEDDLE_ONNX_TENSOR_H

#include "frontends/onnx/reader.h"

/* A tensor as a parameter, without its name: dtype, shape and bytes, which are those of a mapped file where they are
 * large enough and lie on a multiple of their element's size, else a copy. What is filled is freed by the params'
 * release, whatever is returned. Types and forms that Heddle does not have are noted as problems. HEDDLE_EFORMAT where
 * shape and bytes do not go together. */
heddle_status heddle__onnx_tensor(heddle__onnx_reader *r, const Onnx__TensorProto *tensor, struct heddle__param *out);

/* The bytes of a tensor in another file, which is mapped. *wanted: how many they have to be; UINT64_MAX: any number, which it
 * becomes. */
heddle_status heddle__onnx_external(heddle__onnx_reader *r, const Onnx__TensorProto *t, uint64_t *wanted,
                                    const unsigned char **out);

/* packed.c: the bits of an element that does not fill a byte; 0: others. And the n numbers of a tensor of such a type, a byte
 * each. */
int heddle__onnx_packed_bits(int32_t type);
heddle_status heddle__onnx_packed(heddle__onnx_reader *r, const Onnx__TensorProto *t, uint64_t n, void *out);

/* sparse.c: a sparse tensor with all its elements; *out is NULL where a problem was noted. And those of a graph as further
 * initialisers. */
heddle_status heddle__onnx_dense(heddle__onnx_reader *r, const Onnx__SparseTensorProto *from, Onnx__TensorProto **out);
heddle_status heddle__onnx_dense_all(heddle__onnx_reader *r, Onnx__GraphProto *g);

/* The place of a tensor whose raw_data are bytes in the arena. That of a file are where heddle__onnx_raw says. */
enum { HEDDLE__ONNX_HELD = 1 << 20 };

/* A number of any type. */
typedef struct heddle__onnx_number {
  bool is_whole;
  bool is_other; /* what neither holds: a uint64 of 2^63 or more, float8 */
  int64_t whole;
  double real;
} heddle__onnx_number;

/* The number in a tensor of one element, an attribute of node; else a problem is noted, and it is 0. */
heddle_status heddle__onnx_scalar(heddle__onnx_reader *r, const Onnx__NodeProto *node, const Onnx__TensorProto *tensor,
                                  heddle__onnx_number *out);

/* The number of float32 elements of a tensor, at most max, copied to out; -1 where it holds none such. */
int heddle__onnx_floats(heddle__onnx_reader *r, const Onnx__TensorProto *tensor, float *out, int max);

#endif
