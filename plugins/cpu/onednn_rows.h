/* Softmax of rows with the vectors of this CPU: what attention computes between its products, and the operator itself.
 * The kernels are made of onednn_rows_lanes.h, once for each vector size. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_ROWS_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_ROWS_H

#include <stdint.h>

/* out = softmax(in * scale + mask) of n elements, n >= 1; in may be out; mask NULL: none. A NaN in a row, or a greatest
 * element that is infinite, makes the whole row NaN, as the plain kernel does. */
typedef void (*onednn_softmax_row)(float *out, const float *in, const float *mask, float scale, int64_t n);

/* n floats in bfloat16, to the nearest, ties to even. out may begin where in does, or before it. Only on CPUs with
 * AVX512_BF16. */
void onednn_narrow(uint16_t *out, const float *in, int64_t n);

/* NULL where the CPU has neither AVX-512 nor AVX2. */
onednn_softmax_row onednn_find_softmax(void);

/* Small products, of a few rows: out[r][k] = sum of x[r][c] y[k][c] over n columns, and out[r][c] = sum of x[r][k] y[k][c]
 * over the keys. Pitches are in elements; columns are dense. */
typedef void (*onednn_few_rows)(float *out, int64_t out_pitch, const float *x, int64_t x_pitch, int64_t rows,
                                const float *y, int64_t y_pitch, int64_t keys, int64_t n);

/* Both NULL where the CPU has neither AVX-512 nor AVX2. */
onednn_few_rows onednn_find_dots(void);
onednn_few_rows onednn_find_sums(void);

/* out = gelu(in), with the error function, of n elements within 3e-7 of the larger of it and 1e-3; out may be in. */
typedef void (*onednn_gelu_lanes)(float *out, const float *in, int64_t n);

/* NULL where the CPU has no AVX-512. */
onednn_gelu_lanes onednn_find_gelu(void);

#endif
