/* modules/tvm/convert.h: values of the public API and values as functions have them (words with codes), both ways. */
#ifndef HEDDLE_MODULES_TVM_CONVERT_H
#define HEDDLE_MODULES_TVM_CONVERT_H

#include "heddle/function.h"
#include "modules/tvm/object.h"

/* A value of a kind that is a pointer, which is NULL: it crosses as "none". Not a DLTensor, which callers refuse. */
static inline bool heddle__word_is_null(heddle__word w, int32_t code) {
  return w.p == NULL && code >= PACKED_MODULE && code <= PACKED_NDARRAY;
}

/* Argument i as a value. *owned: a tensor that was made for it, or NULL; released when the value is done with. -1 with
 * words that name the argument by its number. */
int heddle__word_to_value(const heddle__word *args, const int32_t *codes, int32_t i, heddle_value *out,
                          heddle_tensor **owned);

/* A value as an argument. *owned: an array that was made for it, or NULL. NULL values of kinds that are pointers are
 * PACKED_NULL. bytes: where the struct of a value of bytes is put. */
int heddle__value_to_word(const heddle_value *v, int32_t i, heddle__word *out, int32_t *code, heddle__array **owned,
                          heddle__bytes *bytes);

/* A result: the references that it carries, it still carries after. */
int heddle__result_to_word(const heddle_value *v, heddle__word *out, int32_t *code);
int heddle__result_to_value(heddle__word word, int32_t code, heddle_value *out);

/* Gives back what a result carries, or takes one more of it. */
void heddle__result_retain(heddle__word word, int32_t code);
void heddle__result_drop(heddle__word word, int32_t code);
void heddle__value_drop(const heddle_value *v);

/* A function of the application, called with words: what was launched before is done when it runs. As heddle__tvm_fn. */
int heddle__callback_call(heddle_callback call, void *self, const heddle__word *args, const int32_t *codes, int32_t n,
                          heddle__word *ret, int32_t *ret_code);

/* A function of a library by name, called with words: waits for what it launches. As heddle__tvm_fn. */
int heddle__values_call(heddle_module *m, const char *name, const heddle__word *args, const int32_t *codes, int32_t n,
                        heddle__word *ret, int32_t *ret_code);

#endif
