/* Which primitives are products that onednn_sgemm_lanes.c computes, and their runs over stacks of matrices. */
#include "onednn_sgemm.h"

/* ---------------------------------------------------------------- reading */

/* The strides of a plain tensor of float32; those of a dimension of 1 are 0. */
static bool read_tensor(const_dnnl_memory_desc_t md, int ndims, dnnl_dims_t dims, dnnl_dims_t strides) {
  dnnl_data_type_t type = dnnl_data_type_undef;
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  const dnnl_dims_t *own, *padded, *by;
  int32_t n = 0, blocks = 0;
  dnnl_dim_t offset = 0;
  if (md == NULL || dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &n) != dnnl_success || n != ndims ||
      dnnl_memory_desc_query(md, dnnl_query_data_type, &type) != dnnl_success || type != dnnl_f32 ||
      dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked ||
      dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks) != dnnl_success || blocks != 0 ||
      dnnl_memory_desc_query(md, dnnl_query_submemory_offset_s64, &offset) != dnnl_success || offset != 0 ||
      dnnl_memory_desc_query(md, dnnl_query_dims, (void *)&own) != dnnl_success ||
      dnnl_memory_desc_query(md, dnnl_query_padded_dims, (void *)&padded) != dnnl_success ||
      dnnl_memory_desc_query(md, dnnl_query_strides, (void *)&by) != dnnl_success)
    return false;
  for (int i = 0; i < ndims; i++) {
    if ((*own)[i] < 1 || (*own)[i] != (*padded)[i]) return false;
    dims[i] = (*own)[i];
    strides[i] = dims[i] == 1 ? 0 : (*by)[i];
  }
  return true;
}

/* An operand that is full or repeated along each dimension of the result. pixels: columns are all dimensions from
 * the third on. */
static bool read_other(const_dnnl_memory_desc_t md, int ndims, const dnnl_dims_t result, bool pixels,
                       onednn_sgemm_post *out) {
  dnnl_dims_t dims, strides;
  if (!read_tensor(md, ndims, dims, strides)) return false;
  for (int i = 0; i < ndims; i++)
    if (dims[i] != 1 && dims[i] != result[i]) return false;
  const int row = pixels ? 1 : ndims - 2, column = row + 1;
  int64_t reach = 1;
  out->row = strides[row];
  out->column = 0;
  for (int i = ndims - 1; i >= column; i--) { /* dense over all columns, or the same for all */
    if (dims[i] != 1) {
      if (strides[i] != reach || (out->column == 0 && reach != 1)) return false;
      out->column = 1;
    } else if (result[i] != 1 && out->column != 0) {
      return false;
    } else if (result[i] != 1) {
      reach = -1; /* repeated: no other may follow */
      continue;
    }
    reach *= dims[i];
  }
  memcpy(out->batch, strides, (size_t)row * sizeof *out->batch);
  return true;
}

static bool read_posts(const_dnnl_primitive_desc_t pd, int ndims, const dnnl_dims_t result, bool pixels,
                       onednn_sgemm *out) {
  static const dnnl_alg_kind_t known[] = {dnnl_eltwise_relu,      dnnl_eltwise_clip,     dnnl_eltwise_hardswish,
                                          dnnl_eltwise_logistic,  dnnl_eltwise_swish,    dnnl_eltwise_tanh,
                                          dnnl_eltwise_gelu_tanh, dnnl_eltwise_gelu_erf, dnnl_binary_add,
                                          dnnl_binary_mul,        dnnl_binary_sub,       dnnl_binary_div};
  const_dnnl_primitive_attr_t attr = NULL;
  const_dnnl_post_ops_t posts = NULL;
  if (dnnl_primitive_desc_get_attr(pd, &attr) != dnnl_success) return false;
  if (attr == NULL || dnnl_primitive_attr_get_post_ops(attr, &posts) != dnnl_success) return false;
  for (int i = 0; i < dnnl_post_ops_len(posts); i++) {
    if (out->n_posts == ONEDNN_SGEMM_POSTS) return false;
    onednn_sgemm_post *post = &out->posts[out->n_posts++];
    const_dnnl_memory_desc_t md = NULL;
    const dnnl_primitive_kind_t kind = dnnl_post_ops_get_kind(posts, i);
    *post = (onednn_sgemm_post){.arg = 0};
    if (kind == dnnl_eltwise) {
      if (dnnl_post_ops_get_params_eltwise(posts, i, &post->alg, &post->alpha, &post->beta) != dnnl_success)
        return false;
    } else {
      if (kind != dnnl_binary || dnnl_post_ops_get_params_binary(posts, i, &post->alg, &md) != dnnl_success ||
          !read_other(md, ndims, result, pixels, post))
        return false;
      post->arg = (uint32_t)(DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1);
    }
    bool is_known = false;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) is_known = is_known || known[k] == post->alg;
    if (!is_known) return false;
  }
  return true;
}

