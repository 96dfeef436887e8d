/* One prepared operator for the cases that need launches and not operators: ONNX's Relu over a row of float32. */
#ifndef HEDDLE_CONFORMANCE_RELU_H
#define HEDDLE_CONFORMANCE_RELU_H

#include "conformance/tables.h"

#define KIT_RELU_BYTES UINT64_C(4000) /* of x and of y */

typedef struct kit_relu {
  heddle_pdevice *dev;
  heddle_pop *op;
  uint32_t offer;
  heddle_pslice workspace; /* made for one launch at a time */
} kit_relu;

/* Prepares it on an open device with the given number; skips the case where the plugin does not take it. */
kit_relu kit_relu_new(kit *k, heddle_pdevice *dev, uint32_t index);
void kit_relu_free(kit *k, kit_relu *relu);
/* Prepares one more as the first was, and binds one, for cases of which either may fail. */
heddle_status kit_relu_prepare(kit *k, heddle_pdevice *dev, const kit_relu *like, heddle_pop **out, heddle_error *err);
heddle_status kit_relu_try_bind(kit *k, const kit_relu *relu, heddle_pstream *s, heddle_pbuffer *x, heddle_pbuffer *y,
                                heddle_plaunch **out, heddle_error *err);

/* y = max(x, 0), bound to a stream; both buffers have KIT_RELU_BYTES. Freed with op.launch_free. */
heddle_plaunch *kit_relu_bind(kit *k, const kit_relu *relu, heddle_pstream *s, heddle_pbuffer *x, heddle_pbuffer *y);
void kit_relu_run(kit *k, heddle_plaunch *launch);

/* x for a seed, as bytes and as what a device buffer then holds; and whether y is what comes of it. */
void kit_relu_put(kit *k, heddle_pstream *s, heddle_pbuffer *x, uint32_t seed);
void kit_relu_check(kit *k, heddle_pstream *s, heddle_pbuffer *y, uint32_t seed, const char *what);
float kit_relu_x(uint32_t seed, uint32_t i);

#endif
