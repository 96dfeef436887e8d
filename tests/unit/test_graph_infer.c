/* Shape inference, a table an operator family: types of the inputs, the attributes, and what comes out or why not. */
#include "cases.h"

#include "graph/opschema.h"

/* "float32 [1,3,8,8]" after another, separated by ';'. Words: what the error must say, or NULL and then out is the
 * type of output 0. */
typedef struct sample {
  const char *op, *attrs, *inputs, *out, *words;
} sample;

/* The graph of one operator as text; the file gives the output as out, or null. */
static void graph_of(const sample *t, int opset, char *text, size_t size) {
  char dtypes[400] = "", shapes[600] = "", nodes[1200] = "", entries[200] = "", types[600];
  int n = 0;
  snprintf(types, sizeof types, "%s", t->inputs);
  for (char *save, *one = strtok_r(types, ";", &save); one != NULL; one = strtok_r(NULL, ";", &save), n++) {
    char *space = strchr(one, ' ');
    sprintf(dtypes + strlen(dtypes), "\"%.*s\",", (int)(space - one), one);
    sprintf(shapes + strlen(shapes), "%s,", space + 1);
    sprintf(nodes + strlen(nodes), "{\"op\":\"null\",\"name\":\"i%d\",\"inputs\":[]},", n);
    sprintf(entries + strlen(entries), "%s[%d,0,0]", n > 0 ? "," : "", n);
  }
  const char *space = t->out != NULL ? strchr(t->out, ' ') : NULL;
  int used =
      snprintf(text, size,
               "{\"heddle\":{\"version\":1,\"opset\":%d},\"nodes\":[%s{\"op\":\"%s\",\"name\":\"n\",\"attrs\":{%s},"
               "\"inputs\":[%s]}],\"heads\":[[%d,0,0]],\"arg_nodes\":[",
               opset, nodes, t->op, t->attrs, entries, n);
  for (int i = 0; i < n; i++) used += sprintf(text + used, "%s%d", i > 0 ? "," : "", i);
  used += sprintf(text + used, "],\"node_row_ptr\":[0");
  for (int i = 0; i <= n; i++) used += sprintf(text + used, ",%d", i + 1);
  if (space != NULL)
    sprintf(text + used, "],\"attrs\":{\"dltype\":[\"list_str\",[%s\"%.*s\"]],\"shape\":[\"list_shape\",[%s%s]]}}",
            dtypes, (int)(space - t->out), t->out, shapes, space + 1);
  else
    sprintf(text + used, "],\"attrs\":{\"dltype\":[\"list_str\",[%snull]],\"shape\":[\"list_shape\",[%snull]]}}",
            dtypes, shapes);
}

static void check(const sample *all, size_t count, int opset) {
  for (size_t i = 0; i < count; i++) {
    char text[4000];
    heddle_graph *g = NULL;
    heddle_error err = {0};
    graph_of(&all[i], opset, text, sizeof text);
    heddle_status s = heddle_graph_parse(text, strlen(text), "g.json", NULL, &g, &err);
    if (all[i].words == NULL && s != HEDDLE_OK) fail_msg("%s of %s: %s", all[i].op, all[i].inputs, err.text);
    if (all[i].words != NULL && (s == HEDDLE_OK || strstr(err.text, all[i].words) == NULL))
      fail_msg("%s of %s: '%s', expected '%s'", all[i].op, all[i].inputs, err.text, all[i].words);
    heddle_graph_release(g);
  }
}
#define CHECK(all, opset) check(all, sizeof all / sizeof all[0], opset)

