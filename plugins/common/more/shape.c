/* Operators that move elements or make them from where they are: Trilu, OneHot, EyeLike, Range, Size, DepthToSpace,
 * SpaceToDepth, ReverseSequence, CenterCropPad, Pad. */
#include "more.h"

#include <math.h>

/* ---------------------------------------------------------------- Trilu, EyeLike, Size, OneHot, Range */

enum { A, B, C, D };

/* A unit is a row. */
static void run_trilu(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t cols = x->shape[x->ndim - 1], rows = x->shape[x->ndim - 2], size = x->size;
  const int64_t k = a->in[1] != NULL ? more_get_int(&m->in[1], a->in[1], 0) : 0;
  const int64_t far = k < -rows ? -rows : k > cols ? cols : k; /* beyond these all or nothing is kept */
  for (int64_t r = first; r < last; r++) {
    const int64_t diagonal = r % rows + far + (m->i[A] == 0);
    const int64_t cut = diagonal < 0      ? 0
                        : diagonal > cols ? cols
                                          : diagonal; /* upper: kept from here on; lower: up to it */
    const char *from = (const char *)a->in[0] + r * cols * size;
    char *to = (char *)a->out[0] + r * cols * size;
    const int64_t begin = m->i[A] != 0 ? cut : 0, end = m->i[A] != 0 ? cols : cut;
    memset(to, 0, (size_t)(begin * size));
    memmove(to + begin * size, from + begin * size, (size_t)((end - begin) * size));
    memset(to + end * size, 0, (size_t)((cols - end) * size));
  }
}

void more_setup_trilu(more_plan *p) {
  more_rank(p, 0, 2, MORE_DIMS);
  p->m->i[A] = more_int(p, "upper", 1);
  if (more_operand(p, 1) && (p->m->in[1].count != 1 || p->m->in[1].type != REF_TYPE_I64))
    more_refuse(p, "operand 1 must be one int64");
  more_result_like(p, 0, 0);
  const more_value *x = &p->m->in[0];
  if (more_ok(p)) more_work(p, run_trilu, x->count > 0 ? x->count / x->shape[x->ndim - 1] : 0, 0);
}

static void run_eye(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t cols = m->out[0].shape[1], size = m->out[0].size;
  memset((char *)a->out[0] + first * cols * size, 0, (size_t)((last - first) * cols * size)); /* 0 of each type */
  for (int64_t i = first; i < last; i++)
    if (m->i[A] >= -i && m->i[A] < cols - i) more_put(&m->out[0], a->out[0], i * cols + i + m->i[A], 1);
}

void more_setup_eye_like(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int64_t to = more_int(p, "dtype", 0);
  p->m->i[A] = more_int(p, "k", 0);
  more_rank(p, 0, 2, 2);
  more_result(p, 0, to != 0 ? more_type_of_onnx(to) : x->type, x->ndim, x->shape);
  if (more_ok(p)) more_work(p, run_eye, x->count > 0 ? x->shape[0] : 0, 0);
}

static void run_number(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  (void)first, (void)last;
  ((int64_t *)a->out[0])[0] = m->i[A];
}

void more_setup_size(more_plan *p) {
  p->m->i[A] = p->m->in[0].count;
  more_result(p, 0, REF_TYPE_I64, 0, NULL);
  more_work(p, run_number, 1, 0);
}

/* A unit is what lies before the new axis. */
static void run_one_hot(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t depth = m->i[A], inner = m->i[B], size = m->out[0].size;
  int64_t work = 0;
  for (int64_t i = first; i < last; i++) {
    char *to = (char *)a->out[0] + i * depth * inner * size;
    ref_take(a->in[2], 0, (uint32_t)size, depth * inner, to);
    if (more_tick(m, &work, depth * inner)) return;
    for (int64_t c = 0; c < inner; c++) {
      const double index = more_get(&m->in[0], a->in[0], i * inner + c),
                   place = index < 0 ? index + (double)depth : index;
      if (!(place >= 0 && place < (double)depth && place == floor(place))) continue;
      memcpy(to + ((int64_t)place * inner + c) * size, (const char *)a->in[2] + size, (size_t)size);
    }
  }
}

