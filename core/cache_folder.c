/* core/cache_folder.c: the digest of what is in the folders of caches. */
#include "core/cache_folder.h"

#include <string.h>

void heddle__digest_add(heddle__digest *d, const void *data, uint64_t bytes) {
  static const uint64_t by[4] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xc2b2ae3d27d4eb4f),
                                 UINT64_C(0x165667b19e3779f9), UINT64_C(0xd6e8feb86659fd93)};
  uint64_t lane[4] = {d->word[0] ^ by[2], d->word[1] ^ by[3], d->word[0] + by[1], d->word[1] + by[0] + bytes};
  const unsigned char *at = data;
  for (uint64_t left = bytes; left > 0;) {
    uint64_t words[4] = {0};
    size_t n = left < sizeof words ? (size_t)left : sizeof words;
    memcpy(words, at, n);
    for (int i = 0; i < 4; i++) {
      uint64_t x = lane[i] ^ words[i];
      lane[i] = (x << 29 | x >> 35) * by[i];
    }
    at += n;
    left -= n;
  }
  for (int i = 0; i < 8; i++) {
    uint64_t x = lane[i % 4] ^ lane[(i + 1) % 4] >> 31;
    lane[i % 4] = (x << 23 | x >> 41) * by[i % 4];
  }
  d->word[0] = lane[0] ^ lane[2];
  d->word[1] = lane[1] ^ lane[3];
}

void heddle__digest_text(heddle__digest *d, const char *text) {
  heddle__digest_add(d, text, strlen(text) + 1);
}

bool heddle__digest_same(const heddle__digest *a, const heddle__digest *b) {
  return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}
