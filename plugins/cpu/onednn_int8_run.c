/* Quantised regions in the run. A launch has memory objects of oneDNN for each task and kind of block; the input's address
 * is set for each block. */
#include "onednn_int8_op.h"

#include "cpu.h"

/* Of a task: the arguments of each kind. */
typedef struct task {
  dnnl_stream_t stream;
  dnnl_memory_t src[INT8_KINDS], dst[INT8_KINDS], scratch[INT8_KINDS], piece[INT8_KINDS];
  dnnl_status_t status;
  bool skipped;        /* work, since the run was to end */
  int32_t *acc, *more; /* more: of a further piece */
  int16_t *room;       /* scratch memory of pairs */
} task;

typedef struct onednn_int8_launch {
  onednn_special_launch special;
  const onednn_int8 *op;
  const char *in[2];
  char *out;
  const void *zero;
  const float *times, *plus; /* of a real product */
  float *factors;            /* one a channel, where times is one number */
  int32_t *table;
  task tasks[];
} onednn_int8_launch;

/* ---------------------------------------------------------------- running */

/* Sums to results: runs of places in a row that have the same numbers to add. */
static void finish_block(const onednn_int8_launch *launch, const task *t, const int8_block *block) {
  const onednn_int8 *op = launch->op;
  const int8_weights *w = &op->weights;
  const int8_product *p = &op->read.u.product;
  const int8_kind *kind = &op->plan.kinds[block->kind];
  const int64_t cols = p->window.out[2], rows = p->window.out[1], first = block->first_channel;
  const bool scatter = !p->rounds && !p->matmul;
  const float *scale = p->real && p->times_one ? launch->factors : p->real ? launch->times : w->scale;
  const int8_round r = {.scale = scale != NULL ? scale + first : NULL,
                        .bias = launch->plus != NULL ? launch->plus + first : NULL,
                        .real = p->real,
                        .w_zero = w->w_zero != NULL ? w->w_zero + first : NULL,
                        .least = (float)(p->y_least - p->y_zero),
                        .most = (float)(p->y_most - p->y_zero),
                        .zero = p->y_zero,
                        .channels = kind->channels,
                        .acc_step = kind->channels + w->ones,
                        .out_step = scatter ? kind->channels + w->ones : p->out_channels};
  int32_t *acc = t->acc;
  for (int64_t i = 0; i < kind->rows; i++) {
    const int64_t row = block->row + i, at = (block->image * rows + row) * cols;
    for (int64_t col = 0, run; col < cols; col += run, acc += run * r.acc_step) {
      const int64_t place = w->row_class[row] * w->cols + w->col_class[col];
      for (run = 1; col + run < cols && w->col_class[col + run] == w->col_class[col];) run++;
      const int32_t *add = launch->table + place * p->out_channels + first;
      char *out = launch->out + ((at + col) * p->out_channels + first) * (p->rounds ? 1 : 4);
      op->lanes->round(&r, acc, add, scatter ? (void *)acc : (void *)out, run);
      if (!scatter) continue;
      int32_t *to = (int32_t *)(void *)launch->out;
      for (int64_t c = 0; c < kind->channels; c++)
        for (int64_t k = 0; k < run; k++)
          to[((block->image * p->out_channels + first + c) * rows + row) * cols + col + k] = acc[k * r.acc_step + c];
    }
  }
}

/* int32 wraps as the reference's sums do. */
static void add_piece(const onednn_int8 *op, const task *t, const int8_kind *kind) {
  const int64_t n = kind->rows * op->read.u.product.window.out[2] * (kind->channels + op->weights.ones);
  uint32_t *to = (uint32_t *)(void *)t->acc;
  const uint32_t *from = (const uint32_t *)(const void *)t->more;
  for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static dnnl_status_t run_block(onednn_int8_launch *launch, task *t, int64_t number) {
  const onednn_int8 *op = launch->op;
  const int8_product *p = &op->read.u.product;
  const int8_block block = int8_plan_block(&op->plan, number);
  const int64_t row_bytes = p->window.in[2] * p->in_channels;
  const char *src = launch->in[0] + (block.image * p->window.in[1] + block.in_row) * row_bytes;
  if (op->plan.pairs) {
    const int8_kind *kind = &op->plan.kinds[block.kind];
    int8_pairs_run(p, kind, kind->channels + op->plan.ones, op->x_signed, src, op->packed_bytes[block.group], t->room,
                   t->acc);
    finish_block(launch, t, &block);
    return dnnl_success;
  }
  dnnl_status_t s = dnnl_memory_set_data_handle(t->src[block.kind], (void *)(uintptr_t)src);
  for (uint32_t i = 0; i < op->plan.pieces && s == dnnl_success; i++) {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, t->src[block.kind]},
                                    {DNNL_ARG_WEIGHTS, op->packed[i * op->plan.groups + block.group]},
                                    {DNNL_ARG_DST, i == 0 ? t->dst[block.kind] : t->piece[block.kind]},
                                    {DNNL_ARG_SCRATCHPAD, t->scratch[block.kind]}};
    s = dnnl_primitive_execute(op->primitives[block.kind], t->stream, t->scratch[block.kind] != NULL ? 4 : 3, args);
    if (s == dnnl_success) s = dnnl_stream_wait(t->stream);
    if (s == dnnl_success && i > 0) add_piece(op, t, &op->plan.kinds[block.kind]);
  }
  if (s == dnnl_success) finish_block(launch, t, &block);
  return s;
}

