/* The family of contract.cl: matrix products and convolutions. On a GPU in tiles through shared memory, as the plan cuts
 * them; on the host's cores in blocks of registers, which are cut here. */
#include "plugins/vulkan/vulkan.h"

#include "family.h"

enum {
  LANES = 8,           /* items of a group of block.comp, and of direct.comp's lines */
  ITEMS = K_GROUP,     /* ... of the other shaders */
  BATCH_DIMS = 5,      /* as contract.glsl has them */
  FEW_GROUPS = 8,      /* fewer leave cores idle: then blocks are smaller */
  LITTLE_WORK = 40000, /* products, for which code is not worth building that other sizes do not use */
  MUCH_WORK = 4000000, /* ... for which large blocks are */
  LONGEST_SPAN = 8,
  TALLEST = 7,       /* lines of a window */
  LONGEST_REACH = 40 /* elements of a line, or of a plane of weights, that an item of direct.comp holds */
};

/* Turns of block.comp's loops over k products: fours, and chunks of 256. */
#define BLOCK_TURNS(k) ((double)(k) / 4 + (double)(k) / 256 + 2)

static int64_t pieces(int64_t n, int64_t size) {
  return n / size + (n % size != 0);
}

static const char *with_c(const k_step *step) {
  return vlk_has(step, K_HAS_C) ? "_c" : "";
}

/* One of the two at most is a weight. */
static const char *half_of(const vlk_shader *out) {
  return (out->halves & 1) != 0 ? "_half_a" : (out->halves & 2) != 0 ? "_half_b" : "";
}

/* Not direct.comp's steps, which have few weights, nor transposed ones. A convolution's weights are A, a row's B. */
bool vlk_takes_half(const vlk_info *info, const k_step *step, uint32_t arg) {
  const uint32_t kernel = step->code.kernel;
  if (!info->storage16 || (kernel != KERNEL_contract && kernel != KERNEL_thin && kernel != KERNEL_thin_down))
    return false;
  if (!step->is_product) return arg == 0 && !vlk_has(step, K_TRANSPOSED);
  return arg == 1 || (arg == 0 && (info->is_cpu || kernel == KERNEL_contract));
}

/* How results are cut: rows and columns of an item's block, and what tiles_m, tiles_n and all groups become of it. */
typedef struct cut {
  int64_t rows, width, tiles_m, tiles_n, total;
} cut;

static cut cut_blocks(int64_t m, int64_t n, int64_t batches, int64_t rows, int64_t width) {
  cut c = {.rows = rows, .width = width, .tiles_m = pieces(m, rows), .tiles_n = pieces(n, LANES * width)};
  c.total = c.tiles_m * c.tiles_n * batches;
  return c;
}

/* Large blocks where there is work for many of them, since it takes long to build their code, and where no cores are left
 * without; the same small ones for all that is small. */
static cut choose_blocks(int64_t m, int64_t n, int64_t k, int64_t batches, int64_t width) {
  const double work = (double)m * (double)n * (double)k * (double)batches;
  if (m == 1) return cut_blocks(m, n, batches, 1, work < LITTLE_WORK ? 4 : width);
  if (work < LITTLE_WORK || m <= 4) return cut_blocks(m, n, batches, 4, 4);
  cut c = cut_blocks(m, n, batches, work >= MUCH_WORK && m > 8 ? 16 : 8, width);
  if (c.rows > 8 && c.total < FEW_GROUPS) c = cut_blocks(m, n, batches, 8, width);
  return c;
}

/* Can items load for each other, in blocks of so many rows? */
static const char *sharing(const vlk_info *info, const cut *c) {
  const uint32_t wanted = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT;
  const bool can = info->subgroup_size >= LANES && (info->subgroup_ops & wanted) == wanted;
  return can && c->rows % LANES == 0 ? "_shared" : "";
}

/* The constants of block.comp; where there is little work they are those that serve any size. */
static void put_block(vlk_shader *out, const cut *c, double work, bool b_fours, bool b_down, bool a_fours, int64_t k) {
  const bool little = work < LITTLE_WORK;
  vlk_spec(out, (uint32_t)c->rows);
  vlk_spec(out, (uint32_t)c->width);
  vlk_spec(out, b_fours && !little);
  vlk_spec(out, b_down && b_fours && !little);
  vlk_spec(out, a_fours && !little);
  vlk_spec(out, k % 4 != 0 || little);
  out->groups = (uint64_t)c->total;
}

/* ---------------------------------------------------------------- matrix products */

/* Batch dimensions, joined where A and B are walked in one stride each. */
typedef struct batches {
  int64_t dims, dim[K_DIMS], a[K_DIMS], b[K_DIMS], all;
} batches;

static batches join_batches(const k_matmul *p) {
  batches j = {.all = 1};
  for (int64_t d = 0; d < p->batch_dims; d++) {
    const int64_t size = p->batch_dim[d], last = j.dims - 1;
    j.all *= size;
    if (size == 1) continue;
    if (j.dims > 0 && j.a[last] == p->batch_a[d] * size && j.b[last] == p->batch_b[d] * size) {
      j.dim[last] *= size;
      j.a[last] = p->batch_a[d];
      j.b[last] = p->batch_b[d];
      continue;
    }
    j.dim[j.dims] = size;
    j.a[j.dims] = p->batch_a[d];
    j.b[j.dims++] = p->batch_b[d];
  }
  return j;
}

