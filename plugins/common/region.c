/* Helpers over heddle_pregion: see region.h for what each gives. Shapes and indices are checked where they are read,
 * although the host has checked them too, because a wrong one would become a wild address in a kernel. */
#include "region.h"

#include "perror.h"

#include <inttypes.h>

static const void *element(heddle_parray array, uint64_t index) {
  if (array.data == NULL || index >= array.count) return NULL;
  return (const char *)array.data + index * array.stride;
}

const heddle_pnode *region_node(const heddle_pregion *region, uint64_t index) {
  return element(region->nodes, index);
}

const heddle_pvalue *region_value(const heddle_pregion *region, int64_t index) {
  return index < 0 ? NULL : element(region->values, (uint64_t)index);
}

const heddle_pvalue *region_node_input(const heddle_pregion *region, const heddle_pnode *node, uint32_t k) {
  return k < node->n_inputs ? region_value(region, node->inputs[k]) : NULL;
}

const heddle_pvalue *region_node_output(const heddle_pregion *region, const heddle_pnode *node, uint32_t k) {
  return k < node->n_outputs ? region_value(region, node->outputs[k]) : NULL;
}

static int64_t slot_of(const int32_t *indices, uint32_t count, int64_t value) {
  for (uint32_t i = 0; i < count; i++) {
    if (indices[i] == value) return i;
  }
  return -1;
}

int64_t region_input_slot(const heddle_pregion *region, int64_t value) {
  return slot_of(region->inputs, region->n_inputs, value);
}

int64_t region_output_slot(const heddle_pregion *region, int64_t value) {
  return slot_of(region->outputs, region->n_outputs, value);
}

/* ---------------------------------------------------------------- attributes */

const heddle_pattr *region_attr_find(const heddle_pnode *node, const char *name) {
  for (uint64_t i = 0; i < node->attrs.count; i++) {
    const heddle_pattr *attr = element(node->attrs, i);
    if (attr != NULL && attr->name != NULL && strcmp(attr->name, name) == 0) return attr;
  }
  return NULL;
}

static heddle_status wrong_kind(const heddle_pnode *node, const char *name, const char *wanted, heddle_error *err) {
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%s': attribute '%s' of %s must be %s",
                node->name != NULL ? node->name : "", name, node->op, wanted);
}

heddle_status region_attr_int(const heddle_pnode *node, const char *name, int64_t absent, int64_t *out,
                              heddle_error *err) {
  const heddle_pattr *attr = region_attr_find(node, name);
  *out = absent;
  if (attr == NULL) return HEDDLE_OK;
  if (attr->kind != HEDDLE_ATTR_INT || attr->count != 1 || attr->data == NULL) {
    return wrong_kind(node, name, "an integer", err);
  }
  *out = *(const int64_t *)attr->data;
  return HEDDLE_OK;
}

heddle_status region_attr_float(const heddle_pnode *node, const char *name, double absent, double *out,
                                heddle_error *err) {
  const heddle_pattr *attr = region_attr_find(node, name);
  *out = absent;
  if (attr == NULL) return HEDDLE_OK;
  if (attr->count == 1 && attr->data != NULL && attr->kind == HEDDLE_ATTR_FLOAT) {
    *out = *(const double *)attr->data;
  } else if (attr->count == 1 && attr->data != NULL && attr->kind == HEDDLE_ATTR_INT) {
    *out = (double)*(const int64_t *)attr->data;
  } else {
    return wrong_kind(node, name, "a number", err);
  }
  return HEDDLE_OK;
}

heddle_status region_attr_string(const heddle_pnode *node, const char *name, const char *absent, const char **out,
                                 heddle_error *err) {
  const heddle_pattr *attr = region_attr_find(node, name);
  *out = absent;
  if (attr == NULL) return HEDDLE_OK;
  if (attr->kind != HEDDLE_ATTR_STRING || attr->data == NULL) return wrong_kind(node, name, "a string", err);
  *out = attr->data;
  return HEDDLE_OK;
}

