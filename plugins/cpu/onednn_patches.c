/* Regions of one Conv and what is computed on its result, of images whose size changes (onednn_patches.h). A unit is
 * a block of positions of one image (or of a group of its channels), and some channels of the result. Where a channel
 * of the result comes from one of the image, a unit is a plane. */
#include "cpu.h"
#include "onednn_patches.h"
#include "onednn_special.h"

enum {
  LEAST_CHANNELS = 16,
  UNITS_EACH = 4 /* units a thread is to have */
};

/* The other operand of a post-operation: elements from image to image and from channel to channel; step 1 where
 * there is one for each position, 0 where there is one for all. */
typedef struct operand {
  uint32_t slot;
  int step;
  int64_t image, channel;
} operand;

/* All that depends on the shapes. */
typedef struct shape {
  ref_op plain; /* of the Conv; its slots are 0, 1, 2 */
  bool by_planes;
  uint32_t n_posts, tasks;
  uint32_t x, weights, bias;  /* slots; UINT32_MAX: there is no bias */
  int64_t across, down, each; /* blocks of an image; pieces of a group's channels, and channels of a piece */
  uint64_t scratch;           /* bytes of a task */
  onednn_post posts[ONEDNN_POSTS];
  operand operands[ONEDNN_POSTS];
} shape;

typedef struct patches_op {
  onednn_special special;
  onednn *self;
  const patches_kernels *kernels;
  shape bound;
} patches_op;

typedef struct patches_launch {
  onednn_special_launch special;
  const patches_op *op;
  shape now;
  const float *x, *weights, *bias;
  const float *others[ONEDNN_POSTS];
  float *out;
  char *workspace;
  bool skipped[ONEDNN_TASKS];
} patches_launch;

/* ---------------------------------------------------------------- reading */

/* false: it is neither repeated over all positions nor of as many as the result has. */
static bool read_operand(const onednn_chain *chain, const onednn_post *post, operand *out) {
  int64_t strides[DNNL_MAX_NDIMS];
  const heddle_pvalue *value = region_value(chain->region, post->value), *result = chain->out;
  if (value == NULL || !region_shape_broadcast_strides(value, result, strides)) return false;
  bool dense = true, single = true;
  int64_t stride = 1;
  for (int32_t d = result->ndim - 1; d >= 2; d--) {
    if (result->shape[d] != 1) {
      dense = dense && strides[d] == stride;
      single = single && strides[d] == 0;
    }
    stride *= result->shape[d];
  }
  *out = (operand){(uint32_t)region_input_slot(chain->region, post->value), single ? 0 : 1, strides[0], strides[1]};
  return single || dense;
}

static uint32_t tasks_for(const onednn *self, double work_ns) {
  const uint32_t parts = onednn_parts_for(self, work_ns), threads = self->host->parallelism(self->host->ctx);
  const uint32_t tasks = parts < threads ? parts : threads;
  return tasks > ONEDNN_TASKS ? ONEDNN_TASKS : tasks > 0 ? tasks : 1;
}

static double work_of(const shape *s) {
  const double NS_PER_PRODUCT = 0.03;
  const ref_conv *c = &s->plain.u.conv;
  const double results =
      (double)(c->images * c->groups * c->out_channels) * (double)ref_product(c->window.out, REF_SPATIAL);
  return s->by_planes ? s->plain.cost_ns
                      : 600 + NS_PER_PRODUCT * results * (double)c->in_channels *
                                  (double)ref_product(c->window.kernel, REF_SPATIAL);
}

