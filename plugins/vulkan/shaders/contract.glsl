// What the shaders of products share: their parameters, batches, and where a convolution's window meets its input. Options
// as in contract.cl: CONV gathers B from the patches of an input; TRANSPOSED with it: those of a ConvTranspose; HAS_C.
// Of its own HALF_A, HALF_B: A, or B, lies in memory as float16. All is computed in float32.
#if defined(HALF_A) || defined(HALF_B)
#extension GL_EXT_shader_16bit_storage : require
#endif
#ifdef HALF_A
#define A_STORED float16_t
#define A_STORED_FOUR f16vec4
#define A_FOUR(at) vec4(a_four[at])
#else
#define A_STORED float
#define A_STORED_FOUR vec4
#define A_FOUR(at) a_four[at]
#endif
#ifdef HALF_B
#define B_STORED float16_t
#define B_STORED_FOUR f16vec4
#define B_FOUR(at) vec4(b_four[at])
#else
#define B_STORED float
#define B_STORED_FOUR vec4
#define B_FOUR(at) b_four[at]
#endif

#ifdef CONV
// tiles_m, tiles_n: what a group has, as each shader says; total: groups in all.
PUSHED {
  int m, n, k, tiles_m, tiles_n, total, groups, in_channels, taps;
  int in_[K_SPATIAL], out_[K_SPATIAL], window[K_SPATIAL], stride[K_SPATIAL], dilation[K_SPATIAL], pad[K_SPATIAL];
}
p;
#else
#define BATCH_DIMS 5
PUSHED {
  int m, n, k, tiles_m, tiles_n, total;
  int a_row, a_col, b_row, b_col, c_row, c_col;
  float alpha, beta;
  int batch_dims, batch_dim[BATCH_DIMS], batch_a[BATCH_DIMS], batch_b[BATCH_DIMS];
}
p;
#endif

OPERAND(1, A_STORED, a);
OPERAND(2, B_STORED, b);
#ifdef HAS_C
OPERAND(3, float, c);
RESULT(4, float, y);
#else
RESULT(3, float, y);
#endif

#ifdef CONV
// Row kk of B: a tap of a channel, as places in the window.
struct k_tap {
  int channel, at[K_SPATIAL];
};

k_tap tap_of(const int kk) {
  k_tap t;
  int left = kk;
  [[unroll]] for (int d = K_SPATIAL - 1; d >= 0; d--) {
    t.at[d] = left % p.window[d];
    left /= p.window[d];
  }
  t.channel = left;
  return t;
}

void tap_next(inout k_tap t) {
  if (++t.at[2] < p.window[2]) return;
  t.at[2] = 0;
  if (++t.at[1] < p.window[1]) return;
  t.at[1] = 0;
  if (++t.at[0] < p.window[0]) return;
  t.at[0] = 0;
  t.channel++;
}

// Where along dimension d of the input a position of the output meets a tap; -1: nowhere.
int meets(const int d, const int position, const int tap) {
#ifdef TRANSPOSED
  const int x = position + p.pad[d] - tap * p.dilation[d], at = x / p.stride[d];
  return x < 0 || at * p.stride[d] != x || at >= p.in_[d] ? -1 : at;
#else
  const int x = position * p.stride[d] + tap * p.dilation[d] - p.pad[d];
  return x < 0 || x >= p.in_[d] ? -1 : x;
#endif
}

void position_of(const int column, out int position[K_SPATIAL]) {
  const int line = column / p.out_[2];
  position[2] = column - line * p.out_[2];
  position[0] = line / p.out_[1];
  position[1] = line - position[0] * p.out_[1];
}

// Element of the input, from base on, that a tap meets at a position; zero outside.
float element(const int base, const k_tap t, const int position[K_SPATIAL]) {
  const int z = meets(0, position[0], t.at[0]), row = meets(1, position[1], t.at[1]);
  const int x = meets(2, position[2], t.at[2]);
  const bool inside = z >= 0 && row >= 0 && x >= 0;
  const int at = ((t.channel * p.in_[0] + z) * p.in_[1] + row) * p.in_[2] + x;
  const float value = b[inside ? base + at : 0];
  return inside ? value : 0.0;
}

// Where weight kk of a row lies, from those of its group on; a transposed convolution has the channels of the result
// inside those of the input.
int weight_at(const int row, const int kk) {
#ifdef TRANSPOSED
  const int channel = kk / p.taps;
  return (channel * p.m + row) * p.taps + kk - channel * p.taps;
#else
  return row * p.k + kk;
#endif
}

// Where A and B of a batch begin.
void enter_batch(const int batch, out int a0, out int b0) {
  a0 = batch % p.groups * p.m * p.k;
  b0 = batch * p.in_channels * p.in_[0] * p.in_[1] * p.in_[2];
}

float finished(const float v, const int batch, const int row, const int column) {
#ifdef HAS_C
  return v + c[batch % p.groups * p.m + row];
#else
  return v;
#endif
}
#else
void enter_batch(const int batch, out int a0, out int b0) {
  int left = batch;
  a0 = b0 = 0;
  for (int d = p.batch_dims - 1; d >= 0; d--) {
    const int at = left % p.batch_dim[d];
    left /= p.batch_dim[d];
    a0 += at * p.batch_a[d];
    b0 += at * p.batch_b[d];
  }
}

float finished(const float v, const int batch, const int row, const int column) {
#ifdef HAS_C
  return p.alpha * v + p.beta * c[row * p.c_row + column * p.c_col];
#else
  return p.alpha * v;
#endif
}
#endif
