/* labels: threads
 * Sim's operators: the same bits in plain and blocked layouts, alone and fused, and what query, bind and partition
 * refuse. */
#include "sim_host.h"

enum { VALUES = 12, NODES = 6 };

/* A region under construction: values by number, nodes in order. */
typedef struct region_test {
  heddle_pregion region;
  heddle_pvalue values[VALUES];
  int64_t shapes[VALUES][4];
  float *data[VALUES]; /* plain, for all of them */
  heddle_pnode nodes[NODES];
  int32_t in[NODES][3], out[NODES][1];
  heddle_pattr attrs[NODES];
  int64_t ints[NODES][4];
  int32_t inputs[VALUES], outputs[VALUES];
} region_test;

static void region_init(region_test *r) {
  memset(r, 0, sizeof *r);
  r->region.struct_size = sizeof r->region;
  r->region.nodes = (heddle_parray){r->nodes, 0, sizeof r->nodes[0]};
  r->region.values = (heddle_parray){r->values, 0, sizeof r->values[0]};
  r->region.inputs = r->inputs;
  r->region.outputs = r->outputs;
}

static uint64_t elements(const heddle_pvalue *v) {
  uint64_t n = 1;
  for (int i = 0; i < v->ndim; i++) n *= (uint64_t)v->shape[i];
  return n;
}

enum { INNER = 0, INPUT = 1, OUTPUT = 2, CONSTANT = 3 };

static int32_t value(region_test *r, int role, int32_t ndim, int64_t a, int64_t b, int64_t c, int64_t d) {
  int32_t v = (int32_t)r->region.values.count++;
  int64_t shape[4] = {a, b, c, d};
  memcpy(r->shapes[v], shape, sizeof shape);
  r->values[v] = (heddle_pvalue){
      .struct_size = sizeof r->values[v], .dtype = {HEDDLE_DTYPE_FLOAT, 32, 1}, .shape = r->shapes[v], .ndim = ndim};
  uint64_t n = elements(&r->values[v]);
  r->data[v] = malloc(n * 4 + 1);
  for (uint64_t i = 0; i < n; i++)
    r->data[v][i] = (float)((int)((i * 2654435761u + (uint64_t)v * 97) % 201) - 100) / 64;
  if (role == CONSTANT) {
    r->values[v].data = r->data[v];
    r->values[v].data_bytes = n * 4;
  }
  if (role == INPUT || role == CONSTANT) r->inputs[r->region.n_inputs++] = v;
  if (role == OUTPUT) r->outputs[r->region.n_outputs++] = v;
  return v;
}

static heddle_pnode *node(region_test *r, const char *op, int32_t a, int32_t b, int32_t c, int32_t out) {
  uint64_t i = r->region.nodes.count++;
  int32_t in[3] = {a, b, c};
  memcpy(r->in[i], in, sizeof in);
  r->out[i][0] = out;
  r->nodes[i] = (heddle_pnode){.struct_size = sizeof r->nodes[i],
                               .opset = 13,
                               .domain = "",
                               .op = op,
                               .name = op,
                               .attrs = {&r->attrs[i], 0, sizeof r->attrs[i]},
                               .inputs = r->in[i],
                               .outputs = r->out[i],
                               .n_inputs = c >= 0   ? 3
                                           : b >= 0 ? 2
                                                    : 1,
                               .n_outputs = 1};
  return &r->nodes[i];
}

static void ints(region_test *r, const char *name, uint64_t count, int64_t a, int64_t b, int64_t c, int64_t d) {
  uint64_t i = r->region.nodes.count - 1;
  int64_t all[4] = {a, b, c, d};
  memcpy(r->ints[i], all, sizeof all);
  r->attrs[i] = (heddle_pattr){sizeof r->attrs[i], HEDDLE_ATTR_INTS, name, r->ints[i], count};
  r->nodes[i].attrs.count = 1;
}

static void region_finish(region_test *r) {
  for (uint64_t v = 0; v < r->region.values.count; v++) free(r->data[v]);
}

/* ---- offers ---- */

typedef struct offers {
  uint32_t n;
  heddle_layout in[4][VALUES], out[4][VALUES];
  uint32_t flags[4], in_flags[4][VALUES];
  uint64_t workspace[4], pairs[4];
  double cost[4];
  const heddle_pregion *region;
} offers;

