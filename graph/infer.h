/* graph/infer.h: what the inference functions share: attributes with their defaults, and complaints about an input.
 * For graph/ and executor/fold.c. Each function has the contract of heddle__infer_fn. */
#ifndef HEDDLE_GRAPH_INFER_H
#define HEDDLE_GRAPH_INFER_H

#include "core/parts.h"
#include "graph/opschema.h"
#include "graph/words.h"

#define HEDDLE__INFER_FN(name) \
  heddle_status name(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs, \
                     heddle__known *outputs, int32_t *needs, heddle_error *err)

/* infer_elementwise.c */
HEDDLE__INFER_FN(heddle__infer_arithmetic); /* Add, Min: any number of inputs, broadcasting */
HEDDLE__INFER_FN(heddle__infer_power);      /* Pow: the exponent may be of another type */
HEDDLE__INFER_FN(heddle__infer_compare);    /* Equal, Less: bool comes out */
HEDDLE__INFER_FN(heddle__infer_logic);      /* And, Or, Xor, Not: bool goes in */
HEDDLE__INFER_FN(heddle__infer_where);
HEDDLE__INFER_FN(heddle__infer_prelu);
HEDDLE__INFER_FN(heddle__infer_clip);
HEDDLE__INFER_FN(heddle__infer_same);   /* Identity, Reorder: any type */
HEDDLE__INFER_FN(heddle__infer_number); /* Neg, Abs: any number */
HEDDLE__INFER_FN(heddle__infer_float);  /* Exp, Sigmoid: floating-point */
HEDDLE__INFER_FN(heddle__infer_fused);  /* FusedElementwise: float32, broadcasting */
HEDDLE__INFER_FN(heddle__infer_relu);
HEDDLE__INFER_FN(heddle__infer_softmax);
HEDDLE__INFER_FN(heddle__infer_cast);
/* control.c */
HEDDLE__INFER_FN(heddle__infer_control); /* If, Loop, Scan: what comes out is known when they have run */
#if HEDDLE_HAS_RARE_OPERATORS
HEDDLE__INFER_FN(heddle__infer_general); /* general/: by the operator's general kernel */
#else
#define heddle__infer_general NULL
#endif

/* infer_matmul.c */
HEDDLE__INFER_FN(heddle__infer_matmul);
HEDDLE__INFER_FN(heddle__infer_gemm);
/* infer_conv.c */
HEDDLE__INFER_FN(heddle__infer_conv);
HEDDLE__INFER_FN(heddle__infer_conv_transpose);
HEDDLE__INFER_FN(heddle__infer_pool); /* MaxPool, AveragePool */
HEDDLE__INFER_FN(heddle__infer_global_pool);
/* infer_norm.c */
HEDDLE__INFER_FN(heddle__infer_batch_norm);
HEDDLE__INFER_FN(heddle__infer_instance_norm);
HEDDLE__INFER_FN(heddle__infer_layer_norm);
HEDDLE__INFER_FN(heddle__infer_lrn);
HEDDLE__INFER_FN(heddle__infer_dropout);
/* infer_shape.c */
HEDDLE__INFER_FN(heddle__infer_reshape);
HEDDLE__INFER_FN(heddle__infer_flatten);
HEDDLE__INFER_FN(heddle__infer_concat);
/* infer_dims.c */
HEDDLE__INFER_FN(heddle__infer_squeeze);
HEDDLE__INFER_FN(heddle__infer_unsqueeze);
HEDDLE__INFER_FN(heddle__infer_expand);
HEDDLE__INFER_FN(heddle__infer_tile);
HEDDLE__INFER_FN(heddle__infer_transpose);
HEDDLE__INFER_FN(heddle__infer_pad);
/* infer_select.c */
HEDDLE__INFER_FN(heddle__infer_split);
HEDDLE__INFER_FN(heddle__infer_slice);
HEDDLE__INFER_FN(heddle__infer_gather);
/* infer_reduce.c */
HEDDLE__INFER_FN(heddle__infer_reduce);
HEDDLE__INFER_FN(heddle__infer_arg);
HEDDLE__INFER_FN(heddle__infer_top_k);
/* infer_make.c */
HEDDLE__INFER_FN(heddle__infer_shape);
HEDDLE__INFER_FN(heddle__infer_constant);
HEDDLE__INFER_FN(heddle__infer_constant_of_shape);
HEDDLE__INFER_FN(heddle__infer_range);
/* infer_resize.c */
HEDDLE__INFER_FN(heddle__infer_resize);

/* Shorthands inside a function of that signature: HEDDLE_EFORMAT with a text about the node. */
#define HEDDLE__BAD(...) heddle__node_fail(g, node, err, HEDDLE_EFORMAT, __VA_ARGS__)

#define HEDDLE__INT64 ((heddle_dtype){HEDDLE_DTYPE_INT, 64, 1})
#define HEDDLE__FLOAT32 ((heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1})
#define HEDDLE__BOOL ((heddle_dtype){HEDDLE_DTYPE_BOOL, 8, 1})

/* Input i, NULL where the node has none. */
static inline const heddle__known *heddle__input(const heddle__node *node, const heddle__known *const *inputs,
                                                 uint32_t i) {
  return i < node->n_inputs ? inputs[i] : NULL;
}

/* The numbers of a shape operand: an int32 or int64 tensor of at most HEDDLE__MAX_NDIM elements and one dimension, or
 * none, whose bytes are known. *count is UINT32_MAX where the input is absent. */
heddle_status heddle__operand_ints(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                   uint32_t i, int64_t *out, uint32_t *count, int32_t *needs, heddle_error *err);

/* HEDDLE_EUNSUPPORTED where input i, whose bytes decide the shape, has none. */
heddle_status heddle__needs_bytes(const heddle_graph *g, const heddle__node *node, const heddle__known *const *inputs,
                                  uint32_t i, int32_t *needs, heddle_error *err);

/* Axes, each in [-rank, rank) and none twice, made positive in place; mask (may be NULL) gets a bit for each. */
heddle_status heddle__axes(const heddle_graph *g, const heddle__node *node, int64_t *axes, uint32_t count,
                           uint32_t rank, uint32_t *mask, heddle_error *err);

/* Whether dimension is one that a tensor may have; words where not. */
heddle_status heddle__dimension(const heddle_graph *g, const heddle__node *node, int64_t dim, uint32_t i,
                                heddle_error *err);

/* The dimensions [*first, *last) that a Shape gives of a tensor. */
void heddle__shape_range(const heddle__node *node, uint32_t rank, int64_t *first, int64_t *last);

/* The dtype of an ONNX TensorProto type number; false where there is none. */
bool heddle__onnx_dtype(int64_t number, heddle_dtype *out);

/* Input i is an integer or floating-point number. */
heddle_status heddle__number_dtype(const heddle_graph *g, const heddle__node *node, uint32_t i,
                                   const heddle__known *const *inputs, heddle_error *err);

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
