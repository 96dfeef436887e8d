/* bench/bench_python.c: times calls of small models from C as their users write them, as requested on standard input.
 * Arguments: the folder of NAME.onnx with inputs x and y. Each line "NAME RUNS" gives one line: nanoseconds of a call, the
 * mean over RUNS. A call is what Python's does: two values in, a run, a result in memory of the caller's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

#define MOST 8

typedef struct model {
  char name[64];
  heddle_executor *ex;
  heddle_tensor *x, *y, *z;
} model;

static heddle_tensor *like_input(heddle_executor *ex, uint32_t i) {
  heddle_error err;
  heddle_io_info info = {.struct_size = sizeof info};
  heddle_tensor *t;
  check(heddle_executor_input_info(ex, i, &info, &err), &err);
  check(heddle_tensor_create(NULL, info.dtype, info.shape, info.ndim, &t, &err), &err);
  return t;
}

static model *find_model(heddle_context *ctx, const char *folder, model *models, const char *name) {
  heddle_error err;
  heddle_model *m;
  char path[512];
  size_t i = 0;
  for (; i < MOST && models[i].ex != NULL; i++)
    if (strcmp(models[i].name, name) == 0) return &models[i];
  if (i == MOST || strlen(name) >= sizeof models[i].name) exit(1);
  strcpy(models[i].name, name);
  snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu"};
  check(heddle_model_load(ctx, path, NULL, &options, &m, &err), &err);
  check(heddle_executor_create(m, &models[i].ex, &err), &err);
  heddle_model_release(m);
  models[i].x = like_input(models[i].ex, 0);
  models[i].y = like_input(models[i].ex, 1);
  models[i].z = like_input(models[i].ex, 0);
  return &models[i];
}

static void call(const model *m) {
  heddle_error err;
  check(heddle_executor_set_input(m->ex, 0, m->x, &err), &err);
  check(heddle_executor_set_input(m->ex, 1, m->y, &err), &err);
  check(heddle_executor_run(m->ex, HEDDLE_FOREVER, &err), &err);
  check(heddle_executor_get_output(m->ex, 0, m->z, &err), &err);
}

int main(int argc, char **argv) {
  heddle_error err;
  heddle_context *ctx;
  model models[MOST] = {0};
  heddle_setting settings[] = {{"threads", "1"}};
  if (argc != 2) return 2;
  check(heddle_context_create(settings, 1, NULL, NULL, &ctx, &err), &err);
  char line[128], name[64];
  int runs;
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%63s %d", name, &runs) == 2 && runs > 0) {
    const model *m = find_model(ctx, argv[1], models, name);
    double start = now_ns();
    for (int i = 0; i < runs; i++) call(m);
    printf("%.3f\n", (now_ns() - start) / runs);
    fflush(stdout);
  }
  for (size_t i = 0; i < MOST && models[i].ex != NULL; i++) {
    heddle_tensor_release(models[i].x);
    heddle_tensor_release(models[i].y);
    heddle_tensor_release(models[i].z);
    heddle_executor_release(models[i].ex);
  }
  heddle_context_release(ctx);
  return 0;
}