void more_setup_one_hot(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t shape[MORE_DIMS + 1], axis = more_axis(p, more_int(p, "axis", -1), x->ndim + 1);
  const double depth = more_operand_number(p, 1, 0);
  more_number(p, 0);
  if (!(depth >= 0 && depth < 0x1p40)) more_refuse(p, "its depth is not a size");
  if (m->in[2].ndim != 1 || m->in[2].count != 2) more_refuse(p, "operand 2 must be two values");
  if (!more_ok(p)) return;
  m->i[A] = (int64_t)depth;
  m->i[B] = more_count(x->shape, axis, x->ndim);
  for (int32_t d = 0; d <= x->ndim; d++) shape[d] = d < axis ? x->shape[d] : d == axis ? m->i[A] : x->shape[d - 1];
  more_result(p, 0, m->in[2].type, x->ndim + 1, shape);
  more_work(p, run_one_hot, m->i[B] > 0 ? x->count / m->i[B] : 0, (double)m->out[0].count);
}

static void run_range(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const double start = more_get(&m->in[0], a->in[0], 0), step = more_get(&m->in[2], a->in[2], 0);
  for (int64_t i = first; i < last; i++) more_put(&m->out[0], a->out[0], i, start + (double)i * step);
}

void more_setup_range(more_plan *p) {
  more_same_type(p, 0, 1);
  more_same_type(p, 0, 2);
  more_number(p, 0);
  more_int(p, "stash_type", 1);
  const double start = more_operand_number(p, 0, 0), limit = more_operand_number(p, 1, 0);
  const double count = ceil((limit - start) / more_operand_number(p, 2, 1));
  if (!(count < 0x1p40)) more_refuse(p, "it would have more than 2^40 elements");
  const int64_t n = count > 0 && more_ok(p) ? (int64_t)count : 0;
  more_result(p, 0, p->m->in[0].type, 1, &n);
  more_work(p, run_range, n, (double)n);
}

/* ---------------------------------------------------------------- DepthToSpace, SpaceToDepth */

/* m->i: six dimensions of the result, and the strides of the operand along them. */
static uint64_t blocks_of(const more_op *m, ref_strided *t) {
  uint64_t units = 0;
  ref_strided_start(t, m->in[0].size, 0, 6, m->i, m->i + 8, &units);
  return units;
}

static void run_blocks(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  ref_strided t;
  blocks_of(m, &t);
  ref_strided_run(&t, a->in[0], a->out[0], (uint64_t)first, (uint64_t)last);
}

static void plan_blocks(more_plan *p) {
  ref_strided t;
  const int64_t count = p->m->in[0].count;
  if (more_ok(p)) more_loop(p, run_blocks, count > 0 ? (int64_t)blocks_of(p->m, &t) : 0, (double)count);
}

void more_setup_depth_to_space(more_plan *p) {
  more_op *m = p->m;
  const int64_t b = more_int(p, "blocksize", 0), crd = more_choice(p, "mode", "DCR", "DCR CRD");
  const int64_t *x = m->in[0].shape;
  more_rank(p, 0, 4, 4);
  if (more_ok(p) && (b < 1 || b > 1 << 20 || x[1] % (b * b) != 0 || x[2] > INT32_MAX || x[3] > INT32_MAX))
    more_refuse(p, "blocksize does not divide its channels");
  if (!more_ok(p)) return;
  const int64_t c = x[1] / (b * b), plane = x[2] * x[3];
  const int64_t shape[] = {x[0], c, x[2] * b, x[3] * b};
  const int64_t sizes[] = {x[0], c, x[2], b, x[3], b};
  const int64_t depth = crd != 0 ? 1 : c, channel = crd != 0 ? b * b : 1; /* of a block, of a channel */
  const int64_t strides[] = {x[1] * plane, channel * plane, x[3], b * depth * plane, 1, depth * plane};
  memcpy(m->i, sizes, sizeof sizes);
  memcpy(m->i + 8, strides, sizeof strides);
  more_result(p, 0, m->in[0].type, 4, shape);
  plan_blocks(p);
}

