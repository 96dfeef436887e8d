/* Attention in one pass (attention.cl, gqa.cl): a group has a tile of HIGH queries of one head of keys and WIDE columns of the result,
 * and goes through the keys KEYS at a time. Scores and weights of a tile are in local memory, sums in private memory; what came before
 * is scaled down where a greater score comes. Item (side, across) has ROWS rows, KEYS / SIDE keys and COLUMNS columns.
 *
 * V0 is 64 * ROWS + COLUMNS, and 32 more where items run one after the other, on host cores: an item has neighbours there, where
 * on a GPU neighbouring items do. COLUMNS is 2, 4, 8 or 16; ROWS is 1 of float64, else 1 or 4.
 *
 * A text that includes this has defined, for query r of a head of keys, key j and element e, which are in bounds:
 *   FLASH_KERNEL     the kernel's line
 *   FLASH_SETUP      declares queries, of a head of keys; keys; size, of a query; and wide, of a value
 *   FLASH_HEAD(unit) declares what the others use, of the head of keys unit
 *   FLASH_REACH(r)   declares first, 0 or more, and end: the keys that r sees; neither falls as r grows
 *   FLASH_BIAS_AT(r), FLASH_BIAS(at, j)   a place, and the number there that is added
 *   FLASH_QUERY(r, e), FLASH_KEY(j, e), FLASH_VALUE(j, e), FLASH_SCORE(product)
 *   FLASH_SINK(r), FLASH_SINK_IS   a score that weighs nothing, where there is one
 *   FLASH_NONE       what a row is whose keys all have the score minus infinity; without keys it is 0
 *   FLASH_PUT(r, e, v)   writes an element of the result */
#define ROWS (V0 / 64)
#define COLUMNS (V0 % 32)
#define RUNS (V0 / 32 % 2 != 0)
#define KEYS 64
#define DEPTH 16 /* elements of queries and keys that are in local memory at a time */
#define SIDE 8
#define EACH (KEYS / SIDE)
#define HIGH (SIDE * ROWS)
#define WIDE (SIDE * COLUMNS)
#define CHUNK (COLUMNS > 8 ? 8 : 16) /* values that are in local memory at a time */
#define HIGH_PITCH (HIGH + 2)
#define KEY_PITCH (KEYS + 2)

/* An unrolled loop. Compilers of OpenCL unroll it without a directive; with one, PoCL takes three times as long. */
#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define EVERY for
#else
#define EVERY UNROLL for
#endif

/* Key and column i of an item: one after the other, or in fours. */
#define OF_KEYS(i) (RUNS ? across * EACH + (i) : (i) / 4 * (SIDE * 4) + across * 4 + (i) % 4)
#define OF_COLUMNS(i) (RUNS || COLUMNS < 4 ? across * COLUMNS + (i) : (i) / 4 * (SIDE * 4) + across * 4 + (i) % 4)

K_LOCAL_BEFORE(K_C(T0), k_stage, DEPTH * KEY_PITCH)
K_LOCAL_BEFORE(K_C(T0), k_rows, DEPTH * HIGH_PITCH)
K_LOCAL_BEFORE(K_C(T0), k_parts, KEYS * HIGH_PITCH)
K_LOCAL_BEFORE(int, k_odd, 1)

