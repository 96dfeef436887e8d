/* The way from ref/ to libheddle_ref_more.so, which lies beside a plugin and has the operators that ref/'s own table does
 * not have. Both sides are of one build; the size and the number below are compared, and there is no other protection. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_MORE_H
#define HEDDLE_PLUGINS_COMMON_REF_MORE_H

#include "plugins/common/ref/ref_op.h"

enum { REF_MORE_REVISION = 1 };

typedef struct ref_more {
  uint32_t revision, op_size; /* REF_MORE_REVISION, sizeof(ref_op) */
  /* As ref_plan_region, for regions of one node. Leaves err alone where it does not know the operator. */
  heddle_status (*plan)(const heddle_pregion *region, ref_node *n, ref_op *op, const ref_entry **out_entry,
                        heddle_error *err);
  bool (*has)(uint32_t i); /* whether it has kernels for heddle__operators[i] */
} ref_more;

/* The library's table, opened if it has not been; NULL where it is not there or is of another build. Any thread. */
const ref_more *ref_more_find(void);

#endif
