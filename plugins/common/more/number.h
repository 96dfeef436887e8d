/* Elements of any of ONNX's number types as double or int64: what the kernels of more/ compute with. float32 and
 * smaller are exact in double, so a result is rounded once. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_NUMBER_H
#define HEDDLE_PLUGINS_COMMON_MORE_NUMBER_H

#include "plugins/common/more/narrow.h"
#include "plugins/common/ref/types.h"

#include <stdbool.h>

enum { MORE_TYPE_F16 = 32, MORE_TYPE_BF16 = 33 };

int more_type_of(heddle_dtype dtype); /* REF_TYPE_NONE: none of these */
int more_type_of_onnx(int64_t number);
heddle_dtype more_dtype(int type);
uint8_t more_type_bytes(int type);

static inline bool more_type_is_real(int type) {
  return type == REF_TYPE_F32 || type == REF_TYPE_F64 || (type >= MORE_TYPE_F16 && type < MORE_TYPE_NARROW_WHOLE);
}
static inline bool more_type_is_whole(int type) {
  return (type >= REF_TYPE_I8 && type <= REF_TYPE_U64) || type >= MORE_TYPE_NARROW_WHOLE;
}
static inline bool more_type_is_unsigned(int type) {
  return (type >= REF_TYPE_U8 && type <= REF_TYPE_U64) || type == REF_TYPE_BOOL || type == MORE_TYPE_U4 ||
         type == MORE_TYPE_U2;
}

/* Element i of p. load_int of a floating-point number cuts towards zero; uint64 comes as its bits. */
double more_load(int type, const void *p, int64_t i);
int64_t more_load_int(int type, const void *p, int64_t i);

/* Into element i of p. Integers take store's number cut towards zero and wrapped, where it fits int64 or uint64, else
 * the nearest end; store_int wraps. */
void more_store(int type, void *p, int64_t i, double x);
void more_store_int(int type, void *p, int64_t i, int64_t x);

/* x as it would be in memory: rounded to the type. */
double more_round_to(int type, double x);

/* The least and the greatest number of a type; infinities of floating-point ones. */
double more_lowest(int type);
double more_highest(int type);

#endif
