/* Reading graphs: TVM's and Heddle's own, what the questions of the public API answer, and what malformed or hostile
 * text gets: an error that names file and place, and nothing leaked. */
#include "cases.h"

#include <locale.h>
#include <unistd.h>

#include "core/alloc.h"
#include "graph/graph.h"

#define TVM_ATTRS "\"attrs\":{\"func_name\":\"f\",\"num_inputs\":\"1\",\"num_outputs\":\"1\",\"flatten_data\":\"0\"}"
#define TVM_COLUMNS \
  "\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"bool\"]],\"shape\":[\"list_shape\",[[2,3],[]]]," \
  "\"storage_id\":[\"list_int\",[0,1]],\"device_index\":[\"list_int\",[1,1]]}"
#define TVM_GRAPH \
  "{\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}," \
  "{\"op\":\"tvm_op\",\"name\":\"y\"," TVM_ATTRS ",\"inputs\":[[0,0,0]]}]," \
  "\"arg_nodes\":[0],\"heads\":[[1,0,0]]," TVM_COLUMNS ",\"node_row_ptr\":[0,1,2]}"

#define OWN_GRAPH \
  "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[" \
  "{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},{\"op\":\"null\",\"name\":\"w\",\"inputs\":[]}," \
  "{\"op\":\"Gemm\",\"name\":\"y\",\"attrs\":{\"alpha\":\"inf\",\"beta\":2,\"transB\":1}," \
  "\"inputs\":[[0,0,0],[1,0,0],[-1,0,0]],\"device\":\"sim:1\",\"stream\":3}," \
  "{\"op\":\"Relu\",\"name\":\"y\",\"inputs\":[[2,0,0]]}]," \
  "\"arg_nodes\":[0,1],\"heads\":[[3,0,0],[2,0,0]],\"node_row_ptr\":[0,1,2,3,4]," \
  "\"attrs\":{\"dltype\":[\"list_str\",[\"float32\",\"float32\",null,null]]," \
  "\"shape\":[\"list_shape\",[[\"batch\",3],[5,3],null,null]]}}"

/* The text with the first `from` replaced; freed by the caller. */
static char *changed(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  if (at == NULL) fail_msg("no '%s' in the graph", from);
  char *out = malloc(strlen(text) + strlen(to) + 1);
  sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  return out;
}

