/* See onednn_images.h. Where there are as many images as threads, each thread has a launch of its own and takes some images;
 * else they go one after another through all threads. */
#include "onednn_images.h"

#include "cpu.h"
#include "onednn_special.h"

/* ---------------------------------------------------------------- which regions */

static const char *const heads[] = {"Conv", "ConvTranspose"};

/* Taken in layouts alone, as elementwise nodes are: row-major, the plain kernels do as well and take all images at once. */
static const char *const between[] = {
    "Reorder", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization", "Concat"};

static bool is_among(const char *op, const char *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(op, list[i]) == 0) return true;
  return false;
}

static bool is_head(const heddle_pnode *node) {
  return is_among(node->op, heads, sizeof heads / sizeof heads[0]);
}

static bool is_between(const heddle_pregion *region, const heddle_pnode *node) {
  onednn_post unused;
  return is_among(node->op, between, sizeof between / sizeof between[0]) ||
         (node->n_inputs > 0 && onednn_read_post(region, node, node->inputs[0], &unused));
}

static uint32_t open_dims(const heddle_pvalue *value) {
  return HEDDLE_HAS(heddle_pvalue, value, open_dims) ? value->open_dims : 0;
}

/* The number of images at the bound; 0 where the region is none of these. */
static int64_t count_images(const onednn *self, const heddle_pregion *region) {
  const heddle_pnode *node = region_node(region, 0);
  if (self == NULL || (region->flags & HEDDLE_REGION_OPEN) == 0 || node == NULL || node->op == NULL ||
      region->n_outputs != 1 || region->n_inputs > ONEDNN_INPUTS || (!is_head(node) && !is_between(region, node)))
    return 0;
  const heddle_pvalue *out = region_value(region, region->outputs[0]);
  if (out == NULL || out->ndim < 3 || out->ndim > DNNL_MAX_NDIMS || open_dims(out) != 1) return 0;
  for (uint64_t i = 0; i < region->values.count; i++) {
    const heddle_pvalue *value = region_value(region, (int64_t)i);
    const uint32_t open = open_dims(value);
    if (value->ndim > DNNL_MAX_NDIMS || open > 1) return 0;
    if (open == 1 && (value->ndim != out->ndim || value->shape[0] != out->shape[0] || value->data != NULL)) return 0;
  }
  int64_t axis = 1;
  if (strcmp(node->op, "Concat") == 0 &&
      (region_attr_int(node, "axis", 0, &axis, NULL) != HEDDLE_OK || axis == 0 || axis == -out->ndim))
    return 0;
  return out->shape[0];
}

/* ---------------------------------------------------------------- the region of one image */

typedef struct one_image {
  heddle_pregion region;
  void *memory;
} one_image;