/* Pure, and without memory of its own: it is what a launch is resized by. */
static bool read_shape(const onednn *self, const heddle_pregion *region, shape *s) {
  onednn_chain chain;
  memset(s, 0, sizeof *s);
  if (!onednn_chain_read(region, &chain)) return false;
  const ref_conv *c = &chain.op.u.conv;
  const ref_window *w = &c->window;
  const heddle_pnode *node = chain.node.node;
  if (c->out_channels < 1 || c->in_channels < 1) return false;
  s->plain = chain.op;
  s->plain.host = self->host;
  s->n_posts = chain.n_posts;
  memcpy(s->posts, chain.posts, sizeof s->posts);
  s->x = (uint32_t)region_input_slot(region, node->inputs[0]);
  s->weights = (uint32_t)region_input_slot(region, node->inputs[1]);
  s->bias = chain.node.in[2] != NULL ? (uint32_t)region_input_slot(region, node->inputs[2]) : UINT32_MAX;
  for (uint32_t i = 0; i < 3; i++) s->plain.slot[i] = i;
  for (uint32_t i = 0; i < s->n_posts; i++)
    if (!patches_has_post(&s->posts[i]) ||
        (s->posts[i].value >= 0 && !read_operand(&chain, &s->posts[i], &s->operands[i])))
      return false;
  s->by_planes = patches_is_planar(c);
  s->scratch = (patches_scratch(c) + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
  s->across = (ref_product(w->out, REF_SPATIAL) + PATCHES_BLOCK - 1) / PATCHES_BLOCK;
  s->tasks = tasks_for(self, work_of(s));
  const int64_t blocks = c->images * c->groups * s->across;
  const int64_t wanted = s->tasks > 1 ? (int64_t)s->tasks * UNITS_EACH : 1;
  int64_t down = (wanted + blocks - 1) / blocks;
  if (down > c->out_channels / LEAST_CHANNELS) down = c->out_channels / LEAST_CHANNELS;
  if (down < 1) down = 1;
  s->each = (c->out_channels + down - 1) / down;
  s->each = (s->each + PATCHES_ROWS - 1) / PATCHES_ROWS * PATCHES_ROWS;
  s->down = (c->out_channels + s->each - 1) / s->each;
  return true;
}

static bool is_one(const onednn *self, const heddle_pregion *region) {
  const heddle_pnode *node = region_node(region, 0);
  return self != NULL && self->mode == ONEDNN_AUTO && (region->flags & HEDDLE_REGION_OPEN) != 0 &&
         !(self->bf16 && (region->flags & HEDDLE_REGION_FAST) != 0) && region->n_inputs <= ONEDNN_INPUTS &&
         node != NULL && node->op != NULL && strcmp(node->op, "Conv") == 0 &&
         (node->domain == NULL || node->domain[0] == '\0');
}

/* Which inputs are read when a launch runs; false where one is not that has no bytes. */
static bool read_flags(const heddle_pregion *region, const shape *s, uint32_t flags[ONEDNN_INPUTS]) {
  for (uint32_t i = 0; i < region->n_inputs; i++) {
    bool used = i == s->x || i == s->weights || i == s->bias;
    for (uint32_t k = 0; k < s->n_posts; k++) used = used || (s->posts[k].value >= 0 && s->operands[k].slot == i);
    flags[i] = used ? 0 : HEDDLE_INPUT_ABSORBED;
    if (!used && region_value(region, region->inputs[i])->data == NULL) return false;
  }
  return true;
}

static bool read_all(const onednn *self, const heddle_pregion *region, patches_op *op, uint32_t flags[ONEDNN_INPUTS]) {
  if (!is_one(self, region)) return false;
  op->kernels = patches_find();
  return op->kernels != NULL && read_shape(self, region, &op->bound) && read_flags(region, &op->bound, flags);
}

heddle_status patches_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                            uint32_t *made, bool *only, heddle_error *err) {
  patches_op op;
  uint32_t flags[ONEDNN_INPUTS];
  if (!read_all(self, region, &op, flags)) return HEDDLE_OK;
  const heddle_poffer answer = {.struct_size = sizeof answer,
                                .flags = HEDDLE_OFFER_RESIZES,
                                .input_flags = flags,
                                .workspace_bytes = op.bound.tasks * op.bound.scratch,
                                .workspace_align = CPU_ALIGNMENT,
                                .cost_ns = work_of(&op.bound) / op.bound.tasks};
  *made = 1;
  *only = true;
  return offer(sink, &answer, err);
}

