/* heddle/model.h: a graph with its constants and its placement options. Immutable; any thread may use it.
 * A model plans a program for each set of input shapes and keeps the most recent programs in a cache. */
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
#define HEDDLE_MODEL_IGNORE_ANNOTATIONS UINT32_C(2) /* of the graph's nodes; as the setting annotations=off */
#define HEDDLE_MODEL_NO_REUSE UINT32_C(4)           /* each value has its own memory */
#define HEDDLE_MODEL_SLOTS UINT32_C(8)              /* one buffer per value instead of an arena */
#define HEDDLE_MODEL_FAST UINT32_C(16)              /* float32 may be computed in bfloat16 or a similar type */
#define HEDDLE_MODEL_STRICT UINT32_C(32)            /* float32 is float32, regardless of the setting precision */
#define HEDDLE_MODEL_PLACE_AUTO UINT32_C(64)        /* same as the placement rule "auto" */

/* Zeroed members have their default values; set struct_size to sizeof. Everything is copied. */
typedef struct heddle_model_options {
  size_t struct_size;
  const char *devices;      /* a list in the syntax of heddle_context_select; NULL: the context's default */
  const char *const *place; /* rules "PATTERN=DEVICE" (shell patterns on node names); a later rule takes precedence,
                               and all do over those of the setting "place"; "off" ends the rules before it.
                               "auto" places the nodes without a rule or an annotation so that the predicted time of
                               a run is shortest (docs/placement.md); the first plan then opens devices and measures
                               on them */
  size_t n_place;
  const char *const *keep; /* nodes "NAME" or "NAME:OUTPUT" whose values stay readable after a run */
  size_t n_keep;
  uint32_t flags;
  uint32_t max_streams;       /* compute streams per device; 0: the device's preference, at most 2; 64 is the most */
  uint32_t max_programs;      /* programs kept, one for each set of shapes; 0: the setting limit.programs, else 8 */
  uint32_t in_flight;         /* runs of an executor that may be pending at once (executor.h), at most 64; 0: 1 */
  heddle_module *library;     /* its functions implement the graph's tvm_op nodes; retained; NULL: none */
  const char *model_name;     /* for heddle_model_load of a library with several models; NULL: its root */
  uint64_t upload_timeout_ns; /* limit for copying all constants of a program to their devices; 0: the setting
                                 limit.upload_seconds, else 60 seconds */
  const char *optimize;    /* optimisations that rewrite the graph before placement (docs/optimize.md): "off", "on", or
                           names separated by ','; NULL: the setting optimize, else as the graph specifies */
  const char *const *dims; /* rules "NAME=NUMBER" for dimensions that the graph names (see heddle_graph_bind); shapes
                              that are known early are planned and optimised early. Or "NAME<=NUMBER": the most that an
                              input's dimension of that name can be; programs are laid out for it from the start, and
                              larger inputs are HEDDLE_EINVAL (docs/memory.md) */
  size_t n_dims;
  const char *memory; /* limits on the memory used on devices, "sim:0=64MiB,opencl:0=2GiB" (docs/memory.md); NULL:
                         the setting limit.memory, else no limit */
  const char
      *on_failure; /* the reaction to a run that failed on a device (docs/failures.md): "error", "retry", "retry:N" or
                             "failover"; NULL: the setting run.on_failure, else "error" */
  uint64_t plan_timeout_ns; /* limit for a plan, and for creating the model: HEDDLE_ETIMEOUT names the node; 0: the
                               setting limit.plan_seconds, else no limit. A run that plans has its own limit too */
  const char *trust;        /* a trust file (docs/signing.md): every file that heddle_model_load reads must be signed by
                               one of its keys, else HEDDLE_EDENIED; the library above must have been too. NULL: the
                               setting trust (HEDDLE_TRUST), else files need no signature */
  const char *key;   /* the file of the key of encrypted files; NULL: as heddle_key_callback (sign.h) describes */
  const char *state; /* outputs that are inputs of the next run (state.h, docs/state.md): rules "INPUT:OUTPUT" or
                        "INPUT=OUTPUT" separated by ',', where '*' stands for the same text on both sides; "auto": by
                        the names that exporters use; "off"; NULL: as the graph's file specifies, else none */
  uint64_t seed;     /* of random operators that have no attribute seed: another for other numbers; each node's own
                        follows from it and the node's name. 0: from the name alone */
} heddle_model_options;

/* Creates a model: checks the graph, uses the params' tensors as constants, and resolves devices and rules. Tensors
 * whose names are not inputs of the graph are skipped and logged, as a warning if no name matches. Graph and params are
 * retained, not copied. Nothing is planned yet. *out has one reference. Any thread; may block in drivers. */
