/* modules/tvm/timing.c: the loop of repeated measurements, and runtime.RPCTimeEvaluator, which makes a function of it
 * that times another one. */
#include "modules/tvm/timing.h"

#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "modules/tvm/convert.h"

uint64_t heddle__timing_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

bool heddle__timing_args(const heddle__args *a, int32_t i, heddle__timing *out) {
  enum { MOST = 100000000 };
  *out = (heddle__timing){1, 1, 0, 100, 0, 1, NULL};
  int64_t *const members[] = {&out->number,     &out->repeat,      &out->min_repeat_ms,
                              &out->limit_zero, &out->cooldown_ms, &out->repeats_to_cooldown};
  static const int64_t least[] = {1, 1, 0, 0, 0, 1};
  for (int32_t k = 0; k < 6 && i + k < a->n; k++)
    if (!heddle__args_int(a, i + k, least[k], MOST, members[k])) return false;
  return true;
}

int heddle__timing_run(const heddle__timing *t, heddle__measure_fn measure, heddle__measured_fn measured, void *user) {
  int64_t number = t->number, zeros = 0;
  for (int64_t r = 0; r < t->repeat; r++) {
    if (t->before != NULL && t->before(user) != 0) return -1;
    for (;;) {
      uint64_t ns = 0;
      if (measure(user, number, &ns) != 0) return -1;
      bool enough = ns >= (uint64_t)t->min_repeat_ms * 1000000 || (ns == 0 && ++zeros > t->limit_zero);
      if (enough) {
        measured(user, r, number, ns);
        break;
      }
      if (ns == 0) continue; /* no number of runs is known to take longer */
      const double grown = (double)number * 1.618;
      const double needed = (double)t->min_repeat_ms * 1e6 / ((double)ns / (double)number) + 1;
      double next = needed > grown ? needed : grown;
      number = next < 1e15 ? (int64_t)next + 1 : (int64_t)1e15;
    }
    if (t->cooldown_ms > 0 && r + 1 < t->repeat && (r + 1) % t->repeats_to_cooldown == 0) {
      struct timespec pause = {(time_t)(t->cooldown_ms / 1000), (long)(t->cooldown_ms % 1000) * 1000000};
      nanosleep(&pause, NULL);
    }
  }
  return 0;
}

/* ---- the time evaluator */

typedef struct evaluator {
  heddle_function *f, *before; /* before: NULL, or called with the arguments before each repeat */
  heddle__timing timing;
  char *cold; /* written as a whole before each repeat, so that the caches hold nothing else; or NULL */
  size_t cold_bytes;
} evaluator;

typedef struct evaluation {
  const evaluator *of;
  const heddle__word *args;
  const int32_t *codes;
  int32_t n;
  double *seconds;
} evaluation;

static int call(heddle_function *f, const evaluation *e) {
  heddle__word ret = {0};
  int32_t code = PACKED_NULL;
  int rc = heddle__function_call(f, e->args, e->codes, e->n, &ret, &code);
  if (rc == 0) heddle__result_drop(ret, code);
  return rc;
}

static int call_once(const evaluation *e) {
  return call(e->of->f, e);
}

static int before(void *user) {
  const evaluation *e = user;
  if (e->of->cold != NULL) memset(e->of->cold, e->of->cold[0] + 1, e->of->cold_bytes);
  return e->of->before != NULL ? call(e->of->before, e) : 0;
}

static int measure(void *user, int64_t number, uint64_t *ns) {
  uint64_t start = heddle__timing_now();
  for (int64_t i = 0; i < number; i++)
    if (call_once(user) != 0) return -1;
  *ns = heddle__timing_now() - start;
  return 0;
}

static void measured(void *user, int64_t repeat, int64_t number, uint64_t ns) {
  ((evaluation *)user)->seconds[repeat] = (double)ns / (double)number / 1e9;
}

/* Once without a clock, then as it was asked for: the seconds of each measurement, as bytes of doubles. */
static HEDDLE__METHOD(evaluate) {
  const evaluator *of = self;
  double *seconds = heddle__alloc((size_t)of->timing.repeat, sizeof *seconds);
  if (seconds == NULL) return heddle__refuse("time evaluator", "out of memory");
  evaluation e = {of, args, codes, n, seconds};
  int rc = call_once(&e);
  if (rc == 0) rc = heddle__timing_run(&of->timing, measure, measured, &e);
  if (rc == 0) rc = heddle__give_bytes(seconds, (size_t)of->timing.repeat * sizeof *seconds, ret, ret_code);
  heddle__free(seconds);
  return rc;
}

static void finish(void *self) {
  heddle__function_release(((evaluator *)self)->f);
  heddle__function_release(((evaluator *)self)->before);
  heddle__free(((evaluator *)self)->cold);
  heddle__free(self);
}

/* (module or null, name, device type, number, the six of heddle__timing, bytes of cache to flush before each repeat,
 * the name of a function that is called with the arguments before each repeat, or ""): a function that calls the one
 * of that name with its own arguments. Functions wait for what they launch, so that the host's clock is right for all
 * devices. */
HEDDLE__METHOD(heddle__time_evaluator) {
  heddle__args a = {"runtime.RPCTimeEvaluator", args, codes, n};
  heddle_object *module = NULL;
  heddle__timing timing;
  const char *name = NULL, *first_name = "";
  int64_t ignored = 0, flushed = 0;
  (void)self;
  if (!heddle__args_count(&a, 4, 12) || !heddle__args_object(&a, 0, &module) || !heddle__args_name(&a, 1, &name) ||
      !heddle__args_int(&a, 2, 1, INT32_MAX, &ignored) || !heddle__args_int(&a, 3, 0, INT32_MAX, &ignored))
    return -1;
  heddle__args first = a; /* what is behind the numbers is not theirs */
  if (first.n > 10) first.n = 10;
  if (!heddle__timing_args(&first, 4, &timing)) return -1;
  if (n > 10 && !heddle__args_int(&a, 10, 0, INT32_MAX, &flushed)) return -1;
  if (n > 11 && !heddle__args_name(&a, 11, &first_name)) return -1;
  heddle_function *f = NULL, *prepares = first_name[0] != '\0' ? heddle__registry_find(first_name) : NULL;
  if (first_name[0] != '\0' && prepares == NULL)
    return heddle__refuse(a.method, "no function '%.200s' is registered, to be called before each repeat", first_name);
  int rc = module != NULL ? heddle__object_find(module, name, true, &f) : 0;
  if (module == NULL) f = heddle__registry_find(name);
  if (f == NULL) {
    heddle__function_release(prepares);
    return rc != 0 ? rc
                   : heddle__refuse(a.method,
                                    module != NULL ? "the module has no function '%.200s'"
                                                   : "no function '%.200s' is registered",
                                    name);
  }
  evaluator *e = heddle__alloc(1, sizeof *e);
  char *cold = flushed > 0 ? heddle__alloc((size_t)flushed, 1) : NULL;
  bool room = e != NULL && (flushed == 0 || cold != NULL);
  heddle_function *made = room ? heddle__function_new(name, evaluate, e, finish) : NULL;
  if (made == NULL) {
    heddle__function_release(f);
    heddle__function_release(prepares);
    heddle__free(e);
    heddle__free(cold);
    return heddle__refuse(a.method, "out of memory");
  }
  if (prepares != NULL || cold != NULL) timing.before = before;
  *e = (evaluator){f, prepares, timing, cold, (size_t)flushed};
  ret->p = made;
  *ret_code = PACKED_FUNCTION;
  return 0;
}
