/* The case "process/calls": the state of the process and of the calling thread after each call with which an operator is
 * made, run and given back, so that the call that changed it is named. */
#include "conformance/process_left.h"
#include "conformance/process_state.h"
#include "conformance/relu.h"

static void compare(kit *k, const process_state *before, const char *call) {
  char what[256] = "", note[512] = "";
  if (process_state_differs(before, k->file, what, sizeof what, note, sizeof note))
    kit_fail(k, "%s changed %s", call, what);
}

void process_calls(kit *k) {
  process_state *before = process_state_take();
  if (before == NULL) kit_skip(k, "the kit is out of memory");
  heddle_pstream *s = kit_stream(k, k->dev);
  compare(k, before, "stream.create");
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  heddle_pbuffer *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, KIT_RELU_BYTES);
  compare(k, before, "memory.alloc");
  kit_relu_put(k, s, x, 1);
  compare(k, before, "copy.write");
  kit_relu relu = kit_relu_new(k, k->dev, k->index);
  compare(k, before, "op.query or op.prepare");
  heddle_plaunch *launch = kit_relu_bind(k, &relu, s, x, y);
  compare(k, before, "op.bind");
  kit_relu_run(k, launch);
  compare(k, before, "op.run");
  kit_submit(k, s);
  compare(k, before, "stream.submit");
  kit_sync(k, s);
  compare(k, before, "stream.sync");
  kit_relu_check(k, s, y, 1, "the result");
  compare(k, before, "copy.read");
  k->t.op.launch_free(launch);
  compare(k, before, "op.launch_free");
  kit_relu_free(k, &relu);
  compare(k, before, "op.op_free");
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  compare(k, before, "memory.free");
  k->t.stream.close(s);
  compare(k, before, "stream.close");
  process_state_free(before);
}
