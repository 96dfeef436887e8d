/* frontends/onnx/tensor.c: the bytes of tensors: as they are in the file, in files beside it, or as numbers of one of
 * the typed fields. */
#include "frontends/onnx/tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"
#include "frontends/onnx/strings.h"
#include "frontends/onnx/types.h"
#include "frontends/onnx/wire.h"
#include "plugins/common/float16.h"

#define SMALL 4096    /* bytes up to which a copy is cheaper than a page that stays */
#define LARGE 1000000 /* bytes from which a page that stays is worth a call */
#define PIECE (UINT64_C(16) << 20)

static heddle_status bad(heddle__onnx_reader *r, const Onnx__TensorProto *t, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static heddle_status bad(heddle__onnx_reader *r, const Onnx__TensorProto *t, const char *format, ...) {
  char words[300], shown[44];
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  return heddle__onnx_fail(r, HEDDLE_EFORMAT, "tensor '%s': %s", heddle__onnx_show(t->name, shown), words);
}

/* ---- where the bytes are */

static bool read_number(const char *text, uint64_t *out) {
  uint64_t n = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9' || n > (UINT64_MAX - 9) / 10) return false;
    n = n * 10 + (uint64_t)(*text - '0');
  }
  *out = n;
  return true;
}

heddle_status heddle__onnx_external(heddle__onnx_reader *r, const Onnx__TensorProto *t, uint64_t *wanted,
                                    const unsigned char **out) {
  const char *location = NULL;
  uint64_t offset = 0, length = *wanted, bytes = 0;
  char shown[44];
  for (size_t i = 0; i < t->n_external_data; i++) {
    const char *key = t->external_data[i]->key, *value = t->external_data[i]->value;
    if (key == NULL || value == NULL) continue;
    if (strcmp(key, "location") == 0) location = value;
    uint64_t *number = strcmp(key, "offset") == 0 ? &offset : strcmp(key, "length") == 0 ? &length : NULL;
    if (number != NULL && !read_number(value, number))
      return bad(r, t, "external data: %s is '%s', expected a number of bytes", key, heddle__onnx_show(value, shown));
  }
  if (length == 0) length = *wanted; /* as if it were not given */
  if (location == NULL) return bad(r, t, "it is external data without a location");
  if (r->place == NULL)
    return heddle__onnx_fail(r, HEDDLE_EUNSUPPORTED,
                             "tensor '%s' lies in a file of its own, and this model was not read from a file",
                             heddle__onnx_show(t->name, shown));
  if (length != *wanted && *wanted != UINT64_MAX)
    return bad(r, t, "external data: length is %llu, and its shape needs %llu bytes", (unsigned long long)length,
               (unsigned long long)*wanted);
  heddle_status s = heddle__onnx_map_beside(r->maps, r->place, location, out, &bytes, r->err);
  if (s != HEDDLE_OK) return heddle__prefix(r->err, s, "%s: tensor '%s': ", r->name, heddle__onnx_show(t->name, shown));
  if (length == UINT64_MAX && offset <= bytes) length = bytes - offset;
  *wanted = length;
  if (offset > bytes || length > bytes - offset)
    return bad(r, t, "external data: %llu bytes from byte %llu on of '%.100s', which has %llu",
               (unsigned long long)length, (unsigned long long)offset, location, (unsigned long long)bytes);
  if (*out != NULL) *out += offset;
  return HEDDLE_OK;
}

/* Mapped, or copied where that is better or the bytes are the caller's. Files that exporters write align nothing, so that most weights lie at odd
 * addresses: large ones stay there too, since they are packed before they are used. Others are copied in pieces, so that no
 * more than one of them is in memory twice. */
