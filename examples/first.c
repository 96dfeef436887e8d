/* examples/first.c: loads a model, shows it an image, prints what it sees: first [FOLDER], which is examples/digits. */
#include <stdio.h>
#include <stdlib.h>

#include "heddle/heddle.h"

static void must(heddle_status status, const heddle_error *err) {
  if (status == HEDDLE_OK) return;
  fprintf(stderr, "%s\n", err->text);
  exit(1);
}

int main(int argc, char **argv) {
  char path[1024];
  snprintf(path, sizeof path, "%s/digits.json", argc > 1 ? argv[1] : "examples/digits");
  static float image[64]; /* 8 x 8 pixels from 0 to 16: an upright stroke */
  for (int row = 0; row < 8; row++) image[8 * row + 3] = image[8 * row + 4] = 16;

  heddle_context *ctx;
  heddle_model *model;
  heddle_executor *executor;
  heddle_tensor *in, *out;
  heddle_error err;
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu,sim:0"};
  must(heddle_context_create(NULL, 0, NULL, NULL, &ctx, &err), &err);
  must(heddle_model_load(ctx, path, NULL, &options, &model, &err), &err);
  must(heddle_executor_create(model, &executor, &err), &err);
  must(heddle_tensor_wrap(image, HEDDLE_FLOAT32, (int64_t[]){1, 1, 8, 8}, 4, NULL, NULL, NULL, &in, &err), &err);
  must(heddle_executor_set_input_by_name(executor, "image", in, &err), &err);
  must(heddle_executor_run(executor, HEDDLE_FOREVER, &err), &err);
  must(heddle_executor_view_output(executor, 0, &out, &err), &err);
  for (int i = 0; i < 10; i++) printf("%d: %4.1f %%\n", i, 100 * ((float *)heddle_tensor_data(out))[i]);

  heddle_tensor_release(out);
  heddle_tensor_release(in);
  heddle_executor_release(executor);
  heddle_model_release(model);
  heddle_context_release(ctx);
}
