/* Operators that make a tensor of nothing but what is known when they are prepared: Shape, Constant, ConstantOfShape,
 * Range. The tail holds what they write: all of it, or one element and a step. A unit is an element. */
#include "ref_op.h"
#include "types.h"

/* The tail of ConstantOfShape and Range: element i is first + i * step, in the one that the type needs. */
typedef struct series {
  double real[2];
  int64_t whole[2];
  int32_t type, reserved;
} series;

static void copy_tail(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                      uint64_t last) {
  (void)inputs, (void)workspace;
  if (first < last) {
    memcpy((char *)outputs[0] + first * op->u.bytes, (const char *)ref_tail(op) + first * op->u.bytes,
           (last - first) * op->u.bytes);
  }
}

static void write_series(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                         uint64_t last) {
  const series *f = ref_tail(op);
  (void)inputs, (void)workspace;
  for (uint64_t i = first; i < last; i++) {
    char *out = (char *)outputs[0] + i * op->u.bytes;
    if (f->type <= REF_TYPE_F64) {
      const double x = f->real[0] + (double)i * f->real[1];
      ref_cast(REF_TYPE_F64, &x, f->type, out, 1);
    } else {
      const int64_t x = (int64_t)((uint64_t)f->whole[0] + i * (uint64_t)f->whole[1]);
      ref_cast(REF_TYPE_I64, &x, f->type, out, 1);
    }
  }
}

static void shape_range(const ref_node *n, int64_t *first, int64_t *last) {
  const int64_t rank = n->in[0]->ndim;
  *first = 0;
  *last = rank;
  region_attr_int(n->node, "start", 0, first, NULL);
  region_attr_int(n->node, "end", rank, last, NULL);
  for (int i = 0; i < 2; i++) {
    int64_t *x = i == 0 ? first : last;
    if (*x < 0) *x = *x < -rank ? 0 : *x + rank;
    if (*x > rank) *x = rank;
  }
  if (*last < *first) *last = *first;
}

heddle_status ref_plan_fill(const ref_node *n, ref_op *op, heddle_error *err) {
  const char *name = n->node->op;
  const int type = ref_type_of(n->out->dtype);
  uint64_t count = 0;
  region_value_count(n->out, &count);
  op->u.bytes = region_dtype_bytes(n->out->dtype);
  op->tail_bytes = sizeof(series);
  ref_kernel kernel = write_series;
  if (type == REF_TYPE_NONE) return ref_refuse(n, err, "it does not make this type");
  if (strcmp(name, "Shape") == 0) {
    int64_t first, last;
    shape_range(n, &first, &last);
    if (type != REF_TYPE_I64 || n->out->ndim != 1 || (int64_t)count != last - first) return ref_refuse_shape(n, err);
    kernel = copy_tail;
    op->tail_bytes = count * sizeof(int64_t);
  } else if (strcmp(name, "Constant") == 0) {
    const heddle_pattr *attr = n->node->attrs.count == 1 ? n->node->attrs.data : NULL;
    const bool real = type == REF_TYPE_F32;
    if (attr == NULL || (!real && type != REF_TYPE_I64) || attr->count != count || attr->data == NULL ||
        (attr->kind != (real ? HEDDLE_ATTR_FLOAT : HEDDLE_ATTR_INT) &&
         attr->kind != (real ? HEDDLE_ATTR_FLOATS : HEDDLE_ATTR_INTS))) {
      return ref_refuse(n, err, "it has no value, or more than one");
    }
    kernel = copy_tail;
    op->tail_bytes = count * op->u.bytes;
  } else if (strcmp(name, "ConstantOfShape") == 0) {
    double real;
    int64_t whole;
    heddle_status s = region_attr_float(n->node, "value_float", 0, &real, err);
    if (s == HEDDLE_OK) s = region_attr_int(n->node, "value_int", 0, &whole, err);
    if (s != HEDDLE_OK) return s;
    op->absorbed = 1;
  } else { /* Range */
    for (uint32_t k = 0; k < 3; k++) {
      uint64_t one = 0;
      if (!region_value_count(n->in[k], &one) || one != 1 || !region_dtype_equal(n->in[k]->dtype, n->out->dtype)) {
        return ref_refuse(n, err, "operand %u must be one number of the result's type", k);
      }
      if (n->in[k]->data == NULL) return ref_refuse(n, err, "operand %u is not known before the run", k);
    }
    op->absorbed = 7;
  }
  op->absorbed |= strcmp(name, "Shape") == 0 ? 1 : 0;
  ref_set_work(op, kernel, count, 4.0 * (double)count, (double)(count * op->u.bytes));
  return HEDDLE_OK;
}

void ref_fill_fill(const ref_node *n, ref_op *op) {
  const char *name = n->node->op;
  void *tail = ref_tail(op);
  const int type = ref_type_of(n->out->dtype);
  if (strcmp(name, "Shape") == 0) {
    int64_t first, last;
    shape_range(n, &first, &last);
    for (int64_t i = first; i < last; i++) ((int64_t *)tail)[i - first] = n->in[0]->shape[i];
    return;
  }
  if (strcmp(name, "Constant") == 0) {
    const heddle_pattr *attr = n->node->attrs.data;
    ref_cast(type == REF_TYPE_F32 ? REF_TYPE_F64 : REF_TYPE_I64, attr->data, type, tail, (int64_t)attr->count);
    return;
  }
  series *f = tail;
  memset(f, 0, sizeof *f);
  f->type = type;
  if (strcmp(name, "ConstantOfShape") == 0) {
    const bool whole = region_attr_find(n->node, "value_int") != NULL;
    region_attr_float(n->node, "value_float", 0, &f->real[0], NULL);
    region_attr_int(n->node, "value_int", 0, &f->whole[0], NULL);
    if (whole) f->real[0] = (double)f->whole[0];
    else ref_cast(REF_TYPE_F64, &f->real[0], REF_TYPE_I64, &f->whole[0], 1);
    return;
  }
  for (int i = 0; i < 2; i++) { /* start and step, which may lie at any address */
    uint64_t number = 0;
    memcpy(&number, n->in[2 * i]->data, ref_type_bytes(type));
    ref_cast(type, &number, REF_TYPE_F64, &f->real[i], 1);
    ref_cast(type, &number, REF_TYPE_I64, &f->whole[i], 1);
  }
}
