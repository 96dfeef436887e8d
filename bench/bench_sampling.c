/* bench_sampling: microseconds that the choice of a token takes, and those of one read of the logits: a loop that sums
 * them in 32 parts, which is as fast as a read can be, and a plain one. Words: the number of logits, of repetitions. Prints
 * "LOGITS OPTIONS READ PLAIN CHOICE" lines, of the fastest repetition in time of the processor. */
#include <string.h>

#include "bench.h"

enum { PARTS = 32 };

static double cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
__attribute__((noinline)) static float
sum_of(const float *x, int n) {
  float parts[PARTS] = {0}, sum = 0;
  int i = 0;
  for (; i + PARTS <= n; i += PARTS)
    for (int k = 0; k < PARTS; k++) parts[k] += x[i + k];
  for (int k = 0; k < PARTS; k++) sum += parts[k];
  for (; i < n; i++) sum += x[i];
  return sum;
}

__attribute__((noinline)) static float plain_sum_of(const float *x, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[i];
  return sum;
}

static double uniform(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

typedef enum logits { FLAT, PEAKED, EQUAL, MASKED, BAD, KINDS } logits;
static const char *const KIND[KINDS] = {"flat", "peaked", "equal", "masked", "nan"};

static void fill(float *x, int n, logits kind) {
  uint64_t state = 7;
  for (int i = 0; i < n; i++) {
    const double normal = sqrt(-2 * log(uniform(&state))) * cos(6.283185307179586 * uniform(&state));
    const int is_tenth = uniform(&state) < 0.1;
    x[i] = kind == EQUAL ? 1 : (float)(kind == PEAKED ? 8 * normal : normal);
    if (kind == MASKED && !is_tenth) x[i] = -INFINITY;
    if (kind == BAD && is_tenth) x[i] = NAN;
  }
}

typedef struct way {
  const char *name;
  heddle_sampling options;
} way;

#define SIZE .struct_size = sizeof(heddle_sampling)
static const way WAYS[] = {{"greedy", {SIZE}},
                           {"temperature", {SIZE, .temperature = 0.8}},
                           {"top_k=40", {SIZE, .temperature = 1, .top_k = 40}},
                           {"top_k=1000", {SIZE, .temperature = 1, .top_k = 1000}},
                           {"top_p=0.9", {SIZE, .temperature = 1, .top_p = 0.9}},
                           {"top_p=0.5", {SIZE, .temperature = 1, .top_p = 0.5}},
                           {"min_p=0.05", {SIZE, .temperature = 1, .min_p = 0.05}},
                           {"top_p=0.9,min_p=0.05", {SIZE, .temperature = 0.7, .top_p = 0.9, .min_p = 0.05}},
                           {"top_k=40,top_p=0.9", {SIZE, .temperature = 1, .top_k = 40, .top_p = 0.9}}};

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 152000, repetitions = argc > 2 ? atoi(argv[2]) : 200;
  const int64_t shape = n;
  heddle_error err;
  heddle_tensor *t;
  volatile float kept = 0;
  check(heddle_tensor_create(NULL, HEDDLE_FLOAT32, &shape, 1, &t, &err), &err);
  float *x = heddle_tensor_data(t);
  for (logits kind = 0; kind < KINDS; kind++) {
    fill(x, n, kind);
    double read = INFINITY, plain = INFINITY;
    for (int i = 0; i < repetitions; i++) {
      const double began = cpu_ns();
      kept = sum_of(x, n);
      read = fmin(read, cpu_ns() - began);
      const double again = cpu_ns();
      kept = plain_sum_of(x, n);
      plain = fmin(plain, cpu_ns() - again);
    }
    for (size_t w = 0; w < sizeof WAYS / sizeof *WAYS; w++) {
      double choice = INFINITY;
      for (int i = 0; i < repetitions; i++) {
        int64_t token;
        const double began = cpu_ns();
        check(heddle_sample(t, NULL, 0, (uint64_t)i, &WAYS[w].options, &token, &err), &err);
        choice = fmin(choice, cpu_ns() - began);
      }
      printf("%s %s %.2f %.2f %.2f\n", KIND[kind], WAYS[w].name, read / 1e3, plain / 1e3, choice / 1e3);
    }
  }
  (void)kept;
  heddle_tensor_release(t);
  return 0;
}
