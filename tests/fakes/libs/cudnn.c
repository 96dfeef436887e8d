/* The double of libcudnn: convolutions forward, in double, with the checks that the real one makes. */
#include "fake_library.h"

#include "plugins/cuda/cudnn_api.h"

#include <stdlib.h>
#include <string.h>

enum { OK = 0, NO_HANDLE = 1001, BAD_PARAM = 2000, UNSUPPORTED = 3000, FAILED = 5000 };
enum { HANDLE = 0x31, TENSOR = 0x32, FILTER = 0x33, CONV = 0x34 };
enum { ALGORITHM = 1, WORKSPACE = 30000, MOST = DNN_MOST_DIMS, SPATIAL = MOST - 2 };

typedef struct handle {
  void *stream;
} handle;

typedef struct tensor {
  int dims, dim[MOST], stride[MOST];
} tensor;

typedef struct conv {
  int dims, pad[SPATIAL], stride[SPATIAL], dilation[SPATIAL];
  int groups, math;
} conv;

/* A convolution under way; tensors of fewer dimensions have ones behind. */
typedef struct work {
  tensor x, w, y;
  conv c;
  const float *x_at, *w_at;
  float *y_at;
  float alpha, beta;
  void *workspace;
} work;

typedef struct adding {
  tensor a, c;
  const float *a_at;
  float *c_at;
  float alpha, beta;
} adding;

static const char *const drivers[] = {"libcuda.so.1", NULL};

VISIBLE size_t cudnnGetVersion(void);
VISIBLE size_t cudnnGetCudartVersion(void);
VISIBLE const char *cudnnGetErrorString(int status);
VISIBLE int cudnnCreate(void **out);
VISIBLE int cudnnDestroy(void *object);
VISIBLE int cudnnSetStream(void *object, void *stream);
VISIBLE int cudnnCreateTensorDescriptor(void **out);
VISIBLE int cudnnDestroyTensorDescriptor(void *object);
VISIBLE int cudnnSetTensorNdDescriptor(void *object, int type, int dims, const int *dim, const int *stride);
VISIBLE int cudnnCreateFilterDescriptor(void **out);
VISIBLE int cudnnDestroyFilterDescriptor(void *object);
VISIBLE int cudnnSetFilterNdDescriptor(void *object, int type, int format, int dims, const int *dim);
VISIBLE int cudnnCreateConvolutionDescriptor(void **out);
VISIBLE int cudnnDestroyConvolutionDescriptor(void *object);
VISIBLE int cudnnSetConvolutionNdDescriptor(void *object, int dims, const int *pad, const int *stride,
                                            const int *dilation, int mode, int type);
VISIBLE int cudnnSetConvolutionMathType(void *object, int math);
VISIBLE int cudnnSetConvolutionGroupCount(void *object, int groups);
VISIBLE int cudnnGetConvolutionForwardAlgorithm_v7(void *h, void *x, void *w, void *c, void *y, int wanted, int *found,
                                                   dnn_choice *choices);
VISIBLE int cudnnGetConvolutionForwardWorkspaceSize(void *h, void *x, void *w, void *c, void *y, int algo, size_t *out);
VISIBLE int cudnnConvolutionForward(void *h, const void *alpha, void *x, const void *x_at, void *w, const void *w_at,
                                    void *c, int algo, void *workspace, size_t bytes, const void *beta, void *y,
                                    void *y_at);
VISIBLE int cudnnAddTensor(void *h, const void *alpha, void *a, const void *a_at, const void *beta, void *c,
                           void *c_at);

size_t cudnnGetVersion(void) {
  return 91900;
}

size_t cudnnGetCudartVersion(void) {
  return 13000;
}

