/* The blocked layouts as arithmetic: which tensors they take, how large they are, and moving elements in and out. */
#include "ops.h"

#define BLOCK 8u

bool sim_layout_known(heddle_layout token) {
  return token == 0 || token == SIM_NCHW8C || token == SIM_OIHW8O;
}

bool sim_layout_takes(const heddle_pvalue *value) {
  return value != NULL && value->ndim == 4 && region_dtype_is(value->dtype, HEDDLE_DTYPE_FLOAT, 32);
}

bool sim_blocking_of(const heddle_pvalue *value, heddle_layout token, sim_blocking *out, uint64_t *bytes) {
  memset(out, 0, sizeof *out);
  if (!sim_layout_known(token) || !region_value_bytes(value, bytes)) return false;
  if (token == 0) return true;
  if (!sim_layout_takes(value) || *bytes > UINT64_MAX / (2 * BLOCK)) return false;
  uint64_t d[4];
  for (int i = 0; i < 4; i++) d[i] = (uint64_t)value->shape[i];
  out->token = token;
  out->outer = token == SIM_NCHW8C ? d[0] : 1;
  out->channels = token == SIM_NCHW8C ? d[1] : d[0];
  if (*bytes == 0) { /* other dimensions may be anything: no elements, no blocks */
    out->channels = 0;
    return true;
  }
  out->inner = token == SIM_NCHW8C ? d[2] * d[3] : d[1] * d[2] * d[3];
  *bytes = out->outer * ((out->channels + BLOCK - 1) / BLOCK) * out->inner * BLOCK * sizeof(float);
  return true;
}

/* Elements are moved as numbers of four bytes, so that no NaN changes on the way. */
void sim_pack(const sim_blocking *b, const void *plain, void *packed) {
  const uint32_t *from = plain;
  uint32_t *to = packed;
  uint64_t blocks = (b->channels + BLOCK - 1) / BLOCK;
  for (uint64_t n = 0; n < b->outer && b->channels != 0; n++)
    for (uint64_t k = 0; k < blocks; k++)
      for (uint64_t i = 0; i < b->inner; i++)
        for (uint64_t c = k * BLOCK; c < (k + 1) * BLOCK; c++)
          *to++ = c < b->channels ? from[(n * b->channels + c) * b->inner + i] : 0;
}

void sim_unpack(const sim_blocking *b, const void *packed, void *plain) {
  const uint32_t *from = packed;
  uint32_t *to = plain;
  uint64_t blocks = (b->channels + BLOCK - 1) / BLOCK;
  for (uint64_t n = 0; n < b->outer; n++)
    for (uint64_t c = 0; c < b->channels; c++)
      for (uint64_t i = 0; i < b->inner; i++)
        *to++ = from[((n * blocks + c / BLOCK) * b->inner + i) * BLOCK + c % BLOCK];
}