static void elementwise(void **state) {
  (void)state;
  static const sample all[] = {
      {"Add", "", "float32 [2,3];float32 [2,3]", "float32 [2,3]", NULL},
      {"Add", "", "float32 [2,3];float32 []", "float32 [2,3]", NULL},
      {"Mul", "", "int32 [4,1,5];int32 [3,1]", "int32 [4,3,5]", NULL},
      {"Mul", "", "bfloat16 [0,2];bfloat16 [1,2]", "bfloat16 [0,2]", NULL},
      {"Add", "", "float32 [2,3];float32 [2]", NULL, "node 2 'n' (Add): input 1 (float32 [2]): expected a shape that"},
      {"Add", "", "float32 [2];float16 [2]", NULL, "input 1 (float16 [2]): expected float32"},
      {"Add", "", "bool [2];bool [2]", NULL, "input 0 (bool [2]): expected a number type"},
      {"Relu", "", "float64 [2,0]", "float64 [2,0]", NULL},
      {"Relu", "", "int8 [2]", "int8 [2]", NULL},
      {"Relu", "", "uint8 [2]", NULL, "a floating-point type"},
      {"Softmax", "", "float32 [2,3]", "float32 [2,3]", NULL},
      {"Softmax", "\"axis\":-2", "float32 [2,3]", "float32 [2,3]", NULL},
      {"Softmax", "\"axis\":2", "float32 [2,3]", NULL, "axis is 2, expected -2 to 1"},
      {"Softmax", "", "float32 []", NULL, "axis is -1"},
      {"Identity", "", "bool [7]", "bool [7]", NULL},
  };
  CHECK(all, 17);
  static const sample older[] = {{"Relu", "", "int8 [2]", NULL, "a floating-point type"}};
  CHECK(older, 13);
}

static void matmul(void **state) {
  (void)state;
  static const sample all[] = {
      {"MatMul", "", "float32 [2,3];float32 [3,4]", "float32 [2,4]", NULL},
      {"MatMul", "", "float32 [3];float32 [3,4]", "float32 [4]", NULL},
      {"MatMul", "", "float32 [2,3];float32 [3]", "float32 [2]", NULL},
      {"MatMul", "", "float32 [3];float32 [3]", "float32 []", NULL},
      {"MatMul", "", "float32 [5,1,2,3];float32 [7,3,4]", "float32 [5,7,2,4]", NULL},
      {"MatMul", "", "float32 [5,2,3];float32 [3]", "float32 [5,2]", NULL},
      {"MatMul", "", "float32 [2,3];float32 [4,3]", NULL, "input 1 (float32 [4, 3]): expected 3 rows"},
      {"MatMul", "", "float32 [2,2,3];float32 [3,3,4]", NULL, "leading dimensions"},
      {"MatMul", "", "float32 [];float32 [3]", NULL, "one dimension or more"},
      {"MatMul", "", "int8 [2,3];int8 [3,4]", NULL, "integers of 32 or 64 bits"},
      {"Gemm", "", "float32 [2,3];float32 [3,4]", "float32 [2,4]", NULL},
      {"Gemm", "\"transA\":1,\"transB\":1", "float32 [3,2];float32 [4,3];float32 [4]", "float32 [2,4]", NULL},
      {"Gemm", "", "float32 [2,3];float32 [3,4];float32 [2,1]", "float32 [2,4]", NULL},
      {"Gemm", "", "float32 [2,3];float32 [3,4];float32 []", "float32 [2,4]", NULL},
      {"Gemm", "", "float32 [2,3];float32 [3,4];float32 [1,2,4]", NULL, "broadcasts to [2, 4]"},
      {"Gemm", "", "float32 [2,1];float32 [1,1];float32 [2,3]", NULL, "broadcasts to [2, 1]"},
      {"Gemm", "", "float32 [2,3];float32 [4,3]", NULL, "expected 3 in dimension 0"},
      {"Gemm", "", "float32 [1,2,3];float32 [3,4]", NULL, "two dimensions"},
  };
  CHECK(all, 13);
}