static void run_product(onednn_int8_launch *launch, uint32_t i, uint32_t n) {
  const onednn_int8 *op = launch->op;
  const int before = onednn_threads_enter(op->self);
  for (uint32_t k = i; k < op->tasks; k += n) {
    task *t = &launch->tasks[k];
    const int64_t first = op->plan.blocks * k / op->tasks, last = op->plan.blocks * (k + 1) / op->tasks;
    t->status = dnnl_success;
    for (int64_t b = first; b < last && t->status == dnnl_success && !t->skipped; b++) {
      t->skipped = b > 0 && onednn_stops(op->self);
      if (!t->skipped) t->status = run_block(launch, t, b);
    }
  }
  onednn_threads_leave(op->self, before);
}

/* The elements of a task in pieces, the next of which is [*at, *at + *n); false behind the last, or where the run is to
 * end. */
static bool next_piece(const onednn_int8 *op, task *t, int64_t last, int64_t *at, int64_t *n) {
  const int64_t PIECE = INT64_C(1) << 23;
  if (*n > 0) t->skipped = *at + *n < last && onednn_stops(op->self);
  *at += *n;
  *n = last - *at < PIECE ? last - *at : PIECE;
  return *n > 0 && !t->skipped;
}

static void run_sum(onednn_int8_launch *launch, uint32_t i, uint32_t n) {
  const onednn_int8 *op = launch->op;
  int64_t at = op->count * i / n, many = 0;
  while (next_piece(op, &launch->tasks[i], op->count * (i + 1) / n, &at, &many))
    op->lanes->mix(&op->mix, (const uint8_t *)launch->in[0] + at, (const uint8_t *)launch->in[1] + at,
                   (uint8_t *)launch->out + at, many);
}

static void run_table(onednn_int8_launch *launch, uint32_t i, uint32_t n) {
  const onednn_int8 *op = launch->op;
  int64_t at = op->count * i / n, many = 0;
  while (next_piece(op, &launch->tasks[i], op->count * (i + 1) / n, &at, &many))
    op->lanes->look(op->table, (const uint8_t *)launch->in[0] + at, (uint8_t *)launch->out + at, many);
}

/* Rows of the result of all images; channels lie side by side. */
static void run_pool(onednn_int8_launch *launch, uint32_t part, uint32_t parts) {
  const onednn_int8 *op = launch->op;
  const ref_window *w = &op->read.u.pool.window;
  const int64_t rows = op->images * w->out[1], channels = op->channels;
  const uint8_t flip = op->y_signed ? 128 : 0;
  const int64_t MANY = INT64_C(1) << 24; /* steps between two looks at whether the run is to end */
  for (int64_t r = rows * part / parts; r < rows * (part + 1) / parts; r++) {
    const uint8_t *image = (const uint8_t *)launch->in[0] + r / w->out[1] * w->in[1] * w->in[2] * channels;
    int64_t i0, i1, j0, j1, work = 0;
    ref_window_taps(w, 1, r % w->out[1], r % w->out[1], &i0, &i1);
    for (int64_t col = 0; col < w->out[2]; col++) {
      uint8_t *out = (uint8_t *)launch->out + (r * w->out[2] + col) * channels;
      ref_window_taps(w, 2, col, col, &j0, &j1);
      work += (i1 - i0) * (j1 - j0) * channels;
      if (work > MANY && (work = 0, launch->tasks[part].skipped = onednn_stops(op->self))) return;
      memset(out, flip, (size_t)channels);
      for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++) {
          const int64_t y = r % w->out[1] * w->stride[1] + i * w->dilation[1] - w->pad[1];
          const int64_t x = col * w->stride[2] + j * w->dilation[2] - w->pad[2];
          op->lanes->most(out, image + (y * w->in[2] + x) * channels, flip, channels);
        }
    }
  }
}

