/* The double of librocblas: products as fake_library.h has them, with the checks that the real one makes. */
#include "fake_library.h"

#include "plugins/rocm/rocblas_api.h"

#include <stdio.h>
#include <string.h>

enum { OK = 0, NO_HANDLE = 1, NO_POINTER = 3, BAD_SIZE = 4, FAILED = 6, BAD_VALUE = 11 };
enum { HANDLE = 0x21 };

typedef struct handle {
  void *stream, *workspace;
  size_t workspace_bytes;
} handle;

static const char *const drivers[] = {"libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.5", NULL};

VISIBLE const char *rocblas_status_to_string(int status);
VISIBLE int rocblas_get_version_string(char *buf, size_t bytes);
VISIBLE int rocblas_create_handle(void **out);
VISIBLE int rocblas_destroy_handle(void *h);
VISIBLE int rocblas_set_stream(void *h, void *stream);
VISIBLE int rocblas_set_workspace(void *h, void *address, size_t bytes);
VISIBLE int rocblas_set_atomics_mode(void *h, int mode);
VISIBLE int rocblas_gemm_strided_batched_ex(void *h, int trans_a, int trans_b, int m, int n, int k, const void *alpha,
                                            const void *a, int a_type, int lda, int64_t a_stride, const void *b,
                                            int b_type, int ldb, int64_t b_stride, const void *beta, const void *c,
                                            int c_type, int ldc, int64_t c_stride, void *d, int d_type, int ldd,
                                            int64_t d_stride, int count, int compute, int algo, int32_t solution,
                                            uint32_t flags);

const char *rocblas_status_to_string(int status) {
  switch (status) {
  case OK: return "rocblas_status_success";
  case NO_HANDLE: return "rocblas_status_invalid_handle";
  case NO_POINTER: return "rocblas_status_invalid_pointer";
  case BAD_SIZE: return "rocblas_status_invalid_size";
  case FAILED: return "rocblas_status_internal_error";
  default: return "rocblas_status_invalid_value";
  }
}

int rocblas_get_version_string(char *buf, size_t bytes) {
  snprintf(buf, bytes, "4.1.0");
  return OK;
}

int rocblas_create_handle(void **out) {
  if (fake_call("rocblas_create_handle")) return FAILED;
  *out = fake_object(HANDLE, sizeof(handle));
  return *out != NULL ? OK : FAILED;
}

int rocblas_destroy_handle(void *h) {
  if (!fake_is(h, HANDLE)) return NO_HANDLE;
  fake_object_free(h);
  return OK;
}

int rocblas_set_stream(void *h, void *stream) {
  if (fake_call("rocblas_set_stream")) return FAILED;
  if (!fake_is(h, HANDLE)) return NO_HANDLE;
  ((handle *)h)->stream = stream;
  return OK;
}

int rocblas_set_workspace(void *h, void *address, size_t bytes) {
  handle *own = h;
  if (!fake_is(h, HANDLE)) return NO_HANDLE;
  if (address == NULL && bytes > 0) return NO_POINTER;
  own->workspace = address;
  own->workspace_bytes = bytes;
  return OK;
}

int rocblas_set_atomics_mode(void *h, int mode) {
  if (!fake_is(h, HANDLE)) return NO_HANDLE;
  return mode == ROCBLAS_NO_ATOMICS ? OK : BAD_VALUE;
}

int rocblas_gemm_strided_batched_ex(void *h, int trans_a, int trans_b, int m, int n, int k, const void *alpha,
                                    const void *a, int a_type, int lda, int64_t a_stride, const void *b, int b_type,
                                    int ldb, int64_t b_stride, const void *beta, const void *c, int c_type, int ldc,
                                    int64_t c_stride, void *d, int d_type, int ldd, int64_t d_stride, int count,
                                    int compute, int algo, int32_t solution, uint32_t flags) {
  const handle *own = h;
  const bool ta = trans_a == ROCBLAS_TRANSPOSE, tb = trans_b == ROCBLAS_TRANSPOSE;
  if (fake_call("rocblas_gemm_strided_batched_ex")) return FAILED;
  if (!fake_is(h, HANDLE) || own->stream == NULL) return NO_HANDLE;
  if ((!ta && trans_a != ROCBLAS_NONE) || (!tb && trans_b != ROCBLAS_NONE)) return BAD_VALUE;
  if (m < 1 || n < 1 || k < 1 || count < 1 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || ldd < m)
    return BAD_SIZE;
  if (a_type != b_type || (a_type != ROCBLAS_F32 && a_type != ROCBLAS_BF16) || c_type != ROCBLAS_F32 ||
      d_type != ROCBLAS_F32 || compute != ROCBLAS_F32 || algo != ROCBLAS_STANDARD || solution != 0 || flags != 0)
    return BAD_VALUE;
  if (alpha == NULL || beta == NULL || a == NULL || b == NULL || c == NULL || d == NULL) return NO_POINTER;
  fake_product *p = fake_keep(sizeof *p);
  if (p == NULL) return FAILED;
  *p = (fake_product){.m = m,
                      .n = n,
                      .k = k,
                      .count = count,
                      .trans_a = ta,
                      .trans_b = tb,
                      .type = a_type == ROCBLAS_BF16 ? FAKE_BFLOAT16 : FAKE_FLOAT,
                      .a = a,
                      .b = b,
                      .c = c,
                      .d = d,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = ldc,
                      .ldd = ldd,
                      .a_stride = a_stride,
                      .b_stride = b_stride,
                      .c_stride = c_stride,
                      .d_stride = d_stride,
                      .workspace = own->workspace,
                      .workspace_bytes = own->workspace_bytes};
  memcpy(&p->alpha, alpha, sizeof p->alpha);
  memcpy(&p->beta, beta, sizeof p->beta);
  return fake_enqueue(drivers, "hipLaunchHostFunc", own->stream, fake_multiply, p) == 0 ? OK : FAILED;
}
