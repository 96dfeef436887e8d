/* Convolutions by cuDNN: descriptors and the algorithm are made once, in prepare; a run is one call, and one more for a bias.
 * A handle has the stream as its state, so a device's is guarded while a call is enqueued. In float32 without tensor cores;
 * with precision fast they round to TF32 where a device has that. */
#include "cudnn_api.h"
#include "libraries.h"

/* Fewer multiplications than this are left to the kernels; scratch memory is a few times what is read and written. Stated,
 * not measured. */
#define LEAST_WORK (32.0 * 32.0 * 32.0)
#define LEAST_WORKSPACE UINT64_C(0x40000)
#define MOST_WORKSPACE UINT64_C(0x4000000)
enum { FIRST_WITH_FMA = 8000, NINE = 90000 };

typedef struct dnn_state {
  const dnn_calls *calls;
  void *handle;
  pthread_mutex_t lock; /* guards the handle's stream */
} dnn_state;

typedef struct dnn_step {
  gpu_library_step head;
  void *x, *w, *y, *bias, *conv;
  dnn_choice choices[DNN_ALGORITHMS]; /* the heuristics', best first */
  int n_choices, at;                  /* at: the next that was not tried */
  bool round;                         /* TF32 is allowed; else exact is the arithmetic */
  int exact;
  uint64_t most; /* bytes of workspace */
  int algo;
  uint64_t workspace;
} dnn_step;

/* A convolution in cuDNN's words: dims dimensions, the first two images and channels. */
typedef struct shape {
  int dims;
  int x[DNN_MOST_DIMS], w[DNN_MOST_DIMS], y[DNN_MOST_DIMS], bias[DNN_MOST_DIMS];
  int pad[K_SPATIAL], stride[K_SPATIAL], dilation[K_SPATIAL];
  int groups;
} shape;

static void version(const void *calls, char *buf, size_t bytes) {
  const size_t number = ((const dnn_calls *)calls)->version();
  /* 9.19.0 is 91900, 8.9.7 is 8907. */
  const size_t major = number >= NINE ? 10000 : 1000;
  snprintf(buf, bytes, "%zu.%zu.%zu", number / major, number % major / 100, number % 100);
}

/* 13000 is CUDA 13.0. */
static int made_for(const void *calls) {
  const dnn_calls *dnn = calls;
  return dnn->cudart != NULL ? (int)(dnn->cudart() / 1000) : 0;
}

/* ---------------------------------------------------------------- which convolutions */

static bool fits(int64_t x) {
  return x >= 0 && x <= INT32_MAX;
}

/* Positions are those that equal pads before and after give; what has others is the kernels'. */
static bool even_pads(const k_conv *c, int d) {
  const int64_t reach = (c->window[d] - 1) * c->dilation[d] + 1;
  return (c->in[d] + 2 * c->pad[d] - reach) / c->stride[d] + 1 == c->out[d] && c->in[d] + 2 * c->pad[d] >= reach;
}

static bool shape_of(const k_step *step, shape *s) {
  const k_conv *c = &step->params.conv;
  const bool flat = c->in[0] == 1 && c->out[0] == 1 && c->window[0] == 1 && c->pad[0] == 0;
  const int first = flat ? 1 : 0;
  bool fine = fits(step->images) && fits(c->in_channels * c->groups) && fits(c->m * c->groups);
  memset(s, 0, sizeof *s);
  s->dims = 2 + K_SPATIAL - first;
  s->groups = (int)c->groups;
  s->x[0] = s->y[0] = (int)step->images;
  s->x[1] = (int)(c->in_channels * c->groups);
  s->y[1] = s->w[0] = s->bias[1] = (int)(c->m * c->groups);
  s->w[1] = (int)c->in_channels;
  s->bias[0] = 1;
  for (int d = first; d < K_SPATIAL; d++) {
    const int at = d - first;
    fine = fine && fits(c->in[d]) && fits(c->out[d]) && fits(c->window[d]) && fits(c->pad[d]) && fits(c->stride[d]) &&
           fits(c->dilation[d]) && even_pads(c, d);
    s->x[2 + at] = (int)c->in[d];
    s->y[2 + at] = (int)c->out[d];
    s->w[2 + at] = (int)c->window[d];
    s->bias[2 + at] = 1;
    s->pad[at] = (int)c->pad[d];
    s->stride[at] = (int)c->stride[d];
    s->dilation[at] = (int)c->dilation[d];
  }
  return fine;
}

static uint64_t volume(const int *dim, int dims) {
  uint64_t n = 1;
  for (int d = 0; d < dims; d++) n *= (uint64_t)dim[d];
  return n;
}

static uint64_t most_workspace(const shape *s) {
  const uint64_t bytes = 4 * sizeof(float) * (volume(s->x, s->dims) + volume(s->y, s->dims));
  return bytes < LEAST_WORKSPACE ? LEAST_WORKSPACE : bytes > MOST_WORKSPACE ? MOST_WORKSPACE : bytes;
}

