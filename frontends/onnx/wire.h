/* frontends/onnx/wire.h: the look at a model's bytes before anything is made of them. */
#ifndef HEDDLE_ONNX_WIRE_H
#define HEDDLE_ONNX_WIRE_H

#include "heddle/graph.h"

/* Where the raw_data of a tensor lies in the file; in the thin copy it stands in its place. */
typedef struct heddle__onnx_raw {
  uint64_t offset, bytes;
} heddle__onnx_raw;

/* Attributes of a function with values of their own are a field that not all schemas have. The thin copy has them in
 * this one, which none has: unknown fields of protobuf-c, each a length of so many bytes and an AttributeProto. */
enum { HEDDLE__ONNX_DEFAULTS = 1000, HEDDLE__ONNX_LENGTH_BYTES = 5 };

/* Checks a serialised ModelProto as far as its frame goes: lengths that fit what holds them, nesting of at most
 * max_depth, at most max_nodes nodes, no zero byte in a string. Makes a thin copy of at most max_bytes that protobuf-c
 * can take without recursing deeper: without comments and unknown fields, and with a heddle__onnx_raw for each
 * raw_data. *out is freed with heddle__free. HEDDLE_EFORMAT with the byte, HEDDLE_ELIMIT, HEDDLE_ENOMEM. */
heddle_status heddle__onnx_thin(const char *name, const unsigned char *data, uint64_t bytes,
                                const heddle_read_limits *limits, unsigned char **out, size_t *out_bytes,
                                heddle_error *err);

#endif
