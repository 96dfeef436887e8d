/* Joins (onednn_join.h). In blocks of channels and with one image the channels that a member computes are one piece of the
 * result, where they are a multiple of a block: so a member is handed an address inside it, and knows nothing else. */
#include "onednn_join.h"

#include "cpu.h"
#include "onednn_internal.h"

enum { MEMBERS = 8, FEWEST = 2 };

/* A chain, and which of its offers is taken. */
typedef struct member {
  uint32_t picks[ONEDNN_NODES], count; /* nodes of the region, in order */
  uint32_t offer, n_inputs;
  int32_t inputs[ONEDNN_INPUTS]; /* values */
  heddle_layout layouts[ONEDNN_INPUTS];
  uint32_t flags[ONEDNN_INPUTS];
  uint64_t offset, workspace; /* offset: bytes into the result */
  double cost_ns;
} member;

typedef struct plan {
  const onednn *self;
  const heddle_pregion *region;
  const heddle_pvalue *out;
  heddle_layout layout; /* of the result and of what members compute */
  uint32_t n;
  member members[MEMBERS];
} plan;

bool onednn_join_is(const heddle_pregion *region) {
  const uint64_t count = region->nodes.count;
  const heddle_pnode *last = count > 1 ? region_node(region, count - 1) : NULL;
  return last != NULL && last->op != NULL && strcmp(last->op, "Concat") == 0 &&
         (last->domain == NULL || last->domain[0] == '\0');
}

/* ---------------------------------------------------------------- reading */

/* The node before `end` that gives a value; UINT32_MAX where it comes from outside. */
static uint32_t producer_of(const heddle_pregion *region, int32_t value, uint32_t end) {
  for (uint32_t i = end; i-- > 0;) {
    const heddle_pnode *node = region_node(region, i);
    for (uint32_t k = 0; k < node->n_outputs; k++)
      if (node->outputs[k] == value) return i;
  }
  return UINT32_MAX;
}

/* From the Concat back to a Conv, over elementwise nodes on their first operand; each value has the next node for its
 * only user. */
static bool find_chain(const heddle_pregion *region, uint32_t concat, int32_t value, const unsigned char *taken,
                       member *out) {
  uint32_t user = concat, found[ONEDNN_NODES];
  out->count = 0;
  for (;;) {
    const uint32_t at = producer_of(region, value, user);
    onednn_post post;
    if (at == UINT32_MAX || out->count == ONEDNN_NODES || (taken != NULL && taken[at] != 0) ||
        onednn_only_user(region, value, at + 1) != user)
      return false;
    const heddle_pnode *node = region_node(region, at);
    if (node->op == NULL || node->n_outputs != 1 || node->n_inputs < 1) return false;
    found[out->count++] = at;
    if (strcmp(node->op, "Conv") == 0 && (node->domain == NULL || node->domain[0] == '\0')) break;
    value = node->inputs[0];
    if (value < 0 || region_value(region, node->outputs[0]) == NULL ||
        !onednn_read_follower(region, node, value, &post))
      return false;
    user = at;
  }
  for (uint32_t i = 0; i < out->count; i++) out->picks[i] = found[out->count - 1 - i];
  return true;
}

/* ---------------------------------------------------------------- members' offers */

typedef struct sought {
  member *m;
  heddle_layout layout;
  uint32_t seen;
  bool found;
} sought;

static heddle_status take_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  sought *s = sink;
  member *m = s->m;
  const uint32_t number = s->seen++;
  (void)err;
  if (offer->output_layouts == NULL || offer->output_layouts[0] != s->layout ||
      (s->found && offer->cost_ns >= m->cost_ns))
    return HEDDLE_OK;
  s->found = true;
  m->offer = number;
  m->cost_ns = offer->cost_ns;
  m->workspace = offer->workspace_bytes;
  for (uint32_t i = 0; i < m->n_inputs; i++) {
    m->layouts[i] = offer->input_layouts != NULL ? offer->input_layouts[i] : 0;
    m->flags[i] = offer->input_flags != NULL ? offer->input_flags[i] : 0;
  }
  return HEDDLE_OK;
}

