/* Offers: a plan for each form of a region that works, those with equal layouts once. query and prepare go through the
 * same walk, so that offer number n is the same plan in both. */
#include "cpu.h"
#include "onednn_images.h"
#include "onednn_special.h"

#include <math.h>

/* Estimates in nanoseconds that weigh offers against each other and against the reference kernels'. Those of products
 * are measured, on a CPU with AVX-512, a class of implementations each; others' ratios to each other are much the same. */
#define CALL_NS 600.0
#define NS_PER_BYTE 0.02

static const struct {
  const char *op;
  onednn_build build;
} families[] = {
    {"Conv", onednn_build_conv},
    {"ConvTranspose", onednn_build_conv},
    {"MatMul", onednn_build_matmul},
    {"Gemm", onednn_build_matmul},
    {"MaxPool", onednn_build_pool},
    {"AveragePool", onednn_build_pool},
    {"GlobalAveragePool", onednn_build_pool},
    {"GlobalMaxPool", onednn_build_pool},
    {"BatchNormalization", onednn_build_batch_norm},
    {"Concat", onednn_build_concat},
    {"LayerNormalization", onednn_build_layer_norm},
    {"Relu", onednn_build_eltwise},
    {"LeakyRelu", onednn_build_eltwise},
    {"Elu", onednn_build_eltwise},
    {"Sigmoid", onednn_build_eltwise},
    {"Tanh", onednn_build_eltwise},
    {"HardSwish", onednn_build_eltwise},
    {"Swish", onednn_build_eltwise},
    {"Mish", onednn_build_eltwise},
    {"Clip", onednn_build_eltwise},
    {"Gelu", onednn_build_eltwise},
    {"Add", onednn_build_binary},
    {"Mul", onednn_build_binary},
    {"Sub", onednn_build_binary},
    {"Div", onednn_build_binary},
};

/* The smallest part, in nanoseconds of work: handing one to a thread that looks out for it takes one or two
 * microseconds. Where it sleeps, the calling thread has done the part before the other one is awake. */
#define PART_NS 5000.0

/* What a part takes at least for there to be two a thread. */
#define LONG_PART_NS 400000.0

/* What a part takes at most, so that a run may be stopped behind it: a quarter of what is promised, since the work is
 * counted at the best. */
#define MOST_PART_NS 25e6
#define MOST_CALL_NS 100e6

/* Work below which the reference kernels are faster, in the nanoseconds that they estimate. */
#define SMALL_NS 300.0

/* ---------------------------------------------------------------- filling a plan */

static dnnl_data_type_t type_of(const_dnnl_primitive_desc_t pd, int arg) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
  dnnl_data_type_t type = dnnl_data_type_undef;
  return md == NULL || dnnl_memory_desc_query(md, dnnl_query_data_type, &type) != dnnl_success ? dnnl_f32 : type;
}

/* Convolutions of AVX2, where the kernels for channels last lead but for depthwise ones: in the same measure, 0.83 of the
 * nanoseconds on such a CPU. */
static const struct {
  const char *name;
  double each, grouped;
} of_avx2[] = {{"jit:avx2", 0.0195, 0.0232}, {"brgconv:avx2", 0.0166, 0.0192}, {"brdgmm_dw:avx2", 0.04, 0.055}};

double onednn_product_cost(const_dnnl_primitive_desc_t pd, double products, bool grouped) {
  const char *name = "";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  double each = 0.0172;
  for (size_t i = 0; i < sizeof of_avx2 / sizeof of_avx2[0]; i++)
    if (strcmp(name, of_avx2[i].name) == 0)
      return CALL_NS + products * (grouped ? of_avx2[i].grouped : of_avx2[i].each);
  if (strstr(name, "ref") != NULL) each = 2; /* several times slower than ours */
  else if (strstr(name, "brg") != NULL) each = 0.0178;
  else if (strstr(name, "gemm") != NULL) each = grouped ? 0.8 : 0.018;
  else if (strstr(name, "dw") != NULL) each = 0.04;
  if (type_of(pd, DNNL_ARG_SRC) == dnnl_bf16) each /= 2;
  return CALL_NS + products * each;
}

