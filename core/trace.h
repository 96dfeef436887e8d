/* core/trace.h: spans of host and devices, collected while a trace is open and written as Chrome trace JSON.
 * A context makes one with itself, hands it out through heddle__context_trace whether it is open or not, and releases
 * it last; so a span that comes late, from a thread of a vendor's, finds it closed and is dropped. */
#ifndef HEDDLE_CORE_TRACE_H
#define HEDDLE_CORE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "heddle/status.h"

typedef struct heddle__trace heddle__trace;

/* Closed and empty. */
heddle_status heddle__trace_create(heddle__trace **out, heddle_error *err);
void heddle__trace_release(heddle__trace *trace); /* takes NULL; no other thread uses it any more */

/* Whether spans are being collected; one atomic load. NULL is not. Any thread. */
bool heddle__trace_on(heddle__trace *trace);

/* Opens, dropping what an earlier one has collected. Any thread. */
void heddle__trace_open(heddle__trace *trace);

/* A stretch of time in a row of a group of rows. Strings are copied, and cut where they are long. */
typedef struct heddle__span {
  const char *group; /* "host", a device or a plugin: a process to trace viewers */
  const char *row;   /* a thread to them */
  const char *name;
  uint64_t t0, t1;   /* nanoseconds of the host's clock */
  const char *route; /* of a copy; lives as long as the library. NULL: no copy */
  uint64_t bytes;    /* of a copy */
} heddle__span;

/* Adds a span. Does nothing while the trace is closed or NULL. When memory is out, and past a million spans, spans are
 * dropped and counted. Any thread. */
void heddle__trace_span(heddle__trace *trace, const heddle__span *span);

/* States the clock of a group: host time = its time + offset_ns, at most error_ns wrong; of several statements the last
 * offset and the largest error are written. own: it has a clock of its own, else the host's times its work. Any thread. */
void heddle__trace_clock(heddle__trace *trace, const char *group, bool own, int64_t offset_ns, uint64_t error_ns);

/* Closes, and writes what was collected to a file. HEDDLE_EINVAL where none is open, HEDDLE_EIO naming the file. */
heddle_status heddle__trace_write(heddle__trace *trace, const char *path, heddle_error *err);

#endif
