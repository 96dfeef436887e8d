/* Any bytes as a file of packed weights: what is taken has the key and the size that were asked for, and contents of the
 * digest in its head. The first byte says how much of a true head is put over what is there. */
#include "executor/weights/file.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/log.h"

static void say(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args) {
  (void)log, (void)level, (void)component, (void)format, (void)args;
}

#define heddle__vlogf say /* what is wrong with a file is not logged here */
#include "executor/weights/file.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  const size_t rest = size - 1 < sizeof(head) ? 0 : size - 1 - sizeof(head);
  unsigned char *file = calloc(1, HEAD_BYTES + rest + 1);
  head *h = calloc(1, sizeof *h);
  if (file == NULL || h == NULL) abort();
  memcpy(h, data + 1, size - 1 < sizeof *h ? size - 1 : sizeof *h);
  if (rest > 0) memcpy(file + HEAD_BYTES, data + 1 + sizeof *h, rest);
  heddle__weights_file f = {.bytes = rest, .map = file, .data = file + HEAD_BYTES, .place = {.folder = "/nowhere"}};
  if ((data[0] & 1) != 0) {
    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->key = f.key;
    h->bytes = f.bytes;
  }
  if ((data[0] & 2) != 0) {
    h->content = (heddle__digest){{0, 0}};
    heddle__digest_add(&h->content, f.data, f.bytes);
  }
  if ((data[0] & 4) != 0) seal(h);
  const struct stat info = {.st_mtim = {1, 1}};
  heddle__digest content = {{0, 0}};
  heddle__digest_add(&content, f.data, f.bytes);
  if (is_good(&f, &info, h)) {
    const heddle__digest boot = boot_of();
    const bool same_boot = heddle__digest_same(&h->boot, &boot) && h->seconds == 1 && h->nanoseconds == 1;
    if (h->bytes != f.bytes || !heddle__digest_same(&h->key, &f.key)) abort();
    if (!same_boot && !heddle__digest_same(&h->content, &content)) abort();
  }
  free(h);
  free(file);
  return 0;
}
