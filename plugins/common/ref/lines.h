/* Sums along lines, with the widest vectors of the CPU. Products are added one after the other, unrounded where the CPU
 * can; how wide its vectors are does not change the bits. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_LINES_H
#define HEDDLE_PLUGINS_COMMON_REF_LINES_H

#include <stdint.h>

/* acc[t][x] += w[k * w_apart + t] * in[k * apart + x] for all k below count: n places, taps lines of acc. */
typedef struct ref_lines {
  float *acc;
  const float *in, *w;
  int64_t acc_apart, apart, w_apart, taps, count, n;
} ref_lines;
void ref_lines_sum(const ref_lines *l);

/* Every step-th element of a line lies together: element x is number x / step of phase x % step, and a phase of a row is
 * `phase` floats long. With taps a dilation apart: out[x] = bias + the sum over all i and j of w[i][j] * element
 * x * step + j * dilation of row i; of so many lines, in_line and out_line apart. Planes of such rows, with weights of
 * their own, are summed up too. in may be read REF_LINE_SLACK floats behind its last element that counts. */
enum { REF_LINE_SLACK = 128 };
typedef struct ref_taps {
  const float *w;
  int64_t planes, plane, rows, columns, row, step, n;
  int64_t tap, turn, back; /* to the next tap: floats, phases, and floats more where the last phase was passed */
  int64_t lines, in_line, out_line;
  float bias;
} ref_taps;
void ref_line_taps(const ref_taps *t, const float *in, float *out);

/* Elements with even and with odd numbers apart, and together again. */
void ref_line_split(const float *in, int64_t n, float *even, float *odd);
void ref_line_join(const float *even, const float *odd, int64_t n, float *out);

/* acc[x] += line[x]. */
void ref_line_plus(float *acc, const float *line, int64_t n);

/* acc[x] += line[x] * by, and out[x] = acc[x]. */
void ref_line_add(double *acc, const double *line, double by, int64_t n);
/* out[x] = the sum over k of in[at[k] + x] * by[k], in double. */
void ref_line_mix(const float *in, const int64_t *at, const double *by, int64_t count, float *out, int64_t n);
void ref_line_round(float *out, const double *acc, int64_t n);

#endif
