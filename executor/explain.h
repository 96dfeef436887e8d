/* executor/explain.h: a finished plan as text, as JSON, and as a picture for Graphviz. What is written depends on the
 * plan alone, so that equal plans give equal bytes. The writing is done in executor/explain/. */
#ifndef HEDDLE_EXECUTOR_EXPLAIN_H
#define HEDDLE_EXECUTOR_EXPLAIN_H

#include "executor/plan.h"
#include "heddle/model.h"

/* Writes a plan that all passes have filled. *out is text, freed with heddle_free. HEDDLE_ENOMEM; HEDDLE_EINVAL for a
 * format that is none; HEDDLE_EUNSUPPORTED in a build without it. Reads the plan only: any thread. */
heddle_status heddle__explain(const heddle__plan *plan, heddle_explain_format format, char **out, heddle_error *err);

/* Names of numbers, the same in every report of a plan or a run. */
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

#endif
