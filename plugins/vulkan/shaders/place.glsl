// Where an item's elements lie: the parameters k_flat or k_walk (plugins/common/kernels/params.h) for N operands, and the
// walk. A variant defines N. With WALK a walk's, else base holds the steps 0 or 1 of k_flat. Where an item has four
// elements, count is of items, and dimensions, steps and bases are of fours for what is read or written so; elements
// counts the elements of k_flat.
layout(constant_id = 0) const int WALK = 0;

#define PLACE_HEAD int count, elements; float alpha, beta; int base[N];
#define PLACE_TAIL int dims, dim[K_DIMS], out_base, out_step[K_DIMS], step[N * K_DIMS];
#if N == 1
PUSHED { PLACE_HEAD PLACE_TAIL } p;
#define WALKED p
#else
PUSHED { PLACE_HEAD } p;
STORED { PLACE_HEAD PLACE_TAIL } walked;
#define WALKED walked
#endif

// The places of item i's operands and result. False past the end.
bool k_place(const uint i, out int at[N], out int o) {
  if (WALK == 0) {
    if (i >= uint(p.count)) return false;
    [[unroll]] for (int k = 0; k < N; k++) at[k] = int(i) * p.base[k];
    o = int(i);
    return true;
  }
  if (i >= uint(WALKED.count)) return false;
  int rest = int(i);
  o = WALKED.out_base;
  [[unroll]] for (int k = 0; k < N; k++) at[k] = WALKED.base[k];
  for (int d = WALKED.dims - 1; d >= 0; d--) {
    const int dim = WALKED.dim[d], left = rest / dim, digit = rest - left * dim;
    rest = left;
    o += digit * WALKED.out_step[d];
    [[unroll]] for (int k = 0; k < N; k++) at[k] += digit * WALKED.step[k * K_DIMS + d];
  }
  return true;
}
