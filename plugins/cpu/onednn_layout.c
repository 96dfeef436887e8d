/* Layouts as tokens. A token is made of the name that oneDNN's documentation gives a format ("aBcd16b"), so it is the
 * same in every process and on every version: bit 63 is set, bit 62 means swapped, bit 61 that the elements are
 * bfloat16 for float32, bits 32 to 55 the groups, and the lower half is a hash of the name (FNV-1a, 32 bits), 0 for
 * row-major bfloat16. Formats without such a name are not offered. */
#include "cpu.h"
#include "onednn_internal.h"

#include <oneapi/dnnl/dnnl_debug.h>
#include <stdlib.h>

#define TOKEN (UINT64_C(1) << 63)
#define SWAPPED (UINT64_C(1) << 62)
#define BF16 (UINT64_C(1) << 61)
#define GROUPS_AT 32
#define MOST_GROUPS ((UINT64_C(1) << 24) - 1)
#define PLAIN_BF16 (TOKEN | BF16)
#define KNOWN_BITS (TOKEN | SWAPPED | BF16 | (MOST_GROUPS << GROUPS_AT) | UINT32_MAX)

/* ---------------------------------------------------------------- names */

static uint32_t hash_of(const char *name) {
  uint32_t h = UINT32_C(2166136261);
  for (; *name != '\0'; name++) h = (h ^ (uint8_t)*name) * UINT32_C(16777619);
  return h;
}

/* Fills a row from a tag's name; false for names that are no order of dimensions ("any"). */
static bool read_name(dnnl_format_tag_t tag, onednn_tag *out) {
  const char *name = dnnl_fmt_tag2str(tag);
  uint32_t seen = 0;
  const char *at = name;
  for (; *at != '\0' && (*at < '0' || *at > '9'); at++) {
    int letter = *at >= 'a' ? *at - 'a' : *at - 'A';
    if (letter < 0 || letter >= DNNL_MAX_NDIMS || (seen >> letter & 1) != 0) return false;
    seen |= UINT32_C(1) << letter;
  }
  int ndims = (int)(at - name);
  if (ndims == 0 || seen != (UINT32_C(1) << ndims) - 1) return false;
  *out = (onednn_tag){.tag = tag, .hash = hash_of(name), .name = name, .blocks = at, .ndims = ndims};
  return true;
}