static void windows(void **state) {
  (void)state;
  static const sample all[] = {
      {"Conv", "", "float32 [1,3,8,8];float32 [4,3,3,3]", "float32 [1,4,6,6]", NULL},
      {"Conv", "\"pads\":[1,0,2,0],\"strides\":[2,1]", "float32 [1,3,8,8];float32 [4,3,3,3]", "float32 [1,4,5,6]",
       NULL},
      {"Conv", "\"dilations\":[2,2]", "float32 [1,3,8,8];float32 [4,3,3,3];float32 [4]", "float32 [1,4,4,4]", NULL},
      {"Conv", "\"group\":3", "float32 [2,3,8];float32 [6,1,5]", "float32 [2,6,4]", NULL},
      {"Conv", "\"auto_pad\":\"SAME_UPPER\",\"strides\":[3]", "float32 [2,3,8];float32 [6,3,5]", "float32 [2,6,3]",
       NULL},
      {"Conv", "\"auto_pad\":\"VALID\",\"strides\":[2]", "float32 [2,3,8];float32 [6,3,5]", "float32 [2,6,2]", NULL},
      {"Conv", "\"kernel_shape\":[3,3]", "float32 [0,1,4,4];float32 [1,1,3,3]", "float32 [0,1,2,2]", NULL},
      {"Conv", "\"kernel_shape\":[3,2]", "float32 [1,1,4,4];float32 [1,1,3,3]", NULL, "kernel_shape[1] is 2"},
      {"Conv", "\"kernel_shape\":[3]", "float32 [1,1,4,4];float32 [1,1,3,3]", NULL, "kernel_shape has 1 numbers"},
      {"Conv", "", "float32 [1,2,4,4];float32 [1,1,3,3]", NULL, "expected 2 in dimension 1"},
      {"Conv", "\"group\":2", "float32 [1,4,4,4];float32 [3,2,3,3]", NULL, "group is 2"},
      {"Conv", "\"group\":0", "float32 [1,4,4,4];float32 [3,2,3,3]", NULL, "group is 0"},
      {"Conv", "", "float32 [1,1,2,2];float32 [1,1,3,3]", NULL, "at least 3 with padding"},
      {"Conv", "", "float32 [1,1,4,4];float32 [2,1,3,3];float32 [3]", NULL, "input 2 (float32 [3]): expected [2]"},
      {"Conv", "\"strides\":[0,1]", "float32 [1,1,4,4];float32 [2,1,3,3]", NULL, "strides[0] is 0"},
      {"Conv", "\"pads\":[0,-1,0,0]", "float32 [1,1,4,4];float32 [2,1,3,3]", NULL, "pads[1] is -1"},
      {"Conv", "\"pads\":[9223372036854775807,0,0,0]", "float32 [1,1,4,4];float32 [2,1,3,3]", NULL, "pads[0]"},
      {"Conv", "\"pads\":[0,0]", "float32 [1,1,4,4];float32 [2,1,3,3]", NULL, "pads has 2 numbers, expected 4"},
      {"Conv", "\"auto_pad\":\"same\"", "float32 [1,1,4,4];float32 [2,1,3,3]", NULL, "auto_pad is 'same'"},
      {"Conv", "\"auto_pad\":\"VALID\",\"pads\":[0,0,0,0]", "float32 [1,1,4,4];float32 [2,1,3,3]", NULL, "both pads"},
      {"Conv", "", "float32 [1,1];float32 [1,1]", NULL, "three or more"},
      {"Conv", "", "float32 [1,1,4,4];float32 [1,1,0,3]", NULL, "the kernel is 0"},
      {"Conv", "", "int8 [1,1,4,4];int8 [1,1,3,3]", NULL, "a floating-point type"},
      {"MaxPool", "\"kernel_shape\":[2,2],\"strides\":[2,2]", "float32 [1,3,7,7]", "float32 [1,3,3,3]", NULL},
      {"MaxPool", "\"kernel_shape\":[2,2],\"strides\":[2,2],\"ceil_mode\":1", "float32 [1,3,7,7]", "float32 [1,3,4,4]",
       NULL},
      /* the last window would lie in the padding alone */
      {"MaxPool", "\"kernel_shape\":[1],\"strides\":[2],\"ceil_mode\":1,\"pads\":[0,1]", "float32 [1,1,4]",
       "float32 [1,1,2]", NULL},
      {"MaxPool", "\"kernel_shape\":[3],\"dilations\":[2],\"pads\":[1,1]", "uint8 [1,1,8]", "uint8 [1,1,6]", NULL},
      {"MaxPool", "\"kernel_shape\":[3],\"auto_pad\":\"SAME_LOWER\",\"strides\":[2]", "float32 [1,1,7]",
       "float32 [1,1,4]", NULL},
      {"MaxPool", "", "float32 [1,1,8]", NULL, "it has no kernel_shape"},
      {"MaxPool", "\"kernel_shape\":[0]", "float32 [1,1,8]", NULL, "kernel_shape[0] is 0"},
      {"GlobalAveragePool", "", "float32 [2,3,5,7]", "float32 [2,3,1,1]", NULL},
      {"GlobalAveragePool", "", "float32 [2,3]", NULL, "three dimensions"},
  };
  CHECK(all, 18);
}

