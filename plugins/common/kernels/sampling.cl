/* Reading images between their elements: GridSample, AffineGrid, RoiAlign. The table g has what more_setup_grid_sample,
 * _affine_grid and _roi_align (plugins/common/more/image.c) leave. An item has an element of the result. */
#include "portable.cl"

//! grid_sample: f32; f32 f64
//! grid_sample: f64; f32 f64
//! grid_sample: f16; f32 f16
//! grid_sample: bf16; f32 bf16
//! grid_sample: i8 i16 i32 i64 u8 u16 u32 u64; f32 f64
#ifdef K_grid_sample
/* What is computed in: float64 where the image is of integers, which the result is cut to. */
#ifdef T0_REAL
#define R T0
#define RESULT(v) PUT(T0, v)
#else
#define R f64
#define RESULT(v) PUT(T0, K_CUT(T0, v))
K_CUT_FUNCTION
#endif
#define AS(x) CAST(K_C(R), x)

DEVICE K_C(R) reflected(K_C(R) x, K_C(R) least, K_C(R) most) {
  const K_C(R) range = most - least, size = x < least ? least - x : x - least;
  if (!(range > AS(0))) return least;
  const K_C(R) d = size - AS(2) * range * floor(size / (AS(2) * range));
  return least + (d > range ? AS(2) * range - d : d);
}

/* The index of a tap; -1: it is 0. padding: 0 zeros, 1 border, 2 reflection. */
DEVICE int tap(K_C(R) x, int n, int padding, bool corners) {
  const K_C(R) end = AS(n - 1), half_one = AS(corners ? 0.0f : 0.5f);
  K_C(R) at = x;
  if (padding == 1) at = x < AS(0) ? AS(0) : x > end ? end : x;
  if (padding == 2) at = reflected(x, -half_one, end + half_one);
  return at > AS(-1) && at < AS(n) ? CAST(int, at) : -1;
}

KERNEL_3_1(grid_sample, k_general, T0, x0, T1, x1, i32, g, T0, y) {
  K_EACH(u, p.count);
  const int mode = g[0], padding = g[1], spatial = g[3];
  const bool corners = g[2] != 0;
  const IDX channels = G_IN(0, 1), places = G_IN(1, -2) / AT(spatial) / G_IN(0, 0);
  const IDX place = u % places, image = u / places / channels, base = u / places * G(4);
  int at[12], count[3];
  K_C(R) weight[12];
  for (int d = 0; d < 3; d++) {
    count[d] = 1;
    at[4 * d] = 0;
    weight[4 * d] = AS(1);
  }
  for (int d = 0; d < spatial; d++) {
    const int n = CAST(int, G_IN(0, 2 + d)), k = 4 * d;
    const K_C(R) c = AS(GET(T1, x1[(image * places + place) * AT(spatial) + AT(spatial - 1 - d)]));
    const K_C(R) least = AS(corners ? 0.0f : -0.5f), most = AS(n) - AS(corners ? 1.0f : 0.5f);
    K_C(R) x = corners ? (c + AS(1)) / AS(2) * AS(n - 1) : ((c + AS(1)) * AS(n) - AS(1)) / AS(2);
    if (!(ABS(x) < AS(1.0e12f))) x = padding == 0 ? AS(-2) : padding == 1 && x > AS(0) ? AS(n) : AS(0);
    if (mode == 1) x = RINT(x);
    if (x < least || x > most) {
      if (padding == 1 && mode != 2) x = x < AS(0) ? AS(0) : x > AS(n - 1) ? AS(n - 1) : x; /* else each tap */
      if (padding == 2) x = reflected(x, least, most);
    }
    const K_C(R) low = floor(x), t = x - low, v = AS(1) - t, a = AS(-0.75f);
    if (mode == 1) {
      at[k] = tap(x, n, padding, corners);
    } else if (mode == 0) {
      count[d] = 2;
      at[k] = tap(low, n, padding, corners);
      at[k + 1] = tap(low + AS(1), n, padding, corners);
      weight[k] = v;
      weight[k + 1] = t;
    } else {
      count[d] = 4;
      for (int j = 0; j < 4; j++) at[k + j] = tap(low + AS(j - 1), n, padding, corners);
      weight[k] = ((a * (t + AS(1)) - AS(5) * a) * (t + AS(1)) + AS(8) * a) * (t + AS(1)) - AS(4) * a;
      weight[k + 1] = ((a + AS(2)) * t - (a + AS(3))) * t * t + AS(1);
      weight[k + 2] = ((a + AS(2)) * v - (a + AS(3))) * v * v + AS(1);
      weight[k + 3] = ((a * (v + AS(1)) - AS(5) * a) * (v + AS(1)) + AS(8) * a) * (v + AS(1)) - AS(4) * a;
    }
  }
  K_SUM(R, sum);
  for (int i = 0; i < count[0]; i++) {
    for (int j = 0; j < count[1]; j++) {
      for (int k = 0; k < count[2]; k++) {
        IDX where = AT(at[i]);
        bool inside = at[i] >= 0;
        if (spatial > 1) {
          where = where * G_IN(0, 3) + AT(at[4 + j]);
          inside = inside && at[4 + j] >= 0;
        }
        if (spatial > 2) {
          where = where * G_IN(0, 4) + AT(at[8 + k]);
          inside = inside && at[8 + k] >= 0;
        }
        if (inside) K_SUM_ADD(R, sum, weight[i] * weight[4 + j] * weight[8 + k] * AS(GET(T0, x0[base + where])));
      }
    }
  }
  y[u] = RESULT(sum - sum_rest);
}
#endif

