/* The double of libcublasLt: products as fake_library.h has them, with the checks that the real one makes. */
#include "fake_library.h"

#include "plugins/cuda/cublaslt_api.h"

#include <stdlib.h>
#include <string.h>

enum { OK = 0, NO_HANDLE = 1, INVALID = 7, FAILED = 13, UNSUPPORTED = 15 };
enum { HANDLE = 0x11, LAYOUT = 0x12, DESC = 0x13, PREF = 0x14 };
enum { COMMON = 8, WORKSPACE = 20000 };

typedef struct layout {
  int type;
  uint64_t rows, cols;
  int64_t ld, stride;
  int32_t count;
} layout;

typedef struct desc {
  int compute;
  int32_t trans_a, trans_b;
  uint32_t epilogue; /* 0: none */
  const float *bias;
} desc;

typedef struct pref {
  uint64_t workspace;
  uint32_t align[4];
} pref;

static const char *const drivers[] = {"libcuda.so.1", NULL};

VISIBLE size_t cublasLtGetVersion(void);
VISIBLE const char *cublasLtGetStatusString(int status);
VISIBLE int cublasLtCreate(void **out);
VISIBLE int cublasLtDestroy(void *handle);
VISIBLE int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t cols, int64_t ld);
VISIBLE int cublasLtMatrixLayoutDestroy(void *object);
VISIBLE int cublasLtMatrixLayoutSetAttribute(void *object, int attribute, const void *value, size_t bytes);
VISIBLE int cublasLtMatmulDescCreate(void **out, int compute, int scale);
VISIBLE int cublasLtMatmulDescDestroy(void *object);
VISIBLE int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value, size_t bytes);
VISIBLE int cublasLtMatmulPreferenceCreate(void **out);
VISIBLE int cublasLtMatmulPreferenceDestroy(void *object);
VISIBLE int cublasLtMatmulPreferenceSetAttribute(void *object, int attribute, const void *value, size_t bytes);
VISIBLE int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d, void *pref,
                                           int wanted, lt_result *results, int *found);
VISIBLE int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,
                           void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                           const lt_algo *algo, void *workspace, size_t workspace_bytes, void *stream);

size_t cublasLtGetVersion(void) {
  return FAKE_CUBLASLT_VERSION;
}

const char *cublasLtGetStatusString(int status) {
  switch (status) {
  case OK: return "CUBLAS_STATUS_SUCCESS";
  case NO_HANDLE: return "CUBLAS_STATUS_NOT_INITIALIZED";
  case INVALID: return "CUBLAS_STATUS_INVALID_VALUE";
  case FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
  default: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
}

/* ---------------------------------------------------------------- objects */

static int make(const char *name, void **out, uint32_t mark, size_t bytes) {
  if (fake_call(name)) return FAILED;
  *out = fake_object(mark, bytes);
  return *out != NULL ? OK : FAILED;
}

static int destroy(void *object, uint32_t mark) {
  if (!fake_is(object, mark)) return INVALID;
  fake_object_free(object);
  return OK;
}

int cublasLtCreate(void **out) {
  fake_retain(drivers, "cuCtxGetDevice", "cuDevicePrimaryCtxRetain");
  return make("cublasLtCreate", out, HANDLE, 1);
}
int cublasLtDestroy(void *handle) {
  return destroy(handle, HANDLE);
}
int cublasLtMatrixLayoutDestroy(void *object) {
  return destroy(object, LAYOUT);
}
int cublasLtMatmulDescDestroy(void *object) {
  return destroy(object, DESC);
}
int cublasLtMatmulPreferenceDestroy(void *object) {
  return destroy(object, PREF);
}

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  const int status = make("cublasLtMatrixLayoutCreate", out, LAYOUT, sizeof(layout));
  if (status == OK) *(layout *)*out = (layout){type, rows, cols, ld, 0, 1};
  return status;
}

int cublasLtMatrixLayoutSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
  layout *l = object;
  if (!fake_is(object, LAYOUT)) return INVALID;
  if (attribute == LT_LAYOUT_BATCH_COUNT && bytes == sizeof l->count) memcpy(&l->count, value, bytes);
  else if (attribute == LT_LAYOUT_BATCH_OFFSET && bytes == sizeof l->stride) memcpy(&l->stride, value, bytes);
  else return INVALID;
  return OK;
}

int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
  const int status = make("cublasLtMatmulDescCreate", out, DESC, sizeof(desc));
  if (status == OK) *(desc *)*out = (desc){.compute = compute, .trans_a = LT_OP_N, .trans_b = LT_OP_N};
  return scale == LT_R_32F ? status : UNSUPPORTED;
}

int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
  desc *d = object;
  if (!fake_is(object, DESC)) return INVALID;
  if (attribute == LT_DESC_BIAS_POINTER && bytes == sizeof d->bias) {
    memcpy(&d->bias, value, bytes);
    return OK;
  }
  if (bytes != sizeof(int32_t)) return INVALID;
  if (attribute == LT_DESC_EPILOGUE) {
    memcpy(&d->epilogue, value, bytes);
    return d->epilogue == LT_EPILOGUE_BIAS ? OK : INVALID;
  }
  if (attribute == LT_DESC_TRANSA) memcpy(&d->trans_a, value, bytes);
  else if (attribute == LT_DESC_TRANSB) memcpy(&d->trans_b, value, bytes);
  else return INVALID;
  return OK;
}

int cublasLtMatmulPreferenceCreate(void **out) {
  return make("cublasLtMatmulPreferenceCreate", out, PREF, sizeof(pref));
}

int cublasLtMatmulPreferenceSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
  pref *p = object;
  if (!fake_is(object, PREF)) return INVALID;
  if (attribute == LT_PREF_MAX_WORKSPACE && bytes == sizeof p->workspace) memcpy(&p->workspace, value, bytes);
  else if (attribute >= LT_PREF_ALIGN_A && attribute <= LT_PREF_ALIGN_D && bytes == sizeof p->align[0])
    memcpy(&p->align[attribute - LT_PREF_ALIGN_A], value, bytes);
  else return INVALID;
  return OK;
}

/* ---------------------------------------------------------------- products */

static bool holds(const layout *l) {
  return l->rows > 0 && l->cols > 0 && l->ld >= (int64_t)l->rows && l->count >= 1;
}

