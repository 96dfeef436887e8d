/* Discrete Fourier transforms of any length in double: lengths are split into factors of 4, 2 and odd primes, so that a
 * transform takes about n times the sum of the factors. Lengths with a large prime are transformed by a product with a
 * chirp, which is a convolution by transforms of a power of two. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_FFT_H
#define HEDDLE_PLUGINS_COMMON_MORE_FFT_H

#include "more.h"

typedef struct fft_point {
  double re, im;
} fft_point;

enum { FFT_FACTORS = 32 };

/* in and out have n points each, and lie in the scratch memory, as the rest does. */
typedef struct fft {
  const more_op *m; /* for more_tick */
  int64_t n, work;
  int64_t factors[FFT_FACTORS];
  fft_point *in, *out, *turns, *few; /* turns: e^(2 pi i k / n), or of -k; few: of a butterfly */
  fft_point *chirp, *response;       /* e^(-pi i k^2 / n), or of -k; the transform of its inverse, of `length` points */
  int64_t length;                    /* 0: the factors are small */
  bool ends;                         /* the run is to end: out is not whole */
} fft;

/* Lengths up to this are taken, with so many bytes of scratch memory. */
#define FFT_MOST (INT64_C(1) << 22)
uint64_t fft_scratch_bytes(int64_t n);
double fft_steps(int64_t n); /* of a transform, for the cost */

void fft_start(fft *f, const more_op *m, int64_t n, bool inverse, void *scratch);

/* out: the transform of in, not scaled. */
void fft_transform(fft *f);

#endif
