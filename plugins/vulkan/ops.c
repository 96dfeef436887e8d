/* Operators: none yet, so every region is refused in words. */
#include "vulkan.h"

static void launch_free(heddle_plaunch *launch) {
  (void)launch;
}

static void op_free(heddle_pop *op) {
  (void)op;
}

static heddle_status op_query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                              heddle_offer_fn offer, void *sink, heddle_error *err) {
  (void)self, (void)region, (void)offer, (void)sink;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u has no operators", index);
}

static heddle_status op_prepare(heddle_pdevice *dev, const heddle_pregion *region, uint32_t offer, heddle_pop **out,
                                heddle_error *err) {
  (void)region, (void)offer, (void)out;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "vulkan:%u has no operators", dev->index);
}

static heddle_status op_bind(heddle_pop *op, heddle_pstream *stream, const heddle_pbind *operands, heddle_plaunch **out,
                             heddle_error *err) {
  (void)op, (void)stream, (void)operands, (void)out;
  return p_fail(err, HEDDLE_EINVAL, 0, "vulkan: bind of an operator that was never prepared");
}

static heddle_status op_run(heddle_plaunch *launch, heddle_error *err) {
  (void)launch;
  return p_fail(err, HEDDLE_EINVAL, 0, "vulkan: run of a launch that was never bound");
}

void vlk_ops_close(heddle_pdevice *dev) {
  (void)dev;
}

const heddle_op_table vlk_op_table = {
    .struct_size = sizeof vlk_op_table,
    .launch_free = launch_free,
    .op_free = op_free,
    .query = op_query,
    .prepare = op_prepare,
    .bind = op_bind,
    .run = op_run,
};