static dnnl_status_t add_arg(onednn_plan *plan, int arg, int64_t slot, bool output) {
  if (slot < 0 || plan->n_args == sizeof plan->args / sizeof plan->args[0]) return dnnl_unimplemented;
  plan->args[plan->n_args++] = (onednn_arg){.arg = arg, .slot = (uint32_t)slot, .output = output};
  return dnnl_success;
}

/* One value cannot be wanted in two layouts. */
dnnl_status_t onednn_plan_input_as(onednn_plan *plan, int32_t value, int arg, heddle_layout layout) {
  const int64_t slot = region_input_slot(plan->region, value);
  if (slot < 0 || slot >= ONEDNN_INPUTS) return dnnl_unimplemented;
  for (uint32_t i = 0; i < plan->n_args; i++)
    if (!plan->args[i].output && plan->args[i].slot == (uint32_t)slot && plan->inputs[slot] != layout)
      return dnnl_unimplemented;
  plan->inputs[slot] = layout;
  return add_arg(plan, arg, slot, false);
}

dnnl_status_t onednn_plan_input(onednn_plan *plan, int32_t value, int arg, const onednn_view *view) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(plan->pd, dnnl_query_exec_arg_md, arg);
  onednn_view own;
  heddle_layout layout = 0;
  if (md == NULL) return dnnl_unimplemented;
  if (view == NULL && !onednn_view_of(region_value(plan->region, value), 0, false, &own)) return dnnl_unimplemented;
  if (!onednn_token_of(plan->self, view != NULL ? view : &own, md, &layout)) return dnnl_unimplemented;
  return onednn_plan_input_as(plan, value, arg, layout);
}

dnnl_status_t onednn_plan_plain_input(onednn_plan *plan, int32_t value, int arg) {
  return onednn_plan_input_as(plan, value, arg, onednn_plain_layout(type_of(plan->pd, arg)));
}

dnnl_status_t onednn_plan_output(onednn_plan *plan, int32_t value, int arg) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(plan->pd, dnnl_query_exec_arg_md, arg);
  onednn_view view;
  if (md == NULL || !onednn_view_of(region_value(plan->region, value), 0, false, &view)) return dnnl_unimplemented;
  if (!onednn_token_of(plan->self, &view, md, &plan->output)) return dnnl_unimplemented;
  return add_arg(plan, arg, region_output_slot(plan->region, value), true);
}

dnnl_status_t onednn_plan_output_as(onednn_plan *plan, int32_t value, int arg, heddle_layout layout) {
  plan->output = layout;
  return add_arg(plan, arg, region_output_slot(plan->region, value), true);
}

dnnl_status_t onednn_plan_posts(onednn_plan *plan, const onednn_chain *chain) {
  dnnl_status_t s = dnnl_success;
  for (uint32_t i = 0; i < chain->n_posts && s == dnnl_success; i++) {
    const onednn_post *post = &chain->posts[i];
    const int arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)i) | DNNL_ARG_SRC_1;
    if (post->value >= 0) s = onednn_plan_input_as(plan, post->value, arg, post->full ? plan->output : 0);
  }
  return s;
}

dnnl_status_t onednn_plan_plain_output(onednn_plan *plan, int32_t value, int arg) {
  return onednn_plan_output_as(plan, value, arg, onednn_plain_layout(type_of(plan->pd, arg)));
}

/* Constants that no argument takes are read from the region: bounds of Clip. */
static bool absorb_rest(onednn_plan *plan) {
  for (uint32_t slot = 0; slot < plan->region->n_inputs; slot++) {
    bool used = false;
    for (uint32_t i = 0; i < plan->n_args; i++) used = used || (!plan->args[i].output && plan->args[i].slot == slot);
    if (used) continue;
    if (region_value(plan->region, plan->region->inputs[slot])->data == NULL) return false;
    plan->flags[slot] = HEDDLE_INPUT_ABSORBED;
  }
  return true;
}

