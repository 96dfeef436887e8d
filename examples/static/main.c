/* examples/static/main.c: reads 360 handwritten digits in a program into which libheddle and the plugin cpu are linked:
 * digits FOLDER, where FOLDER is examples/digits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heddle/heddle.h"
#ifdef LINKED_MODEL
#include LINKED_MODEL /* the header of heddle link */
#endif

enum { PIXELS = 64, CLASSES = 10 };

/* heddle_plugin_entry of the plugin cpu, as libheddle_plugin_cpu.a calls it. */
const struct heddle_plugin *heddle_plugin_cpu_entry(const struct heddle_host *host, heddle_error *err);

typedef struct digits {
  heddle_context *context;
  heddle_model *model;
  heddle_executor *executor;
  heddle_tensor *images, *labels; /* uint8 [n, 1, 8, 8], int64 [n] */
  heddle_tensor *in, *out;        /* of one image: float32 [1, 1, 8, 8] and [1, 10] */
} digits;

/* From the program's own memory, or from a file of the folder. */
static heddle_status load_model(digits *d, const char *folder, const heddle_model_options *options, heddle_error *err) {
#ifdef LINKED_MODEL
  (void)folder;
  return heddle_model_load_memory(d->context, digits_model, sizeof digits_model, "digits", options, &d->model, err);
#else
  char graph[1024];
  snprintf(graph, sizeof graph, "%s/digits.json", folder);
  return heddle_model_load(d->context, graph, NULL, options, &d->model, err);
#endif
}

static heddle_status load(digits *d, const char *folder, heddle_error *err) {
  static const int64_t in_shape[] = {1, 1, 8, 8}, out_shape[] = {1, CLASSES};
  char images[1024], labels[1024];
  heddle_model_options options = {.struct_size = sizeof options, .devices = "cpu"};
  options.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS;
  snprintf(images, sizeof images, "%s/images.npy", folder);
  snprintf(labels, sizeof labels, "%s/labels.npy", folder);
  heddle_status s = heddle_plugin_register(heddle_plugin_cpu_entry, err);
  if (s == HEDDLE_OK) s = heddle_context_create(NULL, 0, NULL, NULL, &d->context, err);
  if (s == HEDDLE_OK) s = load_model(d, folder, &options, err);
  if (s == HEDDLE_OK) s = heddle_executor_create(d->model, &d->executor, err);
  if (s == HEDDLE_OK) s = heddle_tensor_load_npy(images, &d->images, err);
  if (s == HEDDLE_OK) s = heddle_tensor_load_npy(labels, &d->labels, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, in_shape, 4, &d->in, err);
  if (s == HEDDLE_OK) s = heddle_tensor_create(NULL, HEDDLE_FLOAT32, out_shape, 2, &d->out, err);
  if (s == HEDDLE_OK) s = heddle_executor_bind_input(d->executor, 0, d->in, err);
  if (s == HEDDLE_OK) s = heddle_executor_bind_output(d->executor, 0, d->out, err);
  return s;
}

/* Every plugin of this program is linked in. */
static heddle_status check_plugins(const digits *d, heddle_error *err) {
  for (size_t i = 0; i < heddle_context_plugin_count(d->context); i++) {
    heddle_plugin_info info = {.struct_size = sizeof info};
    heddle_status s = heddle_context_plugin(d->context, i, &info, err);
    if (s != HEDDLE_OK) return s;
    printf("%s: %s, %s\n", info.path, info.name, info.used != 0 ? "used" : info.reason);
  }
  return HEDDLE_OK;
}

static heddle_status read_all(digits *d, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  const uint8_t *images = heddle_tensor_data(d->images);
  const int64_t *labels = heddle_tensor_data(d->labels), n = heddle_tensor_shape(d->images)[0];
  float *pixels = heddle_tensor_data(d->in);
  const float *likely = heddle_tensor_data(d->out);
  int64_t right = 0;
  for (int64_t k = 0; k < n && s == HEDDLE_OK; k++) {
    int best = 0;
    for (int i = 0; i < PIXELS; i++) pixels[i] = images[k * PIXELS + i];
    s = heddle_executor_run(d->executor, HEDDLE_FOREVER, err);
    for (int i = 1; i < CLASSES; i++)
      if (likely[i] > likely[best]) best = i;
    right += best == labels[k];
  }
  if (s == HEDDLE_OK) printf("%" PRId64 " of %" PRId64 " digits are right\n", right, n);
  return s;
}

int main(int argc, char **argv) {
  digits d;
  heddle_error err = {0};
  memset(&d, 0, sizeof d);
  if (argc != 2) return fprintf(stderr, "usage: %s FOLDER (examples/digits)\n", argv[0]), 2;
  heddle_status s = load(&d, argv[1], &err);
  if (s == HEDDLE_OK) s = check_plugins(&d, &err);
  if (s == HEDDLE_OK) s = read_all(&d, &err);
  if (s != HEDDLE_OK) fprintf(stderr, "%s\n", err.text);
  heddle_tensor_release(d.in);
  heddle_tensor_release(d.out);
  heddle_tensor_release(d.images);
  heddle_tensor_release(d.labels);
  heddle_executor_release(d.executor);
  heddle_model_release(d.model);
  heddle_context_release(d.context);
  return s == HEDDLE_OK ? 0 : 1;
}
