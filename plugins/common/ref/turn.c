/* Copies of a tensor with strides into a dense one. Where elements lie side by side in both, they are copied in runs; where
 * those of one dimension do in the operand and those of another in the result, in squares that are turned. */
#include "ref_op.h"
#include "types.h"

/* Bytes of a vector, and of the operand's lines of which a unit takes one piece each. */
enum { VECTOR = 16, LINE = 64 };

/* Rows of a square, of elements of that size. */
#define SIDE(size) (VECTOR / (int64_t)(size))

/* ---------------------------------------------------------------- squares */

#if defined(__SSE2__) && !defined(HEDDLE_NO_LANES)

#include <emmintrin.h>

/* out row i: column i of a square whose rows are in_row bytes apart. Each round interleaves the rows of the first half with
 * those of the second; as many rounds as the side has halves turn the square. */
#define TURN(name, SIDE_OF, low, high) \
  static void name(const char *in, int64_t in_row, char *out, int64_t out_row) { \
    __m128i a[SIDE_OF], b[SIDE_OF]; \
    REF_UNROLLED for (int i = 0; i < (SIDE_OF); i++) a[i] = _mm_loadu_si128((const void *)(in + i * in_row)); \
    REF_UNROLLED for (int half = 1; half < (SIDE_OF); half *= 2) { \
      REF_UNROLLED for (int i = 0; i < (SIDE_OF) / 2; i++) { \
        b[2 * i] = low(a[i], a[i + (SIDE_OF) / 2]); \
        b[2 * i + 1] = high(a[i], a[i + (SIDE_OF) / 2]); \
      } \
      REF_UNROLLED for (int i = 0; i < (SIDE_OF); i++) a[i] = b[i]; \
    } \
    REF_UNROLLED for (int i = 0; i < (SIDE_OF); i++) _mm_storeu_si128((void *)(out + i * out_row), a[i]); \
  }

TURN(turn_1, 16, _mm_unpacklo_epi8, _mm_unpackhi_epi8)
TURN(turn_2, 8, _mm_unpacklo_epi16, _mm_unpackhi_epi16)
TURN(turn_4, 4, _mm_unpacklo_epi32, _mm_unpackhi_epi32)
TURN(turn_8, 2, _mm_unpacklo_epi64, _mm_unpackhi_epi64)

#else

#define TURN(name, T) \
  static void name(const char *in, int64_t in_row, char *out, int64_t out_row) { \
    for (int64_t i = 0; i < SIDE(sizeof(T)); i++) \
      for (int64_t j = 0; j < SIDE(sizeof(T)); j++) \
        memcpy(out + j * out_row + i * (int64_t)sizeof(T), in + i * in_row + j * (int64_t)sizeof(T), sizeof(T)); \
  }

TURN(turn_1, uint8_t)
TURN(turn_2, uint16_t)
TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)

#endif

/* ---------------------------------------------------------------- pieces of a turn */

/* out[i * out_row + j] = in[i + j * in_row], of rows i and columns j. Few columns are interleaved row by row. */
#define FEW(T, n) \
  for (int64_t i = 0; i < rows; i++) \
    for (int64_t j = 0; j < (n); j++) y[i * out_row + j] = x[i + j * in_row];
#define PIECE(name, T, turn) \
  static void name(const void *in, int64_t in_row, void *out, int64_t out_row, int64_t rows, int64_t cols) { \
    const int64_t side = SIDE(sizeof(T)); \
    const T *restrict x = in; \
    T *restrict y = out; \
    int64_t j = 0; \
    if (cols == 2 && out_row == 2) { \
      for (int64_t i = 0; i < rows; i++) { \
        y[2 * i] = x[i]; \
        y[2 * i + 1] = x[i + in_row]; \
      } \
      return; \
    } \
    if (sizeof(T) > 1 && rows == 3 && in_row == 3) { /* the other way */ \
      for (int64_t i = 0; i < 3; i++) \
        for (int64_t k = 0; k < cols; k++) y[i * out_row + k] = x[i + 3 * k]; \
      return; \
    } \
    if (cols == 3) { \
      FEW(T, 3) \
      return; \
    } \
    if (cols == 4 && rows < side) { \
      FEW(T, 4) \
      return; \
    } \
    for (; j + side <= cols; j += side) { \
      int64_t i = 0; \
      for (; i + side <= rows; i += side) \
        turn((const char *)(x + i + j * in_row), in_row *(int64_t)sizeof(T), (char *)(y + i * out_row + j), \
             out_row *(int64_t)sizeof(T)); \
      for (; i < rows; i++) \
        for (int64_t k = j; k < j + side; k++) y[i * out_row + k] = x[i + k * in_row]; \
    } \
    for (; j < cols; j++) \
      for (int64_t i = 0; i < rows; i++) y[i * out_row + j] = x[i + j * in_row]; \
  }