/* Does every place at which fours of B are read begin at a multiple of four? Those go along k where it is down. */
static bool b_by_fours(const vlk_info *info, const k_matmul *p, const batches *j, bool down, int64_t width) {
  bool are = info->alignment % 16 == 0 && (down ? p->b_col % 4 == 0 && p->k % 4 == 0 : p->b_row % 4 == 0);
  if (!down) are = are && p->b_col == 1 && p->n % 4 == 0 && p->n >= width && width % 4 == 0;
  for (int64_t d = 0; d < j->dims; d++) are = are && j->b[d] % 4 == 0;
  return are;
}

static bool a_by_fours(const vlk_info *info, const k_matmul *p, const batches *j) {
  bool are = info->alignment % 16 == 0 && p->a_col == 1 && p->k % 4 == 0 && (p->m == 1 || p->a_row % 4 == 0);
  for (int64_t d = 0; d < j->dims; d++) are = are && j->a[d] % 4 == 0;
  return are;
}

static void put_matmul(vlk_shader *out, const k_matmul *p, const batches *j, int64_t tiles_m, int64_t tiles_n) {
  vlk_param(out, p->m);
  vlk_param(out, p->n);
  vlk_param(out, p->k);
  vlk_param(out, tiles_m);
  vlk_param(out, tiles_n);
  vlk_param(out, (int64_t)out->groups);
  vlk_param(out, p->a_row);
  vlk_param(out, p->a_col);
  vlk_param(out, p->b_row);
  vlk_param(out, p->b_col);
  vlk_param(out, p->c_row);
  vlk_param(out, p->c_col);
  vlk_param_float(out, p->alpha);
  vlk_param_float(out, p->beta);
  vlk_param(out, j->dims);
  vlk_params(out, j->dim, BATCH_DIMS);
  vlk_params(out, j->a, BATCH_DIMS);
  vlk_params(out, j->b, BATCH_DIMS);
}

static heddle_status make_product(const vlk_info *info, const k_step *step, vlk_shader *out, heddle_error *err) {
  const k_matmul *p = &step->params.matmul;
  const batches j = join_batches(p);
  const bool down = p->b_col != 1 && p->b_row == 1;
  heddle_status s = HEDDLE_OK;
  if (j.dims > BATCH_DIMS)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "more than %d batch dimensions that cannot be joined", BATCH_DIMS);
  if (info->is_cpu) {
    s = vlk_want_turns(info, BLOCK_TURNS(p->k), err);
    if (s != HEDDLE_OK) return s;
    int64_t width = down ? (p->m == 1 && p->n <= 64 * LANES ? 1 : 4) : (p->n > 4 * LANES ? 8 : 4);
    /* As many bytes of a row of B as of float32. */
    if (!down && p->m == 1 && (out->halves & 2) != 0 && pieces(p->n, 16 * LANES) >= FEW_GROUPS) width = 16;
    const cut c = choose_blocks(p->m, p->n, p->k, j.all, width);
    s = vlk_pick_code(out, err, "block%s%s%s", sharing(info, &c), half_of(out), with_c(step));
    const double work = (double)p->m * (double)p->n * (double)p->k * (double)j.all;
    put_block(out, &c, work, b_by_fours(info, p, &j, down, c.width), down, a_by_fours(info, p, &j), p->k);
    put_matmul(out, p, &j, c.tiles_m, c.tiles_n);
    return s;
  }
  if (step->code.kernel == KERNEL_contract) {
    s = vlk_pick_code(out, err, "tile_%d%s%s", vlk_has(step, K_EACH_8) ? 8 : 4, half_of(out), with_c(step));
    vlk_spec(out, vlk_has(step, K_A_DOWN));
    vlk_spec(out, down);
  } else {
    const bool alone = step->code.kernel == KERNEL_thin_down;
    s = vlk_pick_code(out, err, "%s%s%s%s", k_kernels[step->code.kernel].name,
                      alone && vlk_adds_subgroups(info) ? "_subgroups" : "", half_of(out), with_c(step));
  }
  put_matmul(out, p, &j, p->tiles_m, p->tiles_n);
  return s;
}

/* ---------------------------------------------------------------- convolutions */

static void put_conv(vlk_shader *out, const k_conv *p, int64_t tiles_m, int64_t tiles_n) {
  vlk_param(out, p->m);
  vlk_param(out, p->n);
  vlk_param(out, p->k);
  vlk_param(out, tiles_m);
  vlk_param(out, tiles_n);
  vlk_param(out, (int64_t)out->groups);
  vlk_param(out, p->groups);
  vlk_param(out, p->in_channels);
  vlk_param(out, p->taps);
  vlk_params(out, p->in, K_SPATIAL);
  vlk_params(out, p->out, K_SPATIAL);
  vlk_params(out, p->window, K_SPATIAL);
  vlk_params(out, p->stride, K_SPATIAL);
  vlk_params(out, p->dilation, K_SPATIAL);
  vlk_params(out, p->pad, K_SPATIAL);
}