static heddle_status take_offer(void *sink, const heddle_poffer *o, heddle_error *err) {
  offers *all = sink;
  uint32_t n = all->n++;
  (void)err;
  for (uint32_t k = 0; k < all->region->n_inputs; k++) {
    all->in[n][k] = o->input_layouts == NULL ? 0 : o->input_layouts[k];
    all->in_flags[n][k] = o->input_flags == NULL ? 0 : o->input_flags[k];
  }
  for (uint32_t k = 0; k < all->region->n_outputs; k++)
    all->out[n][k] = o->output_layouts == NULL ? 0 : o->output_layouts[k];
  all->flags[n] = o->flags;
  all->workspace[n] = o->workspace_bytes;
  all->pairs[n] = o->n_in_place;
  all->cost[n] = o->cost_ns;
  return HEDDLE_OK;
}

static offers ask(sim_test *t, const region_test *r) {
  offers all = {.region = &r->region};
  OK(t, t->p->op->query(t->self, 0, &r->region, take_offer, &all, &t->err));
  return all;
}

/* Bytes of a value in a layout, packed by the plugin where it is not plain. Freed by the caller. */
static void *packed(sim_test *t, const region_test *r, int32_t v, heddle_layout layout, uint64_t *bytes) {
  heddle_pvalue tensor = r->values[v];
  uint64_t align;
  tensor.layout = layout;
  tensor.data = r->data[v];
  tensor.data_bytes = elements(&tensor) * 4;
  OK(t, t->p->layout->bytes(t->self, 0, &tensor, bytes, &align, &t->err));
  void *p = malloc(*bytes + 1);
  OK(t, t->p->layout->pack(t->self, 0, &tensor, p, *bytes, &t->err));
  return p;
}

/* Runs the region by one of its offers. out[k]: room for the bytes of each output in the offer's layout. */
static void run_offer(sim_test *t, region_test *r, uint32_t offer, uint8_t **out) {
  offers all = ask(t, r);
  heddle_pdevice *dev = t->dev[0];
  heddle_pstream *s = sim_stream(t, dev);
  heddle_pslice in_slices[VALUES] = {{0}}, out_slices[VALUES] = {{0}};
  heddle_pbind bind = {.struct_size = sizeof bind, .inputs = in_slices, .outputs = out_slices};
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  uint64_t bytes;
  for (uint32_t k = 0; k < r->region.n_inputs; k++) r->values[r->inputs[k]].layout = all.in[offer][k];
  for (uint32_t k = 0; k < r->region.n_outputs; k++) r->values[r->outputs[k]].layout = all.out[offer][k];
  OK(t, t->p->op->prepare(dev, &r->region, offer, &op, &t->err));
  for (uint64_t v = 0; v < r->region.values.count; v++) r->values[v].layout = 0;
  for (uint32_t k = 0; k < r->region.n_inputs; k++) {
    if (all.in_flags[offer][k] != 0) continue;
    void *p = packed(t, r, r->inputs[k], all.in[offer][k], &bytes);
    in_slices[k] = (heddle_pslice){sim_buf(t, dev, 0, bytes + 256), 256, bytes};
    OK(t, t->p->copy->write(s, in_slices[k].buffer, 256, p, bytes, &t->err));
    free(p);
  }
  for (uint32_t k = 0; k < r->region.n_outputs; k++) {
    free(packed(t, r, r->outputs[k], all.out[offer][k], &bytes));
    out_slices[k] = (heddle_pslice){sim_buf(t, dev, 0, bytes), 0, bytes};
  }
  bind.n_inputs = r->region.n_inputs;
  bind.n_outputs = r->region.n_outputs;
  if (all.workspace[offer] != 0)
    bind.workspace = (heddle_pslice){sim_buf(t, dev, 0, all.workspace[offer]), 0, all.workspace[offer]};
  OK(t, t->p->op->bind(op, s, &bind, &launch, &t->err));
  OK(t, t->p->op->run(launch, &t->err));
  sim_sync(t, s);
  for (uint32_t k = 0; k < r->region.n_outputs; k++) {
    OK(t, t->p->copy->read(s, out[k], out_slices[k].buffer, 0, out_slices[k].bytes, &t->err));
    t->p->memory->free(dev, out_slices[k].buffer);
  }
  for (uint32_t k = 0; k < r->region.n_inputs; k++) t->p->memory->free(dev, in_slices[k].buffer);
  t->p->memory->free(dev, bind.workspace.buffer);
  t->p->op->launch_free(launch);
  t->p->op->op_free(op);
  t->p->stream->close(s);
}