heddle_status onednn_layout_init(onednn *self, heddle_error *err) {
  const heddle_host *host = self->host;
  self->tags = host->alloc(host->ctx, dnnl_format_tag_last * sizeof *self->tags, _Alignof(onednn_tag));
  if (self->tags == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for the names of layouts");
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; tag++)
    if (read_name((dnnl_format_tag_t)tag, &self->tags[self->n_tags])) self->n_tags++;
  const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
  self->block = (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? 16 : 8;
  self->bf16 = (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
  return HEDDLE_OK;
}

void onednn_layout_finish(onednn *self) {
  self->host->free(self->host->ctx, self->tags);
}

static const onednn_tag *find_hash(const onednn *self, uint32_t hash, int ndims) {
  for (uint32_t i = 0; i < self->n_tags; i++)
    if (self->tags[i].hash == hash && (ndims == 0 || self->tags[i].ndims == ndims)) return &self->tags[i];
  return NULL;
}

/* ---------------------------------------------------------------- views and descriptors */

/* Types that have layouts: float32, and bytes. Undefined for others. */
static dnnl_data_type_t type_of(heddle_dtype dtype) {
  if (region_dtype_is(dtype, HEDDLE_DTYPE_FLOAT, 32)) return dnnl_f32;
  if (region_dtype_is(dtype, HEDDLE_DTYPE_INT, 8)) return dnnl_s8;
  return region_dtype_is(dtype, HEDDLE_DTYPE_UINT, 8) ? dnnl_u8 : dnnl_data_type_undef;
}

bool onednn_view_of(const heddle_pvalue *tensor, uint32_t groups, bool swapped, onednn_view *out) {
  const int more = groups != 0;
  int64_t stride = 1;
  *out =
      (onednn_view){.ndims = tensor->ndim + more, .groups = groups, .swapped = swapped, .type = type_of(tensor->dtype)};
  if (out->ndims < 1 || out->ndims > DNNL_MAX_NDIMS || out->ndims < (swapped ? 2 : 1) + more) return false;
  if (more && (tensor->shape[0] % groups != 0)) return false;
  for (int i = 0; i < tensor->ndim; i++) out->dims[i + more] = tensor->shape[i];
  if (more) {
    out->dims[0] = groups;
    out->dims[1] /= groups;
  }
  for (int i = out->ndims - 1; i >= 0; i--) {
    if (out->dims[i] < 1) return false;
    out->strides[i] = stride;
    stride *= out->dims[i];
  }
  if (swapped) {
    const int64_t dim = out->dims[more], by = out->strides[more];
    out->dims[more] = out->dims[more + 1];
    out->strides[more] = out->strides[more + 1];
    out->dims[more + 1] = dim;
    out->strides[more + 1] = by;
  }
  return true;
}

static dnnl_data_type_t view_type(const onednn_view *view) {
  return view->type != dnnl_data_type_undef ? view->type : dnnl_f32;
}

dnnl_status_t onednn_plain(const onednn_view *view, dnnl_memory_desc_t *out) {
  return dnnl_memory_desc_create_with_strides(out, view->ndims, view->dims, view_type(view), view->strides);
}

static dnnl_status_t in_tag(const onednn_view *view, dnnl_format_tag_t tag, dnnl_memory_desc_t *out) {
  return dnnl_memory_desc_create_with_tag(out, view->ndims, view->dims, view_type(view), tag);
}

dnnl_status_t onednn_any(const onednn_view *view, dnnl_memory_desc_t *out) {
  return in_tag(view, dnnl_format_tag_any, out);
}

heddle_layout onednn_plain_layout(dnnl_data_type_t type) {
  return type == dnnl_bf16 ? PLAIN_BF16 : 0;
}

/* The view that a token is about, and its format, NULL for row-major; false for a token that is not ours or does not fit
 * the tensor. */
static bool read_token(const onednn *self, const heddle_pvalue *tensor, heddle_layout token, onednn_view *view,
                       const onednn_tag **tag) {
  const uint32_t groups = (uint32_t)(token >> GROUPS_AT & MOST_GROUPS);
  if ((token & TOKEN) == 0 || (token & ~KNOWN_BITS) != 0 || type_of(tensor->dtype) == dnnl_data_type_undef)
    return false;
  if (!onednn_view_of(tensor, groups, (token & SWAPPED) != 0, view)) return false;
  if ((token & BF16) != 0) view->type = dnnl_bf16;
  *tag = token == PLAIN_BF16 ? NULL : find_hash(self, (uint32_t)token, view->ndims);
  return *tag != NULL || token == PLAIN_BF16;
}

bool onednn_view_from_token(const onednn *self, const heddle_pvalue *tensor, heddle_layout token, onednn_view *out) {
  const onednn_tag *tag;
  return read_token(self, tensor, token, out, &tag);
}

dnnl_status_t onednn_from_token(const onednn *self, const heddle_pvalue *tensor, heddle_layout token,
                                dnnl_memory_desc_t *out) {
  onednn_view view;
  const onednn_tag *tag;
  if (!read_token(self, tensor, token, &view, &tag)) return dnnl_invalid_arguments;
  return tag == NULL ? onednn_plain(&view, out) : in_tag(&view, tag->tag, out);
}

static dnnl_format_tag_t form_tag(const onednn *self, int ndims, onednn_form form) {
  static const dnnl_format_tag_t last[] = {dnnl_acb, dnnl_acdb, dnnl_acdeb};
  static const dnnl_format_tag_t by8[] = {dnnl_aBc8b, dnnl_aBcd8b, dnnl_aBcde8b};
  static const dnnl_format_tag_t by16[] = {dnnl_aBc16b, dnnl_aBcd16b, dnnl_aBcde16b};
  if (ndims < 3 || ndims > 5) return dnnl_format_tag_undef;
  return form == ONEDNN_FORM_CHANNELS_LAST ? last[ndims - 3] : self->block == 16 ? by16[ndims - 3] : by8[ndims - 3];
}

dnnl_status_t onednn_in_form(const onednn *self, const heddle_pvalue *tensor, onednn_form form,
                             dnnl_memory_desc_t *out) {
  onednn_view view;
  if (!onednn_view_of(tensor, 0, false, &view)) return dnnl_unimplemented;
  if (onednn_form_type(form) == dnnl_bf16) view.type = dnnl_bf16;
  form = onednn_base(form);
  if (form == ONEDNN_FORM_PLAIN) return onednn_plain(&view, out);
  if (form == ONEDNN_FORM_ANY) return onednn_any(&view, out);
  const dnnl_format_tag_t tag = form_tag(self, view.ndims, form);
  return tag == dnnl_format_tag_undef ? dnnl_unimplemented : in_tag(&view, tag, out);
}

/* ---------------------------------------------------------------- from a descriptor to a token */

/* Is md what the tag makes of the view? */
/* Do the strides fall in the order that the tag has, and are there blocks where it has some? To make the tag's description
 * takes longer. */
static bool may_be(const onednn_view *view, const_dnnl_memory_desc_t md, dnnl_format_tag_t tag) {
  const char *name = dnnl_fmt_tag2str(tag);
  const dnnl_dims_t *strides = NULL;
  int64_t before = INT64_MAX;
  int blocks = 0;
  if (dnnl_memory_desc_query(md, dnnl_query_strides, (void *)&strides) != dnnl_success ||
      dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks) != dnnl_success)
    return true;
  for (int i = 0; i < view->ndims; i++) {
    const int at = name[i] >= 'a' ? name[i] - 'a' : name[i] - 'A';
    if (at < 0 || at >= view->ndims || (*strides)[at] > before) return false;
    before = (*strides)[at];
  }
  return (name[view->ndims] != '\0') == (blocks > 0);
}

static bool is_tag(const onednn_view *view, const_dnnl_memory_desc_t md, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t made = NULL;
  if (!may_be(view, md, tag) || in_tag(view, tag, &made) != dnnl_success) return false;
  bool same = dnnl_memory_desc_equal(made, md) != 0;
  dnnl_memory_desc_destroy(made);
  return same;
}

/* The inner blocks of md as tags spell them: "16b4a". */
static void spell_blocks(const_dnnl_memory_desc_t md, char *out, size_t bytes) {
  const dnnl_dims_t *sizes = NULL, *dims = NULL;
  int n = 0;
  out[0] = '\0';
  if (dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &n) != dnnl_success || n == 0) return;
  if (dnnl_memory_desc_query(md, dnnl_query_inner_blks, (void *)&sizes) != dnnl_success ||
      dnnl_memory_desc_query(md, dnnl_query_inner_idxs, (void *)&dims) != dnnl_success)
    return;
  for (int i = 0; i < n; i++) {
    const size_t used = strlen(out);
    snprintf(out + used, bytes - used, "%d%c", (int)(*sizes)[i], (char)('a' + (int)(*dims)[i]));
  }
}

