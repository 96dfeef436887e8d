/* Matrix products as the libraries of the vendors take them, and what is done round them: C is spread over the result
 * where it is no whole matrix, and with precision fast the operands become bfloat16. For files that drive a library. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_PRODUCT_H
#define HEDDLE_PLUGINS_COMMON_GPU_PRODUCT_H

#include "plugins/common/gpu/library.h"

/* A matrix of rows side by side, ld elements apart, or of columns, where across; the next one of a batch is stride on. */
typedef struct gpu_matrix {
  int64_t ld, stride;
  bool across;
} gpu_matrix;

/* None; a whole matrix, the same for each of a batch; or less, which a kernel spreads over the result first, or a library adds
 * by itself (gpu_product_bias). */
typedef enum gpu_third { GPU_THIRD_NONE, GPU_THIRD_WHOLE, GPU_THIRD_SPREAD, GPU_THIRD_BIAS } gpu_third;

/* How the operands are read: as they are; rounded by the library itself; rounded to bfloat16 by us. */
typedef enum gpu_rounding { GPU_EXACT, GPU_LIBRARY_ROUNDS, GPU_BFLOAT16 } gpu_rounding;

/* count results of m x n, each alpha * A x B + beta * C, rows side by side, one behind the other. */
typedef struct gpu_product {
  int64_t m, n, k, count;
  gpu_matrix a, b;
  float alpha, beta;
  gpu_third third;
  gpu_rounding rounding;
} gpu_product;

/* Brings a product into this form: false where a library has no words for it, or it is too small to be worth a call. can:
 * the most rounding that a device does in hardware. Pure. */
bool gpu_product_of(const gpu_ask *ask, gpu_rounding can, gpu_product *out);

/* Whether C is a row that is added to each row of the result as it is: then *p is the product for a library that adds it by
 * itself. Pure. */
bool gpu_product_bias(const gpu_ask *ask, gpu_product *p);

/* What a step of a library's has first. */
typedef struct gpu_product_step {
  gpu_library_step head;
  gpu_product p;
  k_matmul params;             /* for the kernel that spreads C */
  uint32_t n_args;             /* 3, or 4 with C */
  void *spread, *round;        /* kernels; NULL: not needed */
  uint64_t elements[2], at[2]; /* of A and B to be rounded in a run, and where in the workspace */
  gpu_address constant[2];     /* rounded in prepare; 0: not so */
  uint64_t library_bytes;      /* at the beginning of the workspace */
} gpu_product_step;

/* Scratch memory that is of use for sums of parts of K: the most that a library may want, less for small results. Pure. */
uint64_t gpu_product_scratch(const gpu_product *p, uint64_t most);

/* The whole workspace, where the library wants up to library_bytes of it. Pure. */
uint64_t gpu_product_workspace(const gpu_ask *ask, const gpu_product *p, uint64_t library_bytes);

/* Fills a zeroed step: kernels, and the constants in bfloat16. Not inside gpu_enter. gpu_product_end gives back what it
 * took, of a half-made step too; inside gpu_enter. */
heddle_status gpu_product_begin(heddle_pdevice *dev, const gpu_ask *ask, const gpu_product *p, uint64_t library_bytes,
                                gpu_product_step *step, heddle_error *err);
void gpu_product_end(gpu_product_step *step);

/* A kernel of a text, and its launch with groups work-groups: what steps do beside a library's call. The first is not inside
 * gpu_enter, the second is. */
heddle_status gpu_product_kernel(heddle_pdevice *dev, const k_code *code, void **out, heddle_error *err);
heddle_status gpu_product_launch(heddle_pstream *stream, void *kernel, uint64_t groups, void **args, const char *what,
                                 heddle_error *err);

/* Addresses for the library's call. c is out where C was spread, and 0 without C. */
typedef struct gpu_product_operands {
  gpu_address a, b, c, out;
} gpu_product_operands;

/* Enqueues what comes before the library's call. Inside gpu_enter. */
heddle_status gpu_product_run(const gpu_product_step *step, heddle_pstream *stream, const gpu_address *operands,
                              gpu_address workspace, gpu_product_operands *out, heddle_error *err);

/* A constant in bfloat16 on the device (weights.c), shared by all that ask for the same numbers; put takes 0 too. get is not
 * inside gpu_enter. Any thread. */
heddle_status gpu_weight_get(heddle_pdevice *dev, const float *data, uint64_t count, gpu_address *out,
                             heddle_error *err);
void gpu_weight_put(heddle_pdevice *dev, gpu_address address);

/* The four as the pointers that libraries take. */
static inline void *gpu_pointer(gpu_address address) {
  return (void *)(uintptr_t)address;
}

#endif