/* Plain, then blocked: the blocked result must be the plain one, packed; padding is zeros in both. */
static void check_blocked(sim_test *t, region_test *r) {
  uint8_t *got[1] = {calloc(1, 1 << 20)};
  offers all = ask(t, r);
  assert_int_equal(all.n, 2);
  assert_true(all.cost[0] < all.cost[1]);
  assert_true(all.in[0][0] != 0 && all.in[1][0] == 0);
  run_offer(t, r, 1, got);
  int32_t out = r->outputs[0];
  uint64_t bytes;
  memcpy(r->data[out], got[0], elements(&r->values[out]) * 4);
  void *want = packed(t, r, out, all.out[0][0], &bytes);
  memset(got[0], 0xee, 1 << 20);
  run_offer(t, r, 0, got);
  assert_memory_equal(got[0], want, bytes);
  free(want);
  free(got[0]);
  region_finish(r);
}

/* ---- cases ---- */

static void blocked_and_plain_give_the_same_bits(void **state) {
  static const int64_t channels[] = {1, 8, 11, 16};
  sim_test t;
  (void)state;
  sim_open(&t, 1, NULL);
  for (int i = 0; i < 4; i++) {
    int64_t c = channels[i];
    region_test r;
    region_init(&r); /* Conv with constant weights: packed too */
    int32_t x = value(&r, INPUT, 4, 2, c, 7, 6), w = value(&r, CONSTANT, 4, 9, c, 3, 3),
            b = value(&r, INPUT, 1, 9, 0, 0, 0);
    node(&r, "Conv", x, w, b, value(&r, OUTPUT, 4, 2, 9, 7, 6));
    ints(&r, "pads", 4, 1, 1, 1, 1);
    offers all = ask(&t, &r);
    assert_true(all.in[0][1] != 0 && all.in[0][1] != all.in[0][0] && all.in[0][2] == 0);
    check_blocked(&t, &r);
    region_init(&r);
    x = value(&r, INPUT, 4, 2, c, 5, 4);
    node(&r, "Relu", x, -1, -1, value(&r, OUTPUT, 4, 2, c, 5, 4));
    check_blocked(&t, &r);
    region_init(&r);
    x = value(&r, INPUT, 4, 1, c, 5, 4);
    b = value(&r, INPUT, 4, 1, c, 5, 4);
    node(&r, "Add", x, b, -1, value(&r, OUTPUT, 4, 1, c, 5, 4));
    check_blocked(&t, &r);
    region_init(&r);
    x = value(&r, INPUT, 4, 2, c, 8, 6);
    node(&r, "MaxPool", x, -1, -1, value(&r, OUTPUT, 4, 2, c, 7, 4));
    ints(&r, "kernel_shape", 2, 2, 3, 0, 0);
    check_blocked(&t, &r);
    region_init(&r);
    x = value(&r, INPUT, 4, 2, c, 3, 3);
    node(&r, "GlobalAveragePool", x, -1, -1, value(&r, OUTPUT, 4, 2, c, 1, 1));
    check_blocked(&t, &r);
  }
  region_test r; /* broadcast Add has the plain offer only */
  region_init(&r);
  int32_t x = value(&r, INPUT, 4, 1, 3, 4, 4), y = value(&r, INPUT, 4, 1, 1, 1, 4);
  node(&r, "Add", x, y, -1, value(&r, OUTPUT, 4, 1, 3, 4, 4));
  assert_int_equal(ask(&t, &r).n, 1);
  region_finish(&r);
  sim_close(&t);
}