static heddle_layout make_token(const onednn_view *view, uint32_t hash) {
  return TOKEN | (view->swapped ? SWAPPED : 0) | (view->type == dnnl_bf16 ? BF16 : 0) |
         (heddle_layout)view->groups << GROUPS_AT | hash;
}

/* Images of one pixel lie row-major in every form, where no block is filled up. */
static bool is_plain_too(const onednn *self, const onednn_view *view, const_dnnl_memory_desc_t md) {
  if (view->groups != 0 || view->swapped || view->ndims < 3) return false;
  for (int i = 2; i < view->ndims; i++)
    if (view->dims[i] != 1) return false;
  for (int form = ONEDNN_FORM_BLOCKED; form <= ONEDNN_FORM_CHANNELS_LAST; form++) {
    const dnnl_format_tag_t tag = form_tag(self, view->ndims, (onednn_form)form);
    if (tag == dnnl_format_tag_undef || !is_tag(view, md, tag)) continue;
    return form == ONEDNN_FORM_CHANNELS_LAST || view->dims[1] % self->block == 0;
  }
  return false;
}

bool onednn_token_of(const onednn *self, const onednn_view *given, const_dnnl_memory_desc_t md, heddle_layout *out) {
  dnnl_memory_desc_t plain = NULL;
  onednn_view typed = *given;
  const onednn_view *view = &typed;
  char blocks[64];
  if (dnnl_memory_desc_query(md, dnnl_query_data_type, &typed.type) != dnnl_success) return false;
  if (onednn_plain(view, &plain) != dnnl_success) return false;
  bool same = dnnl_memory_desc_equal(plain, md) != 0;
  dnnl_memory_desc_destroy(plain);
  *out = onednn_plain_layout(view->type);
  if (same) return true;
  if (view->groups > MOST_GROUPS) return false;
  if (is_plain_too(self, view, md)) return true;
  /* Where dimensions of 1 make several names fit, activations keep those that every operator offers. */
  for (int form = ONEDNN_FORM_BLOCKED; view->groups == 0 && form <= ONEDNN_FORM_CHANNELS_LAST; form++) {
    const dnnl_format_tag_t tag = form_tag(self, view->ndims, (onednn_form)form);
    if (tag == dnnl_format_tag_undef || !is_tag(view, md, tag)) continue;
    *out = make_token(view, hash_of(dnnl_fmt_tag2str(tag)));
    return true;
  }
  spell_blocks(md, blocks, sizeof blocks);
  for (uint32_t i = 0; i < self->n_tags; i++) {
    const onednn_tag *tag = &self->tags[i];
    if (tag->ndims != view->ndims || strcmp(tag->blocks, blocks) != 0 || !is_tag(view, md, tag->tag)) continue;
    *out = make_token(view, tag->hash);
    return true;
  }
  return false;
}

