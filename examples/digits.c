/* examples/digits.c: reads handwritten digits on several devices, with the public headers alone: digits FOLDER OUT
 * FOLDER is examples/digits. Runs all images on cpu and an OpenCL device together (where there is none it says why, and
 * takes sim), prints what that gave, and then the same images on other devices, which must give the same outputs.
 * Status 0: all of it was as it should be. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heddle/heddle.h"

#define PIXELS 64
#define CLASSES 10
#define MIN_ACCURACY 0.97
#define MAX_DIFFERENCE 1e-4

typedef struct digits {
  const char *folder;
  heddle_context *ctx;
  heddle_tensor *images, *labels, *expected; /* uint8 [n, 1, 8, 8], int64 [n], float32 [n, 10] */
  int64_t n;
  heddle_error err;
} digits;

/* How to run the images, and what came of it. */
typedef struct trial {
  const char *name, *devices;
  const char *place[2]; /* patterns of nodes that go elsewhere than to the first device */
  int opencl, vulkan;   /* needs such a device */
  float *outputs;       /* n rows of CLASSES */
  double seconds;       /* an image: set input, run, read output */
} trial;

static heddle_status load(const char *folder, const char *name, heddle_tensor **out, heddle_error *err) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return heddle_tensor_load_npy(path, out, err);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One image through an executor. */
static heddle_status classify(digits *d, heddle_executor *ex, int64_t i, float *out) {
  static const int64_t image_shape[] = {1, 1, 8, 8}, digit_shape[] = {1, CLASSES};
  float pixels[PIXELS];
  heddle_tensor *in = NULL, *result = NULL;
  const uint8_t *bytes = (const uint8_t *)heddle_tensor_data(d->images) + i * PIXELS;
  for (int k = 0; k < PIXELS; k++) pixels[k] = bytes[k];
  heddle_status s = heddle_tensor_wrap(pixels, HEDDLE_FLOAT32, image_shape, 4, NULL, NULL, NULL, &in, &d->err);
  if (s == HEDDLE_OK) s = heddle_tensor_wrap(out, HEDDLE_FLOAT32, digit_shape, 2, NULL, NULL, NULL, &result, &d->err);
  if (s == HEDDLE_OK) s = heddle_executor_set_input_by_name(ex, "image", in, &d->err);
  if (s == HEDDLE_OK) s = heddle_executor_run(ex, HEDDLE_FOREVER, &d->err);
  if (s == HEDDLE_OK) s = heddle_executor_get_output(ex, 0, result, &d->err);
  heddle_tensor_release(in);
  heddle_tensor_release(result);
  return s;
}

/* The first lines of the plan: devices, nodes, copies, memory. */
static heddle_status print_plan(digits *d, heddle_executor *ex) {
  char *text = NULL;
  heddle_status s = heddle_executor_explain(ex, HEDDLE_EXPLAIN_TEXT, &text, &d->err);
  if (s != HEDDLE_OK) return s;
  const char *end = strstr(text, "\n\n");
  printf("%.*s\n", end != NULL ? (int)(end - text) : (int)strlen(text), text);
  heddle_free(text);
  return HEDDLE_OK;
}

static heddle_status trace(digits *d, heddle_executor *ex, const char *path) {
  float scratch[CLASSES];
  heddle_status s = heddle_trace_begin(d->ctx, &d->err);
  for (int64_t i = 0; i < 3 && i < d->n && s == HEDDLE_OK; i++) s = classify(d, ex, i, scratch);
  return s == HEDDLE_OK ? heddle_trace_write(d->ctx, path, &d->err) : s;
}

