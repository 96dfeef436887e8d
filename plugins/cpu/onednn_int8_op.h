/* A prepared quantised region, as the file that prepares it (onednn_int8.c) and the one that runs it (onednn_int8_run.c)
 * see it. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_INT8_OP_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_INT8_OP_H

#include "onednn_int8.h"

typedef enum int8_what { INT8_PRODUCT, INT8_SUM, INT8_POOL, INT8_TABLE } int8_what;

/* A region as it was read. */
typedef struct reading {
  int8_what what;
  union {
    int8_product product;
    int8_sum sum;
    int8_pool pool;
    int8_table table;
  } u;
} reading;

typedef struct onednn_int8 {
  onednn_special special;
  const onednn *self;
  const int8_lanes *lanes;
  reading read;   /* without what points into the region */
  int8_plan plan; /* of a product; its primitive descriptors are the op's */
  int8_weights weights;
  dnnl_primitive_t primitives[INT8_KINDS];
  dnnl_memory_t packed[INT8_GROUPS * INT8_PIECES];
  void *packed_bytes[INT8_GROUPS * INT8_PIECES];
  uint32_t tasks, slots[2], zero_slot, times_slot, plus_slot; /* UINT32_MAX: none */
  bool x_signed, y_signed;
  int64_t count, channels, images; /* of a sum and a table: elements; of a pool */
  int8_mix mix;
  uint8_t table[256];
} onednn_int8;

/* onednn_int8_run.c: onednn_special.bind of one. */
heddle_status onednn_int8_bind(onednn_special *op, void *const *inputs, void *const *outputs, void *workspace,
                               onednn_special_launch **out, heddle_error *err);

#endif
