/* The case "process/calls": the state of the process and of the calling thread after each call with which an operator is
 * made, run and given back, so that the call that changed it is named. */
#include "conformance/op_any.h"
#include "conformance/process_left.h"
#include "conformance/process_state.h"
#include "conformance/tables.h"

static void compare(kit *k, const process_state *before, const char *call) {
  char what[256] = "", note[512] = "";
  if (process_state_differs(before, k->file, what, sizeof what, note, sizeof note))
    kit_fail(k, "%s changed %s", call, what);
}

enum { BYTES = 4096 };

void process_calls(kit *k) {
  process_state *before = process_state_take();
  if (before == NULL) kit_skip(k, "the kit is out of memory");
  heddle_pstream *s = kit_stream(k, k->dev);
  compare(k, before, "stream.create");
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  compare(k, before, "memory.alloc");
  kit_put_pattern(k, s, x, 0, BYTES, 1);
  compare(k, before, "copy.write");
  op_any *any = op_any_prepare(k);
  compare(k, before, "op.query or op.prepare");
  heddle_plaunch *launch = op_any_bind(k, any, s);
  compare(k, before, "op.bind");
  kit_ok(k, k->t.op.run(launch, &k->err), "op.run");
  compare(k, before, "op.run");
  kit_submit(k, s);
  compare(k, before, "stream.submit");
  op_sync(k, s);
  compare(k, before, "stream.sync");
  kit_holds(k, s, x, 0, BYTES, 1, "bytes that no launch writes");
  compare(k, before, "copy.read");
  k->t.op.launch_free(launch);
  compare(k, before, "op.launch_free");
  op_any_free(k, any);
  compare(k, before, "op.op_free");
  kit_free(k, k->dev, x);
  compare(k, before, "memory.free");
  k->t.stream.close(s);
  compare(k, before, "stream.close");
  process_state_free(before);
}
