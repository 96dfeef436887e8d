/* The reader of ONNX models as libheddle opens it: memory that runs out anywhere, tensors that share the file's bytes,
 * and several threads that read at once.
 * labels: threads */
#include "cases.h"

#include <pthread.h>

#include "core/alloc.h"
#include "graph/frontend.h"

#define SEEDS HEDDLE_TEST_SOURCE "/tests/fuzz/data/onnx/"

static void without_the_reader(void) {
  heddle_error err;
  heddle_graph *g = NULL;
  if (heddle_graph_load(SEEDS "softmax9.onnx", NULL, &g, &err) == HEDDLE_EUNSUPPORTED)
    SKIP("the reader of ONNX models is not built");
  heddle_graph_release(g);
}

static void reads_a_graph_and_its_params(void **state) {
  (void)state;
  heddle_error err = {0};
  heddle_graph *g = NULL;
  heddle_params *p = NULL;
  heddle_tensor *t = NULL;
  without_the_reader();
  heddle_value_info v = {.struct_size = sizeof v};
  if (heddle_graph_load(SEEDS "conv.onnx", NULL, &g, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(g->opset, 17);
  assert_int_equal(heddle_graph_input(g, 0, &v, &err), HEDDLE_OK);
  assert_string_equal(v.name, "x");
  assert_string_equal(v.symbols[0], "n");
  assert_int_equal(heddle_graph_output(g, 0, &v, &err), HEDDLE_OK);
  assert_string_equal(v.name, "y");
  heddle_graph_release(g);
  if (heddle_params_load(SEEDS "conv.onnx", NULL, &p, &err) != HEDDLE_OK) fail_msg("%s", err.text);
  assert_int_equal(heddle_params_count(p), 1);
  assert_int_equal(heddle_params_tensor(p, 0, &t, &err), HEDDLE_OK);
  heddle_params_release(p); /* the tensor holds what it needs */
  assert_int_equal(heddle_tensor_bytes(t), 2 * 3 * 3 * 3 * 4);
  heddle_tensor_release(t);
  assert_int_equal(heddle__alloc_live(), 0);
}

/* Every allocation fails once: an error each time, nothing kept, and at the end a graph. */
static void memory_runs_out(void **state) {
  (void)state;
  static const char *const names[] = {"conv.onnx",      "softmax9.onnx", "old.onnx",
                                      "constants.onnx", "names.onnx",    "functions.onnx"};
  without_the_reader();
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    heddle_status s = HEDDLE_ENOMEM;
    char path[600];
    uint64_t n = 1;
    snprintf(path, sizeof path, SEEDS "%s", names[i]);
    for (; s != HEDDLE_OK && n < 5000; n++) {
      heddle_graph *g = NULL;
      heddle_params *p = NULL;
      heddle_error err = {0};
      heddle__alloc_fail_at(n);
      s = heddle__onnx_load(path, NULL, NULL, &g, &p, &err);
      heddle__alloc_fail_at(0);
      if (s != HEDDLE_OK && s != HEDDLE_ENOMEM && s != HEDDLE_EUNSUPPORTED) fail_msg("%u: %s", (unsigned)n, err.text);
      if (s != HEDDLE_OK) {
        assert_null(g);
        assert_null(p);
        assert_true(err.text[0] != '\0');
      }
      heddle_graph_release(g);
      heddle_params_release(p);
      assert_int_equal(heddle__alloc_live(), 0);
    }
    if (s != HEDDLE_OK || n < 10) fail_msg("%s: %d after %u allocations", names[i], (int)s, (unsigned)n);
  }
}

static void *read_some(void *result) {
  heddle_error err = {0};
  for (int i = 0; i < 20; i++) {
    heddle_graph *g = NULL;
    heddle_params *p = NULL;
    if (heddle__onnx_load(i % 2 == 0 ? SEEDS "conv.onnx" : SEEDS "constants.onnx", NULL, NULL, &g, &p, &err) !=
        HEDDLE_OK)
      *(int *)result = 1;
    if (heddle__onnx_load(SEEDS "unknown.onnx", NULL, NULL, &g, &p, &err) != HEDDLE_EUNSUPPORTED) *(int *)result = 1;
    heddle_graph_release(g);
    heddle_params_release(p);
  }
  return NULL;
}

static void threads_read_at_once(void **state) {
  (void)state;
  pthread_t threads[4];
  int failed[4] = {0};
  without_the_reader();
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_some, &failed[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) assert_int_equal(failed[i], 0);
  assert_int_equal(heddle__alloc_live(), 0);
}

CASES(CASE(reads_a_graph_and_its_params), CASE(memory_runs_out), CASE(threads_read_at_once))
