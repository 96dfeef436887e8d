/* What the rocm plugin uses of rocBLAS. Declared here so that nothing of AMD's is needed to build.
 *
 * Source: AMD's rocBLAS reference, ROCm 5 and 6. */
#ifndef HEDDLE_PLUGINS_ROCM_ROCBLAS_API_H
#define HEDDLE_PLUGINS_ROCM_ROCBLAS_API_H

#include <stddef.h>
#include <stdint.h>

enum {
  ROCBLAS_NONE = 111,
  ROCBLAS_TRANSPOSE = 112,
  ROCBLAS_F32 = 151,
  ROCBLAS_BF16 = 168,
  ROCBLAS_STANDARD = 0,
  ROCBLAS_NO_ATOMICS = 0
};

/* X(member, symbol, may be absent, result, arguments). All but words return a status, 0 being success. */
#define ROCBLAS_CALLS(X) \
  X(words, "rocblas_status_to_string", false, const char *, (int status)) \
  X(version, "rocblas_get_version_string", true, int, (char *buf, size_t bytes)) \
  X(create, "rocblas_create_handle", false, int, (void **out)) \
  X(destroy, "rocblas_destroy_handle", false, int, (void *handle)) \
  X(set_stream, "rocblas_set_stream", false, int, (void *handle, void *stream)) \
  X(set_workspace, "rocblas_set_workspace", true, int, (void *handle, void *address, size_t bytes)) \
  X(set_atomics, "rocblas_set_atomics_mode", true, int, (void *handle, int mode)) \
  X(gemm, "rocblas_gemm_strided_batched_ex", false, int, \
    (void *handle, int trans_a, int trans_b, int m, int n, int k, const void *alpha, const void *a, int a_type, \
     int lda, int64_t a_stride, const void *b, int b_type, int ldb, int64_t b_stride, const void *beta, const void *c, \
     int c_type, int ldc, int64_t c_stride, void *d, int d_type, int ldd, int64_t d_stride, int count, int compute, \
     int algo, int32_t solution, uint32_t flags))

typedef struct rocblas_calls {
#define ROCBLAS_MEMBER(member, symbol, may, result, args) result(*member) args;
  ROCBLAS_CALLS(ROCBLAS_MEMBER)
#undef ROCBLAS_MEMBER
} rocblas_calls;

#endif
