/* optimize/optimize.h: what crosses between libheddle and libheddle_optimize.so, which rewrites graphs of operators before
 * they are placed. Both are of one version, so the structs here may change; the library keeps no state. */
#ifndef HEDDLE_OPTIMIZE_OPTIMIZE_H
#define HEDDLE_OPTIMIZE_OPTIMIZE_H

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

/* What the library uses of libheddle's. */
typedef struct heddle__optimize_host {
  void *(*alloc)(size_t count, size_t size);
  void *(*alloc_aligned)(size_t bytes, size_t align);
  void (*free)(void *p);
  heddle_graph *(*graph_new)(const char *source, heddle_error *err);
  heddle_status (*graph_index)(heddle_graph *g, heddle_error *err);
  heddle_graph *(*graph_retain)(heddle_graph *g);
  void (*graph_release)(heddle_graph *g);
  const heddle__schema *(*schema)(const char *domain, const char *op, uint32_t opset);
  heddle_status (*bytes)(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, uint64_t *out, heddle_error *err);
  void (*log)(heddle_context *ctx, int32_t level, const char *text);
  heddle_status (*number)(heddle_context *ctx, const char *key, int64_t fallback, int64_t min, int64_t max,
                          int64_t *out, heddle_error *err);
  heddle_status (*model_create)(heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                                const heddle_model_options *options, heddle_model **out, heddle_error *err);
  void (*model_release)(heddle_model *m);
  heddle_status (*executor_create)(heddle_model *m, heddle_executor **out, heddle_error *err);
  void (*executor_release)(heddle_executor *ex);
  heddle_status (*run)(heddle_executor *ex, uint64_t timeout_ns, heddle_error *err);
  heddle_status (*view_output)(heddle_executor *ex, uint32_t i, heddle_tensor **out, heddle_error *err);
  void *(*tensor_data)(const heddle_tensor *t);
  uint64_t (*tensor_bytes)(const heddle_tensor *t);
  void (*tensor_release)(heddle_tensor *t);
} heddle__optimize_host;

typedef struct heddle__optimize_ask {
  const heddle__optimize_host *host;
  heddle_context *ctx;
  const heddle_graph *graph;
  const heddle__constant *const *constants; /* per arg: its bytes, or NULL */
  const heddle__entry *keep;                /* values that stay readable */
  const heddle__rule *rules;                /* nodes that they send to different places are not joined */
  uint32_t n_keep;
  uint32_t n_rules;
  const char *wish; /* "on", or names with ',' between; "-NAME" leaves one out; borrowed for the call */
} heddle__optimize_ask;

typedef struct heddle__optimize_table {
  const char *version; /* heddle_version() of the library */

  /* *out is NULL where nothing was changed. HEDDLE_EINVAL, with the names there are, for a wish with a name that is none.
   * May block: constants are computed on the device cpu. */
  heddle_status (*run)(const heddle__optimize_ask *ask, heddle__optimized **out, heddle_error *err);
  void (*release)(heddle__optimized *o); /* takes NULL */
} heddle__optimize_table;

/* libheddle looks up heddle_optimize_entry (core/beside.h), which takes nothing, since run is given the host each time,
 * and gives a heddle__optimize_table. */

#endif