/* Of the results of a step for the kernel direct. */
static int64_t planes_of(const k_conv *p) {
  return p->count / p->tiles_n / (p->out[0] * p->out[1]);
}

static double direct_turns(const k_conv *p) {
  const double lines = (double)p->window[0] * ((double)p->window[1] * ((double)p->window[2] + 1) + 1);
  return (double)p->in_channels * (lines + 1);
}

/* Does an item hold what it reads of a line, and a window's plane of weights? */
static bool lines_fit(const k_conv *p, int64_t span) {
  return p->dilation[1] == 1 && p->dilation[2] == 1 && p->stride[2] < LONGEST_REACH && p->window[1] <= TALLEST &&
         p->window[1] * p->window[2] <= LONGEST_REACH && (span - 1) * p->stride[2] + p->window[2] <= LONGEST_REACH;
}

static int64_t share_of(const k_conv *p, int64_t span, int64_t lines, int64_t items) {
  return pieces(pieces(p->out[2], span) * p->out[0] * pieces(p->out[1], lines), items);
}

/* One line an item or two, whichever reads less of the input: two share what they read, but leave fewer items for a
 * group. */
static int64_t choose_lines(const k_conv *p, int64_t span) {
  const int64_t one = share_of(p, span, 1, LANES) * p->window[1];
  const int64_t two = share_of(p, span, 2, LANES) * (p->stride[1] + p->window[1]);
  return p->stride[1] <= TALLEST && two < one ? 2 : 1;
}

/* Lines are cut into spans of the same length, and planes into groups. */
static heddle_status make_direct(const vlk_info *info, const k_step *step, vlk_shader *out, heddle_error *err) {
  const k_conv *p = &step->params.conv;
  const int64_t long_span = pieces(p->out[2], pieces(p->out[2], LONGEST_SPAN));
  const bool transposed = vlk_has(step, K_TRANSPOSED);
  const bool by_line =
      info->is_cpu && !transposed && lines_fit(p, long_span) && (double)p->count * (double)p->k >= LITTLE_WORK;
  const int64_t span = by_line ? long_span : 1, lines = by_line ? choose_lines(p, span) : 1;
  heddle_status s = vlk_pick_code(out, err, "%s%s%s", by_line ? "direct_line" : "direct",
                                  transposed ? "_transposed" : "", with_c(step));
  vlk_spec(out, (uint32_t)span);
  if (by_line) {
    vlk_spec(out, (uint32_t)p->window[2]);
    vlk_spec(out, (uint32_t)p->stride[2]);
    vlk_spec(out, (uint32_t)p->window[1]);
    vlk_spec(out, (uint32_t)p->stride[1]);
    vlk_spec(out, (uint32_t)lines);
  }
  const int64_t share = share_of(p, span, lines, by_line ? LANES : ITEMS);
  out->groups = (uint64_t)(planes_of(p) * share);
  put_conv(out, p, share, pieces(p->out[2], span));
  return s;
}

static heddle_status make_conv(const vlk_info *info, const k_step *step, vlk_shader *out, heddle_error *err) {
  const k_conv *p = &step->params.conv;
  const char *transposed = vlk_has(step, K_TRANSPOSED) ? "_transposed" : "";
  const bool direct = step->code.kernel == KERNEL_direct;
  if (direct && vlk_want_turns(info, direct_turns(p), NULL) == HEDDLE_OK) return make_direct(info, step, out, err);
  if (!info->is_cpu) {
    heddle_status s = vlk_pick_code(out, err, "tile_conv%s_%d%s%s", transposed, vlk_has(step, K_EACH_8) ? 8 : 4,
                                    half_of(out), with_c(step));
    vlk_spec(out, 0);
    put_conv(out, p, p->tiles_m, p->tiles_n);
    return s;
  }
  const int64_t all =
      direct ? planes_of(p) / p->m : (int64_t)step->groups / (p->tiles_m * p->tiles_n); /* images times groups */
  heddle_status s = vlk_want_turns(info, BLOCK_TURNS(p->k), err);
  if (s != HEDDLE_OK) return s;
  const cut c = choose_blocks(p->m, p->n, p->k, all, p->n <= 2 * LANES ? 2 : 4);
  s = vlk_pick_code(out, err, "block_conv%s%s%s%s", transposed, sharing(info, &c), half_of(out), with_c(step));
  const double work = (double)p->m * (double)p->n * (double)p->k * (double)all;
  put_block(out, &c, work, false, false, transposed[0] == '\0' && info->alignment % 16 == 0 && p->k % 4 == 0, p->k);
  put_conv(out, p, c.tiles_m, c.tiles_n);
  return s;
}

heddle_status vlk_contract(const heddle_host *host, const vlk_info *info, const k_step *step, vlk_shader *out,
                           heddle_error *err) {
  (void)host;
  return step->is_product ? make_product(info, step, out, err) : make_conv(info, step, out, err);
}
