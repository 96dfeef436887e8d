/* Reading a heddle_pregion: nodes and values by index, attributes with their defaults, sizes, broadcasting. Every
 * function is pure, allocates nothing and may be called from any thread; what comes back points into the region. */
#ifndef HEDDLE_PLUGINS_COMMON_REGION_H
#define HEDDLE_PLUGINS_COMMON_REGION_H

#include "heddle/plugin.h"

#include <stdbool.h>

/* Elements of the region's arrays, with the stride that its maker has; NULL where index is out of range. */
const heddle_pnode *region_node(const heddle_pregion *region, uint64_t index);
const heddle_pvalue *region_value(const heddle_pregion *region, int64_t index);

/* The opset to read a node by. A node of a newer opset than last, the newest that the caller knows, is read as one of last
 * where the definition of its operator is no newer (since_version). */
static inline uint32_t region_opset(const heddle_pnode *node, uint32_t last) {
#if HEDDLE_ABI_MINOR >= 2
  if (node->opset > last && HEDDLE_HAS(heddle_pnode, node, since_version) && node->since_version != 0 &&
      node->since_version <= last)
    return last;
#else
  (void)last;
#endif
  return node->opset;
}

/* The value of a node's k-th operand or result; NULL where there is none (-1, or fewer operands). */
const heddle_pvalue *region_node_input(const heddle_pregion *region, const heddle_pnode *node, uint32_t k);
const heddle_pvalue *region_node_output(const heddle_pregion *region, const heddle_pnode *node, uint32_t k);

/* Which region input (or output) a value is; -1 where it is none. */
int64_t region_input_slot(const heddle_pregion *region, int64_t value);
int64_t region_output_slot(const heddle_pregion *region, int64_t value);

/* An attribute by name, NULL where the graph does not give it. */
const heddle_pattr *region_attr_find(const heddle_pnode *node, const char *name);

/* An attribute's value, or absent where the graph does not give it; HEDDLE_EUNSUPPORTED with words where it is of
 * another kind. region_attr_float takes an integer too; region_attr_ints takes an empty list of any kind, and gives NULL and 0 where
 * the attribute is absent. */
heddle_status region_attr_int(const heddle_pnode *node, const char *name, int64_t absent, int64_t *out,
                              heddle_error *err);
heddle_status region_attr_float(const heddle_pnode *node, const char *name, double absent, double *out,
                                heddle_error *err);
heddle_status region_attr_string(const heddle_pnode *node, const char *name, const char *absent, const char **out,
                                 heddle_error *err);
heddle_status region_attr_ints(const heddle_pnode *node, const char *name, const int64_t **out, uint64_t *count,
                               heddle_error *err);

/* Bytes of one element, 0 for types that do not fill whole bytes. */
uint64_t region_dtype_bytes(heddle_dtype dtype);
bool region_dtype_equal(heddle_dtype a, heddle_dtype b);
bool region_dtype_is(heddle_dtype dtype, uint8_t code, uint8_t bits); /* and one lane */

/* "float32" into buf; returns buf. */
#define DTYPE_NAME_BYTES 32
const char *region_dtype_name(heddle_dtype dtype, char buf[DTYPE_NAME_BYTES]);

/* "[2, 3]" into buf, cut with "..." where it does not fit; returns buf. */
#define SHAPE_NAME_BYTES 128
const char *region_shape_name(const heddle_pvalue *value, char buf[SHAPE_NAME_BYTES]);

/* Number of elements, and of bytes; false where they do not fit int64_t or a dimension is negative. */
bool region_value_count(const heddle_pvalue *value, uint64_t *out);
bool region_value_bytes(const heddle_pvalue *value, uint64_t *out);

bool region_shape_equal(const heddle_pvalue *a, const heddle_pvalue *b);

/* Element strides with which a row-major value is read when it is broadcast to out: 0 along a dimension that is
 * repeated. strides has out->ndim members. False where it does not broadcast to that shape. */
bool region_shape_broadcast_strides(const heddle_pvalue *value, const heddle_pvalue *out, int64_t *strides);

/* True when out is the shape that a and b broadcast to. */
bool region_shape_is_broadcast_of(const heddle_pvalue *out, const heddle_pvalue *a, const heddle_pvalue *b);

#endif