/* The cheapest offer of a member that gives its result in the layout; *found is false where there is none. */
static heddle_status ask_member(const plan *p, member *m, bool *found, heddle_error *err) {
  onednn_picked cut;
  uint32_t made = 0;
  bool only;
  *found = false;
  if (!onednn_pick(p->region, m->picks, m->count, &cut)) return HEDDLE_OK;
  sought s = {.m = m, .layout = p->layout};
  m->n_inputs = cut.region.n_inputs;
  memcpy(m->inputs, cut.inputs, sizeof m->inputs);
  heddle_status status = onednn_query(p->self, &cut.region, take_offer, &s, &made, &only, err);
  *found = s.found;
  return status;
}

/* One value cannot be wanted in two layouts, nor be absorbed by one member only. */
static bool agrees(const plan *p, const member *m) {
  for (uint32_t i = 0; i < p->n; i++)
    for (uint32_t a = 0; a < p->members[i].n_inputs; a++)
      for (uint32_t b = 0; b < m->n_inputs; b++)
        if (p->members[i].inputs[a] == m->inputs[b] &&
            (p->members[i].layouts[a] != m->layouts[b] || p->members[i].flags[a] != m->flags[b]))
          return false;
  return true;
}

/* The layout that the result has in blocks; 0 where its channels would not be in pieces. */
static heddle_layout layout_of(const onednn *self, const heddle_pregion *region, const heddle_pnode *concat) {
  const heddle_pvalue *out = region_node_output(region, concat, 0);
  dnnl_memory_desc_t md = NULL;
  onednn_view view;
  heddle_layout layout = 0;
  int64_t axis = 0;
  const bool several = self->host->parallelism(self->host->ctx) > 1;
  if (out == NULL || out->ndim < 3 || out->shape[0] != 1 || !region_dtype_is(out->dtype, HEDDLE_DTYPE_FLOAT, 32) ||
      region_attr_int(concat, "axis", 0, &axis, NULL) != HEDDLE_OK || (axis != 1 && axis != 1 - out->ndim))
    return 0;
  for (uint32_t k = 0; k < concat->n_inputs; k++) {
    const heddle_pvalue *in = region_node_input(region, concat, k);
    if (in == NULL || in->ndim != out->ndim || in->shape[1] % self->block != 0) return 0;
    if (several && in->shape[1] < 2 * (int64_t)self->block) return 0; /* one block cannot be cut for threads */
    for (uint32_t i = 0; i < k; i++)
      if (concat->inputs[i] == concat->inputs[k]) return 0;
  }
  if (onednn_view_of(out, 0, false, &view) && onednn_in_form(self, out, ONEDNN_FORM_BLOCKED, &md) == dnnl_success &&
      !onednn_token_of(self, &view, md, &layout))
    layout = 0;
  if (md != NULL) dnnl_memory_desc_destroy(md);
  return layout;
}

