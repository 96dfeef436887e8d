/* Maxima of windows that hold no finite number: see onednn_lowest.h. */
#include "onednn_lowest.h"

#include <math.h>

static const uint32_t least_wide = UINT32_C(0xff7fffff), infinity_wide = UINT32_C(0xff800000);
static const uint16_t least_half = UINT16_C(0xff7f), infinity_half = UINT16_C(0xff80);

/* ---------------------------------------------------------------- reading */

static dnnl_status_t read_where(const_dnnl_memory_desc_t md, int *ndims, onednn_where *out) {
  const dnnl_dims_t *dims = NULL, *strides = NULL, *blocks = NULL, *of = NULL;
  dnnl_format_kind_t format = dnnl_format_kind_undef;
  dnnl_status_t s = dnnl_memory_desc_query(md, dnnl_query_ndims_s32, ndims);
  if (s == dnnl_success) s = dnnl_memory_desc_query(md, dnnl_query_format_kind, &format);
  if (s == dnnl_success && (format != dnnl_blocked || *ndims < 3 || *ndims > ONEDNN_LOWEST_DIMS))
    return dnnl_unimplemented;
  if (s == dnnl_success) s = dnnl_memory_desc_query(md, dnnl_query_dims, (void *)&dims);
  if (s == dnnl_success) s = dnnl_memory_desc_query(md, dnnl_query_strides, (void *)&strides);
  if (s == dnnl_success) s = dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &out->n_blocks);
  if (s == dnnl_success && out->n_blocks > ONEDNN_LOWEST_DIMS) return dnnl_unimplemented;
  if (s == dnnl_success && out->n_blocks > 0) s = dnnl_memory_desc_query(md, dnnl_query_inner_blks, (void *)&blocks);
  if (s == dnnl_success && out->n_blocks > 0) s = dnnl_memory_desc_query(md, dnnl_query_inner_idxs, (void *)&of);
  for (int i = 0; i < *ndims && s == dnnl_success; i++) {
    out->dims[i] = (*dims)[i];
    out->strides[i] = (*strides)[i];
  }
  for (int i = 0; i < out->n_blocks && s == dnnl_success; i++) {
    out->blocks[i] = (*blocks)[i];
    out->block_dims[i] = (int)(*of)[i];
  }
  return s;
}

/* The number of elements that the memory holds, padding too, where they lie in one piece: else 0. */
static uint64_t whole_elements(const onednn_where *w, int ndims, uint64_t bytes, size_t size) {
  uint64_t n = 1;
  for (int d = 0; d < ndims; d++) {
    int64_t block = 1;
    for (int i = 0; i < w->n_blocks; i++) block *= w->block_dims[i] == d ? w->blocks[i] : 1;
    n *= (uint64_t)((w->dims[d] + block - 1) / block * block);
  }
  return n * size == bytes ? n : 0;
}

dnnl_status_t onednn_lowest_read(const_dnnl_primitive_desc_t pd, onednn_lowest *out) {
  const_dnnl_memory_desc_t src = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SRC);
  const_dnnl_memory_desc_t dst = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_DST);
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
  dnnl_data_type_t from = dnnl_data_type_undef, to = dnnl_data_type_undef;
  dnnl_dims_t kernel, strides, dilations, before;
  int ndims = 0, ndims_src = 0;
  memset(out, 0, sizeof *out);
  dnnl_status_t s = dnnl_primitive_desc_query(pd, dnnl_query_primitive_kind, 0, &kind);
  if (s != dnnl_success || kind != dnnl_pooling) return s;
  s = dnnl_primitive_desc_query(pd, dnnl_query_alg_kind, 0, &alg);
  if (s != dnnl_success || alg != dnnl_pooling_max) return s;
  s = read_where(src, &ndims_src, &out->src);
  if (s == dnnl_success) s = read_where(dst, &ndims, &out->dst);
  if (s == dnnl_success) s = dnnl_memory_desc_query(src, dnnl_query_data_type, &from);
  if (s == dnnl_success) s = dnnl_memory_desc_query(dst, dnnl_query_data_type, &to);
  if (s == dnnl_success && (from != to || ndims != ndims_src || (to != dnnl_f32 && to != dnnl_bf16)))
    return dnnl_unimplemented;
  const int spatial = ndims - 2;
  if (s == dnnl_success) s = onednn_query_dims(pd, dnnl_query_kernel, kernel, spatial);
  if (s == dnnl_success) s = onednn_query_dims(pd, dnnl_query_strides, strides, spatial);
  if (s == dnnl_success) s = onednn_query_dims(pd, dnnl_query_dilations, dilations, spatial);
  if (s == dnnl_success) s = onednn_query_dims(pd, dnnl_query_padding_l, before, spatial);
  if (s != dnnl_success) return s;
  for (int i = 0; i < spatial; i++) {
    out->kernel[i] = kernel[i];
    out->stride[i] = strides[i];
    out->dilation[i] = dilations[i] + 1;
    out->before[i] = before[i];
  }
  out->needed = true;
  out->wide = to == dnnl_f32;
  out->spatial = spatial;
  out->elements = whole_elements(&out->dst, ndims, dnnl_memory_desc_get_size(dst), out->wide ? 4 : 2);
  return dnnl_success;
}

