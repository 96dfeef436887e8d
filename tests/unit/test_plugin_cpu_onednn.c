/* The cpu plugin's layouts and its offers that go through oneDNN: against loops written out here. Skipped in a build
 * without oneDNN. */
#include "op_case.h"

enum { OFFERS = 16 };

/* What a query offered. */
typedef struct offers {
  uint32_t count, n_inputs;
  heddle_layout in[OFFERS][OP_VALUES], out[OFFERS];
  uint64_t workspace[OFFERS];
  double cost[OFFERS];
} offers;

static heddle_status take(void *sink, const heddle_poffer *offer, heddle_error *err) {
  offers *o = sink;
  (void)err;
  assert_true(o->count < OFFERS);
  for (uint32_t i = 0; i < o->n_inputs; i++)
    o->in[o->count][i] = offer->input_layouts != NULL ? offer->input_layouts[i] : 0;
  o->out[o->count] = offer->output_layouts != NULL ? offer->output_layouts[0] : 0;
  o->cost[o->count] = offer->cost_ns;
  o->workspace[o->count++] = offer->workspace_bytes;
  return HEDDLE_OK;
}

/* False where the build has no oneDNN. */
static bool open_device(fake_device *d, const char *setting) {
  fake_device_open_with(d, "cpu", setting);
  if (d->plugin->layout != NULL) return true;
  fake_device_close(d);
  return false;
}

#define OPEN_OR_SKIP(d, setting) \
  do { \
    if (!open_device(d, setting)) SKIP("built without oneDNN"); \
  } while (0)

/* A layout that holds float32 in bfloat16. */
static bool is_bf16(fake_device *d, heddle_layout layout) {
  char name[64];
  assert_int_equal(d->plugin->layout->describe(d->self, 0, layout, name, sizeof name, &d->err), HEDDLE_OK);
  return strstr(name, ":bf16") != NULL;
}

/* A value in a layout: bytes of its own. */
typedef struct packed {
  void *bytes;
  uint64_t size;
  heddle_pslice slice;
} packed;

static packed make_packed(fake_device *d, op_case *c, int32_t value, heddle_layout layout, bool fill) {
  heddle_pvalue v = c->values[value].v;
  packed p = {NULL, 0, {NULL, 0, 0}};
  uint64_t align = 0, count = 1;
  for (int32_t i = 0; i < v.ndim; i++) count *= (uint64_t)v.shape[i];
  v.layout = layout;
  v.data = c->data[value];
  v.data_bytes = count * sizeof(float);
  assert_int_equal(d->plugin->layout->bytes(d->self, 0, &v, &p.size, &align, &d->err), HEDDLE_OK);
  assert_true(align > 0 && align <= 64 && p.size >= v.data_bytes / (is_bf16(d, layout) ? 2 : 1));
  p.bytes = aligned_alloc(64, (p.size + 63) / 64 * 64);
  assert_non_null(p.bytes);
  memset(p.bytes, 0xff, p.size);
  if (fill && d->plugin->layout->pack(d->self, 0, &v, p.bytes, p.size, &d->err) != HEDDLE_OK)
    fail_msg("%s", d->err.text);
  assert_int_equal(d->plugin->memory->import_host(d->dev, p.bytes, p.size, &p.slice.buffer, &d->err), HEDDLE_OK);
  p.slice.bytes = p.size;
  return p;
}

static void drop_packed(fake_device *d, packed *p) {
  d->plugin->memory->free(d->dev, p->slice.buffer);
  free(p->bytes);
}

/* Runs a prepared region once. */
static void run_on(fake_device *d, heddle_pop *op, const heddle_pslice *in, uint32_t n, const heddle_pslice *out,
                   uint64_t workspace) {
  heddle_plaunch *launch = NULL;
  heddle_pslice scratch = {NULL, 0, workspace};
  heddle_pmemory_desc desc = {.struct_size = sizeof desc, .bytes = workspace, .align = 64};
  if (workspace > 0) assert_int_equal(d->plugin->memory->alloc(d->dev, &desc, &scratch.buffer, &d->err), HEDDLE_OK);
  heddle_pbind bind = {sizeof bind, 0, in, out, n, 1, scratch};
  if (d->plugin->op->bind(op, d->stream, &bind, &launch, &d->err) != HEDDLE_OK) fail_msg("%s", d->err.text);
  assert_int_equal(d->plugin->op->run(launch, &d->err), HEDDLE_OK);
  d->plugin->op->launch_free(launch);
  d->plugin->memory->free(d->dev, scratch.buffer);
}

