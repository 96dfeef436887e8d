/* Conversion between element types, by way of int64_t or double: the type that holds all values of the source. */
#include "types.h"

#include "plugins/common/region.h"

#include <stdbool.h>
#include <string.h>

enum { CHUNK = 128 };

int ref_type_of(heddle_dtype d) {
  if (d.lanes != 1) return REF_TYPE_NONE;
  const int step = d.bits == 8 ? 0 : d.bits == 16 ? 1 : d.bits == 32 ? 2 : d.bits == 64 ? 3 : -1;
  if (step < 0) return REF_TYPE_NONE;
  if (d.code == HEDDLE_DTYPE_FLOAT) return step == 2 ? REF_TYPE_F32 : step == 3 ? REF_TYPE_F64 : REF_TYPE_NONE;
  if (d.code == HEDDLE_DTYPE_INT) return REF_TYPE_I8 + step;
  if (d.code == HEDDLE_DTYPE_UINT) return REF_TYPE_U8 + step;
  return d.code == HEDDLE_DTYPE_BOOL && step == 0 ? REF_TYPE_BOOL : REF_TYPE_NONE;
}

uint32_t ref_type_bytes(int type) {
  static const uint8_t bytes[] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 0};
  return bytes[type];
}

static bool is_unsigned(int type) {
  return type >= REF_TYPE_U8;
}

int64_t ref_type_least(int type) {
  return is_unsigned(type) ? 0 : -ref_type_most(type) - 1;
}

int64_t ref_type_most(int type) {
  if (type == REF_TYPE_BOOL) return 1;
  return (int64_t)(UINT64_MAX >> (64 - 8 * ref_type_bytes(type) + !is_unsigned(type)));
}

int ref_type_of_onnx(int64_t number) {
  static const uint8_t types[] = {REF_TYPE_NONE, REF_TYPE_F32, REF_TYPE_U8,  REF_TYPE_I8,   REF_TYPE_U16,
                                  REF_TYPE_I16,  REF_TYPE_I32, REF_TYPE_I64, REF_TYPE_NONE, REF_TYPE_BOOL,
                                  REF_TYPE_NONE, REF_TYPE_F64, REF_TYPE_U32, REF_TYPE_U64};
  return number >= 0 && number < (int64_t)sizeof types ? types[number] : REF_TYPE_NONE;
}

/* ---------------------------------------------------------------- conversion */

#define LOOP(name, T, EXPR) \
  case name: \
    for (int64_t i = 0; i < n; i++) EXPR; \
    break;
#define READ(name, T) LOOP(name, T, out[i] = ((const T *)in)[i])
#define WRITE(name, T) LOOP(name, T, ((T *)out)[i] = (T)in[i])

/* Of an integer type or bool. */
static void read_whole(int type, const void *in, int64_t n, int64_t *out) {
  switch (type) {
    READ(REF_TYPE_I8, int8_t)
    READ(REF_TYPE_I16, int16_t)
    READ(REF_TYPE_I32, int32_t)
    READ(REF_TYPE_I64, int64_t)
    READ(REF_TYPE_U8, uint8_t)
    READ(REF_TYPE_U16, uint16_t)
    READ(REF_TYPE_U32, uint32_t)
    LOOP(REF_TYPE_U64, uint64_t, out[i] = (int64_t)((const uint64_t *)in)[i])
    LOOP(REF_TYPE_BOOL, uint8_t, out[i] = ((const uint8_t *)in)[i] != 0)
  default: break;
  }
}

static void write_whole(int type, const int64_t *in, int64_t n, void *out) {
  switch (type) {
    WRITE(REF_TYPE_F32, float)
    WRITE(REF_TYPE_F64, double)
    WRITE(REF_TYPE_I8, int8_t)
    WRITE(REF_TYPE_U8, uint8_t)
    WRITE(REF_TYPE_I16, int16_t)
    WRITE(REF_TYPE_U16, uint16_t)
    WRITE(REF_TYPE_I32, int32_t)
    WRITE(REF_TYPE_U32, uint32_t)
    LOOP(REF_TYPE_BOOL, uint8_t, ((uint8_t *)out)[i] = in[i] != 0)
  default: memcpy(out, in, (size_t)n * sizeof *in); break;
  }
}

void ref_cast(int from, const void *in, int to, void *out, int64_t n) {
  const uint32_t from_bytes = ref_type_bytes(from), to_bytes = ref_type_bytes(to);
  if (from == to && from != REF_TYPE_BOOL) {
    memcpy(out, in, (size_t)n * from_bytes);
    return;
  }
  for (int64_t at = 0; at < n; at += CHUNK) {
    const int64_t some = n - at < CHUNK ? n - at : CHUNK;
    const char *src = (const char *)in + at * from_bytes;
    char *dst = (char *)out + at * to_bytes;
    int64_t whole[CHUNK];
    if (from > REF_TYPE_F64) {
      read_whole(from, src, some, whole);
      if (from == REF_TYPE_U64 && to <= REF_TYPE_F64) { /* above the range of int64_t */
        for (int64_t i = 0; i < some; i++) {
          const uint64_t x = (uint64_t)whole[i];
          if (to == REF_TYPE_F32) ((float *)(void *)dst)[i] = (float)x;
          else ((double *)(void *)dst)[i] = (double)x;
        }
        continue;
      }
    } else if (to == REF_TYPE_F64) {
      for (int64_t i = 0; i < some; i++) ((double *)(void *)dst)[i] = ((const float *)(const void *)src)[i];
      continue;
    } else if (to == REF_TYPE_F32) {
      for (int64_t i = 0; i < some; i++) ((float *)(void *)dst)[i] = (float)((const double *)(const void *)src)[i];
      continue;
    } else {
      for (int64_t i = 0; i < some; i++) {
        const double x = from == REF_TYPE_F32 ? (double)((const float *)(const void *)src)[i]
                                              : ((const double *)(const void *)src)[i];
        whole[i] = to == REF_TYPE_BOOL ? x != 0 : ref_whole_of(x);
      }
    }
    write_whole(to, whole, some, dst);
  }
}

#define TAKE(T) \
  for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)in)[i * stride];

#define FILL(T) \
  do { \
    const T one = *(const T *)in; \
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = one; \
  } while (0)

void ref_take(const void *in, int64_t stride, uint32_t size, int64_t n, void *out) {
  if (stride == 0 && size == 1) memset(out, *(const char *)in, (size_t)n);
  else if (stride == 0 && size == 2) FILL(uint16_t);
  else if (stride == 0 && size == 4) FILL(uint32_t);
  else if (stride == 0 && size == 8) FILL(uint64_t);
  else if (stride == 1) memcpy(out, in, (size_t)n * size);
  else if (size == 4) TAKE(uint32_t)
  else if (size == 8) TAKE(uint64_t)
  else if (size == 2) TAKE(uint16_t)
  else if (size == 1) TAKE(uint8_t)
  else {
    for (int64_t i = 0; i < n; i++) memcpy((char *)out + i * size, (const char *)in + i * stride * size, size);
  }
}
