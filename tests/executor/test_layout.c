/* tests/executor/test_layout.c: which offers the layout pass takes, by the plan: several users share a Reorder, a chain
 * pays for the Reorders at its ends, and on random graphs the sum is compared with a search over all choices. Costs are
 * the tests' own: they replace those of sim's offers. */
#include "executor/rig.h"
#include "executor/state.h"

/* What choose.c takes a Reorder of these tensors, of 512 bytes, to cost. */
#define REORDER 1551.2

enum { MOST = 12 };

/* ---- a sim whose offers cost what a test says */

static struct {
  const char *name;
  double plain, blocked;
} costs[MOST];
static int n_costs;
static heddle__tables tables;
static heddle_status (*sim_query)(heddle_pinstance *, uint32_t, const heddle_pregion *, heddle_offer_fn, void *,
                                  heddle_error *);

typedef struct passing {
  heddle_offer_fn offer;
  void *sink;
  const char *name;
} passing;

static heddle_status pass_on(void *sink, const heddle_poffer *offer, heddle_error *e) {
  const passing *p = sink;
  heddle_poffer mine = *offer;
  const bool blocked = offer->input_layouts != NULL && offer->input_layouts[0] != 0;
  for (int i = 0; i < n_costs; i++)
    if (strcmp(costs[i].name, p->name) == 0) mine.cost_ns = blocked ? costs[i].blocked : costs[i].plain;
  return p->offer(p->sink, &mine, e);
}

static heddle_status query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                           void *sink, heddle_error *e) {
  const heddle_pnode *node = region->nodes.data;
  passing p = {offer, sink, node->name != NULL ? node->name : ""};
  return sim_query(self, index, region, pass_on, &p, e);
}

typedef struct planned {
  heddle_context *ctx;
  heddle_graph *graph;
  heddle_model *model;
  heddle_executor *executor;
  const heddle__plan *plan;
} planned;

static void make(planned *p, const sketch *s) {
  heddle_setting settings[] = {{"threads", "1"}};
  heddle_device *dev = NULL;
  heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0"};
  OK(heddle_context_create(settings, 1, NULL, NULL, &p->ctx, &err));
  OK(heddle_context_find_device(p->ctx, "sim:0", &dev, &err));
  tables = *dev->t;
  sim_query = tables.op.query;
  tables.op.query = query;
  dev->t = &tables;
  p->graph = graph_of(s);
  OK(heddle_model_create(p->ctx, p->graph, NULL, &o, &p->model, &err));
  OK(heddle_executor_create(p->model, &p->executor, &err));
  p->plan = p->executor->bound->program->plan;
}

static void drop(planned *p) {
  heddle_executor_release(p->executor);
  heddle_model_release(p->model);
  heddle_graph_release(p->graph);
  heddle_context_release(p->ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static uint32_t reorders(const planned *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->plan->n_regions; i++) n += p->plan->regions[i].kind == HEDDLE__REGION_REORDER;
  return n;
}

/* Regions of nodes whose first input is not plain. */
static uint32_t blocked(const planned *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->plan->n_regions; i++) {
    const heddle__region *r = &p->plan->regions[i];
    n += r->kind == HEDDLE__REGION_OP && p->plan->values[r->inputs[0]].layout != 0;
  }
  return n;
}

static void set_cost(const char *name, double plain, double of_blocked) {
  costs[n_costs].name = name;
  costs[n_costs].plain = plain;
  costs[n_costs++].blocked = of_blocked;
}

static const char *const names[MOST] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};

/* ---- one Reorder for all */

/* So many means of one input, each 600 ns faster in blocks: one alone does not pay for the Reorder, three do. */
static void users(int count, uint32_t expected_reorders) {
  static const int64_t shape[4] = {1, 8, 4, 4};
  sketch s = {0};
  planned p;
  n_costs = 0;
  int x = put_input(&s, "x", "[1,8,4,4]", "\"float32\"");
  for (int i = 0; i < count; i++) {
    set_cost(names[i], 1000, 400);
    put_head(&s, NODE(&s, "GlobalAveragePool", names[i], NULL, x));
  }
  make(&p, &s);
  assert_int_equal(reorders(&p), expected_reorders);
  assert_int_equal(blocked(&p), expected_reorders > 0 ? (uint32_t)count : 0);
  heddle_tensor *in = floats(shape, 4, 0, 1), *out = floats((int64_t[]){1, 8, 1, 1}, 4, 0, 0);
  OK(heddle_executor_set_input(p.executor, 0, in, &err));
  OK(heddle_executor_run(p.executor, 20000 * MS, &err));
  for (uint32_t i = 0; i < (uint32_t)count; i++) {
    OK(heddle_executor_get_output(p.executor, i, out, &err));
    for (int c = 0; c < 8; c++)
      assert_float_equal(data_of(out)[c], 16 * c + 7.5, 1e-4); /* the mean of 16c ... 16c+15 */
  }
  heddle_tensor_release(in);
  heddle_tensor_release(out);
  drop(&p);
}

static void several_users_share_one_reorder(void **state) {
  (void)state;
  users(1, 0);
  users(2, 0);
  users(3, 1);
  users(4, 1);
}

/* One of the users has no gain in it: it stays plain, the others share the Reorder; and where it would lose too much by
 * taking the others' layout it does not. */
