/* The calls of fake_library.h. */
#include "fake_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 32, NAME_BYTES = 64 };

typedef struct kept {
  struct kept *next;
  max_align_t bytes[];
} kept;

typedef struct object {
  uint32_t mark;
  max_align_t bytes[];
} object;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct {
  char name[NAME_BYTES];
  int count;
} calls[NAMES];
static kept *all_kept;

/* ---------------------------------------------------------------- calls */

/* Which call of that name is to fail; 0: none. */
static int failing(const char *name) {
  const char *at = getenv("FAKE_LIBRARY_FAIL");
  const size_t length = strlen(name);
  while (at != NULL && *at != '\0') {
    if (strncmp(at, name, length) == 0 && at[length] == ':') return atoi(at + length + 1);
    at = strchr(at, ',');
    at = at != NULL ? at + 1 : NULL;
  }
  return 0;
}

bool fake_call(const char *name) {
  int count = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < NAMES && count == 0; i++) {
    if (calls[i].count == 0) strncpy(calls[i].name, name, NAME_BYTES - 1);
    if (strcmp(calls[i].name, name) == 0) count = ++calls[i].count;
  }
  pthread_mutex_unlock(&lock);
  return count > 0 && count == failing(name);
}

int fake_library_calls(const char *name) {
  int count = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < NAMES; i++) {
    if (strcmp(calls[i].name, name) == 0) count = calls[i].count;
  }
  pthread_mutex_unlock(&lock);
  return count;
}

bool fake_refuses_shape(int64_t m, int64_t n, int64_t k) {
  const char *text = getenv("FAKE_LIBRARY_REFUSE");
  const int by = text != NULL ? atoi(text) : 0;
  return by > 1 && (m + n + k) % by == 0;
}

bool fake_refuses(void) {
  const char *text = getenv("FAKE_LIBRARY_REFUSE");
  return text != NULL && strcmp(text, "1") == 0;
}

/* ---------------------------------------------------------------- memory */

void *fake_keep(size_t bytes) {
  kept *k = calloc(1, sizeof *k + bytes);
  if (k == NULL) return NULL;
  pthread_mutex_lock(&lock);
  k->next = all_kept;
  all_kept = k;
  pthread_mutex_unlock(&lock);
  return k->bytes;
}

void *fake_object(uint32_t mark, size_t bytes) {
  object *o = calloc(1, sizeof *o + bytes);
  if (o == NULL) return NULL;
  o->mark = mark;
  return o->bytes;
}

static object *object_of(const void *bytes) {
  return (object *)((char *)(uintptr_t)bytes - offsetof(object, bytes));
}

bool fake_is(const void *bytes, uint32_t mark) {
  return bytes != NULL && object_of(bytes)->mark == mark;
}

void fake_object_free(void *bytes) {
  object *o = object_of(bytes);
  o->mark = 0;
  free(o);
}

void fake_scribble(void *workspace, size_t bytes) {
  const size_t some = bytes < 4096 ? bytes : 4096;
  if (bytes == 0) return;
  memset(workspace, 0xAB, some);
  memset((char *)workspace + bytes - some, 0xCD, some);
}

/* ---------------------------------------------------------------- streams */

static void *in_driver(const char *const *drivers, const char *symbol) {
  void *found = NULL;
  for (int i = 0; drivers[i] != NULL && found == NULL; i++) {
    void *driver = dlopen(drivers[i], RTLD_LAZY | RTLD_NOLOAD);
    if (driver == NULL) continue;
    found = dlsym(driver, symbol);
    dlclose(driver); /* the process has it loaded anyway */
  }
  return found;
}

void fake_retain(const char *const *drivers, const char *device_symbol, const char *retain_symbol) {
  static bool retained;
  const char *wanted = getenv("FAKE_LIBRARY_RETAIN");
  int (*device_of)(int *device) = NULL, (*retain)(void **out, int device) = NULL, device = 0;
  void *context = NULL;
  if (retained || wanted == NULL || strcmp(wanted, "1") != 0) return;
  *(void **)&device_of = in_driver(drivers, device_symbol);
  *(void **)&retain = in_driver(drivers, retain_symbol);
  retained = device_of != NULL && retain != NULL && device_of(&device) == 0 && retain(&context, device) == 0;
}

int fake_enqueue(const char *const *drivers, const char *symbol, void *stream, void (*fn)(void *arg), void *arg) {
  int (*launch)(void *stream, void (*fn)(void *arg), void *arg) = NULL;
  *(void **)&launch = in_driver(drivers, symbol);
  return launch == NULL ? -1 : launch(stream, fn, arg);
}

/* ---------------------------------------------------------------- arithmetic */

float fake_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7f800000U) != 0x7f800000U) bits = (bits + 0x1000U) & ~UINT32_C(0x1fff);
  memcpy(&x, &bits, sizeof x);
  return x;
}

static double element(const void *matrix, fake_type type, int64_t at) {
  if (type != FAKE_BFLOAT16) {
    const float x = ((const float *)matrix)[at];
    return (double)(type == FAKE_TF32 ? fake_tf32(x) : x);
  }
  const uint32_t bits = (uint32_t)((const uint16_t *)matrix)[at] << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return (double)x;
}

void fake_multiply(void *arg) {
  const fake_product *p = arg;
  fake_scribble(p->workspace, p->workspace_bytes);
  for (int64_t batch = 0; batch < p->count; batch++) {
    for (int64_t j = 0; j < p->n; j++) {
      for (int64_t i = 0; i < p->m; i++) {
        double sum = 0;
        for (int64_t d = 0; d < p->k; d++) {
          const int64_t a = p->trans_a ? d + i * p->lda : i + d * p->lda;
          const int64_t b = p->trans_b ? j + d * p->ldb : d + j * p->ldb;
          sum += element(p->a, p->type, a + batch * p->a_stride) * element(p->b, p->type, b + batch * p->b_stride);
        }
        sum *= (double)p->alpha;
        if (p->beta != 0.0F) sum += (double)p->beta * (double)p->c[i + j * p->ldc + batch * p->c_stride];
        if (p->bias != NULL) sum += (double)p->bias[i];
        p->d[i + j * p->ldd + batch * p->d_stride] = (float)sum;
      }
    }
  }
}

__attribute__((destructor)) static void forget(void) {
  while (all_kept != NULL) {
    kept *next = all_kept->next;
    free(all_kept);
    all_kept = next;
  }
}
