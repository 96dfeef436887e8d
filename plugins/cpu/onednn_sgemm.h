/* Products of float32 by kernels that are compiled with the plugin, for CPUs with AVX2 and without AVX-512. oneDNN's
 * way there (gemm:jit) writes all its kernels when the first product runs: some 19 ms and 4 MB, more than a small
 * model takes from its file to its result. A product is read from the primitive descriptor that a plan was made
 * with, and runs on the arguments that the primitive would get, so that plans, layouts and parts are the same either
 * way. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_SGEMM_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_SGEMM_H

#include "onednn_internal.h"

/* rows: of a, of depth elements; columns: of b, and of out. Strides are in elements, b_row from one row of b to the
 * next. */
typedef struct onednn_sgemm_matrix {
  int64_t rows, columns, depth;
  int64_t a_row, a_col, b_row, b_col, out_row;
} onednn_sgemm_matrix;

/* What is computed on a result: an activation, or a binary operation with other[row * row_stride + column *
 * column_stride]. */
typedef struct onednn_sgemm_post {
  dnnl_alg_kind_t alg;
  float alpha, beta;
  uint32_t arg; /* of the primitive; 0: an activation */
  int64_t row, column;
  int64_t batch[DNNL_MAX_NDIMS];
} onednn_sgemm_post;

enum { ONEDNN_SGEMM_POSTS = ONEDNN_POSTS + 1 };

/* usable is false where the primitive is to run. */
typedef struct onednn_sgemm {
  bool usable;
  bool swapped; /* the weights are on the left */
  int n_batch;  /* dimensions before the matrices */
  uint32_t n_posts, reserved;
  onednn_sgemm_matrix matrix;
  int64_t batch[DNNL_MAX_NDIMS], a[DNNL_MAX_NDIMS], b[DNNL_MAX_NDIMS], out[DNNL_MAX_NDIMS];
  onednn_sgemm_post posts[ONEDNN_SGEMM_POSTS];
} onednn_sgemm;

/* Is this a CPU for the kernels below? */
bool onednn_sgemm_fits(const onednn *self);

/* Reads a descriptor of any kind of primitive. */
void onednn_sgemm_read(const onednn *self, const_dnnl_primitive_desc_t pd, onednn_sgemm *out);

/* Makes the primitive of a descriptor, or, where a product is usable, leaves it NULL; runs either. */
dnnl_status_t onednn_sgemm_or_primitive(const onednn *self, const_dnnl_primitive_desc_t pd, onednn_sgemm *out,
                                        dnnl_primitive_t *primitive);
dnnl_status_t onednn_sgemm_execute(const onednn_sgemm *product, dnnl_primitive_t primitive, dnnl_stream_t stream,
                                   int n_args, const dnnl_exec_arg_t *args);

/* out = a b, then the posts; of one matrix. others: one a post, NULL where it is an activation. Does not look whether
 * the run is to end. */
typedef struct onednn_sgemm_other {
  const float *at;
  int64_t row, column;
} onednn_sgemm_other;
void onednn_sgemm_run(const onednn_sgemm_matrix *m, const float *a, const float *b, float *out,
                      const onednn_sgemm_post *posts, const onednn_sgemm_other *others, uint32_t n_posts);

/* Has the CPU what the kernels need? */
bool onednn_sgemm_has(void);

#endif