dnnl_status_t onednn_form_token(const onednn *self, const heddle_pvalue *value, onednn_form form, heddle_layout *out) {
  dnnl_memory_desc_t md = NULL;
  onednn_view view;
  dnnl_status_t s = onednn_in_form(self, value, form, &md);
  if (s == dnnl_success && (!onednn_view_of(value, 0, false, &view) || !onednn_token_of(self, &view, md, out)))
    s = dnnl_unimplemented;
  if (md != NULL) dnnl_memory_desc_destroy(md);
  return s;
}

/* ---------------------------------------------------------------- parts of tensors */

/* Is dim the slowest of those that are not 1, and does `from` lie between its blocks? */
static bool sliceable(const onednn_view *view, const onednn_tag *tag, int dim, int64_t from) {
  int64_t block = 1;
  for (const char *at = tag->name; at < tag->blocks; at++) {
    const int d = *at >= 'a' ? *at - 'a' : *at - 'A';
    if (d == dim) break;
    if (view->dims[d] != 1) return false;
  }
  for (const char *at = tag->blocks; *at != '\0'; at++) {
    char *end;
    const long size = strtol(at, &end, 10);
    if (*end - 'a' == dim) block *= size;
    at = end;
  }
  return from % block == 0;
}

dnnl_status_t onednn_slice(const onednn *self, const onednn_view *view, heddle_layout layout, int dim, int64_t from,
                           int64_t count, dnnl_memory_desc_t *out, uint64_t *offset) {
  onednn_view part = *view;
  dnnl_memory_desc_t before = NULL;
  part.dims[dim] = count;
  part.type = (layout & BF16) != 0 ? dnnl_bf16 : view_type(view);
  *offset = 0;
  if (layout == 0 || layout == PLAIN_BF16) {
    *offset = (uint64_t)(from * view->strides[dim]) * dnnl_data_type_size(part.type);
    return onednn_plain(&part, out);
  }
  const onednn_tag *tag = find_hash(self, (uint32_t)layout, view->ndims);
  if (tag == NULL || !sliceable(view, tag, dim, from)) return dnnl_unimplemented;
  if (from > 0) {
    part.dims[dim] = from;
    dnnl_status_t s = in_tag(&part, tag->tag, &before);
    if (s != dnnl_success) return s;
    *offset = dnnl_memory_desc_get_size(before);
    dnnl_memory_desc_destroy(before);
    part.dims[dim] = count;
  }
  return in_tag(&part, tag->tag, out);
}

