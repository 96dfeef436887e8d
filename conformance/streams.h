/* Cases of the group "streams" that have a file of their own: streams of others (streams_adopt.c), streams of kind COPY, and
 * full queues. */
#ifndef HEDDLE_CONFORMANCE_STREAMS_H
#define HEDDLE_CONFORMANCE_STREAMS_H

#include "conformance/tables.h"

void kit_streams_adopt_after(kit *k);
void kit_streams_adopt_before(kit *k);
void kit_streams_adopt_sync(kit *k);
void kit_streams_adopt_close(kit *k);
void kit_streams_adopt_other(kit *k);

void kit_streams_full(kit *k);

/* Of streams of kind COPY (streams_copy.c), and the cases that they are. */
void kit_streams_of_copy_order(kit *k);
void kit_streams_of_copy_sync(kit *k);
void kit_streams_of_copy_query(kit *k);
void kit_streams_of_copy_closed(kit *k);
void kit_streams_of_copy_h2d(kit *k);
void kit_streams_of_copy_d2h(kit *k);
void kit_streams_of_copy_behind(kit *k);
void kit_streams_of_copy_write_read(kit *k);
void kit_streams_of_copy_read_write(kit *k);
void kit_streams_of_copy_signal(kit *k);
void kit_streams_of_copy_wait(kit *k);
void kit_streams_of_copy_failed_signal(kit *k);
void kit_streams_of_copy_failed_once(kit *k);
void kit_streams_of_copy_run(kit *k);
void kit_streams_order_runs(kit *k); /* streams_runs.c */
void kit_streams_order(kit *k);
void kit_streams_sync_done(kit *k);
void kit_streams_query(kit *k);
void kit_streams_close_busy(kit *k);
void kit_copy_h2d(kit *k);
void kit_copy_d2h(kit *k);
void kit_copy_order(kit *k);
void kit_events_writes_first(kit *k);
void kit_events_reads_first(kit *k);
void kit_fences_after_work(kit *k);

#endif