static void reorders_go_both_ways(void **state) {
  sim_test t;
  uint64_t tokens[3] = {0}, bytes;
  char name[16];
  (void)state;
  sim_open(&t, 1, NULL);
  region_test conv;
  region_init(&conv);
  int32_t x = value(&conv, INPUT, 4, 1, 3, 4, 4), w = value(&conv, CONSTANT, 4, 5, 3, 1, 1);
  node(&conv, "Conv", x, w, -1, value(&conv, OUTPUT, 4, 1, 5, 4, 4));
  offers all = ask(&t, &conv);
  tokens[1] = all.in[0][0];
  tokens[2] = all.in[0][1];
  region_finish(&conv);
  OK(&t, t.p->layout->describe(t.self, 0, tokens[1], name, sizeof name, &t.err));
  assert_string_equal(name, "nchw8c");
  OK(&t, t.p->layout->describe(t.self, 0, tokens[2], name, sizeof name, &t.err));
  assert_string_equal(name, "oihw8o");
  FAILS(&t, HEDDLE_EINVAL, "0x7", t.p->layout->describe(t.self, 0, 7, name, sizeof name, &t.err));

  for (int from = 0; from < 3; from++)
    for (int to = 0; to < 3; to++) {
      region_test r;
      region_init(&r);
      x = value(&r, INPUT, 4, 3, 5, 2, 3);
      int32_t y = value(&r, OUTPUT, 4, 3, 5, 2, 3);
      node(&r, "Reorder", x, -1, -1, y)->domain = "heddle";
      r.values[x].layout = tokens[from];
      r.values[y].layout = tokens[to];
      heddle_pop *op = NULL;
      all = (offers){.region = &r.region};
      OK(&t, t.p->op->query(t.self, 0, &r.region, take_offer, &all, &t.err));
      assert_int_equal(all.n, 1);
      assert_true(all.in[0][0] == tokens[from] && all.out[0][0] == tokens[to]);
      OK(&t, t.p->op->prepare(t.dev[0], &r.region, 0, &op, &t.err));
      r.values[x].layout = r.values[y].layout = 0;
      heddle_pstream *s = sim_stream(&t, t.dev[0]);
      void *p = packed(&t, &r, x, tokens[from], &bytes);
      heddle_pslice in = {sim_buf(&t, t.dev[0], 0, bytes), 0, bytes};
      OK(&t, t.p->copy->write(s, in.buffer, 0, p, bytes, &t.err));
      free(p);
      void *want = packed(&t, &r, x, tokens[to], &bytes);
      heddle_pslice out = {sim_buf(&t, t.dev[0], 0, bytes), 0, bytes}, ws = {0};
      if (all.workspace[0] != 0) ws = (heddle_pslice){sim_buf(&t, t.dev[0], 0, all.workspace[0]), 0, all.workspace[0]};
      heddle_pbind bind = {sizeof bind, 0, &in, &out, 1, 1, ws};
      heddle_plaunch *launch = NULL;
      OK(&t, t.p->op->bind(op, s, &bind, &launch, &t.err));
      OK(&t, t.p->op->run(launch, &t.err));
      uint8_t *got = malloc(bytes);
      OK(&t, t.p->copy->read(s, got, out.buffer, 0, bytes, &t.err));
      assert_memory_equal(got, want, bytes);
      free(got);
      free(want);
      t.p->op->launch_free(launch);
      t.p->op->op_free(op);
      t.p->memory->free(t.dev[0], in.buffer);
      t.p->memory->free(t.dev[0], out.buffer);
      t.p->memory->free(t.dev[0], ws.buffer);
      t.p->stream->close(s);
      region_finish(&r);
    }
  sim_close(&t);
}

static uint32_t proposed[8][4], n_proposed;

static heddle_status take_proposal(void *sink, const uint32_t *nodes, uint32_t count, heddle_error *err) {
  (void)sink, (void)err;
  proposed[n_proposed][0] = count;
  memcpy(&proposed[n_proposed++][1], nodes, count * sizeof *nodes);
  return HEDDLE_OK;
}

