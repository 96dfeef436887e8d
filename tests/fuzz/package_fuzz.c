/* Any bytes as a packed graph of operators: no crash, no leak, a refusal has words, and what is read is inside of the file. The
 * first byte says whether the head's size is made right, and whether it is one of version 2, whose index gets the digest that
 * it should have. What is prepared may be unusable, with a reason; else its files are inside too. */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>

#include "core/alloc.h"
#include "graph/package.h"
#include "graph/prepared.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int file, uint64_t value, off_t at) {
  unsigned char text[8];
  for (unsigned i = 0; i < 8; i++) text[i] = (unsigned char)(value >> (8 * i));
  if (pwrite(file, text, sizeof text, at) < 0) abort();
}

static uint64_t get(const uint8_t *at) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 8; i++) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

/* data: the file's bytes. */
static void seal(int file, const uint8_t *data, size_t size) {
  heddle__digest d = {{0, 0}};
  if (size < HEDDLE__PACKAGE_HEAD2) return;
  const uint64_t at = get(data + 64), bytes = get(data + 72);
  if (pwrite(file, HEDDLE_PACK_MAGIC "\2\0\0\0", 12, 0) < 0) abort();
  if (at < HEDDLE__PACKAGE_HEAD2 || at > size || bytes > size - at) return;
  heddle__digest_add(&d, data + at, bytes);
  put(file, d.word[0], 80);
  put(file, d.word[1], 88);
}

/* Reads each byte that is said to be there. */
static unsigned look(const heddle__prepared *p) {
  unsigned sum = 0;
  if (p == NULL || p->why != NULL) return 0;
  for (uint32_t i = 0; i < p->n_files; i++) {
    if (p->files[i].target >= p->n_targets) abort();
    for (uint64_t k = 0; k < p->files[i].bytes; k += 64) sum += p->files[i].data[k];
    sum += (unsigned)p->files[i].name[0];
  }
  for (uint32_t i = 0; i < p->n_targets; i++)
    for (uint32_t k = 0; k < p->targets[i].n_devices; k++) sum += (unsigned)p->targets[i].devices[k].driver[0];
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t live = heddle__alloc_live();
  heddle_error err = {0};
  char path[40];
  heddle_graph *graph = NULL;
  heddle_params *params = NULL;
  if (size == 0) return 0;
  int file = memory_file(data + 1, size - 1);
  if (data[0] % 2 == 1) {
    unsigned char head[24] = HEDDLE_PACK_MAGIC "\1";
    for (unsigned i = 0; i < 8; i++) head[16 + i] = (unsigned char)((uint64_t)(size < 25 ? 24 : size - 1) >> (8 * i));
    if (pwrite(file, head, sizeof head, 0) < 0) abort();
  }
  if (data[0] % 4 >= 2) seal(file, data + 1, size - 1);
  memory_path(file, path);
  heddle_status s = heddle_graph_load(path, NULL, &graph, &err);
  if (s != HEDDLE_OK && (err.status != s || err.text[0] == '\0')) abort();
  err = (heddle_error){.text = ""};
  s = heddle_params_load(path, NULL, &params, &err);
  if (s != HEDDLE_OK && (err.status != s || err.text[0] == '\0')) abort();
  volatile unsigned sum = params != NULL && params->carried != NULL ? look(params->carried->prepared) : 0;
  for (uint32_t i = 0; params != NULL && i < params->count; i++) {
    const unsigned char *bytes = params->items[i].value.data;
    for (uint64_t k = 0; k < params->items[i].value.bytes; k += 64) sum += bytes[k];
  }
  (void)sum;
  heddle_graph_release(graph);
  heddle_params_release(params);
  if (heddle__alloc_live() != live) abort();
  return 0;
}