static void reads(const char *text) {
  heddle_graph *g = NULL;
  heddle_error err = {0};
  if (heddle_graph_parse(text, strlen(text), "g.json", NULL, &g, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  heddle_graph_release(g);
}

/* Refused with this status, naming the file and saying this, and nothing is left behind. */
static void refuses(const char *text, heddle_status status, const char *words) {
  heddle_graph *g = NULL;
  heddle_error err = {0};
  size_t live = heddle__alloc_live();
  heddle_status s = heddle_graph_parse(text, strlen(text), "g.json", NULL, &g, &err);
  if (s != status || strstr(err.text, words) == NULL || strncmp(err.text, "g.json:", 7) != 0)
    fail_msg("%.300s\ngave %s '%s', expected %s with '%s'", text, heddle_status_name(s), err.text,
             heddle_status_name(status), words);
  assert_null(g);
  assert_int_equal(err.status, status);
  assert_int_equal(heddle__alloc_live(), live);
}

typedef struct change {
  const char *from, *to;
  heddle_status status; /* HEDDLE_OK: it is read */
  const char *words;
} change;

static void check_changes(const char *text, const change *all, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char *other = changed(text, all[i].from, all[i].to);
    if (all[i].status == HEDDLE_OK) reads(other);
    else refuses(other, all[i].status, all[i].words);
    free(other);
  }
}
#define CHECK_CHANGES(text, all) check_changes(text, all, sizeof all / sizeof all[0])

static void reads_a_graph_of_tvm(void **state) {
  (void)state;
  heddle_graph *g;
  heddle_error err;
  heddle_node_info node = {.struct_size = sizeof node};
  heddle_value_info value = {.struct_size = sizeof value};
  assert_int_equal(heddle_graph_parse(TVM_GRAPH, strlen(TVM_GRAPH), NULL, NULL, &g, &err), HEDDLE_OK);
  assert_int_equal(heddle_graph_node_count(g), 2);
  assert_int_equal(heddle_graph_node(g, 1, &node, &err), HEDDLE_OK);
  assert_string_equal(node.op, "tvm_op");
  assert_string_equal(node.func_name, "f");
  assert_int_equal(node.n_inputs, 1);
  assert_int_equal(node.inputs[0], 0);
  assert_int_equal(heddle_graph_node(g, 2, &node, &err), HEDDLE_ENOTFOUND);
  assert_int_equal(heddle_graph_input_count(g), 1);
  assert_int_equal(heddle_graph_input(g, 0, &value, &err), HEDDLE_OK);
  assert_string_equal(value.name, "x");
  assert_int_equal(value.ndim, 2);
  assert_int_equal(value.shape[1], 3);
  assert_null(value.symbols[0]);
  assert_int_equal(heddle_graph_output_count(g), 1);
  assert_int_equal(heddle_graph_output(g, 0, &value, &err), HEDDLE_OK);
  assert_int_equal(value.ndim, 0);
  assert_int_equal(value.dtype.code, HEDDLE_DTYPE_BOOL);
  assert_int_equal(value.dtype.bits, 8);
  assert_int_equal(heddle_graph_output(g, 1, &value, &err), HEDDLE_ENOTFOUND);
  assert_int_equal(heddle__graph_arg(g, "x"), 0);
  assert_int_equal(heddle__graph_arg(g, "y"), -1);
  assert_ptr_equal(heddle_graph_retain(g), g);
  heddle_graph_release(g);
  heddle_graph_release(g);
  heddle_graph_release(NULL);
}

static void reads_a_graph_of_our_own(void **state) {
  (void)state;
  heddle_graph *g;
  heddle_error err;
  uint32_t id;
  heddle_node_info node = {.struct_size = sizeof node};
  heddle_value_info value = {.struct_size = sizeof value};
  if (heddle_graph_parse(OWN_GRAPH, strlen(OWN_GRAPH), "own.json", NULL, &g, &err) != HEDDLE_OK)
    fail_msg("%s", err.text);
  assert_int_equal(heddle_graph_node(g, 2, &node, &err), HEDDLE_OK);
  assert_string_equal(node.op, "Gemm");
  assert_string_equal(node.device, "sim:1");
  assert_int_equal(node.inputs[4], UINT32_MAX);
  assert_int_equal(g->nodes[2].stream, 3);
  assert_int_equal(g->nodes[2].n_attrs, 3);
  assert_int_equal(g->nodes[2].attrs[1].kind, HEDDLE_ATTR_FLOAT);
  assert_true(*(const double *)g->nodes[2].attrs[1].data == 2.0);
  assert_int_equal(heddle_graph_find_node(g, "w", &id, &err), HEDDLE_OK);
  assert_int_equal(id, 1);
  assert_int_equal(heddle_graph_find_node(g, "z", &id, &err), HEDDLE_ENOTFOUND);
  assert_int_equal(heddle_graph_find_node(g, "y", &id, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "2, 3"));
  assert_int_equal(heddle_graph_input(g, 0, &value, &err), HEDDLE_OK);
  assert_int_equal(value.shape[0], -1);
  assert_string_equal(value.symbols[0], "batch");
  assert_int_equal(heddle_graph_output(g, 0, &value, &err), HEDDLE_OK);
  assert_int_equal(value.ndim, UINT32_MAX);
  assert_int_equal(value.dtype.code, HEDDLE_DTYPE_FLOAT); /* the file gives none: it is that of input 0 */
  assert_int_equal(value.dtype.bits, 32);
  heddle_graph_release(g);
}

/* An answer is cut to the struct of an older program. */
static void answers_a_shorter_struct(void **state) {
  (void)state;
  heddle_graph *g;
  heddle_error err;
  heddle_value_info value;
  memset(&value, 0xAA, sizeof value);
  value.struct_size = offsetof(heddle_value_info, ndim);
  assert_int_equal(heddle_graph_parse(TVM_GRAPH, strlen(TVM_GRAPH), NULL, NULL, &g, &err), HEDDLE_OK);
  assert_int_equal(heddle_graph_input(g, 0, &value, &err), HEDDLE_OK);
  assert_string_equal(value.name, "x");
  assert_int_equal(value.ndim, 0xAAAAAAAA);
  value.struct_size = 0;
  assert_int_equal(heddle_graph_input(g, 0, &value, &err), HEDDLE_EINVAL);
  heddle_graph_release(g);
}

static void refuses_malformed_graphs_of_tvm(void **state) {
  (void)state;
  static const change all[] = {
      {"{\"nodes\"", "[{\"nodes\"", HEDDLE_EFORMAT, "g.json:1:"},
      {"\"nodes\":[{", "\"nodes\":[],\"other\":[{", HEDDLE_EFORMAT, "at least one node"},
      {"\"nodes\":[", "\"nodes\":[1,", HEDDLE_EFORMAT, "node_row_ptr: 3 members for 3 nodes"},
      {"\"node_row_ptr\":[0,1,2]", "\"node_row_ptr\":[0,2,1]", HEDDLE_EFORMAT, "node_row_ptr[2]"},
      {"\"node_row_ptr\":[0,1,2]", "\"node_row_ptr\":[1,1,2]", HEDDLE_EFORMAT, "node_row_ptr[0]"},
      {"\"node_row_ptr\":[0,1,2]", "\"node_row_ptr\":[0,1,1]", HEDDLE_EFORMAT, "0 outputs"},
      {"\"node_row_ptr\":[0,1,2]", "\"node_row_ptr\":[0,0,2]", HEDDLE_EFORMAT, "gives it 0 outputs"},
      {"\"node_row_ptr\":[0,1,2]", "\"node_row_ptr\":[0,1,3]", HEDDLE_EFORMAT, "num_outputs is 1"},
      {"\"node_row_ptr\":[0,1,2]", "\"node_row_ptr\":[0,1,1152921504606846976]", HEDDLE_EFORMAT, "node_row_ptr[2]"},
      {"\"num_outputs\":\"1\"", "\"num_outputs\":\"1152921504606846976\"", HEDDLE_EFORMAT, "num_outputs"},
      {"\"num_outputs\":\"1\"", "\"num_outputs\":\"99999999999999999999999\"", HEDDLE_EFORMAT, "num_outputs"},
      {"\"num_outputs\":\"1\"", "\"num_outputs\":\" 1\"", HEDDLE_EFORMAT, "num_outputs"},
      {"\"func_name\":\"f\"", "\"func_name\":\"\"", HEDDLE_EFORMAT, "func_name is empty"},
      {"\"func_name\":\"f\"", "\"func_name\":7", HEDDLE_EFORMAT, "nodes[1].func_name"},
      {"\"flatten_data\":\"0\"", "\"flatten_data\":\"2\"", HEDDLE_EFORMAT, "flatten_data"},
      {"\"func_name\":\"f\"", "\"func_name\":\"__copy\"", HEDDLE_EFORMAT, "hands on 24 bytes as 1"},
      {"\"inputs\":[[0,0,0]]", "\"inputs\":[[1,0,0]]", HEDDLE_EFORMAT, "cycle"},
      {"\"inputs\":[[0,0,0]]", "\"inputs\":[[2,0,0]]", HEDDLE_EFORMAT,
       "nodes[1].inputs[0]: expected a node from 0 to 1"},
      {"\"inputs\":[[0,0,0]]", "\"inputs\":[[-1,0,0]]", HEDDLE_EFORMAT, "nodes[1].inputs[0]"},
      {"\"inputs\":[[0,0,0]]", "\"inputs\":[[0,1,0]]", HEDDLE_EFORMAT, "an output from 0 to 0"},
      {"\"inputs\":[[0,0,0]]", "\"inputs\":[[0,0,0,0]]", HEDDLE_EFORMAT, "[node, output, version]"},
      {"\"inputs\":[[0,0,0]]", "\"inputs\":[[0]]", HEDDLE_EFORMAT, "[node, output, version]"},
      {"\"inputs\":[[0,0,0]]", "\"inputs\":[0]", HEDDLE_EFORMAT, "[node, output, version]"},
      {"\"inputs\":[[0,0,0]]", "\"inputs\":[[0,0,1.5]]", HEDDLE_EFORMAT, "[node, output, version]"},
      {"\"inputs\":[]", "\"inputs\":[[0,0,0]]", HEDDLE_EFORMAT, "none of a null node"},
      {"\"arg_nodes\":[0]", "\"arg_nodes\":[1]", HEDDLE_EFORMAT, "expected a null node"},
      {"\"arg_nodes\":[0]", "\"arg_nodes\":[0,0]", HEDDLE_EFORMAT, "a second time"},
      {"\"arg_nodes\":[0]", "\"arg_nodes\":[0,0,0]", HEDDLE_EFORMAT, "3 members"},
      {"\"arg_nodes\":[0]", "\"arg_nodes\":[]", HEDDLE_EFORMAT, "not in arg_nodes"},
      {"\"heads\":[[1,0,0]]", "\"heads\":[]", HEDDLE_EFORMAT, "at least one output"},
      {"\"heads\":[[1,0,0]]", "\"heads\":[[1,1,0]]", HEDDLE_EFORMAT, "heads[0]"},
      {"\"name\":\"x\"", "\"name\":\"x\",\"name\":\"x\"", HEDDLE_EFORMAT, "duplicate"},
      {"\"name\":\"x\"", "\"name\":\"a\\u0000b\"", HEDDLE_EFORMAT, "g.json:1:"},
      {"\"name\":\"x\"", "\"name\":\"\xff\"", HEDDLE_EFORMAT, "g.json:1:"},
      {"\"name\":\"x\"", "\"name\":null", HEDDLE_EFORMAT, "nodes[0].name"},
      {"\"bool\"", "\"int4\"", HEDDLE_EUNSUPPORTED, "attrs.dltype[1][1]: int4"},
      {"\"bool\"", "\"handle\"", HEDDLE_EUNSUPPORTED, "handle64"},
      {"\"bool\"", "\"float33\"", HEDDLE_EUNSUPPORTED, "float33"},
      {"\"bool\"", "\"float032\"", HEDDLE_EFORMAT, "float032"},
      {"\"bool\"", "\"float32x\"", HEDDLE_EFORMAT, "float32x"},
      {"\"bool\"", "\"float32x65536\"", HEDDLE_EFORMAT, "float32x65536"},
      {"\"bool\"", "\"float999999999999\"", HEDDLE_EFORMAT, "dtype"},
      {"\"bool\"", "\"custom[posit]16\"", HEDDLE_EUNSUPPORTED, "custom"},
      {"\"bool\"", "\"\"", HEDDLE_EFORMAT, "dtype ''"},
      {"\"bool\"", "null", HEDDLE_EFORMAT, "attrs.dltype[1][1]"},
      {"\"bool\"]", "\"bool\",\"int8\"]", HEDDLE_EFORMAT, "attrs.dltype: 3 members, expected 2"},
      {"[2,3]", "[2,-3]", HEDDLE_EFORMAT, "attrs.shape[1][0][1]"},
      {"[2,3]", "[2,\"n\"]", HEDDLE_EFORMAT, "attrs.shape[1][0][1]"},
      {"[2,3]", "null", HEDDLE_EFORMAT, "attrs.shape[1][0]"},
      {"[2,3]", "[4611686018427387904,4]", HEDDLE_ELIMIT, "node 0 'x'"},
      {"[2,3]", "[99999999999999999999,4]", HEDDLE_EFORMAT, "64 bits"},
      {"[2,3]", "[1e400]", HEDDLE_EFORMAT, "64 bits"},
      {"[2,3]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", HEDDLE_ELIMIT, "33 dimensions"},
      {"\"list_str\"", "\"list_int\"", HEDDLE_EFORMAT, "attrs.dltype[0]"},
      {"[\"list_int\",[0,1]]", "[\"list_int\",[0,1],3]", HEDDLE_EFORMAT, "attrs.storage_id"},
      {"[\"list_int\",[0,1]]", "[\"list_int\",[0,-1]]", HEDDLE_EFORMAT, "attrs.storage_id[1][1]"},
      {"[\"list_int\",[0,1]]", "[\"list_int\",[0,4294967296]]", HEDDLE_EFORMAT, "attrs.storage_id[1][1]"},
      {"[\"list_int\",[0,1]]", "[\"list_int\",[0,2147483647]]", HEDDLE_OK, ""},
      {"\"device_index\":[\"list_int\",[1,1]]", "\"storage_scope\":[\"list_str\",[\"\",3]]", HEDDLE_EFORMAT,
       "attrs.storage_scope[1][1]"},
      {"\"op\":\"tvm_op\"", "\"op\":\"tvm_op\",\"control_deps\":[2]", HEDDLE_EFORMAT, "control_deps[0]"},
      {"\"op\":\"tvm_op\"", "\"op\":\"tvm_op\",\"attr\":{}", HEDDLE_EFORMAT, "both attr and attrs"},
      {"\"op\":\"tvm_op\"", "\"op\":\"Conv\"", HEDDLE_EUNSUPPORTED, "1 'y' (Conv)"},
  };
  CHECK_CHANGES(TVM_GRAPH, all);
}

static void refuses_malformed_graphs_of_our_own(void **state) {
  (void)state;
  static const change all[] = {
      {"\"version\":1", "\"version\":2", HEDDLE_EUNSUPPORTED, "version 2"},
      {"\"version\":1", "\"version\":\"1\"", HEDDLE_EFORMAT, "version"},
      {"\"opset\":17", "\"opset\":29", HEDDLE_EUNSUPPORTED, "opset 29"},
      {"\"opset\":17", "\"opset\":12", HEDDLE_EUNSUPPORTED, "opset 12"},
      {"{\"version\":1,\"opset\":17}", "[]", HEDDLE_EFORMAT, "\"heddle\""},
      {"\"Relu\"", "\"ReLU\"", HEDDLE_EUNSUPPORTED, "3 'y' (ReLU)"},
      {"\"op\":\"Relu\"", "\"op\":\"Relu\",\"domain\":\"com.acme\"", HEDDLE_EUNSUPPORTED, "com.acme"},
      {"\"op\":\"Relu\"", "\"op\":\"Relu\",\"domain\":\"ai.onnx\"", HEDDLE_OK, ""},
      {"\"op\":\"Relu\"", "\"op\":\"Reorder\",\"domain\":\"heddle\"", HEDDLE_EUNSUPPORTED, "Reorder"},
      {"\"alpha\"", "\"gamma\"", HEDDLE_EFORMAT, "no attribute 'gamma'"},
      {"\"inf\"", "\"infinite\"", HEDDLE_EFORMAT, "attribute 'alpha'"},
      {"\"inf\"", "[1.0]", HEDDLE_EFORMAT, "attribute 'alpha'"},
      {"\"transB\":1", "\"transB\":1.0", HEDDLE_EFORMAT, "attribute 'transB': expected an integer"},
      {"[1,0,0],[-1,0,0]", "[-1,0,0]", HEDDLE_EFORMAT, "input 1 is absent"},
      {"[1,0,0],[-1,0,0]", "[1,0,0],[-1,0,0],[0,0,0]", HEDDLE_EFORMAT, "4 inputs, expected 2 to 3"},
      {"[1,0,0],[-1,0,0]", "[1,0,0],[-1,1,0]", HEDDLE_EFORMAT, "inputs[2]"},
      {"\"stream\":3", "\"stream\":-1", HEDDLE_EFORMAT, "stream"},
      {"\"sim:1\"", "1", HEDDLE_EFORMAT, "nodes[2].device"},
      {"\"float32\",\"float32\",null", "null,\"float32\",null", HEDDLE_EFORMAT, "node 0 'x' (null)"},
      {"[5,3],null,null", "null,null,null", HEDDLE_OK, ""},
      {"[\"batch\",3]", "[\"\",3]", HEDDLE_EFORMAT, "the name of one"},
      {"[\"batch\",3]", "[null,3]", HEDDLE_OK, ""},
      {"[\"batch\",3]", "[7,4]", HEDDLE_EFORMAT, "node 2 'y' (Gemm): input 1"},
      {"\"name\":\"w\"", "\"name\":\"x\"", HEDDLE_EFORMAT, "same name"},
  };
  CHECK_CHANGES(OWN_GRAPH, all);
}

/* What the file says of an operator's output is compared with what the operator gives. */
static void compares_given_types(void **state) {
  (void)state;
  char *known = changed(OWN_GRAPH, "[\"batch\",3]", "[7,3]");
  static const change all[] = {
      {"[5,3],null", "[5,3],[7,5]", HEDDLE_OK, ""},
      {"[5,3],null", "[5,3],[7,\"out\"]", HEDDLE_OK, ""},
      {"[5,3],null", "[5,3],[7,6]", HEDDLE_EFORMAT, "output 0 is declared float32 [7, 6], and is float32 [7, 5]"},
      {"[5,3],null", "[5,3],[7,5,1]", HEDDLE_EFORMAT, "node 2 'y' (Gemm)"},
      {"\"float32\",null", "\"float32\",\"float16\"", HEDDLE_EFORMAT, "and is float32 [7, 5]"},
  };
  CHECK_CHANGES(known, all);
  free(known);
}

static void lists_all_unknown_operators_at_once(void **state) {
  (void)state;
  enum { COUNT = 300 };
  char *text = malloc(COUNT * 200 + 1000), *at = text;
  at +=
      sprintf(at, "{\"heddle\":{\"version\":1,\"opset\":13},\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}");
  for (int i = 0; i < COUNT; i++)
    at += sprintf(at, ",{\"op\":\"Strange%d\",\"name\":\"n%d\",\"inputs\":[[0,0]],\"attrs\":{\"k\":[1,\"x\"]}}", i, i);
  at += sprintf(at, "],\"arg_nodes\":[0],\"heads\":[[1,0,0]],\"node_row_ptr\":[0");
  for (int i = 0; i <= COUNT; i++) at += sprintf(at, ",%d", i + 1);
  at += sprintf(at, "],\"attrs\":{\"dltype\":[\"list_str\",[\"int8\"");
  for (int i = 0; i < COUNT; i++) at += sprintf(at, ",null");
  at += sprintf(at, "]],\"shape\":[\"list_shape\",[[1]");
  for (int i = 0; i < COUNT; i++) at += sprintf(at, ",null");
  sprintf(at, "]]}}");
  refuses(text, HEDDLE_EUNSUPPORTED, "1 'n0' (Strange0), 2 'n1' (Strange1)");
  refuses(text, HEDDLE_EUNSUPPORTED, " more; known are Abs, Acos");
  free(text);
}

static void follows_the_metadata_rule(void **state) {
  (void)state;
  static const change all[] = {
      {"[0,1,2]}", "[0,1,2],\"metadata\":{\"a\":[]}}", HEDDLE_OK, ""},
      {"[0,1,2]}", "[0,1,2],\"metadata\":{\"a\":[]}} what follows", HEDDLE_OK, ""},
      {"[0,1,2]}", "[0,1,2],\n\"metadata\": {oops", HEDDLE_OK, ""},
      {"[0,1,2]}", "[0,1,2]} what follows", HEDDLE_EFORMAT, "text after the end"},
      {"[0,1,2]}", "[0,1,2],\"metadata\":1,\"heads\":[]}", HEDDLE_EFORMAT, "duplicate"},
      {"\"heads\"", "\"metadata\":{},\"heads\"", HEDDLE_OK, ""},
      {"\"heads\"", "\"metadata\":{oops},\"heads\"", HEDDLE_EFORMAT, "\"node_row_ptr\""},
      {"\"heads\"", "\"other\":{\"metadata\":{oops}},\"heads\"", HEDDLE_EFORMAT, "g.json:1:"},
      {"\"name\":\"x\"", "\"name\":\"metadata\"", HEDDLE_OK, ""},
  };
  CHECK_CHANGES(TVM_GRAPH, all);
}

static void keeps_its_limits(void **state) {
  (void)state;
  heddle_graph *g;
  heddle_error err;
  size_t size = strlen(TVM_GRAPH);
  heddle_read_limits limits = {.struct_size = sizeof limits, .max_bytes = 10};
  assert_int_equal(heddle_graph_parse(TVM_GRAPH, size, "g", &limits, &g, &err), HEDDLE_ELIMIT);
  limits = (heddle_read_limits){.struct_size = sizeof limits, .max_nodes = 1};
  assert_int_equal(heddle_graph_parse(TVM_GRAPH, size, "g", &limits, &g, &err), HEDDLE_ELIMIT);
  limits = (heddle_read_limits){.struct_size = sizeof limits, .max_depth = 3};
  assert_int_equal(heddle_graph_parse(TVM_GRAPH, size, "g", &limits, &g, &err), HEDDLE_ELIMIT);
  assert_non_null(strstr(err.text, "nested deeper than 3"));
  limits.struct_size = sizeof(size_t); /* an older program's, without the members */
  assert_int_equal(heddle_graph_parse(TVM_GRAPH, size, "g", &limits, &g, &err), HEDDLE_OK);
  heddle_graph_release(g);
  char *deep = malloc(2000001);
  memset(deep, '[', 2000000);
  deep[2000000] = '\0';
  refuses(deep, HEDDLE_ELIMIT, "g.json:1:65: nested deeper than 64");
  for (size_t i = 0; i < 2000000; i += 5) memcpy(deep + i, "{\"a\":", 5);
  refuses(deep, HEDDLE_ELIMIT, "nested deeper than 64");
  free(deep);
}

static void refuses_every_cut(void **state) {
  (void)state;
  size_t live = heddle__alloc_live();
  for (size_t n = 0; n < strlen(OWN_GRAPH); n++) {
    heddle_graph *g = NULL;
    heddle_error err;
    char *part = malloc(n > 0 ? n : 1); /* not terminated: a byte too far is seen by the sanitizer */
    memcpy(part, OWN_GRAPH, n);
    assert_int_equal(heddle_graph_parse(part, n, "g.json", NULL, &g, &err), HEDDLE_EFORMAT);
    assert_null(g);
    free(part);
  }
  assert_int_equal(heddle__alloc_live(), live);
}

static void survives_any_failed_allocation(void **state) {
  (void)state;
  const char *const graphs[] = {TVM_GRAPH, OWN_GRAPH};
  for (size_t i = 0; i < 2; i++) {
    size_t live = heddle__alloc_live();
    heddle_status s = HEDDLE_ENOMEM;
    int n = 0;
    while (s != HEDDLE_OK) {
      heddle_graph *g = NULL;
      heddle_error err = {0};
      heddle__alloc_fail_at((uint64_t)++n);
      s = heddle_graph_parse(graphs[i], strlen(graphs[i]), "g.json", NULL, &g, &err);
      heddle__alloc_fail_at(0);
      assert_int_equal(s, g != NULL ? HEDDLE_OK : HEDDLE_ENOMEM);
      if (g == NULL) assert_int_equal(err.status, HEDDLE_ENOMEM);
      heddle_graph_release(g);
      assert_int_equal(heddle__alloc_live(), live);
    }
    assert_true(n > 20);
  }
}

static void loads_a_file(void **state) {
  (void)state;
  heddle_graph *g;
  heddle_error err;
  assert_int_equal(heddle_graph_load("no/such/file.json", NULL, &g, &err), HEDDLE_EIO);
  assert_non_null(strstr(err.text, "no/such/file.json"));
  assert_int_equal(heddle_graph_load("/", NULL, &g, &err), HEDDLE_EIO);
  assert_int_equal(heddle_graph_load(HEDDLE_TEST_SOURCE "/tests/data/graph_json_variants/base.json", NULL, &g, &err),
                   HEDDLE_OK);
  assert_int_equal(heddle_graph_input_count(g), 7);
  heddle_graph_release(g);
}

/* Makes the locale de_DE in a folder of its own, where the system does not have it. */
static int comma_locale(void) {
  extern char **environ;
  char folder[] = "/tmp/heddle-locale-XXXXXX", path[128];
  pid_t child;
  int status = -1;
  if (setlocale(LC_ALL, "de_DE.UTF-8") != NULL) return 1;
  if (mkdtemp(folder) == NULL) return 0;
  snprintf(path, sizeof path, "%s/de_DE.UTF-8", folder);
  char program[] = "localedef", i[] = "-i", f[] = "-f", de[] = "de_DE", utf[] = "UTF-8";
  char *argv[] = {program, i, de, f, utf, path, NULL};
  if (posix_spawnp(&child, program, NULL, NULL, argv, environ) == 0) waitpid(child, &status, 0);
  setenv("LOCPATH", folder, 1);
  int made = status == 0 && setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
  char command[160];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0) made = 0;
  return made;
}