/* All images; trace_path, where it is not NULL, gets a trace of three of them, and the plan is printed. */
static heddle_status run_trial(digits *d, trial *t, const char *trace_path) {
  char graph[1024];
  heddle_model *model = NULL;
  heddle_executor *ex = NULL;
  heddle_model_options options = {.struct_size = sizeof options, .devices = t->devices};
  options.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS; /* what the file says of devices: here it is for t to say */
  options.place = t->place;
  while (options.n_place < 2 && t->place[options.n_place] != NULL) options.n_place++;
  snprintf(graph, sizeof graph, "%s/digits.json", d->folder);
  t->outputs = calloc((size_t)d->n, CLASSES * sizeof *t->outputs);
  if (t->outputs == NULL) return HEDDLE_ENOMEM;

  heddle_status s = heddle_model_load(d->ctx, graph, NULL, &options, &model, &d->err);
  if (s == HEDDLE_OK) s = heddle_executor_create(model, &ex, &d->err);
  if (s == HEDDLE_OK && trace_path != NULL) s = print_plan(d, ex);
  if (s == HEDDLE_OK) s = classify(d, ex, 0, t->outputs); /* the first run also warms up */
  double start = now();
  for (int64_t i = 0; i < d->n && s == HEDDLE_OK; i++) s = classify(d, ex, i, t->outputs + i * CLASSES);
  t->seconds = (now() - start) / (double)d->n;
  if (s == HEDDLE_OK && trace_path != NULL) s = trace(d, ex, trace_path);
  heddle_executor_release(ex);
  heddle_model_release(model);
  return s;
}

static void print_devices(const digits *d) {
  printf("devices found:\n");
  for (size_t i = 0; i < heddle_context_device_count(d->ctx); i++) {
    heddle_device_info info = {.struct_size = sizeof info};
    if (heddle_device_get_info(heddle_context_device(d->ctx, i), &info, NULL) == HEDDLE_OK)
      printf("  %-8s %s\n", info.name, info.product);
  }
  printf("\n");
}

static double accuracy(const digits *d, const float *outputs) {
  const int64_t *labels = heddle_tensor_data(d->labels);
  int64_t right = 0;
  for (int64_t i = 0; i < d->n; i++) {
    int best = 0;
    for (int k = 1; k < CLASSES; k++)
      if (outputs[i * CLASSES + k] > outputs[i * CLASSES + best]) best = k;
    right += best == labels[i];
  }
  printf("\naccuracy: %" PRId64 " of %" PRId64 " held-back digits right, %.2f %%\n", right, d->n,
         100.0 * (double)right / (double)d->n);
  return (double)right / (double)d->n;
}

/* Not a number counts as infinitely far. */
static double difference(const digits *d, const float *a, const float *b) {
  double worst = 0;
  for (int64_t i = 0; i < d->n * CLASSES; i++) {
    double x = fabs((double)a[i] - (double)b[i]);
    if (!(x <= worst)) worst = isnan(x) ? INFINITY : x;
  }
  return worst;
}

/* Whether there is an OpenCL device; says why not. */
static int has_opencl(digits *d) {
  heddle_device *dev = NULL;
  if (heddle_context_find_device(d->ctx, "opencl:0", &dev, &d->err) == HEDDLE_OK) return 1;
  printf("no OpenCL device, so the demo goes on with sim, an accelerator in software:\n  %s\n\n", d->err.text);
  return 0;
}

/* The first trial that can be run is the one that is shown. */
static const trial all_trials[] = {
    {.name = "cpu + opencl", .devices = "cpu,opencl:0", .place = {"wide*=opencl:0"}, .opencl = 1},
    {.name = "cpu + sim", .devices = "cpu,sim:0", .place = {"wide*=sim:0"}},
    {.name = "cpu + opencl + sim",
     .devices = "cpu,opencl:0,sim:0",
     .place = {"wide*=opencl:0", "fine*=sim:0"},
     .opencl = 1},
    {.name = "cpu + sim x 2", .devices = "cpu,sim:0,sim:1", .place = {"wide*=sim:0", "fine*=sim:1"}},
    {.name = "cpu alone", .devices = "cpu"},
    {.name = "opencl alone", .devices = "opencl:0", .opencl = 1},
    {.name = "sim alone", .devices = "sim:0"},
    {.name = "vulkan alone", .devices = "vulkan:0", .vulkan = 1},
    {.name = "cpu + opencl + vulkan",
     .devices = "cpu,opencl:0,vulkan:0",
     .place = {"wide*=opencl:0", "fine*=vulkan:0"},
     .opencl = 1,
     .vulkan = 1}};

