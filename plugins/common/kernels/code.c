/* The calls of code.h, but for k_chain_text (plan_fused.c). */
#include "code.h"

#include "plugins/common/chain.h"
#include "plugins/common/scalar.h"

#include <stdio.h>
#include <string.h>

const k_kernel k_kernels[KERNEL_COUNT] = {
#define KERNEL(text, name) {#text, #name},
    K_TEXT_KERNELS(KERNEL) K_PORTABLE_KERNELS(KERNEL)
#undef KERNEL
};

const char *const k_element_names[K_ELEMENT_COUNT] = {
#define NAME(constant, name, word, bytes) name,
    K_ELEMENTS(NAME)
#undef NAME
};

static const char *const element_words[K_ELEMENT_COUNT] = {
#define WORD(constant, name, word, bytes) word,
    K_ELEMENTS(WORD)
#undef WORD
};

const uint8_t k_element_bytes[K_ELEMENT_COUNT] = {
#define BYTES(constant, name, word, bytes) bytes,
    K_ELEMENTS(BYTES)
#undef BYTES
};

static const char *const flag_names[K_FLAG_COUNT] = {
#define NAME(name) #name,
    K_FLAGS(NAME)
#undef NAME
};

static const char *const raw_names[K_RAW_COUNT] = {
#define NAME(name) #name,
    K_RAWS(NAME)
#undef NAME
};

/* The text of a chain follows from its expression and from how inputs are read, not from sizes. */
static bool same_chain(const heddle_chain *a, const heddle_chain *b) {
  if (a == NULL || b == NULL) return a == b;
  return (a->walked > 0) == (b->walked > 0) && memcmp(&a->program, &b->program, sizeof a->program) == 0 &&
         memcmp(a->kind, b->kind, a->program.n_inputs * sizeof *a->kind) == 0;
}

bool k_code_same(const k_code *a, const heddle_chain *a_chain, const k_code *b, const heddle_chain *b_chain) {
  return memcmp(a, b, sizeof *a) == 0 && same_chain(a_chain, b_chain);
}

/* ---------------------------------------------------------------- as text */

typedef struct text {
  bool lines;
  char *out;
  size_t used;
} text;

static void put(text *t, const char *name, const char *value) {
  const int n =
      snprintf(t->out + t->used, K_CODE_TEXT - t->used, t->lines ? "#define %s %s\n" : "-D%s=%s ", name, value);
  t->used += n > 0 && t->used + (size_t)n < K_CODE_TEXT ? (size_t)n : 0;
}

static void put_number(text *t, const char *name, int64_t value) {
  char word[24];
  snprintf(word, sizeof word, "%lld", (long long)value);
  put(t, name, word);
}

static void put_expression(text *t, const k_code *code) {
  static const char *const kinds[] = {"REAL", "INT", "TEST_REAL", "TEST_INT", "LOGIC"}; /* bits of SCALAR_* */
  uint32_t kind = 0;
  while (kind < 4 && (code->kind >> kind & 1) == 0) kind++;
  put_number(t, "N_IN", code->n_in);
  put(t, "OP", code->kind != 0 ? scalar_name(code->op) : raw_names[code->op]);
  put(t, "KIND", code->kind != 0 ? kinds[kind] : "RAW");
}

void k_code_text(const k_code *code, bool lines, char out[K_CODE_TEXT]) {
  const bool expression = code->kernel >= KERNEL_flat && code->kernel <= KERNEL_walk;
  const char *const *words = k_is_portable(code->kernel) ? k_element_names : element_words;
  text t = {lines, out, 0};
  char name[40];
  snprintf(name, sizeof name, "K_%s", k_kernels[code->kernel].name);
  put(&t, name, "1");
  put(&t, "IDX", code->wide ? "long" : "int");
  for (uint32_t i = 0; i < code->n_types; i++) {
    const bool result = expression && i == K_RESULT_TYPE;
    snprintf(name, sizeof name, result ? "TO" : "T%u", i);
    put(&t, name, words[code->types[i]]);
    if (!k_element_is_real(code->types[i]) || expression) continue;
    snprintf(name, sizeof name, "T%u_REAL", i);
    put(&t, name, "1");
  }
  for (uint32_t i = 0; i < K_FLAG_COUNT; i++)
    if ((code->flags >> i & 1) != 0) put(&t, flag_names[i], "1");
  if (code->variant != 0) put_number(&t, "V0", code->variant);
  if (expression) put_expression(&t, code);
}