static void run_part(void *arg, uint32_t i, uint32_t n) {
  onednn_int8_launch *launch = arg;
  const int8_what what = launch->op->read.what;
  if (what == INT8_PRODUCT) run_product(launch, i, n);
  else if (what == INT8_SUM) run_sum(launch, i, n);
  else if (what == INT8_TABLE) run_table(launch, i, n);
  else run_pool(launch, i, n);
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  onednn_int8_launch *launch = (onednn_int8_launch *)special;
  const onednn_int8 *op = launch->op;
  const heddle_host *host = op->self->host;
  for (uint32_t i = 0; i < op->tasks; i++) launch->tasks[i].skipped = false;
  if (launch->zero != NULL) {
    const int32_t zero = op->x_signed ? *(const int8_t *)launch->zero : *(const uint8_t *)launch->zero;
    int8_weights_add(&op->weights, zero, launch->table);
  }
  for (int64_t c = 0; launch->factors != NULL && c < op->read.u.product.out_channels; c++)
    launch->factors[c] = *launch->times;
  if (op->tasks > 1) host->run_parallel(host->ctx, op->tasks, 0, run_part, launch, NULL);
  else run_part(launch, 0, 1);
  for (uint32_t i = 0; i < op->tasks; i++) {
    if (launch->tasks[i].status != dnnl_success)
      return onednn_fail(launch->tasks[i].status, "running a primitive", err);
    if (launch->tasks[i].skipped) return onednn_stopped(op->self, err);
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- launches */

static dnnl_status_t bind_kind(const onednn_int8 *op, task *t, uint32_t k, char *scratch) {
  const_dnnl_primitive_desc_t pd = op->plan.kinds[k].pd;
  const_dnnl_memory_desc_t wants = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
  dnnl_status_t s = dnnl_memory_create(&t->src[k], dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0),
                                       op->self->engine, DNNL_MEMORY_NONE);
  if (s == dnnl_success)
    s = dnnl_memory_create(&t->dst[k], dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0), op->self->engine,
                           t->acc);
  if (s == dnnl_success && t->more != NULL)
    s = dnnl_memory_create(&t->piece[k], dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0), op->self->engine,
                           t->more);
  if (s == dnnl_success && wants != NULL && dnnl_memory_desc_get_size(wants) > 0)
    s = dnnl_memory_create(&t->scratch[k], wants, op->self->engine, scratch);
  return s;
}

static dnnl_status_t bind_product(onednn_int8_launch *launch, char *workspace) {
  const onednn_int8 *op = launch->op;
  dnnl_status_t s = dnnl_success;
  launch->table = op->plan.table_bytes > 0 ? (int32_t *)(void *)workspace : op->weights.add;
  workspace += op->plan.table_bytes;
  launch->factors = op->plan.times_bytes > 0 ? (float *)(void *)workspace : NULL;
  workspace += op->plan.times_bytes;
  for (uint32_t i = 0; i < op->tasks && s == dnnl_success; i++, workspace += op->plan.each) {
    task *t = &launch->tasks[i];
    t->acc = (int32_t *)(void *)workspace;
    if (op->plan.pieces > 1) t->more = (int32_t *)(void *)(workspace + op->plan.acc_bytes / 2);
    t->room = (int16_t *)(void *)(workspace + op->plan.acc_bytes);
    if (op->plan.pairs) continue;
    s = dnnl_stream_create(&t->stream, op->self->engine, dnnl_stream_default_flags);
    for (uint32_t k = 0; k < op->plan.n_kinds && s == dnnl_success; k++)
      s = bind_kind(op, t, k, workspace + op->plan.acc_bytes);
  }
  return s;
}

static void free_launch(onednn_special_launch *special) {
  onednn_int8_launch *launch = (onednn_int8_launch *)special;
  const onednn_int8 *op = launch->op;
  for (uint32_t i = 0; i < op->tasks; i++) {
    task *t = &launch->tasks[i];
    for (uint32_t k = 0; k < INT8_KINDS; k++) {
      dnnl_memory_t all[] = {t->src[k], t->dst[k], t->scratch[k], t->piece[k]};
      for (int m = 0; m < 4; m++)
        if (all[m] != NULL) dnnl_memory_destroy(all[m]);
    }
    if (t->stream != NULL) dnnl_stream_destroy(t->stream);
  }
  op->self->host->free(op->self->host->ctx, launch);
}

heddle_status onednn_int8_bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                               onednn_special_launch **out, heddle_error *err) {
  const onednn_int8 *op = (const onednn_int8 *)special;
  const heddle_host *host = op->self->host;
  const size_t bytes = sizeof(onednn_int8_launch) + op->tasks * sizeof(task);
  onednn_int8_launch *launch = host->alloc(host->ctx, bytes, _Alignof(onednn_int8_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->special = (onednn_special_launch){.free = free_launch, .run = run};
  launch->op = op;
  for (int k = 0; k < 2; k++) launch->in[k] = op->slots[k] != UINT32_MAX ? inputs[op->slots[k]] : NULL;
  launch->times = op->times_slot != UINT32_MAX ? inputs[op->times_slot] : NULL;
  launch->plus = op->plus_slot != UINT32_MAX ? inputs[op->plus_slot] : NULL;
  launch->zero = op->zero_slot != UINT32_MAX ? inputs[op->zero_slot] : NULL;
  launch->out = outputs[0];
  dnnl_status_t d = op->read.what == INT8_PRODUCT ? bind_product(launch, workspace) : dnnl_success;
  if (d != dnnl_success) {
    free_launch(&launch->special);
    return onednn_fail(d, "binding operands", err);
  }
  *out = &launch->special;
  return HEDDLE_OK;
}