static heddle_status take_bytes(heddle__onnx_reader *r, const unsigned char *from, struct heddle__param *out) {
  heddle__constant *v = &out->value;
  bool is_aligned = (uintptr_t)from % heddle__dtype_bytes(v->dtype) == 0;
  bool is_weights = v->bytes > HEDDLE__UNALIGNED_BYTES && v->ndim > 1;
  const bool is_lent = r->is_lent && from >= r->file && from < r->file + r->file_bytes;
  if (from != NULL && !is_lent && (r->only_looks || is_weights || (v->bytes > SMALL && is_aligned))) {
    v->data = (void *)(uintptr_t)from; /* a constant is never written */
    out->is_mapped = true;
    return HEDDLE_OK;
  }
  v->data = heddle__alloc_aligned((size_t)v->bytes, 64);
  if (v->data == NULL) return heddle__onnx_no_memory(r);
  for (uint64_t done = 0; done < v->bytes && from != NULL;) { /* NULL: of an empty file */
    uint64_t n = v->bytes - done < PIECE ? v->bytes - done : PIECE;
    memcpy((char *)v->data + done, from + done, (size_t)n);
    if (v->bytes > LARGE && r->maps != NULL && !is_lent) heddle__onnx_forget(from + done, n);
    done += n;
  }
  return HEDDLE_OK;
}

/* ---- numbers in a typed field */

typedef struct field {
  const void *data;
  size_t count, width;
  const char *name;
} field;

/* The field that holds numbers of a type. */
static field field_of(const Onnx__TensorProto *t) {
  switch (t->data_type) {
  case ONNX_FLOAT: return (field){t->float_data, t->n_float_data, 4, "float_data"};
  case ONNX_DOUBLE: return (field){t->double_data, t->n_double_data, 8, "double_data"};
  case ONNX_INT64: return (field){t->int64_data, t->n_int64_data, 8, "int64_data"};
  case ONNX_UINT32:
  case ONNX_UINT64: return (field){t->uint64_data, t->n_uint64_data, 8, "uint64_data"};
  default: return (field){t->int32_data, t->n_int32_data, 4, "int32_data"};
  }
}

/* Whether a number of the field is one of the type. */
static bool fits(const Onnx__TensorProto *t, const field *f, size_t i) {
  if (t->data_type == ONNX_UINT32) return t->uint64_data[i] <= UINT32_MAX;
  if (f->data != t->int32_data) return true;
  int32_t n = t->int32_data[i];
  switch (t->data_type) {
  case ONNX_INT8: return n >= INT8_MIN && n <= INT8_MAX;
  case ONNX_FLOAT8E4M3FN: /* the bits of float8 */
  case ONNX_FLOAT8E4M3FNUZ:
  case ONNX_FLOAT8E5M2:
  case ONNX_FLOAT8E5M2FNUZ:
  case ONNX_FLOAT8E8M0:
  case ONNX_UINT8: return n >= 0 && n <= UINT8_MAX;
  case ONNX_INT16: return n >= INT16_MIN && n <= INT16_MAX;
  case ONNX_BOOL: return n == 0 || n == 1;
  case ONNX_INT32: return true;
  default: return n >= 0 && n <= UINT16_MAX; /* uint16, and the bits of 16-bit floats */
  }
}

/* Whole numbers keep their lowest bits, as in ONNX Runtime; bits of floats that are too many mean nothing. */
static bool may_be_cut(int32_t type) {
  return type == ONNX_INT8 || type == ONNX_UINT8 || type == ONNX_INT16 || type == ONNX_UINT16 || type == ONNX_UINT32;
}

static heddle_status take_numbers(heddle__onnx_reader *r, const Onnx__TensorProto *t, uint64_t elements,
                                  struct heddle__param *out) {
  heddle__constant *v = &out->value;
  field f = field_of(t);
  size_t width = v->dtype.bits / 8, n_cut = 0;
  if (f.count != elements)
    return bad(r, t, "%s has %zu numbers, and its shape needs %llu", f.name, f.count, (unsigned long long)elements);
  v->data = heddle__alloc_aligned((size_t)v->bytes, 64);
  if (v->data == NULL) return heddle__onnx_no_memory(r);
  for (size_t i = 0; i < f.count; i++) {
    unsigned char *to = (unsigned char *)v->data + i * width;
    if (t->data_type == ONNX_BOOL) *to = t->int32_data[i] != 0;
    else memcpy(to, (const char *)f.data + i * f.width, width); /* little-endian */
    if (fits(t, &f, i)) continue;
    if (t->data_type != ONNX_BOOL && !may_be_cut(t->data_type))
      return bad(r, t, "number %zu of %s does not fit its type", i, f.name);
    n_cut++;
  }
  char shown[44];
  if (n_cut > 0)
    heddle__onnx_warn(r, "tensor '%s': %zu numbers of %s do not fit its type, and are %s",
                      heddle__onnx_show(t->name, shown), n_cut, f.name,
                      t->data_type == ONNX_BOOL ? "taken as true" : "cut to its bits");
  return HEDDLE_OK;
}

