/* graph/optimize/optimize.h: the room that rewrites graphs of operators before they are placed, as executor/optimize.c calls it. */
#ifndef HEDDLE_GRAPH_OPTIMIZE_OPTIMIZE_H
#define HEDDLE_GRAPH_OPTIMIZE_OPTIMIZE_H

#include "graph/opschema.h"
#include "heddle/executor.h"

/* "conv*=sim:0": nodes whose name matches the pattern (fnmatch) go there; a later rule is stronger. */
typedef struct heddle__rule {
  const char *pattern;
  const char *text; /* the whole rule, for causes */
  uint32_t device;  /* index into the devices in use */
} heddle__rule;

/* The rewritten graph. Its args are those of the given graph, in the same order, and after them those that were made.
 * It borrows from the given graph, to which it holds a reference. Immutable. */
typedef struct heddle__optimized {
  heddle_graph *graph;
  const heddle__constant *made; /* the bytes of the args that were made */
  const bool *read;             /* per arg of the given graph: a constant whose bytes the rewriting is built on */
  const heddle__entry *keep;    /* where the kept values are now */
  json_t *changes;              /* for a plan: a list of objects, what was done to which nodes */
  const char *text;             /* the same for people, a section of a plan */
  uint32_t n_made;
} heddle__optimized;

typedef struct heddle__optimize_ask {
  heddle_context *ctx;
  const heddle_graph *graph;
  const heddle__constant *const *constants; /* per arg: its bytes, or NULL */
  const heddle__entry *keep;                /* values that stay readable */
  const heddle__rule *rules;                /* nodes that they send to different places are not joined */
  uint32_t n_keep;
  uint32_t n_rules;
  const char *wish; /* "on", or names with ',' between; "-NAME" leaves one out; borrowed for the call */
} heddle__optimize_ask;

/* *out is NULL where nothing was changed. HEDDLE_EINVAL, with the names there are, for a wish with a name that is none.
 * May block: constants are computed on the device cpu. */
heddle_status heddle__optimize_graph(const heddle__optimize_ask *ask, heddle__optimized **out, heddle_error *err);
void heddle__optimized_free(heddle__optimized *o); /* takes NULL */

#endif
