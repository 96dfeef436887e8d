/* labels: serial
 * timeout: 300
 * Runs on PoCL: segments are replayed where captures are asked for, with the same results as without. */
#include "executor/rig.h"

enum { NODES = 40 };

/* out = x + 40 * x by a chain of Adds, all on opencl:0. */
static heddle_graph *chain(void) {
  static sketch s;
  memset(&s, 0, sizeof s);
  int x = put_input(&s, "x", "[16]", "\"float32\""), last = x;
  for (int i = 0; i < NODES; i++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    last = NODE(&s, "Add", name, "opencl:0", last, x);
  }
  put_head(&s, last);
  return graph_of(&s);
}

static void segments_are_replayed(void **state) {
  static const int64_t shape[] = {16};
  (void)state;
  accelerator = "opencl";
  const char *lacks = accelerator_prepare(HEDDLE_TEST_BUILD);
  if (lacks != NULL) SKIP(lacks);
  for (int capture = 0; capture < 2; capture++) {
    heddle_context *ctx = context(capture ? "opencl.capture=1;opencl.unified=0;opencl.cache_dir=off"
                                          : "opencl.capture=0;opencl.unified=0;opencl.cache_dir=off");
    heddle_graph *g = chain();
    heddle_model_options o = {.struct_size = sizeof o, .devices = "opencl:0"};
    heddle_model *m = NULL;
    heddle_executor *ex = NULL;
    heddle_status s = heddle_model_create(ctx, g, NULL, &o, &m, &err);
    if (s == HEDDLE_ENODEV || s == HEDDLE_ENOTFOUND) SKIP(err.text);
    OK(s);
    OK(heddle_executor_create(m, &ex, &err));
    heddle_tensor *x = floats(shape, 1, 1, 1), *y = floats(shape, 1, 0, 0);
    OK(heddle_executor_set_input(ex, 0, x, &err));
    heddle_executor_stats stats = {.struct_size = sizeof stats};
    for (int i = 0; i < 3; i++) OK(heddle_executor_run(ex, HEDDLE_FOREVER, &err));
    OK(heddle_executor_get_output(ex, 0, y, &err));
    for (int i = 0; i < 16; i++) assert_true(data_of(y)[i] == (float)(i + 1) * (NODES + 1));
    OK(heddle_executor_get_stats(ex, &stats, &err));
    if (capture) assert_true(stats.replays >= 3);
    else assert_int_equal(stats.replays, 0);
    heddle_tensor_release(x);
    heddle_tensor_release(y);
    heddle_executor_release(ex);
    heddle_model_release(m);
    heddle_graph_release(g);
    heddle_context_release(ctx);
    assert_int_equal(heddle__alloc_live(), 0);
  }
}

CASES(CASE(segments_are_replayed))