/* ---- the whole */

static bool shape_bytes(const Onnx__TensorProto *t, uint64_t width, uint64_t *elements, uint64_t *bytes) {
  *elements = 1;
  bool fits_in = true, is_empty = false;
  for (size_t i = 0; i < t->n_dims; i++) is_empty = is_empty || t->dims[i] == 0;
  for (size_t i = 0; i < t->n_dims && fits_in && !is_empty; i++) {
    fits_in = *elements <= (uint64_t)INT64_MAX / (uint64_t)t->dims[i];
    if (fits_in) *elements *= (uint64_t)t->dims[i];
  }
  if (is_empty) *elements = 0;
  fits_in = fits_in && *elements <= (uint64_t)INT64_MAX / width;
  *bytes = fits_in ? *elements * width : 0;
  return fits_in;
}

heddle_status heddle__onnx_tensor(heddle__onnx_reader *r, const Onnx__TensorProto *t, struct heddle__param *out) {
  heddle__constant *v = &out->value;
  char shown[44], type_name[24];
  const char *word;
  uint64_t elements = 0;
  heddle__onnx_show(t->name, shown);
  if (!heddle__onnx_dtype_of(t->data_type, &v->dtype, &word)) {
    heddle__onnx_problem(r, NULL, "tensor '%s' is of %s", shown, heddle__onnx_type_name(t->data_type, type_name));
    return HEDDLE_OK;
  }
  if (t->segment != NULL || t->n_dims > HEDDLE__MAX_NDIM) {
    heddle__onnx_problem(
        r, NULL, t->segment != NULL ? "tensor '%s' is a part of one" : "tensor '%s' has over 32 dimensions", shown);
    return HEDDLE_OK;
  }
  for (size_t i = 0; i < t->n_dims; i++)
    if (t->dims[i] < 0) return bad(r, t, "dimension %zu is %lld", i, (long long)t->dims[i]);
  if (!shape_bytes(t, heddle__dtype_bytes(v->dtype), &elements, &v->bytes) || v->bytes > SIZE_MAX / 2)
    return heddle__onnx_fail(r, HEDDLE_ELIMIT, "tensor '%s': its shape has more bytes than any memory", shown);
  out->file_dtype = v->dtype;
  if (v->dtype.code == HEDDLE_DTYPE_BOOL) out->file_dtype = (heddle_dtype){HEDDLE_DTYPE_UINT, 1, 1};
  v->ndim = (uint32_t)t->n_dims;
  v->shape = heddle__alloc(t->n_dims, sizeof *v->shape);
  if (v->shape == NULL) return heddle__onnx_no_memory(r);
  for (size_t i = 0; i < t->n_dims; i++) v->shape[i] = t->dims[i];

  if (t->data_type == ONNX_STRING) {
    int64_t *codes = NULL;
    heddle_status s = heddle__onnx_codes(r, t, elements, &codes);
    if (s != HEDDLE_OK) return s;
    v->data = heddle__alloc_aligned((size_t)v->bytes, 64);
    if (v->data == NULL) return heddle__onnx_no_memory(r);
    if (v->bytes > 0) memcpy(v->data, codes, (size_t)v->bytes);
    return HEDDLE_OK;
  }
  if (heddle__onnx_packed_bits(t->data_type) != 0) {
    v->data = heddle__alloc_aligned((size_t)v->bytes, 64);
    return v->data != NULL ? heddle__onnx_packed(r, t, elements, v->data) : heddle__onnx_no_memory(r);
  }
  if (t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    const unsigned char *from = NULL;
    uint64_t wanted = v->bytes;
    heddle_status s = heddle__onnx_external(r, t, &wanted, &from);
    return s == HEDDLE_OK ? take_bytes(r, from, out) : s;
  }
  if (!t->has_raw_data) return take_numbers(r, t, elements, out);
  if (t->has_data_location && (int)t->data_location == HEDDLE__ONNX_HELD) {
    if (t->raw_data.len != v->bytes) return bad(r, t, "it has no such place");
    v->data = heddle__alloc_aligned((size_t)v->bytes, 64);
    if (v->data == NULL) return heddle__onnx_no_memory(r);
    if (v->bytes > 0) memcpy(v->data, t->raw_data.data, (size_t)v->bytes);
    return HEDDLE_OK;
  }
  heddle__onnx_raw raw;
  memcpy(&raw, t->raw_data.data, sizeof raw); /* as wire.c left it */
  if (raw.bytes != v->bytes)
    return bad(r, t, "raw_data has %llu bytes, and its shape needs %llu", (unsigned long long)raw.bytes,
               (unsigned long long)v->bytes);
  return take_bytes(r, r->file + raw.offset, out);
}

