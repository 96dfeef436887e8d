/* executor/explain.h: a finished plan in words, as JSON, and as a picture for Graphviz. What is written depends on the plan
 * alone, so that equal plans give equal bytes. The writing is done by libheddle_explain.so (executor/explain/), of
 * libheddle's version, which is opened by whoever asks; this is also what crosses between the two. */
#ifndef HEDDLE_EXECUTOR_EXPLAIN_H
#define HEDDLE_EXECUTOR_EXPLAIN_H

#include "executor/plan.h"
#include "heddle/model.h"

/* Writes a plan that all passes have filled. *out is text, freed with heddle_free. HEDDLE_ENOMEM; HEDDLE_EINVAL for a
 * format that is none; HEDDLE_EUNSUPPORTED without the library. Reads the plan only: any thread. */
heddle_status heddle__explain(const heddle__plan *plan, heddle_explain_format format, char **out, heddle_error *err);

/* Words for numbers, the same wherever a plan or a run is told of. */
static inline const char *heddle__explain_route(heddle__route route) {
  switch (route) {
  case HEDDLE__ROUTE_SAME: return "same";
  case HEDDLE__ROUTE_DIRECT: return "direct";
  case HEDDLE__ROUTE_SHARED: return "shared";
  case HEDDLE__ROUTE_PEER: return "peer";
  case HEDDLE__ROUTE_STAGED: return "staged";
  case HEDDLE__ROUTE_STAGED2: return "staged twice";
  }
  return "?";
}

static inline const char *heddle__explain_stream(uint32_t kind) { /* HEDDLE_STREAM_* */
  return kind == HEDDLE_STREAM_COPY ? "copy" : "compute";
}

/* What the library uses of libheddle's. */
typedef struct heddle__explain_host {
  void *(*alloc)(size_t count, size_t size);
  void *(*grow)(void *old, size_t old_count, size_t new_count, size_t size);
  void (*free)(void *p);
  void (*dtype_text)(heddle_dtype dtype, char out[32]);
  uint64_t (*plan_bytes)(const heddle__plan *plan, uint32_t device, uint32_t kind); /* budget.h */
} heddle__explain_host;

/* libheddle looks up heddle_explain_entry (core/beside.h), which takes nothing. */
typedef struct heddle__explain_table {
  const char *version; /* heddle_version() of the library */
  heddle_status (*explain)(const heddle__explain_host *host, const heddle__plan *plan, heddle_explain_format format,
                           char **out, heddle_error *err);
} heddle__explain_table;

#endif
