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

/* The commonest conversions in one step, with AVX2. Reals become integers of up to 32 bits by way of int32; where one of some
 * does not fit that, none of them is converted: false. */
enum { SOME = 1024 };

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define DIRECT(name, F, T, FITS, ...) \
  __attribute__((target("avx2"))) static bool name(const void *in, void *out, int64_t n) { \
    const F *x = in; \
    T *y = out; \
    int outside = 0; \
    (void)outside; \
    for (int64_t i = 0; i < n && !(FITS); i++) outside |= !(x[i] > -0x1p31f && x[i] < 0x1p31f); \
    if (outside != 0) return false; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) y[i] = (T)(__VA_ARGS__); \
    return true; \
  }
DIRECT(f32_to_bool, float, uint8_t, true, x[i] != 0)
DIRECT(f32_to_i8, float, int8_t, false, (int32_t)x[i])
DIRECT(f32_to_u8, float, uint8_t, false, (int32_t)x[i])
DIRECT(f32_to_i16, float, int16_t, false, (int32_t)x[i])
DIRECT(f32_to_u16, float, uint16_t, false, (int32_t)x[i])
DIRECT(f32_to_i32, float, int32_t, false, x[i])
DIRECT(f32_to_i64, float, int64_t, false, (int32_t)x[i])
DIRECT(bool_to_f32, uint8_t, float, true, (int32_t)(x[i] != 0))
DIRECT(bool_to_i32, uint8_t, int32_t, true, x[i] != 0)
DIRECT(bool_to_i64, uint8_t, int64_t, true, (int32_t)(x[i] != 0))
DIRECT(i8_to_f32, int8_t, float, true, (int32_t)x[i])
DIRECT(u8_to_f32, uint8_t, float, true, (int32_t)x[i])
DIRECT(i16_to_f32, int16_t, float, true, (int32_t)x[i])
DIRECT(u16_to_f32, uint16_t, float, true, (int32_t)x[i])
DIRECT(i32_to_f32, int32_t, float, true, x[i])
DIRECT(i32_to_i64, int32_t, int64_t, true, x[i])
DIRECT(i64_to_i32, int64_t, int32_t, true, x[i])
DIRECT(i32_to_bool, int32_t, uint8_t, true, x[i] != 0)
DIRECT(i64_to_bool, int64_t, uint8_t, true, x[i] != 0)

static bool cast_direct(int from, const void *in, int to, void *out, int64_t n) {
  static const struct {
    uint8_t from, to;
    bool (*run)(const void *in, void *out, int64_t n);
  } list[] = {{REF_TYPE_F32, REF_TYPE_BOOL, f32_to_bool}, {REF_TYPE_F32, REF_TYPE_I8, f32_to_i8},
              {REF_TYPE_F32, REF_TYPE_U8, f32_to_u8},     {REF_TYPE_F32, REF_TYPE_I16, f32_to_i16},
              {REF_TYPE_F32, REF_TYPE_U16, f32_to_u16},   {REF_TYPE_F32, REF_TYPE_I32, f32_to_i32},
              {REF_TYPE_F32, REF_TYPE_I64, f32_to_i64},   {REF_TYPE_BOOL, REF_TYPE_F32, bool_to_f32},
              {REF_TYPE_BOOL, REF_TYPE_I32, bool_to_i32}, {REF_TYPE_BOOL, REF_TYPE_I64, bool_to_i64},
              {REF_TYPE_I8, REF_TYPE_F32, i8_to_f32},     {REF_TYPE_U8, REF_TYPE_F32, u8_to_f32},
              {REF_TYPE_I16, REF_TYPE_F32, i16_to_f32},   {REF_TYPE_U16, REF_TYPE_F32, u16_to_f32},
              {REF_TYPE_I32, REF_TYPE_F32, i32_to_f32},   {REF_TYPE_I32, REF_TYPE_I64, i32_to_i64},
              {REF_TYPE_I64, REF_TYPE_I32, i64_to_i32},   {REF_TYPE_I32, REF_TYPE_BOOL, i32_to_bool},
              {REF_TYPE_I64, REF_TYPE_BOOL, i64_to_bool}};
  if (n < 16 || !__builtin_cpu_supports("avx2")) return false;
  for (size_t k = 0; k < sizeof list / sizeof list[0]; k++)
    if (list[k].from == from && list[k].to == to) return list[k].run(in, out, n);
  return false;
}
#else
static bool cast_direct(int from, const void *in, int to, void *out, int64_t n) {
  (void)from, (void)in, (void)to, (void)out, (void)n;
  return false;
}
#endif

static void cast_some(int from, const void *in, int to, void *out, int64_t n);

void ref_cast(int from, const void *in, int to, void *out, int64_t n) {
  const int64_t from_bytes = ref_type_bytes(from), to_bytes = ref_type_bytes(to);
  for (int64_t at = 0; at < n; at += SOME) {
    const int64_t some = n - at < SOME ? n - at : SOME;
    const void *src = (const char *)in + at * from_bytes;
    void *dst = (char *)out + at * to_bytes;
    if (!cast_direct(from, src, to, dst, some)) cast_some(from, src, to, dst, some);
  }
}

static void cast_some(int from, const void *in, int to, void *out, int64_t n) {
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
