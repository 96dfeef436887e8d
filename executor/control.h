/* executor/control.h: what crosses between libheddle and libheddle_control.so, which runs models in stages: those whose
 * nodes run graphs of their own, or whose shapes only a run gives. Both are of one version, so the structs here may
 * change; the library keeps no state but the pointer to its host. */
#ifndef HEDDLE_EXECUTOR_CONTROL_H
#define HEDDLE_EXECUTOR_CONTROL_H

#include "executor/stages.h"

/* What the library uses of libheddle's. */
typedef struct heddle__control_host {
  void *(*alloc)(size_t count, size_t size);
  void *(*grow)(void *old, size_t old_count, size_t new_count, size_t size);
  void (*free)(void *p);
  char *(*format)(const char *format, ...) __attribute__((format(printf, 1, 2)));
  uint64_t (*now_ns)(void);
  heddle_graph *(*graph_new)(const char *source, heddle_error *err);
  heddle_status (*graph_index)(heddle_graph *g, heddle_error *err);
  int32_t (*graph_arg)(const heddle_graph *g, const char *name);
  heddle_graph *(*graph_retain)(heddle_graph *g);
  void (*graph_release)(heddle_graph *g);
  heddle_status (*graph_cuts)(const heddle_graph *g, const heddle__constant *const *constants, unsigned char *cuts,
                              bool *any, heddle_error *err);
  heddle__control (*control_of)(const heddle__node *node);
  const heddle_graph *(*inner)(const heddle__node *node, const char *name);
  bool (*is_control)(const heddle__node *node);
  heddle_status (*declared_check)(const heddle_graph *g, const heddle__node *node, uint32_t index, heddle_dtype dtype,
                                  uint32_t ndim, const int64_t *shape, heddle_error *err);
  const int64_t *(*attr_ints)(const heddle__node *node, const char *name, uint64_t *count);
  heddle_params *(*params_new)(const char *source, heddle_error *err);
  heddle_params *(*params_retain)(heddle_params *p);
  void (*params_release)(heddle_params *p);
  heddle_status (*model_create)(heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                                const heddle_model_options *options, heddle_model **out, heddle_error *err);
  void (*model_release)(heddle_model *m);
  heddle_status (*model_explain)(heddle_model *m, heddle_explain_format format, const char *const *names,
                                 heddle_tensor *const *tensors, size_t n, char **out, heddle_error *err);
  heddle_status (*executor_create)(heddle_model *m, heddle_executor **out, heddle_error *err);
  void (*executor_release)(heddle_executor *ex);
  heddle_status (*executor_begin)(heddle_executor *ex, bool timed, heddle_error *err);
  heddle_status (*drive_wait)(heddle__drive *d, uint64_t deadline_ns, heddle_error *err);
  void (*drive_cancel)(heddle__drive *d);
  heddle_status (*set_input)(heddle_executor *ex, uint32_t i, const heddle_tensor *value, heddle_error *err);
  heddle_status (*bind_input)(heddle_executor *ex, uint32_t i, heddle_tensor *value, heddle_error *err);
  heddle_status (*view_output)(heddle_executor *ex, uint32_t i, heddle_tensor **out, heddle_error *err);
  bool (*is_view)(heddle_executor *ex, uint32_t i, const heddle_tensor *t); /* what view_output gave, and would again */
  heddle_status (*prepare)(heddle_executor *ex, heddle_error *err);
  heddle_status (*output_info)(heddle_executor *ex, uint32_t i, heddle_io_info *out, heddle_error *err);
  heddle_status (*run_to)(heddle_executor *ex, const char *node, uint32_t output, heddle_tensor **out,
                          heddle_error *err);
  heddle_status (*stats)(heddle_executor *ex, heddle_executor_stats *out, heddle_error *err);
  heddle_status (*explain)(heddle_executor *ex, heddle_explain_format format, char **out, heddle_error *err);
  heddle_status (*tensor_create)(heddle_device *dev, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                 heddle_tensor **out, heddle_error *err);
  heddle_status (*tensor_wrap)(void *data, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                               const int64_t *strides, heddle_release_fn release, void *user, heddle_tensor **out,
                               heddle_error *err);
  heddle_tensor *(*tensor_retain)(heddle_tensor *t);
  void (*tensor_release)(heddle_tensor *t);
  heddle_status (*tensor_read)(const heddle_tensor *t, void *dst, heddle_error *err);
  heddle_status (*tensor_copy)(heddle_tensor *dst, const heddle_tensor *src, heddle_error *err);
  heddle_status (*bytes)(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, uint64_t *out, heddle_error *err);
  const char *(*type_words)(heddle_dtype dtype, uint32_t ndim, const int64_t *shape, char out[128]);
  void (*dtype_name)(heddle_dtype dtype, char out[32]);
} heddle__control_host;

typedef struct heddle__stages heddle__stages; /* of a model; immutable */
typedef struct heddle__staged heddle__staged; /* of an executor */

/* libheddle looks up heddle_control_entry (core/beside.h), which takes a heddle__control_host and gives this; the first
 * host that enters is kept. The functions are those of executor/stages.h. */
typedef struct heddle__control_table {
  const char *version;
  heddle__course course; /* self is a heddle__staged */

  /* m is whole but for its stages, and outlives them. optimize: the wish, settled; NULL: none. May block: models are
   * made. */
  heddle_status (*make)(heddle_model *m, const char *optimize, heddle__stages **out, heddle_error *err);
  void (*free)(heddle__stages *s); /* takes NULL */
  heddle_status (*explain)(const heddle__stages *s, heddle__staged *st, heddle_explain_format format, char **out,
                           heddle_error *err);
  heddle_status (*start)(const heddle__stages *s, heddle_executor *ex, heddle__staged **out, heddle_error *err);
  void (*end)(heddle__staged *st);                                              /* takes NULL */
  heddle_status (*check)(heddle__staged *st, uint32_t *arg, heddle_error *err); /* arg: an input that was never set */
  heddle_tensor *(*result)(heddle__staged *st, uint32_t i);
  heddle_status (*value)(heddle__staged *st, const heddle__keep *target, heddle_tensor **out, heddle_error *err);
  void (*stats)(heddle__staged *st, heddle_executor_stats *all);
} heddle__control_table;

#endif
