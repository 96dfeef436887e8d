/* heddle/model.h: a graph with its constants and the wish where it should run. Immutable; shared by threads.
 * A model plans a program for each set of input shapes that it meets and keeps the last few. */
#ifndef HEDDLE_MODEL_H
#define HEDDLE_MODEL_H

#include "heddle/graph.h"
#include "heddle/module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_model heddle_model;

/* heddle_model_options.flags */
#define HEDDLE_MODEL_NO_CAPTURE UINT32_C(1)         /* run steps one by one even where a plugin can replay */
#define HEDDLE_MODEL_IGNORE_ANNOTATIONS UINT32_C(2) /* of the graph's nodes */
#define HEDDLE_MODEL_NO_REUSE UINT32_C(4)           /* each value has memory of its own */
#define HEDDLE_MODEL_SLOTS UINT32_C(8)              /* one buffer a value instead of an arena */
#define HEDDLE_MODEL_FAST UINT32_C(16)              /* float32 may be computed in bfloat16 or the like */
#define HEDDLE_MODEL_STRICT UINT32_C(32)            /* float32 is float32, whatever the setting precision says */
#define HEDDLE_MODEL_PLACE_AUTO UINT32_C(64)        /* as the placement rule "auto" */

/* Zeroed members mean their default; struct_size is sizeof. Everything is copied. */
typedef struct heddle_model_options {
  size_t struct_size;
  const char *devices;      /* a list as heddle_context_select takes it; NULL: the context's */
  const char *const *place; /* rules "PATTERN=DEVICE" (shell patterns on node names); a later one is stronger. "auto":
                               nodes that no rule and no annotation places go where a run is predicted to be shortest
                               (docs/placement.md); the first plan then opens devices and measures on them */
  size_t n_place;
  const char *const *keep; /* nodes "NAME" or "NAME:OUTPUT" whose values stay readable after a run */
  size_t n_keep;
  uint32_t flags;
  uint32_t max_streams;       /* compute streams a device; 0: the device's own wish, at most 2; 64 is the most */
  uint32_t max_programs;      /* kept in the cache; 0: 8 */
  uint32_t in_flight;         /* runs of an executor that may be pending at once (executor.h), at most 64; 0: 1 */
  heddle_module *library;     /* whose functions the graph's tvm_op nodes call; retained; NULL: none */
  const char *model_name;     /* heddle_model_load of a library that holds several models; NULL: its root */
  uint64_t upload_timeout_ns; /* for the constants of a program to reach their devices, all together; 0: as the setting
                                 limit.upload_seconds says, else 60 seconds */
  const char *optimize; /* which optimisations rewrite the graph before it is placed (docs/optimize.md): "off", "on", or
                           names with ',' between; NULL: as the setting optimize says, else as the graph asks */
  const char *const *dims; /* rules "NAME=NUMBER" for dimensions that the graph names, as heddle_graph_bind takes them:
                              shapes that are known early are planned early, and optimised */
  size_t n_dims;
  const char *memory; /* limits on what devices' memory may give, "sim:0=64MiB,opencl:0=2GiB" (docs/memory.md); NULL:
                         as the setting limit.memory says, else none */
  const char
      *on_failure; /* what becomes of a run that a device failed (docs/failures.md): "error", "retry", "retry:N" or
                             "failover"; NULL: as the setting run.on_failure says, else "error" */
  uint64_t plan_timeout_ns; /* for a plan, and for the making of the model: HEDDLE_ETIMEOUT names the node; 0: as the
                               setting limit.plan_seconds says, else no limit. A run that plans has its own limit too */
} heddle_model_options;

/* Makes a model: checks the graph, takes the params' tensors as constants (names that are no inputs are skipped and
 * logged, as a warning if none matches) and resolves devices and rules. Graph and params are retained,
 * not copied. Plans nothing yet. *out has one reference. Any thread; may block in drivers. */
HEDDLE_API heddle_status heddle_model_create(heddle_context *ctx, const heddle_graph *graph,
                                             const heddle_params *params, const heddle_model_options *options,
                                             heddle_model **out, heddle_error *err);
HEDDLE_API heddle_model *heddle_model_retain(heddle_model *m);
HEDDLE_API void heddle_model_release(heddle_model *m); /* takes NULL */

/* Loads graph and params from files of at most the sizes that limit.graph_bytes and limit.params_bytes say, and makes a
 * model; params_path NULL: FILE.params beside FILE.json where that exists. A graph_path that ends in .onnx, or is a
 * library, holds all of the model; params_path then takes the place of the parameters inside. Large parameters of an
 * .onnx file are not copied: the file may not change while the model lives. */
HEDDLE_API heddle_status heddle_model_load(heddle_context *ctx, const char *graph_path, const char *params_path,
                                           const heddle_model_options *options, heddle_model **out, heddle_error *err);

/* The graph and the parameters of a model that a library holds; name NULL: its root. Each has one reference.
 * HEDDLE_ENOTFOUND, naming the models that there are. */
HEDDLE_API heddle_status heddle_model_unpack(const heddle_module *library, const char *name, heddle_graph **graph,
                                             heddle_params **params, heddle_error *err);

/* The graph of the model; borrowed. */
HEDDLE_API const heddle_graph *heddle_model_graph(const heddle_model *m);

/* The library whose functions it calls; borrowed, NULL where there is none. */
HEDDLE_API heddle_module *heddle_model_library(const heddle_model *m);

/* The devices that the model may use, in order; borrowed. */
HEDDLE_API size_t heddle_model_device_count(const heddle_model *m);
HEDDLE_API heddle_device *heddle_model_device(const heddle_model *m, size_t i);

typedef enum heddle_explain_format {
  HEDDLE_EXPLAIN_TEXT, /* for people: nodes with device and cause, copies with route and bytes, streams, memory */
  HEDDLE_EXPLAIN_JSON, /* one object, docs/cli.md says its keys; every access with its bytes and order */
  HEDDLE_EXPLAIN_DOT   /* for Graphviz: nodes coloured by device, copies as edges */
} heddle_explain_format;

/* Where each node would run and why, for inputs of the shapes that the graph gives or that the n tensors named here
 * have. Opens no device unless a plugin asks for it. *out is text, freed with heddle_free. Any thread. */
HEDDLE_API heddle_status heddle_model_explain(heddle_model *m, heddle_explain_format format, const char *const *names,
                                              heddle_tensor *const *tensors, size_t n, char **out, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