static heddle_status make_one(const onednn *self, const heddle_pregion *region, one_image *out, heddle_error *err) {
  const heddle_host *host = self->host;
  const uint64_t n = region->values.count;
  const uint64_t bytes = n * (sizeof(heddle_pvalue) + DNNL_MAX_NDIMS * sizeof(int64_t));
  out->memory = host->alloc(host->ctx, bytes, _Alignof(heddle_pvalue));
  if (out->memory == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a region");
  heddle_pvalue *values = out->memory;
  int64_t *shapes = (int64_t *)(void *)(values + n);
  for (uint64_t i = 0; i < n; i++) {
    const heddle_pvalue *from = region_value(region, (int64_t)i);
    const size_t known = from->struct_size < sizeof values[i] ? from->struct_size : sizeof values[i];
    memset(&values[i], 0, sizeof values[i]);
    memcpy(&values[i], from, known);
    values[i].struct_size = sizeof values[i];
    if (open_dims(from) == 0) continue;
    int64_t *shape = shapes + i * DNNL_MAX_NDIMS;
    memcpy(shape, from->shape, (size_t)from->ndim * sizeof *shape);
    shape[0] = 1;
    values[i].shape = shape;
    values[i].open_dims = 0;
  }
  out->region = *region;
  out->region.flags &= ~HEDDLE_REGION_OPEN;
  out->region.values = (heddle_parray){values, n, sizeof *values};
  return HEDDLE_OK;
}

static void free_one(const onednn *self, one_image *one) {
  self->host->free(self->host->ctx, one->memory);
}

/* Bytes from one image to the next in a layout; 0 where they do not lie one after another. */
static uint64_t image_bytes(const onednn *self, const heddle_pvalue *value, heddle_layout layout) {
  dnnl_memory_desc_t md = NULL;
  onednn_view view;
  uint64_t bytes = 0;
  if (layout == 0 ? !onednn_view_of(value, 0, false, &view)
                  : !onednn_view_from_token(self, value, layout, &view) || view.groups != 0 || view.swapped)
    return 0;
  if (onednn_slice(self, &view, layout, 0, 1, 1, &md, &bytes) != dnnl_success) return 0;
  if (dnnl_memory_desc_get_size(md) != bytes) bytes = 0;
  dnnl_memory_desc_destroy(md);
  return bytes;
}

/* ---------------------------------------------------------------- offers */

static uint32_t copies_for(const onednn *self, int64_t images) {
  const uint32_t threads = self->host->parallelism(self->host->ctx);
  const uint32_t most = threads > ONEDNN_TASKS ? ONEDNN_TASKS : threads > 0 ? threads : 1;
  return images < most ? (uint32_t)images : most;
}

static uint64_t padded(uint64_t bytes) {
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

/* Offers go on up to the first that cannot be taken, so that their numbers are those of one image's. */
typedef struct passing {
  const onednn *self;
  const heddle_pregion *region; /* of all images */
  heddle_offer_fn offer;        /* NULL: they are counted */
  void *sink;
  int64_t images;
  uint32_t made;
  bool over;
} passing;

static bool can_take(const passing *p, const heddle_poffer *o) {
  const heddle_pregion *r = p->region;
  bool is_laid = false;
  for (uint32_t i = 0; i < r->n_inputs + r->n_outputs; i++) {
    const bool in = i < r->n_inputs;
    const heddle_pvalue *value = region_value(r, in ? r->inputs[i] : r->outputs[i - r->n_inputs]);
    const heddle_layout layout = in ? o->input_layouts[i] : o->output_layouts[i - r->n_inputs];
    if (open_dims(value) == 0) continue;
    if (image_bytes(p->self, value, layout) == 0) return false;
    is_laid = is_laid || layout != 0;
  }
  return is_laid || is_head(region_node(r, 0));
}

static heddle_status pass(void *ctx, const heddle_poffer *theirs, heddle_error *err) {
  passing *p = ctx;
  p->over = p->over || !can_take(p, theirs);
  if (p->over) return HEDDLE_OK;
  p->made++;
  if (p->offer == NULL) return HEDDLE_OK;
  heddle_poffer mine = *theirs;
  mine.flags |= HEDDLE_OFFER_RESIZES;
  mine.workspace_bytes = copies_for(p->self, p->images) * padded(theirs->workspace_bytes);
  mine.cost_ns = theirs->cost_ns * (double)p->images;
  return p->offer(p->sink, &mine, err);
}

static heddle_status offer_all(passing *p, const heddle_pregion *one, bool *only, heddle_error *err) {
  uint32_t unused;
  return onednn_query(p->self, one, pass, p, &unused, only, err);
}

heddle_status images_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                           uint32_t *made, bool *only, heddle_error *err) {
  passing p = {.self = self, .region = region, .offer = offer, .sink = sink, .images = count_images(self, region)};
  one_image one;
  bool inner = false;
  if (p.images < 2) return HEDDLE_OK;
  heddle_status s = make_one(self, region, &one, err);
  if (s != HEDDLE_OK) return s;
  s = offer_all(&p, &one.region, &inner, err);
  free_one(self, &one);
  if (s == HEDDLE_EUNSUPPORTED) s = HEDDLE_OK; /* it is asked about as a whole */
  *made = p.made;
  *only = p.made > 0 && inner;
  return s;
}

/* ---------------------------------------------------------------- operators */

typedef struct side {
  uint64_t bytes; /* of an image; 0: it is the same for all */
  int32_t ndim;
  bool is_open;
  int64_t shape[DNNL_MAX_NDIMS];
} side;

/* sides: of the inputs, then of the outputs. */
typedef struct images_op {
  onednn_special special;
  onednn *self;
  onednn_op *one;
  int64_t images; /* at the bound */
  uint32_t copies, n_inputs, n_outputs, reserved;
  uint64_t each; /* bytes of scratch memory of a copy */
  side sides[ONEDNN_INPUTS + 1];
} images_op;

/* What a thread runs images with. */
typedef struct copy {
  onednn_launch *launch;
  heddle_status status; /* of the last run */
  bool skipped;         /* in it, since it was to end */
  heddle_error error;
} copy;

typedef struct images_launch {
  onednn_special_launch special;
  const images_op *op;
  int64_t images;
  void *inputs[ONEDNN_INPUTS], *outputs[1];
  copy copies[];
} images_launch;

static void free_op(onednn_special *special) {
  images_op *op = (images_op *)special;
  const heddle_host *host = op->self->host;
  onednn_op_free(op->one);
  host->free(host->ctx, op);
}

static uint64_t each_of(const onednn_special *special, uint32_t operand) {
  return ((const images_op *)special)->sides[operand].bytes;
}

static void free_launch(onednn_special_launch *special) {
  images_launch *launch = (images_launch *)special;
  const heddle_host *host = launch->op->self->host;
  for (uint32_t i = 0; i < launch->op->copies; i++) onednn_launch_free(launch->copies[i].launch);
  host->free(host->ctx, launch);
}

static heddle_status run_image(const images_launch *launch, copy *own, int64_t image) {
  const images_op *op = launch->op;
  void *inputs[ONEDNN_INPUTS], *outputs[1];
  for (uint32_t i = 0; i < op->n_inputs; i++)
    inputs[i] =
        op->sides[i].bytes == 0 ? launch->inputs[i] : (char *)launch->inputs[i] + (uint64_t)image * op->sides[i].bytes;
  outputs[0] = (char *)launch->outputs[0] + (uint64_t)image * op->sides[op->n_inputs].bytes;
  const heddle_status s = onednn_move(own->launch, inputs, outputs, &own->error);
  return s == HEDDLE_OK ? onednn_run(own->launch, &own->error) : s;
}

static void run_task(void *arg, uint32_t i, uint32_t n) {
  images_launch *launch = arg;
  copy *own = &launch->copies[i];
  const int64_t begin = launch->images * i / n, end = launch->images * (i + 1) / n;
  for (int64_t image = begin; image < end && own->status == HEDDLE_OK; image++) {
    own->skipped = image > begin && onednn_stops(launch->op->self);
    if (own->skipped) return;
    own->status = run_image(launch, own, image);
  }
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  enum { EVEN = 4 }; /* images a thread, from which on it does not matter that some have one more */
  images_launch *launch = (images_launch *)special;
  const images_op *op = launch->op;
  const heddle_host *host = op->self->host;
  const int64_t threads = op->copies;
  const bool each = threads > 1 && (launch->images % threads == 0 || launch->images >= EVEN * threads);
  const uint32_t tasks = each ? op->copies : 1;
  for (uint32_t i = 0; i < tasks; i++) {
    launch->copies[i].status = HEDDLE_OK;
    launch->copies[i].skipped = false;
  }
  if (each) host->run_parallel(host->ctx, tasks, 0, run_task, launch, NULL);
  else run_task(launch, 0, 1);
  for (uint32_t i = 0; i < tasks; i++) {
    const copy *own = &launch->copies[i];
    if (own->status != HEDDLE_OK) {
      if (err != NULL) *err = own->error;
      return own->status;
    }
    if (own->skipped) return onednn_stopped(op->self, err);
  }
  return HEDDLE_OK;
}

/* The number of images of a region; 0 where it differs from the op's in more. */
static int64_t count_now(const images_op *op, const heddle_pregion *region) {
  const heddle_pvalue *out = region_value(region, region->outputs[0]);
  const int64_t images = out->ndim > 0 ? out->shape[0] : 0;
  for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    const bool in = i < op->n_inputs;
    const heddle_pvalue *value = region_value(region, in ? region->inputs[i] : region->outputs[i - op->n_inputs]);
    const side *s = &op->sides[i];
    if (value->ndim != s->ndim) return 0;
    for (int32_t d = 0; d < s->ndim; d++)
      if (value->shape[d] != (d == 0 && s->is_open ? images : s->shape[d])) return 0;
  }
  return images <= op->images ? images : 0;
}