/* ---------------------------------------------------------------- the table of layouts */

static heddle_status check(heddle_pinstance *self, uint32_t index, const onednn **out, heddle_error *err) {
  if (index != 0) return p_fail(err, HEDDLE_ENODEV, 0, "cpu:%u: there is one cpu device, cpu:0", index);
  if (self->onednn == NULL) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: layouts are switched off by cpu.onednn");
  *out = self->onednn;
  return HEDDLE_OK;
}

static heddle_status measure(const onednn *self, const heddle_pvalue *tensor, uint64_t *bytes, heddle_error *err) {
  dnnl_memory_desc_t md = NULL;
  char shape[SHAPE_NAME_BYTES];
  const winograd_kind *kind;
  if (winograd_is_token(tensor->layout, &kind) && kind->lanes == winograd_lanes(self->block) &&
      winograd_weight_bytes(tensor, tensor->layout, bytes))
    return HEDDLE_OK;
  if (tensor->layout == 0) {
    if (region_value_bytes(tensor, bytes)) return HEDDLE_OK;
  } else if (onednn_from_token(self, tensor, tensor->layout, &md) == dnnl_success) {
    *bytes = dnnl_memory_desc_get_size(md);
    dnnl_memory_desc_destroy(md);
    return HEDDLE_OK;
  }
  return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: layout 0x%llx is not one for a tensor of %s",
                (unsigned long long)tensor->layout, region_shape_name(tensor, shape));
}

static heddle_status layout_bytes(heddle_pinstance *instance, uint32_t index, const heddle_pvalue *tensor,
                                  uint64_t *bytes, uint64_t *align, heddle_error *err) {
  const onednn *self = NULL;
  heddle_status s = check(instance, index, &self, err);
  if (s == HEDDLE_OK) s = measure(self, tensor, bytes, err);
  if (s == HEDDLE_OK) *align = CPU_ALIGNMENT;
  return s;
}

/* Writes from[src] to to[dst] on the calling thread alone. */
static dnnl_status_t reorder_now(const onednn *self, const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst,
                                 void *from, void *to) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_stream_t stream = NULL;
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
  const int before = onednn_threads_enter(self);
  dnnl_status_t s = dnnl_reorder_primitive_desc_create(&pd, src, self->engine, dst, self->engine, NULL);
  if (s == dnnl_success) s = dnnl_primitive_create(&primitive, pd);
  if (s == dnnl_success) s = dnnl_stream_create(&stream, self->engine, dnnl_stream_default_flags);
  if (s == dnnl_success) s = dnnl_memory_create(&args[0].memory, src, self->engine, from);
  if (s == dnnl_success) s = dnnl_memory_create(&args[1].memory, dst, self->engine, to);
  if (s == dnnl_success) s = dnnl_primitive_execute(primitive, stream, 2, args);
  if (s == dnnl_success) s = dnnl_stream_wait(stream);
  if (args[1].memory != NULL) dnnl_memory_destroy(args[1].memory);
  if (args[0].memory != NULL) dnnl_memory_destroy(args[0].memory);
  if (stream != NULL) dnnl_stream_destroy(stream);
  if (primitive != NULL) dnnl_primitive_destroy(primitive);
  if (pd != NULL) dnnl_primitive_desc_destroy(pd);
  onednn_threads_leave(self, before);
  return s;
}