void more_setup_space_to_depth(more_plan *p) {
  more_op *m = p->m;
  const int64_t b = more_int(p, "blocksize", 0);
  const int64_t *x = m->in[0].shape;
  const int64_t crd = more_choice(p, "mode", "DCR", "DCR CRD");
  more_rank(p, 0, 4, 4);
  if (more_ok(p) && (b < 1 || b > 1 << 15 || x[1] > INT32_MAX || x[2] % b != 0 || x[3] % b != 0))
    more_refuse(p, "blocksize does not divide its height and width");
  if (!more_ok(p)) return;
  const int64_t shape[] = {x[0], x[1] * b * b, x[2] / b, x[3] / b};
  const int64_t dcr_sizes[] = {x[0], b, b, x[1], x[2] / b, x[3] / b};
  const int64_t dcr_strides[] = {x[1] * x[2] * x[3], x[3], 1, x[2] * x[3], b * x[3], b};
  const int64_t crd_sizes[] = {x[0], x[1], b, b, x[2] / b, x[3] / b};
  const int64_t crd_strides[] = {x[1] * x[2] * x[3], x[2] * x[3], x[3], 1, b * x[3], b};
  memcpy(m->i, crd != 0 ? crd_sizes : dcr_sizes, sizeof dcr_sizes);
  memcpy(m->i + 8, crd != 0 ? crd_strides : dcr_strides, sizeof dcr_strides);
  more_result(p, 0, m->in[0].type, 4, shape);
  plan_blocks(p);
}

/* ---------------------------------------------------------------- ReverseSequence */

static void run_reverse(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t time = m->i[A], batch = m->i[B], inner = more_count(x->shape, 2, x->ndim), n = x->shape[time];
  const size_t bytes = (size_t)inner * x->size;
  for (int64_t u = first; u < last; u++) { /* a place of the first two dimensions */
    const int64_t t = time == 0 ? u / x->shape[1] : u % x->shape[1], b = batch == 0 ? u / x->shape[1] : u % x->shape[1];
    int64_t length = more_get_int(&m->in[1], a->in[1], b);
    length = length < 0 ? 0 : length > n ? n : length;
    const int64_t from = t < length ? length - 1 - t : t;
    const int64_t at = time == 0 ? from * x->shape[1] + b : b * x->shape[1] + from;
    memcpy((char *)a->out[0] + (size_t)u * bytes, (const char *)a->in[0] + (size_t)at * bytes, bytes);
  }
}

void more_setup_reverse_sequence(more_plan *p) {
  const more_value *x = &p->m->in[0];
  p->m->i[A] = more_int(p, "time_axis", 0);
  p->m->i[B] = more_int(p, "batch_axis", 1);
  more_rank(p, 0, 2, MORE_DIMS);
  if ((p->m->i[A] != 0 || p->m->i[B] != 1) && (p->m->i[A] != 1 || p->m->i[B] != 0))
    more_refuse(p, "time_axis and batch_axis must be 0 and 1");
  if (more_ok(p)) more_shape_is(p, 1, 1, &x->shape[p->m->i[B]]);
  more_whole(p, 1);
  more_result_like(p, 0, 0);
  more_work(p, run_reverse, x->shape[0] * x->shape[1], 0);
}

/* ---------------------------------------------------------------- Pad, CenterCropPad */

enum { CONSTANT, REFLECT, EDGE, WRAP, BEFORE = 8 };

/* Place i of a padded dimension as one of n; -1: it is filled. */
static int64_t source(int64_t i, int64_t n, int64_t mode) {
  if ((i >= 0 && i < n) || mode == CONSTANT || n <= 0) return i >= 0 && i < n ? i : -1;
  if (mode == EDGE) return i < 0 ? 0 : n - 1;
  const int64_t period = mode == WRAP ? n : n > 1 ? 2 * (n - 1) : 1;
  i = (i % period + period) % period;
  return i < n ? i : period - i;
}