/* Conv, Relu, then a branch that uses the Relu's result twice, MatMul-like nodes left alone. */
static void chains_are_proposed_and_taken(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, "fuse", "1", NULL);
  region_test r;
  region_init(&r);
  int32_t x = value(&r, INPUT, 4, 1, 3, 5, 5), w = value(&r, CONSTANT, 4, 10, 3, 3, 3);
  int32_t c = value(&r, INNER, 4, 1, 10, 3, 3), a = value(&r, INNER, 4, 1, 10, 3, 3);
  int32_t d = value(&r, INNER, 4, 1, 10, 3, 3), y = value(&r, OUTPUT, 4, 1, 10, 3, 3);
  node(&r, "Conv", x, w, -1, c);
  node(&r, "Relu", c, -1, -1, a);
  node(&r, "Add", a, a, -1, d);
  node(&r, "Relu", d, -1, -1, y);
  OK(&t, t.p->op->partition(t.self, 0, &r.region, take_proposal, NULL, &t.err));
  assert_int_equal(n_proposed, 2);
  assert_true(proposed[0][0] == 2 && proposed[0][1] == 0 && proposed[0][2] == 1);
  assert_true(proposed[1][0] == 2 && proposed[1][1] == 2 && proposed[1][2] == 3);
  check_blocked(&t, &r); /* all four as one region, plain and blocked */

  /* One region gives the bits that its nodes give alone. */
  uint8_t *got[2] = {calloc(1, 4096), calloc(1, 4096)}, *alone[1] = {calloc(1, 4096)};
  region_init(&r);
  x = value(&r, INPUT, 2, 6, 9, 0, 0);
  w = value(&r, INPUT, 2, 9, 4, 0, 0);
  int32_t m = value(&r, OUTPUT, 2, 6, 4, 0, 0), b = value(&r, INPUT, 1, 4, 0, 0, 0); /* inner, and an output too */
  a = value(&r, INNER, 2, 6, 4, 0, 0);
  y = value(&r, OUTPUT, 2, 6, 4, 0, 0);
  node(&r, "MatMul", x, w, -1, m);
  node(&r, "Add", m, b, -1, a);
  node(&r, "Relu", a, -1, -1, y);
  assert_int_equal(ask(&t, &r).n, 1);
  run_offer(&t, &r, 0, got);
  region_test one;
  region_init(&one);
  int32_t x1 = value(&one, INPUT, 2, 6, 9, 0, 0), w1 = value(&one, INPUT, 2, 9, 4, 0, 0);
  node(&one, "MatMul", x1, w1, -1, value(&one, OUTPUT, 2, 6, 4, 0, 0));
  run_offer(&t, &one, 0, alone);
  assert_memory_equal(got[0], alone[0], 96);
  const float *mm = (const float *)(const void *)got[0], *yy = (const float *)(const void *)got[1];
  for (int i = 0; i < 24; i++) {
    float sum = mm[i] + r.data[b][i % 4];
    assert_true(yy[i] == (sum > 0 ? sum : 0));
  }
  region_finish(&one);

  /* Inner results keep the three together; a value that is used outside parts them. */
  n_proposed = 0;
  OK(&t, t.p->op->partition(t.self, 0, &r.region, take_proposal, NULL, &t.err));
  assert_int_equal(n_proposed, 1);
  assert_true(proposed[0][0] == 2 && proposed[0][1] == 1);
  r.outputs[0] = y;
  r.region.n_outputs = 1;
  n_proposed = 0;
  OK(&t, t.p->op->partition(t.self, 0, &r.region, take_proposal, NULL, &t.err));
  assert_int_equal(n_proposed, 1);
  assert_int_equal(proposed[0][0], 3);
  region_finish(&r);

  region_init(&r); /* two nodes with nothing in common */
  x = value(&r, INPUT, 1, 4, 0, 0, 0);
  y = value(&r, INPUT, 1, 4, 0, 0, 0);
  node(&r, "Relu", x, -1, -1, value(&r, OUTPUT, 1, 4, 0, 0, 0));
  node(&r, "Relu", y, -1, -1, value(&r, OUTPUT, 1, 4, 0, 0, 0));
  offers all = {.region = &r.region};
  FAILS(&t, HEDDLE_EUNSUPPORTED, "pieces", t.p->op->query(t.self, 0, &r.region, take_offer, &all, &t.err));
  region_finish(&r);
  sim_close(&t);

  sim_open(&t, 1, NULL); /* without fuse */
  region_init(&r);
  x = value(&r, INPUT, 1, 4, 0, 0, 0);
  y = value(&r, INNER, 1, 4, 0, 0, 0);
  node(&r, "Relu", x, -1, -1, y);
  node(&r, "Relu", y, -1, -1, value(&r, OUTPUT, 1, 4, 0, 0, 0));
  n_proposed = 0;
  OK(&t, t.p->op->partition(t.self, 0, &r.region, take_proposal, NULL, &t.err));
  assert_int_equal(n_proposed, 0);
  FAILS(&t, HEDDLE_EUNSUPPORTED, "fuse", t.p->op->query(t.self, 0, &r.region, take_offer, &all, &t.err));
  region_finish(&r);
  sim_close(&t);
  free(got[0]);
  free(got[1]);
  free(alone[0]);
}

