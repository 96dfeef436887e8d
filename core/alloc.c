/* core/alloc.c: the one place where libheddle takes and gives back memory, with a count and an injected failure.
 * The checked arithmetic for sizes that come from outside lives here too. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static atomic_size_t live;
static atomic_ullong fail_in; /* 0: no failure is due */

/* True when this allocation is the one that a test wants to fail. One relaxed load where no test asked. */
static bool refused(void) {
  unsigned long long n = atomic_load_explicit(&fail_in, memory_order_relaxed);
  while (n != 0)
    if (atomic_compare_exchange_weak(&fail_in, &n, n - 1)) return n == 1;
  return false;
}

static void *counted(void *p) {
  if (p != NULL) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
  return p;
}

void *heddle__alloc(size_t count, size_t size) {
  if (refused()) return NULL;
  if (count == 0 || size == 0) count = size = 1;
  return counted(calloc(count, size));
}

void *heddle__grow(void *old, size_t old_count, size_t new_count, size_t size) {
  if (old == NULL) return heddle__alloc(new_count, size);
  uint64_t bytes;
  if (!heddle__mul(new_count, size, &bytes) || bytes > SIZE_MAX || refused()) return NULL;
  char *p = realloc(old, bytes > 0 ? (size_t)bytes : 1);
  if (p != NULL && new_count > old_count) memset(p + old_count * size, 0, (new_count - old_count) * size);
  return p;
}

void *heddle__alloc_aligned(size_t bytes, size_t align) {
  void *p = NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  if (bytes == 0) bytes = 1;
  if ((align & (align - 1)) != 0 || refused() || posix_memalign(&p, align, bytes) != 0) return NULL;
  return counted(p);
}

void *heddle__alloc_forever(size_t count, size_t size) {
  return refused() ? NULL : calloc(count, size);
}

void heddle__free(void *p) {
  if (p == NULL) return;
  atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  free(p);
}

char *heddle__strdup(const char *s) {
  return heddle__strndup(s, strlen(s));
}

char *heddle__strndup(const char *s, size_t n) {
  n = strnlen(s, n);
  char *copy = n < SIZE_MAX ? heddle__alloc(n + 1, 1) : NULL;
  if (copy != NULL) memcpy(copy, s, n);
  return copy;
}

char *heddle__format(const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  char *text = n < 0 ? NULL : heddle__alloc((size_t)n + 1, 1);
  if (text != NULL) vsnprintf(text, (size_t)n + 1, format, again);
  va_end(again);
  va_end(args);
  return text;
}

bool heddle__mul(uint64_t a, uint64_t b, uint64_t *out) {
  if (a != 0 && b > UINT64_MAX / a) return false;
  *out = a * b;
  return true;
}

bool heddle__add(uint64_t a, uint64_t b, uint64_t *out) {
  if (b > UINT64_MAX - a) return false;
  *out = a + b;
  return true;
}

uint64_t heddle__round_up(uint64_t n, uint64_t align) {
  uint64_t over = align > 1 ? n % align : 0;
  if (over == 0) return n;
  return n > UINT64_MAX - (align - over) ? UINT64_MAX : n + (align - over);
}

size_t heddle__alloc_live(void) {
  return atomic_load(&live);
}

void heddle__alloc_fail_at(uint64_t n) {
  atomic_store(&fail_in, n);
}
