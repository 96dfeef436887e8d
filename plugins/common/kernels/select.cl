/* Operators that pick elements, or put them somewhere, by indices: words of type T0. An index of int64 is read as two
 * words, with p.wide, so that a device needs no integers of 64 bits; one out of range takes zeros and writes nothing. */
#include "portable.cl"

/* Declares at, where index number i of x1 points among n, and adds to inside whether it is one of these. */
#define POINT(at, inside, x1, i, n) \
  int at = x1[p.wide != 0 ? 2 * (i) : (i)]; \
  inside = inside && (p.wide == 0 || x1[2 * (i) + 1] == at >> 31); \
  if (at < 0) at += CAST(int, n); \
  inside = inside && at >= 0 && at < CAST(int, n)

/* What a scatter does with an element a that there is, and one more, b. mode: none, add, mul, max, min. NaN stays. */
#if defined(K_scatter_elements_with) || defined(K_scatter_nd_with)
DEVICE K_C(T0) combine(const K_C(T0) a, const K_C(T0) b, const int mode) {
  if (mode == 1) return a + b;
  if (mode == 2) return a * b;
#ifdef T0_REAL
  if (IS_NAN(T0, a)) return a;
  if (IS_NAN(T0, b)) return b;
#endif
  return (mode == 3) == (b > a) ? b : a;
}
#endif

//! gather_elements: w1 w2 w4 w8
#ifdef K_gather_elements
/* An item has an element of the result, of shape; from: operand 0's. */
KERNEL_2_1(gather_elements, k_select, T0, x0, i32, x1, T0, y) {
  K_EACH(i, p.count);
  IDX rest = i, from = 0, width = 1;
  bool inside = true;
  for (int d = CAST(int, p.dims) - 1; d >= 0; d--) {
    const IDX dim = AT(p.shape[d]);
    IDX place = rest % dim;
    rest /= dim;
    if (d == CAST(int, p.axis)) {
      POINT(at, inside, x1, i, p.from[d]);
      place = at;
    }
    from += place * width;
    width *= AT(p.from[d]);
  }
  y[i] = inside ? x0[from] : CAST(K_S(T0), 0u);
}
#endif

/* An item has a column along the axis of the updates x1, of shape, whose elements it puts in their order into y, where
 * operand 0, of shape from, has been copied. n: elements of a column. */
#define SCATTER_COLUMN \
  K_EACH(i, p.count); \
  IDX rest = i, first = 0, start = 0, width = 1, length = 1, each = 0, apart = 0; \
  for (int d = CAST(int, p.dims) - 1; d >= 0; d--) { \
    if (d == CAST(int, p.axis)) { \
      each = length; \
      apart = width; \
    } else { \
      const IDX dim = AT(p.shape[d]); \
      first += rest % dim * length; \
      start += rest % dim * width; \
      rest /= dim; \
    } \
    length *= AT(p.shape[d]); \
    width *= AT(p.from[d]); \
  }

//! scatter_elements: w1 w2 w4 w8
#ifdef K_scatter_elements
KERNEL_2_1(scatter_elements, k_select, i32, x1, T0, x2, T0, y) {
  SCATTER_COLUMN
  for (IDX k = 0; k < AT(p.n); k++) {
    bool inside = true;
    POINT(at, inside, x1, first + k * each, p.from[CAST(int, p.axis)]);
    if (inside) y[start + at * apart] = x2[first + k * each];
  }
}
#endif

//! scatter_elements_with: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 b8
#ifdef K_scatter_elements_with
KERNEL_2_1(scatter_elements_with, k_select, i32, x1, T0, x2, T0, y) {
  SCATTER_COLUMN
  for (IDX k = 0; k < AT(p.n); k++) {
    bool inside = true;
    POINT(at, inside, x1, first + k * each, p.from[CAST(int, p.axis)]);
    const IDX to = inside ? start + at * apart : 0;
    if (inside) y[to] = PUT(T0, combine(GET(T0, y[to]), GET(T0, x2[first + k * each]), CAST(int, p.mode)));
  }
}
#endif