/* A unit is a row along the last dimension. */
static void run_pad(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0], *y = &m->out[0];
  const int32_t inner = y->ndim - 1;
  const int64_t n = inner < 0 ? 1 : y->shape[inner], have = inner < 0 ? 1 : x->shape[inner];
  const int64_t before = inner < 0 ? 0 : m->i[BEFORE + inner], size = y->size;
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    int64_t at = 0, rest = u, step = have;
    for (int32_t d = inner; d-- > 0 && at >= 0; rest /= y->shape[d], step *= x->shape[d]) {
      const int64_t place = source(rest % y->shape[d] - m->i[BEFORE + d], x->shape[d], m->i[A]);
      at = place < 0 ? -1 : at + place * step;
    }
    char *to = (char *)a->out[0] + u * n * size;
    const char *row = at >= 0 && a->in[0] != NULL ? (const char *)a->in[0] + at * size : NULL;
    const char *filled = m->i[B] != 0 ? a->in[2] : NULL;
    if (more_tick(m, &work, 4 * n)) return;
    for (int64_t i = 0; i < n;) {
      const int64_t from = i - before;
      if (row != NULL && from >= 0 && from < have) { /* as it is */
        const int64_t some = have - from < n - i ? have - from : n - i;
        memcpy(to + i * size, row + from * size, (size_t)(some * size));
        i += some;
        continue;
      }
      const int64_t place = row != NULL ? source(from, have, m->i[A]) : -1;
      if (place >= 0) memcpy(to + i * size, row + place * size, (size_t)size);
      else if (filled != NULL) memcpy(to + i * size, filled, (size_t)size);
      else memset(to + i * size, 0, (size_t)size);
      i++;
    }
  }
}

/* Once the result is known. */
static void plan_pad(more_plan *p) {
  const more_value *y = &p->m->out[0];
  const int64_t n = y->ndim > 0 ? y->shape[y->ndim - 1] : 1;
  if (more_ok(p)) more_loop(p, run_pad, n > 0 ? y->count / n : 0, 4 * (double)y->count);
}

void more_setup_pad(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t pads[2 * MORE_DIMS], axes[MORE_DIMS], shape[MORE_DIMS];
  m->i[A] = more_choice(p, "mode", "constant", "constant reflect edge wrap");
  m->i[B] = 1;
  const int64_t n = more_operand_ints(p, 1, pads, 2 * MORE_DIMS);
  int64_t count = more_operand_ints(p, 3, axes, MORE_DIMS);
  more_same_type(p, 0, 2);
  if (more_operand(p, 2) && m->in[2].count != 1) more_refuse(p, "operand 2 must be one number");
  for (int32_t d = 0; count < 0 && d < x->ndim; d++) axes[d] = d;
  if (count < 0) count = x->ndim;
  if (more_ok(p) && n != 2 * count) more_refuse(p, "it has %lld pads", (long long)n);
  memcpy(shape, x->shape, sizeof shape);
  more_axes(p, axes, count, x->ndim);
  for (int64_t i = 0; i < count && more_ok(p); i++) {
    const int64_t d = axes[i];
    if (pads[i] > INT32_MAX || pads[i] < INT32_MIN || pads[count + i] > INT32_MAX || pads[count + i] < INT32_MIN)
      more_refuse(p, "a pad is not of 32 bits");
    if (!more_ok(p)) return;
    m->i[BEFORE + d] = pads[i];
    shape[d] = x->shape[d] + pads[i] + pads[count + i];
  }
  more_result(p, 0, x->type, x->ndim, shape);
  plan_pad(p);
}

void more_setup_center_crop_pad(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t sizes[MORE_DIMS], axes[MORE_DIMS], shape[MORE_DIMS];
  const int64_t n = more_operand_ints(p, 1, sizes, MORE_DIMS);
  int64_t count = more_ints(p, "axes", axes, MORE_DIMS);
  for (int32_t d = 0; count < 0 && d < x->ndim; d++) axes[d] = d;
  if (count < 0) count = x->ndim;
  if (more_ok(p) && n != count) more_refuse(p, "it has %lld sizes for %lld axes", (long long)n, (long long)count);
  memcpy(shape, x->shape, sizeof shape);
  more_axes(p, axes, count, x->ndim);
  for (int64_t i = 0; i < count && more_ok(p); i++) {
    const int64_t d = axes[i], have = x->shape[d];
    if (sizes[i] < 0) more_refuse(p, "a size is negative");
    if (!more_ok(p)) return;
    shape[d] = sizes[i];
    m->i[BEFORE + d] = sizes[i] > have ? (sizes[i] - have) / 2 : -((have - sizes[i]) / 2);
  }
  more_result(p, 0, x->type, x->ndim, shape);
  plan_pad(p);
}
