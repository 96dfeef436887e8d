/* The table of layouts: size, packing of constants, names. */
#include "ops.h"

static heddle_status measure(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, sim_blocking *b,
                             uint64_t *bytes, heddle_error *err) {
  char shape[SHAPE_NAME_BYTES], dtype[DTYPE_NAME_BYTES];
  heddle_status status = sim_pure_check(self, index, err);
  if (status != HEDDLE_OK) return status;
  if (tensor->layout != 0 && !self->settings.layouts) return sim_switched_off("blocked layouts", "layouts", err);
  if (!sim_layout_known(tensor->layout))
    return p_fail(err, HEDDLE_EINVAL, 0, "sim has no layout with token 0x%llx", (unsigned long long)tensor->layout);
  if (sim_blocking_of(tensor, tensor->layout, b, bytes)) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "layout 0x%llx of sim does not take a tensor of %s%s",
                (unsigned long long)tensor->layout, region_dtype_name(tensor->dtype, dtype),
                region_shape_name(tensor, shape));
}

static heddle_status layout_bytes(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, uint64_t *bytes,
                                  uint64_t *align, heddle_error *err) {
  sim_blocking b;
  uint64_t n;
  heddle_status status = measure(self, index, tensor, &b, &n, err);
  if (status != HEDDLE_OK) return status;
  *bytes = n;
  *align = SIM_ALIGNMENT;
  return HEDDLE_OK;
}

static heddle_status layout_pack(heddle_pinstance *self, uint32_t index, const heddle_pvalue *tensor, void *dst,
                                 uint64_t dst_bytes, heddle_error *err) {
  sim_blocking b;
  uint64_t n, plain;
  heddle_status status = measure(self, index, tensor, &b, &n, err);
  if (status == HEDDLE_OK) status = sim_enter_pure(self, index, SIM_CALL_PACK, err);
  if (status != HEDDLE_OK) return status;
  region_value_bytes(tensor, &plain);
  if (plain != 0 && (tensor->data == NULL || tensor->data_bytes < plain))
    return p_fail(err, HEDDLE_EINVAL, 0, "pack: the tensor has %llu bytes of %llu",
                  (unsigned long long)(tensor->data == NULL ? 0 : tensor->data_bytes), (unsigned long long)plain);
  if (dst_bytes != n)
    return p_fail(err, HEDDLE_EINVAL, 0, "pack: %llu bytes of room for %llu", (unsigned long long)dst_bytes,
                  (unsigned long long)n);
  if (n == 0) return HEDDLE_OK;
  if (b.token == 0) {
    memcpy(dst, tensor->data, n);
    return HEDDLE_OK;
  }
  /* Neither side need be aligned: blobs of parameters are packed where they lie. */
  const heddle_host *host = self->host;
  bool direct = (uintptr_t)tensor->data % 4 == 0 && (uintptr_t)dst % 4 == 0;
  uint8_t *room = direct ? NULL : host->alloc(host->ctx, plain + n, 64);
  if (!direct && room == NULL)
    return p_fail(err, HEDDLE_ENOMEM, 0, "pack: no memory for %llu bytes", (unsigned long long)n);
  if (direct) {
    sim_pack(&b, tensor->data, dst);
  } else {
    memcpy(room + n, tensor->data, plain);
    sim_pack(&b, room + n, room);
    memcpy(dst, room, n);
    host->free(host->ctx, room);
  }
  return HEDDLE_OK;
}

static heddle_status layout_describe(heddle_pinstance *self, uint32_t index, heddle_layout layout, char *buf,
                                     uint64_t bytes, heddle_error *err) {
  heddle_status status = sim_pure_check(self, index, err);
  if (status != HEDDLE_OK) return status;
  if (!sim_layout_known(layout))
    return p_fail(err, HEDDLE_EINVAL, 0, "sim has no layout with token 0x%llx", (unsigned long long)layout);
  if (bytes != 0) snprintf(buf, bytes, "%s", layout == 0 ? "plain" : layout == SIM_NCHW8C ? "nchw8c" : "oihw8o");
  return HEDDLE_OK;
}

const heddle_layout_table sim_layout_table = {
    .struct_size = sizeof(heddle_layout_table),
    .bytes = layout_bytes,
    .pack = layout_pack,
    .describe = layout_describe,
};
