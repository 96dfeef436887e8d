/* The constants of a quantised product as the run wants them: weights as int8, and for each channel what is added to its
 * sum. Where the window leaves the input, the input's zero point is not among the products, so that what is added
 * depends on the place: on which taps lie inside, along each dimension. */
#include "onednn_int8.h"

static int32_t zero_of(const int8_product *p, int64_t channel) {
  if (p->w_zero == NULL) return 0;
  uint64_t count = 0;
  region_value_count(p->w_zero, &count);
  return int8_byte(p->w_zero, count == 1 ? 0 : (uint64_t)channel);
}

/* The weights of a channel: input channel after input channel, all taps of each. */
typedef struct weights_row {
  const uint8_t *at;
  int64_t step;
  int32_t flip; /* 128 of int8 */
} weights_row;

static weights_row row_of(const int8_product *p, int64_t c) {
  const uint8_t *data = p->w->data;
  const int64_t each = p->in_channels / p->groups * p->taps;
  return (weights_row){.at = p->matmul ? data + c : data + c * each,
                       .step = p->matmul ? p->out_channels : 1,
                       .flip = p->w->dtype.code == HEDDLE_DTYPE_INT ? 128 : 0};
}

static inline int32_t weight(const weights_row *r, int64_t i) {
  return (r->at[i * r->step] ^ r->flip) - r->flip;
}

void int8_piece(const int8_product *p, uint32_t i, uint32_t n, int64_t *first, int64_t *last) {
  const int64_t all = p->in_channels / p->groups * p->taps;
  *first = all * i / n;
  *last = all * (i + 1) / n;
}

static int64_t most_of_piece(const int8_product *p, uint32_t i, uint32_t n) {
  int64_t first, last;
  int8_piece(p, i, n, &first, &last);
  const bool is_signed = p->x->dtype.code == HEDDLE_DTYPE_INT;
  int32_t shift;
  const bool keeps = int8_keeps_zero(p, &shift);
  int64_t most = 0;
  for (int64_t c = 0; c < p->out_channels; c++) {
    const int32_t off = keeps ? shift : zero_of(p, c);
    const weights_row row = row_of(p, c);
    int64_t up = 0, down = 0;
    for (int64_t u = first; u < last; u++) {
      const int32_t w = weight(&row, u) - off;
      if (w > 0) up += w;
      else down -= w;
    }
    const int64_t sum = is_signed ? 128 * (up + down) : 255 * (up > down ? up : down);
    if (sum > most) most = sum;
  }
  return most;
}

int64_t int8_most_sum(const int8_product *p, uint32_t n) {
  int64_t most = 0;
  for (uint32_t i = 0; i < n; i++) {
    const int64_t one = most_of_piece(p, i, n);
    if (one > most) most = one;
  }
  return most;
}

bool int8_keeps_zero(const int8_product *p, int32_t *shift) {
  const int64_t each = p->in_channels / p->groups * p->taps;
  bool some = false;
  *shift = p->w->dtype.code == HEDDLE_DTYPE_UINT ? 128 : 0;
  for (int64_t c = 0; c < p->out_channels; c++) {
    const int32_t zero = zero_of(p, c);
    if (zero == *shift) continue; /* what is taken off anyway */
    const weights_row row = row_of(p, c);
    for (int64_t i = 0; i < each && !some; i++) {
      const int32_t w = weight(&row, i) - zero;
      some = w < -128 || w > 127;
    }
  }
  return some;
}

/* Places at the edges that a plan walks. */
#define MOST_PLACES (INT64_C(1) << 17)

int64_t int8_classes(const int8_product *p, int dim, uint16_t *classes) {
  const ref_window *w = &p->window;
  const int64_t reach = (w->kernel[dim] - 1) * w->dilation[dim];
  const int64_t whole = (w->in[dim] - 1 - reach + w->pad[dim]) / w->stride[dim]; /* the last place with all taps */
  int64_t count = 0, walked = 0, was_first = -1, was_last = -1;
  for (int64_t i = 0; i < w->out[dim]; i++) {
    int64_t first, last;
    ref_window_taps(w, dim, i, i, &first, &last);
    if (i == 0 || first != was_first || last != was_last) count++;
    was_first = first;
    was_last = last;
    if (classes != NULL) classes[i] = (uint16_t)(count - 1);
    else if (count > UINT16_MAX || ++walked > MOST_PLACES) return UINT32_MAX;
    else if (first == 0 && last == w->kernel[dim] && whole > i) i = whole - 1; /* all between are alike */
  }
  return count;
}

/* ---------------------------------------------------------------- sums of weights */

typedef struct reach {
  int64_t first, last;
} reach;

/* The taps inside, of each class along a dimension. */
static void reaches(const int8_product *p, int dim, const uint16_t *classes, reach *out) {
  for (int64_t i = 0; i < p->window.out[dim]; i++) {
    reach *r = &out[classes[i]];
    ref_window_taps(&p->window, dim, i, i, &r->first, &r->last);
  }
}

static void fill_sums(const int8_product *p, int8_weights *w, const reach *rows, const reach *cols, int32_t *taps) {
  const int64_t depth = p->in_channels / p->groups, width = p->window.kernel[2];
  for (int64_t c = 0; c < p->out_channels; c++) {
    const int32_t zero = zero_of(p, c);
    const weights_row row = row_of(p, c);
    memset(taps, 0, (size_t)p->taps * sizeof *taps);
    for (int64_t k = 0, i = 0; k < depth; k++)
      for (int64_t t = 0; t < p->taps; t++, i++) taps[t] += weight(&row, i) - zero;
    for (int64_t r = 0; r < w->rows; r++)
      for (int64_t q = 0; q < w->cols; q++) {
        int32_t sum = 0;
        for (int64_t i = rows[r].first; i < rows[r].last; i++)
          for (int64_t j = cols[q].first; j < cols[q].last; j++) sum += taps[i * width + j];
        w->sums[(r * w->cols + q) * p->out_channels + c] = sum;
      }
  }
}