PIECE(piece_1, uint8_t, turn_1)
PIECE(piece_2, uint16_t, turn_2)
PIECE(piece_4, uint32_t, turn_4)
PIECE(piece_8, uint64_t, turn_8)

typedef void (*piece)(const void *in, int64_t in_row, void *out, int64_t out_row, int64_t rows, int64_t cols);

static piece piece_of(uint32_t size) {
  return size == 1 ? piece_1 : size == 2 ? piece_2 : size == 4 ? piece_4 : size == 8 ? piece_8 : NULL;
}

void ref_turn(uint32_t size, const void *in, int64_t rows, int64_t n, void *out) {
  piece_of(size)(in, n, out, rows, n, rows);
}

/* ---------------------------------------------------------------- units */

bool ref_strided_start(ref_strided *t, uint32_t size, int64_t offset, int32_t dims, const int64_t *dim,
                       const int64_t *stride, uint64_t *units) {
  t->dims = 0;
  *units = 1;
  for (int32_t d = 0; d < dims; d++) {
    if (dim[d] == 1) continue;
    if (t->dims > 0 && t->stride[t->dims - 1] == stride[d] * dim[d]) {
      t->dim[t->dims - 1] *= dim[d];
      t->stride[t->dims - 1] = stride[d];
      continue;
    }
    if (t->dims == REF_MAX_DIMS) return false;
    t->dim[t->dims] = dim[d];
    t->stride[t->dims++] = stride[d];
  }
  if (t->dims == 0) {
    t->dim[0] = t->stride[0] = 1;
    t->dims = 1;
  }
  const int32_t inner = t->dims - 1;
  t->offset = offset;
  t->size = size;
  t->run = t->dim[inner];
  t->across = -1;
  for (int32_t d = 0; d < inner; d++)
    if (t->stride[d] == 1 && t->stride[inner] > 1 && t->dim[d] >= SIDE(size) && piece_of(size) != NULL) t->across = d;
  for (int32_t d = 0; d < inner; d++) {
    const int64_t many = d == t->across ? (t->dim[d] - 1) / (LINE / size) + 1 : t->dim[d];
    *units *= t->dim[d] > 0 ? (uint64_t)many : 0;
  }
  return true;
}

/* A few bytes at a time take a call of memcpy longer than the copy. */
static inline void copy_run(const char *in, char *out, size_t bytes) {
  if (bytes == 8) memcpy(out, in, 8);
  else if (bytes == 4) memcpy(out, in, 4);
  else if (bytes == 2) memcpy(out, in, 2);
  else if (bytes == 16) memcpy(out, in, 16);
  else if (bytes == 12) memcpy(out, in, 12);
  else memcpy(out, in, bytes);
}

void ref_strided_run(const ref_strided *t, const void *in, void *out, uint64_t first, uint64_t last) {
  const int32_t inner = t->dims - 1; /* the run is along this one */
  const int64_t line = LINE / t->size, size = t->size;
  int64_t at[REF_MAX_DIMS], many[REF_MAX_DIMS], out_stride[REF_MAX_DIMS], to_row = t->run;
  uint64_t rest = first;
  if (first >= last) return;
  for (int32_t d = inner - 1; d >= 0; d--) {
    many[d] = d == t->across ? (t->dim[d] - 1) / line + 1 : t->dim[d];
    at[d] = (int64_t)(rest % (uint64_t)many[d]);
    rest /= (uint64_t)many[d];
    out_stride[d] = to_row;
    to_row *= t->dim[d];
  }
  const piece turned = piece_of(t->size);
  int64_t offset = t->offset, to = 0;
  for (int32_t d = 0; d < inner; d++) {
    const int64_t place = d == t->across ? at[d] * line : at[d];
    offset += place * t->stride[d];
    to += place * out_stride[d];
  }
  for (uint64_t unit = first; unit < last; unit++) {
    const char *from = (const char *)in + offset * size;
    char *dst = (char *)out + to * size;
    if (t->across >= 0) {
      const int64_t left = t->dim[t->across] - at[t->across] * line;
      turned(from, t->stride[inner], dst, out_stride[t->across], left < line ? left : line, t->run);
    } else if (t->stride[inner] == 1) {
      copy_run(from, dst, (size_t)(t->run * size));
    } else {
      ref_take(from, t->stride[inner], t->size, t->run, dst);
    }
    for (int32_t d = inner - 1; d >= 0; d--) {
      const int64_t pace = d == t->across ? line : 1;
      offset += pace * t->stride[d];
      to += pace * out_stride[d];
      if (++at[d] < many[d]) break;
      at[d] = 0;
      offset -= pace * t->stride[d] * many[d];
      to -= pace * out_stride[d] * many[d];
    }
  }
}
