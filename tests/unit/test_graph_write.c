/* Writing graphs: what was read is written without loss of meaning, what was written is read again and written the same,
 * and floats are as short as they can be. */
#include "cases.h"

#include <float.h>
#include <math.h>

#include "core/alloc.h"
#include "graph/graph.h"
#include "graph/json_out.h"

static heddle_graph *parse(const char *text, size_t bytes) {
  heddle_graph *g;
  heddle_error err;
  if (heddle_graph_parse(text, bytes, "g.json", NULL, &g, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  return g;
}

static char *written(const heddle_graph *g) {
  char *text;
  size_t bytes;
  heddle_error err;
  assert_int_equal(heddle_graph_text(g, &text, &bytes, &err), HEDDLE_OK);
  assert_int_equal(strlen(text), bytes);
  return text;
}

/* Reads a file of the repository, writes it, and reads and writes that again. */
static char *twice(const char *path) {
  char full[512];
  heddle_graph *g;
  heddle_error err;
  snprintf(full, sizeof full, "%s/%s", HEDDLE_TEST_SOURCE, path);
  if (heddle_graph_load(full, NULL, &g, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  char *first = written(g);
  heddle_graph_release(g);
  g = parse(first, strlen(first));
  char *second = written(g);
  heddle_graph_release(g);
  assert_string_equal(first, second);
  heddle_free(second);
  return first;
}

/* A graph of TVM's has the same JSON after it was written; the order of keys and "attr" for "attrs" do not matter. */
static void keeps_a_graph_of_tvm(void **state) {
  (void)state;
  static const char *const files[] = {"base",
                                      "control_deps_nonempty",
                                      "graph_attr_extra_list_int",
                                      "storage_scope_global",
                                      "metadata_last",
                                      "top_key_unknown",
                                      "node_key_unknown",
                                      "node_attr_extra",
                                      "null_node_with_attrs",
                                      "num_inputs_wrong",
                                      "storage_id_gap",
                                      "no_device_index",
                                      "graph_attr_extra_size_t",
                                      "unicode_escape_name"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    char path[160], full[400];
    snprintf(path, sizeof path, "tests/data/graph_json_variants/%s.json", files[i]);
    snprintf(full, sizeof full, "%s/%s", HEDDLE_TEST_SOURCE, path);
    char *text = twice(path);
    json_t *before = json_load_file(full, 0, NULL), *after = json_loads(text, 0, NULL);
    if (before == NULL || !json_equal(before, after)) fail_msg("%s: written as\n%s", path, text);
    json_decref(before);
    json_decref(after);
    heddle_free(text);
  }
}

static void keeps_a_graph_of_our_own(void **state) {
  (void)state;
  char *text = twice("examples/digits/digits.json");
  json_t *before = json_load_file(HEDDLE_TEST_SOURCE "/examples/digits/digits.json", 0, NULL);
  json_t *after = json_loads(text, 0, NULL);
  assert_true(json_equal(before, after));
  json_decref(before);
  json_decref(after);
  heddle_free(text);
}

static void keeps_every_kind_of_value(void **state) {
  (void)state;
  static const char text[] =
      "{\"heddle\":{\"version\":1,\"opset\":16,\"note\":[1,{\"a\":0.5}]},\"nodes\":["
      "{\"op\":\"null\",\"name\":\"x \\\"\\\\\\n\\u0007\\u00e9\",\"inputs\":[]},"
      "{\"op\":\"null\",\"name\":\"w\",\"inputs\":[]},"
      "{\"op\":\"Gemm\",\"name\":\"g\",\"attrs\":{\"alpha\":0.1,\"beta\":\"-inf\",\"transB\":1},"
      "\"inputs\":[[0,0,2],[1,0,0],[-1,0,0]],\"stream\":0,\"kept\":null}],"
      "\"arg_nodes\":[1,0],\"heads\":[[2,0,7]],\"node_row_ptr\":[0,1,2,3],\"attrs\":{"
      "\"dltype\":[\"list_str\",[\"bool\",\"float32x4\",null]],"
      "\"shape\":[\"list_shape\",[[\"n\",null,3],[],null]],\"mine\":[\"list_int\",[1]]},\"zz\":true}";
  heddle_graph *g = parse(text, sizeof text - 1);
  char *first = written(g);
  heddle_graph_release(g);
  static const char *const parts[] = {"\"note\": [1, {\"a\": 0.5}]",
                                      "\"x \\\"\\\\\\n\\u0007\xc3\xa9\"",
                                      "\"alpha\": 0.1",
                                      "\"beta\": \"-inf\"",
                                      "\"stream\": 0",
                                      "\"kept\": null",
                                      "[0, 0, 2]",
                                      "[-1, 0, 0]",
                                      "\"arg_nodes\": [1, 0]",
                                      "[[2, 0, 7]]",
                                      "\"uint1\"",
                                      "\"float32x4\", null",
                                      "[[\"n\", null, 3], [], null]",
                                      "\"mine\": [\"list_int\", [1]]",
                                      "\"zz\": true"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (strstr(first, parts[i]) == NULL) fail_msg("no %s in\n%s", parts[i], first);
  g = parse(first, strlen(first));
  char *second = written(g);
  assert_string_equal(first, second);
  heddle_graph_release(g);
  heddle_free(first);
  heddle_free(second);
}

static void writes_the_shortest_float(void **state) {
  (void)state;
  static const struct {
    double x;
    const char *text;
  } all[] = {{0.1, "0.1"},
             {1.0, "1.0"},
             {-0.0, "-0.0"},
             {1e300, "1e+300"},
             {0.3, "0.3"},
             {INFINITY, "\"inf\""},
             {-INFINITY, "\"-inf\""},
             {NAN, "\"nan\""},
             {123456789.0, "123456789.0"}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    heddle__sheet out = {0};
    heddle__out_float(&out, all[i].x);
    assert_string_equal(out.text, all[i].text);
    heddle__free(out.text);
  }
  uint64_t seed = 1;
  for (int i = 0; i < 20000; i++) { /* any bits come back as they were */
    double x;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t bits = seed ^ seed >> 29;
    memcpy(&x, &bits, sizeof x);
    if (!isfinite(x)) continue;
    heddle__sheet out = {0};
    heddle__out_float(&out, x);
    json_t *value = json_loads(out.text, JSON_DECODE_ANY, NULL);
    if (!json_is_real(value) || json_real_value(value) != x) fail_msg("%a became %s", x, out.text);
    json_decref(value);
    heddle__free(out.text);
  }
}

static void saves_a_file(void **state) {
  (void)state;
  heddle_error err;
  heddle_graph *g, *again;
  assert_int_equal(heddle_graph_load(HEDDLE_TEST_SOURCE "/examples/digits/digits.json", NULL, &g, &err), HEDDLE_OK);
  char path[] = "/tmp/heddle-graph-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(heddle_graph_save(g, path, &err), HEDDLE_OK);
  assert_int_equal(heddle_graph_load(path, NULL, &again, &err), HEDDLE_OK);
  assert_int_equal(heddle_graph_node_count(again), heddle_graph_node_count(g));
  assert_int_equal(heddle_graph_save(g, "/no/such/folder/g.json", &err), HEDDLE_EIO);
  assert_non_null(strstr(err.text, "/no/such/folder/g.json"));
  remove(path);
  heddle_graph_release(g);
  heddle_graph_release(again);
}

static void survives_failed_allocations(void **state) {
  (void)state;
  heddle_error err;
  heddle_graph *g;
  assert_int_equal(heddle_graph_load(HEDDLE_TEST_SOURCE "/examples/digits/digits.json", NULL, &g, &err), HEDDLE_OK);
  size_t live = heddle__alloc_live();
  heddle_status s = HEDDLE_ENOMEM;
  for (uint64_t n = 1; s != HEDDLE_OK; n++) {
    char *text = NULL;
    heddle__alloc_fail_at(n);
    s = heddle_graph_text(g, &text, NULL, &err);
    heddle__alloc_fail_at(0);
    assert_int_equal(s, text != NULL ? HEDDLE_OK : HEDDLE_ENOMEM);
    heddle_free(text);
    assert_int_equal(heddle__alloc_live(), live);
  }
  heddle_graph_release(g);
}

CASES(CASE(keeps_a_graph_of_tvm), CASE(keeps_a_graph_of_our_own), CASE(keeps_every_kind_of_value),
      CASE(writes_the_shortest_float), CASE(saves_a_file), CASE(survives_failed_allocations))