/* ---------------------------------------------------------------- a unit */

/* Positions [at, at + count) of a channel of an image. */
static void finish(const patches_launch *launch, int64_t image, int64_t channel, int64_t at, int64_t count,
                   float *out) {
  for (uint32_t i = 0; i < launch->now.n_posts; i++) {
    const operand *o = &launch->now.operands[i];
    const float *other = launch->others[i];
    if (other != NULL) other += image * o->image + channel * o->channel + (o->step != 0 ? at : 0);
    launch->op->kernels->post(&launch->now.posts[i], out, other, o->step, count);
  }
}

static void run_unit(const patches_launch *launch, int64_t unit, float *block) {
  const shape *s = &launch->now;
  const ref_conv *c = &s->plain.u.conv;
  const ref_window *w = &c->window;
  const int64_t positions = ref_product(w->out, REF_SPATIAL), size = ref_product(w->in, REF_SPATIAL);
  const int64_t depth = c->in_channels * ref_product(w->kernel, REF_SPATIAL);
  const int64_t group = unit / s->across / s->down; /* of all images */
  const int64_t at = unit % s->across * PATCHES_BLOCK, begin = unit / s->across % s->down * s->each;
  const int64_t end = begin + s->each < c->out_channels ? begin + s->each : c->out_channels;
  const int64_t count = positions - at < PATCHES_BLOCK ? positions - at : PATCHES_BLOCK;
  const int64_t channel = group % c->groups * c->out_channels;
  float *out = launch->out + group * c->out_channels * positions;
  patches_sum(launch->op->kernels, c, launch->x + group * c->in_channels * size, launch->weights + channel * depth,
              launch->bias != NULL ? launch->bias + channel : NULL, at, count, begin, end, out, block);
  for (int64_t r = begin; r < end && s->n_posts > 0; r++)
    finish(launch, group / c->groups, channel + r, at, count, out + r * positions + at);
}

static void run_plane(const patches_launch *launch, int64_t unit, float *scratch) {
  const ref_conv *c = &launch->now.plain.u.conv;
  const ref_window *w = &c->window;
  const int64_t size = ref_product(w->in, REF_SPATIAL), positions = ref_product(w->out, REF_SPATIAL);
  const int64_t channels = c->groups * c->out_channels, channel = unit % channels;
  float *out = launch->out + unit * positions;
  patches_one_plane(launch->op->kernels, c, launch->x + unit / c->out_channels * size,
                    launch->weights + channel * w->kernel[1] * w->kernel[2],
                    launch->bias != NULL ? launch->bias[channel] : 0, out, scratch);
  if (launch->now.n_posts > 0) finish(launch, unit / channels, channel, 0, positions, out);
}

