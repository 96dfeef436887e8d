/* tests/executor/test_partition.c: what plugins propose, and what becomes of it: wrong shapes are refused with a
 * message, random proposals end as a search over the whole graph decides, and large graphs are planned in few visits.
 * The proposals are the tests' own: they replace sim's op.partition. */
#include "executor/rig.h"
#include "executor/state.h"

enum { MOST = 64 };

/* ---- a sim that proposes what a test says */

static const char *proposals; /* names of nodes: "a b|c d e" */
static char said[1 << 13];    /* the log's lines about the plan, as many as fit */
static heddle__tables tables;

static void listen(void *user, int32_t level, const char *component, const char *text) {
  (void)user;
  (void)level;
  size_t used = strlen(said);
  if (strcmp(component, "plan") == 0) snprintf(said + used, sizeof said - used, "%s\n", text);
}

static uint32_t node_named(const heddle_pregion *region, const char *name) {
  const heddle_pnode *nodes = region->nodes.data;
  for (uint32_t i = 0; i < region->nodes.count; i++)
    if (strcmp(nodes[i].name, name) == 0) return i;
  return 12345;
}

static heddle_status propose_names(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                   heddle_propose_fn propose, void *sink, heddle_error *e) {
  (void)self;
  (void)index;
  char text[1024], *rest = NULL;
  snprintf(text, sizeof text, "%s", proposals);
  for (char *one = strtok_r(text, "|", &rest); one != NULL; one = strtok_r(NULL, "|", &rest)) {
    uint32_t nodes[MOST], n = 0;
    char *more = NULL;
    for (char *name = strtok_r(one, " ", &more); name != NULL; name = strtok_r(NULL, " ", &more))
      nodes[n++] = node_named(region, name);
    heddle_status s = propose(sink, nodes, n, e);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* As sim's, but for a region of several nodes, one of which is called "alone". */
static heddle_status (*sim_query)(heddle_pinstance *, uint32_t, const heddle_pregion *, heddle_offer_fn, void *,
                                  heddle_error *);
static heddle_status query(heddle_pinstance *self, uint32_t index, const heddle_pregion *region, heddle_offer_fn offer,
                           void *sink, heddle_error *e) {
  if (region->nodes.count > 1 && node_named(region, "alone") < MOST) return HEDDLE_EUNSUPPORTED;
  return sim_query(self, index, region, offer, sink, e);
}

typedef heddle_status (*partition_fn)(heddle_pinstance *, uint32_t, const heddle_pregion *, heddle_propose_fn, void *,
                                      heddle_error *);

/* partition NULL: sim's own. */
static heddle_context *start(partition_fn partition) {
  heddle_setting settings[] = {{"sim.fuse", "1"}, {"threads", "1"}};
  heddle_context *ctx = NULL;
  heddle_device *dev = NULL;
  said[0] = '\0';
  OK(heddle_context_create(settings, 2, listen, NULL, &ctx, &err));
  OK(heddle_context_find_device(ctx, "sim:0", &dev, &err));
  tables = *dev->t;
  sim_query = tables.op.query;
  tables.op.query = query;
  if (partition != NULL) tables.op.partition = partition;
  dev->t = &tables;
  return ctx;
}

typedef struct planned {
  heddle_graph *graph;
  heddle_model *model;
  heddle_executor *executor;
  const heddle__plan *plan;
} planned;

static planned plan_of(heddle_context *ctx, const sketch *s) {
  planned p = {.graph = graph_of(s)};
  heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0"};
  OK(heddle_model_create(ctx, p.graph, NULL, &o, &p.model, &err));
  OK(heddle_executor_create(p.model, &p.executor, &err));
  p.plan = p.executor->bound->program->plan;
  return p;
}

static void drop(planned *p) {
  heddle_executor_release(p->executor);
  heddle_model_release(p->model);
  heddle_graph_release(p->graph);
}

/* ---- wrong shapes */

/* x -> a -> b -> d, a -> c -> d -> e, and beside it, from y: p -> q, r -> s, p -> s, r -> q, and s -> t. */
static void sketch_shapes(sketch *s, const char *c_name) {
  int x = put_input(s, "x", "[2]", "\"float32\""), y = put_input(s, "y", "[2]", "\"float32\"");
  int a = NODE(s, "Relu", "a", NULL, x), b = NODE(s, "Neg", "b", NULL, a), c = NODE(s, "Abs", c_name, NULL, a);
  int d = NODE(s, "Sub", "d", NULL, b, c), p = NODE(s, "Neg", "p", NULL, y), r = NODE(s, "Abs", "r", NULL, y);
  int q = NODE(s, "Sub", "q", NULL, p, r), last = NODE(s, "Add", "s", NULL, r, p);
  put_head(s, NODE(s, "Relu", "e", NULL, d));
  put_head(s, q);
  put_head(s, NODE(s, "Neg", "t", NULL, last));
}

/* The regions of more than one node, in order, or what is said where one is refused. Whatever was joined, the numbers
 * are the same: x = [-1, 3] and y = [2, -5] give e = relu(-relu(x) - |relu(x)|), q = -y - |y|, t = -(|y| - y). */
static void shape(const char *c_name, const char *wanted, const char *regions, const char *words) {
  sketch s = {0};
  sketch_shapes(&s, c_name);
  proposals = wanted;
  heddle_context *ctx = start(propose_names);
  planned p = plan_of(ctx, &s);
  char got[512] = "";
  for (uint32_t i = 0; i < p.plan->n_regions; i++)
    if (p.plan->regions[i].n_nodes > 1) add_text(got, sizeof got, "%s%s", got[0] ? " " : "", p.plan->regions[i].label);
  if (strcmp(got, regions) != 0) fail_msg("'%s' became '%s', not '%s': %s", wanted, got, regions, said);
  if (words != NULL ? strstr(said, words) == NULL : said[0] != '\0') fail_msg("'%s': it says '%s'", wanted, said);
  static const int64_t two[1] = {2};
  static const float expected[3][2] = {{0, 0}, {-4, 0}, {0, -10}};
  heddle_tensor *x = floats(two, 1, -1, 4), *y = floats(two, 1, 2, -7), *out = floats(two, 1, 0, 0);
  OK(heddle_executor_set_input(p.executor, 0, x, &err));
  OK(heddle_executor_set_input(p.executor, 1, y, &err));
  OK(heddle_executor_run(p.executor, 20000 * MS, &err));
  for (uint32_t i = 0; i < 3; i++) {
    OK(heddle_executor_get_output(p.executor, i, out, &err));
    for (int k = 0; k < 2; k++)
      if (data_of(out)[k] != expected[i][k]) fail_msg("'%s': output %u is %g", wanted, i, (double)data_of(out)[k]);
  }
  heddle_tensor_release(x);
  heddle_tensor_release(y);
  heddle_tensor_release(out);
  drop(&p);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void good_shapes_are_taken(void **state) {
  (void)state;
  shape("c", "a b", "a+b", NULL);
  shape("c", "e d", "d+e", NULL);
  shape("c", "d c a b", "a+b+c+d", NULL);
  shape("c", "e d|a c b|t s r", "a+b+c d+e r+s+t", NULL);
  shape("c", "p q r s t", "p+r+q+s+t", NULL);
}

static void wrong_shapes_are_refused(void **state) {
  (void)state;
  shape("c", "a d", "", "is not connected");
  shape("c", "a b e p", "", "is not connected");
  shape("c", "a b d", "", "a path leaves and enters again");
  shape("c", "a b d e", "", "a path leaves and enters again");
  shape("c", "a b|b d", "a+b", "overlaps another");
  shape("c", "a b|b a", "a+b", "overlaps another");
  shape("c", "a b a", "", "names a node twice");
  shape("c", "a nobody", "", "names a node it was not shown");
  shape("alone", "a alone|d b", "b+d", "it then would not run");
  shape("c", "p s|r q", "p+s",
        "a path leaves and enters again"); /* each alone is convex; together they wait in a ring */
  shape("c", "r q|p s t", "r+q", "a path leaves and enters again");
}

/* ---- random proposals */

typedef struct dag {
  int n;
  bool edge[MOST][MOST]; /* from a lower number to a higher one */
  int group[MOST];
  int size[MOST];
} dag;

static uint64_t seed;

static int below(int n) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((seed >> 33) % (uint64_t)n);
}

/* By taking away groups that nothing leads to, again and again. */
static bool acyclic(const dag *d, const int *group) {
  bool gone[MOST] = {false};
  for (int left = d->n, before = left + 1; left < before;) {
    before = left;
    for (int q = 0; q < d->n; q++) {
      bool led_to = false, lives = false;
      for (int j = 0; j < d->n; j++) {
        if (group[j] != q || gone[j]) continue;
        lives = true;
        for (int i = 0; i < d->n; i++) led_to = led_to || (d->edge[i][j] && !gone[i] && group[i] != q);
      }
      for (int j = 0; lives && !led_to && j < d->n; j++)
        if (group[j] == q) gone[j] = true, left--;
    }
    if (left == 0) return true;
  }
  return false;
}

static bool in_one_piece(const dag *d, const int *nodes, int count) {
  bool reached[8] = {true};
  for (int turn = 0; turn < count; turn++)
    for (int i = 0; i < count; i++)
      for (int j = 0; j < count; j++)
        if (reached[i] && (d->edge[nodes[i]][nodes[j]] || d->edge[nodes[j]][nodes[i]])) reached[j] = true;
  for (int i = 0; i < count; i++)
    if (!reached[i]) return false;
  return true;
}

/* Does to the dag's groups what the proposal should do. */
static void expect(dag *d, const int *nodes, int count) {
  int group[MOST];
  memcpy(group, d->group, sizeof group);
  for (int i = 0; i < count; i++) {
    if (d->size[d->group[nodes[i]]] != 1) return;
    for (int k = 0; k < i; k++)
      if (nodes[i] == nodes[k]) return;
    group[nodes[i]] = d->group[nodes[0]];
  }
  if (!in_one_piece(d, nodes, count) || !acyclic(d, group)) return;
  memcpy(d->group, group, sizeof group);
  d->size[d->group[nodes[0]]] = count;
}

static void sketch_random(sketch *s, dag *d) {
  int id[MOST];
  char name[16];
  memset(d, 0, sizeof *d);
  d->n = 6 + below(14);
  int x = put_input(s, "x", "[2]", "\"float32\"");
  for (int j = 0; j < d->n; j++) {
    int from[2];
    for (int k = 0; k < 2; k++) {
      int far = j < 12 ? j : 12, i = j - 1 - (far > 0 ? below(far) : 0);
      from[k] = i < 0 || below(6) == 0 ? x : id[i];
      if (from[k] != x) d->edge[i][j] = true;
    }
    snprintf(name, sizeof name, "n%d", j);
    put_head(s, id[j] = NODE(s, "Add", name, NULL, from[0], from[1]));
    d->group[j] = j;
    d->size[j] = 1;
  }
}

/* A walk from some node, in either direction, that sometimes jumps. */
static int pick(const dag *d, int *nodes) {
  int count = 2 + below(below(3) + 1), at = nodes[0] = below(d->n);
  for (int i = 1; i < count; i++) {
    int next = below(d->n);
    for (int tries = 0; tries < 40 && below(30) != 0 && !(d->edge[at][next] || d->edge[next][at]); tries++)
      next = below(d->n);
    nodes[i] = at = next;
  }
  return count;
}

static void random_proposals_end_as_a_search_says(void **state) {
  (void)state;
  int joined = 0, refused = 0;
  for (int turn = 0; turn < 600; turn++) {
    seed = (uint64_t)turn;
    sketch s = {0};
    dag d;
    char text[1024] = "";
    sketch_random(&s, &d);
    for (int i = 0; i < 12; i++) {
      int nodes[8], count = pick(&d, nodes);
      for (int k = 0; k < count; k++) add_text(text, sizeof text, "%sn%d", k > 0 ? " " : "|", nodes[k]);
      expect(&d, nodes, count);
    }
    proposals = text;
    heddle_context *ctx = start(propose_names);
    planned p = plan_of(ctx, &s);
    for (uint32_t i = 0; i < p.plan->n_regions; i++) {
      const heddle__region *r = &p.plan->regions[i];
      int q = d.group[r->nodes[0] - 1]; /* node 0 is x */
      bool good = (int)r->n_nodes == d.size[q];
      for (uint32_t k = 0; k < r->n_nodes; k++) good = good && d.group[r->nodes[k] - 1] == q;
      if (!good) fail_msg("seed %d, %s: region %s: %s", turn, text, r->label, said);
      joined += r->n_nodes > 1;
    }
    for (const char *at = said; (at = strstr(at, "enters again")) != NULL; at++) refused++;
    drop(&p);
    heddle_context_release(ctx);
  }
  if (joined < 400 || refused < 100) fail_msg("%d joined, %d refused: too few to mean something", joined, refused);
}

/* ---- large graphs */

/* All products first, and then each with a sum and a Relu behind it that need the one before, as in an unrolled
 * recurrent network. Gives how many edges there are. */
static uint32_t sketch_unrolled(sketch *s, int length) {
  int *id = calloc((size_t)length, sizeof *id), x = put_input(s, "x", "[2,2]", "\"float32\""), h = x;
  char name[16];
  for (int i = 0; i < length; i++) {
    snprintf(name, sizeof name, "p%d", i);
    id[i] = NODE(s, "MatMul", name, NULL, x, x);
  }
  for (int i = 0; i < length; i++) {
    snprintf(name, sizeof name, "a%d", i);
    h = NODE(s, "Add", name, NULL, id[i], h);
    snprintf(name, sizeof name, "r%d", i);
    h = NODE(s, "Relu", name, NULL, h);
  }
  put_head(s, h);
  free(id);
  return (uint32_t)(3 * length - 1);
}

/* Sim's own chains: no edge is followed twice. */
static void chains_of_a_large_graph_follow_each_edge_once(void **state) {
  (void)state;
  static sketch s;
  const int length = 700;
  uint32_t edges = sketch_unrolled(&s, length);
  heddle_context *ctx = start(NULL);
  planned p = plan_of(ctx, &s);
  assert_int_equal(p.plan->n_regions, length);
  for (uint32_t i = 0; i < p.plan->n_regions; i++) assert_int_equal(p.plan->regions[i].n_nodes, 3);
  if (p.plan->proposal_visits == 0 || p.plan->proposal_visits > edges)
    fail_msg("%llu visits for %u edges", (unsigned long long)p.plan->proposal_visits, (unsigned)edges);
  drop(&p);
  heddle_context_release(ctx);
}

/* Eight lanes of nodes, row by row; each node needs what is above it and what is two above in the next lane. */
enum { LANES = 8, ROWS_OF_ONE = 4 };

static void sketch_lanes(sketch *s, int rows) {
  int *id = calloc((size_t)rows * LANES, sizeof *id), x = put_input(s, "x", "[2]", "\"float32\"");
  char name[16];
  for (int i = 0; i < rows * LANES; i++) {
    int other = i < 2 * LANES ? x : id[i - 2 * LANES - i % LANES + (i + 1) % LANES];
    snprintf(name, sizeof name, "n%d", i);
    id[i] = NODE(s, "Add", name, NULL, i < LANES ? x : id[i - LANES], other);
  }
  for (int i = 0; i < LANES; i++) put_head(s, id[rows * LANES - LANES + i]);
  free(id);
}

/* Four nodes of a lane; each such group needs that of the next lane, so that the last of the eight is refused. */
static heddle_status propose_lanes(heddle_pinstance *self, uint32_t index, const heddle_pregion *region,
                                   heddle_propose_fn propose, void *sink, heddle_error *e) {
  (void)self;
  (void)index;
  for (uint32_t row = 0; row + ROWS_OF_ONE <= region->nodes.count / LANES; row += ROWS_OF_ONE)
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint32_t nodes[ROWS_OF_ONE];
      for (uint32_t i = 0; i < ROWS_OF_ONE; i++) nodes[i] = (row + i) * LANES + lane;
      heddle_status s = propose(sink, nodes, ROWS_OF_ONE, e);
      if (s != HEDDLE_OK) return s;
    }
  return HEDDLE_OK;
}

static uint64_t visits_of_lanes(int rows) {
  static sketch s;
  memset(&s, 0, sizeof s);
  sketch_lanes(&s, rows);
  heddle_context *ctx = start(propose_lanes);
  planned p = plan_of(ctx, &s);
  uint64_t visits = p.plan->proposal_visits;
  int blocks = rows / ROWS_OF_ONE, refused = 0;
  assert_int_equal(p.plan->n_regions, blocks * (LANES - 1 + ROWS_OF_ONE));
  for (const char *at = said; (at = strstr(at, "enters again")) != NULL; at++) refused++;
  assert_int_equal(refused, blocks);
  drop(&p);
  heddle_context_release(ctx);
  return visits;
}

static void visits_grow_with_the_graph(void **state) {
  (void)state;
  uint64_t small = visits_of_lanes(40), large = visits_of_lanes(160);
  if (large > 5 * small)
    fail_msg("%llu visits, and %llu for 4 times as many nodes", (unsigned long long)small, (unsigned long long)large);
}

/* Every allocation fails once while proposals are heard. */
static void memory_runs_out_among_proposals(void **state) {
  (void)state;
  sketch s = {0};
  sketch_shapes(&s, "c");
  proposals = "e d|a c b|t s r|p q";
  heddle_context *ctx = start(propose_names);
  heddle_graph *g = graph_of(&s);
  size_t before = 0;
  heddle_status status = HEDDLE_ENOMEM;
  unsigned failures = 0;
  /* 0: none fails, and the context has its tables. */
  for (uint64_t n = 0; (n <= 1 || status != HEDDLE_OK) && n < 2000; n++) {
    heddle_model *m = NULL;
    char *text = NULL;
    heddle_model_options o = {.struct_size = sizeof o, .devices = "sim:0"};
    OK(heddle_model_create(ctx, g, NULL, &o, &m, &err));
    heddle__alloc_fail_at(n);
    status = heddle_model_explain(m, HEDDLE_EXPLAIN_JSON, NULL, NULL, 0, &text, &err);
    heddle__alloc_fail_at(0);
    if (status != HEDDLE_OK) assert_int_equal(status, HEDDLE_ENOMEM);
    failures += status != HEDDLE_OK;
    heddle_free(text);
    heddle_model_release(m);
    if (n == 0) before = heddle__alloc_live();
    assert_int_equal(heddle__alloc_live(), before);
  }
  assert_int_equal(status, HEDDLE_OK);
  assert_true(failures > 10);
  heddle_graph_release(g);
  heddle_context_release(ctx);
}

CASES(CASE(good_shapes_are_taken), CASE(wrong_shapes_are_refused), CASE(random_proposals_end_as_a_search_says),
      CASE(chains_of_a_large_graph_follow_each_edge_once), CASE(visits_grow_with_the_graph),
      CASE(memory_runs_out_among_proposals))