/* Declares from, where the slice begins that row r of the indices points to: n of them to a row, into dimensions of
 * sizes from; inner: elements of a slice. */
#define SLICE(from, inside, x1, r) \
  IDX from = 0; \
  for (int k = 0; k < CAST(int, p.n); k++) { \
    POINT(at, inside, x1, (r) * AT(p.n) + k, p.from[k]); \
    from = from * AT(p.from[k]) + at; \
  } \
  from *= AT(p.inner)

//! gather_nd: w1 w2 w4 w8
#ifdef K_gather_nd
/* rows: of indices to a batch; axis: elements of operand 0 in a batch. */
KERNEL_2_1(gather_nd, k_select, T0, x0, i32, x1, T0, y) {
  K_EACH(i, p.count);
  const IDX r = i / AT(p.inner);
  bool inside = true;
  SLICE(from, inside, x1, r);
  y[i] = inside ? x0[r / AT(p.rows) * AT(p.axis) + from + i % AT(p.inner)] : CAST(K_S(T0), 0u);
}
#endif

/* An item has an element of every slice, and puts it for each row in their order into y. */
//! scatter_nd: w1 w2 w4 w8
#ifdef K_scatter_nd
KERNEL_2_1(scatter_nd, k_select, i32, x1, T0, x2, T0, y) {
  K_EACH(i, p.inner);
  for (IDX r = 0; r < AT(p.rows); r++) {
    bool inside = true;
    SLICE(from, inside, x1, r);
    if (inside) y[from + i] = x2[r * AT(p.inner) + i];
  }
}
#endif

//! scatter_nd_with: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 b8
#ifdef K_scatter_nd_with
KERNEL_2_1(scatter_nd_with, k_select, i32, x1, T0, x2, T0, y) {
  K_EACH(i, p.inner);
  for (IDX r = 0; r < AT(p.rows); r++) {
    bool inside = true;
    SLICE(from, inside, x1, r);
    const IDX to = inside ? from + i : 0;
    if (inside) y[to] = PUT(T0, combine(GET(T0, y[to]), GET(T0, x2[r * AT(p.inner) + i]), CAST(int, p.mode)));
  }
}
#endif

//! trilu: w1 w2 w4 w8
#ifdef K_trilu
/* Matrices of rows times n; mode: the upper part. x1 is one int64. */
KERNEL_2_1(trilu, k_select, T0, x0, i32, x1, T0, y) {
  K_EACH(i, p.count);
  const IDX off = i % AT(p.n) - i / AT(p.n) % AT(p.rows);
  const int low = x1[0], high = x1[1];
  const bool fits = high == low >> 31;
  const bool above = fits ? off >= AT(low) : high < 0, below = fits ? off <= AT(low) : high >= 0;
  y[i] = (p.mode != 0 ? above : below) ? x0[i] : CAST(K_S(T0), 0u);
}
#endif

//! eye: w1 w2 w4 w8
#ifdef K_eye
/* x0 has what is beside the diagonal, and on it. axis: how far it lies above the first. */
KERNEL_1_1(eye, k_select, T0, x0, T0, y) {
  K_EACH(i, p.count);
  y[i] = x0[i % AT(p.n) - i / AT(p.n) == AT(p.axis) ? 1 : 0];
}
#endif

