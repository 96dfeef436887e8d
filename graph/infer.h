/* graph/infer.h: what the inference functions share: attributes with their defaults, and complaints about an input.
 * Private to graph/. Each function has the contract of heddle__infer_fn. */
#ifndef HEDDLE_GRAPH_INFER_H
#define HEDDLE_GRAPH_INFER_H

#include "graph/opschema.h"

#define HEDDLE__INFER_FN(name) \
  heddle_status name(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs, \
                     heddle__known *outputs, int32_t *needs, heddle_error *err)

HEDDLE__INFER_FN(heddle__infer_arithmetic); /* Add, Mul: broadcasting */
HEDDLE__INFER_FN(heddle__infer_same);       /* Identity, Reorder: any type */
HEDDLE__INFER_FN(heddle__infer_relu);
HEDDLE__INFER_FN(heddle__infer_softmax);
HEDDLE__INFER_FN(heddle__infer_matmul);
HEDDLE__INFER_FN(heddle__infer_gemm);
HEDDLE__INFER_FN(heddle__infer_conv);
HEDDLE__INFER_FN(heddle__infer_max_pool);
HEDDLE__INFER_FN(heddle__infer_global_pool);
HEDDLE__INFER_FN(heddle__infer_reshape);
HEDDLE__INFER_FN(heddle__infer_flatten);
HEDDLE__INFER_FN(heddle__infer_concat);

/* An attribute by name, or NULL where the node does not give it. */
const heddle_pattr *heddle__attr(const heddle__node *node, const char *name);

/* Its value, or the fallback. ints: *count is 0 and the result NULL where it is not given. */
int64_t heddle__attr_int(const heddle__node *node, const char *name, int64_t fallback);
const char *heddle__attr_string(const heddle__node *node, const char *name, const char *fallback);
const int64_t *heddle__attr_ints(const heddle__node *node, const char *name, uint64_t *count);

/* An axis attribute in [-rank, rank), made positive; last: rank itself is legal too. */
heddle_status heddle__attr_axis(const heddle_graph *g, const heddle__node *node, int64_t fallback, uint32_t rank,
                                bool last, uint32_t *out, heddle_error *err);

/* HEDDLE_EFORMAT, "input 1 (float32 [3, 4]): expected ...". */
heddle_status heddle__bad_input(const heddle_graph *g, const heddle__node *node, uint32_t i, const heddle__known *input,
                                heddle_error *err, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Input i has the dtype of input 0. */
heddle_status heddle__same_dtype(const heddle_graph *g, const heddle__node *node, uint32_t i,
                                 const heddle__known *const *inputs, heddle_error *err);

/* Input i is float16, bfloat16, float32 or float64. */
heddle_status heddle__float_dtype(const heddle_graph *g, const heddle__node *node, uint32_t i,
                                  const heddle__known *const *inputs, heddle_error *err);

/* ONNX's broadcasting of two shapes into out; false where they do not go together. out may be a or b. */
bool heddle__broadcast(const int64_t *a, uint32_t a_ndim, const int64_t *b, uint32_t b_ndim, int64_t *out,
                       uint32_t *out_ndim);

#endif