HEDDLE_API heddle_status heddle_model_create(heddle_context *ctx, const heddle_graph *graph,
                                             const heddle_params *params, const heddle_model_options *options,
                                             heddle_model **out, heddle_error *err);

/* Retain adds a reference and returns m; release drops one. Executors hold one. The last release closes the devices
 * that only this model uses. Any thread; the last release may block in drivers. */
HEDDLE_API heddle_model *heddle_model_retain(heddle_model *m);
HEDDLE_API void heddle_model_release(heddle_model *m); /* accepts NULL */

/* Loads graph and params from files and creates a model. The settings limit.graph_bytes and limit.params_bytes limit
 * the files' sizes. With params_path NULL, FILE.params beside FILE.json is used where it exists. A graph_path that ends
 * in .onnx, or that is a library, contains the whole model; params_path then replaces the parameters inside. Large
 * parameters of an .onnx file are not copied: do not change the file during the life of the model. *out has one
 * reference. Any thread; may block in drivers. */
HEDDLE_API heddle_status heddle_model_load(heddle_context *ctx, const char *graph_path, const char *params_path,
                                           const heddle_model_options *options, heddle_model **out, heddle_error *err);

/* Creates a model from memory: an ONNX model, or a graph's JSON text without parameters. The bytes are copied where
 * they are needed later; they may be freed after the call. folder is where weights outside of an ONNX model lie; with
 * folder NULL a model that has such weights is HEDDLE_EUNSUPPORTED. Limits and failures are those of heddle_model_load;
 * messages call the model "model". *out has one reference. Any thread; may block in drivers. */
HEDDLE_API heddle_status heddle_model_parse(heddle_context *ctx, const void *data, size_t bytes, const char *folder,
                                            const heddle_model_options *options, heddle_model **out, heddle_error *err);

/* Creates a model of a packed graph of operators in memory (heddle_pack without libraries, heddle_link) of so many bytes, at a
 * multiple of 64. Parameters are used where they lie and not copied, and so is what was prepared: the bytes stay, unchanged,
 * until the last reference to the model and to tensors of its parameters is released. name is for messages, and may be NULL. HEDDLE_EINVAL: data is not
 * aligned; other errors as heddle_model_load. *out has one reference. Any thread; may block in drivers. */
HEDDLE_API heddle_status heddle_model_load_memory(heddle_context *ctx, const void *data, size_t bytes, const char *name,
                                                  const heddle_model_options *options, heddle_model **out,
                                                  heddle_error *err);

/* Returns the graph and the parameters of a model in a library; with name NULL, of its root. Each has one reference.
 * The settings limit.graph_bytes and limit.params_bytes limit them. HEDDLE_ENOTFOUND where the library has no such
 * model; the message lists its models. HEDDLE_EFORMAT, HEDDLE_ELIMIT, HEDDLE_EUNSUPPORTED and HEDDLE_ENOMEM as when a
 * file is read. Any thread. */
HEDDLE_API heddle_status heddle_model_unpack(const heddle_module *library, const char *name, heddle_graph **graph,
                                             heddle_params **params, heddle_error *err);

/* The graph of the model; borrowed from it. Any thread. */
HEDDLE_API const heddle_graph *heddle_model_graph(const heddle_model *m);

/* The library whose functions the model calls; borrowed, NULL where there is none. Any thread. */
HEDDLE_API heddle_module *heddle_model_library(const heddle_model *m);

/* The devices that the model may use, in order of preference; borrowed. NULL past the end. Any thread. */
HEDDLE_API size_t heddle_model_device_count(const heddle_model *m);
HEDDLE_API heddle_device *heddle_model_device(const heddle_model *m, size_t i);

typedef enum heddle_explain_format {
  HEDDLE_EXPLAIN_TEXT, /* for people: nodes with device and cause, copies with route and bytes, streams, memory */
  HEDDLE_EXPLAIN_JSON, /* one object with the keys of docs/cli.md; every access with its bytes and order */
  HEDDLE_EXPLAIN_DOT   /* for Graphviz: nodes coloured by device, copies as edges */
} heddle_explain_format;

/* Describes the plan: where each node would run, and why. The plan is for the shapes in the graph, or for the shapes of
 * the n tensors passed for the inputs in names. Opens no device unless a plugin requires it. *out is text; free it with
 * heddle_free. Any thread. HEDDLE_ENOTFOUND where a name is not an input. */
HEDDLE_API heddle_status heddle_model_explain(heddle_model *m, heddle_explain_format format, const char *const *names,
                                              heddle_tensor *const *tensors, size_t n, char **out, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