/* ---------------------------------------------------------------- the walk over forms */

/* The walk's steps: Winograd in the forms that it has, then the family's own forms. */
static const onednn_form winograd_forms[] = {ONEDNN_FORM_BLOCKED, ONEDNN_FORM_CHANNELS_LAST};
enum { WINOGRAD_STEPS = 2, STEPS = WINOGRAD_STEPS + 3 * ONEDNN_FORMS };

/* A walk: the plans of a region in order; next gives false at the end. Where reduced precision is allowed, forms in
 * bfloat16 come first, then those with a float32 result, then float32's: for a product only where there is no other but
 * Winograd's, which may take less than bfloat16's. */
typedef struct walk {
  const onednn *self;
  onednn_chain chain;
  onednn_build build;
  uint32_t parts;
  bool fast;
  bool wants_ladder;
  int step;
  uint32_t made;
  heddle_layout seen[STEPS][ONEDNN_INPUTS + 1];
  dnnl_status_t status;
  bool by_winograd, by_bf16; /* one of those made is */
  onednn_plan plan;          /* last */
} walk;

/* How many parts work of so many nanoseconds (on one thread) is worth: one a thread, since each reads all of an operand,
 * but two where they stay long, so that a thread which is held up, on a core that is busy with something else, leaves
 * more to the others. */
uint32_t onednn_parts_for(const onednn *self, double work_ns) {
  const uint32_t threads = self->host->parallelism(self->host->ctx);
  uint32_t parts = work_ns < 2 * LONG_PART_NS * threads ? threads : 2 * threads;
  if (parts > ONEDNN_TASKS) parts = ONEDNN_TASKS;
  if (work_ns < parts * PART_NS) parts = (uint32_t)(work_ns / PART_NS);
  if (threads < 2 || parts < 2) parts = 1;
  if (work_ns <= parts * MOST_PART_NS) return parts;
  const double least = work_ns / MOST_PART_NS;
  parts = least < ONEDNN_PARTS ? (uint32_t)least + 1 : ONEDNN_PARTS;
  parts = (parts + threads - 1) / threads * threads;
  return parts < ONEDNN_PARTS ? parts : ONEDNN_PARTS;
}

/* Nanoseconds that a region's work takes on one thread, at the best: as the reference kernels count it, or to read its
 * constants, where there is little to compute with each. */
static double work_of(const onednn_chain *chain) {
  const double work = chain->op.cost_ns * 0.2;
  double reading = 0;
  for (uint32_t i = 0; i < chain->region->n_inputs; i++) {
    const heddle_pvalue *value = region_value(chain->region, chain->region->inputs[i]);
    if (value->data != NULL) reading += (double)value->data_bytes * 0.012;
  }
  return work > reading ? work : reading;
}

/* Layouts of bfloat16 are of tensors with dimensions; the product of two vectors has none. */
static bool has_scalar(const heddle_pregion *region) {
  for (uint32_t i = 0; i < region->n_outputs; i++) {
    const heddle_pvalue *value = region_value(region, region->outputs[i]);
    if (value != NULL && value->ndim == 0) return true;
  }
  return false;
}

/* What the plain kernels do about as well, and can be resized with. */
static bool is_light(onednn_build build) {
  return build == onednn_build_eltwise || build == onednn_build_binary || build == onednn_build_concat ||
         build == onednn_build_pool;
}