static void run_task(void *arg, uint32_t i, uint32_t n) {
  patches_launch *launch = arg;
  const shape *s = &launch->now;
  const ref_conv *c = &s->plain.u.conv;
  const int64_t units =
      s->by_planes ? c->images * c->groups * c->out_channels : c->images * c->groups * s->across * s->down;
  const int64_t begin = units * i / n, end = units * (i + 1) / n;
  float *scratch = (float *)(void *)(launch->workspace + i * launch->op->bound.scratch);
  for (int64_t unit = begin; unit < end && !launch->skipped[i]; unit++) {
    launch->skipped[i] = unit > begin && onednn_stops(launch->op->self);
    if (launch->skipped[i]) return;
    if (s->by_planes) run_plane(launch, unit, scratch);
    else run_unit(launch, unit, scratch);
  }
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  patches_launch *launch = (patches_launch *)special;
  const heddle_host *host = launch->op->self->host;
  const uint32_t tasks = launch->now.tasks;
  memset(launch->skipped, 0, sizeof launch->skipped);
  if (tasks > 1) host->run_parallel(host->ctx, tasks, 0, run_task, launch, NULL);
  else run_task(launch, 0, 1);
  for (uint32_t i = 0; i < tasks; i++)
    if (launch->skipped[i]) return onednn_stopped(launch->op->self, err);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- operators and launches */

static void free_op(onednn_special *special) {
  const heddle_host *host = ((patches_op *)special)->self->host;
  host->free(host->ctx, special);
}

static void free_launch(onednn_special_launch *special) {
  const heddle_host *host = ((patches_launch *)special)->op->self->host;
  host->free(host->ctx, special);
}

static void set_operands(patches_launch *launch, void *const *inputs, void *const *outputs) {
  const shape *s = &launch->now;
  launch->x = inputs[s->x];
  launch->weights = inputs[s->weights];
  launch->bias = s->bias != UINT32_MAX ? inputs[s->bias] : NULL;
  for (uint32_t i = 0; i < s->n_posts; i++)
    launch->others[i] = s->posts[i].value >= 0 ? inputs[s->operands[i].slot] : NULL;
  launch->out = outputs[0];
}

/* The same but for the images' number and size. */
static bool is_size_of(const shape *s, const shape *bound) {
  const ref_conv *a = &s->plain.u.conv, *b = &bound->plain.u.conv;
  const size_t bytes = sizeof a->window.kernel;
  return a->groups == b->groups && a->in_channels == b->in_channels && a->out_channels == b->out_channels &&
         memcmp(a->window.kernel, b->window.kernel, bytes) == 0 && s->x == bound->x && s->weights == bound->weights &&
         s->bias == bound->bias && s->n_posts == bound->n_posts && s->by_planes == bound->by_planes &&
         s->scratch <= bound->scratch;
}

static heddle_status resize(onednn_special_launch *special, const heddle_pregion *region, void *const *inputs,
                            void *const *outputs, heddle_error *err) {
  patches_launch *launch = (patches_launch *)special;
  const patches_op *op = launch->op;
  shape now;
  if (!read_shape(op->self, region, &now) || !is_size_of(&now, &op->bound))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu: these shapes differ in more than the size of images");
  if (now.tasks > op->bound.tasks) now.tasks = op->bound.tasks;
  launch->now = now;
  set_operands(launch, inputs, outputs);
  return HEDDLE_OK;
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  patches_op *op = (patches_op *)special;
  const heddle_host *host = op->self->host;
  patches_launch *launch = host->alloc(host->ctx, sizeof *launch, _Alignof(patches_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, sizeof *launch);
  launch->special = (onednn_special_launch){.free = free_launch, .run = run, .resize = resize};
  launch->op = op;
  launch->now = op->bound;
  launch->workspace = workspace;
  set_operands(launch, inputs, outputs);
  *out = &launch->special;
  return HEDDLE_OK;
}

heddle_status patches_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                              onednn_special **out, uint32_t *made, heddle_error *err) {
  uint32_t flags[ONEDNN_INPUTS];
  patches_op read;
  if (!read_all(self, region, &read, flags)) return HEDDLE_OK;
  *made = 1;
  if (offer > 0) return HEDDLE_OK;
  patches_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(patches_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op = read;
  op->self = self;
  op->special = (onednn_special){
      .workspace = op->bound.tasks * op->bound.scratch, .free = free_op, .bind = bind, .resizes = true};
  for (uint32_t i = 0; i < region->n_inputs + region->n_outputs; i++) {
    const bool in = i < region->n_inputs;
    uint64_t bytes = 0;
    region_value_bytes(region_value(region, in ? region->inputs[i] : region->outputs[i - region->n_inputs]), &bytes);
    operands[i] = in && flags[i] != 0 ? (cpu_operand){0, 1} : (cpu_operand){bytes, sizeof(float)};
  }
  *out = &op->special;
  return HEDDLE_OK;
}
