/* Two models that are linked into the program (scale.c, shift.c), each found by its prefix and run on cpu. */
#include <stdio.h>
#include <string.h>

#include "heddle/heddle.h"

static heddle_status run_library(heddle_context *ctx, const char *prefix, heddle_error *err) {
  const float input[] = {1, 2, 3, 4};
  const int64_t n = 4;
  heddle_module *library = NULL;
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  heddle_model *model = NULL;
  heddle_executor *executor = NULL;
  heddle_tensor *x = NULL;

  heddle_status s = heddle_module_system(ctx, prefix, &library, err);
  if (s == HEDDLE_OK) s = heddle_model_unpack(library, NULL, &graph, &params, err);
  const heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu", .library = library};
  if (s == HEDDLE_OK) s = heddle_model_create(ctx, graph, params, &options, &model, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(model, &executor, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, &n, 1, &x, err);
  if (s == HEDDLE_OK) {
    memcpy(heddle_tensor_data(x), input, sizeof input);
    s = heddle_executor_set_input_by_name(executor, "x", x, err);
  }
  if (s == HEDDLE_OK) s = heddle_executor_run(executor, HEDDLE_FOREVER, err);
  if (s == HEDDLE_OK) s = heddle_executor_get_output(executor, 0, x, err);
  if (s == HEDDLE_OK) {
    const float *out = heddle_tensor_data(x);
    printf("%s %s: %g %g %g %g\n", prefix, heddle_module_function(library, 0), out[0], out[1], out[2], out[3]);
  }
  heddle_tensor_release(x);
  heddle_executor_release(executor);
  heddle_model_release(model);
  heddle_params_release(params);
  heddle_graph_release(graph);
  heddle_module_release(library);
  return s;
}

int main(void) {
  heddle_context *ctx = NULL;
  heddle_error err = {0};
  heddle_status s = heddle_context_create(NULL, 0, NULL, NULL, &ctx, &err);
  if (s == HEDDLE_OK) s = run_library(ctx, "scale_", &err);
  if (s == HEDDLE_OK) s = run_library(ctx, "shift_", &err);
  heddle_context_release(ctx);
  if (s != HEDDLE_OK) fprintf(stderr, "%s\n", err.text);
  return s != HEDDLE_OK;
}