FLASH_KERNEL {
  K_LOCAL_INSIDE(K_C(T0), k_stage, DEPTH * KEY_PITCH);
  K_LOCAL_INSIDE(K_C(T0), k_rows, DEPTH * HIGH_PITCH);
  K_LOCAL_INSIDE(K_C(T0), k_parts, KEYS * HIGH_PITCH);
  K_LOCAL_INSIDE(int, k_odd, 1);
  FLASH_SETUP
  const int item = K_ITEM, side = item / SIDE, across = item % SIDE;
  const IDX tiles = (queries + HIGH - 1) / HIGH, blocks = (wide + WIDE - 1) / WIDE, group = K_GROUP_ID;
#ifdef VULKAN /* elsewhere there are no more groups, and PoCL copies what is behind a return that comes before barriers */
  if (group >= AT(p.count) / K_GROUP) return;
#endif
  const IDX column0 = group % blocks * WIDE, row0 = group / blocks % tiles * HIGH, unit = group / blocks / tiles;
  FLASH_HEAD(unit)
  IDX from = 0, to = 0;
  {
    FLASH_REACH(row0)
    from = first / KEYS * KEYS;
    to = end;
  }
  {
    const IDX last = row0 + HIGH < queries ? row0 + HIGH - 1 : queries - 1;
    FLASH_REACH(last)
    if (first < from) from = 0;
    to = end > keys ? keys : end;
  }
  IDX begins[ROWS], ends[ROWS], biased[ROWS];
  K_C(T0) most[ROWS], sum[ROWS], all[ROWS * COLUMNS];
  bool seen[ROWS];
  EVERY (int r = 0; r < ROWS; r++) {
    const IDX row = row0 + side * ROWS + r;
    begins[r] = ends[r] = biased[r] = 0;
    most[r] = NUM(-K_INFINITY);
    sum[r] = NUM(0);
    seen[r] = false;
    if (row < queries) {
      FLASH_REACH(row)
      begins[r] = first;
      ends[r] = end;
      biased[r] = FLASH_BIAS_AT(row);
      if (FLASH_SINK_IS) {
        most[r] = FLASH_SINK(row);
        sum[r] = NUM(across == 0 ? 1 : 0);
      }
    }
    EVERY (int c = 0; c < COLUMNS; c++) all[r * COLUMNS + c] = NUM(0);
  }
  if (item == 0) k_odd[0] = -1;
  int turn = 0;
  for (IDX j0 = from; j0 < to; j0 += KEYS) {
    K_C(T0) score[ROWS * EACH];
    EVERY (int i = 0; i < ROWS * EACH; i++) score[i] = NUM(0);
    for (IDX d0 = 0; d0 < size; d0 += DEPTH) {
      BARRIER;
      EVERY (int i = 0; i < DEPTH * HIGH / K_GROUP; i++) {
        const int r = RUNS ? item % HIGH : item / DEPTH + i * (K_GROUP / DEPTH);
        const int d = RUNS ? item / HIGH * (DEPTH * HIGH / K_GROUP) + i : item % DEPTH;
        const bool is_in = row0 + r < queries && d0 + d < size;
        k_rows[d * HIGH_PITCH + r] = is_in ? FLASH_QUERY(row0 + r, d0 + d) : NUM(0);
      }
      EVERY (int i = 0; i < DEPTH; i++) {
        const int j = RUNS ? item : item / DEPTH + i * (K_GROUP / DEPTH), d = RUNS ? i : item % DEPTH;
        k_stage[d * KEY_PITCH + j] = j0 + j < to && d0 + d < size ? FLASH_KEY(j0 + j, d0 + d) : NUM(0);
      }
      BARRIER;
      for (int d = 0; d < DEPTH; d++) {
        EVERY (int r = 0; r < ROWS; r++) {
          const K_C(T0) q = k_rows[d * HIGH_PITCH + side * ROWS + r];
          EVERY (int i = 0; i < EACH; i++) score[r * EACH + i] += q * k_stage[d * KEY_PITCH + OF_KEYS(i)];
        }
      }
    }
    BARRIER;
    EVERY (int r = 0; r < ROWS; r++) {
      K_C(T0) greatest = NUM(-K_INFINITY);
      EVERY (int i = 0; i < EACH; i++) {
        const IDX j = j0 + OF_KEYS(i);
        K_C(T0) v = NUM(-K_INFINITY);
        if (j >= begins[r] && j < ends[r] && j < to) {
          const K_C(T0) add = FLASH_BIAS(biased[r], j);
          if (add != NUM(-K_INFINITY)) {
            v = FLASH_SCORE(score[r * EACH + i]) + add;
            seen[r] = true;
          }
        }
        score[r * EACH + i] = v;
        greatest = v > greatest ? v : greatest;
      }
      k_rows[(side * ROWS + r) * SIDE + across] = greatest;
    }
    BARRIER;
    EVERY (int r = 0; r < ROWS; r++) {
      K_C(T0) greatest = most[r];
      EVERY (int i = 0; i < SIDE; i++) {
        const K_C(T0) v = k_rows[(side * ROWS + r) * SIDE + i];
        greatest = v > greatest ? v : greatest;
      }
      const K_C(T0) scale = greatest == most[r] ? NUM(1) : EXP(most[r] - greatest);
      most[r] = greatest;
      sum[r] *= scale;
      EVERY (int c = 0; c < COLUMNS; c++) all[r * COLUMNS + c] *= scale;
      EVERY (int i = 0; i < EACH; i++) {
        const K_C(T0) v = score[r * EACH + i], part = v == NUM(-K_INFINITY) ? NUM(0) : EXP(v - greatest);
        sum[r] += part;
        k_parts[OF_KEYS(i) * HIGH_PITCH + side * ROWS + r] = part;
      }
    }
    for (int j1 = 0; j1 < KEYS && j0 + j1 < to; j1 += CHUNK) {
      BARRIER;
      EVERY (int i = 0; i < CHUNK * WIDE / K_GROUP; i++) {
        const int at = RUNS ? item * (CHUNK * WIDE / K_GROUP) + i : item + i * K_GROUP, j = at / WIDE, c = at % WIDE;
        const bool is_in = j0 + j1 + j < to && column0 + c < wide;
        const K_C(T0) v = is_in ? FLASH_VALUE(j0 + j1 + j, column0 + c) : NUM(0);
        k_stage[at] = v;
        if (!(v - v == NUM(0))) k_odd[0] = turn;
      }
      BARRIER;
      if (k_odd[0] != turn) {
        for (int j = 0; j < CHUNK; j++) {
          EVERY (int r = 0; r < ROWS; r++) {
            const K_C(T0) part = k_parts[(j1 + j) * HIGH_PITCH + side * ROWS + r];
            EVERY (int c = 0; c < COLUMNS; c++) all[r * COLUMNS + c] += part * k_stage[j * WIDE + OF_COLUMNS(c)];
          }
        }
      } else { /* infinite values and NaN, of which nothing comes where they weigh nothing */
        for (int j = 0; j < CHUNK; j++) {
          for (int r = 0; r < ROWS; r++) {
            const K_C(T0) part = k_parts[(j1 + j) * HIGH_PITCH + side * ROWS + r];
            for (int c = 0; part != NUM(0) && c < COLUMNS; c++) all[r * COLUMNS + c] += part * k_stage[j * WIDE + OF_COLUMNS(c)];
          }
        }
      }
      turn++;
    }
  }
  BARRIER;
  EVERY (int r = 0; r < ROWS; r++)
    k_rows[(side * ROWS + r) * SIDE + across] = sum[r] == NUM(0) && seen[r] ? NUM(-1) : sum[r];
  BARRIER;
  EVERY (int r = 0; r < ROWS; r++) {
    const IDX row = row0 + side * ROWS + r;
    K_C(T0) weight = NUM(0);
    bool any = false;
    EVERY (int i = 0; i < SIDE; i++) {
      const K_C(T0) v = k_rows[(side * ROWS + r) * SIDE + i];
      any = any || v < NUM(0);
      weight += v < NUM(0) ? NUM(0) : v;
    }
    EVERY (int c = 0; c < COLUMNS; c++) {
      const IDX e = column0 + OF_COLUMNS(c);
      const K_C(T0) v = weight != NUM(0) ? all[r * COLUMNS + c] / weight : any ? FLASH_NONE : NUM(0);
      if (row < queries && e < wide) FLASH_PUT(row, e, v);
    }
  }
}