enum { TRIALS = sizeof all_trials / sizeof all_trials[0] };

static int check(digits *d, const char *out_dir) {
  trial trials[TRIALS];
  char path[1024];
  heddle_device *vulkan = NULL;
  int n = 0, good = 1, opencl;
  snprintf(path, sizeof path, "%s/trace.json", out_dir);
  print_devices(d);
  opencl = has_opencl(d);
  heddle_context_find_device(d->ctx, "vulkan:0", &vulkan, NULL);
  for (int i = 0; i < TRIALS; i++) {
    if (all_trials[i].opencl && !opencl) continue;
    if (all_trials[i].vulkan && vulkan == NULL) continue;
    trials[n++] = all_trials[i];
  }
  for (int i = 0; i < n; i++) {
    if (run_trial(d, &trials[i], i == 0 ? path : NULL) != HEDDLE_OK) {
      fprintf(stderr, "digits: %s: %s\n", trials[i].name, d->err.text[0] != '\0' ? d->err.text : "out of memory");
      good = 0;
      break;
    }
    if (i == 0) {
      good = accuracy(d, trials[0].outputs) >= MIN_ACCURACY && good;
      printf(
          "time: %.1f us an image\ntrace: %s\n\noutputs on other devices, against what was calculated in float64 (at "
          "most %g apart):\n",
          trials[0].seconds * 1e6, path, MAX_DIFFERENCE);
    }
    double far = difference(d, trials[i].outputs, heddle_tensor_data(d->expected));
    double from_first = difference(d, trials[i].outputs, trials[0].outputs);
    int same = far <= MAX_DIFFERENCE && from_first <= MAX_DIFFERENCE;
    printf("  %-21s %8.2g apart, %8.1f us an image  %s\n", trials[i].name, far, trials[i].seconds * 1e6,
           same ? "same" : "DIFFERENT");
    good = good && same;
  }
  for (int i = 0; i < n; i++) free(trials[i].outputs);
  return good;
}

/* The files hold what the program expects of them. */
static int fits(const digits *d) {
  heddle_dtype have = heddle_tensor_dtype(d->images);
  uint64_t n = (uint64_t)d->n;
  return have.code == HEDDLE_DTYPE_UINT && have.bits == 8 && n > 0 && heddle_tensor_bytes(d->images) == n * PIXELS &&
         heddle_tensor_bytes(d->labels) == n * sizeof(int64_t) &&
         heddle_tensor_bytes(d->expected) == n * CLASSES * sizeof(float);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "digits FOLDER OUT: FOLDER is examples/digits, OUT is where trace.json goes\n");
    return 2;
  }
  digits d = {.folder = argv[1]};
  int good = 0;
  heddle_status s = heddle_context_create(NULL, 0, NULL, NULL, &d.ctx, &d.err);
  if (s == HEDDLE_OK) s = load(d.folder, "images.npy", &d.images, &d.err);
  if (s == HEDDLE_OK) s = load(d.folder, "labels.npy", &d.labels, &d.err);
  if (s == HEDDLE_OK) s = load(d.folder, "expected.npy", &d.expected, &d.err);
  if (s != HEDDLE_OK) {
    fprintf(stderr, "digits: %s\n", d.err.text);
  } else {
    d.n = heddle_tensor_ndim(d.images) > 0 ? heddle_tensor_shape(d.images)[0] : 0;
    if (fits(&d)) good = check(&d, argv[2]);
    else fprintf(stderr, "digits: %s: images, labels and expected outputs do not belong together\n", d.folder);
  }
  heddle_tensor_release(d.images);
  heddle_tensor_release(d.labels);
  heddle_tensor_release(d.expected);
  heddle_context_release(d.ctx);
  return good ? 0 : 1;
}
