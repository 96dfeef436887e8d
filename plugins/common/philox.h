/* Philox4x32-10 (Salmon and others, 2011): four random words of a counter of 64 bits and a key. Header only, so that every
 * room may include it. */
#ifndef HEDDLE_PLUGINS_COMMON_PHILOX_H
#define HEDDLE_PLUGINS_COMMON_PHILOX_H

#include <stdint.h>

typedef struct philox_words {
  uint32_t w[4];
} philox_words;

static inline philox_words philox(uint64_t counter, uint64_t key) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  philox_words x = {{(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0}};
  for (int round = 0; round < 10; round++) {
    const uint64_t a = UINT64_C(0xD2511F53) * x.w[0], b = UINT64_C(0xCD9E8D57) * x.w[2];
    x = (philox_words){
        {(uint32_t)(b >> 32) ^ x.w[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ x.w[3] ^ k1, (uint32_t)a}};
    k0 += UINT32_C(0x9E3779B9);
    k1 += UINT32_C(0xBB67AE85);
  }
  return x;
}

#endif
