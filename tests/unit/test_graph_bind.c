/* Numbers for the names of a graph's dimensions: a graph of its own, with the numbers wherever the names stood, and
 * what is refused leaves nothing behind. */
#include "cases.h"

#include "core/alloc.h"
#include "heddle/model.h"

#define GRAPH \
  "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[" \
  "{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"w\",\"inputs\":[]}," \
  "{\"op\":\"Add\",\"name\":\"y\",\"inputs\":[[0,0,0],[1,0,0]]}]," \
  "\"arg_nodes\":[0,1],\"heads\":[[2,0,0]],\"node_row_ptr\":[0,1,2,3]," \
  "\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\",\"float32\"]]," \
  "\"shape\":[\"list_shape\",[[\"n\",\"m\"],[\"m\"],[\"n\",5]]]}}"

static heddle_graph *graph(void) {
  heddle_graph *g = NULL;
  heddle_error err = {0};
  if (heddle_graph_parse(GRAPH, strlen(GRAPH), "g.json", NULL, &g, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return g;
}

static heddle_value_info input(const heddle_graph *g, uint32_t i) {
  heddle_value_info info = {.struct_size = sizeof info};
  assert_int_equal(heddle_graph_input(g, i, &info, NULL), HEDDLE_OK);
  return info;
}

static void numbers_stand_for_names(void **state) {
  (void)state;
  heddle_graph *g = graph(), *some = NULL, *all = NULL;
  heddle_error err = {0};
  assert_int_equal(heddle_graph_bind(g, (const char *const[]){"n=3"}, 1, &some, &err), HEDDLE_OK);
  assert_int_equal(heddle_graph_bind(some, (const char *const[]){"m=5"}, 1, &all, &err), HEDDLE_OK);
  assert_int_equal(input(g, 0).shape[0], -1);
  assert_string_equal(input(g, 0).symbols[0], "n");
  heddle_graph_release(g);
  assert_int_equal(input(some, 0).shape[0], 3);
  assert_string_equal(input(some, 0).symbols[1], "m");
  heddle_graph_release(some);
  assert_int_equal(input(all, 0).shape[1], 5);
  assert_int_equal(input(all, 1).shape[0], 5);
  assert_null(input(all, 0).symbols[0]);
  heddle_graph_release(all);
}

static void refuses(const char *rule, heddle_status status, const char *words) {
  heddle_graph *g = graph(), *out = g;
  heddle_error err = {0};
  size_t live = heddle__alloc_live();
  heddle_status s = heddle_graph_bind(g, &rule, 1, &out, &err);
  if (s != status || strstr(err.text, words) == NULL)
    fail_msg("%s gave %s '%s', expected '%s'", rule != NULL ? rule : "NULL", heddle_status_name(s), err.text, words);
  assert_null(out);
  assert_int_equal(heddle__alloc_live(), live);
  heddle_graph_release(g);
}

static void what_is_no_rule_is_refused(void **state) {
  (void)state;
  refuses("k=3", HEDDLE_ENOTFOUND, "g.json: dimension 'k=3': none has that name; names of dimensions: n, m");
  refuses("n", HEDDLE_EINVAL, "'n': expected NAME=NUMBER");
  refuses("n=", HEDDLE_EINVAL, "NAME=NUMBER");
  refuses("=3", HEDDLE_EINVAL, "NAME=NUMBER");
  refuses("n=-3", HEDDLE_EINVAL, "NAME=NUMBER");
  refuses("n=3x", HEDDLE_EINVAL, "NAME=NUMBER");
  refuses("n=99999999999999999999", HEDDLE_EINVAL, "NAME=NUMBER");
  refuses(NULL, HEDDLE_EINVAL, "NAME=NUMBER");
  assert_int_equal(heddle_graph_bind(NULL, NULL, 0, NULL, NULL), HEDDLE_EINVAL);
}

/* y is said to have 5 columns. */
static void models_bind_them_too(void **state) {
  (void)state;
  heddle_context *ctx = NULL;
  heddle_model *m = NULL;
  heddle_error err = {0};
  heddle_graph *g = graph();
  assert_int_equal(heddle_context_create(NULL, 0, NULL, NULL, &ctx, &err), HEDDLE_OK);
  const char *right[] = {"m=5", "n=2"}, *wrong[] = {"n=2", "q=1"};
  heddle_model_options o = {.struct_size = sizeof o, .devices = "null", .dims = wrong, .n_dims = 2};
  assert_int_equal(heddle_model_create(ctx, g, NULL, &o, &m, &err), HEDDLE_ENOTFOUND);
  assert_null(m);
  o.dims = right;
  assert_int_equal(heddle_model_create(ctx, g, NULL, &o, &m, &err), HEDDLE_OK);
  assert_int_equal(input(heddle_model_graph(m), 0).shape[0], 2);
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
}

CASES(CASE(numbers_stand_for_names), CASE(what_is_no_rule_is_refused), CASE(models_bind_them_too))