static void shapes(void **state) {
  (void)state;
  static const sample all[] = {
      {"Flatten", "", "float32 [2,3,4]", "float32 [2,12]", NULL},
      {"Flatten", "\"axis\":0", "float32 [2,3,4]", "float32 [1,24]", NULL},
      {"Flatten", "\"axis\":3", "float32 [2,3,4]", "float32 [24,1]", NULL},
      {"Flatten", "\"axis\":-1", "float32 [2,3,4]", "float32 [6,4]", NULL},
      {"Flatten", "\"axis\":4", "float32 [2,3,4]", NULL, "axis is 4, expected -3 to 3"},
      {"Concat", "\"axis\":1", "float32 [2,3];float32 [2,0];float32 [2,5]", "float32 [2,8]", NULL},
      {"Concat", "\"axis\":-2", "int64 [2,3];int64 [4,3]", "int64 [6,3]", NULL},
      {"Concat", "\"axis\":0", "int64 [2,3];int64 [4,2]", NULL, "input 1 (int64 [4, 2]): expected 3 in dimension 1"},
      {"Concat", "\"axis\":0", "int64 [2,3];int64 [4]", NULL, "2 dimensions"},
      {"Concat", "", "int64 [2,3];int64 [4,3]", NULL, "it has no axis"},
      {"Concat", "\"axis\":0", "int64 [2];float32 [2]", NULL, "expected int64"},
      {"Concat", "\"axis\":0", "int8 [9223372036854775807];int8 [1]", NULL, "a sum below 2^63"},
      {"Add", "", "int64 [1000000000,1];int64 [1,2000000000]", NULL, "more than 2^63 bytes"},
      {"Reshape", "", "float32 [2,3];int64 [2]", "float32 [3,2]", NULL}, /* as the file says, until a value is known */
      {"Reshape", "", "float32 [2,3];int32 [2]", NULL, "expected int64 [n]"},
      {"Reshape", "", "float32 [2,3];int64 [33]", NULL, "n at most 32"},
      {"Reshape", "", "float32 [2];int64 [0]", NULL, "as many elements"},
      {"Reshape", "", "float32 [1];int64 [0]", "float32 []", NULL},
  };
  CHECK(all, 17);
  static const sample older[] = {{"Reshape", "\"allowzero\":1", "float32 [1];int64 [1]", NULL, "'allowzero'"}};
  CHECK(older, 13);
}

