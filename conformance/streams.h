/* Cases of the group "streams" that have a file of their own: streams of others (streams_adopt.c). */
#ifndef HEDDLE_CONFORMANCE_STREAMS_H
#define HEDDLE_CONFORMANCE_STREAMS_H

#include "conformance/tables.h"

void kit_streams_adopt_after(kit *k);
void kit_streams_adopt_before(kit *k);
void kit_streams_adopt_sync(kit *k);
void kit_streams_adopt_close(kit *k);
void kit_streams_adopt_other(kit *k);

#endif
