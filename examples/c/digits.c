/* examples/c/digits.c: reads 360 handwritten digits and counts how many it gets right: digits FOLDER [DEVICES]
 * FOLDER is examples/digits, DEVICES a list in order of preference such as cpu,sim:0. */
#include <inttypes.h>
#include <stdio.h>

#include "heddle/heddle.h"

enum { PIXELS = 64, CLASSES = 10 };

typedef struct digits {
  heddle_context *context;
  heddle_model *model;
  heddle_executor *executor;
  heddle_tensor *images, *labels; /* uint8 [n, 1, 8, 8], int64 [n] */
  heddle_tensor *in, *out;        /* of one image: float32 [1, 1, 8, 8] and [1, 10] */
} digits;

static heddle_status load(digits *d, const char *folder, const char *devices, heddle_error *err) {
  static const int64_t in_shape[] = {1, 1, 8, 8}, out_shape[] = {1, CLASSES};
  char graph[1024], images[1024], labels[1024];
  heddle_model_options options = {.struct_size = sizeof options, .devices = devices};
  options.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS; /* the file has wishes of its own about devices */
  snprintf(graph, sizeof graph, "%s/digits.json", folder);
  snprintf(images, sizeof images, "%s/images.npy", folder);
  snprintf(labels, sizeof labels, "%s/labels.npy", folder);
  heddle_status s = heddle_context_create(NULL, 0, NULL, NULL, &d->context, err);
  if (s == HEDDLE_OK) s = heddle_model_load(d->context, graph, NULL, &options, &d->model, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(d->model, &d->executor, err);
  if (s == HEDDLE_OK) s = heddle_tensor_load_npy(images, &d->images, err);
  if (s == HEDDLE_OK) s = heddle_tensor_load_npy(labels, &d->labels, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, in_shape, 4, &d->in, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, out_shape, 2, &d->out, err);
  /* The runs read and write these two themselves. */
  if (s == HEDDLE_OK) s = heddle_executor_bind_input(d->executor, 0, d->in, err);
  if (s == HEDDLE_OK) s = heddle_executor_bind_output(d->executor, 0, d->out, err);
  return s;
}

static void unload(digits *d) {
  heddle_tensor_release(d->in);
  heddle_tensor_release(d->out);
  heddle_tensor_release(d->images);
  heddle_tensor_release(d->labels);
  heddle_executor_release(d->executor);
  heddle_model_release(d->model);
  heddle_context_release(d->context);
}

/* Which digit an image shows. */
static heddle_status read_digit(digits *d, const uint8_t *image, int *out, heddle_error *err) {
  float *pixels = heddle_tensor_data(d->in);
  const float *likely = heddle_tensor_data(d->out);
  for (int i = 0; i < PIXELS; i++) pixels[i] = image[i];
  heddle_status s = heddle_executor_run(d->executor, HEDDLE_FOREVER, err);
  *out = 0;
  for (int i = 1; i < CLASSES; i++)
    if (likely[i] > likely[*out]) *out = i;
  return s;
}

int main(int argc, char **argv) {
  digits d = {0};
  heddle_error err;
  int64_t right = 0, n = 0;
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "digits FOLDER [DEVICES]\n");
    return 2;
  }
  heddle_status s = load(&d, argv[1], argc > 2 ? argv[2] : NULL, &err);
  if (s == HEDDLE_OK) {
    const uint8_t *images = heddle_tensor_data(d.images);
    const int64_t *labels = heddle_tensor_data(d.labels);
    n = heddle_tensor_shape(d.labels)[0];
    for (int64_t i = 0; i < n && s == HEDDLE_OK; i++) {
      int digit;
      s = read_digit(&d, images + i * PIXELS, &digit, &err);
      right += digit == labels[i];
    }
  }
  if (s == HEDDLE_OK) printf("%" PRId64 " of %" PRId64 " digits right\n", right, n);
  else fprintf(stderr, "digits: %s\n", err.text);
  unload(&d);
  return s == HEDDLE_OK ? 0 : 1;
}
