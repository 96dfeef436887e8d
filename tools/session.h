/* tools/session.h: what plan, run and bench have in common: a context, a model in it, values for its inputs.
 * Each function says what went wrong on stderr and gives an exit status. */
#ifndef HEDDLE_TOOLS_SESSION_H
#define HEDDLE_TOOLS_SESSION_H

#include "heddle/heddle.h"
#include "options.h"

typedef struct session {
  const char *command; /* for messages */
  const options *o;
  heddle_context *ctx;
  bool is_root;           /* outputs arrive here: the only process, or rank 0 */
  heddle_module *library; /* of --lib, or NULL */
  heddle_model *model;
  heddle_executor *ex;
  const char **names;     /* of --input, terminated copies */
  heddle_tensor **values; /* their tensors */
  size_t n_values;
  bool *given; /* per input of the executor: it has a value */
  uint32_t n_random;
  uint32_t model_flags; /* that the model was made with */
} session;

/* "NAME=REST" as a copy of NAME, freed by the caller, and a pointer to REST; NULL: memory is out. */
char *before_equals(const char *pair, const char **rest);

/* A context with --set and --threads. */
int session_context(session *s, const char *command, const options *o);

/* --device, --place and the other options that every model takes; strings are borrowed. */
int session_model_options(session *s, heddle_model_options *mo);

/* A context, the model with --params, --device and --place, and the tensors of --input. */
int session_model(session *s, const char *command, const options *o);

/* An executor. Inputs get the values of --input; the rest get random ones where that is allowed, and are named in an
 * error where it is not. */
int session_executor(session *s, bool may_be_random);

/* Says why a model could not be planned, and where its library is missing, how to give it. */
int session_plan_failed(const session *s, const heddle_error *err);

/* Whether a value was made up for input i. */
bool session_is_random(const session *s, uint32_t i);

/* Gives status back, for the end of a command. */
int session_finish(session *s, int status);

/* The time of --timeout in nanoseconds. */
uint64_t session_timeout(const session *s);

/* Says why a run failed; one that took too long is cancelled. */
int session_run_failed(const session *s, heddle_status status, const heddle_error *err);

#endif