const char *cudnnGetErrorString(int status) {
  switch (status) {
  case OK: return "CUDNN_STATUS_SUCCESS";
  case NO_HANDLE: return "CUDNN_STATUS_NOT_INITIALIZED";
  case BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
  case UNSUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
  default: return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}

/* ---------------------------------------------------------------- objects */

static int make(const char *name, void **out, uint32_t mark, size_t bytes) {
  if (fake_call(name)) return FAILED;
  *out = fake_object(mark, bytes);
  return *out != NULL ? OK : FAILED;
}

static int destroy(void *object, uint32_t mark) {
  if (!fake_is(object, mark)) return BAD_PARAM;
  fake_object_free(object);
  return OK;
}

int cudnnCreate(void **out) {
  return make("cudnnCreate", out, HANDLE, sizeof(handle));
}
int cudnnDestroy(void *object) {
  return destroy(object, HANDLE);
}
int cudnnCreateTensorDescriptor(void **out) {
  return make("cudnnCreateTensorDescriptor", out, TENSOR, sizeof(tensor));
}
int cudnnDestroyTensorDescriptor(void *object) {
  return destroy(object, TENSOR);
}
int cudnnCreateFilterDescriptor(void **out) {
  return make("cudnnCreateFilterDescriptor", out, FILTER, sizeof(tensor));
}
int cudnnDestroyFilterDescriptor(void *object) {
  return destroy(object, FILTER);
}
int cudnnCreateConvolutionDescriptor(void **out) {
  return make("cudnnCreateConvolutionDescriptor", out, CONV, sizeof(conv));
}
int cudnnDestroyConvolutionDescriptor(void *object) {
  return destroy(object, CONV);
}

int cudnnSetStream(void *object, void *stream) {
  if (fake_call("cudnnSetStream")) return FAILED;
  if (!fake_is(object, HANDLE)) return NO_HANDLE;
  ((handle *)object)->stream = stream;
  return OK;
}

static int set_dims(tensor *t, int dims, const int *dim) {
  if (dims < 4 || dims > MOST) return BAD_PARAM;
  t->dims = dims;
  for (int d = 0; d < MOST; d++) {
    t->dim[d] = d < dims ? dim[d] : 1;
    t->stride[d] = 0;
    if (t->dim[d] < 1) return BAD_PARAM;
  }
  return OK;
}

int cudnnSetTensorNdDescriptor(void *object, int type, int dims, const int *dim, const int *stride) {
  tensor *t = object;
  if (!fake_is(object, TENSOR) || type != DNN_FLOAT) return BAD_PARAM;
  const int status = set_dims(t, dims, dim);
  for (int d = 0; d < dims && status == OK; d++) t->stride[d] = stride[d];
  return status;
}

int cudnnSetFilterNdDescriptor(void *object, int type, int format, int dims, const int *dim) {
  tensor *t = object;
  if (!fake_is(object, FILTER) || type != DNN_FLOAT || format != DNN_NCHW) return BAD_PARAM;
  const int status = set_dims(t, dims, dim);
  for (int d = dims - 1, step = 1; d >= 0 && status == OK; step *= dim[d--]) t->stride[d] = step;
  return status;
}

int cudnnSetConvolutionNdDescriptor(void *object, int dims, const int *pad, const int *stride, const int *dilation,
                                    int mode, int type) {
  conv *c = object;
  if (!fake_is(object, CONV) || dims < 2 || dims > SPATIAL || mode != DNN_CROSS_CORRELATION || type != DNN_FLOAT)
    return BAD_PARAM;
  c->dims = dims;
  for (int d = 0; d < SPATIAL; d++) {
    c->pad[d] = d < dims ? pad[d] : 0;
    c->stride[d] = d < dims ? stride[d] : 1;
    c->dilation[d] = d < dims ? dilation[d] : 1;
    if (c->pad[d] < 0 || c->stride[d] < 1 || c->dilation[d] < 1) return BAD_PARAM;
  }
  c->groups = 1;
  return OK;
}

int cudnnSetConvolutionMathType(void *object, int math) {
  if (!fake_is(object, CONV) || math < DNN_DEFAULT_MATH || math > DNN_FMA_MATH) return BAD_PARAM;
  ((conv *)object)->math = math;
  return OK;
}

int cudnnSetConvolutionGroupCount(void *object, int groups) {
  if (!fake_is(object, CONV) || groups < 1) return BAD_PARAM;
  ((conv *)object)->groups = groups;
  return OK;
}

/* ---------------------------------------------------------------- convolutions */

/* Is y what such a convolution of x gives? */
static int check(const void *h, const void *x, const void *w, const void *c, const void *y) {
  const tensor *tx = x, *tw = w, *ty = y;
  const conv *tc = c;
  if (!fake_is(h, HANDLE)) return NO_HANDLE;
  if (!fake_is(x, TENSOR) || !fake_is(w, FILTER) || !fake_is(c, CONV) || !fake_is(y, TENSOR)) return BAD_PARAM;
  if (tx->dims != tw->dims || tx->dims != ty->dims || tc->dims != tx->dims - 2) return BAD_PARAM;
  if (tx->dim[0] != ty->dim[0] || ty->dim[1] != tw->dim[0] || tx->dim[1] != tw->dim[1] * tc->groups) return BAD_PARAM;
  if (tw->dim[0] % tc->groups != 0) return BAD_PARAM;
  for (int d = 0; d < tc->dims; d++) {
    const int reach = (tw->dim[2 + d] - 1) * tc->dilation[d] + 1;
    if ((tx->dim[2 + d] + 2 * tc->pad[d] - reach) / tc->stride[d] + 1 != ty->dim[2 + d]) return BAD_PARAM;
  }
  return OK;
}

int cudnnGetConvolutionForwardAlgorithm_v7(void *h, void *x, void *w, void *c, void *y, int wanted, int *found,
                                           dnn_choice *choices) {
  if (fake_call("cudnnGetConvolutionForwardAlgorithm_v7")) return FAILED;
  const int status = check(h, x, w, c, y);
  if (status != OK) return status;
  memset(choices, 0, sizeof *choices * (size_t)wanted);
  /* The best asks for more than there is, the next one does not work, and one that wants float16 comes before one that
   * does not. That one works only with the math that it is listed with: by tensor cores where the descriptor allows them,
   * FAKE_LIBRARY_MATH being which of those it is listed with. */
  const char *listed = getenv("FAKE_LIBRARY_MATH");
  const int own = ((conv *)c)->math;
  const int math = own == DNN_FMA_MATH || listed == NULL ? own : atoi(listed);
  const dnn_choice all[] = {{.algo = 6, .status = OK, .workspace = SIZE_MAX / 2, .math = math},
                            {.algo = 4, .status = UNSUPPORTED, .math = math},
                            {.algo = ALGORITHM + 1, .status = OK, .math = DNN_CONVERSION_MATH},
                            {.algo = getenv("FAKE_LIBRARY_SECOND") != NULL ? ALGORITHM + 2 : ALGORITHM,
                             .status = OK,
                             .workspace = WORKSPACE,
                             .math = math}, /* with FAKE_LIBRARY_SECOND it is listed and does not run */
                            {.algo = ALGORITHM, .status = OK, .workspace = WORKSPACE, .math = math}};
  *found = 0;
  for (int i = 0; i < 5 && i < wanted && !fake_refuses(); i++) choices[(*found)++] = all[i];
  return OK;
}

int cudnnGetConvolutionForwardWorkspaceSize(void *h, void *x, void *w, void *c, void *y, int algo, size_t *out) {
  const int status = check(h, x, w, c, y);
  *out = algo == 6 ? SIZE_MAX / 2 : WORKSPACE;
  return status;
}

static int64_t place(const tensor *t, int n, int c, const int *at) {
  int64_t sum = (int64_t)n * t->stride[0] + (int64_t)c * t->stride[1];
  for (int d = 0; d < SPATIAL; d++) sum += (int64_t)at[d] * t->stride[2 + d];
  return sum;
}

/* Steps through a box; false at its end. */
static bool next(int *at, const int *dim) {
  for (int d = SPATIAL - 1; d >= 0; d--) {
    if (++at[d] < dim[d]) return true;
    at[d] = 0;
  }
  return false;
}

static float rounded(const work *k, float x) {
  return k->c.math == DNN_FMA_MATH ? x : fake_tf32(x);
}

static double result(const work *k, int n, int m, const int *at) {
  const int per_group = k->w.dim[1], first = m / (k->w.dim[0] / k->c.groups) * per_group;
  double sum = 0;
  for (int channel = 0; channel < per_group; channel++) {
    int tap[SPATIAL] = {0};
    do {
      int from[SPATIAL];
      bool inside = true;
      for (int d = 0; d < SPATIAL; d++) {
        from[d] = at[d] * k->c.stride[d] + tap[d] * k->c.dilation[d] - k->c.pad[d];
        inside = inside && from[d] >= 0 && from[d] < k->x.dim[2 + d];
      }
      if (inside)
        sum += (double)rounded(k, k->x_at[place(&k->x, n, first + channel, from)]) *
               (double)rounded(k, k->w_at[place(&k->w, m, channel, tap)]);
    } while (next(tap, k->w.dim + 2));
  }
  return sum;
}

static void convolve(void *arg) {
  const work *k = arg;
  fake_scribble(k->workspace, WORKSPACE);
  for (int n = 0; n < k->y.dim[0]; n++) {
    for (int m = 0; m < k->y.dim[1]; m++) {
      int at[SPATIAL] = {0};
      do {
        float *y = &k->y_at[place(&k->y, n, m, at)];
        const double sum = (double)k->alpha * result(k, n, m, at);
        *y = (float)(k->beta != 0.0F ? sum + (double)k->beta * (double)*y : sum);
      } while (next(at, k->y.dim + 2));
    }
  }
}

int cudnnConvolutionForward(void *h, const void *alpha, void *x, const void *x_at, void *w, const void *w_at, void *c,
                            int algo, void *workspace, size_t bytes, const void *beta, void *y, void *y_at) {
  if (fake_call("cudnnConvolutionForward")) return FAILED;
  const int status = check(h, x, w, c, y);
  const conv *how = c;
  if (status != OK) return status;
  const char *listed = getenv("FAKE_LIBRARY_MATH");
  if (algo != ALGORITHM || (how->math != DNN_FMA_MATH && listed != NULL && how->math != atoi(listed)))
    return UNSUPPORTED;
  if (bytes < WORKSPACE || workspace == NULL || x_at == NULL || w_at == NULL || y_at == NULL) return BAD_PARAM;
  work *k = fake_keep(sizeof *k);
  if (k == NULL) return FAILED;
  *k = (work){*(tensor *)x, *(tensor *)w, *(tensor *)y, *how, x_at, w_at, y_at, 0, 0, workspace};
  memcpy(&k->alpha, alpha, sizeof k->alpha);
  memcpy(&k->beta, beta, sizeof k->beta);
  return fake_enqueue(drivers, "cuLaunchHostFunc", ((handle *)h)->stream, convolve, k) == 0 ? OK : FAILED;
}

static void add(void *arg) {
  const adding *k = arg;
  for (int n = 0; n < k->c.dim[0]; n++) {
    for (int m = 0; m < k->c.dim[1]; m++) {
      int at[SPATIAL] = {0};
      do {
        float *c = &k->c_at[place(&k->c, n, m, at)];
        *c = (float)((double)k->alpha * (double)k->a_at[m] + (double)k->beta * (double)*c);
      } while (next(at, k->c.dim + 2));
    }
  }
}

int cudnnAddTensor(void *h, const void *alpha, void *a, const void *a_at, const void *beta, void *c, void *c_at) {
  const tensor *ta = a, *tc = c;
  if (fake_call("cudnnAddTensor")) return FAILED;
  if (!fake_is(h, HANDLE)) return NO_HANDLE;
  if (!fake_is(a, TENSOR) || !fake_is(c, TENSOR) || ta->dims != tc->dims || ta->dim[0] != 1 || ta->dim[1] != tc->dim[1])
    return BAD_PARAM;
  for (int d = 2; d < ta->dims; d++)
    if (ta->dim[d] != 1) return BAD_PARAM;
  if (a_at == NULL || c_at == NULL) return BAD_PARAM;
  adding *k = fake_keep(sizeof *k);
  if (k == NULL) return FAILED;
  *k = (adding){*ta, *tc, a_at, c_at, 0, 0};
  memcpy(&k->alpha, alpha, sizeof k->alpha);
  memcpy(&k->beta, beta, sizeof k->beta);
  return fake_enqueue(drivers, "cuLaunchHostFunc", ((handle *)h)->stream, add, k) == 0 ? OK : FAILED;
}