static bool walk_start(const onednn *self, const heddle_pregion *region, walk *w) {
  const heddle_pnode *node = region_node(region, 0);
  memset(w, 0, offsetof(walk, plan) + offsetof(onednn_plan, parts));
  w->self = self;
  if (self == NULL || node == NULL || node->op == NULL) return false;
  w->fast = self->bf16 && (region->flags & HEDDLE_REGION_FAST) != 0 && !has_scalar(region);
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
    if (strcmp(families[i].op, node->op) == 0) w->build = families[i].build;
  if (w->build == NULL || !onednn_chain_read(region, &w->chain)) return false;
  if (self->mode == ONEDNN_AUTO && w->chain.op.cost_ns < SMALL_NS) return false;
  if (self->mode == ONEDNN_AUTO && (region->flags & HEDDLE_REGION_OPEN) != 0 && is_light(w->build)) return false;
  w->parts = onednn_parts_for(self, work_of(&w->chain));
  return true;
}

static void drop(onednn_plan *plan) {
  for (uint32_t i = 0; i < plan->n_kinds; i++) dnnl_primitive_desc_destroy(plan->kinds[i]);
  if (plan->pd != NULL) dnnl_primitive_desc_destroy(plan->pd);
  onednn_ladder_drop(&plan->ladder);
  plan->n_kinds = 0;
  plan->pd = NULL;
}

static bool is_new(walk *w) {
  heddle_layout *mine = w->seen[w->made];
  memcpy(mine, w->plan.inputs, sizeof w->plan.inputs);
  mine[ONEDNN_INPUTS] = w->plan.output;
  for (uint32_t i = 0; i < w->made; i++)
    if (memcmp(w->seen[i], mine, sizeof w->seen[0]) == 0) return false;
  return true;
}

