/* The cases of the group "memory" that are not in memory.c: memory that two sides share (memory_shared.c),
 * and memory by the vendor's handle (memory_adopt.c). */
#ifndef HEDDLE_CONFORMANCE_MEMORY_H
#define HEDDLE_CONFORMANCE_MEMORY_H

#include "conformance/tables.h"

void kit_memory_pinned(kit *k);
void kit_memory_host_writes(kit *k);
void kit_memory_host_reads(kit *k);
void kit_memory_flush_range(kit *k);
void kit_memory_invalidate_range(kit *k);
void kit_memory_unified(kit *k);
void kit_memory_view(kit *k);
void kit_memory_view_edges(kit *k);
void kit_memory_view_page(kit *k);
void kit_memory_view_many(kit *k);
void kit_memory_view_of_view(kit *k);
void kit_memory_import(kit *k);
void kit_memory_import_guards(kit *k);
void kit_memory_import_freed(kit *k);
void kit_memory_adopt(kit *k);
void kit_memory_adopt_part(kit *k);
void kit_memory_adopt_freed(kit *k);

/* What device.query counts of views. */
void kit_memory_view_counts(kit *k);

#endif
