/* Cases of the group "streams" for streams of kind COPY: a kind is a hint, so that what holds for a stream of kind COMPUTE
 * holds for each. They are the cases of copies, streams, events and fences again, with every other stream of kind COPY. */
#include "conformance/streams.h"

#include "conformance/fences.h"
#include "conformance/kit_side.h"
#include "conformance/op_any.h"

#define OF_COPY(name, run) \
  void kit_streams_of_copy_##name(kit *k) { \
    k->side->kinds = KIT_KINDS_COPY; \
    run(k); \
  }
/* Two streams, of which the first is of kind COPY, and then the second. */
#define WITH_COPY(name, run) \
  void kit_streams_of_copy_##name(kit *k) { \
    k->side->kinds = KIT_KINDS_COPY_FIRST; \
    run(k); \
    k->side->kinds = KIT_KINDS_COPY_SECOND; \
    run(k); \
  }

OF_COPY(order, kit_streams_order)
OF_COPY(sync, kit_streams_sync_done)
OF_COPY(query, kit_streams_query)
OF_COPY(closed, kit_streams_close_busy)
OF_COPY(h2d, kit_copy_h2d)
OF_COPY(d2h, kit_copy_d2h)
OF_COPY(behind, kit_copy_order)
WITH_COPY(write_read, kit_events_writes_first)
WITH_COPY(read_write, kit_events_reads_first)
OF_COPY(signal, kit_fences_after_work)
OF_COPY(failed_signal, kit_fences_failed_signal)
OF_COPY(failed_once, kit_fences_failed_once)

void kit_streams_of_copy_wait(kit *k) {
  k->side->kinds = KIT_KINDS_COPY;
  heddle_pstream *s = kit_stream(k, k->dev), *other = kit_stream(k, k->dev);
  heddle_pbuffer *x = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  heddle_pbuffer *y = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, 4096);
  kit_fill(k, other, x, 0, 4096, 1);
  kit_sync(k, other);
  heddle_pfence fence = kit_hold(k, s);
  kit_d2d(k, s, y, 0, x, 0, 4096);
  kit_submit(k, s);
  kit_fails(k, k->t.stream.query(s, &k->err), HEDDLE_EBUSY, HEDDLE_EBUSY, "stream.query of a COPY stream that waits");
  kit_fill(k, other, x, 0, 4096, 2);
  kit_sync(k, other);
  kit_release(k, fence);
  kit_sync(k, s);
  kit_words(k, s, y, 0, 4096, 2, "what a COPY stream copied behind a wait for a fence");
  kit_fence_free(k, fence);
  kit_free(k, k->dev, x);
  kit_free(k, k->dev, y);
  k->t.stream.close(s);
  k->t.stream.close(other);
}

/* A launch may be bound to it. */
void kit_streams_of_copy_run(kit *k) {
  k->side->kinds = KIT_KINDS_COPY;
  heddle_pstream *s = kit_stream(k, k->dev);
  op_any *any = op_any_prepare(k);
  op_want want[OP_OUT];
  if (!op_reference(k, &any->c, want)) kit_skip(k, "the kit has no reference of the operator");
  op_launch(k, k->dev, s, &any->ready, want, OP_TWICE, -1);
  op_want_free(want);
  op_any_free(k, any);
  k->t.stream.close(s);
}
