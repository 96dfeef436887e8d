/* What ops.c and launch.c share: an operator made ready, and the calls that bind it to a stream and run it. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_OPS_H
#define HEDDLE_PLUGINS_COMMON_GPU_OPS_H

#include "plugins/common/gpu/gpu.h"
#include "plugins/common/gpu/library.h"
#include "plugins/common/kernels/op.h"

/* Immutable. */
struct heddle_pop {
  heddle_pdevice *dev;
  k_op k;
  void **functions;              /* one per step; NULL for copies and what a library does; of the device's programs */
  gpu_library_step **by_library; /* one per step; NULL: not the library's */
  gpu_address table;             /* 0: the plan has none */
  uint64_t workspace_bytes;      /* that bind must be given: the plan's, and what a library wants */
};

/* The device as plugins/common/kernels/op.h wants it. */
k_site gpu_site(const heddle_pinstance *self, const gpu_info *info);

/* Members of gpu_op_table. launch.c. */
void gpu_launch_free(heddle_plaunch *launch);
heddle_status gpu_op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *slices, heddle_plaunch **out,
                          heddle_error *err);
heddle_status gpu_op_resize(heddle_plaunch *launch, const heddle_pregion *region, const heddle_pbind *slices,
                            heddle_error *err);
heddle_status gpu_op_run(heddle_plaunch *launch, heddle_error *err);

#endif