void int8_weights_add(const int8_weights *w, int32_t x_zero, int32_t *add) {
  for (int64_t i = 0; i < w->rows * w->cols; i++)
    for (int64_t c = 0; c < w->channels; c++) {
      const uint32_t less = w->sums != NULL ? (uint32_t)x_zero * (uint32_t)w->sums[i * w->channels + c] : 0;
      add[i * w->channels + c] = (int32_t)((uint32_t)w->bias[c] - less);
    }
}

/* ---------------------------------------------------------------- making them */

static void *get(int8_weights *w, int64_t count, size_t size, heddle_status *s) {
  const size_t bytes = (size_t)(count > 0 ? count : 1) * size;
  void *p = *s == HEDDLE_OK ? w->host->alloc(w->host->ctx, bytes, 64) : NULL;
  if (p != NULL) memset(p, 0, bytes);
  else if (*s == HEDDLE_OK) *s = HEDDLE_ENOMEM;
  return p;
}

static void fill_channels(const int8_product *p, int8_weights *w, int32_t shift) {
  const int64_t each = p->in_channels / p->groups * p->taps;
  for (int64_t c = 0; c < p->out_channels; c++) {
    const int32_t off = w->ones ? shift : zero_of(p, c);
    w->bias[c] = p->bias != NULL ? ((const int32_t *)p->bias->data)[c] : 0;
    if (w->ones) w->w_zero[c] = zero_of(p, c) - shift;
    if (p->rounds) w->scale[c] = *p->x_scale * p->w_scale[p->scales == 1 ? 0 : c] / *p->y_scale;
    const weights_row row = row_of(p, c);
    int8_t *to = p->matmul ? w->bytes + c : w->bytes + c * each;
    for (int64_t i = 0; i < each; i++) to[i * row.step] = (int8_t)(weight(&row, i) - off);
  }
}

uint64_t int8_weights_kept(const int8_product *p) {
  const bool later = p->x_zero_value >= 0, sums = later || (p->x_zero != NULL && int8_byte(p->x_zero, 0) != 0);
  const uint64_t channels = (uint64_t)p->out_channels;
  const uint64_t classes = sums ? (uint64_t)(int8_classes(p, 1, NULL) * int8_classes(p, 2, NULL)) : 1;
  int32_t shift;
  const uint64_t each = 1 + int8_keeps_zero(p, &shift) + p->rounds + (sums ? classes : 0) + (later ? 0 : classes);
  return (uint64_t)(p->window.out[1] + p->window.out[2]) * sizeof(uint16_t) + each * channels * sizeof(int32_t);
}

heddle_status int8_weights_make(const heddle_host *host, const int8_product *p, int8_weights *out, heddle_error *err) {
  const int64_t channels = p->out_channels;
  const bool later = p->x_zero_value >= 0;
  heddle_status s = HEDDLE_OK;
  int32_t shift;
  *out = (int8_weights){.host = host, .rows = 1, .cols = 1, .channels = channels, .ready = !later};
  out->ones = int8_keeps_zero(p, &shift);
  out->x_zero = !later && p->x_zero != NULL ? int8_byte(p->x_zero, 0) : 0;
  const bool sums = later || out->x_zero != 0;
  out->row_class = get(out, p->window.out[1], sizeof *out->row_class, &s);
  out->col_class = get(out, p->window.out[2], sizeof *out->col_class, &s);
  if (sums && s == HEDDLE_OK) {
    out->rows = int8_classes(p, 1, out->row_class);
    out->cols = int8_classes(p, 2, out->col_class);
    out->sums = get(out, out->rows * out->cols * channels, sizeof *out->sums, &s);
  }
  out->bytes = get(out, channels * (p->in_channels / p->groups) * p->taps, 1, &s);
  out->bias = get(out, channels, sizeof *out->bias, &s);
  if (out->ones) out->w_zero = get(out, channels, sizeof *out->w_zero, &s);
  if (p->rounds) out->scale = get(out, channels, sizeof *out->scale, &s);
  if (!later) out->add = get(out, out->rows * out->cols * channels, sizeof *out->add, &s);
  reach *rows = get(out, out->rows, sizeof *rows, &s), *cols = get(out, out->cols, sizeof *cols, &s);
  int32_t *taps = get(out, p->taps, sizeof *taps, &s);
  if (s == HEDDLE_OK) {
    fill_channels(p, out, shift);
    if (sums) {
      reaches(p, 1, out->row_class, rows);
      reaches(p, 2, out->col_class, cols);
      fill_sums(p, out, rows, cols, taps);
    }
    if (!later) int8_weights_add(out, out->x_zero, out->add);
  }
  host->free(host->ctx, taps);
  host->free(host->ctx, cols);
  host->free(host->ctx, rows);
  if (s == HEDDLE_OK) return s;
  int8_weights_free(out);
  return p_fail(err, s, 0, "cpu:0: no memory for the weights of a quantised product");
}

void int8_weights_free(int8_weights *w) {
  if (w->host == NULL) return;
  void *const all[] = {w->row_class, w->col_class, w->add, w->sums, w->bias, w->w_zero, w->scale, w->bytes};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) w->host->free(w->host->ctx, all[i]);
  w->host = NULL;
}
