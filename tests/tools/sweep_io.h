/* tests/tools/sweep_io.h: what the sweeps over failing calls put into a run and take from it. */
#ifndef HEDDLE_TESTS_TOOLS_SWEEP_IO_H
#define HEDDLE_TESTS_TOOLS_SWEEP_IO_H

#include <stdlib.h>
#include <string.h>

#include "heddle/heddle.h"

/* Sets every input that is no parameter to the same numbers in each run. */
static inline heddle_status set_inputs(heddle_executor *ex, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < heddle_executor_input_count(ex) && s == HEDDLE_OK; i++) {
    heddle_io_info info = {.struct_size = sizeof info};
    heddle_tensor *t = NULL;
    s = heddle_executor_input_info(ex, i, &info, err);
    if (s != HEDDLE_OK || info.is_param) continue;
    s = heddle_tensor_create(NULL, info.dtype, info.shape, info.ndim, &t, err);
    if (s != HEDDLE_OK) return s;
    float *data = heddle_tensor_data(t);
    for (uint64_t k = 0; k < heddle_tensor_bytes(t) / sizeof *data; k++) data[k] = (float)(k * 7 % 17) / 16;
    s = heddle_executor_set_input(ex, i, t, err);
    heddle_tensor_release(t);
  }
  return s;
}

/* The bytes of all outputs, one after the other, into *out, which grows and may be NULL. */
static inline heddle_status take_outputs(heddle_executor *ex, unsigned char **out, size_t *n, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  *n = 0;
  for (uint32_t i = 0; i < heddle_executor_output_count(ex) && s == HEDDLE_OK; i++) {
    heddle_tensor *t = NULL;
    s = heddle_executor_view_output(ex, i, &t, err);
    if (s != HEDDLE_OK) break;
    size_t bytes = (size_t)heddle_tensor_bytes(t);
    unsigned char *grown = realloc(*out, *n + bytes + 1);
    if (grown == NULL) exit(1);
    *out = grown;
    memcpy(grown + *n, heddle_tensor_data(t), bytes);
    *n += bytes;
    heddle_tensor_release(t);
  }
  return s;
}

#endif
