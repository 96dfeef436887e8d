/* bench/hand_peak.c: rows of fused multiply-adds, as many at once as hide their latency, which touch no memory: the
 * float32 peak that shares are taken of. */
#include "bench/hand_peak.h"

#include <pthread.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROWS = 10, STEPS = 100000, MOST_THREADS = 64 };

typedef struct job {
  pthread_t thread;
  double (*work)(float *sink); /* operations done by one call */
  float sink;
  double per_second;
} job;

#if defined(__x86_64__)

/* Variables by name and not an array, so that each is in a register whatever the compiler unrolls. */
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9)

__attribute__((target("avx512f"))) static double work_512(float *sink) {
  const __m512 a = _mm512_set1_ps(0.999F), b = _mm512_set1_ps(1e-3F);
#define START(i) __m512 r##i = _mm512_set1_ps(*sink + (float)(i));
#define STEP(i) r##i = _mm512_fmadd_ps(r##i, a, b);
#define SUM(i) sum = _mm512_add_ps(sum, r##i);
  EACH(START)
  for (int step = 0; step < STEPS; step++) {
    EACH(STEP)
  }
  __m512 sum = _mm512_setzero_ps();
  EACH(SUM)
#undef START
#undef STEP
#undef SUM
  float out[16];
  _mm512_storeu_ps(out, sum);
  *sink = out[0] * 1e-3F;
  return 2.0 * 16 * ROWS * STEPS;
}

__attribute__((target("avx2,fma"))) static double work_256(float *sink) {
  const __m256 a = _mm256_set1_ps(0.999F), b = _mm256_set1_ps(1e-3F);
#define START(i) __m256 r##i = _mm256_set1_ps(*sink + (float)(i));
#define STEP(i) r##i = _mm256_fmadd_ps(r##i, a, b);
#define SUM(i) sum = _mm256_add_ps(sum, r##i);
  EACH(START)
  for (int step = 0; step < STEPS; step++) {
    EACH(STEP)
  }
  __m256 sum = _mm256_setzero_ps();
  EACH(SUM)
#undef START
#undef STEP
#undef SUM
  float out[8];
  _mm256_storeu_ps(out, sum);
  *sink = out[0] * 1e-3F;
  return 2.0 * 8 * ROWS * STEPS;
}

static double (*choose(void))(float *) {
  if (__builtin_cpu_supports("avx512f")) return work_512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? work_256 : NULL;
}

#else

static double (*choose(void))(float *) {
  return NULL;
}

#endif

/* Of the calling thread alone, so that what else runs on the machine does not lower the peak. */
static double spent_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *measure(void *arg) {
  job *j = arg;
  double done = 0, spent;
  const double start = spent_s();
  do {
    done += j->work(&j->sink);
    spent = spent_s() - start;
  } while (spent < 0.01);
  j->per_second = done / spent;
  return NULL;
}

double hand_peak(int threads) {
  job jobs[MOST_THREADS];
  double sum = 0;
  int started = 0;
  if (choose() == NULL || threads < 1 || threads > MOST_THREADS) return 0;
  for (int i = 0; i < threads; i++) jobs[i] = (job){.work = choose()};
  while (started < threads - 1 && pthread_create(&jobs[started + 1].thread, NULL, measure, &jobs[started + 1]) == 0)
    started++;
  measure(&jobs[0]);
  for (int i = 0; i <= started; i++) {
    if (i > 0) pthread_join(jobs[i].thread, NULL);
    sum += jobs[i].per_second;
  }
  return started == threads - 1 ? sum : 0;
}