static bool is_slow(const walk *w) {
  const char *name = "";
  if (w->plan.by_winograd) return false;
  dnnl_primitive_desc_query(w->plan.pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return w->self->mode != ONEDNN_ALWAYS && strstr(name, "ref") != NULL;
}

/* A call, of a part or the whole, that would take too long to be waited for when a run is to end: the plain kernels can
 * stop. Parts may be fewer than were wanted. */
static bool is_endless(const walk *w) {
  const double parts = w->plan.n_parts > 0 ? w->plan.n_parts : 1;
  return w->self->mode != ONEDNN_ALWAYS && !w->plan.by_winograd && w->plan.cost_ns / parts > MOST_CALL_NS;
}

/* The family's form at a position; ONEDNN_FORMS behind the last. */
static onednn_form form_at(const walk *w, int at) {
  const int kind = at / ONEDNN_FORMS, base = at % ONEDNN_FORMS;
  if (!w->fast) return (onednn_form)at;
  if (kind == 2 && w->by_bf16 && onednn_is_product(w->chain.node.node)) return ONEDNN_FORMS;
  return kind > 2 ? ONEDNN_FORMS
                  : (onednn_form)(base | (kind < 2 ? ONEDNN_FORM_BF16 : 0) | (kind == 1 ? ONEDNN_FORM_WIDE : 0));
}

static bool is_over(const walk *w) {
  return w->step >= WINOGRAD_STEPS && form_at(w, w->step - WINOGRAD_STEPS) == ONEDNN_FORMS;
}

static dnnl_status_t build(walk *w) {
  if (w->step < WINOGRAD_STEPS) return winograd_build(w->self, &w->chain, winograd_forms[w->step], &w->plan);
  if (w->self->winograd == WINOGRAD_ALWAYS && w->made > 0 && w->by_winograd) return dnnl_unimplemented;
  return w->build(w->self, &w->chain, form_at(w, w->step - WINOGRAD_STEPS), &w->plan);
}

static void start_plan(const onednn *self, const heddle_pregion *region, onednn_plan *plan) {
  memset(plan, 0, offsetof(onednn_plan, parts));
  plan->self = self;
  plan->region = region;
  plan->threads = self->host->parallelism(self->host->ctx);
}

/* The plan belongs to the walk until it is dropped; status is set where memory is out. */
static bool walk_next(walk *w) {
  bool found = false;
  const int before = onednn_threads_enter(w->self);
  drop(&w->plan);
  for (; !found && w->status == dnnl_success && !is_over(w); w->step++) {
    start_plan(w->self, w->chain.region, &w->plan);
    w->plan.wanted_parts = w->parts;
    w->plan.wants_ladder = w->wants_ladder;
    dnnl_status_t s = build(w);
    if (s == dnnl_out_of_memory) w->status = s;
    found = s == dnnl_success && !is_slow(w) && !is_endless(w) && absorb_rest(&w->plan) && is_new(w);
    if (!found) drop(&w->plan);
  }
  onednn_threads_leave(w->self, before);
  w->made += found;
  w->by_winograd = w->by_winograd || (found && w->plan.by_winograd);
  w->by_bf16 = w->by_bf16 || (found && w->fast && !w->plan.by_winograd);
  return found;
}

/* What the plan is expected to take on all threads: that of a thread with the most parts. */
static double time_of(const onednn_plan *plan) {
  const double parts = plan->by_winograd ? (double)plan->winograd.units : (double)plan->n_parts;
  const double at_once = plan->by_winograd ? (double)plan->winograd.tasks : (double)plan->threads;
  return parts < 2 || at_once < 2 ? plan->cost_ns : CALL_NS + plan->cost_ns * ceil(parts / at_once) / parts;
}

static heddle_status offer_plan(const onednn_plan *plan, heddle_offer_fn offer, void *sink, heddle_error *err) {
  const heddle_poffer answer = {
      .struct_size = sizeof answer,
      .flags = plan->resizes ? HEDDLE_OFFER_RESIZES : 0,
      .input_layouts = plan->inputs,
      .output_layouts = &plan->output,
      .input_flags = plan->flags,
      .workspace_bytes = onednn_plan_workspace(plan, NULL),
      .workspace_align = CPU_ALIGNMENT,
      .cost_ns = time_of(plan),
  };
  return offer(sink, &answer, err);
}

/* ---------------------------------------------------------------- Reorder */

static bool is_reorder(const heddle_pregion *region) {
  const heddle_pnode *node = region_node(region, 0);
  return region->nodes.count == 1 && node != NULL && node->domain != NULL && strcmp(node->domain, "heddle") == 0 &&
         node->op != NULL && strcmp(node->op, "Reorder") == 0 && region->n_inputs == 1 && region->n_outputs == 1;
}

/* Whichever side has a token says how the tensor is seen. */
static dnnl_status_t side_of(const onednn *self, const heddle_pvalue *mine, const heddle_pvalue *other,
                             dnnl_memory_desc_t *out) {
  onednn_view view;
  if (mine->layout != 0) return onednn_from_token(self, mine, mine->layout, out);
  if (other->layout == 0 || !onednn_view_from_token(self, mine, other->layout, &view)) return dnnl_invalid_arguments;
  if (view.type == dnnl_bf16) view.type = dnnl_f32;
  return onednn_plain(&view, out);
}

static dnnl_status_t plan_reorder(const onednn *self, const heddle_pregion *region, onednn_plan *plan) {
  const heddle_pvalue *from = region_value(region, region->inputs[0]), *to = region_value(region, region->outputs[0]);
  dnnl_memory_desc_t src = NULL, dst = NULL;
  dnnl_primitive_attr_t attr = NULL;
  uint64_t bytes = 0;
  start_plan(self, region, plan);
  if (from == NULL || to == NULL || !region_shape_equal(from, to) || !region_value_bytes(from, &bytes))
    return dnnl_invalid_arguments;
  plan->cost_ns = CALL_NS + 2 * NS_PER_BYTE * (double)bytes;
  plan->inputs[0] = from->layout;
  plan->output = to->layout;
  const int before = onednn_threads_enter(self);
  dnnl_status_t s = side_of(self, from, to, &src);
  if (s == dnnl_success) s = side_of(self, to, from, &dst);
  if (s == dnnl_success) s = dnnl_primitive_attr_create(&attr);
  if (s == dnnl_success) s = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  if (s == dnnl_success) s = dnnl_reorder_primitive_desc_create(&plan->pd, src, self->engine, dst, self->engine, attr);
  if (s == dnnl_success) s = add_arg(plan, DNNL_ARG_FROM, 0, false);
  if (s == dnnl_success) s = add_arg(plan, DNNL_ARG_TO, 0, true);
  plan->wanted_parts = onednn_parts_for(self, plan->cost_ns);
  if (s == dnnl_success) s = onednn_cut_same(plan, NULL);
  onednn_threads_leave(self, before);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (dst != NULL) dnnl_memory_desc_destroy(dst);
  if (src != NULL) dnnl_memory_desc_destroy(src);
  return s;
}

/* Between layouts that oneDNN has no way between, or which are not its own: a refusal as any other. */
static heddle_status refuse_reorder(const heddle_pregion *region, heddle_error *err) {
  const heddle_pnode *node = region_node(region, 0);
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "node '%.200s': Reorder: there is no way between these layouts",
                node->name != NULL ? node->name : "");
}