static heddle_status layout_pack(heddle_pinstance *instance, uint32_t index, const heddle_pvalue *tensor, void *dst,
                                 uint64_t dst_bytes, heddle_error *err) {
  const onednn *self = NULL;
  const onednn_tag *tag;
  const winograd_kind *kind;
  onednn_view view;
  uint64_t bytes = 0, plain_bytes = 0;
  heddle_status s = check(instance, index, &self, err);
  if (s == HEDDLE_OK) s = measure(self, tensor, &bytes, err);
  if (s != HEDDLE_OK) return s;
  if (dst_bytes != bytes || !region_value_bytes(tensor, &plain_bytes) || tensor->data_bytes < plain_bytes ||
      (tensor->data == NULL && plain_bytes > 0))
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: pack of %llu bytes into %llu where %llu are needed",
                  (unsigned long long)tensor->data_bytes, (unsigned long long)dst_bytes, (unsigned long long)bytes);
  if (tensor->layout == 0) {
    if (bytes > 0) memcpy(dst, tensor->data, bytes);
    return HEDDLE_OK;
  }
  if (winograd_is_token(tensor->layout, &kind)) {
    winograd_pack(tensor, kind, dst);
    return HEDDLE_OK;
  }
  /* A blob of parameters may lie at any address; oneDNN reads whole floats. */
  void *copy = NULL;
  const heddle_host *host = self->host;
  if ((uintptr_t)tensor->data % sizeof(float) != 0) {
    copy = host->alloc(host->ctx, plain_bytes, CPU_ALIGNMENT);
    if (copy == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu:0: no memory to pack a constant");
    memcpy(copy, tensor->data, plain_bytes);
  }
  dnnl_memory_desc_t from = NULL, to = NULL;
  read_token(self, tensor, tensor->layout, &view, &tag); /* measure has read it */
  if (view.type == dnnl_bf16) view.type = dnnl_f32;
  dnnl_status_t d = onednn_plain(&view, &from);
  if (d == dnnl_success) d = onednn_from_token(self, tensor, tensor->layout, &to);
  if (d == dnnl_success) {
    memset(dst, 0, bytes);
    d = reorder_now(self, from, to, copy != NULL ? copy : (void *)(uintptr_t)tensor->data, dst);
  }
  if (to != NULL) dnnl_memory_desc_destroy(to);
  if (from != NULL) dnnl_memory_desc_destroy(from);
  host->free(host->ctx, copy);
  return onednn_fail(d, "packing a constant", err);
}

static heddle_status layout_describe(heddle_pinstance *instance, uint32_t index, heddle_layout layout, char *buf,
                                     uint64_t bytes, heddle_error *err) {
  const onednn *self = NULL;
  heddle_status s = check(instance, index, &self, err);
  const winograd_kind *kind;
  if (s != HEDDLE_OK) return s;
  if (winograd_is_token(layout, &kind)) {
    if (bytes != 0) snprintf(buf, bytes, "winograd:%dx%d", (int)kind->m, (int)kind->r);
    return HEDDLE_OK;
  }
  const onednn_tag *tag = (layout & TOKEN) != 0 ? find_hash(self, (uint32_t)layout, 0) : NULL;
  const unsigned groups = (unsigned)(layout >> GROUPS_AT & MOST_GROUPS);
  const bool plain = layout == 0 || layout == PLAIN_BF16;
  char more[32] = "";
  if (!plain && (tag == NULL || (layout & ~KNOWN_BITS) != 0))
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: there is no layout 0x%llx", (unsigned long long)layout);
  if (groups != 0) snprintf(more, sizeof more, ":g%u", groups);
  if (bytes != 0)
    snprintf(buf, bytes, "%s%s%s%s", plain ? "plain" : tag->name, more, (layout & SWAPPED) != 0 ? ":t" : "",
             (layout & BF16) != 0 ? ":bf16" : "");
  return HEDDLE_OK;
}

const heddle_layout_table onednn_layout_table = {
    .struct_size = sizeof onednn_layout_table,
    .bytes = layout_bytes,
    .pack = layout_pack,
    .describe = layout_describe,
};
