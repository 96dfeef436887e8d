/* Any words as SPIR-V of a kernel: what is read of it stays within them and within what a launch has room for. The first
 * byte is passed over, so that a seed's words can be distinguished from other files. */
#include <stdlib.h>
#include <string.h>

#include "plugins/vulkan/spirv.c"

static void *take(void *ctx, uint64_t bytes, uint64_t align) {
  (void)ctx;
  return aligned_alloc((size_t)align, (size_t)((bytes + align - 1) / align * align));
}

static void give(void *ctx, void *p) {
  (void)ctx;
  free(p);
}

static void check(const vlk_interface *face) {
  if (face->n_buffers > VLK_MOST_BINDINGS || face->n_scalars > VLK_MOST_SCALARS || face->block_bytes % 4 != 0) abort();
  if (face->block_bytes > VLK_BLOCK_BYTES) abort();
  for (uint32_t i = 0; i < face->n_buffers; i++)
    if (face->buffers[i] >= VLK_MOST_BINDINGS) abort();
  for (uint32_t i = 0; i < face->n_scalars; i++)
    if (face->scalars[i].offset + face->scalars[i].bytes > face->block_bytes || face->scalars[i].bytes > 8) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const heddle_host host = {.struct_size = sizeof host, .alloc = take, .free = give};
  heddle_error err = {0};
  vlk_interface face;
  if (size == 0) return 0;
  const size_t count = (size - 1) / sizeof(uint32_t);
  uint32_t *words = malloc(count * sizeof *words + 1);
  if (words == NULL) abort();
  memcpy(words, data + 1, count * sizeof *words);
  heddle_status s = vlk_spirv_check(words, count, &err);
  if (s == HEDDLE_OK) s = vlk_spirv_read(&host, words, count, "k", &face, &err);
  if (s == HEDDLE_OK) check(&face);
  else if (err.text[0] == '\0') abort();
  free(words);
  return 0;
}
