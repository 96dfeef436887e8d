/* Matrix products of operands in bfloat16, summed in float32: a group has 64 x 64 results, DEPTH products at a time through
 * local memory. On NVIDIA's cards from compute capability 8.0 on the products are tensor cores', by PTX; elsewhere an item
 * computes 8 x 8 results of the same tile plainly, which is for tests. Option HAS_C adds a third operand. */
#define TILE 64
#define DEPTH 32
#define A_PITCH (DEPTH + 8) /* both multiples of 8: tensor cores read whole 16 bytes */
#define B_PITCH (TILE + 8)
#define LOADS (TILE * DEPTH / K_GROUP)

#if !defined(__OPENCL_VERSION__) && !defined(__OPENCL_C_VERSION__) && defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ >= 800
#define TENSOR_CORES
#endif
#endif

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define ALIGNED_ARRAY(type, name, count) LOCAL_ARRAY(type, name, count)
#else
#define ALIGNED_ARRAY(type, name, count) __shared__ __attribute__((aligned(32))) type name[count]
#endif

DEVICE void tile_load(LOCAL ushort *a_to, LOCAL ushort *b_to, GLOBAL const ushort *a, GLOBAL const ushort *b,
                      const k_matmul *p, IDX i0, IDX j0, IDX k0) {
  const IDX m = (IDX)p->m, n = (IDX)p->n, k = (IDX)p->k;
  for (int i = 0; i < LOADS; i++) { /* neighbours load what lies side by side */
    const int at = K_ITEM + i * K_GROUP;
    const int row = p->a_col == 1 ? at / DEPTH : at % TILE, d = p->a_col == 1 ? at % DEPTH : at / TILE;
    const bool inside = i0 + row < m && k0 + d < k;
    a_to[row * A_PITCH + d] = inside ? a[(i0 + row) * (IDX)p->a_row + (k0 + d) * (IDX)p->a_col] : (ushort)0;
  }
  for (int i = 0; i < LOADS; i++) {
    const int at = K_ITEM + i * K_GROUP;
    const int column = p->b_col == 1 ? at % TILE : at / DEPTH, d = p->b_col == 1 ? at / TILE : at % DEPTH;
    const bool inside = j0 + column < n && k0 + d < k;
    b_to[d * B_PITCH + column] = inside ? b[(k0 + d) * (IDX)p->b_row + (j0 + column) * (IDX)p->b_col] : (ushort)0;
  }
}

#ifdef TENSOR_CORES
/* A warp has 32 x 64 results, as 2 x 4 squares of 16. */
#define SQUARES 8

typedef struct square {
  float x[8];
} square;

DEVICE void square_add(square *c, const uint *a, const uint *b) {
  asm volatile("wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, "
               "{%12,%13,%14,%15}, {%0,%1,%2,%3,%4,%5,%6,%7};"
               : "+f"(c->x[0]), "+f"(c->x[1]), "+f"(c->x[2]), "+f"(c->x[3]), "+f"(c->x[4]), "+f"(c->x[5]),
                 "+f"(c->x[6]), "+f"(c->x[7])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
}

DEVICE void square_load_a(uint *to, const ushort *from) {
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.bf16 {%0,%1,%2,%3}, [%4], %5;"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(from), "r"(A_PITCH)
               : "memory");
}

DEVICE void square_load_b(uint *to, const ushort *from) {
  asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.bf16 {%0,%1,%2,%3}, [%4], %5;"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(from), "r"(B_PITCH)
               : "memory");
}

DEVICE void square_store(float *to, const square *c, int pitch) {
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;"
               :
               : "l"(to), "f"(c->x[0]), "f"(c->x[1]), "f"(c->x[2]), "f"(c->x[3]), "f"(c->x[4]), "f"(c->x[5]),
                 "f"(c->x[6]), "f"(c->x[7]), "r"(pitch)
               : "memory");
}