static void does_not_heed_the_locale(void **state) {
  (void)state;
  heddle_graph *g;
  heddle_error err;
  char *text, number[16];
  size_t bytes;
  if (!comma_locale()) SKIP("no locale with a decimal comma, and localedef makes none");
  snprintf(number, sizeof number, "%.1f", 0.5);
  assert_string_equal(number, "0,5");
  char *given = changed(OWN_GRAPH, "\"inf\"", "0.25");
  if (heddle_graph_parse(given, strlen(given), "g.json", NULL, &g, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_true(*(const double *)g->nodes[2].attrs[0].data == 0.25);
  assert_int_equal(heddle_graph_text(g, &text, &bytes, &err), HEDDLE_OK);
  assert_non_null(strstr(text, "\"alpha\": 0.25"));
  heddle_free(text);
  heddle_graph_release(g);
  free(given);
}

CASES(CASE(reads_a_graph_of_tvm), CASE(reads_a_graph_of_our_own), CASE(answers_a_shorter_struct),
      CASE(refuses_malformed_graphs_of_tvm), CASE(refuses_malformed_graphs_of_our_own), CASE(compares_given_types),
      CASE(lists_all_unknown_operators_at_once), CASE(follows_the_metadata_rule), CASE(keeps_its_limits),
      CASE(refuses_every_cut), CASE(survives_any_failed_allocation), CASE(loads_a_file), CASE(does_not_heed_the_locale))
