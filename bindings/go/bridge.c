/* bindings/go/bridge.c: see bridge.h. The frames of calls under way and the last string that a Go function returned are
 * the thread's, because Go runs a function that C calls on the thread that called it. */
#include "bridge.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include <_cgo_export.h>

/* An error of a Go function on its way back to Go: its handle, and the number by which the call that fails finds it. */
typedef struct passing {
  uintptr_t cause; /* 0: there is none */
  uint64_t origin;
} passing;

/* Code in between may handle one failure and report another: so many are kept. */
enum { KEPT = 4, STRAYS = 64 };

/* A call from Go that is under way on this thread: where Go functions that fail in it leave their errors. */
typedef struct frame {
  struct frame *outer;
  passing kept[KEPT]; /* a ring */
  unsigned next;
} frame;

static _Thread_local frame *current;
static _Thread_local void *returned;

/* Those that fail on threads that no call from Go is on; kept while there is a call anywhere. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static passing strays[STRAYS]; /* a ring */
static unsigned next_stray;
static atomic_uint calls; /* on their way */

static void drop(uintptr_t cause) {
  if (cause != 0) heddleGoDrop(cause);
}

static uintptr_t put(passing *ring, unsigned n, unsigned *next, passing p) {
  passing *place = &ring[(*next)++ % n];
  const uintptr_t old = place->cause;
  *place = p;
  return old;
}

static uintptr_t take(passing *ring, unsigned n, uint64_t origin) {
  for (unsigned i = 0; origin != 0 && i < n; i++) {
    if (ring[i].cause == 0 || ring[i].origin != origin) continue;
    const uintptr_t found = ring[i].cause;
    ring[i].cause = 0;
    return found;
  }
  return 0;
}

static void keep(uintptr_t cause, heddle_error *err) {
  const passing p = {cause, heddle_error_mark(err)};
  uintptr_t unused = cause;
  if (p.origin != 0 && current != NULL) {
    unused = put(current->kept, KEPT, &current->next, p);
  } else if (p.origin != 0 && atomic_load(&calls) > 0) {
    pthread_mutex_lock(&lock);
    unused = put(strays, STRAYS, &next_stray, p);
    pthread_mutex_unlock(&lock);
  }
  drop(unused);
}

static void enter(frame *f) {
  f->outer = current;
  f->next = 0;
  memset(f->kept, 0, sizeof f->kept);
  current = f;
  atomic_fetch_add(&calls, 1);
}

/* The handle of the Go error that the call failed because of, or 0; drops the others. */
static uintptr_t leave(frame *f, heddle_status status, const heddle_error *err) {
  const uint64_t origin = status != HEDDLE_OK ? heddle_error_origin(err) : 0;
  uintptr_t found = take(f->kept, KEPT, origin);
  uintptr_t unused[STRAYS];
  unsigned n = 0;
  for (unsigned i = 0; f->next > 0 && i < KEPT; i++) drop(f->kept[i].cause);
  current = f->outer;
  const bool last = atomic_fetch_sub(&calls, 1) == 1;
  if (!last && (origin == 0 || found != 0)) return found;
  pthread_mutex_lock(&lock);
  if (found == 0) found = take(strays, STRAYS, origin);
  for (; next_stray > 0 && atomic_load(&calls) == 0 && n < STRAYS; n++) {
    unused[n] = strays[n].cause;
    strays[n].cause = 0;
  }
  if (n > 0) next_stray = 0;
  pthread_mutex_unlock(&lock);
  while (n > 0) drop(unused[--n]); /* without the lock: it calls Go */
  return found;
}

/* ---- functions of Go */

static heddle_status call_go(void *self, const heddle_value *args, uint32_t n, heddle_value *result,
                             heddle_error *err) {
  heddle_error words = {0};
  uintptr_t cause = 0;
  heddle_status s = heddleGoCall((uintptr_t)self, (heddle_value *)(uintptr_t)args, n, result, &words, &cause);
  free(returned);
  returned = NULL;
  if (s == HEDDLE_OK) {
    if (result->kind == HEDDLE_VALUE_STRING) returned = (void *)(uintptr_t)result->of.s;
    if (result->kind == HEDDLE_VALUE_BYTES) returned = (void *)(uintptr_t)result->of.data;
    return HEDDLE_OK;
  }
  keep(cause, &words);
  if (err != NULL) *err = words;
  return s;
}

static void drop_go(void *self) {
  heddleGoDrop((uintptr_t)self);
}

heddle_status hgo_function(uintptr_t self, heddle_function **out, heddle_error *err) {
  return heddle_function_create(call_go, (void *)self, drop_go, out, err);
}