DEVICE void tile_add(square *sum, const ushort *tile_a, const ushort *tile_b, int warp) {
  UNROLL for (int d = 0; d < DEPTH; d += 16) {
    uint a[2][4], b[4];
    UNROLL for (int i = 0; i < 2; i++) square_load_a(a[i], tile_a + (warp * 32 + i * 16) * A_PITCH + d);
    UNROLL for (int j = 0; j < 4; j++) {
      square_load_b(b, tile_b + d * B_PITCH + j * 16);
      UNROLL for (int i = 0; i < 2; i++) square_add(&sum[i * 4 + j], a[i], b);
    }
  }
}
#else
DEVICE float wide(ushort x) {
  return K_FLOAT((uint)x << 16);
}
#endif

#ifdef HAS_C
#define FINISH(v, r, q) (p.alpha * (v) + p.beta * c[(r) * (IDX)p.c_row + (q) * (IDX)p.c_col])
#else
#define FINISH(v, r, q) (p.alpha * (v))
#endif

KERNEL void tensor(k_matmul p, GLOBAL const ushort *a, GLOBAL const ushort *b,
#ifdef HAS_C
                   GLOBAL const float *c,
#endif
                   GLOBAL float *out) {
  ALIGNED_ARRAY(ushort, tile_a, TILE * A_PITCH);
  ALIGNED_ARRAY(ushort, tile_b, DEPTH * B_PITCH);
  const IDX tile = K_GROUP_ID, m = (IDX)p.m, n = (IDX)p.n, k = (IDX)p.k;
  const IDX across = (IDX)p.tiles_n, down = (IDX)p.tiles_m;
  const IDX j0 = tile % across * TILE, i0 = tile / across % down * TILE;
  IDX batch = tile / across / down;
  out += batch * m * n;
  for (int d = (int)p.batch_dims - 1; d >= 0; d--) {
    const IDX at = batch % (IDX)p.batch_dim[d];
    batch /= (IDX)p.batch_dim[d];
    a += at * (IDX)p.batch_a[d];
    b += at * (IDX)p.batch_b[d];
  }
#ifdef TENSOR_CORES
  ALIGNED_ARRAY(float, results, 16 * B_PITCH * 2);
  const int warp = K_ITEM / 32;
  square sum[SQUARES];
  UNROLL for (int s = 0; s < SQUARES; s++) {
    UNROLL for (int x = 0; x < 8; x++) sum[s].x[x] = 0.0f;
  }
  for (IDX k0 = 0; k0 < k; k0 += DEPTH) {
    tile_load(tile_a, tile_b, a, b, &p, i0, j0, k0);
    BARRIER;
    tile_add(sum, tile_a, tile_b, warp);
    BARRIER;
  }
  UNROLL for (int i = 0; i < 2; i++) { /* 16 rows of each warp at a time */
    UNROLL for (int j = 0; j < 4; j++) {
      square_store(results + warp * 16 * B_PITCH + j * 16, &sum[i * 4 + j], B_PITCH);
    }
    BARRIER;
    for (int at = K_ITEM; at < 2 * 16 * TILE; at += K_GROUP) {
      const int row = at / TILE, column = at % TILE;
      const IDX r = i0 + row / 16 * 32 + i * 16 + row % 16, q = j0 + column;
      if (r < m && q < n) out[r * n + q] = FINISH(results[row * B_PITCH + column], r, q);
    }
    BARRIER;
  }
#else
  const int row = K_ITEM / 8, column = K_ITEM % 8;
  float sum[8][8];
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 8; j++) sum[i][j] = 0.0f;
  }
  for (IDX k0 = 0; k0 < k; k0 += DEPTH) {
    tile_load(tile_a, tile_b, a, b, &p, i0, j0, k0);
    BARRIER;
    for (int d = 0; d < DEPTH; d++) {
      for (int i = 0; i < 8; i++) {
        const float x = wide(tile_a[(row * 8 + i) * A_PITCH + d]);
        for (int j = 0; j < 8; j++) sum[i][j] += x * wide(tile_b[d * B_PITCH + column * 8 + j]);
      }
    }
    BARRIER;
  }
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 8; j++) {
      const IDX r = i0 + row * 8 + i, q = j0 + column * 8 + j;
      if (r < m && q < n) out[r * n + q] = FINISH(sum[i][j], r, q);
    }
  }
#endif
}
