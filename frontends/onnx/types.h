/* frontends/onnx/types.h: ONNX's numbers of element types, and what the reader knows of the types of values. */
#ifndef HEDDLE_ONNX_TYPES_H
#define HEDDLE_ONNX_TYPES_H

#include "frontends/onnx/reader.h"

/* Numbers of TensorProto.DataType. */
enum {
  ONNX_FLOAT = 1,
  ONNX_UINT8 = 2,
  ONNX_INT8 = 3,
  ONNX_UINT16 = 4,
  ONNX_INT16 = 5,
  ONNX_INT32 = 6,
  ONNX_INT64 = 7,
  ONNX_STRING = 8,
  ONNX_BOOL = 9,
  ONNX_FLOAT16 = 10,
  ONNX_DOUBLE = 11,
  ONNX_UINT32 = 12,
  ONNX_UINT64 = 13,
  ONNX_BFLOAT16 = 16,
  ONNX_FLOAT8E4M3FN = 17,
  ONNX_FLOAT8E4M3FNUZ = 18,
  ONNX_FLOAT8E5M2 = 19,
  ONNX_FLOAT8E5M2FNUZ = 20,
  ONNX_FLOAT8E8M0 = 24,
  ONNX_FLOAT4E2M1 = 23,
  ONNX_UINT4 = 21,
  ONNX_INT4 = 22,
  ONNX_UINT2 = 25,
  ONNX_INT2 = 26
};

/* The dtype of a number, and its word in graph JSON; false where Heddle has no such tensors. */
bool heddle__onnx_dtype_of(int32_t number, heddle_dtype *dtype, const char **word);

/* "STRING" for 8: what ONNX calls it, or "type 99". Returns out or a constant. */
const char *heddle__onnx_type_name(int32_t number, char out[24]);

/* What is known of a value: its element type (0: not known) and its number of dimensions (-1: not known). */
typedef struct heddle__onnx_known {
  int32_t type;
  int32_t rank;
} heddle__onnx_known;

heddle__onnx_known heddle__onnx_known_of(const heddle__onnx_reader *r, const char *name);

/* Takes over what the model says of its values and tensors. */
heddle_status heddle__onnx_learn(heddle__onnx_reader *r);

heddle_status heddle__onnx_learn_value(heddle__onnx_reader *r, const Onnx__ValueInfoProto *value);

/* results.c: notes of the outputs of a node what follows from its operator, where nothing is known. */
heddle_status heddle__onnx_learn_node(heddle__onnx_reader *r, const Onnx__NodeProto *node);
heddle_status heddle__onnx_note(heddle__onnx_reader *r, const char *name, int32_t type, int32_t rank);

/* The columns "dltype" and "shape" of a value that the model describes; shape is JSON's null where it says none. A type
 * that Heddle does not have is noted as a problem of what, and *dtype is then NULL. HEDDLE_ENOMEM. */
heddle_status heddle__onnx_describe(heddle__onnx_reader *r, const Onnx__ValueInfoProto *value, const char *what,
                                    json_t **dtype, json_t **shape);

#endif