static bool takes(const gpu_info *info, const gpu_ask *ask, uint64_t *workspace) {
  shape s;
  (void)info;
  if (!ask->step->is_conv || !shape_of(ask->step, &s)) return false;
  if (volume(s.x, s.dims) > INT32_MAX || volume(s.y, s.dims) > INT32_MAX) return false; /* strides are ints */
  if ((double)volume(s.y, s.dims) * (double)ask->step->params.conv.k < LEAST_WORK) return false;
  *workspace = most_workspace(&s);
  return true;
}

/* ---------------------------------------------------------------- devices */

static heddle_status device_open(heddle_pdevice *dev, const void *calls, void **out, heddle_error *err) {
  const dnn_calls *dnn = calls;
  void *memory = NULL;
  heddle_status s = gpu_new(dev->host, sizeof(dnn_state), "cuDNN", &memory, err);
  if (s != HEDDLE_OK) return s;
  dnn_state *state = memory;
  state->calls = dnn;
  const int status = dnn->create(&state->handle);
  if (status != 0) {
    dev->host->free(dev->host->ctx, state);
    return p_fail(err, HEDDLE_EFAILED, status, "cudnnCreate: %s (%d)", dnn->words(status), status);
  }
  pthread_mutex_init(&state->lock, NULL);
  *out = state;
  return HEDDLE_OK;
}

static void device_close(heddle_pdevice *dev, void *memory) {
  dnn_state *state = memory;
  state->calls->destroy(state->handle);
  pthread_mutex_destroy(&state->lock);
  dev->host->free(dev->host->ctx, state);
}

/* ---------------------------------------------------------------- prepare */

static int make_tensor(const dnn_calls *dnn, void **out, const int *dim, int dims) {
  int stride[DNN_MOST_DIMS];
  for (int d = dims - 1, step = 1; d >= 0; step *= dim[d--]) stride[d] = step;
  const int status = dnn->tensor_create(out);
  if (status != 0) *out = NULL;
  return status != 0 ? status : dnn->tensor_set(*out, DNN_FLOAT, dims, dim, stride);
}

static int make_all(const dnn_calls *dnn, const shape *s, bool bias, int math, dnn_step *step) {
  int status = make_tensor(dnn, &step->x, s->x, s->dims);
  if (status == 0) status = make_tensor(dnn, &step->y, s->y, s->dims);
  if (status == 0 && bias) status = make_tensor(dnn, &step->bias, s->bias, s->dims);
  if (status == 0 && (status = dnn->filter_create(&step->w)) != 0) step->w = NULL;
  if (status == 0) status = dnn->filter_set(step->w, DNN_FLOAT, DNN_NCHW, s->dims, s->w);
  if (status == 0 && (status = dnn->conv_create(&step->conv)) != 0) step->conv = NULL;
  if (status == 0)
    status = dnn->conv_set(step->conv, s->dims - 2, s->pad, s->stride, s->dilation, DNN_CROSS_CORRELATION, DNN_FLOAT);
  if (status == 0) status = dnn->conv_groups(step->conv, s->groups);
  if (status == 0) status = dnn->conv_math(step->conv, math);
  return status;
}

/* The arithmetic that an algorithm of the heuristics is to run with, since it is good only for its own; DNN_NO_MATH where
 * that would be less exact than asked. round: TF32 is allowed, float16, whose range is smaller, is not. Else exact is the one
 * without tensor cores, and an algorithm of the default one is tried with that. */
static int math_of(const dnn_choice *choice, bool round, int exact) {
  if (choice->math == DNN_CONVERSION_MATH) return DNN_NO_MATH;
  if (round) return choice->math;
  return choice->math == DNN_TENSOR_MATH ? DNN_NO_MATH : exact;
}

/* The next of the heuristics' algorithms that runs with an arithmetic that is allowed and whose workspace is there. With the
 * state's lock. */
static bool settle(const dnn_state *state, dnn_step *step) {
  const dnn_calls *dnn = state->calls;
  while (step->at < step->n_choices) {
    const dnn_choice *choice = &step->choices[step->at++];
    const int math = math_of(choice, step->round, step->exact);
    size_t bytes = 0;
    if (choice->status != 0 || math == DNN_NO_MATH || dnn->conv_math(step->conv, math) != 0) continue;
    if (dnn->workspace(state->handle, step->x, step->w, step->conv, step->y, choice->algo, &bytes) != 0) continue;
    if (bytes > step->most) continue;
    step->algo = choice->algo;
    step->workspace = bytes;
    return true;
  }
  return false;
}

static void say_algorithm(const dnn_step *step, char *why, size_t bytes) {
  snprintf(why, bytes, "algorithm %d%s", step->algo, step->round ? ", in TF32" : "");
}

static int choose(dnn_state *state, dnn_step *step, bool *found) {
  pthread_mutex_lock(&state->lock);
  const int status = state->calls->choose(state->handle, step->x, step->w, step->conv, step->y, DNN_ALGORITHMS,
                                          &step->n_choices, step->choices);
  *found = status == 0 && settle(state, step);
  pthread_mutex_unlock(&state->lock);
  return status;
}