/* A value back in rows, through the Reorder that the planner would put there. */
static void read_back(fake_device *d, op_case *c, int32_t value, heddle_layout layout, const packed *from, float *to) {
  op_case r;
  offers o = {.n_inputs = 1};
  heddle_pop *op = NULL;
  op_shape shape = {c->values[value].v.ndim, {0}};
  memcpy(shape.dims, c->shapes[value], sizeof shape.dims);
  if (layout == 0) {
    memcpy(to, from->bytes, from->size);
    return;
  }
  op_case_init(&r, "Reorder");
  r.node.domain = "heddle";
  op_input(&r, F32, shape);
  void *plain = op_output(&r, F32, shape);
  r.values[0].v.layout = layout;
  if (d->plugin->op->query(d->self, 0, &r.region, take, &o, &d->err) != HEDDLE_OK) fail_msg("%s", d->err.text);
  assert_int_equal(d->plugin->op->prepare(d->dev, &r.region, 0, &op, &d->err), HEDDLE_OK);
  heddle_pslice out = op_slice(d, &r, 1);
  run_on(d, op, &from->slice, 1, &out, o.workspace[0]);
  memcpy(to, plain, out.bytes);
  d->plugin->memory->free(d->dev, out.buffer);
  d->plugin->op->op_free(op);
  op_case_free(&r);
}

typedef struct shape_of_conv {
  int n, c, o, h, k, groups, stride, dilation, pad;
} shape_of_conv;

static void make_conv(op_case *c, const shape_of_conv *s, bool constant) {
  const int out = (s->h + 2 * s->pad - (s->k - 1) * s->dilation - 1) / s->stride + 1;
  op_case_init(c, "Conv");
  op_attr_int(c, "group", s->groups);
  op_attr_ints(c, "strides", 2, (int64_t[]){s->stride, s->stride});
  op_attr_ints(c, "dilations", 2, (int64_t[]){s->dilation, s->dilation});
  op_attr_ints(c, "pads", 4, (int64_t[]){s->pad, s->pad, s->pad, s->pad});
  op_fill(op_input(c, F32, SHAPE(4, s->n, s->c, s->h, s->h)), (size_t)(s->n * s->c * s->h * s->h), 1);
  op_fill(op_input(c, F32, SHAPE(4, s->o, s->c / s->groups, s->k, s->k)),
          (size_t)(s->o * s->c / s->groups * s->k * s->k), 2);
  op_fill(op_input(c, F32, SHAPE(1, s->o)), (size_t)s->o, 3);
  op_output(c, F32, SHAPE(4, s->n, s->o, out, out));
  for (uint32_t i = 1; i < 3 && constant; i++) {
    c->values[i].v.data = c->data[i];
    c->values[i].v.data_bytes =
        op_count(
            (op_shape){c->values[i].v.ndim, {c->shapes[i][0], c->shapes[i][1], c->shapes[i][2], c->shapes[i][3]}}) *
        sizeof(float);
  }
}

/* Element (n, o, y, x) in double, and the sum of magnitudes. */
static double conv_at(const op_case *c, const shape_of_conv *s, int n, int o, int y, int x, double *magnitude) {
  const float *in = c->data[0], *w = c->data[1], *b = c->data[2];
  const int each = s->c / s->groups, group = o / (s->o / s->groups);
  double sum = b[o];
  *magnitude = fabs(sum);
  for (int i = 0; i < each; i++)
    for (int ky = 0; ky < s->k; ky++)
      for (int kx = 0; kx < s->k; kx++) {
        const int iy = y * s->stride + ky * s->dilation - s->pad, ix = x * s->stride + kx * s->dilation - s->pad;
        if (iy < 0 || ix < 0 || iy >= s->h || ix >= s->h) continue;
        const double p = (double)in[((n * s->c + group * each + i) * s->h + iy) * s->h + ix] *
                         (double)w[((o * each + i) * s->k + ky) * s->k + kx];
        sum += p;
        *magnitude += fabs(p);
      }
  return sum;
}

/* Every offer of the convolution, on so many threads, with flags of the region. Gives how many offers had a layout that
 * is not plain, or, with FAST, how many read bfloat16. */