/* One row by a matrix that comes from memory each time is read as fast by oneDNN's kernel, which takes 2 ms to make. */
#define MOST_OF_ROW (INT64_C(1) << 17)

static bool read_product(const_dnnl_primitive_desc_t pd, onednn_sgemm *out) {
  dnnl_dims_t a_dims, b_dims, dims, a, b, c;
  int32_t ndims = 0;
  const_dnnl_memory_desc_t dst = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_DST);
  const_dnnl_memory_desc_t bias = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_BIAS);
  if (dst == NULL || dnnl_memory_desc_query(dst, dnnl_query_ndims_s32, &ndims) != dnnl_success || ndims < 2 ||
      !read_tensor(dst, ndims, dims, c) ||
      !read_tensor(dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SRC), ndims, a_dims, a) ||
      !read_tensor(dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_WEIGHTS), ndims, b_dims, b))
    return false;
  const int r = ndims - 2, k = ndims - 1;
  *out = (onednn_sgemm){.n_batch = r,
                        .matrix = {.rows = dims[r],
                                   .columns = dims[k],
                                   .depth = a_dims[k],
                                   .a_row = a[r],
                                   .a_col = a[k],
                                   .b_row = b[r],
                                   .b_col = b[k],
                                   .out_row = c[r]}};
  if (a_dims[r] != dims[r] || b_dims[k] != dims[k] || b_dims[r] != a_dims[k] || (dims[k] > 1 && c[k] != 1))
    return false;
  if (dims[r] == 1 && b_dims[r] * b_dims[k] > MOST_OF_ROW) return false;
  if (dims[k] == 1) out->matrix.b_col = 1; /* dense, like any */
  for (int i = 0; i < r; i++) {
    if ((a_dims[i] != 1 && a_dims[i] != dims[i]) || (b_dims[i] != 1 && b_dims[i] != dims[i])) return false;
    out->batch[i] = dims[i];
    out->a[i] = a[i];
    out->b[i] = b[i];
    out->out[i] = c[i];
  }
  if (bias != NULL && dnnl_memory_desc_get_size(bias) > 0) {
    onednn_sgemm_post *post = &out->posts[out->n_posts++];
    *post = (onednn_sgemm_post){.alg = dnnl_binary_add, .arg = DNNL_ARG_BIAS};
    if (!read_other(bias, ndims, dims, false, post)) return false;
  }
  return read_posts(pd, ndims, dims, false, out);
}

/* All of some dimensions' numbers are `number`. */
static bool all_are(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int n, int64_t number) {
  const dnnl_dims_t *got = NULL;
  if (dnnl_primitive_desc_query(pd, what, 0, (void *)&got) != dnnl_success || got == NULL) return false;
  for (int i = 0; i < n; i++)
    if ((*got)[i] != number) return false;
  return true;
}

/* A convolution of one pixel is a product of the weights and each image, where channels lie one after another. */
static bool read_convolution(const_dnnl_primitive_desc_t pd, onednn_sgemm *out) {
  dnnl_dims_t in, weights, dims, a, b, c, bias_dims, bias;
  int32_t ndims = 0;
  int64_t pixels = 1;
  const_dnnl_memory_desc_t dst = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_DST);
  const_dnnl_memory_desc_t third = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_BIAS);
  if (dst == NULL || dnnl_memory_desc_query(dst, dnnl_query_ndims_s32, &ndims) != dnnl_success || ndims < 3 ||
      !read_tensor(dst, ndims, dims, c) ||
      !read_tensor(dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SRC), ndims, in, b) ||
      !read_tensor(dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_WEIGHTS), ndims, weights, a) ||
      !all_are(pd, dnnl_query_strides, ndims - 2, 1) || !all_are(pd, dnnl_query_padding_l, ndims - 2, 0) ||
      !all_are(pd, dnnl_query_padding_r, ndims - 2, 0))
    return false;
  for (int i = ndims - 1; i >= 2; i--) {
    if (weights[i] != 1 || in[i] != dims[i] || (dims[i] != 1 && (b[i] != pixels || c[i] != pixels))) return false;
    pixels *= dims[i];
  }
  if (weights[0] != dims[1] || weights[1] != in[1] || in[0] != dims[0]) return false;
  *out = (onednn_sgemm){.n_batch = 1,
                        .swapped = true,
                        .matrix = {.rows = dims[1],
                                   .columns = pixels,
                                   .depth = in[1],
                                   .a_row = a[0],
                                   .a_col = a[1],
                                   .b_row = b[1],
                                   .b_col = 1,
                                   .out_row = c[1]},
                        .batch = {dims[0]},
                        .b = {b[0]},
                        .out = {c[0]}};
  if (third != NULL && dnnl_memory_desc_get_size(third) > 0) {
    if (!read_tensor(third, 1, bias_dims, bias) || bias_dims[0] != dims[1]) return false;
    out->posts[out->n_posts++] = (onednn_sgemm_post){.alg = dnnl_binary_add, .arg = DNNL_ARG_BIAS, .row = bias[0]};
  }
  return read_posts(pd, ndims, dims, true, out);
}