/* ---------------------------------------------------------------- the calls */

heddle_status onednn_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                           uint32_t *made, bool *only, heddle_error *err) {
  walk w;
  heddle_status s = HEDDLE_OK;
  *made = 0;
  *only = false;
  s = images_query(self, region, offer, sink, made, only, err);
  if (s != HEDDLE_OK || *made > 0) return s;
  s = onednn_query_special(self, region, offer, sink, made, only, err);
  if (s != HEDDLE_OK || *made > 0) return s;
  if (self != NULL && is_reorder(region)) {
    onednn_plan plan;
    const dnnl_status_t status = plan_reorder(self, region, &plan);
    if (status != dnnl_success && status != dnnl_out_of_memory) s = refuse_reorder(region, err);
    else s = onednn_fail(status, "a Reorder", err);
    if (s == HEDDLE_OK) s = offer_plan(&plan, offer, sink, err);
    drop(&plan);
    *made = s == HEDDLE_OK;
    *only = true;
    return s;
  }
  if (!walk_start(self, region, &w)) return HEDDLE_OK;
  while (s == HEDDLE_OK && walk_next(&w)) s = offer_plan(&w.plan, offer, sink, err);
  drop(&w.plan);
  *made = w.made;
  *only = w.made > 0 && (self->mode == ONEDNN_ALWAYS || region->nodes.count > 1 ||
                         (self->winograd == WINOGRAD_ALWAYS && w.by_winograd));
  return s != HEDDLE_OK ? s : onednn_fail(w.status, "asking for a primitive", err);
}

heddle_status onednn_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                             onednn_op **out, uint32_t *made, heddle_error *err) {
  walk w;
  heddle_status s = HEDDLE_OK;
  onednn_special *special = NULL;
  bool found = false;
  *out = NULL;
  *made = 0;
  s = images_prepare(self, region, offer, operands, out, made, err);
  if (s != HEDDLE_OK || *made > 0) return s;
  s = onednn_prepare_special(self, region, offer, operands, &special, made, err);
  if (special != NULL) return onednn_op_hold(self, special, out, err);
  if (s != HEDDLE_OK || *made > 0) return s;
  if (self != NULL && is_reorder(region)) {
    onednn_plan plan;
    s = onednn_fail(plan_reorder(self, region, &plan), "a Reorder", err);
    if (s == HEDDLE_OK) s = onednn_op_make(self, &plan, operands, out, err);
    drop(&plan);
    *made = 1;
    return s;
  }
  if (!walk_start(self, region, &w)) return HEDDLE_OK;
  w.wants_ladder = (region->flags & HEDDLE_REGION_OPEN) != 0;
  while (!found && walk_next(&w)) found = w.made == offer + 1;
  *made = w.made;
  if (w.status != dnnl_success) s = onednn_fail(w.status, "asking for a primitive", err);
  else if (found) s = onednn_op_make(self, &w.plan, operands, out, err);
  drop(&w.plan);
  return s;
}