static void bind_checks_its_operands(void **state) {
  static const char *const bare[] = {"0", "1"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    sim_test t;
    sim_open(&t, 2, "bare", bare[i], "views", "0", NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[0]), *far = sim_stream(&t, t.dev[1]);
    heddle_pbuffer *a = sim_buf(&t, t.dev[0], 0, 1024), *b = sim_buf(&t, t.dev[0], 0, 1024);
    heddle_pbuffer *pinned = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_PINNED, 1024), *other = sim_buf(&t, t.dev[1], 0, 1024);
    region_test r;
    region_init(&r);
    int32_t x = value(&r, INPUT, 1, 64, 0, 0, 0);
    node(&r, "Relu", x, -1, -1, value(&r, OUTPUT, 1, 64, 0, 0, 0));
    offers all = ask(&t, &r);
    assert_true(all.flags[0] == (i == 1 ? HEDDLE_OFFER_BARE : 0) && all.pairs[0] == 1);
    heddle_pop *op = NULL;
    heddle_plaunch *l = NULL;
    FAILS(&t, HEDDLE_EINVAL, "offer 3", t.p->op->prepare(t.dev[0], &r.region, 3, &op, &t.err));
    r.values[x].layout = 5;
    FAILS(&t, HEDDLE_EINVAL, "layout 0x5", t.p->op->prepare(t.dev[0], &r.region, 0, &op, &t.err));
    r.values[x].layout = 0;
    OK(&t, t.p->op->prepare(t.dev[0], &r.region, 0, &op, &t.err));
    heddle_pslice in = {a, 0, 256}, out = {b, 0, 256};
    heddle_pbind bind = {sizeof bind, 0, &in, &out, 1, 1, {0}};
    FAILS(&t, HEDDLE_EINVAL, "the stream of sim:1", t.p->op->bind(op, far, &bind, &l, &t.err));
    FAILS(&t, HEDDLE_EINVAL, "is missing", (in.buffer = NULL, t.p->op->bind(op, s, &bind, &l, &t.err)));
    FAILS(&t, HEDDLE_EINVAL, "pinned memory", (in.buffer = pinned, t.p->op->bind(op, s, &bind, &l, &t.err)));
    FAILS(&t, HEDDLE_EINVAL, "sim:1", (in.buffer = other, t.p->op->bind(op, s, &bind, &l, &t.err)));
    in.buffer = a;
    FAILS(&t, HEDDLE_EINVAL, "it needs 256", (in.bytes = 252, t.p->op->bind(op, s, &bind, &l, &t.err)));
    in.bytes = 256;
    FAILS(&t, HEDDLE_EINVAL, "multiple of 256", (out.offset = 64, t.p->op->bind(op, s, &bind, &l, &t.err)));
    out.offset = 1024;
    FAILS(&t, HEDDLE_EINVAL, i == 1 ? "whole buffers" : "do not lie", t.p->op->bind(op, s, &bind, &l, &t.err));
    out.offset = 512;
    if (i == 1) FAILS(&t, HEDDLE_EINVAL, "whole buffers", t.p->op->bind(op, s, &bind, &l, &t.err));
    else OK(&t, t.p->op->bind(op, s, &bind, &l, &t.err));
    t.p->op->launch_free(l);
    FAILS(&t, HEDDLE_EINVAL, "given", (bind.n_inputs = 0, t.p->op->bind(op, s, &bind, &l, &t.err)));
    t.p->op->op_free(op);
    region_finish(&r);
    t.p->memory->free(t.dev[0], a);
    t.p->memory->free(t.dev[0], b);
    t.p->memory->free(t.dev[0], pinned);
    t.p->memory->free(t.dev[1], other);
    t.p->stream->close(s);
    t.p->stream->close(far);
    sim_close(&t);
  }
}