/* ---- numbers */

/* Of an element of dtype. */
static heddle__onnx_number number_of(heddle_dtype dtype, const void *data) {
  heddle__onnx_number n = {.is_whole = dtype.code != HEDDLE_DTYPE_FLOAT && dtype.code != HEDDLE_DTYPE_BFLOAT};
  uint64_t bits = 0;
  float single;
  memcpy(&bits, data, heddle__dtype_bytes(dtype));
  if (n.is_whole) {
    unsigned unused = 64 - dtype.bits;
    bool is_negative = dtype.code == HEDDLE_DTYPE_INT && (bits >> (dtype.bits - 1) & 1) != 0;
    if (is_negative && unused > 0) bits |= UINT64_MAX << dtype.bits;
    memcpy(&n.whole, &bits, sizeof n.whole);
  } else if (dtype.bits == 64) {
    memcpy(&n.real, &bits, sizeof n.real);
  } else if (dtype.bits == 16 && dtype.code == HEDDLE_DTYPE_FLOAT) {
    n.real = (double)float16_to_float((uint16_t)bits);
  } else {
    uint32_t word = (uint32_t)(dtype.bits == 16 ? bits << 16 : bits);
    memcpy(&single, &word, sizeof single);
    n.real = (double)single;
  }
  return n;
}

heddle_status heddle__onnx_scalar(heddle__onnx_reader *r, const Onnx__NodeProto *node, const Onnx__TensorProto *tensor,
                                  heddle__onnx_number *out) {
  struct heddle__param p = {.name = NULL};
  heddle__constant *v = &p.value;
  heddle_status s = heddle__onnx_tensor(r, tensor, &p);
  *out = (heddle__onnx_number){.is_whole = true};
  if (s == HEDDLE_OK && v->data != NULL && v->bytes == heddle__dtype_bytes(v->dtype))
    *out = number_of(v->dtype, v->data);
  else if (s == HEDDLE_OK) heddle__onnx_problem(r, node, "a tensor of its attributes is not one number");
  const bool plain =
      v->dtype.code <= HEDDLE_DTYPE_FLOAT || v->dtype.code == HEDDLE_DTYPE_BFLOAT || v->dtype.code == HEDDLE_DTYPE_BOOL;
  out->is_other = !plain || (v->dtype.code == HEDDLE_DTYPE_UINT && v->dtype.bits == 64 && out->whole < 0);
  if (!p.is_mapped) heddle__free(v->data);
  heddle__free(v->shape);
  return s;
}

int heddle__onnx_floats(heddle__onnx_reader *r, const Onnx__TensorProto *tensor, float *out, int max) {
  struct heddle__param p = {.name = NULL};
  heddle_error unused, *kept = r->err;
  if (tensor->data_type != ONNX_FLOAT) return -1;
  r->err = &unused; /* what is wrong with it is reported when it is written */
  bool is_there = heddle__onnx_tensor(r, tensor, &p) == HEDDLE_OK && p.value.data != NULL;
  r->err = kept;
  int count = is_there && p.value.bytes <= (uint64_t)max * sizeof *out ? (int)(p.value.bytes / sizeof *out) : -1;
  if (count > 0) memcpy(out, p.value.data, (size_t)count * sizeof *out);
  if (!p.is_mapped) heddle__free(p.value.data);
  heddle__free(p.value.shape);
  return count;
}
