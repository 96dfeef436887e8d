/* bindings/go/bridge.h: calls of libheddle that must be one call from Go: what a thread keeps for its caller (strings of
 * a result, the error of a Go function) is taken before the goroutine may go on elsewhere. */
#ifndef HEDDLE_GO_BRIDGE_H
#define HEDDLE_GO_BRIDGE_H

#include <stdlib.h>
#include <string.h>

#include "heddle/function.h"
#include "heddle/heddle.h"

/* What a call of a function gave. text: memory of malloc with the bytes of a STRING or BYTES, of value.bytes bytes; the
 * caller frees it. cause: a Go handle of the error of the Go function that the call failed because of, which the caller
 * deletes; 0: there is none. */
typedef struct hgo_result {
  heddle_value value;
  void *text;
  uintptr_t cause;
} hgo_result;

heddle_status hgo_call(heddle_function *f, const heddle_value *args, uint32_t n, hgo_result *out, heddle_error *err);

/* A function that calls Go; self is a Go handle, deleted with the function, and by the caller on failure. */
heddle_status hgo_function(uintptr_t self, heddle_function **out, heddle_error *err);

/* A tensor with what Go asks of it; data is NULL where it is not row-major on the host. */
typedef struct hgo_array {
  heddle_tensor *t;
  void *data;
  const int64_t *shape;
  heddle_device *dev;
  uint64_t bytes;
  uint32_t ndim;
  heddle_dtype dtype;
} hgo_array;

void hgo_describe(heddle_tensor *t, hgo_array *out);

/* An executor as a call uses it, in C memory. cause is as above, of the last run; hgo_exec_free deletes it too. */
typedef struct hgo_exec {
  heddle_executor *ex;
  heddle_tensor **bound; /* per output: bound to the executor, or NULL */
  hgo_array *outs;       /* per output: what hgo_outputs gave, whose references are the caller's */
  uint32_t n_outputs;
  uint32_t reserved;
  uintptr_t cause;
  heddle_error err;
} hgo_exec;

hgo_exec *hgo_exec_create(heddle_model *m, heddle_error *err, heddle_status *status);
void hgo_exec_free(hgo_exec *e);
/* What runs take most often goes as a number: cgo looks at every pointer, and these are never Go's. */
heddle_status hgo_run(uintptr_t exec);

/* The outputs of the last run as new tensors of the host, in outs; on failure there are none. */
heddle_status hgo_outputs(hgo_exec *e);

/* Both in one. */
heddle_status hgo_run_outputs(uintptr_t exec);

void hgo_tensor_drop(uintptr_t tensor);

/* New memory of the host with what data holds, which is bytes long. data may be NULL: zeros. In this and the next two,
 * HEDDLE_EINVAL where the tensor's size is another. */
heddle_status hgo_tensor(const void *data, uint64_t bytes, heddle_dtype dtype, const int64_t *shape, uint32_t ndim,
                         heddle_tensor **out, heddle_error *err);

/* The elements of a tensor to or from data, which is bytes long, wherever the tensor is. */
heddle_status hgo_tensor_read(const heddle_tensor *t, void *data, uint64_t bytes, heddle_error *err);
heddle_status hgo_tensor_write(heddle_tensor *t, const void *data, uint64_t bytes, heddle_error *err);

/* A copy on the host, row-major. */
heddle_status hgo_tensor_clone(const heddle_tensor *t, heddle_tensor **out, heddle_error *err);

/* Submits a request whose end is reported to heddleGoBatchEnded(handle), on another thread or in
 * heddle_batch_request_cancel. Arguments as those of heddle_batch_call. */
heddle_status hgo_batch_submit(heddle_batcher *b, heddle_tensor **inputs, size_t n, int32_t priority, uint32_t flags,
                               uint64_t deadline_ns, uint64_t wait_ns, uintptr_t handle, heddle_batch_request **out,
                               heddle_error *err);

/* The names of all functions, one after the other with a zero behind each; *out is freed with free. */
heddle_status hgo_names(char **out, size_t *n, heddle_error *err);

/* heddleGoKey is asked for keys, with a handle; 0: nothing is. When it returns, the one before is not asked any more. */
heddle_status hgo_key_callback(uintptr_t ask, heddle_error *err);

#endif