/* A captured launch runs when replayed, on new bytes in the same place, and outlives its handle. */
static void launches_are_captured(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 1, NULL);
  heddle_pstream *s = sim_stream(&t, t.dev[0]);
  heddle_pbuffer *a = sim_buf(&t, t.dev[0], 0, 256);
  region_test r;
  region_init(&r);
  int32_t x = value(&r, INPUT, 1, 4, 0, 0, 0);
  node(&r, "Add", x, x, -1, value(&r, OUTPUT, 1, 4, 0, 0, 0)); /* one region input, in place */
  heddle_pop *op = NULL;
  heddle_plaunch *l = NULL;
  heddle_pgraph *g = NULL;
  OK(&t, t.p->op->prepare(t.dev[0], &r.region, 0, &op, &t.err));
  heddle_pslice slice = {a, 0, 16};
  heddle_pbind bind = {sizeof bind, 0, &slice, &slice, 1, 1, {0}};
  OK(&t, t.p->op->bind(op, s, &bind, &l, &t.err));
  OK(&t, t.p->capture->begin(s, &t.err));
  for (int i = 0; i < 200; i++) OK(&t, t.p->op->run(l, &t.err));
  OK(&t, t.p->capture->end(s, &g, &t.err));
  float ones[4] = {1, 2, 3, 4}, got[4];
  OK(&t, t.p->copy->write(s, a, 0, ones, 16, &t.err));
  t.p->op->launch_free(l);
  t.p->op->op_free(op);
  long calls = atomic_load(&t.fake.calls);
  OK(&t, t.p->capture->replay(g, s, &t.err)); /* times 2^200 is past float32 */
  OK(&t, t.p->copy->read(s, got, a, 0, 16, &t.err));
  assert_int_equal(atomic_load(&t.fake.calls), calls); /* no allocation */
  for (int i = 0; i < 4; i++) assert_true(got[i] > 3.4e38f);
  t.p->capture->free(g);
  t.p->memory->free(t.dev[0], a);
  t.p->stream->close(s);
  region_finish(&r);
  sim_close(&t);
}

static void query_can_need_an_open_device(void **state) {
  sim_test t;
  (void)state;
  sim_open(&t, 0, "needs_open", "1", NULL);
  region_test r;
  region_init(&r);
  int32_t x = value(&r, INPUT, 4, 1, 2, 2, 2);
  node(&r, "Relu", x, -1, -1, value(&r, OUTPUT, 4, 1, 2, 2, 2));
  offers all = {.region = &r.region};
  uint64_t bytes, align;
  FAILS(&t, HEDDLE_ENEEDSOPEN, "needs_open", t.p->op->query(t.self, 0, &r.region, take_offer, &all, &t.err));
  FAILS(&t, HEDDLE_ENEEDSOPEN, "", t.p->layout->bytes(t.self, 0, &r.values[x], &bytes, &align, &t.err));
  sim_open_with(&t, 0, "seed", "2");
  OK(&t, t.p->op->query(t.self, 0, &r.region, take_offer, &all, &t.err));
  OK(&t, t.p->layout->bytes(t.self, 0, &r.values[x], &bytes, &align, &t.err));
  FAILS(&t, HEDDLE_ENEEDSOPEN, "", t.p->op->query(t.self, 1, &r.region, take_offer, &all, &t.err));
  r.nodes[0].op = "NoSuchOperator";
  FAILS(&t, HEDDLE_EUNSUPPORTED, "NoSuchOperator", t.p->op->query(t.self, 0, &r.region, take_offer, &all, &t.err));
  r.in[0][0] = 99;
  FAILS(&t, HEDDLE_EINVAL, "indices", t.p->op->query(t.self, 0, &r.region, take_offer, &all, &t.err));
  region_finish(&r);
  sim_close(&t);
}

CASES(CASE(blocked_and_plain_give_the_same_bits), CASE(reorders_go_both_ways), CASE(chains_are_proposed_and_taken),
      CASE(bind_checks_its_operands), CASE(launches_are_captured), CASE(query_can_need_an_open_device))