//! affine_grid: f32 f64 f16 bf16
#ifdef K_affine_grid
KERNEL_2_1(affine_grid, k_general, T0, x0, i32, g, T0, y) {
  K_EACH(u, p.count);
  const int n = g[3];
  const bool corners = g[2] != 0;
  const IDX r = u % AT(n);
  IDX rest = u / AT(n), places = 1;
  for (int d = 0; d < n; d++) places *= G_OUT(0, 1 + d);
  const IDX image = rest / places;
  K_C(T0) sum = GET(T0, x0[((image * AT(n) + r) * AT(n + 1)) + AT(n)]);
  for (int d = n - 1; d >= 0; d--) {
    const K_C(T0) size = NUM(G_OUT(0, 1 + d)), i = NUM(rest % G_OUT(0, 1 + d));
    const K_C(T0) at = corners ? NUM(-1) + NUM(2) * i / (size - NUM(1)) : NUM(-1) + (NUM(2) * i + NUM(1)) / size;
    sum = sum + at * GET(T0, x0[(image * AT(n) + r) * AT(n + 1) + AT(n - 1 - d)]);
    rest /= G_OUT(0, 1 + d);
  }
  y[u] = PUT(T0, sum);
}
#endif

//! roi_align: f32 f64 f16 bf16
#ifdef K_roi_align
/* NaN wins, and stays. */
DEVICE K_C(T0) larger(K_C(T0) a, K_C(T0) b) {
  return b > a || IS_NAN(T0, b) ? b : a;
}

DEVICE int samples(K_C(T0) bin, int ratio) {
  if (ratio > 0) return ratio;
  return !(bin > NUM(0)) ? 0 : bin < NUM(4096) ? CAST(int, ceil(bin)) : 4096;
}

/* The batch indices are int64, read as pairs of words. */
KERNEL_4_1(roi_align, k_general, T0, x0, T0, x1, i32, x2, i32, g, T0, y) {
  K_EACH(u, p.count);
  const int height = g[0], width = g[1], rows = CAST(int, G_IN(0, 2)), cols = CAST(int, G_IN(0, 3));
  const bool maxima = g[3] != 0, half_pixel = g[4] != 0;
  const IDX channels = G_IN(0, 1), bins = AT(height) * AT(width), roi = u / bins / channels, c = u / bins % channels;
  const int image = x2[2 * roi];
  const bool known = x2[2 * roi + 1] == 0 && image >= 0 && AT(image) < G_IN(0, 0);
  const K_C(T0) scale = G_NUMBER(T0, 0), shift = NUM(half_pixel ? 0.5f : 0.0f);
  const K_C(T0) left = GET(T0, x1[roi * 4]) * scale - shift, top = GET(T0, x1[roi * 4 + 1]) * scale - shift;
  K_C(T0) w = GET(T0, x1[roi * 4 + 2]) * scale - shift - left, h = GET(T0, x1[roi * 4 + 3]) * scale - shift - top;
  if (!half_pixel) {
    w = w > NUM(1) ? w : NUM(1);
    h = h > NUM(1) ? h : NUM(1);
  }
  h = h / NUM(height);
  w = w / NUM(width);
  const int ny = samples(h, g[2]), nx = samples(w, g[2]);
  const IDX base = (AT(known ? image : 0) * channels + c) * AT(rows) * AT(cols);
  const K_C(T0) ph = NUM(u % bins / AT(width)), pw = NUM(u % AT(width)), end_y = NUM(rows - 1), end_x = NUM(cols - 1);
  K_C(T0) sum = NUM(0);
  for (int i = 0; known && i < ny * nx; i++) {
    K_C(T0) a = top + (ph + (NUM(i / nx) + NUM(0.5f)) / NUM(ny)) * h;
    K_C(T0) b = left + (pw + (NUM(i % nx) + NUM(0.5f)) / NUM(nx)) * w, v = NUM(0);
    if (a >= NUM(-1) && a <= NUM(rows) && b >= NUM(-1) && b <= NUM(cols)) {
      a = a < NUM(0) ? NUM(0) : a > end_y ? end_y : a;
      b = b < NUM(0) ? NUM(0) : b > end_x ? end_x : b;
      const int r0 = CAST(int, a), c0 = CAST(int, b), r1 = r0 + 1 < rows ? r0 + 1 : r0, c1 = c0 + 1 < cols ? c0 + 1 : c0;
      const K_C(T0) dy = a - NUM(r0), dx = b - NUM(c0);
      const K_C(T0) v0 = (NUM(1) - dy) * (NUM(1) - dx) * GET(T0, x0[base + AT(r0) * AT(cols) + AT(c0)]);
      const K_C(T0) v1 = (NUM(1) - dy) * dx * GET(T0, x0[base + AT(r0) * AT(cols) + AT(c1)]);
      const K_C(T0) v2 = dy * (NUM(1) - dx) * GET(T0, x0[base + AT(r1) * AT(cols) + AT(c0)]);
      const K_C(T0) v3 = dy * dx * GET(T0, x0[base + AT(r1) * AT(cols) + AT(c1)]);
      v = maxima ? larger(larger(larger(v0, v1), v2), v3) : v0 + v1 + v2 + v3;
    }
    sum = !maxima ? sum + v : i == 0 ? v : larger(sum, v);
  }
  y[u] = PUT(T0, maxima || ny * nx < 1 ? sum : sum / NUM(ny * nx));
}
#endif