/* ---------------------------------------------------------------- mending */

static bool any_least(const onednn_lowest *l, const void *dst) {
  const uint32_t *wide = dst;
  const uint16_t *half = dst;
  if (l->elements == 0) return true;
  for (uint64_t from = 0; from < l->elements; from += 1024) {
    const uint64_t n = l->elements - from < 1024 ? l->elements - from : 1024;
    uint32_t found = 0;
    if (l->wide)
      for (uint64_t i = 0; i < n; i++) found |= wide[from + i] == least_wide;
    else
      for (uint64_t i = 0; i < n; i++) found |= half[from + i] == least_half;
    if (found != 0) return true;
  }
  return false;
}

static int64_t offset_of(const onednn_where *w, int ndims, const int64_t *at) {
  int64_t rest[ONEDNN_LOWEST_DIMS] = {0}, offset = 0, each = 1;
  for (int d = 0; d < ndims; d++) rest[d] = at[d];
  for (int i = w->n_blocks - 1; i >= 0; i--) {
    const int d = w->block_dims[i];
    offset += rest[d] % w->blocks[i] * each;
    rest[d] /= w->blocks[i];
    each *= w->blocks[i];
  }
  for (int d = 0; d < ndims; d++) offset += rest[d] * w->strides[d];
  return offset;
}

static float number_at(bool wide, const void *x, int64_t at) {
  const uint32_t bits = wide ? ((const uint32_t *)x)[at] : (uint32_t)((const uint16_t *)x)[at] << 16;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* Whether a window holds a finite number; *nan: or, where it does not, a NaN. at: of the result. */
static bool holds_number(const onednn_lowest *l, const void *src, const int64_t *at, bool *nan) {
  int64_t place[ONEDNN_LOWEST_DIMS] = {0}, tap[REF_SPATIAL] = {0};
  const int ndims = l->spatial + 2;
  place[0] = at[0];
  place[1] = at[1];
  *nan = false;
  for (int d = 0; d >= 0;) {
    bool inside = true;
    for (int i = 0; i < l->spatial; i++) {
      place[2 + i] = at[2 + i] * l->stride[i] - l->before[i] + tap[i] * l->dilation[i];
      inside = inside && place[2 + i] >= 0 && place[2 + i] < l->src.dims[2 + i];
    }
    if (inside) {
      const float x = number_at(l->wide, src, offset_of(&l->src, ndims, place));
      if (x > -INFINITY) return true;
      *nan = *nan || isnan(x);
    }
    for (d = l->spatial - 1; d >= 0 && ++tap[d] == l->kernel[d]; d--) tap[d] = 0;
  }
  return false;
}

static void mend_one(const onednn_lowest *l, const void *src, void *dst, const int64_t *at) {
  const int64_t offset = offset_of(&l->dst, l->spatial + 2, at);
  bool nan = false;
  uint32_t *wide = dst;
  uint16_t *half = dst;
  if (l->wide ? wide[offset] != least_wide : half[offset] != least_half) return;
  if (holds_number(l, src, at, &nan)) return;
  if (l->wide) wide[offset] = nan ? UINT32_C(0x7fc00000) : infinity_wide;
  else half[offset] = nan ? UINT16_C(0x7fc0) : infinity_half;
}

bool onednn_lowest_mend(const onednn *self, const onednn_lowest *l, const void *src, void *dst) {
  int64_t at[ONEDNN_LOWEST_DIMS] = {0}, taps = 1, work = 0;
  if (!any_least(l, dst)) return true;
  for (int i = 0; i < l->spatial; i++) taps *= l->kernel[i];
  for (int d = 0; d >= 0;) {
    mend_one(l, src, dst, at);
    work += taps;
    if (work > 1 << 20) {
      if (onednn_stops(self)) return false;
      work = 0;
    }
    for (d = l->spatial + 1; d >= 0 && ++at[d] == l->dst.dims[d]; d--) at[d] = 0;
  }
  return true;
}
