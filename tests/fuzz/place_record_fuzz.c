/* Any bytes as the file of times that automatic placement keeps: no crash, no leak, as many entries as lines at most. An
 * odd first byte puts head and checksum around what follows, which otherwise nothing gets past. */
#include "executor/place/costs.c"

#include "core/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t live = heddle__alloc_live();
  if (size == 0) return 0;
  heddle__costs c = {0};
  book *b = heddle__alloc(1, sizeof *b);
  const bool whole = data[0] % 2 == 1;
  char *text = heddle__alloc(size + 200, 1);
  if (b == NULL || text == NULL || !heddle__costs_start(&c)) abort();
  c.books = b;
  size_t n = 0, lines = 0;
  if (whole) n = (size_t)sprintf(text, HEAD "%016llx%016llx\n", 0ULL, 0ULL);
  memcpy(text + n, data + 1, size - 1);
  n += size - 1;
  for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
  if (whole) n += (size_t)sprintf(text + n, "end %016llx\n", (unsigned long long)checksum(text, n));
  const bool good = read_text(b, text, n);
  if (b->count > lines) abort();
  for (uint32_t i = 0; good && i < b->count; i++)
    if (find_cost(b, &b->entries[i].region) == NULL || !b->entries[i].kept) abort();
  heddle__costs_finish(&c);
  heddle__free(text);
  if (heddle__alloc_live() != live) abort();
  return 0;
}