/* ---- calls of functions */

heddle_status hgo_call(heddle_function *f, const heddle_value *args, uint32_t n, hgo_result *out, heddle_error *err) {
  frame here;
  memset(out, 0, sizeof *out);
  err->text[0] = '\0';
  enter(&here);
  heddle_status s = heddle_function_call(f, args, n, &out->value, err);
  out->cause = leave(&here, s, err);
  if (s != HEDDLE_OK) return s;
  const void *from = NULL;
  if (out->value.kind == HEDDLE_VALUE_STRING) {
    from = out->value.of.s;
    out->value.bytes = from != NULL ? strlen(out->value.of.s) : 0;
  } else if (out->value.kind == HEDDLE_VALUE_BYTES) {
    from = out->value.of.data;
  }
  if (from == NULL || out->value.bytes == 0) return HEDDLE_OK;
  out->text = malloc(out->value.bytes);
  if (out->text == NULL) return HEDDLE_ENOMEM;
  memcpy(out->text, from, out->value.bytes);
  return HEDDLE_OK;
}

heddle_status hgo_names(char **out, size_t *n, heddle_error *err) {
  const char *const *names;
  size_t bytes = 0;
  heddle_status s = heddle_function_names(&names, n, err);
  if (s != HEDDLE_OK) return s;
  for (size_t i = 0; i < *n; i++) bytes += strlen(names[i]) + 1;
  char *p = *out = malloc(bytes + 1);
  if (p == NULL) return HEDDLE_ENOMEM;
  for (size_t i = 0; i < *n; i++) {
    size_t length = strlen(names[i]) + 1;
    memcpy(p, names[i], length);
    p += length;
  }
  return HEDDLE_OK;
}

/* ---- runs */

hgo_exec *hgo_exec_create(heddle_model *m, heddle_error *err, heddle_status *status) {
  hgo_exec *e = calloc(1, sizeof *e);
  *status = HEDDLE_ENOMEM;
  if (e == NULL) return NULL;
  *status = heddle_executor_create(m, &e->ex, err);
  if (*status == HEDDLE_OK) {
    e->n_outputs = heddle_executor_output_count(e->ex);
    e->bound = calloc(e->n_outputs + 1, sizeof *e->bound);
    e->outs = calloc(e->n_outputs + 1, sizeof *e->outs);
    if (e->bound != NULL && e->outs != NULL) return e;
    *status = HEDDLE_ENOMEM;
  }
  hgo_exec_free(e);
  return NULL;
}

void hgo_exec_free(hgo_exec *e) {
  if (e == NULL) return;
  heddle_executor_release(e->ex);
  drop(e->cause);
  free(e->bound);
  free(e->outs);
  free(e);
}

heddle_status hgo_run(uintptr_t exec) {
  hgo_exec *e = (hgo_exec *)exec;
  frame here;
  drop(e->cause); /* of a run that was left behind */
  enter(&here);
  heddle_status s = heddle_executor_run(e->ex, HEDDLE_FOREVER, &e->err);
  e->cause = leave(&here, s, &e->err);
  return s;
}

heddle_status hgo_outputs(hgo_exec *e) {
  heddle_status s = HEDDLE_OK;
  uint32_t made = 0;
  for (uint32_t i = 0; i < e->n_outputs && s == HEDDLE_OK; i++) {
    heddle_tensor *view = NULL, *copy = NULL;
    if (e->bound[i] == NULL) s = heddle_executor_view_output(e->ex, i, &view, &e->err);
    if (s == HEDDLE_OK) s = hgo_tensor_clone(view != NULL ? view : e->bound[i], &copy, &e->err);
    heddle_tensor_release(view);
    if (s == HEDDLE_OK) hgo_describe(copy, &e->outs[made++]);
  }
  while (s != HEDDLE_OK && made > 0) heddle_tensor_release(e->outs[--made].t);
  return s;
}

heddle_status hgo_run_outputs(uintptr_t exec) {
  heddle_status s = hgo_run(exec);
  return s == HEDDLE_OK ? hgo_outputs((hgo_exec *)exec) : s;
}

void hgo_tensor_drop(uintptr_t tensor) {
  heddle_tensor_release((heddle_tensor *)tensor);
}

/* ---- tensors */

static heddle_status check_size(const heddle_tensor *t, uint64_t bytes, heddle_error *err) {
  if (heddle_tensor_bytes(t) == bytes) return HEDDLE_OK;
  *err = (heddle_error){.status = HEDDLE_EINVAL};
  snprintf(err->text, sizeof err->text, "an array of %llu bytes and memory of %llu do not go together",
           (unsigned long long)heddle_tensor_bytes(t), (unsigned long long)bytes);
  return HEDDLE_EINVAL;
}