static heddle_status resize(onednn_special_launch *special, const heddle_pregion *region, void *const *inputs,
                            void *const *outputs, heddle_error *err) {
  images_launch *launch = (images_launch *)special;
  const int64_t images = count_now(launch->op, region);
  if (images < 1) return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu: these shapes differ in more than their number");
  launch->images = images;
  memcpy(launch->inputs, inputs, launch->op->n_inputs * sizeof *inputs);
  launch->outputs[0] = outputs[0];
  return HEDDLE_OK;
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  images_op *op = (images_op *)special;
  const heddle_host *host = op->self->host;
  const size_t bytes = sizeof(images_launch) + op->copies * sizeof(copy);
  images_launch *launch = host->alloc(host->ctx, bytes, _Alignof(images_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->special = (onednn_special_launch){.free = free_launch, .run = run, .resize = resize};
  launch->op = op;
  launch->images = op->images;
  memcpy(launch->inputs, inputs, op->n_inputs * sizeof *inputs);
  launch->outputs[0] = outputs[0];
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; i < op->copies && s == HEDDLE_OK; i++) {
    char *scratch = op->each > 0 ? (char *)workspace + i * op->each : NULL;
    s = onednn_bind(op->one, inputs, outputs, scratch, &launch->copies[i].launch, err);
  }
  if (s == HEDDLE_OK) *out = &launch->special;
  else free_launch(&launch->special);
  return s;
}

/* What is read of the region, and what each operand needs, of which operands says what one image does. */
static void describe(images_op *op, const heddle_pregion *region, cpu_operand *operands) {
  op->n_inputs = region->n_inputs;
  op->n_outputs = region->n_outputs;
  for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    const bool in = i < op->n_inputs;
    const heddle_pvalue *value = region_value(region, in ? region->inputs[i] : region->outputs[i - op->n_inputs]);
    side *s = &op->sides[i];
    s->ndim = value->ndim;
    s->is_open = open_dims(value) != 0;
    if (value->ndim > 0) memcpy(s->shape, value->shape, (size_t)value->ndim * sizeof *s->shape);
    if (!s->is_open || operands[i].bytes == 0) continue;
    s->bytes = image_bytes(op->self, value, value->layout);
    operands[i].bytes = s->bytes * (uint64_t)op->images;
  }
}