static bool read(const_dnnl_primitive_desc_t pd, onednn_sgemm *out) {
  const char *name = "";
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  if (dnnl_primitive_desc_query(pd, dnnl_query_primitive_kind, 0, &kind) != dnnl_success ||
      dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) != dnnl_success ||
      strstr(name, "gemm") == NULL || strstr(name, "brg") != NULL)
    return false;
  return kind == dnnl_matmul ? read_product(pd, out) : kind == dnnl_convolution && read_convolution(pd, out);
}

bool onednn_sgemm_fits(const onednn *self) {
  return self->block == 8 && onednn_sgemm_has();
}

void onednn_sgemm_read(const onednn *self, const_dnnl_primitive_desc_t pd, onednn_sgemm *out) {
  const bool usable = onednn_sgemm_fits(self) && read(pd, out);
  if (!usable) *out = (onednn_sgemm){.usable = false};
  out->usable = usable;
}

dnnl_status_t onednn_sgemm_or_primitive(const onednn *self, const_dnnl_primitive_desc_t pd, onednn_sgemm *out,
                                        dnnl_primitive_t *primitive) {
  onednn_sgemm_read(self, pd, out);
  return out->usable ? dnnl_success : dnnl_primitive_create(primitive, pd);
}

/* ---------------------------------------------------------------- runs */

static void *address_of(int n_args, const dnnl_exec_arg_t *args, int arg) {
  void *at = NULL;
  for (int i = 0; i < n_args; i++)
    if (args[i].arg == arg) dnnl_memory_get_data_handle(args[i].memory, &at);
  return at;
}

static void run(const onednn_sgemm *p, int n_args, const dnnl_exec_arg_t *args) {
  const float *a = address_of(n_args, args, p->swapped ? DNNL_ARG_WEIGHTS : DNNL_ARG_SRC);
  const float *b = address_of(n_args, args, p->swapped ? DNNL_ARG_SRC : DNNL_ARG_WEIGHTS);
  float *out = address_of(n_args, args, DNNL_ARG_DST);
  onednn_sgemm_other others[ONEDNN_SGEMM_POSTS] = {{NULL, 0, 0}};
  int64_t at[DNNL_MAX_NDIMS] = {0};
  for (uint32_t i = 0; i < p->n_posts; i++)
    if (p->posts[i].arg != 0)
      others[i] =
          (onednn_sgemm_other){address_of(n_args, args, (int)p->posts[i].arg), p->posts[i].row, p->posts[i].column};
  for (;;) {
    onednn_sgemm_run(&p->matrix, a, b, out, p->posts, others, p->n_posts);
    int d = p->n_batch - 1;
    for (; d >= 0; d--) { /* to the next matrix: one step along a dimension, or back to its begin */
      const int64_t by = ++at[d] < p->batch[d] ? 1 : 1 - p->batch[d];
      a += by * p->a[d];
      b += by * p->b[d];
      out += by * p->out[d];
      for (uint32_t i = 0; i < p->n_posts; i++)
        if (p->posts[i].arg != 0) others[i].at += by * p->posts[i].batch[d];
      if (by == 1) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

dnnl_status_t onednn_sgemm_execute(const onednn_sgemm *product, dnnl_primitive_t primitive, dnnl_stream_t stream,
                                   int n_args, const dnnl_exec_arg_t *args) {
  if (product->usable) {
    run(product, n_args, args);
    return dnnl_success;
  }
  const dnnl_status_t s = dnnl_primitive_execute(primitive, stream, n_args, args);
  return s == dnnl_success ? dnnl_stream_wait(stream) : s;
}
