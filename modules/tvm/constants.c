/* modules/tvm/constants.c: constants that external code generators left in a library for functions of theirs: TVM calls
 * __init_NAME with them before NAME is called. Where there is no such function, there is nothing to do. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/tensor.h"
#include "modules/tvm/library.h"
#include "modules/tvm/loaders.h"

enum { LONGEST = 512 };

/* The reader of the blob has checked every length. */
static uint64_t number(const unsigned char **at, unsigned bytes) {
  uint64_t n = 0;
  for (unsigned i = 0; i < bytes; i++) n |= (uint64_t)(*at)[i] << (8 * i);
  *at += bytes;
  return n;
}

static heddle__span string(const unsigned char **at) {
  heddle__span s = {.bytes = number(at, 8)};
  s.data = *at;
  *at += s.bytes;
  return s;
}

/* Bytes of a tensor; UINT64_MAX where there is no such tensor. */
static uint64_t bytes_of(heddle_dtype dtype, const int64_t *shape, uint32_t ndim) {
  uint64_t n = ((uint64_t)dtype.bits * dtype.lanes + 7) / 8;
  for (uint32_t i = 0; i < ndim; i++)
    if (shape[i] < 0 || __builtin_mul_overflow(n, (uint64_t)shape[i], &n)) return UINT64_MAX;
  return n;
}

/* One record: magic, reserved, device, ndim, dtype, shape, bytes. The data is copied to where it is aligned. */
static heddle_status take_array(const unsigned char **at, heddle_tensor **out, heddle_error *err) {
  int64_t shape[HEDDLE__TENSOR_MAX_NDIM];
  *at += 24;
  uint32_t ndim = (uint32_t)number(at, 4);
  heddle_dtype dtype = {.code = (uint8_t)number(at, 1)};
  dtype.bits = (uint8_t)number(at, 1);
  dtype.lanes = (uint16_t)number(at, 2);
  for (uint32_t i = 0; i < ndim; i++) shape[i] = (int64_t)number(at, 8);
  uint64_t bytes = number(at, 8);
  if (dtype.code == HEDDLE_DTYPE_UINT && dtype.bits == 1) dtype = (heddle_dtype){HEDDLE_DTYPE_BOOL, 8, dtype.lanes};
  if (bytes_of(dtype, shape, ndim) != bytes)
    return heddle__fail(err, HEDDLE_EFORMAT, "a constant of it has %llu bytes, and its shape says another number",
                        (unsigned long long)bytes);
  heddle_status s = heddle_tensor_create(NULL, dtype, shape, ndim, out, err);
  if (s == HEDDLE_OK && bytes > 0) memcpy(heddle_tensor_data(*out), *at, (size_t)bytes);
  *at += bytes;
  return s;
}

static heddle_status take_arrays(const heddle__submodule *m, heddle_tensor **out, heddle_error *err) {
  const unsigned char *at = m->arrays.data;
  heddle_status s = HEDDLE_OK;
  for (uint64_t i = 0; i < m->n_arrays && s == HEDDLE_OK; i++) s = take_array(&at, &out[i], err);
  return s;
}

/* The number of a constant by its name; n_arrays: there is none. */
static uint64_t place_of(const heddle__submodule *m, heddle__span name) {
  const unsigned char *at = m->names.data + 8;
  for (uint64_t i = 0; i < m->n_arrays; i++) {
    heddle__span own = string(&at);
    if (own.bytes == name.bytes && (own.bytes == 0 || memcmp(own.data, name.data, (size_t)name.bytes) == 0)) return i;
  }
  return m->n_arrays;
}

/* A function that takes constants: the library's own code, or a function of a module that the application's loader made. */
typedef struct taker {
  const char *name;
  void *code; /* NULL: it is in a module */
  heddle_function *loaded;
} taker;

/* takes: at the list of the constants' names. */
static heddle_status give(const heddle__tvm_library *l, const heddle__submodule *m, const taker *to,
                          const unsigned char *takes, heddle_tensor *const *arrays, heddle_error *err) {
  uint64_t n = number(&takes, 8);
  heddle_value result, *args = heddle__alloc((size_t)n, sizeof *args);
  heddle_status s = args != NULL ? HEDDLE_OK : heddle__no_memory(err, "constants");
  for (uint64_t i = 0; i < n && s == HEDDLE_OK; i++) {
    heddle__span name = string(&takes);
    uint64_t k = place_of(m, name);
    if (k == m->n_arrays)
      s = heddle__fail(err, HEDDLE_EFORMAT, "it has no constant '%.*s', which %.200s takes",
                       (int)(name.bytes < 200 ? name.bytes : 200), name.data, to->name);
    else args[i] = (heddle_value){.kind = HEDDLE_VALUE_TENSOR, .of.t = arrays[k]};
  }
  if (s == HEDDLE_OK && to->code != NULL) {
    s = heddle__library_give_objects(l, to->name, to->code, args, n, err);
  } else if (s == HEDDLE_OK) {
    s = heddle__loaded_call(to->loaded, args, (uint32_t)n, &result, err);
    if (s != HEDDLE_OK) heddle__prefix(err, s, "function '%.200s': ", to->name);
  }
  heddle__free(args);
  return s;
}

static heddle_status initialise(const heddle__tvm_library *l, const heddle__submodule *m, heddle_error *err) {
  const unsigned char *symbol_at = m->symbols.data, *takes = m->takes.data;
  heddle_tensor **arrays = heddle__alloc((size_t)m->n_arrays, sizeof *arrays);
  heddle_status s = arrays != NULL ? HEDDLE_OK : heddle__no_memory(err, "constants");
  bool have_arrays = false;
  for (uint64_t i = 0; i < m->n_symbols && s == HEDDLE_OK; i++) {
    heddle__symbol own;
    char name[LONGEST];
    heddle__span symbol = string(&symbol_at);
    const unsigned char *mine = takes;
    for (uint64_t n = number(&takes, 8); n > 0; n--) (void)string(&takes);
    if (symbol.bytes > sizeof name - 10) continue; /* longer than any name */
    snprintf(name, sizeof name, "__init_%.*s", (int)symbol.bytes, symbol.data);
    taker to = {.name = name};
    if (heddle__symbol_find(&l->symbols, "", name, HEDDLE__SYMBOL_FUNCTION, &own)) to.code = own.address;
    else s = heddle__library_loaded(l, name, &to.loaded, err);
    if (to.code == NULL && to.loaded == NULL) continue;
    if (!have_arrays) s = take_arrays(m, arrays, err);
    have_arrays = true;
    if (s == HEDDLE_OK) s = give(l, m, &to, mine, arrays, err);
  }
  for (uint64_t i = 0; i < m->n_arrays && arrays != NULL; i++) heddle_tensor_release(arrays[i]);
  heddle__free(arrays);
  return s;
}

heddle_status heddle__library_constants(heddle__tvm_library *l, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < l->blob.n_modules && s == HEDDLE_OK; i++)
    if (l->blob.modules[i].n_symbols > 0) s = initialise(l, &l->blob.modules[i], err);
  return s;
}
