/* What the cuda plugin uses of cuBLASLt: calls, numbers, and the one struct that is handed over. Declared here so that nothing
 * of NVIDIA's is needed to build; tests/unit/test_gpu_library_headers.c compares it with cublasLt.h where that is.
 *
 * Source: NVIDIA's cuBLAS reference, versions 11 to 13. */
#ifndef HEDDLE_PLUGINS_CUDA_CUBLASLT_API_H
#define HEDDLE_PLUGINS_CUDA_CUBLASLT_API_H

#include <stddef.h>
#include <stdint.h>

enum {
  LT_R_32F = 0,
  LT_R_16BF = 14,
  LT_COMPUTE_32F = 68,
  LT_COMPUTE_32F_FAST_TF32 = 77,
  LT_OP_N = 0,
  LT_OP_T = 1,
  LT_LAYOUT_BATCH_COUNT = 5,
  LT_LAYOUT_BATCH_OFFSET = 6,
  LT_DESC_TRANSA = 3,
  LT_DESC_TRANSB = 4,
  LT_DESC_EPILOGUE = 7,
  LT_DESC_BIAS_POINTER = 8,
  LT_EPILOGUE_BIAS = 4,
  LT_PREF_MAX_WORKSPACE = 1,
  LT_PREF_ALIGN_A = 5,
  LT_PREF_ALIGN_B = 6,
  LT_PREF_ALIGN_C = 7,
  LT_PREF_ALIGN_D = 8
};

typedef struct lt_algo {
  uint64_t data[8];
} lt_algo;

typedef struct lt_result {
  lt_algo algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} lt_result;

/* X(member, symbol, result, arguments). All but version and words return a status, 0 being success. */
#define LT_CALLS(X) \
  X(version, "cublasLtGetVersion", size_t, (void)) \
  X(words, "cublasLtGetStatusString", const char *, (int status)) \
  X(create, "cublasLtCreate", int, (void **out)) \
  X(destroy, "cublasLtDestroy", int, (void *handle)) \
  X(layout_create, "cublasLtMatrixLayoutCreate", int, \
    (void **out, int type, uint64_t rows, uint64_t cols, int64_t ld)) \
  X(layout_destroy, "cublasLtMatrixLayoutDestroy", int, (void *layout)) \
  X(layout_set, "cublasLtMatrixLayoutSetAttribute", int, \
    (void *layout, int attribute, const void *value, size_t bytes)) \
  X(desc_create, "cublasLtMatmulDescCreate", int, (void **out, int compute, int scale)) \
  X(desc_destroy, "cublasLtMatmulDescDestroy", int, (void *desc)) \
  X(desc_set, "cublasLtMatmulDescSetAttribute", int, (void *desc, int attribute, const void *value, size_t bytes)) \
  X(pref_create, "cublasLtMatmulPreferenceCreate", int, (void **out)) \
  X(pref_destroy, "cublasLtMatmulPreferenceDestroy", int, (void *pref)) \
  X(pref_set, "cublasLtMatmulPreferenceSetAttribute", int, \
    (void *pref, int attribute, const void *value, size_t bytes)) \
  X(choose, "cublasLtMatmulAlgoGetHeuristic", int, \
    (void *handle, void *desc, void *a, void *b, void *c, void *d, void *pref, int wanted, lt_result *results, \
     int *found)) \
  X(matmul, "cublasLtMatmul", int, \
    (void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout, \
     const void *beta, const void *c, void *c_layout, void *d, void *d_layout, const lt_algo *algo, void *workspace, \
     size_t workspace_bytes, void *stream))

typedef struct lt_calls {
#define LT_MEMBER(member, symbol, result, args) result(*member) args;
  LT_CALLS(LT_MEMBER)
#undef LT_MEMBER
} lt_calls;

#endif