/* The dimensions of a product, where the layouts are those of one. */
static int product_of(const void *description, const void *a, const void *b, const void *c, const void *d,
                      fake_product *out) {
  const desc *how = description;
  const layout *la = a, *lb = b, *lc = c, *ld = d;
  if (!fake_is(how, DESC) || !fake_is(a, LAYOUT) || !fake_is(b, LAYOUT) || !fake_is(c, LAYOUT) || !fake_is(d, LAYOUT))
    return INVALID;
  if (!holds(la) || !holds(lb) || !holds(lc) || !holds(ld)) return INVALID;
  const bool ta = how->trans_a == LT_OP_T, tb = how->trans_b == LT_OP_T;
  const uint64_t m = ta ? la->cols : la->rows, k = ta ? la->rows : la->cols;
  if ((tb ? lb->cols : lb->rows) != k || (tb ? lb->rows : lb->cols) != ld->cols || ld->rows != m) return INVALID;
  if (lc->rows != m || lc->cols != ld->cols || la->count != ld->count || lb->count != ld->count ||
      lc->count != ld->count)
    return INVALID;
  if (la->type != lb->type || (la->type != LT_R_32F && la->type != LT_R_16BF)) return UNSUPPORTED;
  if (lc->type != LT_R_32F || ld->type != LT_R_32F) return UNSUPPORTED;
  if (how->compute != LT_COMPUTE_32F && how->compute != LT_COMPUTE_32F_FAST_TF32) return UNSUPPORTED;
  *out = (fake_product){.m = (int64_t)m,
                        .n = (int64_t)ld->cols,
                        .k = (int64_t)k,
                        .count = ld->count,
                        .trans_a = ta,
                        .trans_b = tb,
                        .lda = la->ld,
                        .ldb = lb->ld,
                        .ldc = lc->ld,
                        .ldd = ld->ld,
                        .a_stride = la->stride,
                        .b_stride = lb->stride,
                        .c_stride = lc->stride,
                        .d_stride = ld->stride};
  out->type = la->type == LT_R_16BF ? FAKE_BFLOAT16 : how->compute == LT_COMPUTE_32F_FAST_TF32 ? FAKE_TF32 : FAKE_FLOAT;
  return OK;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *description, void *a, void *b, void *c, void *d,
                                   void *preference, int wanted, lt_result *results, int *found) {
  const pref *p = preference;
  fake_product product;
  if (fake_call("cublasLtMatmulAlgoGetHeuristic")) return FAILED;
  if (!fake_is(handle, HANDLE)) return NO_HANDLE;
  if (!fake_is(preference, PREF) || wanted < 1) return INVALID;
  const int status = product_of(description, a, b, c, d, &product);
  if (status != OK) return status;
  const char *no_bias = getenv("FAKE_LIBRARY_NO_BIAS");
  if (((desc *)description)->epilogue != 0 && (no_bias != NULL || ((desc *)description)->bias == NULL))
    return UNSUPPORTED; /* the real one wants to know the alignment */
  *found = fake_refuses() || fake_refuses_shape(product.m, product.n, product.k) ? 0 : 1;
  if (*found == 0) return UNSUPPORTED;
  memset(results, 0, sizeof *results);
  results->algo.data[0] = COMMON;
  results->workspace = p->workspace < WORKSPACE ? (size_t)p->workspace : WORKSPACE;
  results->algo.data[1] = results->workspace;
  if (getenv("FAKE_LIBRARY_SECOND") != NULL && wanted > 1) { /* the best is listed and does not run */
    results[1] = results[0];
    results[0].algo.data[0] = COMMON + 1;
    *found = 2;
  }
  return OK;
}

int cublasLtMatmul(void *handle, void *description, const void *alpha, const void *a, void *a_layout, const void *b,
                   void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                   const lt_algo *algo, void *workspace, size_t workspace_bytes, void *stream) {
  fake_product product;
  if (fake_call("cublasLtMatmul")) return FAILED;
  if (!fake_is(handle, HANDLE)) return NO_HANDLE;
  const int status = product_of(description, a_layout, b_layout, c_layout, d_layout, &product);
  if (status != OK) return status;
  if (algo != NULL && algo->data[0] == COMMON + 1) return UNSUPPORTED;
  if (algo == NULL || algo->data[0] != COMMON || algo->data[1] > workspace_bytes) return INVALID;
  if (alpha == NULL || beta == NULL || a == NULL || b == NULL || c == NULL || d == NULL || stream == NULL)
    return INVALID;
  if ((workspace == NULL && workspace_bytes > 0) || (uintptr_t)workspace % 256 != 0) return INVALID;
  if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d) % 16 != 0) return INVALID;
  if (((desc *)description)->epilogue != 0) {
    product.bias = ((desc *)description)->bias;
    if (product.bias == NULL || (uintptr_t)product.bias % 16 != 0) return INVALID;
  }
  memcpy(&product.alpha, alpha, sizeof product.alpha);
  memcpy(&product.beta, beta, sizeof product.beta);
  product.a = a;
  product.b = b;
  product.c = c;
  product.d = d;
  product.workspace = workspace;
  product.workspace_bytes = algo->data[1];
  fake_product *own = fake_keep(sizeof *own);
  if (own == NULL) return FAILED;
  *own = product;
  return fake_enqueue(drivers, "cuLaunchHostFunc", stream, fake_multiply, own) == 0 ? OK : FAILED;
}