static heddle_status hold(onednn *self, const heddle_pregion *region, int64_t images, onednn_op *one,
                          cpu_operand *operands, onednn_op **out, heddle_error *err) {
  images_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(images_op));
  if (op == NULL) {
    onednn_op_free(one);
    return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  }
  memset(op, 0, sizeof *op);
  op->self = self;
  op->one = one;
  op->images = images;
  op->copies = copies_for(self, images);
  op->each = padded(onednn_workspace(one));
  op->special = (onednn_special){
      .workspace = op->copies * op->each, .free = free_op, .bind = bind, .resizes = true, .each = each_of};
  describe(op, region, operands);
  return onednn_op_hold(self, &op->special, out, err);
}

heddle_status images_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                             onednn_op **out, uint32_t *made, heddle_error *err) {
  passing p = {.self = self, .region = region, .images = count_images(self, region)};
  one_image one;
  onednn_op *op = NULL;
  bool unused;
  if (p.images < 2) return HEDDLE_OK;
  heddle_status s = make_one(self, region, &one, err);
  if (s != HEDDLE_OK) return s;
  s = offer_all(&p, &one.region, &unused, err);
  *made = p.made;
  if (s == HEDDLE_EUNSUPPORTED) s = HEDDLE_OK;
  if (s == HEDDLE_OK && offer < p.made) {
    uint32_t all;
    s = onednn_prepare(self, &one.region, offer, operands, &op, &all, err);
    if (s == HEDDLE_OK && op == NULL)
      s = p_fail(err, HEDDLE_EINTERNAL, 0, "cpu: offer %u of an image is missing", offer);
  }
  if (s == HEDDLE_OK && op != NULL) s = hold(self, region, p.images, op, operands, out, err);
  free_one(self, &one);
  return s;
}