/* Reshape with the value of its shape. zero: allowzero. */
static void reshape_values(void **state) {
  (void)state;
  static const struct {
    int zero;
    uint32_t in_ndim, ndim;
    int64_t in[4], shape[4], out[4];
    const char *words;
  } all[] = {
      {0, 2, 3, {4, 6}, {2, -1, 3}, {2, 4, 3}, NULL},
      {0, 2, 2, {4, 6}, {0, -1}, {4, 6}, NULL},
      {0, 3, 2, {2, 3, 4}, {0, 12}, {2, 12}, NULL},
      {1, 2, 2, {0, 6}, {0, 9}, {0, 9}, NULL},
      {0, 2, 2, {0, 6}, {-1, 3}, {0, 3}, NULL},
      {0, 0, 1, {0}, {1}, {1}, NULL},
      {1, 2, 2, {0, 6}, {0, -1}, {0}, "as many elements"},
      {0, 2, 2, {4, 6}, {5, 5}, {0}, "as many elements as the new shape has: float32 [5, 5]"},
      {0, 2, 2, {4, 6}, {5, -1}, {0}, "as many elements"},
      {0, 2, 2, {4, 6}, {-1, -1}, {0}, "or one -1"},
      {0, 2, 2, {4, 6}, {-2, 4}, {0}, "or one -1"},
      {0, 1, 2, {4}, {4, 0}, {0}, "dimension 1, which a 0"},
      {0, 2, 2, {4, 6}, {INT64_MAX, 3}, {0}, "more than 2^63"},
  };
  static char name[] = "r", op[] = "Reshape";
  const heddle__schema *schema = heddle__schema_find("", "Reshape", 14);
  assert_true(schema->is_view && schema->shape_inputs == 2);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    int64_t zero = all[i].zero;
    heddle_pattr attr = {.kind = HEDDLE_ATTR_INT, .name = "allowzero", .data = &zero, .count = 1};
    heddle__node node = {.name = name, .op = op, .n_inputs = 2, .n_outputs = 1, .attrs = &attr, .n_attrs = 1};
    static char source[] = "g";
    heddle_graph g = {.source = source, .nodes = &node, .n_nodes = 1, .opset = 14};
    heddle__known x = {.dtype = {2, 32, 1}, .ndim = all[i].in_ndim}, out = {.ndim = 0};
    heddle__known shape = {.dtype = {0, 64, 1}, .ndim = 1, .shape = {all[i].ndim}, .data = all[i].shape};
    const heddle__known *inputs[2] = {&x, &shape};
    heddle_error err = {0};
    int32_t needs = -1;
    memcpy(x.shape, all[i].in, sizeof all[i].in);
    heddle_status s = heddle__schema_infer(schema)(&g, &node, inputs, &out, &needs, &err);
    if (all[i].words != NULL) {
      if (s == HEDDLE_OK || strstr(err.text, all[i].words) == NULL) fail_msg("%zu: '%s'", i, err.text);
      continue;
    }
    if (s != HEDDLE_OK) fail_msg("%zu: %s", i, err.text);
    assert_int_equal(out.ndim, all[i].ndim);
    assert_memory_equal(out.shape, all[i].out, out.ndim * sizeof(int64_t));
    shape.data = NULL;
    assert_int_equal(heddle__schema_infer(schema)(&g, &node, inputs, &out, &needs, &err), HEDDLE_EUNSUPPORTED);
    assert_int_equal(needs, 1);
    assert_int_equal(heddle__schema_infer(schema)(&g, &node, inputs, &out, NULL, NULL), HEDDLE_EUNSUPPORTED);
  }
}

static void knows_its_table(void **state) {
  (void)state;
  char names[4000];
  heddle__schema_names(17, names, sizeof names);
  assert_memory_equal(names, "Abs, Acos, Acosh, Add", 21);
  assert_non_null(strstr(names, ", LayerNormalization, "));
  assert_non_null(strstr(names, ", Where, Xor"));
  heddle__schema_names(16, names, sizeof names);
  assert_null(strstr(names, "LayerNormalization"));
  heddle__schema_names(17, names, 10);
  assert_string_equal(names, "Abs, Acos");
  assert_null(heddle__schema_find("", "Add", 29));
  assert_null(heddle__schema_find("heddle", "Add", 17));
  assert_non_null(heddle__schema_find("", "Add", 0));
  assert_non_null(heddle__schema_find("heddle", "Reorder", 17));
  const heddle__schema *conv = heddle__schema_find("", "Conv", 13);
  assert_int_equal(heddle__version_attr(conv, "group"), HEDDLE_ATTR_INT);
  assert_int_equal(heddle__version_attr(conv, "auto_pad"), HEDDLE_ATTR_STRING);
  assert_int_equal(heddle__version_attr(conv, "pads"), HEDDLE_ATTR_INTS);
  assert_int_equal(heddle__version_attr(conv, "pad"), 0);
  assert_int_equal(heddle__version_attr(conv, "pads:ints,strides"), 0);
  assert_int_equal(heddle__version_attr(conv, ""), 0);
}