heddle_status hgo_tensor(const void *data, uint64_t bytes, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                         heddle_tensor **out, heddle_error *err) {
  heddle_status s = heddle_tensor_create(NULL, dtype, shape, ndim, out, err);
  if (s != HEDDLE_OK || data == NULL) return s;
  s = check_size(*out, bytes, err);
  if (s == HEDDLE_OK) memcpy(heddle_tensor_data(*out), data, bytes);
  else heddle_tensor_release(*out);
  return s;
}

void hgo_describe(heddle_tensor *t, hgo_array *out) {
  out->t = t;
  out->data = heddle_tensor_is_contiguous(t) ? heddle_tensor_data(t) : NULL;
  out->shape = heddle_tensor_shape(t);
  out->dev = heddle_tensor_device(t);
  out->bytes = heddle_tensor_bytes(t);
  out->ndim = heddle_tensor_ndim(t);
  out->dtype = heddle_tensor_dtype(t);
}

static int is_plain(const heddle_tensor *t) {
  return heddle_tensor_data(t) != NULL && heddle_tensor_is_contiguous(t);
}

heddle_status hgo_tensor_clone(const heddle_tensor *t, heddle_tensor **out, heddle_error *err) {
  heddle_status s =
      heddle_tensor_create(NULL, heddle_tensor_dtype(t), heddle_tensor_shape(t), heddle_tensor_ndim(t), out, err);
  if (s != HEDDLE_OK) return s;
  if (is_plain(t)) memcpy(heddle_tensor_data(*out), heddle_tensor_data(t), heddle_tensor_bytes(t));
  else s = heddle_tensor_copy(*out, t, err);
  if (s == HEDDLE_OK) return s;
  heddle_tensor_release(*out);
  *out = NULL;
  return s;
}

heddle_status hgo_tensor_read(const heddle_tensor *t, void *data, uint64_t bytes, heddle_error *err) {
  heddle_status s = check_size(t, bytes, err);
  if (s != HEDDLE_OK) return s;
  if (is_plain(t)) {
    memcpy(data, heddle_tensor_data(t), bytes);
    return HEDDLE_OK;
  }
  heddle_tensor *copy;
  s = hgo_tensor_clone(t, &copy, err);
  if (s == HEDDLE_OK) {
    memcpy(data, heddle_tensor_data(copy), bytes);
    heddle_tensor_release(copy);
  }
  return s;
}

heddle_status hgo_tensor_write(heddle_tensor *t, const void *data, uint64_t bytes, heddle_error *err) {
  heddle_status s = check_size(t, bytes, err);
  if (s != HEDDLE_OK) return s;
  if (is_plain(t)) {
    memcpy(heddle_tensor_data(t), data, bytes);
    return HEDDLE_OK;
  }
  heddle_tensor *from;
  s = hgo_tensor(data, bytes, heddle_tensor_dtype(t), heddle_tensor_shape(t), heddle_tensor_ndim(t), &from, err);
  if (s == HEDDLE_OK) {
    s = heddle_tensor_copy(t, from, err);
    heddle_tensor_release(from);
  }
  return s;
}

static heddle_status ask_key(void *user, const char *key_id, unsigned char key[32], heddle_error *err) {
  return heddleGoKey((uintptr_t)user, (char *)(uintptr_t)key_id, key, err);
}

heddle_status hgo_key_callback(uintptr_t ask, heddle_error *err) {
  return heddle_key_callback(ask != 0 ? ask_key : NULL, (void *)ask, err);
}

static void batch_ended(void *user, heddle_batch_request *r, heddle_status s, const heddle_error *err) {
  (void)r, (void)s, (void)err;
  heddleGoBatchEnded((uintptr_t)user);
}

heddle_status hgo_batch_submit(heddle_batcher *b, heddle_tensor **inputs, size_t n, int32_t priority, uint32_t flags,
                               uint64_t deadline_ns, uint64_t wait_ns, uintptr_t handle, heddle_batch_request **out,
                               heddle_error *err) {
  const heddle_batch_call call = {
      .struct_size = sizeof call,
      .inputs = inputs,
      .n_inputs = n,
      .priority = priority,
      .flags = flags,
      .deadline_ns = deadline_ns,
      .wait_ns = wait_ns,
      .done = batch_ended,
      .user = (void *)handle,
  };
  return heddle_batcher_submit(b, &call, out, err);
}
