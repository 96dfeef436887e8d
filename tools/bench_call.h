/* tools/bench_call.h: what heddle bench --func times: calls of a function of a compiled library, with arguments that
 * are made ready once. */
#ifndef HEDDLE_TOOLS_BENCH_CALL_H
#define HEDDLE_TOOLS_BENCH_CALL_H

#include "session.h"

typedef struct bench_call {
  session *s; /* its context and library */
  heddle_value *args;
  heddle_tensor **tensors; /* of args; NULL where an argument is a number */
  const char **made_up;    /* names of those whose values were not given, owned */
  uint32_t n_args, n_made_up;
  heddle_device *device; /* where the tensors are; NULL: the host */
} bench_call;

/* Opens the library (--lib, else MODEL) and makes the arguments of --func from --input, in their order: a .npy file, a
 * number, or DTYPE:SHAPE ("float32:16x32", "int64:" for a scalar), whose values are made up. They are brought to the
 * first device of --device before this returns. Says what is wrong and gives an exit status; call is finished with
 * bench_call_finish in any case, before the session. */
int bench_call_open(bench_call *call, session *s, const options *o);
void bench_call_finish(bench_call *call);

/* One call; it is over when this returns. */
heddle_status bench_call_once(bench_call *call, heddle_error *err);

#endif
