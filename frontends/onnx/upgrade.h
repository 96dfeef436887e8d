/* frontends/onnx/upgrade.h: what the upgrades share. An upgrade takes a node of an older opset, or one that
 * runs better in parts, and gives nodes of the graph's opset that compute the same: by changing the node in place, and
 * by adding nodes before or after it. Its source is the list of versions of the operator in ONNX's specification. */
#ifndef HEDDLE_ONNX_UPGRADE_H
#define HEDDLE_ONNX_UPGRADE_H

#include "frontends/onnx/reader.h"

/* Brings one node to the next form, or notes a problem. *is_done is set where it has added all that is needed itself,
 * so that the node itself is dropped. */
typedef heddle_status (*heddle__onnx_upgrade_fn)(heddle__onnx_reader *r, Onnx__NodeProto *node, bool *is_done);

#define HEDDLE__UPGRADE(name) heddle_status name(heddle__onnx_reader *r, Onnx__NodeProto *node, bool *is_done)

/* upgrade_operands.c: attributes that became inputs */
HEDDLE__UPGRADE(heddle__upgrade_axes);  /* Squeeze, Unsqueeze, ReduceSum */
HEDDLE__UPGRADE(heddle__upgrade_split); /* Split */
HEDDLE__UPGRADE(heddle__upgrade_clip);
HEDDLE__UPGRADE(heddle__upgrade_slice);
HEDDLE__UPGRADE(heddle__upgrade_pad);
HEDDLE__UPGRADE(heddle__upgrade_top_k);
/* upgrade_softmax.c: those that saw their input as a matrix */
HEDDLE__UPGRADE(heddle__upgrade_softmax); /* Softmax, LogSoftmax, Hardmax */
/* upgrade_resize.c */
HEDDLE__UPGRADE(heddle__upgrade_upsample);
HEDDLE__UPGRADE(heddle__upgrade_resize);
/* upgrade_rest.c */
HEDDLE__UPGRADE(heddle__upgrade_batch_norm);
HEDDLE__UPGRADE(heddle__upgrade_constant);
HEDDLE__UPGRADE(heddle__upgrade_constant_of_shape);
HEDDLE__UPGRADE(heddle__upgrade_dropout);
HEDDLE__UPGRADE(heddle__upgrade_scatter);
HEDDLE__UPGRADE(heddle__upgrade_tfidf); /* strings.c: its pool of strings */
/* upgrade_parts.c: operators as others that more plugins have, and faster */
HEDDLE__UPGRADE(heddle__upgrade_sum); /* Sum, Mean */
HEDDLE__UPGRADE(heddle__upgrade_gelu);

/* ---- attributes */

const Onnx__AttributeProto *heddle__onnx_attr(const Onnx__NodeProto *node, const char *name); /* or NULL */
int64_t heddle__onnx_attr_int(const Onnx__NodeProto *node, const char *name, int64_t fallback);
float heddle__onnx_attr_float(const Onnx__NodeProto *node, const char *name, float fallback);
bool heddle__onnx_attr_is(const Onnx__NodeProto *node, const char *name, const char *text); /* a string of that text */
void heddle__onnx_drop_attr(Onnx__NodeProto *node, const char *name);                       /* where it is there */
heddle_status heddle__onnx_set_int(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name, int64_t value);
heddle_status heddle__onnx_set_float(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name, float value);
heddle_status heddle__onnx_set_ints(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name,
                                    const int64_t *values, size_t n);
heddle_status heddle__onnx_set_text(heddle__onnx_reader *r, Onnx__NodeProto *node, const char *name, const char *value);

/* ---- values and nodes */

/* Input i becomes a value; inputs between are absent. value NULL: memory is out. */
heddle_status heddle__onnx_set_input(heddle__onnx_reader *r, Onnx__NodeProto *node, size_t i, const char *value);

/* A new name "BASE/SUFFIX" for a value; NULL where memory is out. */
const char *heddle__onnx_new_value(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix);

/* New constants, by name; NULL where memory is out: whole numbers, one dimension; floats, n == SIZE_MAX for a scalar. */
const char *heddle__onnx_new_ints(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix,
                                  const int64_t *values, size_t n);
const char *heddle__onnx_new_floats(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix,
                                    const float *values, size_t n);

/* A scalar of the type of a value, which is float32 where nothing is known of it. NULL: memory is out, or the type has
 * no such scalars, which is then noted as a problem. */
const char *heddle__onnx_new_scalar(heddle__onnx_reader *r, const Onnx__NodeProto *node, const char *suffix,
                                    const char *like, float value);

/* Adds a node with one output; b may be NULL. Its attributes may be set afterwards. NULL where memory is out. */
Onnx__NodeProto *heddle__onnx_new_node(heddle__onnx_reader *r, const char *op, const char *name, const char *a,
                                       const char *b, const char *output);

#endif