static uint32_t check_conv_as(fake_device *d, const shape_of_conv *s, uint32_t threads, uint32_t flags) {
  op_case c;
  offers o = {.n_inputs = 3};
  uint32_t found = 0;
  make_conv(&c, s, true);
  c.region.flags = flags;
  d->host.threads = threads;
  if (d->plugin->op->query(d->self, 0, &c.region, take, &o, &d->err) != HEDDLE_OK) fail_msg("%s", d->err.text);
  const int out = (int)c.shapes[3][2];
  const size_t count = (size_t)s->n * (size_t)s->o * (size_t)out * (size_t)out;
  float *got = malloc(count * sizeof *got), *again = malloc(count * sizeof *again);
  assert_true(got != NULL && again != NULL);
  for (uint32_t k = 0; k < o.count; k++) {
    packed in[3], result = make_packed(d, &c, 3, o.out[k], false);
    heddle_pop *op = NULL;
    heddle_pslice slices[3];
    for (int i = 0; i < 3; i++) {
      in[i] = make_packed(d, &c, i, o.in[k][i], true);
      slices[i] = in[i].slice;
      c.values[i].v.layout = o.in[k][i];
    }
    c.values[3].v.layout = o.out[k];
    if (d->plugin->op->prepare(d->dev, &c.region, k, &op, &d->err) != HEDDLE_OK) fail_msg("%s", d->err.text);
    for (int backwards = 0; backwards < 2; backwards++) {
      d->host.backwards = backwards != 0;
      memset(result.bytes, 0xff, result.size);
      run_on(d, op, slices, 3, &result.slice, o.workspace[k]);
      read_back(d, &c, 3, o.out[k], &result, backwards != 0 ? again : got);
    }
    d->host.backwards = false;
    assert_memory_equal(got, again, count * sizeof *got);
    for (size_t at = 0; at < count; at += 7) {
      double magnitude;
      const int x = (int)at % out, y = (int)at / out % out, ch = (int)at / out / out % s->o,
                n = (int)at / out / out / s->o;
      const double want = conv_at(&c, s, n, ch, y, x, &magnitude);
      const double rounding = is_bf16(d, o.in[k][0]) ? 3 * 0x1p15 : 0; /* of two operands and the result, 2^-9 each */
      op_close(want, got[at], magnitude, rounding + 4 + s->k * s->k * s->c / s->groups / 8.0, "conv", at);
    }
    found += (flags & HEDDLE_REGION_FAST) != 0 ? is_bf16(d, o.in[k][0]) : o.in[k][0] != 0 || o.out[k] != 0;
    assert_true((flags & HEDDLE_REGION_FAST) != 0 || (!is_bf16(d, o.in[k][0]) && !is_bf16(d, o.in[k][1])));
    for (int i = 0; i < 3; i++) {
      drop_packed(d, &in[i]);
      c.values[i].v.layout = 0;
    }
    c.values[3].v.layout = 0;
    drop_packed(d, &result);
    d->plugin->op->op_free(op);
  }
  free(got);
  free(again);
  op_case_free(&c);
  d->host.threads = 1;
  return found;
}

static uint32_t check_conv(fake_device *d, const shape_of_conv *s, uint32_t threads) {
  return check_conv_as(d, s, threads, 0);
}

static void convolves_in_every_layout(void **state) {
  static const shape_of_conv shapes[] = {
      {1, 64, 64, 28, 3, 1, 1, 1, 1},  {1, 3, 32, 33, 3, 1, 2, 1, 1},  {2, 20, 36, 17, 5, 1, 1, 2, 2},
      {1, 64, 64, 20, 3, 64, 1, 1, 1}, {1, 32, 64, 15, 3, 4, 2, 1, 0}, {3, 48, 130, 14, 1, 1, 1, 1, 0},
  };
  fake_device d;
  uint32_t blocked = 0;
  (void)state;
  OPEN_OR_SKIP(&d, "auto");
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    blocked += check_conv(&d, &shapes[i], 1);
    check_conv(&d, &shapes[i], 3);
  }
  assert_true(blocked > 0);
  fake_device_close(&d);
}

/* In bfloat16, with results of both kinds, where the CPU has it; else in float32. */
static void convolves_fast_where_that_is_allowed(void **state) {
  static const shape_of_conv shapes[] = {
      {1, 64, 64, 28, 3, 1, 1, 1, 1}, {1, 3, 32, 33, 3, 1, 2, 1, 1}, {1, 64, 64, 20, 3, 64, 1, 1, 1}};
  fake_device d;
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  (void)state;
  OPEN_OR_SKIP(&d, "auto");
  assert_int_equal(d.plugin->device_describe(d.self, 0, &desc, &d.err), HEDDLE_OK);
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (uint32_t threads = 1; threads < 4; threads += 2) {
      const uint32_t found = check_conv_as(&d, &shapes[i], threads, HEDDLE_REGION_FAST);
      assert_true(strstr(desc.driver, "bfloat16") != NULL ? found >= 2 : found == 0);
    }
  fake_device_close(&d);
}