heddle_status region_attr_ints(const heddle_pnode *node, const char *name, const int64_t **out, uint64_t *count,
                               heddle_error *err) {
  const heddle_pattr *attr = region_attr_find(node, name);
  bool list = attr != NULL && attr->kind >= HEDDLE_ATTR_INTS && attr->kind <= HEDDLE_ATTR_STRINGS;
  *out = NULL;
  *count = 0;
  if (attr == NULL || (list && attr->count == 0)) return HEDDLE_OK;
  if (attr->kind != HEDDLE_ATTR_INTS || attr->data == NULL) return wrong_kind(node, name, "a list of integers", err);
  *out = attr->data;
  *count = attr->count;
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- types and shapes */

uint64_t region_dtype_bytes(heddle_dtype dtype) {
  if (dtype.bits > 0 && dtype.bits < 8 && dtype.lanes == 1) return 1; /* each element has a byte of its own */
  return dtype.bits % 8 == 0 ? (uint64_t)(dtype.bits / 8) * dtype.lanes : 0;
}

bool region_dtype_equal(heddle_dtype a, heddle_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

bool region_dtype_is(heddle_dtype dtype, uint8_t code, uint8_t bits) {
  return dtype.code == code && dtype.bits == bits && dtype.lanes == 1;
}

const char *region_dtype_name(heddle_dtype dtype, char buf[DTYPE_NAME_BYTES]) {
  static const char *const names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  char code[16];
  if (dtype.code < sizeof names / sizeof names[0]) {
    snprintf(code, sizeof code, "%s", names[dtype.code]);
  } else {
    snprintf(code, sizeof code, "type%u_", (unsigned)dtype.code);
  }
  if (dtype.code == HEDDLE_DTYPE_BOOL && dtype.bits == 8 && dtype.lanes == 1) {
    snprintf(buf, DTYPE_NAME_BYTES, "bool");
  } else if (dtype.lanes == 1) {
    snprintf(buf, DTYPE_NAME_BYTES, "%s%u", code, (unsigned)dtype.bits);
  } else {
    snprintf(buf, DTYPE_NAME_BYTES, "%s%ux%u", code, (unsigned)dtype.bits, (unsigned)dtype.lanes);
  }
  return buf;
}

const char *region_shape_name(const heddle_pvalue *value, char buf[SHAPE_NAME_BYTES]) {
  size_t used = (size_t)snprintf(buf, SHAPE_NAME_BYTES, "[");
  for (int32_t i = 0; i < value->ndim; i++) {
    char dim[32];
    size_t length = (size_t)snprintf(dim, sizeof dim, "%s%" PRId64, i > 0 ? ", " : "", value->shape[i]);
    if (used + length + sizeof ", ...]" > SHAPE_NAME_BYTES) {
      snprintf(buf + used, SHAPE_NAME_BYTES - used, ", ...]");
      return buf;
    }
    memcpy(buf + used, dim, length);
    used += length;
  }
  snprintf(buf + used, SHAPE_NAME_BYTES - used, "]");
  return buf;
}

bool region_value_count(const heddle_pvalue *value, uint64_t *out) {
  uint64_t count = 1;
  bool empty = false;
  for (int32_t i = 0; i < value->ndim; i++) {
    if (value->shape[i] < 0) return false;
    if (value->shape[i] == 0) empty = true;
  }
  for (int32_t i = 0; i < value->ndim && !empty; i++) {
    uint64_t dim = (uint64_t)value->shape[i];
    if (count > (uint64_t)INT64_MAX / dim) return false;
    count *= dim;
  }
  *out = empty ? 0 : count;
  return true;
}

bool region_value_bytes(const heddle_pvalue *value, uint64_t *out) {
  uint64_t count = 0, size = region_dtype_bytes(value->dtype);
  if (size == 0 || !region_value_count(value, &count) || count > (uint64_t)INT64_MAX / size) return false;
  *out = count * size;
  return true;
}

bool region_shape_equal(const heddle_pvalue *a, const heddle_pvalue *b) {
  if (a->ndim != b->ndim) return false;
  for (int32_t i = 0; i < a->ndim; i++) {
    if (a->shape[i] != b->shape[i]) return false;
  }
  return true;
}

/* Dimension i of out's axes as value has it: missing leading dimensions count as 1. */
static int64_t dim_under(const heddle_pvalue *value, const heddle_pvalue *out, int32_t i) {
  int32_t k = i - (out->ndim - value->ndim);
  return k < 0 ? 1 : value->shape[k];
}

bool region_shape_broadcast_strides(const heddle_pvalue *value, const heddle_pvalue *out, int64_t *strides) {
  int64_t stride = 1;
  if (value->ndim > out->ndim) return false;
  for (int32_t i = out->ndim - 1; i >= 0; i--) {
    int64_t dim = dim_under(value, out, i);
    if (dim != out->shape[i] && dim != 1) return false;
    strides[i] = dim == 1 ? 0 : stride;
    if (dim > 0) stride *= dim;
  }
  return true;
}

bool region_shape_is_broadcast_of(const heddle_pvalue *out, const heddle_pvalue *a, const heddle_pvalue *b) {
  if (out->ndim != (a->ndim > b->ndim ? a->ndim : b->ndim)) return false;
  for (int32_t i = 0; i < out->ndim; i++) {
    int64_t da = dim_under(a, out, i), db = dim_under(b, out, i);
    if (da != db && da != 1 && db != 1) return false;
    if (out->shape[i] != (da == 1 ? db : da)) return false;
  }
  return true;
}
