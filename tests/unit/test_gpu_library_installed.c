/* labels: slow
 * timeout: 120
 * The real cuBLASLt and cuDNN, where they are installed: they have every function that the plugin looks up, and take the
 * descriptors that it makes, which need no GPU. Slow, because loading them is. */
#include "cases.h"

#include "plugins/cuda/cublaslt_api.h"
#include "plugins/cuda/cudnn_api.h"

#include <dlfcn.h>
#include <stdint.h>

/* The first of names that can be loaded. */
static void *open_one(const char *const *names) {
  void *library = NULL;
  for (int i = 0; library == NULL && names[i] != NULL; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

static void find(void *library, const char *symbol, void *member) {
  void *const address = dlsym(library, symbol);
  if (address == NULL) fail_msg("there is no %s", symbol);
  memcpy(member, &address, sizeof address);
}

static void cublaslt_takes_our_descriptors(void **state) {
  static const char *const names[] = {"libcublasLt.so.13",
                                      "libcublasLt.so.12",
                                      "libcublasLt.so.11",
                                      "libcublasLt.so",
                                      "/usr/local/cuda/lib64/libcublasLt.so",
                                      NULL};
  void *library = open_one(names), *layout = NULL, *desc = NULL, *pref = NULL, *handle = NULL;
  const int32_t batches = 3, transposed = LT_OP_T;
  const int64_t stride = 4096;
  const uint64_t most = 1 << 20;
  const uint32_t alignment = 256;
  lt_calls lt;
  (void)state;
  if (library == NULL) SKIP("cuBLASLt is not installed");
#define FIND(member, symbol, result, args) find(library, symbol, &lt.member);
  LT_CALLS(FIND)
#undef FIND
  assert_true(lt.version() >= 110000);
  static const int types[] = {LT_R_32F, LT_R_16BF}, computes[] = {LT_COMPUTE_32F, LT_COMPUTE_32F_FAST_TF32};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(lt.layout_create(&layout, types[i], 64, 32, 64), 0);
    assert_int_equal(lt.layout_set(layout, LT_LAYOUT_BATCH_COUNT, &batches, sizeof batches), 0);
    assert_int_equal(lt.layout_set(layout, LT_LAYOUT_BATCH_OFFSET, &stride, sizeof stride), 0);
    assert_int_equal(lt.layout_destroy(layout), 0);
    assert_int_equal(lt.desc_create(&desc, computes[i], LT_R_32F), 0);
    assert_int_equal(lt.desc_set(desc, LT_DESC_TRANSA, &transposed, sizeof transposed), 0);
    assert_int_equal(lt.desc_set(desc, LT_DESC_TRANSB, &transposed, sizeof transposed), 0);
    assert_int_equal(lt.desc_destroy(desc), 0);
  }
  assert_int_equal(lt.pref_create(&pref), 0);
  assert_int_equal(lt.pref_set(pref, LT_PREF_MAX_WORKSPACE, &most, sizeof most), 0);
  for (int side = LT_PREF_ALIGN_A; side <= LT_PREF_ALIGN_D; side++)
    assert_int_equal(lt.pref_set(pref, side, &alignment, sizeof alignment), 0);
  assert_int_equal(lt.pref_destroy(pref), 0);
  const int status = lt.create(&handle); /* without a GPU it fails with a message */
  assert_true(strlen(lt.words(status)) > 0);
  if (status == 0) assert_int_equal(lt.destroy(handle), 0);
}

static void cudnn_takes_our_descriptors(void **state) {
  static const char *const names[] = {
      "libcudnn.so.9", "libcudnn.so.8", "libcudnn.so.7", "libcudnn.so", "/usr/local/cuda/lib64/libcudnn.so", NULL};
  static const int x_dim[] = {2, 8, 9, 10, 5}, x_stride[] = {3600, 450, 50, 5, 1}, w_dim[] = {16, 4, 3, 3, 3};
  static const int bias_dim[] = {1, 16, 1, 1, 1}, bias_stride[] = {16, 1, 1, 1, 1}, pads[] = {1, 0, 1},
                   steps[] = {2, 1, 1};
  void *library = open_one(names), *x = NULL, *bias = NULL, *w = NULL, *conv = NULL;
  dnn_calls dnn;
  (void)state;
  if (library == NULL) SKIP("cuDNN is not installed");
#define FIND(member, symbol, result, args) find(library, symbol, &dnn.member);
  DNN_CALLS(FIND)
#undef FIND
  const bool has_fma = dnn.version() >= 8000;
  for (int dims = 4; dims <= 5; dims++) {
    assert_int_equal(dnn.tensor_create(&x), 0);
    assert_int_equal(dnn.tensor_set(x, DNN_FLOAT, dims, x_dim, x_stride), 0);
    assert_int_equal(dnn.tensor_create(&bias), 0);
    assert_int_equal(dnn.tensor_set(bias, DNN_FLOAT, dims, bias_dim, bias_stride), 0);
    assert_int_equal(dnn.filter_create(&w), 0);
    assert_int_equal(dnn.filter_set(w, DNN_FLOAT, DNN_NCHW, dims, w_dim), 0);
    assert_int_equal(dnn.conv_create(&conv), 0);
    assert_int_equal(dnn.conv_set(conv, dims - 2, pads, steps, steps, DNN_CROSS_CORRELATION, DNN_FLOAT), 0);
    assert_int_equal(dnn.conv_groups(conv, 2), 0);
    assert_int_equal(dnn.conv_math(conv, has_fma ? DNN_FMA_MATH : DNN_DEFAULT_MATH), 0);
    assert_int_equal(dnn.conv_math(conv, DNN_DEFAULT_MATH), 0);
    assert_int_equal(dnn.conv_destroy(conv), 0);
    assert_int_equal(dnn.filter_destroy(w), 0);
    assert_int_equal(dnn.tensor_destroy(bias), 0);
    assert_int_equal(dnn.tensor_destroy(x), 0);
  }
  assert_true(strlen(dnn.words(1001)) > 0);
}

CASES(CASE(cublaslt_takes_our_descriptors), CASE(cudnn_takes_our_descriptors))