static void uses_the_host_s_threads(void **state) {
  const shape_of_conv big = {1, 64, 64, 28, 3, 1, 1, 1, 1}, small = {1, 16, 16, 7, 3, 1, 1, 1, 1};
  fake_device d;
  (void)state;
  OPEN_OR_SKIP(&d, "auto");
  check_conv(&d, &small, 2);
  assert_int_equal(atomic_load(&d.host.parallel_calls), 0); /* too little work to wake a thread */
  check_conv(&d, &big, 2);
  assert_true(atomic_load(&d.host.parallel_calls) > 0);
  fake_device_close(&d);
}

/* The calling thread's count of OpenMP threads is its own. */
static void leaves_openmp_as_it_was(void **state) {
  fake_device d;
  int (*get)(void);
  void (*set)(int);
  (void)state;
  OPEN_OR_SKIP(&d, "always");
  void *library = dlopen("libdnnl.so.3", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  assert_non_null(library);
  void *symbol = dlsym(library, "omp_get_max_threads");
  memcpy(&get, &symbol, sizeof get);
  symbol = dlsym(library, "omp_set_num_threads");
  memcpy(&set, &symbol, sizeof set);
  set(7);
  const shape_of_conv s = {1, 16, 32, 9, 3, 1, 1, 1, 1};
  check_conv(&d, &s, 2);
  assert_int_equal(get(), 7);
  dlclose(library);
  fake_device_close(&d);
}

static void packs_as_its_names_say(void **state) {
  fake_device d;
  op_case c;
  offers o = {.n_inputs = 1};
  bool last = false, blocked = false;
  enum { C = 20, H = 3, W = 5 };
  (void)state;
  OPEN_OR_SKIP(&d, "always");
  op_case_init(&c, "Relu");
  op_fill(op_input(&c, F32, SHAPE(4, 2, C, H, W)), 2 * C * H * W, 5);
  op_output(&c, F32, SHAPE(4, 2, C, H, W));
  assert_int_equal(d.plugin->op->query(d.self, 0, &c.region, take, &o, &d.err), HEDDLE_OK);
  for (uint32_t k = 0; k < o.count; k++) {
    char name[32];
    assert_int_equal(d.plugin->layout->describe(d.self, 0, o.in[k][0], name, sizeof name, &d.err), HEDDLE_OK);
    packed p = make_packed(&d, &c, 0, o.in[k][0], true);
    const float *x = c.data[0], *got = p.bytes;
    const int block = strcmp(name, "acdb") == 0 ? C : strcmp(name, "aBcd16b") == 0 ? 16 : 8;
    const int blocks = (C + block - 1) / block;
    last = last || strcmp(name, "acdb") == 0;
    blocked = blocked || strcmp(name, "aBcd16b") == 0 || strcmp(name, "aBcd8b") == 0;
    for (int n = 0; n < 2 && strcmp(name, "plain") != 0; n++)
      for (int ch = 0; ch < blocks * block; ch++)
        for (int i = 0; i < H * W; i++) {
          const float want = ch < C ? x[(n * C + ch) * H * W + i] : 0.0f;
          const float have = got[((n * blocks + ch / block) * H * W + i) * block + ch % block];
          if (want < have || want > have) fail_msg("%s: channel %d at %d: %g instead of %g", name, ch, i, have, want);
        }
    drop_packed(&d, &p);
  }
  assert_true(last && blocked);
  op_case_free(&c);
  fake_device_close(&d);
}

static void refuses_foreign_tokens(void **state) {
  fake_device d;
  op_case c;
  uint64_t bytes = 0, align = 0;
  char name[32];
  (void)state;
  OPEN_OR_SKIP(&d, "auto");
  op_case_init(&c, "Relu");
  op_input(&c, F32, SHAPE(4, 1, 16, 4, 4));
  op_output(&c, F32, SHAPE(4, 1, 16, 4, 4));
  heddle_pvalue v = c.values[0].v;
  v.layout = 0x1234;
  assert_int_equal(d.plugin->layout->bytes(d.self, 0, &v, &bytes, &align, &d.err), HEDDLE_EINVAL);
  v.layout = UINT64_C(1) << 63 | 5;
  assert_int_equal(d.plugin->layout->bytes(d.self, 0, &v, &bytes, &align, &d.err), HEDDLE_EINVAL);
  assert_int_equal(d.plugin->layout->describe(d.self, 0, v.layout, name, sizeof name, &d.err), HEDDLE_EINVAL);
  assert_int_equal(d.plugin->layout->bytes(d.self, 1, &v, &bytes, &align, &d.err), HEDDLE_ENODEV);
  v.layout = 0;
  v.data = c.data[0];
  v.data_bytes = 1024;
  assert_int_equal(d.plugin->layout->pack(d.self, 0, &v, c.data[1], 1000, &d.err), HEDDLE_EINVAL);
  assert_int_equal(d.plugin->layout->pack(d.self, 0, &v, c.data[1], 1024, &d.err), HEDDLE_OK);
  assert_memory_equal(c.data[0], c.data[1], 1024);
  op_case_free(&c);
  fake_device_close(&d);
}

static void small_ones_are_left_alone(void **state) {
  const shape_of_conv tiny = {1, 1, 4, 5, 3, 1, 1, 1, 1};
  fake_device d;
  op_case c;
  offers o = {.n_inputs = 3};
  (void)state;
  OPEN_OR_SKIP(&d, "auto");
  make_conv(&c, &tiny, true);
  assert_int_equal(d.plugin->op->query(d.self, 0, &c.region, take, &o, &d.err), HEDDLE_OK);
  assert_true(o.count == 1 && o.in[0][0] == 0 && o.in[0][1] == 0 && o.out[0] == 0);
  op_case_free(&c);
  fake_device_close(&d);
}

/* Sixteen channels are one block, which cannot be cut; rows of channels that come last can. */
static void costs_count_the_threads(void **state) {
  const shape_of_conv few = {1, 64, 16, 56, 7, 1, 1, 1, 3}; /* a kernel that Winograd does not take */
  fake_device d;
  op_case c;
  offers o[2] = {{.n_inputs = 3}, {.n_inputs = 3}};
  bool last = false, blocked = false;
  (void)state;
  OPEN_OR_SKIP(&d, "auto");
  make_conv(&c, &few, true);
  for (uint32_t k = 0; k < 2; k++) {
    d.host.threads = k + 1;
    assert_int_equal(d.plugin->op->query(d.self, 0, &c.region, take, &o[k], &d.err), HEDDLE_OK);
  }
  assert_int_equal(o[0].count, o[1].count);
  for (uint32_t i = 0; i < o[0].count; i++) {
    char name[64];
    assert_int_equal(d.plugin->layout->describe(d.self, 0, o[0].out[i], name, sizeof name, &d.err), HEDDLE_OK);
    const double ratio = o[1].cost[i] / o[0].cost[i];
    if (strcmp(name, "acdb") == 0) {
      last = true;
      assert_true(ratio > 0.45 && ratio < 0.6);
    } else if (name[0] == 'a' && name[1] == 'B') {
      blocked = true;
      assert_true(ratio > 0.99 && ratio < 1.01);
    }
  }
  d.host.threads = 1;
  op_case_free(&c);
  fake_device_close(&d);
  if (!last || !blocked) SKIP("oneDNN offers no pair of layouts to compare here");
}

/* Fails each allocation of the host's in turn. */
static void memory_may_run_out(void **state) {
  const shape_of_conv s = {1, 16, 16, 9, 3, 1, 1, 1, 1};
  (void)state;
  for (long n = 1;; n++) {
    fake_device d;
    op_case c;
    offers o = {.n_inputs = 3};
    heddle_pop *op = NULL;
    OPEN_OR_SKIP(&d, "always");
    make_conv(&c, &s, true);
    d.host.fail_at = atomic_load(&d.host.calls) + n;
    heddle_status status = d.plugin->op->query(d.self, 0, &c.region, take, &o, &d.err);
    for (int i = 0; i < 3 && status == HEDDLE_OK; i++) c.values[i].v.layout = o.in[0][i];
    c.values[3].v.layout = o.out[0];
    if (status == HEDDLE_OK) status = d.plugin->op->prepare(d.dev, &c.region, 0, &op, &d.err);
    d.host.fail_at = 0;
    d.plugin->op->op_free(op);
    op_case_free(&c);
    fake_device_close(&d);
    if (status == HEDDLE_OK) {
      assert_true(n > 2);
      return;
    }
    assert_int_equal(status, HEDDLE_ENOMEM);
  }
}

CASES(CASE(convolves_in_every_layout), CASE(convolves_fast_where_that_is_allowed), CASE(uses_the_host_s_threads),
      CASE(leaves_openmp_as_it_was), CASE(packs_as_its_names_say), CASE(refuses_foreign_tokens),
      CASE(small_ones_are_left_alone), CASE(costs_count_the_threads), CASE(memory_may_run_out))
