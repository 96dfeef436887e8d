/* core/alloc.h: all memory of libheddle comes from here, so that tests can count it and make any allocation fail.
 * Sizes are checked; results are zeroed. Any thread. */
#ifndef HEDDLE_CORE_ALLOC_H
#define HEDDLE_CORE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* count elements of size bytes, zeroed; NULL when memory is out or the product overflows. count 0 gives a pointer that
 * may be freed. */
void *heddle__alloc(size_t count, size_t size);

/* Grows an array to new_count elements, zeroing what is new; on NULL the old array is untouched. */
void *heddle__grow(void *old, size_t old_count, size_t new_count, size_t size);

/* Memory aligned to align (a power of two), not zeroed. Freed with heddle__free too. */
void *heddle__alloc_aligned(size_t bytes, size_t align);

void heddle__free(void *p); /* takes NULL */
char *heddle__strdup(const char *s);
char *heddle__strndup(const char *s, size_t n);
char *heddle__format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* NULL when memory is out */

/* Checked arithmetic: false on overflow, *out untouched. */
bool heddle__mul(uint64_t a, uint64_t b, uint64_t *out);
bool heddle__add(uint64_t a, uint64_t b, uint64_t *out);

/* Rounds up to a multiple of align (any positive number); UINT64_MAX on overflow. */
uint64_t heddle__round_up(uint64_t n, uint64_t align);

/* Memory that stays until the process ends and is not counted as live: for what late callbacks may still touch. */
void *heddle__alloc_forever(size_t count, size_t size);

/* For tests: how many blocks are live, and make the n-th allocation from now fail (0: none), once. */
size_t heddle__alloc_live(void);
void heddle__alloc_fail_at(uint64_t n);

#endif
