/* generate/gguf_blocks.c: the types of GGUF's tensors that are read: float32, and those of plugins/common/blocks.h. */
#include <string.h>

#include "core/alloc.h"
#include "generate/gguf.h"
#include "plugins/common/blocks.h"

int heddle__gguf_form(uint32_t type) {
  for (int i = BLOCK_NONE + 1; i < BLOCK_FORMS; i++)
    if (block_form_of(i)->gguf == type) return i;
  return BLOCK_NONE;
}

uint64_t heddle__gguf_bytes(uint32_t type, uint64_t count, uint64_t row) {
  const block_form *f = block_form_of(heddle__gguf_form(type));
  const uint32_t elements = f != NULL ? f->elements : 1, bytes = f != NULL ? f->bytes : (uint32_t)sizeof(float);
  uint64_t all;
  if ((f == NULL && type != HEDDLE__GGUF_F32) || row % elements != 0 || !heddle__mul(count / elements, bytes, &all))
    return 0;
  return all;
}

void heddle__gguf_read(const heddle__gguf_tensor *t, float *out) {
  const block_form *f = block_form_of(heddle__gguf_form(t->type));
  if (f == NULL) {
    memcpy(out, t->data, (size_t)t->count * sizeof *out);
    return;
  }
  const uint8_t *block = t->data;
  for (uint64_t k = 0; k < t->count; k += f->elements, block += f->bytes) f->read(block, out + k);
}
