/* modules/tvm/executor_create.c: the registered functions that make executors of a graph's JSON, a library and devices,
 * and those that read and write parameters. */
#include "modules/tvm/executor_object.h"

#include "core/alloc.h"

/* (json, module or null, [null,] type, number, [type, number]...) */
static int create(const char *method, bool debug, const heddle__word *args, const int32_t *codes, int32_t n,
                  heddle__word *ret, int32_t *ret_code) {
  heddle__args a = {method, args, codes, n};
  const char *graph = NULL;
  size_t bytes = 0;
  heddle_object *library = NULL;
  uint32_t n_devices = 0;
  int32_t i = 2;
  if (!heddle__args_text(&a, 0, &graph, &bytes) || !heddle__args_object(&a, 1, &library)) return -1;
  if (i < n && codes[i] == PACKED_FUNCTION)
    return heddle__refuse(method,
                          "argument 2: a function that looks linked parameters up is not called: give null, and "
                          "the parameters with load_params");
  if (i < n && codes[i] == PACKED_NULL) i++;
  int32_t(*devices)[2] = heddle__alloc((size_t)n + 1, sizeof *devices);
  if (devices == NULL) return heddle__refuse(method, "out of memory");
  heddle_object *made = NULL;
  if (heddle__args_devices(&a, i, devices, &n_devices))
    made = heddle__executor_object(graph, bytes, library, (const int32_t(*)[2])devices, n_devices, NULL, 0, debug);
  heddle__free(devices);
  return heddle__give_object(made, ret, ret_code);
}

HEDDLE__METHOD(heddle__executor_create) {
  (void)self;
  return create("tvm.graph_executor.create", false, args, codes, n, ret, ret_code);
}

HEDDLE__METHOD(heddle__executor_create_debug) {
  (void)self;
  return create("tvm.graph_executor_debug.create", true, args, codes, n, ret, ret_code);
}

/* ---- parameters: what TVM has as a map is a blob here */

static int give(const char *method, heddle_status s, heddle_params *params, heddle_error *err, heddle__word *ret,
                int32_t *ret_code) {
  void *blob = NULL;
  size_t bytes = 0;
  if (s == HEDDLE_OK) s = heddle_params_bytes(params, &blob, &bytes, err);
  int rc = s == HEDDLE_OK ? heddle__give_bytes(blob, bytes, ret, ret_code) : heddle__refuse_error(method, err);
  heddle_free(blob);
  heddle_params_release(params);
  return rc;
}

/* A blob as it is written here, once it was read and found good. */
static int rewrite(const heddle__args *a, heddle__word *ret, int32_t *ret_code) {
  const char *data = NULL;
  size_t bytes = 0;
  heddle_params *params = NULL;
  heddle_error err = {0};
  if (!heddle__args_count(a, 1, 1) || !heddle__args_text(a, 0, &data, &bytes)) return -1;
  heddle_status s = heddle_params_parse(data, bytes, "params", NULL, &params, &err);
  return give(a->method, s, params, &err, ret, ret_code);
}

HEDDLE__METHOD(heddle__params_load) {
  heddle__args a = {"runtime.LoadParams", args, codes, n};
  (void)self;
  return rewrite(&a, ret, ret_code);
}

/* (name, array, [name, array]...), or a blob. */
HEDDLE__METHOD(heddle__params_save) {
  heddle__args a = {"runtime.SaveParams", args, codes, n};
  (void)self;
  if (n == 1) return rewrite(&a, ret, ret_code);
  if (n % 2 != 0) return heddle__refuse(a.method, "expected a blob, or pairs of a name and an array");
  const char **names = heddle__alloc((size_t)n / 2, sizeof *names);
  heddle_tensor **values = heddle__alloc((size_t)n / 2, sizeof(heddle_tensor *));
  bool good = names != NULL && values != NULL;
  if (!good) heddle__refuse(a.method, "out of memory");
  for (int32_t i = 0; i < n / 2 && good; i++)
    good = heddle__args_name(&a, 2 * i, &names[i]) && (values[i] = heddle__args_tensor(&a, 2 * i + 1)) != NULL;
  int rc = -1;
  if (good) {
    heddle_params *params = NULL;
    heddle_error err = {0};
    heddle_status s = heddle_params_create(names, values, (size_t)n / 2, &params, &err);
    rc = give(a.method, s, params, &err, ret, ret_code);
  }
  for (int32_t i = 0; i < n / 2 && values != NULL; i++) heddle_tensor_release(values[i]);
  heddle__free((void *)names);
  heddle__free((void *)values);
  return rc;
}