static bool next(gpu_library_step *head, char *why, size_t bytes) {
  dnn_state *state = head->state;
  dnn_step *step = (dnn_step *)head;
  pthread_mutex_lock(&state->lock);
  const bool found = settle(state, step);
  pthread_mutex_unlock(&state->lock);
  if (found) say_algorithm(step, why, bytes);
  return found;
}

static void step_free(gpu_library_step *head) {
  dnn_step *step = (dnn_step *)head;
  const dnn_state *state = head->state;
  const dnn_calls *dnn = state->calls;
  void *const tensors[] = {step->x, step->y, step->bias};
  for (int i = 0; i < 3; i++) {
    if (tensors[i] != NULL) dnn->tensor_destroy(tensors[i]);
  }
  if (step->w != NULL) dnn->filter_destroy(step->w);
  if (step->conv != NULL) dnn->conv_destroy(step->conv);
  head->dev->host->free(head->dev->host->ctx, step);
}

static heddle_status prepare(heddle_pdevice *dev, void *memory, const gpu_ask *ask, gpu_library_step **out, char *why,
                             size_t bytes, heddle_error *err) {
  dnn_state *state = memory;
  const dnn_calls *dnn = state->calls;
  const bool round = ask->fast && dev->info->major >= CUDA_WIDE_TENSOR_CORES;
  const int math = !round && dnn->version() >= FIRST_WITH_FMA ? DNN_FMA_MATH : DNN_DEFAULT_MATH;
  void *block = NULL;
  bool found = false;
  gpu_scope scope;
  shape dims;
  shape_of(ask->step, &dims);
  heddle_status s = gpu_new(dev->host, sizeof(dnn_step), "a convolution", &block, err);
  if (s != HEDDLE_OK) return s;
  dnn_step *step = block;
  step->head.dev = dev;
  step->head.state = memory;
  step->round = round;
  step->exact = math;
  step->most = most_workspace(&dims);
  s = gpu_enter(dev, &scope, err);
  if (s != HEDDLE_OK) {
    step_free(&step->head);
    return s;
  }
  int status = make_all(dnn, &dims, ask->step->n_args == 4, math, step);
  if (status == 0) status = choose(state, step, &found);
  if (found) {
    say_algorithm(step, why, bytes);
    *out = &step->head;
  } else {
    snprintf(why, bytes, "%s (%d)", status != 0 ? dnn->words(status) : "it has no algorithm", status);
    step_free(&step->head);
  }
  gpu_leave(dev, &scope);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- run */

static heddle_status run_cudnn(gpu_library_step *head, heddle_pstream *stream, const gpu_address *operands,
                               gpu_address workspace, heddle_error *err) {
  static const float one = 1.0F, zero = 0.0F;
  const dnn_step *step = (const dnn_step *)head;
  dnn_state *state = head->state;
  const dnn_calls *dnn = state->calls;
  void *const w = (void *)(uintptr_t)operands[0], *const x = (void *)(uintptr_t)operands[1];
  void *const y = (void *)(uintptr_t)operands[step->bias != NULL ? 3 : 2];
  const char *what = "cudnnSetStream";
  pthread_mutex_lock(&state->lock);
  int status = dnn->set_stream(state->handle, stream->handle);
  if (status == 0) {
    what = "cudnnConvolutionForward";
    status = dnn->forward(state->handle, &one, step->x, x, step->w, w, step->conv, step->algo,
                          (void *)(uintptr_t)workspace, step->workspace, &zero, step->y, y);
  }
  if (status == 0 && step->bias != NULL) {
    what = "cudnnAddTensor";
    status = dnn->add(state->handle, &one, step->bias, (void *)(uintptr_t)operands[2], &one, step->y, y);
  }
  pthread_mutex_unlock(&state->lock);
  if (status == 0) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EFAILED, status, "%s:%u: %s: %s (%d)", head->dev->vendor->name, head->dev->index, what,
                dnn->words(status), status);
}

/* ---------------------------------------------------------------- the library */

static const char *const files[] = {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so.7", "libcudnn.so", NULL};

static const gpu_symbol symbols[] = {
#define DNN_SYMBOL(member, symbol, result, args) \
  {symbol, offsetof(dnn_calls, member), offsetof(dnn_calls, member) == offsetof(dnn_calls, cudart)},
    DNN_CALLS(DNN_SYMBOL)
#undef DNN_SYMBOL
};

const gpu_library cuda_cudnn = {
    .name = "cuDNN",
    .what = "convolutions",
    .setting = "cudnn",
    .files = files,
    .symbols = symbols,
    .n_symbols = sizeof symbols / sizeof symbols[0],
    .calls_bytes = sizeof(dnn_calls),
    .version = version,
    .made_for = made_for,
    .takes = takes,
    .device_open = device_open,
    .device_close = device_close,
    .prepare = prepare,
    .free = step_free,
    .next = next,
    .run = run_cudnn,
};
