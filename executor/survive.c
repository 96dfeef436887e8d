/* executor/survive.c: reads the policy on failed runs, and opens libheddle_survive.so when there is a run to save. */
#include "executor/survive.h"

#include <string.h>

#include "core/alloc.h"
#include "core/beside.h"
#include "core/error.h"

enum { MOST_RETRIES = 1000 };

heddle_status heddle__survive_read(heddle_model *m, const char *word, heddle_error *err) {
  const char *from = "call";
  if (word == NULL) (void)heddle_context_setting(m->ctx, "run.on_failure", &word, &from, NULL);
  if (word == NULL || strcmp(word, "error") == 0) return HEDDLE_OK;
  uint32_t n = strcmp(word, "retry") == 0;
  if (strncmp(word, "retry:", 6) == 0)
    for (const char *p = word + 6; n <= MOST_RETRIES && *p != '\0'; p++)
      n = *p >= '0' && *p <= '9' ? n * 10 + (uint32_t)(*p - '0') : MOST_RETRIES + 1;
  if (n > MOST_RETRIES || (n == 0 && strcmp(word, "failover") != 0))
    return heddle__fail(err, HEDDLE_EINVAL,
                        "run.on_failure is error, retry, retry:N (N from 1 to %d) or failover, not '%.60s' (from %s)",
                        (int)MOST_RETRIES, word, from);
  m->retries = n;
  m->on_failure = heddle__strdup(word);
  return m->on_failure != NULL ? HEDDLE_OK : heddle__no_memory(err, "a model's options");
}

static const heddle__survive_host host = {heddle__alloc,
                                          heddle__free,
                                          heddle__format,
                                          heddle__vlogf,
                                          heddle__now_ns,
                                          heddle__trace_span,
                                          heddle_device_health,
                                          heddle_device_reopen,
                                          heddle__device_close,
                                          heddle_model_create,
                                          heddle_model_release,
                                          heddle__program_release,
                                          heddle__bound_free,
                                          heddle__model_keep_orphan,
                                          heddle__profile_release,
                                          heddle__executor_plan,
                                          heddle__executor_copy_in,
                                          heddle_tensor_create,
                                          heddle_tensor_copy,
                                          heddle_tensor_release};

heddle_status heddle__survive(heddle_executor *ex, heddle_status s, bool quiet, heddle_error *err) {
  const void *table = NULL;
  heddle_error why;
  if (ex->model->on_failure == NULL || (s != HEDDLE_EDEVICE && s != HEDDLE_ENOMEM && s != HEDDLE_EFAILED)) return s;
  if (heddle__open_beside("libheddle_survive.so.0", "runs that survive a failure need", "heddle_survive_entry", 0, NULL,
                          &table, &why) != HEDDLE_OK) {
    heddle__logf(heddle__context_log(ex->model->ctx), HEDDLE_LOG_WARN, "executor",
                 "the failed run is left as it is: %s", why.text);
    return s;
  }
  return ((const heddle__survive_table *)table)->survive(&host, ex, s, quiet, err);
}