//! one_hot: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64; w1 w2 w4 w8
#ifdef K_one_hot
/* n: the depth. Indices are of type T0; x1 has what is off and on. */
KERNEL_2_1(one_hot, k_select, T0, x0, T1, x1, T1, y) {
  K_EACH(i, p.count);
  const IDX place = i / AT(p.inner) % AT(p.n), from = i / AT(p.inner) / AT(p.n) * AT(p.inner) + i % AT(p.inner);
  const K_C(T0) index = GET(T0, x0[from]);
#ifdef T0_REAL /* beyond these are no places, and the type has no fraction */
  const bool whole = index >= CAST(K_C(T0), -2147483648.0) && index <= CAST(K_C(T0), 2147483520.0) && floor(index) == index;
  int at = whole ? CAST(int, index) : -2147483647 - 1;
  const bool inside = whole;
#else
  const bool inside = index == CAST(K_C(T0), CAST(int, index));
  int at = CAST(int, index);
#endif
  if (at < 0 && !(index > CAST(K_C(T0), 0))) at += CAST(int, p.n);
  y[i] = x1[inside && place == AT(at) ? 1 : 0];
}
#endif

//! reverse: w1 w2 w4 w8
#ifdef K_reverse
/* Operand 0 is rows times n slices of inner elements. mode: the second of the two is time, else the first. x1 has the
 * lengths, of int64. */
KERNEL_2_1(reverse, k_select, T0, x0, i32, x1, T0, y) {
  K_EACH(i, p.count);
  const IDX second = i / AT(p.inner) % AT(p.n), first = i / AT(p.inner) / AT(p.n);
  const IDX t = p.mode != 0 ? second : first, batch = p.mode != 0 ? first : second;
  const IDX most = p.mode != 0 ? AT(p.n) : AT(p.rows);
  const int low = x1[p.wide != 0 ? 2 * batch : batch], high = p.wide != 0 ? x1[2 * batch + 1] : low >> 31;
  const IDX length = high == low >> 31 && AT(low) <= most ? AT(low) : high < 0 ? 0 : most;
  const IDX from = t < length ? length - 1 - t : t;
  const IDX at = p.mode != 0 ? first * AT(p.n) + from : from * AT(p.n) + second;
  y[i] = x0[at * AT(p.inner) + i % AT(p.inner)];
}
#endif

//! tensor_scatter: w1 w2 w4 w8; i32 i64
#ifdef K_tensor_scatter
/* An item has an element of the update x0: n of its slices, of inner elements, go to places of axis ones, from x1[batch]
 * on; rows: slices' rows to a batch. mode: around the end. */
KERNEL_2_1(tensor_scatter, k_select, T0, x0, T1, x1, T0, y) {
  K_EACH(i, p.count);
  const IDX slice = i / AT(p.inner) % AT(p.n), row = i / AT(p.inner) / AT(p.n), batch = row / AT(p.rows);
  const K_C(T1) most = CAST(K_C(T1), p.axis), more = CAST(K_C(T1), slice);
  K_C(T1) at = x1[batch];
  if (p.mode != 0) {
    at -= at / most * most; /* GLSL has no % of negative numbers */
    if (at < CAST(K_C(T1), 0)) at += most;
    at += more;
    if (at >= most) at -= most;
  } else if (at >= -more && at < most - more) {
    at += more;
  } else {
    return;
  }
  y[(row * AT(p.axis) + AT(at)) * AT(p.inner) + i % AT(p.inner)] = x0[i];
}
#endif

//! crop_pad: w1 w2 w4 w8
#ifdef K_crop_pad
/* CenterCropPad. g: from number 8 on, how far the operand begins behind the result, or before it. */
KERNEL_2_1(crop_pad, k_general, T0, x0, i32, g, T0, y) {
  K_EACH(i, p.count);
  IDX at = 0, step = 1, left = i;
  bool inside = true;
  for (int d = CAST(int, G_OUT(0, -1)) - 1; d >= 0; d--) {
    const IDX place = left % G_OUT(0, d) - G(8 + d);
    inside = inside && place >= 0 && place < G_IN(0, d);
    at += place * step;
    step *= G_IN(0, d);
    left /= G_OUT(0, d);
  }
  y[i] = inside ? x0[at] : CAST(K_S(T0), 0);
}
#endif
