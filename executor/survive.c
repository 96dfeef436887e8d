/* executor/survive.c: reads the policy on failed runs, which executor/survive/ carries out. */
#include "executor/survive.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"

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
#if !HEDDLE_HAS_SURVIVE
  return heddle__left_out(err, "retry and failover of failed runs", "HEDDLE_SURVIVE");
#endif
  m->retries = n;
  m->on_failure = heddle__strdup(word);
  return m->on_failure != NULL ? HEDDLE_OK : heddle__no_memory(err, "a model's options");
}

heddle_status heddle__survive(heddle_executor *ex, heddle_status s, bool quiet, heddle_error *err) {
  if (ex->model->on_failure == NULL || (s != HEDDLE_EDEVICE && s != HEDDLE_ENOMEM && s != HEDDLE_EFAILED)) return s;
#if HEDDLE_HAS_SURVIVE
  return heddle__survive_failure(ex, s, quiet, err);
#else
  (void)quiet, (void)err; /* no model has a policy */
  return s;
#endif
}
