/* What the plans of portable texts (portable.cl) share: the node as the general reference kernels read it, and a launch of
 * a kernel. Not for use outside this folder. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_PORTABLE_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PLAN_PORTABLE_H

#include "plan_op.h"

#include "plugins/common/more/more.h"

/* KERNEL_* for items, each an item of a work-group. types: K_ELEMENT_*. limit: the largest index that it
 * computes with, if larger than those of operands and result. turns: see k_step. floats: at the end of the parameters. variant: V0
 * of the text. */
typedef struct k_launch {
  uint8_t kernel, n_types, types[K_TYPES];
  uint64_t items, limit;
  double turns;
  uint32_t floats;
  int32_t variant;
} k_launch;

/* The node by its setup, which checks it: what it refuses is refused here. */
heddle_status k_more_of(k_node *n, more_op *m, heddle_error *err);

/* Operand k, of the first REF_OPERANDS, or in its place a table of count numbers of type, each of them value. */
heddle_status k_or_table(k_node *n, uint32_t k, int type, int64_t count, double value, uint32_t *arg,
                         heddle_error *err);

/* The element type of words, of an operand or result as it is, or of integers of its size without sign. The second fails
 * where the device does not compute in it. */
uint8_t k_word_element(const more_value *v);
heddle_status k_element_of(const k_node *n, uint32_t type, uint8_t *out, heddle_error *err);
uint8_t k_unsigned_element(uint8_t type);

/* The element type of operand k, which is to be one of the entry's types. */
heddle_status k_operand_element(const k_node *n, uint32_t k, uint8_t *out, heddle_error *err);

/* The same of a type, K_ELEMENT_COUNT where there is none or the device does not compute in it. */
uint8_t k_element_or_none(const k_node *n, heddle_dtype d);

/* The largest words of which elements of so many bytes are made up, and how many. */
uint8_t k_words_of(uint64_t bytes, int64_t *words);
/* Adds the launch that converts count elements between two operands or parts of the workspace, of REF_TYPE_* or MORE_TYPE_*:
 * from any type to float32 or float64, and from these to any floating-point type. */
heddle_status k_convert_add(k_node *n, int from, int to, uint64_t count, uint32_t arg, uint32_t result,
                            heddle_error *err);

/* Two floats whose sum a number is, or as near as two can be. */
static inline void k_split_number(double x, float out[2]) {
  out[0] = (float)x;
  out[1] = out[0] - out[0] == 0.0F ? (float)(x - (double)out[0]) : 0.0F; /* of finite ones */
}

/* What kernels see of a type of 8 bits or less: float32, or int8 or uint8 of integers. And the launches that convert from
 * and to one: to what is seen, and from any other type; saturate and rounds as Cast has them. */
int k_narrow_seen(int type);
heddle_status k_narrow_load_add(k_node *n, int type, uint64_t count, uint32_t arg, uint32_t result, heddle_error *err);
heddle_status k_narrow_store_add(k_node *n, int from, int type, bool saturate, int rounds, uint64_t count, uint32_t arg,
                                 uint32_t result, heddle_error *err);

/* Adds a launch with params and operands; args as in k_step. Nothing for no items. */
heddle_status k_launch_add(k_node *n, const k_launch *how, const void *params, uint64_t params_bytes, uint32_t n_args,
                           const uint32_t *args, heddle_error *err);

#endif