/* What node `concat` of the region puts side by side; p->n stays 0 where that is no join. */
static heddle_status read_join(const onednn *self, const heddle_pregion *region, uint32_t concat,
                               const unsigned char *taken, plan *p, heddle_error *err) {
  const heddle_pnode *node = region_node(region, concat);
  uint64_t at = 0;
  *p = (plan){.self = self, .region = region};
  if (node->n_inputs < FEWEST || node->n_inputs > MEMBERS || node->n_outputs != 1) return HEDDLE_OK;
  p->out = region_node_output(region, node, 0);
  p->layout = layout_of(self, region, node);
  for (uint32_t k = 0; p->layout != 0 && k < node->n_inputs; k++) {
    member *m = &p->members[k];
    uint64_t bytes = 0;
    bool found = false;
    heddle_status s = HEDDLE_OK;
    if (find_chain(region, concat, node->inputs[k], taken, m)) s = ask_member(p, m, &found, err);
    if (s != HEDDLE_OK || !found || !agrees(p, m) || !region_value_bytes(region_node_input(region, node, k), &bytes)) {
      p->n = 0;
      return s;
    }
    m->offset = at;
    at += bytes;
    p->n++;
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- query and proposals */

static heddle_status refused(heddle_error *err) {
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu:0: these nodes do not fill one Concat of channels in blocks");
}

/* A region that is one join and nothing else. */
static heddle_status read_region(const onednn *self, const heddle_pregion *region, plan *p, heddle_error *err) {
  uint64_t nodes = 1;
  if (self == NULL || region->n_outputs != 1) return refused(err);
  heddle_status s = read_join(self, region, (uint32_t)region->nodes.count - 1, NULL, p, err);
  for (uint32_t i = 0; i < p->n; i++) nodes += p->members[i].count;
  return s != HEDDLE_OK ? s : p->n > 0 && nodes == region->nodes.count ? HEDDLE_OK : refused(err);
}

heddle_status onednn_join_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                heddle_error *err) {
  plan p;
  heddle_layout layouts[MEMBERS * ONEDNN_INPUTS] = {0};
  uint32_t flags[MEMBERS * ONEDNN_INPUTS] = {0};
  heddle_poffer answer = {
      .struct_size = sizeof answer,
      .input_layouts = layouts,
      .input_flags = flags,
      .workspace_align = CPU_ALIGNMENT,
  };
  heddle_status s = read_region(self, region, &p, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < p.n; i++) {
    const member *m = &p.members[i];
    answer.cost_ns += m->cost_ns;
    if (m->workspace > answer.workspace_bytes) answer.workspace_bytes = m->workspace;
    for (uint32_t k = 0; k < m->n_inputs; k++) {
      const int64_t slot = region_input_slot(region, m->inputs[k]);
      if (slot < 0 || slot >= MEMBERS * ONEDNN_INPUTS) return refused(err);
      layouts[slot] = m->layouts[k];
      flags[slot] = m->flags[k];
    }
  }
  answer.output_layouts = &p.layout;
  return offer(sink, &answer, err);
}

heddle_status onednn_join_propose(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                                  heddle_propose_fn propose, void *sink, heddle_error *err) {
  for (uint64_t i = 0; self != NULL && i < region->nodes.count; i++) {
    const heddle_pnode *node = region_node(region, i);
    uint32_t picks[MEMBERS * ONEDNN_NODES + 1], count = 0;
    plan p;
    if (taken[i] != 0 || node->op == NULL || strcmp(node->op, "Concat") != 0 ||
        (node->domain != NULL && node->domain[0] != '\0'))
      continue;
    heddle_status s = read_join(self, region, (uint32_t)i, taken, &p, err);
    if (s != HEDDLE_OK) return s;
    if (p.n == 0) continue;
    for (uint32_t m = 0; m < p.n; m++)
      for (uint32_t k = 0; k < p.members[m].count; k++) picks[count++] = p.members[m].picks[k];
    picks[count++] = (uint32_t)i;
    s = propose(sink, picks, count, err);
    if (s != HEDDLE_OK) return s;
    for (uint32_t k = 0; k < count; k++) taken[picks[k]] = 1;
  }
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- prepared */

typedef struct prepared {
  onednn_op *op;
  uint64_t offset;
  uint32_t n_inputs;
  uint32_t slots[ONEDNN_INPUTS]; /* of the whole region's inputs */
} prepared;

struct onednn_join {
  const heddle_host *host;
  uint64_t workspace;
  uint32_t n, reserved;
  prepared members[];
};

struct onednn_join_launch {
  const heddle_host *host;
  uint32_t n, reserved;
  onednn_launch *members[];
};

/* The operands of a member, where the region has them. */
static void merge(const member *m, const prepared *to, const cpu_operand *from, cpu_operand *operands) {
  for (uint32_t k = 0; k < m->n_inputs; k++) {
    cpu_operand *mine = &operands[to->slots[k]];
    if (from[k].bytes > mine->bytes) mine->bytes = from[k].bytes;
    if (from[k].align > mine->align) mine->align = from[k].align;
  }
}

static heddle_status prepare_member(onednn *self, const plan *p, const member *m, prepared *to, cpu_operand *operands,
                                    heddle_error *err) {
  onednn_picked cut;
  cpu_operand mine[ONEDNN_INPUTS + 1] = {{0, 1}};
  uint32_t made = 0;
  if (!onednn_pick(p->region, m->picks, m->count, &cut)) return refused(err);
  to->offset = m->offset;
  to->n_inputs = m->n_inputs;
  for (uint32_t k = 0; k < m->n_inputs; k++) to->slots[k] = (uint32_t)region_input_slot(p->region, m->inputs[k]);
  heddle_status s = onednn_prepare(self, &cut.region, m->offer, mine, &to->op, &made, err);
  if (s == HEDDLE_OK && to->op == NULL) return refused(err);
  if (s == HEDDLE_OK) merge(m, to, mine, operands);
  return s;
}

heddle_status onednn_join_prepare(onednn *self, const heddle_pregion *region, cpu_operand *operands, onednn_join **out,
                                  heddle_error *err) {
  plan p;
  void *memory = NULL;
  uint64_t bytes = 0;
  *out = NULL;
  heddle_status s = read_region(self, region, &p, err);
  if (s == HEDDLE_OK && !region_value_bytes(p.out, &bytes)) s = refused(err);
  if (s == HEDDLE_OK) s = cpu_new(self->host, sizeof(onednn_join) + p.n * sizeof(prepared), "a join", &memory, err);
  if (s != HEDDLE_OK) return s;
  onednn_join *join = memory;
  join->host = self->host;
  for (uint32_t i = 0; i < region->n_inputs; i++) operands[i] = (cpu_operand){0, 1};
  operands[region->n_inputs] = (cpu_operand){bytes, CPU_ALIGNMENT};
  while (s == HEDDLE_OK && join->n < p.n) {
    s = prepare_member(self, &p, &p.members[join->n], &join->members[join->n], operands, err);
    if (s != HEDDLE_OK) break;
    const uint64_t scratch = onednn_workspace(join->members[join->n++].op);
    if (scratch > join->workspace) join->workspace = scratch;
  }
  if (s == HEDDLE_OK) *out = join;
  else onednn_join_free(join);
  return s;
}

void onednn_join_free(onednn_join *join) {
  if (join == NULL) return;
  for (uint32_t i = 0; i < join->n; i++) onednn_op_free(join->members[i].op);
  join->host->free(join->host->ctx, join);
}

uint64_t onednn_join_workspace(const onednn_join *join) {
  return join->workspace;
}

heddle_status onednn_join_bind(onednn_join *join, void *const *inputs, void *const *outputs, void *workspace,
                               onednn_join_launch **out, heddle_error *err) {
  void *memory = NULL;
  *out = NULL;
  heddle_status s =
      cpu_new(join->host, sizeof(onednn_join_launch) + join->n * sizeof(onednn_launch *), "a launch", &memory, err);
  if (s != HEDDLE_OK) return s;
  onednn_join_launch *launch = memory;
  launch->host = join->host;
  while (s == HEDDLE_OK && launch->n < join->n) {
    const prepared *m = &join->members[launch->n];
    void *in[ONEDNN_INPUTS], *to = (char *)outputs[0] + m->offset;
    for (uint32_t k = 0; k < m->n_inputs; k++) in[k] = inputs[m->slots[k]];
    s = onednn_bind(m->op, in, &to, workspace, &launch->members[launch->n], err);
    launch->n += s == HEDDLE_OK;
  }
  if (s == HEDDLE_OK) *out = launch;
  else onednn_join_launch_free(launch);
  return s;
}

void onednn_join_launch_free(onednn_join_launch *launch) {
  if (launch == NULL) return;
  for (uint32_t i = 0; i < launch->n; i++) onednn_launch_free(launch->members[i]);
  launch->host->free(launch->host->ctx, launch);
}

heddle_status onednn_join_run(onednn_join_launch *launch, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (uint32_t i = 0; s == HEDDLE_OK && i < launch->n; i++) s = onednn_run(launch->members[i], err);
  return s;
}