static void selections(void **state) {
  (void)state;
  static const sample all[] = {
      {"Where", "", "bool [2,1];float32 [3];float32 []", "float32 [2,3]", NULL},
      {"Where", "", "bool [2];float32 [2];int64 [2]", NULL, "input 2 (int64 [2]): expected the type of input 1"},
      {"Equal", "", "bool [2];bool [2,1]", "bool [2,2]", NULL},
      {"Less", "", "bool [2];bool [2]", NULL, "expected a number type"},
      {"And", "", "bool [2];int64 [2]", NULL, "input 1 (int64 [2])"},
      {"PRelu", "", "float32 [2,3];float32 [4,2,3]", NULL, "broadcasts to that of input 0"},
      {"Clip", "", "float32 [2];float32 [2]", NULL, "expected one number"},
      {"Cast", "\"to\":9", "float32 [2,3]", "bool [2,3]", NULL},
      {"Cast", "\"to\":8", "float32 [2,3]", NULL, "to is 8"},
      {"Transpose", "\"perm\":[1,0,2]", "int8 [2,3,4]", "int8 [3,2,4]", NULL},
      {"Transpose", "\"perm\":[1,1,2]", "int8 [2,3,4]", NULL, "name dimension 1 twice"},
      {"Transpose", "\"perm\":[0,1]", "int8 [2,3,4]", NULL, "perm has 2 numbers"},
      {"Gather", "\"axis\":1", "int8 [2,3,4];int64 [5,6]", "int8 [2,5,6,4]", NULL},
      {"Gather", "", "int8 [2];float32 [5]", NULL, "expected int32 or int64"},
      {"ArgMax", "\"axis\":-1,\"keepdims\":0", "float32 [2,3]", "int64 [2]", NULL},
      {"ArgMax", "", "float32 [0,3]", NULL, "an element or more in dimension 0"},
      {"ReduceMax", "\"axes\":[0,-1]", "float32 [2,3,4]", "float32 [1,3,1]", NULL},
      {"ReduceMax", "\"axes\":[3]", "float32 [2,3,4]", NULL, "one of its axes is 3"},
      {"ReduceSum", "\"keepdims\":0", "int64 [2,3]", "int64 []", NULL},
      {"Split", "", "float32 [4,2]", "float32 [4,2]", NULL},
      {"Shape", "\"start\":-2", "float32 [4,2,3]", "int64 [2]", NULL},
      {"Constant", "\"value_ints\":[1,2]", "", "int64 [2]", NULL},
      {"BatchNormalization", "", "float32 [1,2];float32 [2];float32 [2];float32 [2];float32 [3]", NULL,
       "a number for each channel"},
      {"LayerNormalization", "\"axis\":1", "float32 [2,3,4];float32 [3,4]", "float32 [2,3,4]", NULL},
      {"LRN", "", "float32 [1,2,3]", NULL, "it has no size"},
      {"ConvTranspose", "\"strides\":[2,2],\"output_padding\":[1,1]", "float32 [1,2,3,3];float32 [2,4,3,3]",
       "float32 [1,4,8,8]", NULL},
      {"ConvTranspose", "", "float32 [1,2,3,3];float32 [3,4,3,3]", NULL, "2 in dimension 0, the channels of input 0"},
      {"Resize", "", "float32 [1,2]", NULL, "both or none of scales and sizes"},
      {"Pad", "\"mode\":\"wrap\"", "float32 [1];int64 [2]", NULL, "not constant, reflect or edge"},
  };
  CHECK(all, 17);
}

CASES(CASE(elementwise), CASE(selections), CASE(matmul), CASE(windows), CASE(shapes), CASE(reshape_values),
      CASE(knows_its_table))
