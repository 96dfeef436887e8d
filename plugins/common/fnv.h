/* FNV-1a of 64 bits (Fowler, Noll and Vo; RFC 9923): the hash in the names of cache files, in checksums of small texts and
 * in tables. Not for input that an attacker chooses. Header only, so that every room may include it. */
#ifndef HEDDLE_PLUGINS_COMMON_FNV_H
#define HEDDLE_PLUGINS_COMMON_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A_START UINT64_C(0xcbf29ce484222325)

/* Continues a hash (FNV1A_START at first) with bytes. */
static inline uint64_t fnv1a(uint64_t hash, const void *data, size_t bytes) {
  const unsigned char *p = (const unsigned char *)data;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* The hash of a string without its terminator. */
static inline uint64_t fnv1a_text(const char *text) {
  uint64_t hash = FNV1A_START;
  for (; *text != '\0'; text++) hash = fnv1a(hash, text, 1);
  return hash;
}

#endif
