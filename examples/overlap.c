/* examples/overlap.c: two executors of one model work at the same time, each with memory of the caller's in place of
 * its own: overlap [FOLDER], which is examples/digits. While one image is on its way the next one is prepared. */
#include <stdio.h>
#include <stdlib.h>

#include "heddle/heddle.h"

enum { LANES = 2, IMAGES = 20, PIXELS = 64, DIGITS = 10 };

typedef struct lane {
  heddle_executor *executor;
  heddle_tensor *in, *out;
  float pixels[PIXELS], digits[DIGITS];
  int pending;
} lane;

static heddle_error err;

static void must(heddle_status status) {
  if (status == HEDDLE_OK) return;
  fprintf(stderr, "%s: %s\n", heddle_status_name(status), err.text);
  exit(1);
}

static void open_lane(lane *l, heddle_model *model) {
  const int64_t image[] = {1, 1, 8, 8}, digits[] = {1, DIGITS};
  must(heddle_executor_create(model, &l->executor, &err));
  must(heddle_tensor_wrap(l->pixels, HEDDLE_FLOAT32, image, 4, NULL, NULL, NULL, &l->in, &err));
  must(heddle_tensor_wrap(l->digits, HEDDLE_FLOAT32, digits, 2, NULL, NULL, NULL, &l->out, &err));
  must(heddle_executor_bind_input(l->executor, 0, l->in, &err));
  must(heddle_executor_bind_output(l->executor, 0, l->out, &err));
}

static void close_lane(lane *l) {
  heddle_executor_release(l->executor);
  heddle_tensor_release(l->in);
  heddle_tensor_release(l->out);
}

/* An upright stroke that moves to the right. */
static void draw(lane *l, int n) {
  for (int i = 0; i < PIXELS; i++) l->pixels[i] = i % 8 == n % 8 || i % 8 == (n + 1) % 8 ? 16.0f : 0.0f;
}

static void finish(lane *l) {
  int best = 0;
  if (!l->pending) return;
  must(heddle_executor_wait(l->executor, 5 * UINT64_C(1000000000), &err));
  for (int i = 1; i < DIGITS; i++)
    if (l->digits[i] > l->digits[best]) best = i;
  printf("%d (%.0f %%)\n", best, 100 * (double)l->digits[best]);
  l->pending = 0;
}

int main(int argc, char **argv) {
  static lane lanes[LANES];
  char path[1024];
  heddle_context *ctx;
  heddle_model *model;
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu,sim:0"};
  snprintf(path, sizeof path, "%s/digits.json", argc > 1 ? argv[1] : "examples/digits");
  must(heddle_context_create(NULL, 0, NULL, NULL, &ctx, &err));
  must(heddle_model_load(ctx, path, NULL, &options, &model, &err));
  for (int i = 0; i < LANES; i++) open_lane(&lanes[i], model);
  for (int n = 0; n < IMAGES; n++) {
    lane *l = &lanes[n % LANES];
    finish(l);
    draw(l, n);
    must(heddle_executor_start(l->executor, &err));
    l->pending = 1;
  }
  for (int i = 0; i < LANES; i++) finish(&lanes[(IMAGES + i) % LANES]);
  for (int i = 0; i < LANES; i++) close_lane(&lanes[i]);
  heddle_model_release(model);
  heddle_context_release(ctx);
}
