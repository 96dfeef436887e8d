/* What the cases of the tables share: memory that host and device both see, copies between it and device buffers, rows
 * of sizes, and work that stands still until the kit lets it go. All of it fails or skips the case itself. */
#ifndef HEDDLE_CONFORMANCE_TABLES_H
#define HEDDLE_CONFORMANCE_TABLES_H

#include "conformance/kit.h"

/* A mapped buffer of kind PINNED. */
typedef struct kit_pinned {
  heddle_pdevice *dev;
  heddle_pbuffer *buffer;
  uint8_t *at;
  uint64_t bytes;
} kit_pinned;

/* bytes of PINNED memory of dev, mapped. An inline device that has none makes the case a skip. */
kit_pinned kit_pinned_new(kit *k, heddle_pdevice *dev, uint64_t bytes);
void kit_pinned_free(kit *k, kit_pinned *page);

/* What the host wrote to the page is for the device's eyes; what the device wrote is for the host's. Calls flush and
 * invalidate where the device says that its mappings are not coherent, else nothing. */
void kit_pinned_flush(kit *k, const kit_pinned *page);
void kit_pinned_invalidate(kit *k, const kit_pinned *page);

/* Four of the copies; a refusal fails the case. kit_fill writes bytes: the lowest of n, so that no case but copy/fill
 * depends on the order of a word's bytes. */
void kit_h2d(kit *k, heddle_pstream *s, heddle_pbuffer *dst, uint64_t to, heddle_pbuffer *host, uint64_t from,
             uint64_t bytes);
void kit_d2h(kit *k, heddle_pstream *s, heddle_pbuffer *host, uint64_t to, heddle_pbuffer *src, uint64_t from,
             uint64_t bytes);
void kit_d2d(kit *k, heddle_pstream *s, heddle_pbuffer *dst, uint64_t to, heddle_pbuffer *src, uint64_t from,
             uint64_t bytes);
void kit_fill(kit *k, heddle_pstream *s, heddle_pbuffer *dst, uint64_t to, uint64_t bytes, uint32_t n);
void kit_submit(kit *k, heddle_pstream *s);

/* Fails the case unless data[0..bytes) is kit_pattern of seed; what names the bytes in the text. */
void kit_same(kit *k, const void *data, uint64_t bytes, uint32_t seed, const char *what);
/* The same for bytes that a device buffer holds, read through the stream. */
void kit_holds(kit *k, heddle_pstream *s, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, uint32_t seed,
               const char *what);
/* Puts kit_pattern of seed into a device buffer. */
void kit_put_pattern(kit *k, heddle_pstream *s, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, uint32_t seed);
/* Fails the case unless the device buffer's range holds what kit_fill with n writes. */
void kit_words(kit *k, heddle_pstream *s, heddle_pbuffer *buffer, uint64_t offset, uint64_t bytes, uint32_t n,
               const char *what);

/* Memory of the case's own; the case fails where there is none. */
void *kit_room(kit *k, uint64_t bytes);

/* Makes the stream's later work wait for a fence of the kit's that is not raised. Skips the case where the device
 * cannot (fence.wait and HEDDLE_CAP_WAIT_BEFORE_SIGNAL). kit_release raises it. */
heddle_pfence kit_hold(kit *k, heddle_pstream *s);
void kit_release(kit *k, heddle_pfence fence);
bool kit_can_hold(const kit *k);

/* Makes work of the stream fail: it waits for a fence that has failed, or without fence.wait, in a case that is FAILS,
 * fills with the word of the hook fail_on_fill. Skips the case where the plugin has neither. */
void kit_spoil(kit *k, heddle_pstream *s, const char *words);

/* A second device whose streams share the event domain of the one under test, opened; skips where there is none. index
 * gets its number. */
heddle_pdevice *kit_sibling(kit *k, uint32_t *index);

/* A live number of device.query (HEDDLE_QUERY_LIVE_*); skips the case where the device does not answer it. */
int64_t kit_live(kit *k, uint32_t key);

#endif
