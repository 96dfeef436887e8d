/* The case streams/order-runs: launches are work of their stream, behind what was put into it before them and ahead of what
 * comes after, with no sync between. */
#include "conformance/relu.h"
#include "conformance/streams.h"

enum { RUNS = 12 };

void kit_streams_order_runs(kit *k) {
  heddle_pbuffer *from[RUNS], *to[RUNS];
  heddle_pstream *s = kit_stream(k, k->dev);
  kit_relu relu = kit_relu_new(k, k->dev, k->index);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  heddle_pbuffer *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  heddle_plaunch *launch = kit_relu_bind(k, &relu, s, x, y);
  for (uint32_t i = 0; i < RUNS; i++) {
    from[i] = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
    to[i] = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
    kit_relu_put(k, s, from[i], i + 1);
  }
  kit_relu_put(k, s, x, 99);
  kit_busy *work = kit_busy_put(k, k->dev, s); /* so that what follows is pending for a while */
  for (uint32_t i = 0; i < RUNS; i++) {
    kit_d2d(k, s, x, 0, from[i], 0, KIT_RELU_BYTES);
    kit_relu_run(k, launch);
    kit_fill(k, s, x, 0, KIT_RELU_BYTES, UINT32_C(0x42280000)); /* 42, which is too late for the launch */
    kit_d2d(k, s, to[i], 0, y, 0, KIT_RELU_BYTES);
    if (i % 5 == 4) kit_submit(k, s);
  }
  kit_sync(k, s);
  for (uint32_t i = 0; i < RUNS; i++) {
    kit_relu_check(k, s, to[i], i + 1, "a launch between two copies of a stream, without a sync");
    kit_free(k, k->dev, from[i]);
    kit_free(k, k->dev, to[i]);
  }
  kit_busy_free(k, work);
  k->t.op.launch_free(launch);
  kit_relu_free(k, &relu);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(s);
}
