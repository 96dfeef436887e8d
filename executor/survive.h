/* executor/survive.h: what becomes of a run that a device failed, where the model has a policy for that;
 * docs/failures.md. What is done is decided by libheddle_survive.so (executor/survive/), of libheddle's version, which is
 * opened when a run has failed under such a policy; this is also what crosses between the two. */
#ifndef HEDDLE_EXECUTOR_SURVIVE_H
#define HEDDLE_EXECUTOR_SURVIVE_H

#include "core/trace.h"
#include "executor/state.h"

/* What the library uses of libheddle's. */
typedef struct heddle__survive_host {
  void *(*alloc)(size_t count, size_t size);
  void (*free)(void *p);
  char *(*format)(const char *format, ...) __attribute__((format(printf, 1, 2)));
  void (*vlogf)(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args);
  uint64_t (*now_ns)(void);
  void (*trace_span)(heddle__trace *trace, const heddle__span *span);
  heddle_status (*health)(heddle_device *dev, heddle_error *err);
  heddle_status (*reopen)(heddle_device *dev, heddle_error *err);
  void (*device_close)(heddle_device *dev);
  heddle_status (*model_create)(heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                                const heddle_model_options *options, heddle_model **out, heddle_error *err);
  void (*model_release)(heddle_model *m);
  void (*program_release)(heddle__program *p);
  void (*bound_free)(heddle__bound *b, bool quiet);
  void (*keep_orphan)(heddle_model *m, heddle__bound *take);
  void (*profile_release)(heddle__profile *p);
  heddle_status (*plan)(heddle_executor *ex, heddle_error *err); /* heddle__executor_plan */
  heddle_status (*copy_in)(heddle_executor *ex, heddle__bound *b, heddle_error *err);
  heddle_status (*tensor_create)(heddle_device *dev, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                                 heddle_tensor **out, heddle_error *err);
  heddle_status (*tensor_copy)(heddle_tensor *dst, const heddle_tensor *src, heddle_error *err);
  void (*tensor_release)(heddle_tensor *t);
} heddle__survive_host;

/* libheddle looks up heddle_survive_entry (core/beside.h), which takes nothing. */
typedef struct heddle__survive_table {
  const char *version; /* heddle_version() of the library */

  /* Makes an executor ready to run again after a failure (status and words) that a policy is for. quiet: nothing of the
   * run is on a device any more. HEDDLE_OK: it is bound and filled, perhaps anew and on other devices; else the first
   * failure, with why nothing helped behind its words: then it may be bound to nothing. One thread at a time, a run may be
   * pending; blocks. */
  heddle_status (*survive)(const heddle__survive_host *host, heddle_executor *ex, heddle_status status, bool quiet,
                           heddle_error *words);
} heddle__survive_table;

/* Reads a policy: "error", "retry", "retry:N" or "failover"; NULL: the setting run.on_failure. HEDDLE_EINVAL. */
heddle_status heddle__survive_read(heddle_model *m, const char *word, heddle_error *err);

/* The function of the table where the executor's model has a policy for such a status; else gives the status back. err is
 * not NULL. */
heddle_status heddle__survive(heddle_executor *ex, heddle_status s, bool quiet, heddle_error *err);

#endif
