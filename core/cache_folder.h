/* core/cache_folder.h: the digest by which files are named and checked in folders of the user's in which libraries beside
 * libheddle keep what they found out. It is not in libheddle itself: who needs it compiles it in. */
#ifndef HEDDLE_CORE_CACHE_FOLDER_H
#define HEDDLE_CORE_CACHE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

/* 128 bits, a fast hash that is not for strangers who wish us ill. Starts as zeros. */
typedef struct heddle__digest {
  uint64_t word[2];
} heddle__digest;

void heddle__digest_add(heddle__digest *d, const void *data, uint64_t bytes);
void heddle__digest_text(heddle__digest *d, const char *text); /* with its end */
bool heddle__digest_same(const heddle__digest *a, const heddle__digest *b);

#endif
