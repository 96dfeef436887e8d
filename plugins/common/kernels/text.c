/* Finds a kernel's text by name. The texts themselves are generated. */
#include "plan.h"

#include <string.h>

extern const k_text k_texts[];
extern const uint32_t k_text_count;

const k_text *k_text_find(const char *name) {
  for (uint32_t i = 0; i < k_text_count; i++) {
    if (strcmp(k_texts[i].name, name) == 0) return &k_texts[i];
  }
  return NULL;
}
