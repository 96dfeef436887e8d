/* What the doubles of the vendors' libraries share. A double checks what it is given, puts a host function into the stream
 * of the driver's double (so that order holds and a capture records it), and computes there, plainly and in double.
 *
 * FAKE_LIBRARY_FAIL="cublasLtMatmul:2" makes the second call of that name fail; several are separated by commas.
 * FAKE_LIBRARY_REFUSE=1: heuristics find no algorithm; with another number N they find none for products whose three sides
 * together are a multiple of N. FAKE_LIBRARY_RETAIN=1: below. FAKE_LIBRARY_SECOND=1: the best algorithm that
 * heuristics list does not run, the second does. */
#ifndef HEDDLE_TESTS_FAKES_LIBS_FAKE_LIBRARY_H
#define HEDDLE_TESTS_FAKES_LIBS_FAKE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VISIBLE __attribute__((visibility("default")))

/* Counts the call; true where it is to fail. */
bool fake_call(const char *name);

bool fake_refuses(void);
bool fake_refuses_shape(int64_t m, int64_t n, int64_t k);

/* Memory that lives until the process ends: what a recorded host function is given may be needed again. NULL: none. */
void *fake_keep(size_t bytes);

/* fn(arg) in the stream, by the driver's double that this process has loaded under one of these names. 0, or not. */
int fake_enqueue(const char *const *drivers, const char *symbol, void *stream, void (*fn)(void *arg), void *arg);

/* With FAKE_LIBRARY_RETAIN=1: holds the current device's primary context, and never lets go, as the runtime does that is
 * linked into the real library. */
void fake_retain(const char *const *drivers, const char *device_symbol, const char *retain_symbol);

/* Handles and descriptors: a mark distinguishes them from each other and from what was freed. */
void *fake_object(uint32_t mark, size_t bytes);
bool fake_is(const void *object, uint32_t mark);
void fake_object_free(void *object);

/* A workspace is the library's own: its first and last bytes are overwritten. */
void fake_scribble(void *workspace, size_t bytes);

/* A product by columns: D = alpha * op(A) x op(B) + beta * C, one after the other of a batch. type: of A and B. */
typedef enum fake_type { FAKE_FLOAT, FAKE_TF32, FAKE_BFLOAT16 } fake_type;
typedef struct fake_product {
  int64_t m, n, k, count;
  bool trans_a, trans_b;
  fake_type type;
  float alpha, beta;
  const void *a, *b;
  const float *c, *bias; /* bias: added to each column; NULL: none */
  float *d;
  int64_t lda, ldb, ldc, ldd, a_stride, b_stride, c_stride, d_stride;
  void *workspace;
  size_t workspace_bytes;
} fake_product;

void fake_multiply(void *product); /* a host function */

float fake_tf32(float x); /* rounded to its 10 digits, halves away from zero, as the hardware's conversion does */

/* For tests, by dlsym: how often a function was called. */
VISIBLE int fake_library_calls(const char *name);

#endif