static void a_user_that_would_lose_stays_plain(void **state) {
  (void)state;
  sketch s = {0};
  planned p;
  n_costs = 0;
  int x = put_input(&s, "x", "[1,8,4,4]", "\"float32\"");
  for (int i = 0; i < 5; i++) {
    set_cost(names[i], 1000, i == 2 ? 5000 : 400);
    put_head(&s, NODE(&s, "GlobalAveragePool", names[i], NULL, x));
  }
  make(&p, &s);
  assert_int_equal(reorders(&p), 1);
  assert_int_equal(blocked(&p), 4);
  drop(&p);
}

/* ---- the ends of a chain */

static void chain(int count, uint32_t expected_reorders) {
  sketch s = {0};
  planned p;
  n_costs = 0;
  int at = put_input(&s, "x", "[1,8,4,4]", "\"float32\"");
  for (int i = 0; i < count; i++) {
    set_cost(names[i], 1000, 400);
    at = NODE(&s, "Relu", names[i], NULL, at);
  }
  put_head(&s, at);
  make(&p, &s);
  assert_int_equal(reorders(&p), expected_reorders);
  assert_int_equal(blocked(&p), expected_reorders > 0 ? (uint32_t)count : 0);
  drop(&p);
}

static void a_chain_pays_for_its_ends_together(void **state) {
  (void)state;
  chain(5, 0); /* 5 * 600 < 2 * 1551 */
  chain(6, 2);
}

/* ---- random graphs, against all choices */

typedef struct dag {
  int n, from[MOST][2]; /* -1: the graph's input */
  bool head[MOST];
  double cost[MOST][2];
} dag;

static uint64_t seed;

static int below(int n) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((seed >> 33) % (uint64_t)n);
}

static void sketch_random(sketch *s, dag *d) {
  int id[MOST];
  *d = (dag){.n = 3 + below(MOST - 3)};
  n_costs = 0;
  int x = put_input(s, "x", "[1,8,4,4]", "\"float32\"");
  for (int i = 0; i < d->n; i++) {
    for (int k = 0; k < 2; k++) d->from[i][k] = below(4) == 0 ? -1 : i - 1 - below(i < 3 ? i + 1 : 4);
    for (int k = 0; k < 2; k++) d->from[i][k] = d->from[i][k] < 0 ? -1 : d->from[i][k];
    d->cost[i][0] = 100 + below(3000);
    d->cost[i][1] = 100 + below(3000);
    set_cost(names[i], d->cost[i][0], d->cost[i][1]);
    id[i] = NODE(s, "Add", names[i], NULL, d->from[i][0] < 0 ? x : id[d->from[i][0]],
                 d->from[i][1] < 0 ? x : id[d->from[i][1]]);
    d->head[i] = i == d->n - 1 || below(5) == 0;
  }
  for (int i = 0; i < d->n; i++) {
    bool used = d->head[i];
    for (int k = i + 1; k < d->n; k++) used = used || d->from[k][0] == i || d->from[k][1] == i;
    d->head[i] = !used || d->head[i];
    if (d->head[i]) put_head(s, id[i]);
  }
}

/* The sum for a choice, bit i of which says whether node i is blocked. */
static double sum_of(const dag *d, unsigned choice) {
  double sum = 0;
  for (int v = -1; v < d->n; v++) {
    const unsigned mine = v >= 0 ? choice >> v & 1 : 0;
    bool other = v >= 0 && mine == 1 && d->head[v];
    for (int i = v + 1; i < d->n; i++)
      for (int k = 0; k < 2; k++) other = other || (d->from[i][k] == v && (choice >> i & 1) != mine);
    sum += (v >= 0 ? d->cost[v][mine] : 0) + (other ? REORDER : 0);
  }
  return sum;
}

static unsigned choice_of(const planned *p, const dag *d) {
  unsigned choice = 0;
  for (uint32_t i = 0; i < p->plan->n_regions; i++) {
    const heddle__region *r = &p->plan->regions[i];
    for (int k = 0; k < d->n; k++)
      if (strcmp(r->label, names[k]) == 0 && p->plan->values[r->outputs[0]].layout != 0) choice |= 1U << k;
  }
  return choice;
}

/* Nearly always the best there is, never far from it. */
static void random_graphs_come_near_the_best_choice(void **state) {
  (void)state;
  enum { GRAPHS = 300 };
  int best_found = 0;
  for (int i = 0; i < GRAPHS; i++) {
    sketch s = {0};
    dag d;
    planned p;
    seed = (uint64_t)i + 1;
    sketch_random(&s, &d);
    make(&p, &s);
    const unsigned choice = choice_of(&p, &d);
    const double got = sum_of(&d, choice);
    double best = got, offers = 0;
    for (unsigned c = 0; c < 1U << d.n; c++) {
      const double sum = sum_of(&d, c);
      if (sum < best) best = sum;
    }
    for (int k = 0; k < d.n; k++) offers += d.cost[k][choice >> k & 1];
    assert_float_equal(offers + REORDER * reorders(&p), got, 0.5); /* each Reorder is made once */
    if (got > 1.08 * best) fail_msg("graph %d: %g ns, where %g is possible", i, got, best);
    best_found += got <= best + 0.5;
    drop(&p);
  }
  if (best_found < GRAPHS * 97 / 100) fail_msg("the best choice was found for %d of %d graphs", best_found, GRAPHS);
}

CASES(CASE(several_users_share_one_reorder), CASE(a_user_that_would_lose_stays_plain),
      CASE(a_chain_pays_for_its_ends_together), CASE(random_graphs_come_near_the_best_choice))
